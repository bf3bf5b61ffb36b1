"""Nets of a drawn board, and the coarse map that keeps them apart."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from yolov9kit.data.boards.raster import Point, Shapes, Spans, between, covered, dilate

CELL = 4
"""Pixels of a cell of the map: no trace is thinner."""


@dataclass
class Net:
    """What is etched as one piece: ``copper``, the ``holes`` drilled through it, and the ``bare`` (unmasked) pads."""

    copper: Shapes = field(default_factory=Shapes)
    holes: Shapes = field(default_factory=Shapes)
    bare: Shapes = field(default_factory=Shapes)

    def extend(self, other: "Net") -> None:
        self.copper.extend(other.copper)
        self.holes.extend(other.holes)
        self.bare.extend(other.bare)

    def moved(self, dx: int, dy: int) -> "Net":
        return Net(self.copper.moved(dx, dy), self.holes.moved(dx, dy), self.bare.moved(dx, dy))


class NetMap:
    """What is etched so far: ``all`` of it. Nets are proposed, and stay where nothing else is near.

    Args:
        gap: cells between two nets.
        repeat: in sixteenths of a pixel, the step by which a board repeats itself; None where it does not.
    """

    def __init__(self, width: int, height: int, gap: int, repeat: Point | None) -> None:
        self.all = Net()
        rows, columns = -(-height // CELL), -(-width // CELL)
        self._near = np.zeros((rows, columns), bool)
        self._counts = np.zeros((rows, columns + 1), np.int32)
        self._covered, self._gap, self._repeat = 0, gap, repeat

    @property
    def percent(self) -> int:
        """How much of the board is copper, about."""
        return 100 * self._covered // self._near.size

    def _coarse(self, shapes: Shapes) -> list[Spans]:
        return shapes.spans(self._near.shape[0], CELL)

    def _blocked(self, spans: Spans) -> np.ndarray:
        """For each span: whether something is too near."""
        _, y, left, right = spans
        columns = self._near.shape[1]
        return self._counts[y, between(right, 0, columns)] > self._counts[y, between(left, 0, columns)]

    def add(self, net: Net) -> bool:
        """Etches a net if it is in sight and keeps its distance, and its copies where the board repeats itself."""
        if not self._etch(net):
            return False
        if self._repeat is not None:
            dx, dy = self._repeat
            for times in (-2, -1, 1, 2):
                self._etch(net.moved(dx * times, dy * times))
        return True

    def _etch(self, net: Net) -> bool:
        spans = self._coarse(net.copper)
        if any(self._blocked(part).any() for part in spans):
            return False
        gap, (rows, columns) = self._gap, self._near.shape
        top = max(min(int(y.min(initial=rows)) for _, y, _, _ in spans) - gap, 0)
        bottom = min(max(int(y.max(initial=-1)) for _, y, _, _ in spans) + 1 + gap, rows)
        if top >= bottom:
            return False
        cells = covered(
            [(owner, y - top, left, right) for owner, y, left, right in spans], columns, bottom - top
        )
        count = int(np.count_nonzero(cells))
        if not count:
            return False
        self._covered += count
        self._near[top:bottom] |= dilate(cells, gap)
        np.cumsum(self._near[top:bottom], axis=1, out=self._counts[top:bottom, 1:])
        self.all.extend(net)
        return True

    def free_legs(self, points: list[Point], radius: int) -> list[Point]:
        """The path up to its first leg that comes too near to something."""
        legs = Shapes()
        for start, end in pairwise(points):
            legs.bone(start, end, radius)
        spans = self._coarse(Shapes(legs.polygons))[0]
        hits = spans[0][self._blocked(spans)]
        return points[: int(hits[0]) + 1] if len(hits) else points
