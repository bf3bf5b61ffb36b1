"""Faults of rows and of label files."""

import random
from collections.abc import Callable

from tests.doctor.drawn_set import Drawn, DrawnSet, Row, drawn, encoded
from tests.doctor.planting import Planter, added, fresh_seed, open_one, split_without, untouched


def _bad_row(code: str, text: Callable[[random.Random], str]) -> Planter:
    """A row that stands alone: ``text`` makes it."""

    def plant(whole: DrawnSet, dice: random.Random) -> bool:
        one = open_one(whole, dice)
        if one is None or one.rows is None:
            return False
        row = one.insert(Row(text(dice)), dice.randint(0, len(one.rows)))
        whole.expect_row(code, one, row)
        return True

    return plant


def box_somewhere(dice: random.Random, label: int | str = 0) -> str:
    """A row somewhere in the middle, 6 to 15 % of the picture wide and high."""
    place, size = (round(dice.uniform(0.3, 0.7), 6), round(dice.uniform(0.06, 0.15), 6))
    return f"{label} {place} {round(dice.uniform(0.3, 0.7), 6)} {size} {round(dice.uniform(0.06, 0.15), 6)}"


def _columns(dice: random.Random) -> str:
    return dice.choice(
        ["0 0.5 0.5 0.2", box_somewhere(dice) + " 0.9", "0,0.5,0.5,0.2,0.1", "1", "0 .1 .2 .3 .4 .5 .6 .7"]
    )


def _number(dice: random.Random) -> str:
    columns = box_somewhere(dice).split()
    columns[dice.randrange(5)] = dice.choice(["nan", "inf", "x", "1_0", "0,5", "--"])
    return " ".join(columns)


def _outside(dice: random.Random) -> str:
    columns = box_somewhere(dice).split()
    columns[dice.randrange(1, 5)] = dice.choice(["1.07", "-0.05", "1.9"])
    return " ".join(columns)


def _clipped(dice: random.Random) -> str:
    return f"{dice.randrange(3)} {dice.choice(['0.02', '0.97'])} {dice.uniform(0.3, 0.7):.6f} 0.2 0.15"


def _tiny(dice: random.Random) -> str:
    """Under 2 pixels at an input of 640: under 0.3 pixels of a picture of 96 x 72."""
    sides = ["0.002", f"{dice.uniform(0.1, 0.2):.6f}"]
    dice.shuffle(sides)
    return f"{dice.randrange(3)} {dice.uniform(0.3, 0.7):.6f} {dice.uniform(0.3, 0.7):.6f} {' '.join(sides)}"


def _without_area(dice: random.Random) -> str:
    columns = box_somewhere(dice).split()
    columns[dice.choice([3, 4])] = "0"
    return " ".join(columns)


def _repeat(code: str, again: Callable[[random.Random, Row], Row]) -> Planter:
    """A row behind the one that it repeats in some way."""

    def plant(whole: DrawnSet, dice: random.Random) -> bool:
        one = open_one(whole, dice)
        rows = [] if one is None or one.rows is None else [row for row in one.rows if row not in one.used]
        if one is None or one.rows is None or not rows:
            return False
        first = dice.choice(rows)
        one.used.add(first)
        row = one.insert(again(dice, first), dice.randint(one.rows.index(first) + 1, len(one.rows)))
        whole.expect_row(code, one, row)
        return True

    return plant


def _shifted(_dice: random.Random, row: Row) -> Row:
    """A little towards the middle, so that it does not reach out of the picture."""
    assert row.box is not None
    label, cx, cy, w, h = row.box
    return Row.of(label, cx + 0.01 * w * (-1 if cx > 0.5 else 1), cy, w, h * 0.99)


def _other_class(dice: random.Random, row: Row) -> Row:
    assert row.box is not None
    label, *box = row.box
    return Row.of((label + dice.choice([1, 2])) % 3, *box)


def _huge(whole: DrawnSet, dice: random.Random) -> bool:
    one = open_one(whole, dice)
    if one is None or one.rows is None or not whole.once("box_huge", one.stem):
        return False
    row = one.insert(Row(f"{dice.randrange(3)} 0.5 0.5 0.99 0.985"), dice.randint(0, len(one.rows)))
    whole.expect_row("box_huge", one, row)
    return True


# --------------------------------------------------------------------------------------- label files


def _polygon(row: Row) -> Row:
    """A pentagon in the same box."""
    assert row.box is not None
    label, cx, cy, w, h = row.box
    left, top, right, bottom = cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2
    points = [(cx, top), (right, cy), (right - w / 5, bottom), (left + w / 5, bottom), (left, cy)]
    return Row(f"{label} " + " ".join(f"{x:.6f} {y:.6f}" for x, y in points), row.box)


def _polygons(whole: DrawnSet, dice: random.Random, mixed: bool = False) -> bool:
    one = untouched(whole, dice, split_without(whole, dice, "oriented"))
    if one is None or one.rows is None:
        return False
    whole.once("polygons", one.split)
    kept = dice.randint(1, len(one.rows) - 1) if mixed else 0
    one.rows = [row if i < kept else _polygon(row) for i, row in enumerate(one.rows)]
    for code in ("label_polygons", "label_mixed") if mixed else ("label_polygons",):
        whole.expect(code, lambda: one.label)
    return True


def _mixed(whole: DrawnSet, dice: random.Random) -> bool:
    return _polygons(whole, dice, mixed=True)


def _oriented(whole: DrawnSet, dice: random.Random) -> bool:
    """Squares on their tips in one file."""
    split = split_without(whole, dice, "polygons")
    if ("oriented", split) in whole.happened:
        return False
    one = untouched(whole, dice, split)
    if one is None or one.rows is None:
        return False
    whole.once("oriented", one.split)
    rows = []
    for row in one.rows:
        assert row.box is not None
        label, cx, cy, w, h = row.box
        points = [(cx, cy - h / 2), (cx + w / 2, cy), (cx, cy + h / 2), (cx - w / 2, cy)]
        rows.append(Row(f"{label} " + " ".join(f"{x:.6f} {y:.6f}" for x, y in points), row.box))
    one.rows = rows
    whole.expect_row("label_oriented", one, rows[0])
    return True


def _points(whole: DrawnSet, dice: random.Random) -> bool:
    one = untouched(whole, dice, split_without(whole, dice, "points"))
    if one is None or one.rows is None:
        return False
    whole.once("points", one.split)
    at = dice.randrange(len(one.rows))
    row = Row(one.rows[at].text + " 0.4 0.5 2", one.rows[at].box)
    one.rows[at] = row
    whole.expect_row("label_points", one, row)
    return True


def _not_utf8(whole: DrawnSet, dice: random.Random) -> bool:
    one = untouched(whole, dice)
    if one is None:
        return False
    one.labels = b"0 0.5 0.5 0.2 0.1 # \xff\n"
    whole.expect("label_file", lambda: one.label)
    return True


def _missing(whole: DrawnSet, dice: random.Random) -> bool:
    one = untouched(whole, dice)
    if one is None:
        return False
    one.rows = None
    if whole.once("label_missing", one.split):
        shares = [*whole.pictures]
        whole.expect(
            "label_missing",
            lambda: next(p.picture for p in whole.of(one.split) if p.rows is None and not _shared(shares, p)),
        )
    return True


def _shared(pictures: list[Drawn], one: Drawn) -> bool:
    return any(other is not one and other.label == one.label for other in pictures)


def _empty(whole: DrawnSet, dice: random.Random) -> bool:
    one = untouched(whole, dice)
    if one is None:
        return False
    one.rows = []
    if whole.once("label_empty", one.split):
        whole.expect("label_empty", lambda: next(p.label for p in whole.of(one.split) if p.rows == []))
    return True


def _beside(whole: DrawnSet, dice: random.Random) -> bool:
    one = untouched(whole, dice)
    if one is None:
        return False
    one.beside = True
    if whole.once("label_beside", one.split):
        whole.expect("label_beside", lambda: next(p.label for p in whole.of(one.split) if p.beside))
    return True


def _orphan(whole: DrawnSet, dice: random.Random) -> bool:
    path = f"labels/{dice.choice(['train', 'val'])}/gone {dice.randrange(10**6)}.txt"
    whole.files[path] = b"0 0.5 0.5 0.2 0.1\n"
    whole.expect("label_orphan", path)
    return True


def _shared_label(whole: DrawnSet, dice: random.Random) -> bool:
    """A picture of the same stem with another suffix."""
    one = untouched(whole, dice)
    if one is None:
        return False
    other = added(whole, dice, drawn(one.split, fresh_seed(whole, dice), one.stem, ".bmp"))
    other.data, other.rows = encoded(other.pixels, "BMP"), None

    def later() -> str:
        return max((one, other), key=whole.of(one.split).index).picture

    whole.expect("label_shared", later)
    return True


ROW_FAULTS: dict[str, Planter] = {
    "label_columns": _bad_row("label_columns", _columns),
    "label_number": _bad_row("label_number", _number),
    "label_class": _bad_row("label_class", lambda dice: box_somewhere(dice, dice.choice(["0.5", "1.25"]))),
    "label_class_range": _bad_row(
        "label_class_range", lambda dice: box_somewhere(dice, dice.choice(["99", "-1"]))
    ),
    "label_outside": _bad_row("label_outside", _outside),
    "label_pixels": _bad_row(
        "label_pixels", lambda dice: f"{dice.randrange(3)} 40 {dice.randint(20, 50)} 12 9"
    ),
    "label_no_area": _bad_row("label_no_area", _without_area),
    "label_clipped": _bad_row("label_clipped", _clipped),
    "box_tiny": _bad_row("box_tiny", _tiny),
    "box_huge": _huge,
    "label_repeated": _repeat("label_repeated", lambda dice, row: Row(row.text.replace(" ", "  "))),
    "label_near_repeat": _repeat("label_near_repeat", _shifted),
    "label_conflict": _repeat("label_conflict", _other_class),
    "label_polygons": _polygons,
    "label_mixed": _mixed,
    "label_oriented": _oriented,
    "label_points": _points,
    "label_file": _not_utf8,
    "label_missing": _missing,
    "label_empty": _empty,
    "label_beside": _beside,
    "label_orphan": _orphan,
    "label_shared": _shared_label,
}
