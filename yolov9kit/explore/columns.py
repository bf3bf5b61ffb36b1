"""The numbers of a data set as arrays: one entry for each picture, one for each box."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yolov9kit.explore.filter import LARGE_PX, SMALL_PX
from yolov9kit.explore.item import Entry

GRID = 16
_SIDE_BINS = 2  # an octave: edges at 1, 1.41, 2, 2.83 ... pixels
_ASPECT_BINS = 4  # an octave, on each side of the square


@dataclass(frozen=True, eq=False)
class Columns:
    """P pictures and B boxes in the order of the pictures.

    Attributes:
        split: P, number of the split.
        picture_px: P, pixels of the picture; 0 where it cannot be read.
        boxes: P, how many boxes it has.
        picture: B, the picture of each box.
        label: B, its class.
        side_px: B, square root of its area in pixels of the picture.
        size: B, 0 small, 1 medium, 2 large.
        aspect: B, log2 of width by height.
        cell: B, in which of 16 x 16 cells of the picture its centre lies, row by row.
    """

    split: np.ndarray
    picture_px: np.ndarray
    boxes: np.ndarray
    picture: np.ndarray
    label: np.ndarray
    side_px: np.ndarray
    size: np.ndarray
    aspect: np.ndarray
    cell: np.ndarray

    def side_edges(self) -> np.ndarray:
        """Edges of the bins of ``side_px``, for all boxes: those of a selection stand in the same ones."""
        low, high = _whole_octaves(np.log2(self.side_px), 0, 10)
        edges: np.ndarray = 2.0 ** np.linspace(low, high, (high - low) * _SIDE_BINS + 1)
        return edges

    def aspect_edges(self) -> np.ndarray:
        """Edges of the bins of ``aspect``, for all boxes, the square in the middle."""
        low, high = _whole_octaves(self.aspect, -2, 2)
        reach = max(-low, high)
        return np.linspace(-reach, reach, 2 * reach * _ASPECT_BINS + 1)


def columns(entries: Sequence[Entry]) -> Columns:
    """The arrays of these pictures."""
    counts = np.array([len(entry.labels) for entry in entries], np.int64)
    wh = np.array([entry.size_wh for entry in entries], np.float64).reshape(-1, 2)
    picture = np.repeat(np.arange(len(entries)), counts)
    box = np.concatenate([np.empty((0, 4)), *(entry.boxes for entry in entries)]).astype(np.float64)
    label = np.concatenate([np.empty(0, np.int64), *(entry.labels for entry in entries)])
    width, height = (box[:, 2:] - box[:, :2]).clip(min=1e-3).T
    side = np.sqrt(width * height)
    centre = (box[:, :2] + box[:, 2:]) / 2 / wh[picture].clip(min=1)
    column, row = (centre * GRID).astype(np.int64).clip(0, GRID - 1).T
    return Columns(
        split=np.array([entry.split for entry in entries], np.int64),
        picture_px=wh.prod(1),
        boxes=counts,
        picture=picture,
        label=label,
        side_px=side,
        size=(side >= SMALL_PX).astype(np.int64) + (side > LARGE_PX),
        aspect=np.log2(width / height),
        cell=row * GRID + column,
    )


def histogram(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Counts of values that all lie between the edges: int64, one less than edges."""
    places = np.searchsorted(edges, values, "right") - 1
    return np.bincount(places.clip(0, len(edges) - 2), minlength=len(edges) - 1)


def _whole_octaves(exponents: np.ndarray, low: int, high: int) -> tuple[int, int]:
    """Whole numbers around all values, and at least so far apart."""
    if not len(exponents):
        return low, high
    return min(low, int(np.floor(exponents.min()))), max(high, int(np.ceil(exponents.max())))
