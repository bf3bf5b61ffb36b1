"""A run as numbers to draw: its reports gathered into series, smoothed, and thinned to what a page can hold."""

import math
from array import array
from collections.abc import Iterable, Mapping, MutableSequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from yolov9kit.training.journal import Position, read_records

STEP_SERIES = (
    "total", "box", "cls", "dfl", "learning_rate", "grad_norm", "pictures_per_s", "waiting", "memory_mib",
    "ready",
)  # fmt: skip
"""What each step has: parts of the loss a picture, and what its report says beside them."""

EPOCH_SERIES = ("ap", "ap50", "ap75", "val_total", "val_box", "val_cls", "val_dfl")
"""What each evaluation has."""

_LOSS = ("total", "box", "cls", "dfl")


@dataclass(frozen=True, eq=False)
class Series:
    """Points to draw: ``x`` steps or epochs, ``y`` the smoothed values, ``raw`` those that were reported; all float64.

    What was not finite is NaN, a gap in the line.
    """

    x: np.ndarray
    y: np.ndarray
    raw: np.ndarray


@dataclass
class _Column:
    """Values that grow, and their smoothing as far as it has been worked out."""

    values: MutableSequence[float] = field(default_factory=lambda: array("d"))
    smoothed: MutableSequence[float] = field(default_factory=lambda: array("d"))
    weight: float = 0.0
    mean: float = 0.0
    trust: float = 0.0

    def smooth(self, weight: float) -> np.ndarray:
        """Exponential smoothing without the pull of a start at zero: as Adam corrects its moments (Kingma and Ba 2015,
        section 3). A constant stays that constant, and a gap stays a gap."""
        if weight != self.weight:
            self.smoothed, self.weight, self.mean, self.trust = array("d"), weight, 0.0, 0.0
        mean, trust = self.mean, self.trust
        for value in self.values[len(self.smoothed) :]:
            if value == value:
                mean = weight * mean + (1 - weight) * value
                trust = weight * trust + (1 - weight)
                self.smoothed.append(mean / trust)
            else:
                self.smoothed.append(math.nan)
        self.mean, self.trust = mean, trust
        return np.array(self.smoothed, np.float64)


class Curves:
    """Gathers a run's reports, given as the records of its journal, in their order.

    A journal that was cut back is read anew: ``clear`` and add all of it again.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.start: Mapping[str, Any] | None = None
        self.end: Mapping[str, Any] | None = None
        self.evaluation: Mapping[str, Any] | None = None
        self.step = self.epoch = 0
        self.problems: list[tuple[int, str]] = []
        self.resumed: list[int] = []
        self._steps, self._epochs = array("d"), array("d")
        self._columns = {name: _Column() for name in (*STEP_SERIES, *EPOCH_SERIES)}
        self._best: tuple[float, int] | None = None
        self._epoch_seconds, self._evaluation_seconds = array("d"), array("d")
        self._position = Position()

    # ------------------------------------------------------------------------------------------ gathering

    def add(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take in records as ``as_record`` gives them."""
        takers = {
            "start": self._add_start,
            "step": self._add_step,
            "epoch": self._add_epoch,
            "evaluation": self._add_evaluation,
            "resumed": self._add_resumed,
            "end": self._add_end,
        }
        for record in records:
            take = takers.get(record["kind"])
            if take is not None:
                take(record)

    def update(self, folder: Path) -> bool:
        """Take in what the run of a folder has reported since the last time; whether there was anything.

        Raises:
            TrainingError: its journal cannot be read.
        """
        news = read_records(folder, self._position)
        if news.anew:
            self.clear()
        self._position = news.position
        self.add(news.records)
        return news.anew or bool(news.records)

    def _add_start(self, record: Mapping[str, Any]) -> None:
        self.start, self.end = record, None

    def _add_step(self, record: Mapping[str, Any]) -> None:
        self.end = None
        self.step, self.epoch = record["step"], record["epoch"]
        self._steps.append(record["step"])
        loss = record["loss"]
        for name in _LOSS:
            self._columns[name].values.append(math.nan if loss is None else loss[name])
        for name in STEP_SERIES[4:]:
            # journals of earlier releases have no "ready"
            value = record.get(name) if name == "ready" else record[name]
            self._columns[name].values.append(math.nan if value is None else value)
        problem = record.get("problem")
        if problem is not None:
            self.problems.append((record["step"], f"{problem['tensor']}: {problem['what']}"))

    def _add_epoch(self, record: Mapping[str, Any]) -> None:
        self._epoch_seconds.append(record["seconds"])

    def _add_evaluation(self, record: Mapping[str, Any]) -> None:
        self.evaluation = record
        self._evaluation_seconds.append(record["seconds"])
        self._epochs.append(record["epoch"])
        for name in ("ap", "ap50", "ap75"):
            self._columns[name].values.append(math.nan if record[name] is None else record[name])
        for name in _LOSS:
            self._columns[f"val_{name}"].values.append(record["loss"][name])
        if record["best"]:
            self._best = (record["ap"] or 0.0, record["epoch"])

    def _add_resumed(self, record: Mapping[str, Any]) -> None:
        self.resumed.append(record["step"])
        self.end = None

    def _add_end(self, record: Mapping[str, Any]) -> None:
        self.end = record

    # ------------------------------------------------------------------------------------------ giving out

    @property
    def best(self) -> tuple[float, int] | None:
        """AP 50-95 of the best evaluation, and its epoch."""
        return self._best

    @property
    def ready(self) -> int | None:
        """Batches that lay ready before the newest step; None before the first, and where that is not known."""
        newest = self._columns["ready"].values[-1:]
        return int(newest[0]) if newest and newest[0] == newest[0] else None

    @property
    def evaluated(self) -> int:
        """The epoch of the newest evaluation; 0 before the first."""
        return 0 if self.evaluation is None else int(self.evaluation["epoch"])

    @property
    def total_steps(self) -> int | None:
        """Steps of the whole run; None before its start is known."""
        return None if self.start is None else int(self.start["total_steps"])

    def line(self, name: str, smoothing: float = 0.0, points: int = 2000) -> Series:
        """One series, smoothed over all of its values and only then thinned to at most ``points``.

        Thinning keeps, of each stretch, the smallest and the largest reported value and the first gap: no spike gets
        lost, and no stretch hides that a step was not applied.

        Args:
            name: one of STEP_SERIES or EPOCH_SERIES.
            smoothing: the weight of what was before, 0 to below 1.
            points: at least 4.
        """
        column = self._columns[name]
        x = np.array(self._steps if name in STEP_SERIES else self._epochs, np.float64)
        raw = np.array(column.values, np.float64)
        y = column.smooth(smoothing) if smoothing else raw
        kept = thinned(raw, points)
        return Series(x[kept], y[kept], raw[kept])

    def seconds_left(self) -> float | None:
        """What the rest will take if it goes on like the last epochs; before the first, like the last steps.

        None before the first step, and for a run that has ended.
        """
        if self.start is None or self.end is not None or not self.step:
            return None
        left = max(self.start["total_steps"] - self.step, 0)
        if self._epoch_seconds:
            per_step = _middle(self._epoch_seconds[-5:]) / self.start["steps_per_epoch"]
        else:
            rates = [rate for rate in self._columns["pictures_per_s"].values[-20:] if rate > 0]
            if not rates:
                return None
            per_step = self.start["batch"] * self.start["accumulate"] / _middle(rates)
        seconds = left * per_step
        if self._evaluation_seconds:
            every = self.start["config"].get("evaluate_every", 1)
            evaluations = math.ceil(left / self.start["steps_per_epoch"] / every)
            seconds += evaluations * _middle(self._evaluation_seconds[-5:])
        return seconds


def thinned(values: np.ndarray, points: int, gaps: np.ndarray | None = None) -> np.ndarray:
    """Indices of at most ``points``, 4 or more, of N values: the ends, and of each stretch its smallest, its largest
    and its first gap.

    ``gaps``: N bool, where the line is broken; without it, where the values are NaN. With 4 points no gap is kept.
    """
    count = len(values)
    if count <= points:
        return np.arange(count)
    kinds = min(3, points - 2)
    stretches = max((points - 2) // kinds, 1)
    length = -(-count // stretches)
    padding = (0, stretches * length - count)
    padded = np.pad(values, padding, constant_values=np.nan).reshape(stretches, length)
    holes = np.pad(np.isnan(values) if gaps is None else gaps, padding).reshape(stretches, length)
    lowest = np.where(np.isnan(padded), np.inf, padded).argmin(1)
    highest = np.where(np.isnan(padded), -np.inf, padded).argmax(1)
    first_hole = np.where(holes.any(1), holes.argmax(1), lowest)
    start = np.arange(stretches) * length
    inside = np.concatenate([start + each for each in (lowest, highest, first_hole)[:kinds]])
    return np.unique(np.concatenate(([0, count - 1], inside[inside < count])))


def _middle(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
