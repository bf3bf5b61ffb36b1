"""Integer rasters for the drawn boards: convex shapes become pixels, the same ones on every machine.

Shapes are given in sixteenths of a pixel, so that a trace of any angle keeps its width without a float.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np

FINE = 16
"""Units of a shape's coordinates in one pixel."""

Point = tuple[int, int]
Spans = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Rows of pixels: the index of its shape, y, first x, x after the last one. Each array has one entry a row."""

_Item = TypeVar("_Item")
_FAR = 1 << 40


class Dice:
    """Random whole numbers, drawn ahead: one call of NumPy for thousands of small decisions."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._ahead: list[int] = []

    def between(self, low: int, high: int) -> int:
        """A number in low .. high, both included."""
        if not self._ahead:
            self._ahead = self._rng.integers(0, 1 << 32, 2048, dtype=np.uint32).tolist()
        return low + self._ahead.pop() % (high - low + 1)

    def many(self, count: int, after: int) -> np.ndarray:
        """``count`` numbers below ``after``, int64."""
        return self._rng.integers(0, after, count)

    def grain(self, height: int, width: int, block: int = 1) -> np.ndarray:
        """Height x width noise, uint8, equal within blocks of ``block`` x ``block`` pixels."""
        rows, columns = -(-height // block), -(-width // block)
        noise = self._rng.integers(0, 256, (rows, columns), dtype=np.uint8)
        if block == 1:
            return noise
        return np.repeat(np.repeat(noise, block, 0), block, 1)[:height, :width]

    def chance(self, percent: int) -> bool:
        return self.between(0, 99) < percent

    def pick(self, items: Sequence[_Item]) -> _Item:
        return items[self.between(0, len(items) - 1)]

    def shuffled(self, items: Sequence[_Item]) -> list[_Item]:
        return [
            item for _, _, item in sorted((self.between(0, 1 << 30), i, item) for i, item in enumerate(items))
        ]


@dataclass
class Shapes:
    """A union of convex polygons and discs, in sixteenths of a pixel; ``x, y`` runs right and down."""

    polygons: list[tuple[Point, ...]] = field(default_factory=list)
    discs: list[tuple[int, int, int]] = field(default_factory=list)

    def extend(self, other: "Shapes") -> None:
        self.polygons += other.polygons
        self.discs += other.discs

    def disc(self, centre: Point, radius: int) -> None:
        self.discs.append((*centre, radius))

    def rectangle(self, left: int, top: int, right: int, bottom: int) -> None:
        self.polygons.append(((left, top), (right, top), (right, bottom), (left, bottom)))

    def bone(self, start: Point, end: Point, radius: int, end_radius: int | None = None) -> None:
        """A line with round ends, ``2 * radius`` wide; tapered where the end has another radius."""
        last = radius if end_radius is None else end_radius
        (x, y), (u, v) = start, end
        length = math.isqrt((u - x) ** 2 + (v - y) ** 2)
        self.discs += [(x, y, radius), (u, v, last)]
        if length:
            across, down = y - v, u - x
            a, b = across * radius // length, down * radius // length
            c, d = across * last // length, down * last // length
            self.polygons.append(((x + a, y + b), (u + c, v + d), (u - c, v - d), (x - a, y - b)))

    def line(self, points: list[Point], radius: int) -> None:
        for start, end in pairwise(points):
            self.bone(start, end, radius)

    def moved(self, dx: int, dy: int) -> "Shapes":
        return Shapes(
            [tuple((x + dx, y + dy) for x, y in polygon) for polygon in self.polygons],
            [(x + dx, y + dy, r) for x, y, r in self.discs],
        )

    def spans(self, rows: int, cell: int = 1) -> list[Spans]:
        """The rows that the polygons, then the discs cover in a raster of ``rows`` rows.

        With cells of more than a pixel, every cell that a sampled row touches counts.
        """
        found = []
        if self.polygons:
            corners = max(map(len, self.polygons))
            padded = [(*polygon, *[polygon[-1]] * (corners - len(polygon))) for polygon in self.polygons]
            found.append(_polygon_spans(np.array(padded, np.int64), rows, cell))
        if self.discs:
            found.append(_disc_spans(np.array(self.discs, np.int64), rows, cell))
        return found


def fill(shapes: Shapes, width: int, height: int) -> np.ndarray:
    """Height x width bool: the pixels whose centres the shapes cover."""
    return covered(shapes.spans(height), width, height)


def covered(spans: list[Spans], columns: int, rows: int) -> np.ndarray:
    """Rows x columns bool: the cells that the spans cover."""
    edges = np.zeros(rows * (columns + 1), np.int16)
    for _, y, left, right in spans:
        start = y * (columns + 1)
        np.add.at(edges, start + between(left, 0, columns), np.int16(1))
        np.add.at(edges, start + between(right, 0, columns), np.int16(-1))
    # each row's steps add up to nothing, so that one sum runs through all of them
    return np.cumsum(edges, dtype=np.int16).reshape(rows, columns + 1)[:, :columns] > 0


def box_sum(values: np.ndarray) -> np.ndarray:
    """The sums of 3 x 3 neighbours; the outermost pixels stand for those beyond the edge. Keeps the type."""
    total = values.copy()
    total[1:] += values[:-1]
    total[:-1] += values[1:]
    total[0] += values[0]
    total[-1] += values[-1]
    result = total.copy()
    result[:, 1:] += total[:, :-1]
    result[:, :-1] += total[:, 1:]
    result[:, 0] += total[:, 0]
    result[:, -1] += total[:, -1]
    return result


def etched(mask: np.ndarray, dice: Dice) -> np.ndarray:
    """The mask with rounded corners and edges a little ragged, as etching and a scan's threshold leave them."""
    height, width = mask.shape
    smooth = box_sum(box_sum(mask.astype(np.uint8)))  # 0 .. 81
    fine, coarse = dice.between(0, 26), dice.between(0, 22)
    limit = (
        40 - (fine + coarse) // 2 + (dice.grain(height, width).astype(np.uint16) * fine >> 8).astype(np.int16)
    )
    limit += (dice.grain(height, width, dice.between(2, 7)).astype(np.uint16) * coarse >> 8).astype(np.int16)
    return smooth > limit


def between(values: np.ndarray, low: int, high: int) -> np.ndarray:
    """``values.clip(low, high)``, which costs several times as much for the short arrays here."""
    return np.minimum(np.maximum(values, low), high)


def dilate(mask: np.ndarray, radius: int) -> np.ndarray:
    """Every pixel within ``radius`` rows and columns of the mask."""
    grown, done = mask.copy(), 0
    while done < radius:
        step = min(radius - done, done + 1)
        source = grown.copy()
        grown[step:] |= source[:-step]
        grown[:-step] |= source[step:]
        source = grown.copy()
        grown[:, step:] |= source[:, :-step]
        grown[:, :-step] |= source[:, step:]
        done += step
    return grown


def _rows(
    top: np.ndarray, bottom: np.ndarray, rows: int, cell: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shape, row and its fine y for each row whose centre lies in top .. bottom."""
    size, half = FINE * cell, FINE * cell // 2
    first = between(-((half - top) // size), 0, rows)
    after = between((bottom - half) // size + 1, 0, rows)
    count = np.maximum(after - first, 0)
    owner = np.repeat(np.arange(len(top)), count)
    y = np.arange(len(owner)) + np.repeat(first - (np.cumsum(count) - count), count)
    return owner, y, y * size + half


def _columns(left: np.ndarray, right: np.ndarray, cell: int) -> tuple[np.ndarray, np.ndarray]:
    if cell == 1:
        return (left + FINE // 2 - 1) // FINE, (right + FINE // 2) // FINE
    return left // (FINE * cell), right // (FINE * cell) + 1


def _polygon_spans(points: np.ndarray, rows: int, cell: int) -> Spans:
    y = points[..., 1]
    owner, row, level = _rows(y.min(1), y.max(1), rows, cell)
    edges = np.concatenate((points, points[:, [*range(1, points.shape[1]), 0]] - points), 2)[owner]
    above, rise = level[:, None] - edges[..., 1], edges[..., 3]
    crosses = np.where(rise > 0, (above >= 0) & (above <= rise), (above <= 0) & (above >= rise) & (rise != 0))
    crossing = edges[..., 0] + edges[..., 2] * above // (rise + (rise == 0))
    left = np.where(crosses, crossing, _FAR).min(1)
    right = np.where(crosses, crossing, -_FAR).max(1)
    first, after = _columns(left, right, cell)
    return owner, row, first, np.maximum(first, after)


def _disc_spans(discs: np.ndarray, rows: int, cell: int) -> Spans:
    x, y, radius = discs.T
    owner, row, level = _rows(y - radius, y + radius, rows, cell)
    # the square root of IEEE 754 is exact to the last bit, so its whole part is the same everywhere
    half = np.sqrt((radius[owner] ** 2 - (level - y[owner]) ** 2).astype(np.float64)).astype(np.int64)
    first, after = _columns(x[owner] - half, x[owner] + half, cell)
    return owner, row, first, np.maximum(first, after)
