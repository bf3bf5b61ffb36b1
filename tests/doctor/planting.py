"""What planters of faults share: where there is room for one."""

import random
from collections.abc import Callable

from tests.doctor.drawn_set import Drawn, DrawnSet

Planter = Callable[[DrawnSet, random.Random], bool]
"""Plants one fault, notes what a doctor should find, and returns whether there was room for it."""


def pick(
    whole: DrawnSet, dice: random.Random, wanted: Callable[[Drawn], bool], split: str = ""
) -> Drawn | None:
    found = [one for one in whole.pictures if wanted(one) and split in ("", one.split)]
    return dice.choice(found) if found else None


def untouched(whole: DrawnSet, dice: random.Random, split: str = "") -> Drawn | None:
    """A picture of its own for a fault: nothing else is planted there."""
    one = pick(whole, dice, lambda one: not one.touched, split)
    if one is not None:
        one.taken = one.closed = True
    return one


def open_one(whole: DrawnSet, dice: random.Random, split: str = "") -> Drawn | None:
    """A picture whose label file takes another faulty row."""
    return pick(whole, dice, lambda one: not one.closed, split)


def fresh_seed(whole: DrawnSet, dice: random.Random) -> int:
    """The seed of a picture that is not in the set."""
    return dice.randrange(1000, 1_000_000) if whole.pictures else 0


def split_without(whole: DrawnSet, dice: random.Random, what: str) -> str:
    """A split of the set where this did not happen; "none" where there is none."""
    splits = {one.split for one in whole.pictures if (what, one.split) not in whole.happened}
    return dice.choice(sorted(splits)) if splits else "none"


def added(whole: DrawnSet, dice: random.Random, one: Drawn) -> Drawn:
    one.taken = one.closed = True
    return whole.add(one, dice.randint(0, len(whole.listed)))
