"""Pascal VOC: what an XML file and each of its objects become."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.formats.voc_files import box, opened, read, touch, write, xml
from yolov9kit.data.dataset import open_dataset, refuse
from yolov9kit.data.formats.voc import open_voc, read_voc
from yolov9kit.errors import DataError

MakePicture = Callable[..., Path]


# ------------------------------------------------------------------------------------------- objects


def test_corners_are_taken_as_they_are_in_any_order_and_with_fractions(tmp_path: Path) -> None:
    mixed = (
        "<object><bndbox><ymax>40</ymax><xmin> 12.7 </xmin><xmax>30.25</xmax><ymin>1e1</ymin></bndbox>"
        "<name> dog </name></object>"
    )
    found = read(tmp_path, mixed, box("cat", "0 0 100 80"))
    assert found.boxes.tolist() == [[pytest.approx(12.7), 10, 30.25, 40], [0, 0, 100, 80]]
    assert opened(tmp_path).names == ("cat", "dog")
    assert found.labels.tolist() == [1, 0] and found.findings == () and found.rows == 2


def test_each_object_stands_in_the_line_of_its_tag(tmp_path: Path) -> None:
    found = read(tmp_path, box(), box("dog", "3 3 9 9"))
    assert found.lines is not None and found.lines.tolist() == [2, 4]


def test_parts_and_what_else_has_a_box_are_no_objects(tmp_path: Path) -> None:
    part = "<part><name>head</name><bndbox><xmin>2</xmin><ymin>2</ymin><xmax>3</xmax><ymax>3</ymax></bndbox></part>"
    found = read(tmp_path, box("person", "1 2 50 60", extra=part))
    assert found.boxes.tolist() == [[1, 2, 50, 60]] and opened(tmp_path).names == ("person",)


@pytest.mark.parametrize(
    ("object_", "code", "severity", "says"),
    [
        (box("  "), "label_class", "error", "no <name>"),
        ("<object><bndbox/></object>", "label_class", "error", "no <name>"),
        ("<object><name>cat</name></object>", "label_columns", "error", "'cat' has no <bndbox>"),
        (box().replace("<ymax>6</ymax>", ""), "label_columns", "error", "<bndbox> has no <ymax>"),
        (box(corners="1 x 5 6"), "label_number", "error", "<ymin> is 'x'"),
        (box(corners="1 nan 5 6"), "label_number", "error", "'nan'"),
        (box(corners="1 2 5 1_0"), "label_number", "error", "'1_0'"),
        (box(corners="9 2 5 6"), "label_no_area", "warning", "xmin 9 is greater than xmax 5"),
        (box(corners="1 7 5 6"), "label_no_area", "warning", "ymin 7 is greater than ymax 6"),
        (box(corners="1 2 1 6"), "label_no_area", "warning", "0 x 4 pixels"),
        (box(corners="200 2 300 6"), "label_outside", "error", "outside the picture of 100 x 80"),
        (box("dog", "3 3 9 9"), "label_repeated", "warning", "line 2"),
    ],
)
def test_an_object_that_cannot_be_used_is_named_with_its_line(
    tmp_path: Path, object_: str, code: str, severity: str, says: str
) -> None:
    found = read(tmp_path, box("dog", "3 3 9 9"), object_)
    assert found.boxes.tolist() == [[3, 3, 9, 9]] and found.rows == 2
    (finding,) = found.findings
    assert (finding.code, finding.severity) == (code, severity)
    assert finding.path == tmp_path / "a.xml" and finding.line in (4, 5)
    assert says in finding.message


def test_a_box_that_reaches_out_is_clipped_and_told(tmp_path: Path) -> None:
    found = read(tmp_path, box(corners="50 60 120 80"))
    assert found.boxes.tolist() == [[50, 60, 100, 80]]
    assert [f.code for f in found.findings] == ["label_clipped"]


@pytest.mark.parametrize(
    ("size", "told"), [("640 480", "640 x 480"), ("0 0", "0 x 0"), ("80 100", "turned by its orientation")]
)
def test_a_size_that_is_not_that_of_the_picture_is_told_once(tmp_path: Path, size: str, told: str) -> None:
    width, height = size.split()
    tag = f"\n<size><width>{width}</width><height>{height}</height></size>"
    found = read(tmp_path, box(), box("dog"), size=tag)
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.line) == ("size_differs", "warning", 2)
    assert told in finding.message and len(found.boxes) == 2


@pytest.mark.parametrize(
    "size", ["<width>100</width><height>80</height>", "<depth>3</depth>", "<width>?</width>"]
)
def test_the_size_of_the_picture_or_none_is_not_worth_a_word(tmp_path: Path, size: str) -> None:
    assert read(tmp_path, box(), size=f"<size>{size}</size>").findings == ()


def test_difficult_and_truncated_objects_are_kept_and_counted_once(tmp_path: Path) -> None:
    marked = box(extra="<difficult>1</difficult><truncated>1</truncated>")
    touch(tmp_path, "a.jpg b.jpg")
    write(tmp_path, a=xml(marked, box("dog")), b=xml(marked, box("dog", extra="<difficult>0</difficult>")))
    files = opened(tmp_path).open("train")
    assert [len(files.read(i, (100, 80)).boxes) for i in (0, 1)] == [2, 2]
    (finding,) = files.findings
    assert finding.code == "label_difficult" and finding.severity == "note" and finding.value == "2"


def test_tilted_boxes_are_told_by_the_split_and_become_upright_ones_by_choice(
    tmp_path: Path, make_picture: MakePicture, private_cache: Path
) -> None:
    make_picture("set/a.png", size=(100, 80))
    tilted = (
        "<object><name>ship</name><robndbox><cx>50</cx><cy>40</cy><w>20</w><h>10</h><angle>1.5707963</angle>"
        "</robndbox></object>"
    )
    write(tmp_path / "set", a=xml(tilted))
    data = open_dataset(tmp_path / "set")
    (error,) = data.errors
    assert error.code == "label_oriented" and error.line == 2 and "--as-boxes" in error.message
    taken = open_dataset(tmp_path / "set", as_boxes=True)
    assert taken.errors == () and taken.samples[0].boxes[0].tolist() == pytest.approx(
        [45, 30, 55, 50], abs=1e-4
    )


# --------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no element found"),
        (b"<annotation>\n<object>", "not XML"),
        (b"<annotation>\n<object></annotation>", "mismatched tag"),
        (b"<annotations/>", "<annotations> instead of <annotation>"),
        (b'<!DOCTYPE a [<!ENTITY x "y">]>\n<annotation>&x;</annotation>', "declares the entity 'x'"),
        (
            b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/hostname">]><annotation>&x;</annotation>',
            "entity 'x'",
        ),
        (b'<!DOCTYPE a SYSTEM "a.dtd"><annotation>&x;</annotation>', "entity 'x' is not known"),
        ("<annotation>ä</annotation>".encode("latin-1"), "not XML"),
        (b'<?xml version="1.0" encoding="klingon"?><annotation/>', "klingon"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error_of_its_picture(
    tmp_path: Path, content: bytes, says: str
) -> None:
    touch(tmp_path, "a.jpg bad.jpg")
    write(tmp_path, a=xml(box()))
    (tmp_path / "bad.xml").write_bytes(content)
    files = opened(tmp_path).open("train")
    assert [path.name for path in files.pictures] == ["a.jpg", "bad.jpg"]
    (finding,) = files.read(1, (100, 80)).findings
    assert (finding.code, finding.severity, finding.path) == ("label_file", "error", tmp_path / "bad.xml")
    assert says in finding.message


def test_a_hundred_entities_are_not_expanded(tmp_path: Path) -> None:
    lines = '<!ENTITY a0 "ha">' + "".join(f'<!ENTITY a{i} "&a{i - 1};&a{i - 1};">' for i in range(1, 100))
    path = tmp_path / "a.xml"
    path.write_text(f"<!DOCTYPE a [{lines}]><annotation><filename>&a99;</filename></annotation>")
    (finding,) = read_voc(path).objects
    assert not isinstance(finding, tuple) and "'a0'" in finding.message


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gbk", "gb18030"])
def test_d22_every_declared_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    text = f'<?xml version="1.0" encoding="{declared}"?>\r\n{xml(box("猫"))}'
    touch(tmp_path, "图.jpg")
    (tmp_path / "图.xml").write_bytes(text.encode(encoding))
    layout = opened(tmp_path)
    assert layout.names == ("猫",)
    assert layout.open("train").read(0, (100, 80)).boxes.tolist() == [[1, 2, 5, 6]]


@given(
    content=st.one_of(
        st.binary(max_size=300), st.text(alphabet="<>/abnxmio=\"'& \n019.!-?[]", max_size=300).map(str.encode)
    )
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_findings_and_no_crash(tmp_path: Path, content: bytes) -> None:
    touch(tmp_path, "bad.jpg")
    write(tmp_path, a=xml(box()))
    (tmp_path / "bad.xml").write_bytes(content)
    files = opened(tmp_path).open("train")
    found = files.read(files.pictures.index(tmp_path / "bad.jpg"), (100, 80))
    assert len(found.boxes) + sum(f.severity != "note" for f in found.findings) >= found.rows


FIELD = st.sampled_from(["1", "5", "-3", "99.5", "250", "nan", "x", "", "1e400", "<b/>", "&amp;"])


def written(name: str, values: list[str], tags: list[str]) -> str:
    corners = "".join(f"<{tag}>{value}</{tag}>" for tag, value in zip(tags, values, strict=True))
    return f"<object>{name}<bndbox>{corners}</bndbox></object>"


OBJECT = st.builds(
    written,
    st.sampled_from(["<name>cat</name>", "<name>dog</name>", "", "<name/>", "<name>a<b/>c</name>"]),
    st.lists(FIELD, min_size=4, max_size=4),
    st.permutations(["xmin", "ymin", "xmax", "ymax"]),
)


@given(objects=st.lists(OBJECT, max_size=6))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_each_object_is_a_box_or_named(tmp_path: Path, objects: list[str]) -> None:
    found = read(tmp_path, *objects)
    told = [f for f in found.findings if f.severity != "note"]
    assert found.rows == len(objects) == len(found.boxes) + len(told)
    assert all(f.line is not None for f in told)
    assert (found.boxes[:, :2] < found.boxes[:, 2:]).all() and (found.boxes >= 0).all()


# ----------------------------------------------------------------------------------------- the whole


@pytest.mark.parametrize(
    "content", ["<doc><object/></doc>", "<annotations><image/></annotations>", "nothing", ""]
)
def test_other_files_are_of_no_such_format(tmp_path: Path, content: str) -> None:
    touch(tmp_path, "a.jpg")
    write(tmp_path, a=content)
    assert open_voc(tmp_path) is None and open_voc(tmp_path / "a.xml") is None


def test_the_file_of_one_picture_is_no_data_set(tmp_path: Path) -> None:
    write(tmp_path, a=xml(box()))
    with pytest.raises(DataError, match="tells of one picture: give the folder"):
        open_voc(tmp_path / "a.xml")


def test_a_data_set_opens_and_its_errors_refuse(
    tmp_path: Path, make_picture: MakePicture, private_cache: Path
) -> None:
    make_picture("set/a.png", size=(100, 80))
    make_picture("set/b.jpg", size=(100, 80))
    write(tmp_path / "set", a=xml(box(), box("dog", "3 3 9 x")))
    data = open_dataset(tmp_path / "set")
    assert data.names == ("cat",) and data.missing_labels == 1
    assert [sample.boxes.tolist() for sample in data.samples] == [[[1, 2, 5, 6]], []]
    with pytest.raises(DataError, match=re.escape(f"{tmp_path / 'set' / 'a.xml'}:5: <ymax> is 'x'")):
        refuse(data)
