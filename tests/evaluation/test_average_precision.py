"""AP against values worked out by hand and against pycocotools."""

import contextlib
import io

import numpy as np
import pytest

from yolov9kit.evaluation.average_precision import PictureBoxes, average_precision


def boxes(
    *rows: tuple[float, float, float, float],
    labels: list[int] | None = None,
    scores: list[float] | None = None,
) -> PictureBoxes:
    n = len(rows)
    return PictureBoxes(
        np.array(rows, np.float32).reshape(-1, 4),
        np.array(labels or [0] * n, np.int64),
        np.array(scores or [1.0] * n, np.float32),
    )


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


def random_set(
    seed: int, pictures: int = 50, classes: int = 5
) -> tuple[list[PictureBoxes], list[PictureBoxes]]:
    rng = np.random.default_rng(seed)
    truths, found = [], []
    for _ in range(pictures):
        count = rng.integers(0, 12)
        first = rng.uniform(0, 500, (count, 2))
        true = np.concatenate((first, first + rng.uniform(8, 130, (count, 2))), 1)
        labels = rng.integers(0, classes, count)
        truths.append(PictureBoxes(true.astype(np.float32), labels, np.ones(count, np.float32)))
        moved = np.concatenate((true + rng.normal(0, 6, true.shape), rng.uniform(0, 600, (5, 4)))).astype(
            np.float32
        )
        moved[:, 2:] = np.maximum(moved[:, 2:], moved[:, :2] + 1)
        found.append(
            PictureBoxes(
                moved,
                np.concatenate((labels, rng.integers(0, classes, 5))),
                rng.uniform(0.001, 1, len(moved)).astype(np.float32),
            )
        )
    return truths, found


def test_v04_equals_pycocotools() -> None:
    pycocotools = pytest.importorskip("pycocotools.coco", reason="pycocotools is not here")
    from pycocotools.cocoeval import COCOeval

    truths, found = random_set(4)
    ground = pycocotools.COCO()
    annotations = [
        {
            "image_id": i,
            "category_id": int(label),
            "bbox": [*map(float, box[:2]), *map(float, box[2:] - box[:2])],
            "area": float(np.prod(box[2:] - box[:2])),
            "iscrowd": 0,
        }
        for i, one in enumerate(truths)
        for box, label in zip(one.boxes, one.labels, strict=True)
    ]
    ground.dataset = {
        "images": [{"id": i} for i in range(len(truths))],
        "annotations": [{"id": k + 1, **a} for k, a in enumerate(annotations)],
        "categories": [{"id": c} for c in range(5)],
    }
    rows = [
        {
            "image_id": i,
            "category_id": int(label),
            "bbox": [*map(float, box[:2]), *map(float, box[2:] - box[:2])],
            "score": float(score),
        }
        for i, one in enumerate(found)
        for box, label, score in zip(one.boxes, one.labels, one.scores, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        ground.createIndex()
        reference = COCOeval(ground, ground.loadRes(rows), "bbox")
        reference.params.maxDets = [1, 100, 300]
        reference.evaluate()
        reference.accumulate()
    precision = reference.eval["precision"][:, :, :, 0, 2]
    result = average_precision(truths, found, 5)
    assert 0.1 < result.ap < 0.9
    assert result.ap == pytest.approx(precision[precision > -1].mean(), abs=1e-6)
    assert result.ap50 == pytest.approx(precision[0][precision[0] > -1].mean(), abs=1e-6)
    for label, (ap, _) in enumerate(result.per_class):
        assert ap == pytest.approx(precision[:, :, label].mean(), abs=1e-6)
