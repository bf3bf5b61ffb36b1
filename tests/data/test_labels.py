"""What a label row means, and what is said about one that means nothing."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yolov9kit.data import labels as module
from yolov9kit.data.labels import LabelFile, point_columns_of, read_labels

WH = (640, 480)
D01 = "0 0.5 0.5 0.2 0.1"
D02 = "1 0.1 0.2 0.5 0.2 0.5 0.6 0.1 0.6"

Read = Callable[..., LabelFile]
Row = tuple[int, list[float], list[float]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read(text: str | bytes, size_wh: tuple[int, int] = WH, num_classes: int = 3) -> LabelFile:
        path = tmp_path / "a.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_labels(path, size_wh, num_classes)

    return read


def codes(found: LabelFile) -> list[str]:
    return [finding.code for finding in found.findings]


# ---------------------------------------------------------------------------------------------- properties

shares = st.floats(0.0, 1.0)
edges = st.tuples(shares, shares).map(sorted).filter(lambda pair: pair[1] - pair[0] > 1e-3)


def written(row: Row) -> str:
    label, (left, right), (top, bottom) = row
    return f"{label} {(left + right) / 2!r} {(top + bottom) / 2!r} {right - left!r} {bottom - top!r}"


rows = st.lists(st.tuples(st.integers(0, 9), edges, edges), max_size=12, unique_by=written)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=rows, size_wh=st.tuples(st.integers(1, 5000), st.integers(1, 5000)))
def test_what_was_written_is_read(tmp_path: Path, rows: list[Row], size_wh: tuple[int, int]) -> None:
    width, height = size_wh
    rows = [row for row in rows if (row[1][1] - row[1][0]) * width > 0.01 < (row[2][1] - row[2][0]) * height]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(map(written, rows)), encoding="utf-8")
    found = read_labels(path, size_wh, 10)
    expected = [(left * width, top * height, right * width, bottom * height)
                for _, (left, right), (top, bottom) in rows]  # fmt: skip
    np.testing.assert_allclose(
        found.boxes, np.reshape(expected, (-1, 4)), rtol=1e-6, atol=1e-6 * max(size_wh)
    )
    assert found.labels.tolist() == [label for label, *_ in rows]
    assert found.findings == ()
    assert found.rows == len(rows)


words = "0 1 2 2.0 0.5 .1 0.25 0.75 1 -0.1 1.07 320 nan 9 0,5 a # é"
columns = st.sampled_from(words.split(" "))
texts = st.one_of(
    st.binary(max_size=200),
    st.text(st.sampled_from("0123456789.-e+ \t\r\n#,ainf_é"), max_size=200).map(str.encode),
    st.lists(st.lists(columns, max_size=14).map(" ".join), max_size=8).map("\r\n".join).map(str.encode),
)


@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=texts, point_columns=st.sampled_from([0, 0, 3, 6]))
def test_any_bytes_give_boxes_inside_the_picture_or_a_finding(
    tmp_path: Path, text: bytes, point_columns: int
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    found = read_labels(path, WH, 3, point_columns=point_columns)
    assert found.boxes.shape == (len(found.labels), 4) and found.boxes.dtype == np.float32
    assert found.labels.dtype == np.int64 and ((found.labels >= 0) & (found.labels < 3)).all()
    assert (found.boxes >= 0).all() and (found.boxes <= np.array([*WH, *WH])).all()
    assert (found.boxes[:, 2:] > found.boxes[:, :2]).all()
    left_out = [finding for finding in found.findings if finding.severity != "note"]
    assert len(left_out) == found.rows - len(found.labels)
    if "label_file" in codes(found):
        return
    assert found.lines is not None and len(found.lines) == len(found.labels)
    lines = text.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rows = [number for number, line in enumerate(lines, 1) if line.partition("#")[0].split()]
    assert sorted([*found.lines.tolist(), *(finding.line or 0 for finding in left_out)]) == rows


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=rows)
def test_the_fast_way_equals_the_careful_one(tmp_path: Path, rows: list[Row]) -> None:
    path = tmp_path / "a.txt"
    text = "\n".join(map(written, rows))
    path.write_text(text, encoding="utf-8")
    quick = read_labels(path, WH, 10)
    path.write_text(f"{text} # a comment", encoding="utf-8")
    careful = read_labels(path, WH, 10)
    np.testing.assert_array_equal(quick.boxes, careful.boxes)
    np.testing.assert_array_equal(quick.labels, careful.labels)
    np.testing.assert_array_equal(quick.lines, careful.lines)
    assert quick.findings == careful.findings and quick.rows == careful.rows


def test_a_faultless_file_takes_the_fast_way(read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(module, "_row_by_row")
    assert len(read(f"{D01}\r\n2\t.3 .3 1e-1 .1\n\n").labels) == 2


def test_the_arrays_cannot_be_changed(read: Read) -> None:
    found = read(D01)
    for array in (found.boxes, found.labels, found.lines):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_box_knows_its_line(read: Read, end: str) -> None:
    rows = ["", D01, "", "", "2 .3 .3 .1 .1", "1 .3 .3 .1 .2", ""]
    for extra in ([], ["7 .1 .1 .1 .1", D02]):
        found = read(end.join([*rows, *extra]))
        expected = [2, 5, 6, *([9] if extra else [])]
        assert found.lines is not None and found.lines.tolist() == expected
    assert read(D01).lines.tolist() == [1]


# ------------------------------------------------------------------------------------------------- cases


def test_d01_a_row_is_exact(read: Read) -> None:
    assert read(D01).boxes.tolist() == [[256, 216, 384, 264]]


def test_d02_a_polygon_becomes_its_box(read: Read) -> None:
    found = read(D02)
    expected = np.array([[0.1 * 640, 0.2 * 480, 0.5 * 640, 0.6 * 480]], np.float32)
    np.testing.assert_array_equal(found.boxes, expected)
    assert found.labels.tolist() == [1]
    assert [str(finding.message) for finding in found.findings] == ["1 polygon row read as box"]


@pytest.mark.parametrize("order", [0, 1])
def test_d03_a_mixed_file_keeps_both(read: Read, order: int) -> None:
    lines = [D01, D02][:: 1 - 2 * order]
    found = read("\n".join(lines))
    boxes = [read(line).boxes[0] for line in lines]
    np.testing.assert_array_equal(found.boxes, boxes)
    assert found.labels.tolist() == [order, 1 - order]
    assert codes(found) == ["label_polygons", "label_mixed"]
    assert found.findings[1].path.name == "a.txt" and "mixed file" in found.findings[1].message


def test_d04_a_class_without_a_name_is_named(read: Read) -> None:
    found = read(f"{D01}\n1 0.5 0.5 0.1 0.1\n", num_classes=1)
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.line, finding.value) == (
        "label_class_range",
        "error",
        2,
        "1",
    )
    assert "a.txt:2: class 1, allowed 0-0" in str(finding)
    assert found.labels.tolist() == [0]


@pytest.mark.parametrize(("text", "label"), [("0.0", 0), ("1e0", 1), ("2.000", 2), ("+1", 1), ("-0", 0)])
def test_d06_a_whole_number_may_be_written_otherwise(read: Read, text: str, label: int) -> None:
    found = read(f"{text} 0.5 0.5 0.2 0.1")
    assert found.labels.tolist() == [label] and found.findings == ()


@pytest.mark.parametrize("text", ["0.5", "1.9999", "1e-3"])
def test_d06_a_part_of_a_class_is_an_error(read: Read, text: str) -> None:
    found = read(f"{text} 0.5 0.5 0.2 0.1\n{D01}")
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.line, finding.value) == ("label_class", "error", 1, text)
    assert len(found.labels) == 1


def test_d07_a_rounding_is_clipped_without_a_word(read: Read) -> None:
    found = read("0 0.5 0.5 1.0000001 1.0\n1 0.9995 0.5 0.002 0.1\n2 0.0999999 0.5 0.2 0.2")
    assert found.findings == ()
    assert found.boxes[0].tolist() == [0, 0, 640, 480]
    assert found.boxes[:, 2].max() == 640 and found.boxes[2, 0] == 0


@pytest.mark.parametrize("column", [1, 2, 3, 4])
@pytest.mark.parametrize("value", ["1.07", "-0.2"])
def test_d07_a_value_outside_is_an_error_and_the_other_rows_survive(
    read: Read, column: int, value: str
) -> None:
    bad = D01.split()
    bad[column] = value
    found = read(f"{D01}\n{' '.join(bad)}\n1 0.5 0.5 0.1 0.1")
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.line, finding.value) == (
        "label_outside",
        "error",
        2,
        value,
    )
    assert value in finding.message and "pixels" not in finding.message
    assert found.labels.tolist() == [0, 1]


def test_d07_a_file_in_pixels_is_recognised(read: Read) -> None:
    found = read("0 320 240 128 48\n1 1 2 30 40")
    assert codes(found) == ["label_pixels"] * 2 and len(found.labels) == 0
    assert [(finding.severity, finding.line, finding.value) for finding in found.findings] == [
        ("error", 1, "320"),
        ("error", 2, "2"),
    ]
    assert (
        "320 looks like pixels: divide x by the width 640 and y by the height 480"
        in found.findings[0].message
    )
    assert all("looks like pixels" in finding.message for finding in found.findings)


@pytest.mark.parametrize("size", ["0 0.1", "0.1 0", "0 0", "0.1 1e-9", "-0.0005 0.1"])
def test_d09_a_row_without_area_is_named_and_left_out(read: Read, size: str) -> None:
    found = read(f"{D01}\n1 0.5 0.5 {size}")
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.line) == ("label_no_area", "warning", 2)
    assert finding.path.name == "a.txt" and finding.value in finding.message and " x " in finding.value
    assert found.labels.tolist() == [0] and found.rows == 2


def test_d09_a_polygon_on_a_line_has_no_area(read: Read) -> None:
    found = read("0 0.1 0.1 0.5 0.1 0.9 0.1")
    assert "label_no_area" in codes(found) and len(found.labels) == 0


def test_a_box_that_clipping_empties_is_left_out(read: Read) -> None:
    found = read("0 1.0 0.5 -0.0 0.5\n0 1.0005 0.5 0.0009 0.5")
    assert codes(found) == ["label_no_area"] * 2 and len(found.labels) == 0


def test_a_box_that_reaches_out_is_clipped_with_a_note(read: Read) -> None:
    found = read("0 0.9 0.5 0.6 0.1")
    np.testing.assert_allclose(found.boxes, [[384, 216, 640, 264]], rtol=1e-6)
    (finding,) = found.findings
    assert (finding.severity, finding.line) == ("note", 1) and "20.0%" in finding.message


@pytest.mark.parametrize("again", [D01, "0.0 0.50 5e-1 0.2 .1", f"  {D01}\t"])
def test_d12_a_repeated_row_counts_once(read: Read, again: str) -> None:
    found = read(f"{D01}\n{D02}\n{again}\n")
    repeated = [finding for finding in found.findings if finding.code == "label_repeated"]
    assert [(finding.severity, finding.line) for finding in repeated] == [("warning", 3)]
    assert "line 1" in repeated[0].message and repeated[0].value == " ".join(again.split())
    assert repeated[0].path.name == "a.txt"
    assert found.labels.tolist() == [0, 1]


def test_the_same_box_of_two_classes_is_no_repetition(read: Read) -> None:
    assert read(f"{D01}\n1{D01[1:]}").labels.tolist() == [0, 1]


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + D01.encode(),
        f"{D01}\r\n\r\n\r\n".encode(),
        f"{D01}\r".encode(),
        f"# boards \N{HAMMER AND WRENCH}\n{D01} # left\n".encode(),
        D01.replace(" ", "\t").encode(),
    ],
)
def test_d22_other_ways_to_write_text_change_nothing(read: Read, text: bytes) -> None:
    found, plain = read(text), read(D01)
    np.testing.assert_array_equal(found.boxes, plain.boxes)
    np.testing.assert_array_equal(found.labels, plain.labels)
    assert found.findings == () and found.rows == 1


@pytest.mark.parametrize("text", ["", "\n\r\n", "\ufeff", "# nothing here"])
def test_d13_an_empty_file_has_no_rows_and_no_fault(read: Read, text: str) -> None:
    found = read(text)
    assert found.rows == 0 and found.findings == () and found.boxes.shape == (0, 4)


@pytest.mark.parametrize(
    ("row", "code", "hint"),
    [
        ("0", "label_columns", "1 column: "),
        ("0 0.5 0.5 0.2", "label_columns", "4 columns"),
        ("0 0.5 0.5 0.2 0.1 0.93", "label_columns", "6 columns: a detection result with a score?"),
        ("0 0.1 0.1 0.2 0.1 0.2 0.2 0.5", "label_columns", "8 columns"),
        ("0,0.5,0.5,0.2,0.1", "label_columns", "not commas"),
        ("0 0,5 0.5 0.2 0.1", "label_number", "decimal point"),
        ("0 nan 0.5 0.2 0.1", "label_number", "'nan'"),
        ("0 0.5 0.5 inf 0.1", "label_number", "'inf'"),
        ("0 0.5 0.5 1e999 0.1", "label_number", "'1e999'"),
        ("0 0.5 0.5 0_1 0.1", "label_number", "'0_1'"),
        ("0 0.\N{ARABIC-INDIC DIGIT FIVE} 0.5 0.2 0.1", "label_number", "finite number"),
        ("board 0.5 0.5 0.2 0.1", "label_number", "'board'"),
        ("-1 0.5 0.5 0.2 0.1", "label_class_range", "class -1, allowed 0-2"),
        ("3 0.5 0.5 0.2 0.1", "label_class_range", "class 3, allowed 0-2"),
        ("1e300 0.5 0.5 0.2 0.1", "label_class_range", "class 1e+300"),
        ("0 0.1 0.1 0.5 0.1 0.5 -0.3", "label_outside", "-0.3 lies outside"),
    ],
)
def test_a_row_that_means_nothing_is_an_error_by_line(read: Read, row: str, code: str, hint: str) -> None:
    found = read(f"\n{D01}\n{row}\n2 0.5 0.5 0.1 0.1\n")
    (finding,) = found.findings
    assert (finding.code, finding.severity, finding.line) == (code, "error", 3)
    assert hint in finding.message
    assert found.labels.tolist() == [0, 2] and found.rows == 3


def test_a_long_row_is_shown_in_short(read: Read) -> None:
    (finding,) = read("x" * 10_000).findings
    assert len(finding.message) < 200 and "..." in finding.value


def test_a_file_of_another_encoding_is_an_error(read: Read) -> None:
    (finding,) = read(D01.encode("utf-16")).findings
    assert (finding.code, finding.severity) == ("label_file", "error") and "UTF-8" in finding.message


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    found = read_labels(tmp_path, WH, 3)
    assert [finding.severity for finding in found.findings] == ["error"] and found.boxes.shape == (0, 4)
    assert "directory" in found.findings[0].message


# ------------------------------------------------------------------------- oriented boxes and key points


def tilted(degrees: float, centre: tuple[float, float] = (320, 240), label: int = 0) -> str:
    """A box of 100 x 40 pixels, turned in the picture of 640 x 480."""
    turn = np.exp(1j * np.radians(degrees))
    corners = complex(*centre) + turn * np.array([-50 - 20j, 50 - 20j, 50 + 20j, -50 + 20j])
    shares = [(corner.real / 640, corner.imag / 480) for corner in corners]
    return " ".join([str(label), *(f"{number:.6f}" for point in shares for number in point)])


@pytest.mark.parametrize("degrees", [3, 30, 45, 84, -60, 200])
def test_a_tilted_rectangle_is_noted_by_its_line_and_read_as_the_box_around_it(
    read: Read, degrees: float
) -> None:
    found = read(f"\n{tilted(degrees)}")
    assert (found.oriented, found.other_polygons, found.points) == ((2,), 0, ())
    width = 100 * abs(np.cos(np.radians(degrees))) + 40 * abs(np.sin(np.radians(degrees)))
    np.testing.assert_allclose(found.boxes[0, [0, 2]], [320 - width / 2, 320 + width / 2], atol=0.01)
    assert codes(found) == ["label_polygons"]


@pytest.mark.parametrize("row", [D02, tilted(0), tilted(90), tilted(180)])
def test_d02_an_upright_rectangle_of_four_points_is_neither(read: Read, row: str) -> None:
    found = read(row)
    assert (found.oriented, found.other_polygons) == ((), 0) and codes(found) == ["label_polygons"]


@pytest.mark.parametrize(
    "row", ["0 .1 .1 .5 .2 .4 .6 .1 .5", "0 .1 .1 .5 .2 .4 .6", "0 .1 .1 .5 .2 .4 .6 .2 .7 .1 .5"]
)
def test_other_polygons_are_counted(read: Read, row: str) -> None:
    found = read(f"{row}\n{tilted(30)}")
    assert (found.oriented, found.other_polygons) == ((2,), 1)


def test_the_corners_of_a_tilted_box_may_reach_out_of_the_picture(read: Read) -> None:
    found = read(f"{tilted(30, centre=(30, 20))}\n0 -.1 .1 .5 .2 .4 .6 .1 .5")
    assert found.oriented == (1,) and found.lines.tolist() == [1]
    assert found.boxes[0, :2].tolist() == [0, 0]
    assert [(finding.code, finding.line) for finding in found.findings] == [
        ("label_clipped", 1),
        ("label_outside", 2),
        ("label_polygons", None),
    ]
    assert codes(read(tilted(30, centre=(-10, 20)))) == ["label_outside"]


@pytest.mark.parametrize(
    "points", [".1 .2 2", ".1 .2 0", ".1 .2 1 .3 .4 2 .5 .5 0", "0 0 0 .1 .2 2.0", ".1 .1 1 .2 .2 1 .3 .3 1"]
)
def test_key_points_behind_a_box_are_left_off_and_noted_by_line(read: Read, points: str) -> None:
    found = read(f"2 .2 .2 .1 .1\n{D01} {points}")
    assert found.points == (2,) and found.findings == ()
    assert found.boxes[1].tolist() == read(D01).boxes[0].tolist() and found.labels.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("points", "code"),
    [
        (".1 .2 3", "label_columns"),
        (".1 1.2 2", "label_columns"),
        (".1 .2 .5", "label_columns"),
        (".1 .2 1 .3 .4 1", "label_polygons"),  # a polygon with corners at the edge
        (".1 .2 2 .3 .4 .5", "label_outside"),
    ],
)
def test_other_rows_are_no_key_points(read: Read, points: str, code: str) -> None:
    found = read(f"{D01} {points}")
    assert found.points == () and codes(found) == [code]


def test_known_key_points_are_checked_for_their_number(read: Read, tmp_path: Path) -> None:
    text = f"{D01} .1 .2 1 .3 9 nan\n{D01} .1 .2 1\n1 .2 .2 .1 .1\n"
    (tmp_path / "a.txt").write_text(text)
    found = read_labels(tmp_path / "a.txt", WH, 3, point_columns=6)
    assert found.points == (1,) and found.lines.tolist() == [1, 3]
    (finding,) = found.findings
    assert (finding.code, finding.line) == ("label_columns", 2)
    assert "8 columns: expected 5, or 11 with the key points" in finding.message


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ([f"{D01} .1 .2 1 .3 .4 1", f"{D01} .1 .2 2 .3 .4 1"], 6),
        ([f"{D01} .1 .2 1 .3 .4 1", D01], 0),
        ([f"{D01} .1 .2 2 .3 .4 1", f"{D01} .1 .2 1"], 0),
        ([f"{D01} .1 .2 2 .3 .4 1", D02], 0),
        ([f"# points\n{D01} .1 .2 1", D01, ""], 3),
        ([D01, "\xff"], 0),
        ([], 0),
    ],
)
def test_the_files_of_a_split_tell_the_number_of_key_points(
    tmp_path: Path, files: list[str], count: int
) -> None:
    paths = [tmp_path / f"{i}.txt" for i in range(len(files))]
    for path, text in zip(paths, files, strict=True):
        path.write_bytes(text.encode("latin-1"))
    assert point_columns_of([*paths, tmp_path / "away.txt"]) == count
