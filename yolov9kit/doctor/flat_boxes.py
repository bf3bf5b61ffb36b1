"""All boxes of a split in a few arrays, so that checks take milliseconds whatever the number of pictures."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yolov9kit.data.dataset import Sample
from yolov9kit.data.findings import Finding, Severity


@dataclass(frozen=True, eq=False)
class FlatBoxes:
    """N boxes of all samples, sample by sample, in the order of their rows.

    Attributes:
        samples: whose boxes these are.
        boxes: N x 4 float32 xyxy, picture pixels.
        labels: N int64.
        owner: N, which sample.
        rows: N, which box of that sample.
        picture_wh: N x 2 float64, pixels.
        sides_px: N x 2 float64, width and height in pixels of the input.
    """

    samples: Sequence[Sample]
    boxes: np.ndarray
    labels: np.ndarray
    owner: np.ndarray
    rows: np.ndarray
    picture_wh: np.ndarray
    sides_px: np.ndarray

    def size(self, i: int) -> str:
        """Width and height in the picture, for people."""
        left, top, right, bottom = self.boxes[i].astype(np.float64).tolist()
        return f"{in_words(right - left)} x {in_words(bottom - top)}"

    def place(self, i: int) -> str:
        """The row of a box, for people: its line, or its number where the format has no lines."""
        line = self.line(i)
        return f"box {self.rows[i] + 1}" if line is None else f"line {line}"

    def line(self, i: int) -> int | None:
        lines = self.samples[self.owner[i]].lines
        return None if lines is None else int(lines[self.rows[i]])

    def finding(self, code: str, severity: Severity, i: int, message: str, value: str) -> Finding:
        """A finding about box ``i``: at its line, or at its picture where the format has no lines."""
        sample, line = self.samples[self.owner[i]], self.line(i)
        if line is None or sample.label_path is None:
            return Finding(code, severity, sample.path, f"{self.place(i)}: {message}", value=value)
        return Finding(code, severity, sample.label_path, message, line, value)


def in_words(pixels: float) -> str:
    """Three digits where there are fewer before the point."""
    return f"{pixels:.0f}" if pixels >= 100 else f"{pixels:.3g}"


def flatten(samples: Sequence[Sample], image_size: int) -> FlatBoxes:
    """The boxes of ``samples``; ``image_size`` is the side of the square input that pictures are scaled into."""
    counts = [len(sample.labels) for sample in samples]
    owner = np.repeat(np.arange(len(samples)), counts)
    starts = np.cumsum([0, *counts])[:-1]
    boxes = np.concatenate([np.empty((0, 4), np.float32), *(sample.boxes for sample in samples)])
    picture_wh = np.array([sample.size_wh for sample in samples], np.float64).reshape(-1, 2)
    scale = image_size / picture_wh.max(axis=1, initial=1)
    sides = (boxes[:, 2:].astype(np.float64) - boxes[:, :2]) * scale[owner, None]
    labels = np.concatenate([np.empty(0, np.int64), *(sample.labels for sample in samples)])
    rows = np.arange(len(labels)) - starts[owner]
    return FlatBoxes(samples, boxes, labels, owner, rows, picture_wh[owner], sides)
