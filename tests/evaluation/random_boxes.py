"""Boxes for the tests of evaluation, and what pycocotools says of them."""

import contextlib
import io

import numpy as np
import pytest

from yolov9kit.evaluation.average_precision import PictureBoxes

Boxes = list[PictureBoxes]


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


def random_set(seed: int, pictures: int = 50, classes: int = 5) -> tuple[Boxes, Boxes]:
    """Objects, and detections near them, with five more anywhere on each picture."""
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


def reference_precision(truths: Boxes, found: Boxes, classes: int) -> np.ndarray:
    """Precision as pycocotools gives it: IoU x recall x class x area (all, small, medium, large), -1 for no objects.

    At most 300 boxes of a picture and class.
    """
    coco = pytest.importorskip("pycocotools.coco", reason="pycocotools is not here").COCO
    from pycocotools.cocoeval import COCOeval

    ground = coco()
    annotations = [row | {"area": row["bbox"][2] * row["bbox"][3], "iscrowd": 0} for row in _rows(truths)]
    ground.dataset = {
        "images": [{"id": i} for i in range(len(truths))],
        "annotations": [{"id": k + 1, **row} for k, row in enumerate(annotations)],
        "categories": [{"id": c} for c in range(classes)],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        ground.createIndex()
        reference = COCOeval(ground, ground.loadRes(_rows(found)), "bbox")
        reference.params.maxDets = [1, 100, 300]
        reference.evaluate()
        reference.accumulate()
    precision: np.ndarray = reference.eval["precision"][..., 2]
    return precision


def _rows(pictures: Boxes) -> list[dict]:
    return [
        {
            "image_id": i,
            "category_id": int(label),
            "bbox": [*map(float, box[:2]), *map(float, box[2:] - box[:2])],
            "score": float(score),
        }
        for i, one in enumerate(pictures)
        for box, label, score in zip(one.boxes, one.labels, one.scores, strict=True)
    ]


def known_mean(precision: np.ndarray) -> float:
    """-1 left out."""
    return float(precision[precision > -1].mean())
