"""What an evaluation found: scores with their settings, and the matches from which everything else is read."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from yolov9kit.evaluation.average_precision import AveragePrecision, PictureBoxes
from yolov9kit.evaluation.curve import RECALLS, Curve, Point, curve
from yolov9kit.evaluation.matching import MIN_IOU, Matches, match

THRESHOLDS = np.arange(1000) / 1000
"""Where the best threshold is looked for: numbers that can be typed."""


class Loss(NamedTuple):
    """Of the main branch, a picture's share: the parts with the gains of training's defaults, and their sum."""

    total: float
    box: float
    cls: float
    dfl: float


@dataclass(frozen=True)
class SizeScore:
    """The set at one image size. ``speed``: milliseconds a picture by stage.

    ``cut``: candidates over the score that did not fit under the limit before NMS; ``over``: boxes that NMS kept and
    that did not fit under the limit of a picture.
    """

    image_size: int
    scores: AveragePrecision
    loss: Loss
    detections: int
    cut: int
    over: int
    speed: Mapping[str, float]


@dataclass(frozen=True)
class ClassScore:
    """One class. AP over IoU 0.50 to 0.95 and at 0.50; precision, recall and F1 at the report's threshold.

    ``pictures``: how many have an object of the class. What cannot be said without objects is None.
    """

    name: str
    ap: float | None
    ap50: float | None
    precision: float | None
    recall: float | None
    f1: float | None
    objects: int
    pictures: int
    detections: int


@dataclass(frozen=True)
class Operating:
    """Precision, recall and F1 of the detections that score more than ``threshold``: of all together, of each class."""

    threshold: float
    all: Point
    classes: tuple[Point, ...]


@dataclass(frozen=True)
class WorstPicture:
    """``missed``: objects without a detection; ``wrong``: detections without an object."""

    index: int
    path: str
    objects: int
    missed: int
    wrong: int


@dataclass(frozen=True, eq=False)
class EvalReport:
    """An evaluation. All but ``sizes`` is about the first image size.

    Attributes:
        weights, data: what was evaluated, for people.
        settings: everything that the scores depend on, in one line.
        names: of the classes.
        sizes: the scores at each image size.
        paths, sizes_wh: of each picture, in the order of ``truths``, ``found`` and the picture numbers in ``matches``.
        truths, found: objects and detections of each picture, in its pixels.
        matches: at IoU 0.5, class by class.
        min_score: the floor of the detections: below it no threshold says anything.
        worst_count: how many pictures ``worst`` names.
        notes: what one should know.
        seconds: that it all took.
    """

    weights: str
    data: str
    settings: str
    names: tuple[str, ...]
    sizes: tuple[SizeScore, ...]
    paths: tuple[str, ...]
    sizes_wh: tuple[tuple[int, int], ...]
    truths: tuple[PictureBoxes, ...]
    found: tuple[PictureBoxes, ...]
    matches: Matches
    min_score: float
    worst_count: int = 16
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def image_size(self) -> int:
        return self.sizes[0].image_size

    @property
    def scores(self) -> AveragePrecision:
        return self.sizes[0].scores

    @property
    def ap(self) -> float | None:
        return self.scores.ap

    @property
    def ap50(self) -> float | None:
        return self.scores.ap50

    @property
    def ap75(self) -> float | None:
        return self.scores.ap75

    @property
    def loss(self) -> Loss:
        return self.sizes[0].loss

    @property
    def speed(self) -> Mapping[str, float]:
        return self.sizes[0].speed

    @property
    def objects(self) -> int:
        return len(self.matches.target_label)

    @property
    def detections(self) -> int:
        return len(self.matches.label)

    @cached_property
    def thresholds(self) -> np.ndarray:
        """Where curves over the threshold are drawn: 0.000 to 0.999, from the floor of the scores on."""
        grid: np.ndarray = THRESHOLDS[THRESHOLDS >= self.min_score]
        return grid if len(grid) else np.array([self.min_score])

    @cached_property
    def threshold(self) -> float:
        """Where F1 of all detections together is best; the middle, where a whole range is."""
        values = self.curve().f1(self.thresholds)
        first = int(values.argmax())
        worse = (values[first:] < values[first]).nonzero()[0]
        last = first + (int(worse[0]) if len(worse) else len(values) - first) - 1
        return float(self.thresholds[(first + last) // 2])

    @cached_property
    def _curves(self) -> dict[int | None, Curve]:
        return {label: curve(self.matches, label) for label in (None, *range(len(self.names)))}

    def curve(self, label: int | None = None) -> Curve:
        """Precision and recall at IoU 0.5 of one class; without a label of all detections together."""
        return self._curves[label]

    def ap_at_50(self, kind: str = "coco") -> float | None:
        """AP at IoU 0.5, the mean of the classes that have objects: ``coco``, ``voc`` (all points) or ``voc11``."""
        known = [ap for label in range(len(self.names)) if (ap := self.curve(label).ap(kind)) is not None]
        return float(np.mean(known)) if known else None

    def mean_precision(self) -> np.ndarray | None:
        """101: the envelope's precision at recalls 0 to 1 at IoU 0.5, the mean of the classes that have objects."""
        curves = [self.curve(label) for label in range(len(self.names))]
        known = [one.precision_at(RECALLS) for one in curves if one.objects]
        return np.mean(known, 0) if known else None

    def at(self, threshold: float | None = None) -> Operating:
        """Precision, recall and F1 at a threshold (without one at the best), from the matches at IoU 0.5."""
        threshold = self.threshold if threshold is None else threshold
        points = tuple(self.curve(label).at(threshold) for label in range(len(self.names)))
        return Operating(threshold, self.curve().at(threshold), points)

    @cached_property
    def classes(self) -> tuple[ClassScore, ...]:
        """Each class, in order."""
        points, rows = self.at().classes, []
        for label, (name, point) in enumerate(zip(self.names, points, strict=True)):
            mine = self.matches.target_label == label
            ap, ap50 = self.scores.per_class[label]
            rows.append(
                ClassScore(
                    name,
                    ap,
                    ap50,
                    *point,
                    objects=int(mine.sum()),
                    pictures=len(np.unique(self.matches.target_picture[mine])),
                    detections=int((self.matches.label == label).sum()),
                )
            )
        return tuple(rows)

    def confusion(self, threshold: float | None = None, min_iou: float = MIN_IOU) -> np.ndarray:
        """C + 1 x C + 1 counts: row what stands there, column what was found; the last of each is background.

        From a matching of its own: detections that score more than ``threshold`` (without one the best), the best
        first, each with the free object that it overlaps most, whatever its class.
        """
        threshold = self.threshold if threshold is None else threshold
        above = [_above(one, threshold) for one in self.found]
        pairs = match(self.truths, above, min_iou, any_class=True)
        background = len(self.names)
        counts = np.zeros((background + 1, background + 1), np.int64)
        stands = np.append(pairs.target_label, background)[pairs.target]  # -1, no object, is the last
        found = np.append(pairs.label, np.full(int((pairs.detection < 0).sum()), background))
        stands = np.append(stands, pairs.target_label[pairs.detection < 0])
        np.add.at(counts, (stands, found), 1)
        return counts

    def worst(self, threshold: float | None = None, count: int | None = None) -> tuple[WorstPicture, ...]:
        """The pictures with most objects missed and detections wrong at a threshold (without one the best)."""
        threshold = self.threshold if threshold is None else threshold
        count = self.worst_count if count is None else count
        matches, pictures = self.matches, len(self.paths)
        above = matches.score > threshold
        wrong = np.bincount(matches.picture[above & (matches.target < 0)], minlength=pictures)
        seen = (matches.detection >= 0) & np.append(above, False)[matches.detection]
        missed = np.bincount(matches.target_picture[~seen], minlength=pictures)
        order = np.argsort(-(missed + wrong), kind="stable")[:count]
        return tuple(
            WorstPicture(int(i), self.paths[i], len(self.truths[i].labels), int(missed[i]), int(wrong[i]))
            for i in order
            if missed[i] + wrong[i]
        )


def _above(one: PictureBoxes, threshold: float) -> PictureBoxes:
    keep = one.scores > threshold
    return PictureBoxes(one.boxes[keep], one.labels[keep], one.scores[keep])
