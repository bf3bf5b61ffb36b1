"""Which labels a detector contradicts: objects without a label, boxes at the wrong place, classes that were swapped.

After the idea of ObjectLab (Tkachenko, Thyagarajan and Mueller 2023, arXiv:2309.00832): the surer a detector is of
what contradicts a label, the less that label is to be trusted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from yolov9kit.data.dataset import Dataset
from yolov9kit.errors import EvaluationError
from yolov9kit.evaluation.average_precision import PictureBoxes
from yolov9kit.evaluation.matching import iou_matrix
from yolov9kit.evaluation.report import EvalReport
from yolov9kit.types import Detections, printable

ErrorKind = Literal["missed", "misplaced", "swapped"]
KINDS: tuple[ErrorKind, ...] = ("missed", "misplaced", "swapped")
CONFIDENT = 0.5
COVERED = 0.5
"""Detections that overlap a labelled box so far, of whatever class, are about that box, and no object was missed."""

Box = tuple[float, float, float, float]


class LabelError(NamedTuple):
    """A label, or the lack of one, that a detection contradicts.

    Attributes:
        kind: ``missed``: an object has no box; ``misplaced``: its box is elsewhere; ``swapped``: its class is another.
        score: 0 to 1: how far the labels can be trusted here. Low is suspicious.
        picture: number of the picture in ``LabelErrors.paths``.
        path: of the picture.
        row: which box of the picture is meant, -1 for a missed object.
        label, box: as labelled; -1 and None for a missed object. Boxes are xyxy in pixels of the picture.
        suggested_label, suggested_box: as detected.
        confidence: score of that detection.
    """

    kind: ErrorKind
    score: float
    picture: int
    path: str
    row: int
    label: int
    box: Box | None
    suggested_label: int
    suggested_box: Box
    confidence: float


@dataclass(frozen=True, eq=False)
class LabelErrors:
    """How far the labels of each picture can be trusted, box by box: scores of 0 to 1, low is suspicious.

    Attributes:
        names: of the classes.
        paths: of the pictures.
        confident: detections with a lower score contradict nothing.
        missed: for each picture N scores, one for each detection: 0, a sure detection where no label is.
        misplaced, swapped: for each picture M scores, one for each labelled box; 1 where nothing contradicts it.
    """

    names: tuple[str, ...]
    paths: tuple[str, ...]
    confident: float
    missed: tuple[np.ndarray, ...]
    misplaced: tuple[np.ndarray, ...]
    swapped: tuple[np.ndarray, ...]
    _truths: tuple[PictureBoxes, ...] = field(repr=False)
    _found: tuple[PictureBoxes, ...] = field(repr=False)
    _witnesses: tuple["_Witnesses", ...] = field(repr=False)

    def of_kind(self, kind: ErrorKind) -> tuple[np.ndarray, ...]:
        """The scores of one kind, picture by picture."""
        return {"missed": self.missed, "misplaced": self.misplaced, "swapped": self.swapped}[kind]

    def picture_scores(self, kind: ErrorKind | None = None) -> np.ndarray:
        """The lowest score of each picture; without a kind, that of the three kinds multiplied."""
        kinds = KINDS if kind is None else (kind,)
        lowest = [[scores.min(initial=1.0) for scores in self.of_kind(one)] for one in kinds]
        return np.array(lowest, np.float64).prod(0)

    def ranking(self, count: int | None = None, kinds: Sequence[ErrorKind] = KINDS) -> tuple[LabelError, ...]:
        """What is contradicted, the most suspicious first: all of it, or the first ``count``."""
        scores, kind, picture, place = self._contradicted
        wanted = np.isin(kind, [KINDS.index(one) for one in kinds]).nonzero()[0][:count]
        return tuple(
            self._error(KINDS[kind[i]], int(picture[i]), int(place[i]), float(scores[i])) for i in wanted
        )

    @cached_property
    def _contradicted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Score, number of the kind, picture and place of each score below 1, by rising score."""
        columns = [
            np.concatenate([np.empty(0), *of])
            for of in (
                [scores for kind in KINDS for scores in self.of_kind(kind)],
                [np.full(len(scores), i) for i, kind in enumerate(KINDS) for scores in self.of_kind(kind)],
                [np.full(len(scores), i) for kind in KINDS for i, scores in enumerate(self.of_kind(kind))],
                [np.arange(len(scores)) for kind in KINDS for scores in self.of_kind(kind)],
            )
        ]
        scores, kind, picture, place = columns[0], *(column.astype(np.int64) for column in columns[1:])
        order = np.lexsort((place, kind, picture, scores))
        order = order[scores[order] < 1]
        return scores[order], kind[order], picture[order], place[order]

    def _error(self, kind: ErrorKind, picture: int, place: int, score: float) -> LabelError:
        truth, found, witnesses = self._truths[picture], self._found[picture], self._witnesses[picture]
        if kind == "missed":
            witness, row = place, -1
        else:
            witness, row = (
                int((witnesses.misplaced if kind == "misplaced" else witnesses.swapped)[place]),
                place,
            )
        return LabelError(
            kind,
            score,
            picture,
            self.paths[picture],
            row,
            -1 if row < 0 else int(truth.labels[row]),
            None if row < 0 else _as_box(truth.boxes[row]),
            int(found.labels[witness]),
            _as_box(found.boxes[witness]),
            float(found.scores[witness]),
        )


def label_errors(
    found: EvalReport | Sequence[Detections],
    dataset: Dataset | None = None,
    *,
    confident: float | None = None,
) -> LabelErrors:
    """Which labels are probably wrong, judged by what a detector finds on the same pictures.

    The detector must not have been trained on these pictures (take the validation split, or detect on each part of
    the set with weights trained on the others): a network repeats what it was taught, its faults as well, and what it
    has learnt by heart it never contradicts.

    Each score is 1 minus the detection's score times how much it contradicts the labels:

    - ``missed``: 1 where it overlaps no labelled box of any class, falling to 0 at an IoU of 0.5;
    - ``misplaced``: 1 minus the IoU of a box and the best detection of its class that lies there;
    - ``swapped``: the IoU of a box and the best detection of another class, less what a detection of its own class says
      for it.

    A detection speaks only about the box that it overlaps most.

    Args:
        found: an evaluation, which holds labels and detections; or the detections of each picture of ``dataset``, in
            any order, told apart by their paths.
        dataset: the labels; only beside detections.
        confident: detections with a lower score contradict nothing. None: the evaluation's best threshold, 0.5 beside
            detections.

    Raises:
        EvaluationError: detections and data set do not belong together.
    """
    if isinstance(found, EvalReport):
        if dataset is not None:
            raise EvaluationError("an evaluation holds its labels: give no data set beside it")
        least = found.threshold if confident is None else confident
        return _label_errors(found.names, found.paths, found.truths, found.found, least)
    if dataset is None:
        raise EvaluationError("the labels are missing: give the data set beside the detections")
    ordered = _in_order(found, dataset)
    truths = tuple(
        PictureBoxes(s.boxes, s.labels, np.ones(len(s.labels), np.float32)) for s in dataset.samples
    )
    boxes = tuple(PictureBoxes(one.boxes, one.labels, one.scores) for one in ordered)
    paths = tuple(str(sample.path) for sample in dataset.samples)
    return _label_errors(dataset.names, paths, truths, boxes, CONFIDENT if confident is None else confident)


def _in_order(found: Sequence[Detections], dataset: Dataset) -> list[Detections]:
    """The detections of each sample."""
    by_path = {Path(one.path).absolute(): one for one in found}
    ordered = []
    for sample in dataset.samples:
        one = by_path.get(sample.path.absolute())
        if one is None:
            raise EvaluationError(
                printable(f"{sample.path}: no detections of this picture: detect on the whole split")
            )
        if len(one.names) != len(dataset.names):
            raise EvaluationError(
                f"the detector knows {len(one.names)} classes, {dataset.name} has {len(dataset.names)}"
            )
        if one.picture_wh != sample.size_wh:
            sizes = " and ".join("{} x {}".format(*wh) for wh in (one.picture_wh, sample.size_wh))
            raise EvaluationError(
                printable(f"{sample.path}: detections and labels are of pictures of {sizes} pixels")
            )
        ordered.append(one)
    return ordered


def _label_errors(
    names: tuple[str, ...],
    paths: tuple[str, ...],
    truths: tuple[PictureBoxes, ...],
    found: tuple[PictureBoxes, ...],
    confident: float,
) -> LabelErrors:
    judged = [_judge(truth, one, confident) for truth, one in zip(truths, found, strict=True)]
    return LabelErrors(
        names,
        paths,
        confident,
        tuple(scores.missed for scores, _ in judged),
        tuple(scores.misplaced for scores, _ in judged),
        tuple(scores.swapped for scores, _ in judged),
        truths,
        found,
        tuple(witnesses for _, witnesses in judged),
    )


class _Scores(NamedTuple):
    """``missed``: of each detection; the others of each labelled box."""

    missed: np.ndarray
    misplaced: np.ndarray
    swapped: np.ndarray


class _Witnesses(NamedTuple):
    """For each labelled box the detection that its score comes from, -1 for none."""

    misplaced: np.ndarray
    swapped: np.ndarray


def _judge(truth: PictureBoxes, found: PictureBoxes, confident: float) -> tuple[_Scores, _Witnesses]:
    """One picture with D detections and T labelled boxes."""
    scores = found.scores.astype(np.float64)
    sure = scores >= confident
    overlap = iou_matrix(found.boxes, truth.boxes)  # D x T
    same = found.labels[:, None] == truth.labels[None]
    own = np.where(same, overlap, 0.0)
    best, best_own = overlap.max(1, initial=0), own.max(1, initial=0)

    missed = np.where(sure, 1 - scores * (1 - best / COVERED).clip(min=0), 1.0)

    speaks = sure[:, None] & same & (own > 0) & (own == best_own[:, None])
    misplaced, by_place = _strongest(np.where(speaks, scores[:, None] * own, 0.0))
    misplaced = np.where(by_place >= 0, 1 - _at(scores, by_place) + misplaced, 1.0)

    # a detection that a box of its own class explains as well contradicts no other box
    speaks = sure[:, None] & ~same & (overlap == best[:, None]) & (best > best_own)[:, None]
    against, by_class = _strongest(np.where(speaks, scores[:, None] * overlap, 0.0))
    in_favour = (scores[:, None] * own).max(0, initial=0)
    swapped = 1 - (against - in_favour).clip(min=0)
    return _Scores(missed, misplaced, swapped), _Witnesses(by_place, by_class)


def _strongest(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest weight of each column of D x T, and its row; 0 and -1 where all are 0."""
    if not weights.size:
        return np.zeros(weights.shape[1]), np.full(weights.shape[1], -1)
    largest = weights.max(0)
    return largest, np.where(largest > 0, weights.argmax(0), -1)


def _at(scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.append(scores, 1.0)[places]


def _as_box(box: np.ndarray) -> Box:
    left, top, right, bottom = box.tolist()
    return left, top, right, bottom
