"""Which detection found which object: greedy by falling score, as COCO does it, kept as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yolov9kit.errors import EvaluationError
from yolov9kit.evaluation.average_precision import PictureBoxes

MIN_IOU = 0.5


@dataclass(frozen=True, eq=False)
class Matches:
    """D detections and T objects of a whole set. Since it is greedy by score, leaving out all detections under some
    score leaves every other match as it is.

    Attributes:
        min_iou: of a match.
        picture, label, score: D, of each detection, in the order of the pictures and of the detections in them.
        iou: D, the best IoU with an object that the detection may match, also with one that another has matched.
        target: D, the object that it matched, an index into the T, or -1.
        target_picture, target_label: T, of each object.
        detection: T, the detection that matched it, an index into the D, or -1.
    """

    min_iou: float
    picture: np.ndarray
    label: np.ndarray
    score: np.ndarray
    iou: np.ndarray
    target: np.ndarray
    target_picture: np.ndarray
    target_label: np.ndarray
    detection: np.ndarray


def match(
    truths: Sequence[PictureBoxes],
    found: Sequence[PictureBoxes],
    min_iou: float = MIN_IOU,
    *,
    any_class: bool = False,
) -> Matches:
    """Matches of detections with objects, picture by picture in the same order.

    The best detection takes the object that it overlaps most of those that are free, by at least ``min_iou``; of
    objects that it overlaps equally the last. Only objects of its own class, unless ``any_class``.

    Raises:
        EvaluationError: not as many lists of detections as of objects.
    """
    if len(truths) != len(found):
        raise EvaluationError(
            f"{len(found)} pictures with detections for {len(truths)} pictures with objects"
        )
    target, iou = [], []
    detection = np.full(sum(len(one.labels) for one in truths), -1, np.int64)
    objects = detections = 0
    for truth, one in zip(truths, found, strict=True):
        overlap = iou_matrix(one.boxes, truth.boxes)
        if not any_class:
            overlap[one.labels[:, None] != truth.labels[None]] = 0
        partner = _greedy(overlap, one.scores, min_iou)
        iou.append(overlap.max(1, initial=0))
        target.append(np.where(partner < 0, -1, partner + objects))
        matched = (partner >= 0).nonzero()[0]
        detection[partner[matched] + objects] = matched + detections
        objects, detections = objects + len(truth.labels), detections + len(one.labels)
    return Matches(
        min_iou,
        _picture_of_each(found),
        _joined([one.labels for one in found], np.int64),
        _joined([one.scores for one in found], np.float32),
        _joined(iou, np.float64),
        _joined(target, np.int64),
        _picture_of_each(truths),
        _joined([one.labels for one in truths], np.int64),
        detection,
    )


def iou_matrix(boxes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union, D x T float64, of every pair of xyxy boxes; 0 for two without any area."""
    a, b = (np.asarray(each, np.float64).reshape(-1, 4) for each in (boxes, others))
    sides = np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2])
    intersection = sides.clip(min=0).prod(-1)
    area_a, area_b = ((each[:, 2:] - each[:, :2]).clip(min=0).prod(-1) for each in (a, b))
    union = area_a[:, None] + area_b[None] - intersection
    overlap: np.ndarray = np.divide(intersection, union, out=np.zeros_like(union), where=union > 0)
    return overlap


def _greedy(overlap: np.ndarray, scores: np.ndarray, min_iou: float) -> np.ndarray:
    """The partner of each detection, -1 for none."""
    partner = np.full(len(scores), -1, np.int64)
    if not overlap.size:
        return partner
    left = overlap.copy()
    order = np.argsort(-scores, kind="stable")
    for index in order[left[order].max(1) >= min_iou]:
        row = left[index]
        best = len(row) - 1 - int(row[::-1].argmax())
        if row[best] >= min_iou and row[best] > 0:
            partner[index] = best
            left[:, best] = -1
    return partner


def _picture_of_each(pictures: Sequence[PictureBoxes]) -> np.ndarray:
    return np.repeat(np.arange(len(pictures)), [len(one.labels) for one in pictures])


def _joined(parts: Sequence[np.ndarray], dtype: type[np.generic]) -> np.ndarray:
    joined: np.ndarray = np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)
    joined.flags.writeable = False
    return joined
