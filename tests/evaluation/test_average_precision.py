"""AP against values worked out by hand and against pycocotools."""

import pytest

from tests.evaluation.random_boxes import boxes, known_mean, random_set, reference_precision
from yolov9kit.evaluation.average_precision import average_precision


def test_v01_right_wrong_right() -> None:
    truth = boxes((0, 0, 100, 100), (200, 200, 300, 300))
    found = boxes((0, 0, 100, 100), (400, 0, 500, 100), (200, 200, 300, 300), scores=[0.9, 0.8, 0.7])
    result = average_precision([truth], [found], 1)
    assert result.ap50 == pytest.approx(0.8350, abs=5e-5)
    assert result.ap == pytest.approx(0.8350, abs=5e-5)


def test_v02_iou_of_72_percent() -> None:
    result = average_precision([boxes((0, 0, 100, 100))], [boxes((0, 0, 100, 72))], 1)
    assert (result.ap50, result.ap75, result.ap) == pytest.approx((1.0, 0.0, 0.5))


def test_v08_a_class_without_objects_is_left_out_of_the_mean() -> None:
    truth = boxes((0, 0, 100, 100))
    found = boxes((0, 0, 100, 100), (0, 0, 50, 50), labels=[0, 1], scores=[0.5, 0.9])
    result = average_precision([truth], [found], 3)
    assert result.ap == pytest.approx(1.0)
    assert result.per_class == ((pytest.approx(1.0), pytest.approx(1.0)), (None, None), (None, None))


def test_no_objects_at_all_is_no_score() -> None:
    nothing = boxes()
    result = average_precision([nothing], [boxes((0, 0, 9, 9))], 2)
    assert (result.ap, result.ap50, result.ap75) == (None, None, None)
    assert result.per_class == ((None, None), (None, None))


def test_no_detections_score_0() -> None:
    assert average_precision([boxes((0, 0, 9, 9))], [boxes()], 1).ap == 0


def test_v04_equals_pycocotools() -> None:
    truths, found = random_set(4)
    precision = reference_precision(truths, found, 5)
    result = average_precision(truths, found, 5)
    assert 0.1 < result.ap < 0.9
    every = precision[..., 0]
    assert result.ap == pytest.approx(known_mean(every), abs=1e-6)
    assert result.ap50 == pytest.approx(known_mean(every[0]), abs=1e-6)
    assert result.ap75 == pytest.approx(known_mean(every[5]), abs=1e-6)
    sizes = (result.small, result.medium, result.large)
    assert sizes == pytest.approx([known_mean(precision[..., area]) for area in (1, 2, 3)], abs=1e-6)
    assert len({round(ap, 3) for ap in sizes}) == 3
    for label, (ap, _) in enumerate(result.per_class):
        assert ap == pytest.approx(every[:, :, label].mean(), abs=1e-6)


@pytest.mark.parametrize(("side", "size"), [(20, "small"), (50, "medium"), (200, "large")])
def test_v08_objects_count_for_their_own_size_and_the_others_have_none(side: int, size: str) -> None:
    truth = boxes((0, 0, side, side))
    result = average_precision([truth], [boxes((0, 0, side, side))], 1)
    assert {name: vars(result)[name] for name in ("small", "medium", "large")} == {
        "small": None,
        "medium": None,
        "large": None,
        size: pytest.approx(1.0),
    }


def test_objects_of_class_0_on_the_first_picture_count() -> None:
    truth = [boxes((0, 0, 50, 50)), boxes()]
    assert average_precision(truth, [boxes((0, 0, 50, 50)), boxes()], 1).ap == pytest.approx(1.0)
    assert average_precision(truth, [boxes(), boxes()], 1).ap == 0


def test_more_boxes_than_the_limit_are_not_scored() -> None:
    truth = boxes((0, 0, 50, 50))
    wrong = [(100.0 + 2 * n, 100.0, 101.0 + 2 * n, 101.0) for n in range(300)]
    found = boxes(*wrong, (0, 0, 50, 50), scores=[0.9] * 300 + [0.5])
    assert average_precision([truth], [found], 1, max_detections=300).ap == 0
    assert average_precision([truth], [found], 1, max_detections=301).ap == pytest.approx(1 / 301)
