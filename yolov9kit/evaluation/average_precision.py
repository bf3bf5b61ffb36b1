"""Average precision in COCO's definition, computed by faster-coco-eval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class PictureBoxes:
    """Boxes of one picture: N x 4 xyxy picture pixels, ``labels`` N, ``scores`` N (of detections)."""

    boxes: np.ndarray
    labels: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class AveragePrecision:
    """AP over IoU 0.50 to 0.95, at 0.50 and at 0.75; None where there is no object.

    ``per_class``: AP and AP50 of each class, in the order of the classes. ``small``, ``medium`` and ``large``: AP of
    objects under 32 x 32, up to 96 x 96 and over 96 x 96 pixels of the picture.
    """

    ap: float | None
    ap50: float | None
    ap75: float | None
    per_class: tuple[tuple[float | None, float | None], ...]
    small: float | None = None
    medium: float | None = None
    large: float | None = None


def average_precision(
    truths: Sequence[PictureBoxes], found: Sequence[PictureBoxes], num_classes: int, max_detections: int = 300
) -> AveragePrecision:
    """AP of detections against true boxes, picture by picture in the same order."""
    if not any(len(truth.labels) for truth in truths):
        return AveragePrecision(None, None, None, ((None, None),) * num_classes)
    from faster_coco_eval import COCO, COCOeval_faster

    ground = COCO(_ground_truth(truths, num_classes))
    evaluation = COCOeval_faster(ground, ground.loadRes(_rows(found)), "bbox", print_function=_silent)
    evaluation.params.maxDets = [1, 100, max_detections]
    evaluation.evaluate()
    evaluation.accumulate()
    by_area = evaluation.eval["precision"][..., 2]  # IoU, recall, class, area; most detections
    precision = by_area[..., 0]  # of all areas
    return AveragePrecision(
        _mean(precision),
        _mean(precision[0]),
        _mean(precision[5]),
        tuple((_mean(precision[:, :, c]), _mean(precision[0, :, c])) for c in range(num_classes)),
        *(_mean(by_area[..., area]) for area in (1, 2, 3)),
    )


def _mean(precision: np.ndarray) -> float | None:
    """-1 stands where there is no object of a class: it is left out."""
    known = precision[precision > -1]
    return float(known.mean()) if known.size else None


def _ground_truth(truths: Sequence[PictureBoxes], num_classes: int) -> dict[str, object]:
    annotations: list[dict[str, object]] = []
    for picture, truth in enumerate(truths, start=1):
        for box, label in zip(truth.boxes.tolist(), truth.labels.tolist(), strict=True):
            width, height = box[2] - box[0], box[3] - box[1]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": picture,
                    "category_id": label + 1,
                    "bbox": [box[0], box[1], width, height],
                    "area": width * height,
                    "iscrowd": 0,
                }
            )
    return {
        "images": [{"id": picture} for picture in range(1, len(truths) + 1)],
        "annotations": annotations,
        "categories": [{"id": c + 1, "name": str(c)} for c in range(num_classes)],
    }


def _rows(found: Sequence[PictureBoxes]) -> np.ndarray | list[object]:
    """Picture, x, y, width, height, score, class of each detection."""
    rows = [
        np.column_stack(
            (
                np.full(len(one.labels), picture),
                one.boxes[:, :2],
                one.boxes[:, 2:] - one.boxes[:, :2],
                one.scores,
                one.labels + 1,
            )
        )
        for picture, one in enumerate(found, start=1)
        if len(one.labels)
    ]
    return np.concatenate(rows).astype(np.float64) if rows else []


def _silent(*_: object, **__: object) -> None:
    """What faster-coco-eval would print."""
