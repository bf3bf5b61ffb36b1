"""CVAT for images: one XML file for all pictures."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yolov9kit.data.dataset import open_dataset
from yolov9kit.data.formats.cvat import open_cvat
from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.labels import LabelFile
from yolov9kit.errors import DataError

MakePicture = Callable[..., Path]

LABELS = (
    "<meta><task><labels><label><name>dog</name></label><label><name>cat</name></label>"
    "<label><name>paw</name><parent>dog</parent></label></labels></task></meta>"
)


def box(label: str = "cat", corners: str = "1 2 5 6", more: str = "") -> str:
    left, top, right, bottom = corners.split()
    return f'\n<box label="{label}" xtl="{left}" ytl="{top}" xbr="{right}" ybr="{bottom}" {more}/>'


def image(name: str, *shapes: str, size: str = "100 80", subset: str = "") -> str:
    width, height = size.split()
    told = f' subset="{subset}"' if subset else ""
    return f'\n<image id="0" name="{name}"{told} width="{width}" height="{height}">{"".join(shapes)}</image>'


def write(folder: Path, *images: str, meta: str = LABELS, pictures: str = "a.jpg") -> None:
    for name in pictures.split():
        (folder / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "images" / name).touch()
    text = f'<?xml version="1.0" encoding="utf-8"?>\n<annotations>{meta}{"".join(images)}</annotations>'
    (folder / "annotations.xml").write_text(text, encoding="utf-8")


def opened(folder: Path) -> Layout:
    layout = open_cvat(folder)
    assert layout is not None
    return layout


def read(folder: Path, *shapes: str, size: str = "100 80") -> LabelFile:
    write(folder, image("a.jpg", *shapes, size=size))
    return opened(folder).open("train").read(0, (100, 80))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (box(corners="1.5 2 5 6.25"), [1.5, 2, 5, 6.25]),
        ('<polygon label="cat" points="1,2;5,3.5;4,6"/>', [1, 2, 5, 6]),
        ('<ellipse label="cat" cx="50" cy="40" rx="10" ry="5"/>', [40, 35, 60, 45]),
        ('<ellipse label="cat" cx="50" cy="40" rx="10" ry="5" rotation="90"/>', [45, 30, 55, 50]),
        ('<mask label="cat" rle="1" left="10" top="20" width="30" height="5"/>', [10, 20, 40, 25]),
        (box(corners="40 35 60 45", more='rotation="90"'), [45, 30, 55, 50]),
        (box(corners="40 35 60 45", more='rotation="360.0"'), [40, 35, 60, 45]),
    ],
)
def test_shapes_become_the_boxes_around_them(tmp_path: Path, shape: str, expected: list[float]) -> None:
    found = read(tmp_path, shape)
    assert found.boxes[0].tolist() == pytest.approx(expected) and found.labels.tolist() == [1]


def test_names_are_those_of_the_project_in_its_order_and_lines_are_told(tmp_path: Path) -> None:
    found = read(tmp_path, box(), box("dog", "3 3 9 9"), box("new", "9 9 20 20"))
    assert opened(tmp_path).names == ("dog", "cat", "new")
    assert (
        found.labels.tolist() == [1, 0, 2] and found.lines is not None and found.lines.tolist() == [4, 5, 6]
    )


def test_what_is_no_box_is_left_out_and_counted(tmp_path: Path) -> None:
    shapes = (
        '<polyline label="cat" points="1,2;3,4"/>',
        '<points label="cat" points="1,2"/>',
        "<skeleton/>",
        "<cuboid/>",
    )
    write(tmp_path, image("a.jpg", box(), *shapes, '<tag label="cat"/>'))
    files = opened(tmp_path).open("train")
    assert len(files.read(0, (100, 80)).boxes) == 1
    (finding,) = files.findings
    assert (finding.code, finding.severity, finding.value) == ("label_not_a_box", "note", "4")


@pytest.mark.parametrize(
    ("wrong", "code", "says"),
    [
        (box(""), "label_class", "no label"),
        (box("cat", "1 2 x 6"), "label_number", "xbr is 'x'"),
        (box("cat", "1 2 inf 6"), "label_number", "'inf'"),
        (box().replace('ytl="2"', ""), "label_columns", "no ytl"),
        (box("cat", "9 2 5 6"), "label_no_area", "xtl 9 is greater than xbr 5"),
        (box("cat", "200 2 300 6"), "label_outside", "outside the picture"),
        ('\n<polygon label="cat" points="1,2;3,4"/>', "label_columns", "2 points"),
        ('\n<polygon label="cat" points="1,2;3;4,5"/>', "label_number", "'3'"),
        ('\n<mask label="cat" left="1" top="2" width="0" height="3"/>', "label_no_area", "0 x 3"),
    ],
)
def test_a_shape_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, wrong: str, code: str, says: str
) -> None:
    found = read(tmp_path, box("dog", "3 3 9 9"), wrong)
    (finding,) = [f for f in found.findings if f.severity != "note"]
    assert (finding.code, finding.line, finding.path) == (code, 5, tmp_path / "annotations.xml")
    assert says in finding.message and len(found.boxes) == 1 and found.rows == 2


def test_tilted_boxes_are_told_by_the_split(
    tmp_path: Path, make_picture: MakePicture, private_cache: Path
) -> None:
    make_picture("set/a.png", size=(40, 32))
    write(tmp_path / "set", image("a.png", box(more='rotation="30"'), size="40 32"), pictures="")
    assert [f.code for f in open_dataset(tmp_path / "set").errors] == ["label_oriented"]
    assert open_dataset(tmp_path / "set", as_boxes=True).errors == ()


def test_another_size_is_told(tmp_path: Path) -> None:
    (finding,) = read(tmp_path, box(), size="640 480").findings
    assert (finding.code, finding.line, finding.value) == ("size_differs", 3, "640 x 480")


def test_subsets_are_splits_and_pictures_lie_in_their_folders(tmp_path: Path) -> None:
    subsets = ("Train", "Validation", "default", "night")
    write(
        tmp_path,
        *(image("a.jpg", box(), subset=subset) for subset in subsets[:2]),
        image("b.jpg", subset="night"),
        pictures="Train/a.jpg Validation/a.jpg night/b.jpg",
    )
    layout = opened(tmp_path)
    assert layout.splits == ("train", "val", "night")
    where = {
        split: [p.relative_to(tmp_path).as_posix() for p in layout.open(split).pictures]
        for split in layout.splits
    }
    assert where == {
        "train": ["images/Train/a.jpg"],
        "val": ["images/Validation/a.jpg"],
        "night": ["images/night/b.jpg"],
    }


def test_missing_pictures_and_those_named_twice_are_told(tmp_path: Path) -> None:
    write(tmp_path, image("a.jpg", box()), image("gone.jpg", box()), image("a.jpg", box("dog")))
    files = opened(tmp_path).open("train")
    assert len(files.read(0, (100, 80)).boxes) == 2
    missing, twice = files.findings
    assert (missing.code, missing.severity, missing.line) == ("picture_missing", "error", 5)
    assert (twice.code, twice.severity, twice.line) == ("picture_repeated", "warning", 7)
    write(tmp_path, image("gone.jpg", box()))
    with pytest.raises(DataError, match=r"no picture was found: .*annotations\.xml:3: 'gone\.jpg'"):
        opened(tmp_path).open("train")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("<annotations><image", "not XML"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><annotations><image/></annotations>', "declares the entity 'x'"),
        ("<annotations><meta/></annotations>", "names no picture"),
        ("<annotations><meta/><track/></annotations>", "CVAT for video"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "annotations.xml").write_text(content)
    for path in (tmp_path, tmp_path / "annotations.xml"):
        with pytest.raises(DataError, match=says) as caught:
            open_cvat(path)
        assert "annotations.xml" in str(caught.value)


def test_two_files_are_not_guessed_between(tmp_path: Path) -> None:
    write(tmp_path, image("a.jpg"))
    (tmp_path / "b.xml").write_bytes((tmp_path / "annotations.xml").read_bytes())
    with pytest.raises(DataError, match=r"several files of CVAT \(annotations\.xml, b\.xml\): name one"):
        open_cvat(tmp_path)
    assert open_cvat(tmp_path / "b.xml") is not None


VALUE = st.sampled_from(["1", "5.5", "-3", "250", "nan", "x", "", "1e400", "1,2;3,4;5,6", "1,2;;3"])
NUMBERS = "xtl ytl xbr ybr points cx cy rx ry left top width height rotation"


def written(tag: str, label: str, values: dict[str, str]) -> str:
    return f"<{tag} {label} {' '.join(key + '=' + repr(value) for key, value in values.items())}/>"


SHAPE = st.builds(
    written,
    st.sampled_from(["box", "polygon", "ellipse", "mask", "points", "tag"]),
    st.sampled_from(["", 'label="cat"']),
    st.dictionaries(st.sampled_from(NUMBERS.split(" ")), VALUE),
)


@given(shapes=st.lists(SHAPE, max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_shape_is_a_box_left_out_with_a_note_or_named(tmp_path: Path, shapes: list[str]) -> None:
    write(tmp_path, image("a.jpg", *shapes))
    files = opened(tmp_path).open("train")
    found = files.read(0, (100, 80))
    told = [f for f in found.findings if f.severity != "note"]
    left_out = sum(int(f.value) for f in files.findings if f.code == "label_not_a_box")
    assert len(found.boxes) + len(told) + left_out == sum(not shape.startswith("<tag") for shape in shapes)
    assert all(f.line is not None for f in told)


@given(content=st.binary(max_size=300))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_refused_or_of_another_format(tmp_path: Path, content: bytes) -> None:
    for start in (b"", b"<annotations><image name='a.jpg'>"):
        (tmp_path / "annotations.xml").write_bytes(start + content)
        try:
            layout = open_cvat(tmp_path)
        except DataError as fault:
            layout, message = None, str(fault)
        else:
            message = "annotations.xml"
        assert "annotations.xml" in message and (layout is None or start)
