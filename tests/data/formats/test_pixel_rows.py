"""Rows of boxes in pixels: which become boxes, and what is said about the others."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.pixel_rows import PixelRow, boxes_of_rows, with_size
from yolov9kit.data.labels import LabelFile

FILE = Path("boxes.csv")
WH = (640, 480)


def read(*boxes: tuple[float, float, float, float]) -> LabelFile:
    rows = [PixelRow(i % 3, box, 10 + i, f"row {i}") for i, box in enumerate(boxes)]
    return boxes_of_rows(FILE, rows, WH)


def codes(found: LabelFile) -> list[str]:
    return [finding.code for finding in found.findings]


numbers = st.floats(width=64) | st.integers(-700, 700).map(float) | st.sampled_from([1e308, -1e308, 5e-324])
pixel_rows = st.builds(
    PixelRow,
    label=st.integers(0, 2),
    box=st.tuples(numbers, numbers, numbers, numbers),
    line=st.integers(1, 99),
    value=st.text(max_size=3),
    polygon=st.booleans(),
)
unparsed = st.just(Finding("label_columns", "error", FILE, "4 columns"))
any_rows = st.lists(pixel_rows | unparsed, max_size=8)


@settings(max_examples=100, deadline=None)
@given(rows=any_rows, size_wh=st.tuples(st.integers(1, 5000), st.integers(1, 5000)))
def test_each_row_is_a_box_inside_the_picture_or_a_finding(
    rows: list[PixelRow | Finding], size_wh: tuple[int, int]
) -> None:
    found = boxes_of_rows(FILE, rows, size_wh)
    assert found.rows == len(rows)
    assert found.boxes.shape == (len(found.labels), 4) and found.boxes.dtype == np.float32
    assert (found.boxes >= 0).all() and (found.boxes <= np.array([*size_wh, *size_wh])).all()
    assert (found.boxes[:, 2:] > found.boxes[:, :2]).all()
    left_out = [finding for finding in found.findings if finding.severity != "note"]
    assert len(left_out) + len(found.boxes) == len(rows)
    lines = {row.line for row in rows if isinstance(row, PixelRow)}
    assert all(finding.line in lines for finding in left_out if finding.code != "label_columns")
    assert found.lines is not None and set(found.lines.tolist()) <= lines


@settings(max_examples=50, deadline=None)
@given(rows=any_rows)
def test_the_same_rows_give_the_same_answer_in_any_company(rows: list[PixelRow | Finding]) -> None:
    good = PixelRow(2, (3.25, 4.5, 333.25, 77.125), 1000)
    alone = boxes_of_rows(FILE, rows, WH)
    together = boxes_of_rows(FILE, [*rows, good], WH)
    np.testing.assert_array_equal(together.boxes[:-1], alone.boxes)
    np.testing.assert_array_equal(together.boxes[-1], np.float32(good.box))
    assert together.findings == alone.findings


def test_good_rows_are_taken_as_they_are() -> None:
    found = read((0, 0, 640, 480), (1.5, 2.5, 3.5, 4.5))
    np.testing.assert_array_equal(found.boxes, [[0, 0, 640, 480], [1.5, 2.5, 3.5, 4.5]])
    assert found.labels.tolist() == [0, 1] and found.lines is not None and found.lines.tolist() == [10, 11]
    assert found.findings == () and found.rows == 2


def test_no_rows() -> None:
    found = boxes_of_rows(FILE, [], WH)
    assert found.boxes.shape == (0, 4) and found.rows == 0 and found.findings == ()


@pytest.mark.parametrize(
    ("box", "code", "severity", "words"),
    [
        ((5, 5, math.nan, 9), "label_number", "error", "'nan' is not a finite number"),
        ((5, 5, math.inf, 9), "label_number", "error", "'inf' is not a finite number"),
        ((5, 5, 5, 9), "label_no_area", "warning", "a box of 0 x 4 pixels"),
        ((5, 5, 2, 9), "label_no_area", "warning", "a box of -3 x 4 pixels"),
        ((640, 5, 650, 9), "label_outside", "error", "lies outside the picture of 640 x 480 pixels"),
        ((-5, 5, 0, 9), "label_outside", "error", "lies outside the picture"),
        ((5, 481, 9, 490), "label_outside", "error", "lies outside the picture"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(
    box: tuple[float, float, float, float], code: str, severity: str, words: str
) -> None:
    found = read((1, 1, 2, 2), box)
    [finding] = found.findings
    assert (finding.code, finding.severity, finding.line, finding.path) == (code, severity, 11, FILE)
    assert words in finding.message
    assert len(found.boxes) == 1 and found.rows == 2


def test_a_box_that_reaches_out_is_clipped_with_a_note_and_rounding_without() -> None:
    found = read((-64, 0, 100, 100), (0, 0, 640.5, 480))
    assert codes(found) == ["label_clipped"]
    assert found.findings[0].value == "10.0%" and "clipped to 100 x 100 pixels" in found.findings[0].message
    np.testing.assert_array_equal(found.boxes, [[0, 0, 100, 100], [0, 0, 640, 480]])


def test_a_repeated_row_counts_once_and_another_class_is_another_row() -> None:
    box = (1.0, 2.0, 30.0, 40.0)
    rows = [PixelRow(0, box, 3), PixelRow(1, box, 4), PixelRow(0, box, 9)]
    found = boxes_of_rows(FILE, rows, WH)
    assert found.labels.tolist() == [0, 1] and codes(found) == ["label_repeated"]
    assert found.findings[0].line == 9 and "line 3" in found.findings[0].message


def test_rows_without_lines_say_where_they_stand() -> None:
    box = (1.0, 2.0, 30.0, 40.0)
    rows = [PixelRow(0, box, None, where="annotations[0]"), PixelRow(0, box, None, where="annotations[1]")]
    found = boxes_of_rows(FILE, rows, WH)
    assert found.lines is None
    assert str(found.findings[0]).startswith("boxes.csv: annotations[1]: the same row as in annotations[0]")


def test_polygons_are_counted() -> None:
    rows = [PixelRow(0, (i, 0, i + 5, 5), i, polygon=i > 1) for i in (1, 2, 3)]
    found = boxes_of_rows(FILE, rows, WH)
    assert codes(found) == ["label_polygons"] and found.findings[0].value == "2" and len(found.boxes) == 3


def test_another_size_than_told_is_a_warning() -> None:
    read_rows = read((1, 1, 2, 2))
    assert with_size(read_rows, Path("a.jpg"), WH, None, FILE, 3) is read_rows
    assert with_size(read_rows, Path("a.jpg"), WH, WH, FILE, 3) is read_rows
    found = with_size(read_rows, Path("a.jpg"), WH, (480, 640), FILE, 3)
    assert codes(found) == ["size_differs"] and found.findings[0].value == "480 x 640"
    assert "turned by its orientation" in found.findings[0].message and found.findings[0].line == 3
