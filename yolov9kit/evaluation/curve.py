"""Precision and recall of detections by their score, and the three kinds of AP that are read from it."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from yolov9kit.errors import UsageError
from yolov9kit.evaluation.matching import Matches

KINDS = ("coco", "voc", "voc11")
RECALLS = np.linspace(0, 1, 101)
"""COCO's."""


class Point(NamedTuple):
    """At one threshold. ``precision`` is None without a detection, ``recall`` and ``f1`` without an object."""

    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True, eq=False)
class Curve:
    """Detections of one class (or of all) by falling score, at the IoU of their matching.

    ``score`` n, ``right`` n bools: whether it matched an object. ``objects``: how many there are.
    """

    score: np.ndarray
    right: np.ndarray
    objects: int

    @cached_property
    def hits(self) -> np.ndarray:
        """n + 1: how many of the first k detections are right."""
        return np.concatenate(([0], np.cumsum(self.right)))

    @property
    def precision(self) -> np.ndarray:
        """n, of the detections up to each."""
        each: np.ndarray = self.hits[1:] / np.arange(1, len(self.score) + 1)
        return each

    @property
    def recall(self) -> np.ndarray:
        """n, of the detections up to each; all NaN where there is no object."""
        each: np.ndarray = self.hits[1:] / (self.objects or np.nan)
        return each

    def counts(self, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How many detections score more than each threshold, and how many of them are right."""
        kept = np.searchsorted(
            -self.score.astype(np.float64), -np.asarray(thresholds, np.float64), side="left"
        )
        return kept, self.hits[kept]

    def at(self, threshold: float) -> Point:
        """Of the detections that score more than ``threshold``."""
        kept, right = (int(n[0]) for n in self.counts(np.array([threshold])))
        return Point(
            right / kept if kept else None,
            right / self.objects if self.objects else None,
            2 * right / (kept + self.objects) if self.objects else None,
        )

    def f1(self, thresholds: np.ndarray) -> np.ndarray:
        """F1 at each threshold, 0 where nothing is right."""
        kept, right = self.counts(thresholds)
        values: np.ndarray = 2 * right / np.maximum(kept + self.objects, 1)
        return values

    def ap(self, kind: str = "coco") -> float | None:
        """Average precision at this IoU; None where there is no object.

        ``coco``: precision at 101 recalls. ``voc``: the area under the curve (all points, VOC since 2010). ``voc11``:
        precision at 11 recalls (VOC 2007). Always of the envelope: the best precision at that recall or a higher one.
        """
        if kind not in KINDS:
            raise UsageError(f"AP {kind!r}: there are {', '.join(KINDS)}")
        if not self.objects:
            return None
        if kind == "voc":
            return float((np.diff(self.recall, prepend=0.0) * self._envelope[:-1]).sum())
        return float(self.precision_at(RECALLS if kind == "coco" else np.arange(11) / 10).mean())

    @cached_property
    def _envelope(self) -> np.ndarray:
        """n + 1: the best precision from each detection on, and 0 beyond the last."""
        best = np.maximum.accumulate(self.precision[::-1])[::-1]
        return np.append(best, 0.0)

    def precision_at(self, recalls: np.ndarray) -> np.ndarray:
        """The envelope at each recall, 0 where it is not reached. Only where there are objects."""
        values: np.ndarray = self._envelope[np.searchsorted(self.recall, recalls, side="left")]
        return values


def curve(matches: Matches, label: int | None = None) -> Curve:
    """The curve of one class; without a label that of all detections together."""
    mine = np.ones(len(matches.label), bool) if label is None else matches.label == label
    objects = len(matches.target_label) if label is None else int((matches.target_label == label).sum())
    order = np.argsort(-matches.score[mine], kind="stable")
    return Curve(matches.score[mine][order], matches.target[mine][order] >= 0, objects)
