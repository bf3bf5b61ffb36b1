"""How far detections are from those of fp32 eager: boxes matched one to one, what is lost and new, how scores moved."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yolov9kit.errors import EvaluationError
from yolov9kit.evaluation.matching import iou_matrix
from yolov9kit.types import Detections

MIN_IOU = 0.9
MIN_SCORE = 0.25


@dataclass(frozen=True)
class Difference:
    """Between detections and those of fp32 eager on the same pictures.

    Attributes:
        pictures: that were compared.
        reference, found: boxes of fp32 eager, and of what is compared with it, that score over ``min_score``.
        matched: pairs of one class with an IoU of at least ``min_iou``, each box in one pair at most.
        lost, new: boxes of the reference, and of what is compared, without a partner.
        max_score_change: the largest among the pairs; None without any.
        mean_iou: of the pairs; None without any.
    """

    pictures: int
    reference: int
    found: int
    matched: int
    max_score_change: float | None
    mean_iou: float | None
    min_iou: float = MIN_IOU
    min_score: float = MIN_SCORE

    @property
    def lost(self) -> int:
        return self.reference - self.matched

    @property
    def new(self) -> int:
        return self.found - self.matched


def compare(reference: Sequence[Detections], found: Sequence[Detections]) -> Difference:
    """The difference, picture by picture in the same order.

    Raises:
        EvaluationError: not as many pictures on both sides.
    """
    if len(reference) != len(found):
        raise EvaluationError(f"{len(found)} pictures cannot be compared with {len(reference)}")
    boxes, others, ious, changes = 0, 0, [], []
    for before, after in zip(reference, found, strict=True):
        before, after = before.only(before.scores > MIN_SCORE), after.only(after.scores > MIN_SCORE)
        boxes, others = boxes + len(before), others + len(after)
        overlap = iou_matrix(before.boxes, after.boxes)
        overlap[before.labels[:, None] != after.labels[None]] = 0
        for one, other in pairs(overlap, MIN_IOU):
            ious.append(float(overlap[one, other]))
            changes.append(abs(float(before.scores[one]) - float(after.scores[other])))
    return Difference(
        pictures=len(reference),
        reference=boxes,
        found=others,
        matched=len(ious),
        max_score_change=max(changes, default=None),
        mean_iou=float(np.mean(ious)) if ious else None,
    )


def pairs(overlap: np.ndarray, min_iou: float) -> list[tuple[int, int]]:
    """Row and column of partners in a table of IoUs: the largest overlap first, then of the rest, down to ``min_iou``.

    The same pairs whichever side comes first, where no two overlaps are equal.
    """
    rows, columns = (overlap >= min_iou).nonzero()
    order = np.argsort(-overlap[rows, columns], kind="stable")
    taken_rows: set[int] = set()
    taken_columns: set[int] = set()
    found = []
    for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True):
        if row not in taken_rows and column not in taken_columns:
            taken_rows.add(row)
            taken_columns.add(column)
            found.append((row, column))
    return found
