"""Boxes side by side: pairs as comparing all with all finds them, and what is said of odd sizes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.data.dataset import Sample
from yolov9kit.data.findings import Finding
from yolov9kit.doctor.boxes import box_findings, touching_edge
from yolov9kit.doctor.flat_boxes import flatten

NAMES = ("nut", "bolt")
SIZE_WH = (200, 100)


def sample(
    boxes: Sequence[Sequence[float]], labels: Sequence[int] | None = None, lines: Sequence[int] | None = None
) -> Sample:
    numbers = range(1, len(boxes) + 1) if lines is None else lines
    return Sample(
        Path("a.png"),
        SIZE_WH,
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(labels or [0] * len(boxes), np.int64),
        Path("a.txt"),
        np.array(numbers, np.int64),
    )


def said(samples: Sequence[Sample], image_size: int = 200) -> list[Finding]:
    return box_findings(flatten(samples, image_size), NAMES, image_size)


def iou(a: Sequence[float], b: Sequence[float]) -> float:
    width = max(min(a[2], b[2]) - max(a[0], b[0]), 0)
    height = max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)]
    return width * height / (sum(areas) - width * height)


corner = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(38, 41), st.integers(38, 41))
rows = st.lists(st.tuples(corner, st.integers(0, 1)), max_size=12)


@given(st.lists(rows, max_size=3))
def test_pairs_are_those_of_comparing_all_with_all(pictures: list[list[tuple[tuple[int, ...], int]]]) -> None:
    samples, expected = [], set()
    for number, picture in enumerate(pictures):
        one = sample([box for box, _ in picture], [label for _, label in picture])
        samples.append(Sample(one.path, one.size_wh, one.boxes, one.labels, Path(f"{number}.txt"), one.lines))
        for later, (box, label) in enumerate(picture):
            for earlier, other in picture[:later]:
                if iou(box, earlier) > 0.95:
                    code = "label_near_repeat" if label == other else "label_conflict"
                    expected.add((code, f"{number}.txt", later + 1))
    found = [(finding.code, str(finding.path), finding.line) for finding in said(samples)]
    assert sorted(found) == sorted(expected)  # each once


def test_a_crowd_that_begins_at_one_place_is_compared_too() -> None:
    boxes = [(0, y, 10, y + 10) for y in range(0, 100, 10)] * 2
    found = said([sample(boxes)])
    assert [finding.line for finding in found] == list(range(11, 21))
    assert "nearly the box of line 1 (IoU 1.000, class nut)" in found[0].message


def test_a_conflict_names_both_classes_and_lines() -> None:
    (finding,) = said([sample([(10, 10, 50, 50), (10, 10, 50, 50.5)], [0, 1], [4, 9])])
    assert (finding.code, finding.severity, finding.line) == ("label_conflict", "warning", 9)
    assert "class bolt for the box that line 4 calls nut" in finding.message


def test_tiny_is_measured_at_the_input_size() -> None:
    samples = [sample([(10, 10, 13, 50), (100, 10, 140, 50)])]
    assert said(samples, image_size=200) == []
    (finding,) = said(samples, image_size=96)
    assert (finding.code, finding.line, finding.value) == ("box_tiny", 1, "3 x 40")
    assert "1.44 x 19.2 at the input size 96" in finding.message


def test_huge_is_a_note() -> None:
    (finding,) = said([sample([(0, 0, 200, 99)])])
    assert (finding.code, finding.severity, finding.value) == ("box_huge", "note", "99.0%")
    assert said([sample([(0, 0, 200, 95)])]) == []


def test_a_format_without_lines_names_the_picture_and_the_box() -> None:
    one = sample([(10, 10, 50, 50), (10, 10, 50, 50.5)])
    (finding,) = said([Sample(one.path, one.size_wh, one.boxes, one.labels, Path("all.json"))])
    assert (finding.path, finding.line) == (Path("a.png"), None)
    assert finding.message.startswith("box 2: nearly the box of box 1")


def test_boxes_that_end_at_the_edge() -> None:
    boxes = [(0, 10, 20, 20), (10, 10, 200, 20), (10, 80, 20, 99.6), (1, 1, 199, 99)]
    assert touching_edge(flatten([sample(boxes)], 640)).tolist() == [True, True, True, False]


def test_nothing_is_said_of_nothing() -> None:
    assert said([]) == [] and said([sample([])]) == []
    assert flatten([], 640).sides_px.shape == (0, 2)
