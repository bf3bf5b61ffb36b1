"""Six kinds of defect on drawn copper: each one changes how the copper hangs together as its name says."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import cv2
import numpy as np

from yolov9kit.data.boards.layout import Layout
from yolov9kit.data.boards.raster import FINE, Dice, Point, Shapes, dilate, fill

BOARD_NAMES = ("open", "short", "mousebite", "spur", "copper", "pin-hole")

_OPEN, _SHORT, _BITE, _SPUR, _COPPER, _PIN_HOLE = range(6)
_REMOVES = (_OPEN, _BITE, _PIN_HOLE)
_REACH = 46  # pixels: the widest trace that is cut and the widest gap that is bridged
_AROUND = 14  # pixels around a defect in which its effect is looked at
_PIECE = 24  # pixels: smaller pieces of copper or ground are crumbs of the outline
_FROM_EDGE = 6  # pixels of the picture around every defect
_TRIES = 14
_AHEAD = np.arange(_REACH + 1)
_COMPASS = np.array([(0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1)])  # dy, dx


@dataclass(frozen=True)
class Defect:
    """``label`` indexes BOARD_NAMES; first and last changed column and row, the last included."""

    label: int
    left: int
    top: int
    right: int
    bottom: int

    def near(self, other: "Defect", distance: int) -> bool:
        return (
            self.left - distance <= other.right
            and other.left - distance <= self.right
            and self.top - distance <= other.bottom
            and other.top - distance <= self.bottom
        )


def add_defects(dice: Dice, layout: Layout, count: int, distance: int) -> tuple[np.ndarray, list[Defect]]:
    """Copper with up to ``count`` defects of mixed kinds, H x W bool, and where they are.

    No kind comes again before all had their turn. ``distance``: pixels between changed pixels of two defects.
    Fewer where the board has no room, such as for a short where no two nets are near.
    """
    scene = _Scene(dice, layout, distance)
    kinds = dice.shuffled(range(len(BOARD_NAMES))) + dice.shuffled(range(len(BOARD_NAMES)))
    missing = 0
    for kind in sorted(kinds[:count], key=lambda kind: kind != _SHORT):  # shorts need the rarest places
        missing += not scene.add(kind)
    for kind in dice.shuffled(range(len(BOARD_NAMES))) * 2:
        if missing and scene.add(kind):
            missing -= 1
    return scene.copper, scene.defects


class _Scene:
    """A board while defects are put on it."""

    def __init__(self, dice: Dice, layout: Layout, distance: int) -> None:
        self.dice, self.distance = dice, distance
        self.copper, self.holes = layout.copper.copy(), layout.holes
        self.height, self.width = self.copper.shape
        self.nets = cv2.connectedComponents(self.copper.astype(np.uint8), connectivity=8)[1]
        self.defects: list[Defect] = []
        self._edges = self._find_edges(16 * 1024)

    def _find_edges(self, samples: int) -> np.ndarray:
        """N x 3: row and column of copper pixels at an edge, and the compass point that leads into the copper."""
        place = self.dice.many(samples, self.copper.size)
        y, x = place // self.width, place % self.width
        found = []
        for point in (0, 2, 4, 6):
            dy, dx = _COMPASS[point]
            v, u = y - dy, x - dx
            inside = (v >= 0) & (v < self.height) & (u >= 0) & (u < self.width)
            edge = inside & self.copper[y, x]
            edge[edge] = ~self.copper[v[edge], u[edge]]
            found.append(np.stack((y[edge], x[edge], np.full(edge.sum(), point)), 1))
        edges = np.concatenate(found)
        return edges[np.argsort(self.dice.many(len(edges), 1 << 40), kind="stable")]

    def runs(self, y: int, x: int, point: int) -> tuple[int, int]:
        """Pixels of copper from an edge inwards, and of ground outwards, along a compass point; up to _REACH + 1.

        What lies outside the picture counts as more of the same: nobody sees a trace end there.
        """
        dy, dx = (int(step) for step in _COMPASS[point])
        return self._run(y, x, dy, dx, True), self._run(y - dy, x - dx, -dy, -dx, False)

    def _run(self, y: int, x: int, dy: int, dx: int, copper: bool) -> int:
        v, u = y + dy * _AHEAD, x + dx * _AHEAD
        outside = (v < 0) | (v >= self.height) | (u < 0) | (u >= self.width)
        goes_on = outside | (self.copper[v % self.height, u % self.width] == copper)
        return len(_AHEAD) if goes_on.all() else int(goes_on.argmin())

    def add(self, kind: int) -> bool:
        """Tries some places; False where none of them took the defect."""
        for _ in range(_TRIES):
            shapes = self._inside(kind) if kind in (_COPPER, _PIN_HOLE) else self._at_an_edge(kind)
            if shapes is not None and self._stamp(kind, shapes):
                return True
        return False

    def _inside(self, kind: int) -> Shapes | None:
        """A speck in the midst of the ground or of the copper."""
        for _ in range(12):
            x, y = self.dice.between(6, max(6, self.width - 7)), self.dice.between(6, max(6, self.height - 7))
            x, y = min(x, self.width - 1), min(y, self.height - 1)
            if self.copper[y, x] == (kind == _PIN_HOLE) and not self.holes[y, x]:
                return speck(self.dice, (x * FINE, y * FINE))
        return None

    def _at_an_edge(self, kind: int) -> Shapes | None:
        """A stroke that starts at an edge: across the copper, across the ground, or some way into one of them."""
        dice = self.dice
        if not len(self._edges):
            return None
        y, x, inwards = (int(value) for value in self._edges[dice.between(0, len(self._edges) - 1)])
        options = [(point % 8, *self.runs(y, x, point % 8)) for point in (inwards - 1, inwards, inwards + 1)]
        if kind in (_OPEN, _SHORT):
            point, inner, outer = min(options, key=lambda option: option[1 if kind == _OPEN else 2])
            length = inner if kind == _OPEN else outer
            if length > _REACH:
                return None
        else:
            point, inner, outer = dice.pick(options)
            room = (inner if kind == _BITE else outer) - 3
            length = min(dice.between(5, 26), room)
            if length < 3:
                return None
        dy, dx = (int(step) for step in _COMPASS[point])
        if kind in (_SHORT, _SPUR):
            y, x, dy, dx = y - dy, x - dx, -dy, -dx
        past = 2 if kind in (_OPEN, _SHORT) else 0
        start = ((x - 2 * dx) * FINE, (y - 2 * dy) * FINE)
        end = ((x + (length - 1 + past) * dx) * FINE, (y + (length - 1 + past) * dy) * FINE)
        return stroke(dice, start, end, blunt=kind in (_BITE, _SPUR))

    def _in_full_view(self, defect: Defect) -> bool:
        """What the edge of the picture cuts off, or hides the surroundings of, is not told from a flawless end."""
        return (
            min(defect.left, defect.top) >= _FROM_EDGE
            and defect.right < self.width - _FROM_EDGE
            and defect.bottom < self.height - _FROM_EDGE
        )

    def _stamp(self, kind: int, shapes: Shapes) -> bool:
        """Puts a defect on the copper if it does there what its name says."""
        left, top, right, bottom = _bounds(shapes, _AROUND, self.width, self.height)
        if left >= right or top >= bottom:
            return False
        mask = fill(shapes.moved(-left * FINE, -top * FINE), right - left, bottom - top)
        mask = frayed(self.dice, mask)
        window = np.s_[top:bottom, left:right]
        before, holes = self.copper[window], self.holes[window]
        changed = mask & (before if kind in _REMOVES else ~before)
        if np.count_nonzero(changed) < 20:
            return False
        rows, columns = np.flatnonzero(changed.any(1)), np.flatnonzero(changed.any(0))
        defect = Defect(
            kind,
            *(left + int(columns[0]), top + int(rows[0])),
            *(left + int(columns[-1]), top + int(rows[-1])),
        )
        if not self._in_full_view(defect) or any(defect.near(other, self.distance) for other in self.defects):
            return False
        if not _KEEPS_ITS_WORD[kind](before, changed, holes, self.nets[window]):
            return False
        self.copper[window] = before ^ changed
        self.defects.append(defect)
        return True


def stroke(dice: Dice, start: Point, end: Point, blunt: bool) -> Shapes:
    """A brush stroke that wanders a little and changes its width; ``blunt`` ones may be short and round."""
    shapes, radius = Shapes(), dice.between(24, 80) if dice.chance(85) else dice.between(80, 130)
    if blunt and dice.chance(25):
        radius = dice.between(60, 130)
        shapes.disc(((start[0] + end[0]) // 2, (start[1] + end[1]) // 2), radius)
        return shapes
    sway = dice.between(0, max(abs(end[0] - start[0]), abs(end[1] - start[1])) // 3)
    points, parts = [start], dice.between(1, 4)
    for part in range(1, parts):
        x = start[0] + (end[0] - start[0]) * part // parts + dice.between(-sway, sway)
        y = start[1] + (end[1] - start[1]) * part // parts + dice.between(-sway, sway)
        points.append((x, y))
    slant = dice.between(-sway, sway)
    points.append((end[0] + slant, end[1] - slant))
    for first, second in pairwise(points):
        wider = max(16, radius * dice.between(60, 140) // 100)
        shapes.bone(first, second, radius, wider)
        radius = wider
    return shapes


def speck(dice: Dice, centre: Point) -> Shapes:
    """An irregular spot: a few discs in a heap, or a short stroke with a bend."""
    shapes, (x, y) = Shapes(), centre
    if dice.chance(45):
        size = dice.between(54, 150)
        for _ in range(dice.between(1, 4)):
            spot = (x + dice.between(-size, size), y + dice.between(-size, size))
            shapes.bone(centre, spot, size * dice.between(50, 100) // 100, size * dice.between(40, 90) // 100)
        return shapes
    points, reach = [centre], dice.between(80, 280)
    for _ in range(dice.between(1, 3)):
        points.append(
            (points[-1][0] + dice.between(-reach, reach), points[-1][1] + dice.between(-reach, reach))
        )
    radius = dice.between(28, 84)
    for first, second in pairwise(points):
        last = max(16, radius * dice.between(60, 150) // 100)
        shapes.bone(first, second, radius, last)
        radius = last
    return shapes


def frayed(dice: Dice, mask: np.ndarray) -> np.ndarray:
    """The mask with its rim nibbled at, or with a screen of dots, as a scan's threshold leaves thin marks."""
    if dice.chance(12):
        y, x = np.ogrid[: mask.shape[0], : mask.shape[1]]
        return mask & ~((y % 3 == 0) & ((x + y // 3) % dice.between(2, 3) == 0))
    if dice.chance(60):
        rim = mask & dilate(~mask, 1)
        return mask & ~(rim & (dice.grain(*mask.shape) < dice.between(30, 110)))
    return mask


def _bounds(shapes: Shapes, around: int, width: int, height: int) -> tuple[int, int, int, int]:
    """Pixels that hold the shapes with some space around, within the picture."""
    left = min(x - r for x, _, r in shapes.discs) // FINE - around
    top = min(y - r for _, y, r in shapes.discs) // FINE - around
    right = max(x + r for x, _, r in shapes.discs) // FINE + 1 + around
    bottom = max(y + r for _, y, r in shapes.discs) // FINE + 1 + around
    return max(left, 0), max(top, 0), min(right, width), min(bottom, height)


def pieces(mask: np.ndarray, touched: np.ndarray, connectivity: int) -> int:
    """How many connected pieces of the mask, crumbs aside, touch a set of pixels."""
    _, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=connectivity)
    found = np.unique(labels[dilate(touched, 1) & mask])
    return int(np.count_nonzero(stats[found, cv2.CC_STAT_AREA] >= _PIECE))


def _is_open(before: np.ndarray, changed: np.ndarray, holes: np.ndarray, nets: np.ndarray) -> bool:
    """One trace falls in two, or the ring around a hole is cut through."""
    if pieces(before, changed, 8) != 1:
        return False
    after = before & ~changed
    if pieces(after, changed, 8) == 2:
        return True
    cuts_through = pieces(~before, changed, 4) == 2 and pieces(~after, changed, 4) == 1
    return cuts_through and bool((dilate(changed, 1) & holes).any())


def _is_short(before: np.ndarray, changed: np.ndarray, holes: np.ndarray, nets: np.ndarray) -> bool:
    """Two nets that nothing else joins become one."""
    joined = np.unique(nets[dilate(changed, 1) & before])
    return len(joined) == 2 and not (dilate(changed, 2) & holes).any() and _joins(before, changed)


def _joins(before: np.ndarray, changed: np.ndarray) -> bool:
    return pieces(before, changed, 8) == 2 and pieces(before | changed, changed, 8) == 1


def _is_bite(before: np.ndarray, changed: np.ndarray, holes: np.ndarray, nets: np.ndarray) -> bool:
    after = before & ~changed
    return pieces(after, changed, 8) == pieces(~before, changed, 4) == pieces(~after, changed, 4) == 1


def _is_spur(before: np.ndarray, changed: np.ndarray, holes: np.ndarray, nets: np.ndarray) -> bool:
    if (dilate(changed, 3) & holes).any() or pieces(before, dilate(changed, 2), 8) != 1:
        return False
    after = before | changed
    return pieces(before, changed, 8) == pieces(after, changed, 8) == pieces(~after, changed, 4) == 1


def _is_copper(before: np.ndarray, changed: np.ndarray, holes: np.ndarray, nets: np.ndarray) -> bool:
    return not (dilate(changed, 4) & (before | holes)).any()


def _is_pin_hole(before: np.ndarray, changed: np.ndarray, holes: np.ndarray, nets: np.ndarray) -> bool:
    return not (dilate(changed, 3) & ~before).any()


_Check = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], bool]
_KEEPS_ITS_WORD: tuple[_Check, ...] = (_is_open, _is_short, _is_bite, _is_spur, _is_copper, _is_pin_hole)
