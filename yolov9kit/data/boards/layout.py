"""The copper of a drawn board: pads, traces, buses and fills that keep their distance from each other."""

from dataclasses import dataclass

import numpy as np

from yolov9kit.data.boards.glyphs import LETTERS, text
from yolov9kit.data.boards.nets import CELL, Net, NetMap
from yolov9kit.data.boards.raster import FINE, Dice, Point, Shapes, dilate, etched, fill

_STEPS = ((1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1))
_UNITS = (14, 16, 19, 22, 26, 30, 35, 41, 48, 56, 66, 77, 90)


@dataclass(frozen=True)
class _Measures:
    """The measures that one board keeps, in sixteenths of a pixel; ``gap`` in cells of the coarse map."""

    unit: int
    trace: int
    pad: int
    hole_percent: int
    gap: int
    pad_kinds: tuple[str, ...]
    curved: bool


@dataclass(frozen=True, eq=False)
class Layout:
    """H x W bool masks: ``copper`` without its holes and before any defect, ``holes``, ``bare`` pads."""

    copper: np.ndarray
    holes: np.ndarray
    bare: np.ndarray


def lay_out(dice: Dice, width: int, height: int) -> Layout:
    """Copper for a board of ``width`` x ``height`` pixels."""
    board = _Board(dice, width, height)
    board.place_everything()
    copper, holes, bare = (
        fill(shapes, width, height)
        for shapes in (board.nets.all.copper, board.nets.all.holes, board.nets.all.bare)
    )
    if dice.chance(12):
        gap = dice.between(5, 16)
        copper |= ~dilate(copper | holes, gap)
    return Layout(etched(copper & ~holes, dice) & ~holes, holes, bare)


def _measures(dice: Dice) -> _Measures:
    unit = dice.pick(_UNITS) * FINE
    trace = max(2 * FINE, unit * dice.between(12, 34) // 100)
    return _Measures(
        unit=unit,
        trace=trace,
        pad=max(trace * 5 // 4, unit * dice.between(35, 85) // 100),
        hole_percent=dice.between(22, 60),
        gap=min(5, 1 + unit * dice.between(5, 30) // (100 * FINE * CELL)),
        pad_kinds=tuple(dice.shuffled(("round", "round", "tall", "wide", "square", "octagon", "disc"))[:3]),
        curved=dice.chance(35),
    )


class _Board:
    """A board in the making: nets are proposed, and stay where nothing else is near."""

    def __init__(self, dice: Dice, width: int, height: int) -> None:
        self.dice, self.width, self.height = dice, width * FINE, height * FINE
        self.measures = _measures(dice)
        step = dice.between(6, 12) * self.measures.unit
        repeat = dice.pick(((step, 0), (0, step))) if dice.chance(20) else None
        self.nets = NetMap(width, height, self.measures.gap, repeat)

    def place_everything(self) -> None:
        dice = self.dice
        area = self.width * self.height // self.measures.unit**2
        large = (self.bar, self.bus, self.bus, self.area, self.area, self.row, self.row, self.comb, self.bone)
        for _ in range(dice.between(0, 5)):
            dice.pick(large)()
        if dice.chance(20):
            self.label()
        others = dice.shuffled((self.route, self.row, self.area, self.area, self.bone, self.stub))
        small = (self.route, self.route, *others[: dice.between(1, 5)])
        wanted = dice.between(30, 68)
        for _ in range(min(120, max(36, area // 3))):
            dice.pick(small)()
            if self.nets.percent > wanted:
                break

    def somewhere(self) -> Point:
        """A point of the board, on a grid of half a unit."""
        half = self.measures.unit // 2
        x, y = self.dice.between(0, self.width // half), self.dice.between(0, self.height // half)
        return x * half, y * half

    def pad(self, net: Net, centre: Point, size: int) -> None:
        """A pad of one of the board's kinds, mostly drilled."""
        dice, kind = self.dice, self.dice.pick(self.measures.pad_kinds)
        x, y = centre
        shapes = Shapes()
        if kind in ("round", "disc"):
            shapes.disc(centre, size)
        elif kind == "octagon":
            cut = size * dice.between(20, 60) // 100
            shapes.polygons.append(_chamfered(x - size, y - size, x + size, y + size, (cut,) * 4))
        elif kind == "square":
            wide, high = size * dice.between(80, 160) // 100, size * dice.between(80, 120) // 100
            shapes.rectangle(x - wide, y - high, x + wide, y + high)
        else:
            reach = size * dice.between(30, 120) // 100
            across = (reach, 0) if kind == "wide" else (0, reach)
            shapes.bone((x - across[0], y - across[1]), (x + across[0], y + across[1]), size)
        net.copper.extend(shapes)
        net.bare.extend(shapes)
        if kind in ("round", "tall", "wide", "octagon") or dice.chance(30):
            net.holes.disc(centre, max(2 * FINE, size * self.measures.hole_percent // 100))

    def walk(self, start: Point, heading: int, legs: int, reach: int, least: int = 1) -> list[Point]:
        """A path of straight legs with bends of 45, seldom 90 degrees; ``least`` to ``reach`` units a leg."""
        points, unit = [start], self.measures.unit
        for _ in range(legs):
            dx, dy = _STEPS[heading % 8]
            length = self.dice.between(least, reach) * unit
            if dx and dy:
                length = length * 3 // 4
            points.append((points[-1][0] + dx * length, points[-1][1] + dy * length))
            heading += self.dice.pick((-1, 1, -1, 1, -1, 1, -2, 2))
        return points

    def route(self) -> None:
        """A pad, a trace, and mostly a pad at its end."""
        dice, measures = self.dice, self.measures
        start, heading = self.somewhere(), dice.between(0, 7)
        radius = measures.trace * dice.between(70, 220) // 100 if dice.chance(40) else measures.trace
        size = max(measures.pad * dice.between(70, 140) // 100, radius * 5 // 4)
        points = self.nets.free_legs(
            self.walk(start, heading, dice.between(1, 7), dice.between(3, 12)), radius
        )
        if len(points) < 2:
            return
        net = Net()
        net.copper.line(points, radius)
        for end, inner in ((points[0], points[1]), (points[-1], points[-2])):
            if dice.chance(85):
                self.pad(net, end, size)
                if dice.chance(25):
                    net.copper.bone(end, _towards(end, inner, size * 5 // 2), size * 9 // 10, radius)
        self.nets.add(net)

    def stub(self) -> None:
        """A test pad: a disc on a short trace, or alone."""
        net, centre = Net(), self.somewhere()
        dx, dy = self.dice.pick(_STEPS)
        size = self.measures.pad * self.dice.between(60, 130) // 100
        length = size * self.dice.between(2, 5)
        self.pad(net, centre, size)
        if self.dice.chance(60):
            end = (centre[0] + dx * length, centre[1] + dy * length)
            net.copper.bone(centre, end, self.measures.trace)
            net.copper.disc(end, size * 3 // 4)
        self.nets.add(net)

    def bone(self) -> None:
        """Two or three drilled pads that one tapered piece of copper joins, at any angle."""
        dice, net, spot = self.dice, Net(), self.somewhere()
        size = self.measures.pad * dice.between(100, 200) // 100
        for _ in range(dice.between(1, 2)):
            reach = 5 * size
            end = (spot[0] + dice.between(-reach, reach), spot[1] + dice.between(-reach, reach))
            last = size * dice.between(50, 110) // 100
            net.copper.bone(spot, end, size, last)
            for centre, radius in ((spot, size), (end, last)):
                net.holes.disc(centre, radius * self.measures.hole_percent // 100)
                net.bare.disc(centre, radius)
            spot, size = end, last
        self.nets.add(net)

    def area(self) -> None:
        """A filled piece with cut corners, some holes, and sometimes a trace that leaves it."""
        dice, unit, net = self.dice, self.measures.unit, Net()
        x, y = self.somewhere()
        wide, high = (unit * dice.between(60, 500) // 100 for _ in range(2))
        if dice.chance(40):
            wide, high = max(wide, high), min(wide, high)
        cuts = tuple(min(wide, high) * dice.pick((0, 0, 30, 60, 90)) // 100 for _ in range(4))
        net.copper.polygons.append(_chamfered(x - wide, y - high, x + wide, y + high, cuts))
        if dice.chance(30):
            net.bare.polygons.append(net.copper.polygons[-1])
        radius = max(
            3 * FINE, min(self.measures.pad * self.measures.hole_percent // 100, min(wide, high) // 3)
        )
        if min(wide, high) > 3 * radius:
            for place in range(dice.between(0, 3)):
                across = (wide * 6 // 10) * (place - 1)
                net.holes.disc((x + across, y + dice.between(-high // 3, high // 3)), radius)
        if dice.chance(60):
            reach = max(wide, high) // unit + dice.between(2, 8)
            heading = 2 * dice.between(0, 3)
            points = [
                (x, y),
                *self.walk(_ahead((x, y), heading, reach * unit), heading, dice.between(1, 4), 6),
            ]
            points = self.nets.free_legs(points, self.measures.trace)
            net.copper.line(points, self.measures.trace * dice.between(100, 200) // 100)
        self.nets.add(net)

    def row(self) -> None:
        """A row of like pads; a trace leaves each of them on one side, or none does."""
        dice, unit = self.dice, self.measures.unit
        (x, y), upright = self.somewhere(), dice.chance(50)
        step = max(
            2 * self.measures.pad + (self.measures.gap + 1) * CELL * FINE,
            unit * dice.between(150, 300) // 100,
        )
        wide, high = (self.measures.pad * dice.between(60, 220) // 100 for _ in range(2))
        wide = min(wide, (step - (self.measures.gap + 1) * CELL * FINE) // 2)
        kind = dice.pick(("flat", "flat", "pad"))
        lengths = (0,) if dice.chance(25) else tuple(dice.between(2, 9) for _ in range(dice.between(1, 3)))
        bend = dice.pick((0, -1, 1))
        for place in range(dice.between(2, 14)):
            centre = (x, y + place * step) if upright else (x + place * step, y)
            if max(centre[0] - self.width, centre[1] - self.height) > step:
                break
            net, half = Net(), (high, wide) if upright else (wide, high)
            if kind == "pad":
                self.pad(net, centre, wide)
            else:
                corners = (centre[0] - half[0], centre[1] - half[1], centre[0] + half[0], centre[1] + half[1])
                net.copper.rectangle(*corners)
                net.bare.rectangle(*corners)
            length = lengths[place % len(lengths)] * unit
            if length:
                heading = 0 if upright else 2
                path = [centre, _ahead(centre, heading, high + length)]
                path.append(_ahead(path[-1], heading + bend, dice.between(1, 3) * unit))
                traced = net.moved(0, 0)
                traced.copper.line(path, self.measures.trace)
                if self.nets.add(traced):
                    continue
            self.nets.add(net)

    def bus(self) -> None:
        """Parallel traces that bend together, from an edge of the board or from its midst."""
        dice, radius = self.dice, self.measures.trace * self.dice.between(60, 110) // 100
        radius = max(radius, 2 * FINE)
        step = 2 * radius + dice.between(5, 14) * FINE
        lines, legs = dice.between(2, 10), dice.between(1, 6)
        start, heading = self.somewhere(), dice.between(0, 3) * 2
        if dice.chance(60):
            start, heading = ((-FINE * 40, start[1]), 0) if dice.chance(50) else ((start[0], -FINE * 40), 2)
        least = 1 + 3 * lines * step // (2 * self.measures.unit)
        centre = self.nets.free_legs(self.walk(start, heading, legs, 3 * least + 9, least), lines * step // 2)
        if len(centre) < 2:
            return
        net = Net()
        for line in range(lines):
            offset = line * step - (lines - 1) * step // 2
            points = _beside(centre, offset)
            net.copper.line(points, radius)
            if step > 2 * radius + 9 * FINE and dice.chance(40):
                net.copper.disc(points[-1], radius + 2 * FINE)
        self.nets.add(net)

    def bar(self) -> None:
        """A broad band across the whole board, wider on one side."""
        dice, net, upright = self.dice, Net(), self.dice.chance(50)
        length, across = (self.height, self.width) if upright else (self.width, self.height)
        place, broad = dice.between(0, across), self.measures.unit * dice.between(30, 200) // 100
        bend = dice.between(length // 5, length)
        for start, end, more in ((-FINE, bend, 0), (bend - broad, length + FINE, dice.between(0, broad))):
            box = (start, place - broad, end, place + broad + more)
            net.copper.rectangle(*((box[1], box[0], box[3], box[2]) if upright else box))
        for _ in range(dice.between(0, 4)):
            along = dice.between(0, length)
            net.holes.disc((place, along) if upright else (along, place), max(3 * FINE, broad // 3))
        self.nets.add(net)

    def comb(self) -> None:
        """Two combs whose fingers lie between each other."""
        dice, net, upright = self.dice, Net(), self.dice.chance(50)
        x, y = self.somewhere()
        radius = self.measures.trace
        step = 2 * radius + dice.between(6, 16) * FINE
        length, fingers = self.measures.unit * dice.between(3, 9), dice.between(3, 9)
        legs = [
            ((0, 0), (0, (fingers - 1) * step)),
            ((length + step, step), (length + step, (fingers - 1) * step)),
        ]
        for finger in range(fingers):
            side = step * (finger % 2)
            legs.append(((side, finger * step), (length + side, finger * step)))
        for ends in legs:
            start, end = (((x + v, y + u) if upright else (x + u, y + v)) for u, v in ends)
            net.copper.bone(start, end, radius)
        self.nets.add(net)

    def label(self) -> None:
        """Letters etched in copper."""
        dice, net = self.dice, Net()
        words = "".join(dice.pick(LETTERS) for _ in range(dice.between(1, 5)))
        unit = dice.between(7, 16) * FINE
        pen = max(2 * FINE, unit * dice.between(15, 30) // 100)
        net.copper = text(words, *self.somewhere(), unit, pen, dice.chance(30))
        self.nets.add(net)


def _ahead(point: Point, heading: int, length: int) -> Point:
    dx, dy = _STEPS[heading % 8]
    return point[0] + dx * length, point[1] + dy * length


def _towards(start: Point, end: Point, length: int) -> Point:
    """The point ``length`` from the start on the way to the end, or the end where it is nearer."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    far = max(abs(dx), abs(dy))
    return end if far <= length else (start[0] + dx * length // far, start[1] + dy * length // far)


def _chamfered(left: int, top: int, right: int, bottom: int, cuts: tuple[int, ...]) -> tuple[Point, ...]:
    a, b, c, d = cuts
    return (
        *((left + a, top), (right - b, top), (right, top + b), (right, bottom - c)),
        *((right - c, bottom), (left + d, bottom), (left, bottom - d), (left, top + a)),
    )


def _beside(points: list[Point], offset: int) -> list[Point]:
    """The path at a distance to the left of another, with its bends of 45 and 90 degrees moved to fit."""
    moved = []
    for i, (x, y) in enumerate(points):
        before = _normal(points[max(i - 1, 0)], points[max(i, 1)])
        after = _normal(points[min(i, len(points) - 2)], points[min(i + 1, len(points) - 1)])
        across, down = before[0] + after[0], before[1] + after[1]
        scale = 1024 + (before[0] * after[0] + before[1] * after[1]) // 1024
        moved.append((x + offset * across // scale, y + offset * down // scale))
    return moved


def _normal(start: Point, end: Point) -> Point:
    """At right angles to a leg along one of the eight headings, 1024 long."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    size = 724 if dx and dy else 1024
    return (-size if dy > 0 else size if dy < 0 else 0), (size if dx > 0 else -size if dx < 0 else 0)
