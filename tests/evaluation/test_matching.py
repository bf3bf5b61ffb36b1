"""The matching of our own: what COCO's does, seen from its properties and from AP at every IoU."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.random_boxes import boxes, random_set, reference_precision
from yolov9kit import geometry
from yolov9kit.errors import EvaluationError
from yolov9kit.evaluation.average_precision import PictureBoxes
from yolov9kit.evaluation.curve import curve
from yolov9kit.evaluation.matching import iou_matrix, match


@st.composite
def picture(draw: st.DrawFn) -> PictureBoxes:
    """Up to six boxes on a coarse grid, so that many overlap, coincide or have equal scores; some have no area."""
    n = draw(st.integers(0, 6))
    corner = st.tuples(*[st.integers(0, 4)] * 2, *[st.integers(0, 3)] * 2)
    rows = [(x, y, x + w, y + h) for x, y, w, h in draw(st.lists(corner, min_size=n, max_size=n))]
    numbers = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    scores = st.lists(st.sampled_from((0.1, 0.5, 0.9)), min_size=n, max_size=n)
    return boxes(*rows, labels=draw(numbers), scores=draw(scores))


@st.composite
def sets(draw: st.DrawFn) -> tuple[list[PictureBoxes], list[PictureBoxes]]:
    n = draw(st.integers(1, 3))
    pictures = st.lists(picture(), min_size=n, max_size=n)
    return draw(pictures), draw(pictures)


def joined(pictures: list[PictureBoxes]) -> np.ndarray:
    return np.concatenate([one.boxes for one in pictures])


@given(sets(), st.sampled_from((0.3, 0.5, 0.75)), st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_match_is_of_two_that_belong_together(
    both: tuple[list[PictureBoxes], list[PictureBoxes]], min_iou: float, any_class: bool
) -> None:
    truths, found = both
    matches = match(truths, found, min_iou, any_class=any_class)
    matched = (matches.target >= 0).nonzero()[0]
    partner = matches.target[matched]
    assert len(set(partner.tolist())) == len(partner)
    assert (matches.detection[partner] == matched).all()
    assert (matches.detection >= 0).sum() == len(matched)
    assert (matches.picture[matched] == matches.target_picture[partner]).all()
    assert any_class or (matches.label[matched] == matches.target_label[partner]).all()
    overlap = iou_matrix(joined(found), joined(truths))
    assert (overlap[matched, partner] >= min_iou).all()
    assert (matches.iou[matched] >= overlap[matched, partner]).all()


@given(sets())
@settings(max_examples=60, deadline=None)
def test_nobody_is_left_alone_who_could_have_a_free_partner(
    both: tuple[list[PictureBoxes], list[PictureBoxes]],
) -> None:
    truths, found = both
    matches = match(truths, found)
    overlap = iou_matrix(joined(found), joined(truths))
    for d in (matches.target < 0).nonzero()[0]:
        free = (matches.target_picture == matches.picture[d]) & (matches.target_label == matches.label[d])
        free &= matches.detection < 0
        assert (overlap[d, free] < 0.5).all()


@given(sets(), st.sampled_from((0.05, 0.1, 0.5)))
@settings(max_examples=60, deadline=None)
def test_leaving_out_low_scores_leaves_the_other_matches(
    both: tuple[list[PictureBoxes], list[PictureBoxes]], threshold: float
) -> None:
    truths, found = both
    above = [
        PictureBoxes(
            f.boxes[f.scores > threshold], f.labels[f.scores > threshold], f.scores[f.scores > threshold]
        )
        for f in found
    ]
    whole = match(truths, found)
    assert (match(truths, above).target == whole.target[whole.score > threshold]).all()


def test_the_better_detection_takes_the_object_and_the_other_the_next_best() -> None:
    truth = boxes((0, 0, 100, 100), (10, 0, 110, 100))
    found = boxes((4, 0, 104, 100), (4, 0, 104, 100), (4, 0, 104, 100), scores=[0.5, 0.9, 0.1])
    assert match([truth], [found]).target.tolist() == [1, 0, -1]
    assert match([truth], [found]).detection.tolist() == [1, 0]


def test_iou_of_exactly_the_limit_is_a_match() -> None:
    truth, found = boxes((0, 0, 10, 10)), boxes((0, 0, 10, 5))
    assert match([truth], [found], 0.5).target.tolist() == [0]
    assert match([truth], [found], 0.501).target.tolist() == [-1]


def test_any_class_matches_across_classes() -> None:
    truth, found = boxes((0, 0, 9, 9), labels=[1]), boxes((0, 0, 9, 9), labels=[2])
    assert match([truth], [found]).target.tolist() == [-1]
    assert match([truth], [found], any_class=True).target.tolist() == [0]


def test_nothing_at_all() -> None:
    matches = match([boxes(), boxes((0, 0, 9, 9))], [boxes((0, 0, 9, 9)), boxes()])
    assert (matches.target.tolist(), matches.detection.tolist(), matches.iou.tolist()) == ([-1], [-1], [0])
    assert match([], []).target.shape == (0,)


def test_another_number_of_pictures_is_refused() -> None:
    with pytest.raises(EvaluationError, match="2 pictures with detections for 1 pictures"):
        match([boxes()], [boxes(), boxes()])


def test_iou_is_that_of_geometry() -> None:
    (truth, *_), (found, *_) = random_set(1, pictures=1)
    found.boxes[0] = found.boxes[1, [0, 1, 0, 1]]  # without area
    expected = geometry.iou_matrix(torch.from_numpy(found.boxes), torch.from_numpy(truth.boxes))
    np.testing.assert_allclose(iou_matrix(found.boxes, truth.boxes), expected.numpy(), atol=1e-6)


def test_v04_ap_from_our_matches_is_cocos_at_every_iou() -> None:
    truths, found = random_set(7, pictures=40)
    precision = reference_precision(truths, found, 5)[..., 0]
    for place, min_iou in enumerate(np.linspace(0.5, 0.95, 10)):
        matches = match(truths, found, min_iou)
        for label in range(5):
            expected = precision[place, :, label].mean()
            assert curve(matches, label).ap() == pytest.approx(expected, abs=1e-6), (min_iou, label)


@given(sets())
@settings(max_examples=25, deadline=None)
def test_v04_ap_is_cocos_on_odd_sets_too(both: tuple[list[PictureBoxes], list[PictureBoxes]]) -> None:
    truths, found = both
    if not sum(len(one.labels) for one in found):  # pycocotools takes no empty list of results
        return
    precision = reference_precision(truths, found, 3)[0, ..., 0]
    matches = match(truths, found)
    for label in range(3):
        ours = curve(matches, label).ap()
        expected = precision[:, label].mean()
        assert (-1 if ours is None else ours) == pytest.approx(expected, abs=1e-6)
