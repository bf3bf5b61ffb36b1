"""Agreement of detections: one to one, by class, the same seen from both sides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.benchmark.difference import MIN_IOU, MIN_SCORE, compare, pairs
from yolov9kit.errors import EvaluationError
from yolov9kit.types import Detections

NAMES = ("nut", "bolt", "wing nut")


def detections(boxes: object, scores: object, labels: object) -> Detections:
    return Detections(np.asarray(boxes), np.asarray(scores), np.asarray(labels), NAMES, (200, 200))


@st.composite
def some(draw: st.DrawFn) -> Detections:
    """Boxes of a few places, so that some overlap, and scores on both sides of the threshold."""
    count = draw(st.integers(0, 8))
    numbers = np.random.default_rng(draw(st.integers(0, 2**31)))
    corner = numbers.integers(0, 3, (count, 2)) * 30 + numbers.random((count, 2)) * 2
    boxes = np.concatenate((corner, corner + 50 + numbers.random((count, 2)) * 2), 1)
    return detections(boxes, numbers.random(count), numbers.integers(0, 3, count))


@given(st.lists(some(), max_size=3))
def test_the_same_detections_agree(found: list[Detections]) -> None:
    one = compare(found, found)
    boxes = sum(int((each.scores > MIN_SCORE).sum()) for each in found)
    assert (one.pictures, one.reference, one.found, one.matched) == (len(found), boxes, boxes, boxes)
    assert (one.lost, one.new) == (0, 0)
    assert one.max_score_change == (0 if boxes else None) and one.mean_iou == (1 if boxes else None)


@given(some(), some())
def test_seen_from_the_other_side_lost_is_new(a: Detections, b: Detections) -> None:
    there, back = compare([a], [b]), compare([b], [a])
    assert (there.matched, there.lost, there.new) == (back.matched, back.new, back.lost)
    assert there.mean_iou == pytest.approx(back.mean_iou) if there.matched else back.mean_iou is None


@given(some(), some(), st.randoms(use_true_random=False))
def test_the_order_of_boxes_does_not_matter(a: Detections, b: Detections, random: object) -> None:
    order = list(range(len(b)))
    random.shuffle(order)  # type: ignore[attr-defined]
    assert compare([a], [b.only(np.array(order, np.int64))]).matched == compare([a], [b]).matched


@given(some(), some(), some())
def test_pictures_are_compared_one_by_one(a: Detections, b: Detections, c: Detections) -> None:
    both, first, second = compare([a, c], [b, b]), compare([a], [b]), compare([c], [b])
    assert both.matched == first.matched + second.matched and both.lost == first.lost + second.lost


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 2**31))
def test_partners_overlap_enough_and_nobody_has_two(rows: int, columns: int, seed: int) -> None:
    overlap = np.random.default_rng(seed).random((rows, columns))
    found = pairs(overlap, 0.5)
    assert all(overlap[pair] >= 0.5 for pair in found)
    assert len({row for row, _ in found}) == len({column for _, column in found}) == len(found)
    free = np.ones_like(overlap, bool)
    for row, column in found:
        free[row], free[:, column] = False, False
    assert not (free & (overlap >= 0.5)).any()  # nobody is left who could have a partner


BOX = [10.0, 10.0, 110.0, 110.0]


def test_a_moved_a_rescored_and_a_renamed_box() -> None:
    reference = detections([BOX] * 4, [0.9, 0.8, 0.7, 0.2], [0, 1, 2, 0])
    moved = [10.0, 10.0, 110.0, 80.0]  # IoU 0.7
    other = detections([BOX, moved, BOX], [0.6, 0.8, 0.7], [0, 1, 1])
    one = compare([reference], [other])
    assert (one.reference, one.found, one.matched, one.lost, one.new) == (3, 3, 2, 1, 1)
    # class 1: the box on the same place is the partner, though the moved one scores the same as before
    assert one.max_score_change == pytest.approx(0.3) and one.mean_iou == 1.0


def test_a_box_at_the_threshold_counts_only_above_it() -> None:
    low, high = detections([BOX], [MIN_SCORE], [0]), detections([BOX], [MIN_SCORE + 1e-3], [0])
    one = compare([high], [low])
    assert (one.lost, one.new, one.matched) == (1, 0, 0)
    assert compare([low], [low]).reference == 0


def test_an_overlap_of_just_enough_is_one() -> None:
    shorter = [10.0, 10.0, 110.0, 10.0 + 100 * MIN_IOU]
    assert compare([detections([BOX], [0.9], [0])], [detections([shorter], [0.9], [0])]).matched == 1
    shorter[3] -= 0.5
    assert compare([detections([BOX], [0.9], [0])], [detections([shorter], [0.9], [0])]).matched == 0


def test_other_numbers_of_pictures_cannot_be_compared() -> None:
    with pytest.raises(EvaluationError, match="2 pictures cannot be compared with 1"):
        compare([detections([], [], [])], [detections([], [], [])] * 2)
