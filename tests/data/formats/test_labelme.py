"""LabelMe: shapes in JSON, one file for each picture, and the XML of its older web tool."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yolov9kit.data.dataset import open_dataset, refuse
from yolov9kit.data.formats.labelme import open_labelme, read_labelme_json
from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.labels import LabelFile
from yolov9kit.errors import DataError

MakePicture = Callable[..., Path]

SQUARE = [[1, 2], [5, 2], [5, 6], [1, 6]]


def shape(label: Any = "cat", points: Any = SQUARE, kind: Any = "polygon", **more: Any) -> dict[str, Any]:
    return {"label": label, "points": points, "group_id": None, "shape_type": kind, "flags": {}, **more}


def write(path: Path, *shapes: Any, **more: Any) -> None:
    content = {
        "version": "5.4.1",
        "flags": {},
        "shapes": list(shapes),
        "imagePath": f"{path.stem}.jpg",
        "imageData": None,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content | more), encoding="utf-8")


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def opened(folder: Path) -> Layout:
    layout = open_labelme(folder)
    assert layout is not None
    return layout


def read(folder: Path, *shapes: Any, **more: Any) -> LabelFile:
    touch(folder / "a.jpg")
    write(folder / "a.json", *shapes, **more)
    return opened(folder).open("train").read(0, (100, 80))


# -------------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize(
    ("points", "kind", "box"),
    [
        ([[1, 2], [5, 6]], "rectangle", [1, 2, 5, 6]),
        ([[5, 6], [1, 2]], "rectangle", [1, 2, 5, 6]),
        ([[5, 2], [1, 6]], "rectangle", [1, 2, 5, 6]),
        ([[5, 2], [1, 4], [3, 6.5]], "polygon", [1, 2, 5, 6.5]),
        ([[50, 40], [53, 44]], "circle", [45, 35, 55, 45]),
        ([[1, 2], [5, 6]], "mask", [1, 2, 5, 6]),
        ([[1.5, 2.25], [5, 2], [3, 6]], None, [1.5, 2, 5, 6]),
    ],
)
def test_shapes_become_the_boxes_around_them(
    tmp_path: Path, points: Any, kind: str | None, box: list[float]
) -> None:
    found = read(tmp_path, shape(points=points, kind=kind))
    assert found.boxes.tolist() == [box] and found.rows == 1
    assert [f.code for f in found.findings] == ([] if kind == "rectangle" else ["label_polygons"])


@pytest.mark.parametrize("kind", ["point", "points", "line", "linestrip"])
def test_points_and_lines_are_left_out_and_counted(tmp_path: Path, kind: str) -> None:
    found = read(tmp_path, shape(points=[[3, 3], [4, 4]], kind=kind), shape("dog"))
    assert found.boxes.tolist() == [[1, 2, 5, 6]] and opened(tmp_path).names == ("dog",)
    (finding,) = opened(tmp_path).open("train").findings
    assert (finding.code, finding.severity, finding.value) == ("label_not_a_box", "note", "1")


@pytest.mark.parametrize(
    ("wrong", "code", "says"),
    [
        (7, "label_columns", "shapes[1] is 7"),
        (shape(""), "label_class", "label is"),
        (shape(None), "label_class", "label is null"),
        (shape(points=None), "label_columns", "0 points"),
        (shape(points=[[1, 2]], kind="rectangle"), "label_columns", "a rectangle of 1 points, at least 2"),
        (shape(points=[[1, 2], [3, 4]]), "label_columns", "a polygon of 2 points, at least 3"),
        (shape(points=[[1, 2], [3, "x"], [4, 4]]), "label_number", '[3, "x"]'),
        (shape(points=[[1, 2], [3, None], [4, 4]]), "label_number", "[3, null]"),
        (shape(points=[[1, 2], [3, 4, 5], [4, 4]]), "label_number", "[3, 4, 5]"),
        (shape(points=[[1, 2], [3, True], [4, 4]]), "label_number", "[3, true]"),
        (shape(points=[[1, 2], [3, float("nan")], [4, 4]]), "label_number", "NaN"),
        (shape(points=[[200, 2], [300, 4]], kind="rectangle"), "label_outside", "outside the picture"),
        (shape(points=[[3, 3], [3, 9]], kind="rectangle"), "label_no_area", "0 x 6"),
        (shape("dog"), "label_repeated", "the same row"),
        (shape(kind=["x"], points=[]), "label_columns", "0 points"),
    ],
)
def test_a_shape_that_cannot_be_used_is_named_with_its_place(
    tmp_path: Path, wrong: Any, code: str, says: str
) -> None:
    found = read(tmp_path, shape("dog", kind="rectangle", points=[[1, 2], [5, 6]]), wrong)
    assert found.boxes.tolist() == [[1, 2, 5, 6]] and found.rows == 2
    (finding,) = [f for f in found.findings if f.severity != "note"]
    assert finding.code == code and finding.path == tmp_path / "a.json"
    assert says in finding.message and "shapes[1]" in finding.message


def test_groups_are_not_looked_at_and_names_are_trimmed(tmp_path: Path) -> None:
    found = read(tmp_path, shape(" cat ", group_id=3), shape("cat", [[9, 9], [20, 9], [20, 20]], group_id=3))
    assert found.labels.tolist() == [0, 0] and opened(tmp_path).names == ("cat",)


def test_another_size_than_the_picture_has_is_told(tmp_path: Path) -> None:
    found = read(tmp_path, shape(), imageWidth=640, imageHeight=480)
    assert [(f.code, f.value) for f in found.findings if f.severity == "warning"] == [
        ("size_differs", "640 x 480")
    ]
    assert all(f.severity == "note" for f in read(tmp_path, shape(), imageWidth=100, imageHeight=80).findings)


# --------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("told", "picture"),
    [
        ("b.jpg", "b.jpg"),
        ("..\\images\\b.jpg", "../images/b.jpg"),
        ("../images/b.jpg", "../images/b.jpg"),
        ("C:\\x\\b.jpg", "b.jpg"),
    ],
)
def test_the_picture_may_be_told_by_a_path(tmp_path: Path, told: str, picture: str) -> None:
    folder = tmp_path / "json"
    write(folder / "other.json", shape(), imagePath=told)
    expected = touch(folder / picture)
    (found,) = opened(folder).open("train").pictures
    assert found.resolve() == expected.resolve()


def test_the_picture_of_the_own_name_comes_first(tmp_path: Path) -> None:
    for name in ("a.png", "b.jpg"):
        touch(tmp_path / name)
    write(tmp_path / "a.json", shape(), imagePath="b.jpg")
    files = opened(tmp_path).open("train")
    assert {
        p.name: label and label.name for p, label in zip(files.pictures, files.label_paths, strict=True)
    } == {
        "a.png": "a.json",
        "b.jpg": None,
    }
    assert [f.code for f in files.findings] == ["place"]


def test_a_picture_that_is_only_inside_the_file_is_an_error(tmp_path: Path) -> None:
    touch(tmp_path / "a.jpg")
    write(tmp_path / "a.json", shape())
    write(tmp_path / "b.json", shape(), imageData="aGVsbG8=")
    write(tmp_path / "c.json", shape())
    findings = {f.path.name: f for f in opened(tmp_path).open("train").findings}
    inside, gone = findings["b.json"], findings["c.json"]
    assert (inside.code, inside.severity, inside.value) == ("picture_missing", "error", "b.jpg")
    assert "imageData" in inside.message
    assert (gone.code, gone.severity) == ("label_orphan", "warning")
    (tmp_path / "a.jpg").unlink()
    with pytest.raises(DataError, match="no picture was found"):
        opened(tmp_path).open("train")


def test_splits_are_folders_and_other_json_is_not_of_the_set(tmp_path: Path) -> None:
    for place in ("train/a", "val/b"):
        touch(tmp_path / f"{place}.jpg")
        write(tmp_path / f"{place}.json", shape(place[0]))
    (tmp_path / "train" / "settings.json").write_text('{"theme": "dark"}')
    layout = opened(tmp_path)
    assert layout.kind == "LabelMe" and layout.splits == ("train", "val") and layout.names == ("t", "v")
    assert layout.open("train").findings == ()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "line 1"),
        (b"\xff\xfe\x00", "no UTF-8"),
        (b"[" * 100_000, "nest too deep"),
        (b'{"shapes": 3, "imagePath": "bad.jpg"}', "shapes is 3"),
        (b'{"shapes": [], "shapes": []}', "'shapes' twice"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_of_its_picture(
    tmp_path: Path, content: bytes, says: str
) -> None:
    touch(tmp_path / "bad.jpg")
    (tmp_path / "bad.json").write_bytes(content)
    assert read(tmp_path, shape()).rows == 1
    (finding,) = opened(tmp_path).open("train").read(1, (100, 80)).findings
    assert (finding.code, finding.severity, finding.path) == ("label_file", "error", tmp_path / "bad.json")
    assert says in finding.message and not finding.message.startswith(str(tmp_path))


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["rectangle", "circle"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["label", "points", "shape_type"]), inner)
    ),
    max_leaves=12,
)


@given(
    shapes=st.lists(JSON, max_size=5),
    more=st.dictionaries(st.sampled_from(["imagePath", "imageWidth", "imageHeight"]), JSON),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_shape_is_a_box_left_out_with_a_note_or_named(
    tmp_path: Path, shapes: list[Any], more: dict[str, Any]
) -> None:
    touch(tmp_path / "a.jpg")
    write(tmp_path / "a.json", shape("sure"), *shapes, **more)
    files = opened(tmp_path).open("train")
    found = files.read(0, (100, 80))
    told = [f for f in found.findings if f.severity != "note" and f.code != "size_differs"]
    left_out = sum(int(f.value) for f in files.findings if f.code == "label_not_a_box")
    assert len(shapes) + 1 == len(found.boxes) + len(told) + left_out


@given(content=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_findings_and_no_crash(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    found = read_labelme_json(path)
    assert found is None or all(not isinstance(o, str) for o in found.objects)


# ----------------------------------------------------------------------------------- XML of the web tool


def web(*objects: str, more: str = "") -> str:
    return f"<annotation><filename>a.jpg</filename>{more}{''.join(objects)}\n</annotation>"


def drawn(name: str = "car", points: str = "1,2 5,2 3,6", more: str = "<deleted>0</deleted>") -> str:
    pts = "".join(f"<pt><x>{p.split(',')[0]}</x><y>{p.split(',')[1]}</y></pt>" for p in points.split())
    return f"\n<object><name>{name}</name>{more}<polygon><username>me</username>{pts}</polygon></object>"


SEGMENT = (
    "\n<object><name>sky</name><deleted>0</deleted><segm><box><xmin>58</xmin><ymin>66</ymin><xmax>62</xmax>"
    "<ymax>68</ymax></box><scribbles><xmin>0</xmin></scribbles></segm></object>"
)


def read_web(folder: Path, *objects: str, more: str = "") -> LabelFile:
    touch(folder / "Images" / "s" / "a.jpg")
    path = folder / "Annotations" / "s" / "a.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(web(*objects, more=more), encoding="utf-8")
    return opened(folder).open("train").read(0, (100, 80))


def test_polygons_and_segments_of_the_web_tool_are_boxes(tmp_path: Path) -> None:
    found = read_web(
        tmp_path, drawn(), SEGMENT, drawn("bus", "9,9 20,9 20,30 9,30", "<type>bounding_box</type>")
    )
    layout = opened(tmp_path)
    assert layout.kind == "LabelMe XML" and layout.names == ("bus", "car", "sky")
    assert found.boxes.tolist() == [[1, 2, 5, 6], [58, 66, 62, 68], [9, 9, 20, 30]]
    assert (
        found.labels.tolist() == [1, 2, 0] and found.lines is not None and found.lines.tolist() == [2, 3, 4]
    )


def test_deleted_objects_are_left_out_with_a_note(tmp_path: Path) -> None:
    found = read_web(tmp_path, drawn(), drawn("bus", more="<deleted>1</deleted>"))
    assert len(found.boxes) == 1 and opened(tmp_path).names == ("car",)
    (finding,) = opened(tmp_path).open("train").findings
    assert (finding.code, finding.severity, finding.value) == ("label_deleted", "note", "1")


@pytest.mark.parametrize(
    ("wrong", "code", "says"),
    [
        (drawn("", "1,2 5,2 3,6"), "label_class", "no <name>"),
        (drawn(points="1,2 5,2"), "label_columns", "has 2 points"),
        (drawn(points="1,2 x,2 3,4"), "label_number", "'x 2'"),
        ("\n<object><name>car</name></object>", "label_columns", "0 points"),
        (SEGMENT.replace("58", "99"), "label_no_area", "xmin 99"),
    ],
)
def test_objects_of_the_web_tool_that_cannot_be_used_are_named(
    tmp_path: Path, wrong: str, code: str, says: str
) -> None:
    found = read_web(tmp_path, drawn(), wrong)
    (finding,) = [f for f in found.findings if f.severity != "note"]
    assert (finding.code, finding.line) == (code, 3) and says in finding.message and len(found.boxes) == 1


def test_the_size_in_the_web_tool_is_compared(tmp_path: Path) -> None:
    size = "<imagesize><nrows>{}</nrows><ncols>100</ncols></imagesize>"
    assert "size_differs" in {f.code for f in read_web(tmp_path, drawn(), more=size.format(81)).findings}
    assert "size_differs" not in {f.code for f in read_web(tmp_path, drawn(), more=size.format(80)).findings}


# ----------------------------------------------------------------------------------------- the whole


def test_a_data_set_opens_and_its_errors_refuse(
    tmp_path: Path, make_picture: MakePicture, private_cache: Path
) -> None:
    make_picture("set/a.jpg", size=(100, 80))
    write(tmp_path / "set" / "a.json", shape(), shape(""))
    data = open_dataset(tmp_path / "set")
    assert [sample.boxes.tolist() for sample in data.samples] == [[[1, 2, 5, 6]]]
    with pytest.raises(DataError, match=r"a\.json: shapes\[1\]: label is"):
        refuse(data)


def test_the_picture_may_stand_before_everything_else(tmp_path: Path) -> None:
    touch(tmp_path / "a.jpg")
    content = {"imageData": "A" * 100_000, "imagePath": "a.jpg", "shapes": [shape()]}
    (tmp_path / "a.json").write_text(json.dumps(content))
    assert len(opened(tmp_path).open("train").read(0, (100, 80)).boxes) == 1


def test_the_file_of_one_picture_is_no_data_set(tmp_path: Path) -> None:
    write(tmp_path / "a.json", shape())
    with pytest.raises(DataError, match="tells of one picture: give the folder"):
        open_labelme(tmp_path / "a.json")
