"""A data set dealt out anew to train, val and test."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from yolov9kit.data.checked import Checked
from yolov9kit.data.findings import counted
from yolov9kit.errors import DataError, UsageError
from yolov9kit.rewrite.groups import ROBOFLOW_COPIES, groups_of
from yolov9kit.rewrite.item import Item, Plan
from yolov9kit.rewrite.opened import open_data
from yolov9kit.rewrite.rewritten import Rewritten, split_count
from yolov9kit.rewrite.source_items import items_of, source_notes
from yolov9kit.rewrite.stratify import stratify
from yolov9kit.rewrite.write import Format, check_target, write_plan
from yolov9kit.types import ProgressCallback, printable

_SIDES = ("train", "val", "test")


def split_data(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    val: float = 0.2,
    test: float = 0.0,
    seed: int = 0,
    group_by: str | None = ROBOFLOW_COPIES,
    format: Format = "yolo",
    skip_bad_rows: bool = False,
    on_progress: ProgressCallback | None = None,
) -> Rewritten:
    """Deals all pictures of a data set, whatever their split was, to train, val and test of a new folder.

    Each class has its share of pictures on each side as nearly as can be. Pictures with the same bytes, pictures that
    look alike and those of one source stay together. The same seed gives the same split.

    Args:
        val: share of the pictures for validation.
        test: share for the test; train gets what is left.
        group_by: regular expression for file names; pictures whose first group is equal are of one source. Usually
            the augmented copies of a Roboflow export.
        format: "yolo" or "coco".
        skip_bad_rows: leave out rows, pictures and splits with errors, and list them in ``left_out.txt``.

    Raises:
        UsageError: shares that leave nothing for train or are all 0, no such format, no regular expression.
        DataError: the data set cannot be used, has errors, or has too few pictures to deal.
        KitError: the new folder cannot be written.
    """
    shares = _shares(val, test)
    check_target(out, format)
    opened = open_data(data, skip_bad_rows=skip_bad_rows, on_progress=on_progress)
    by_split, repeated = items_of(opened, np.arange(len(opened.names)))
    items = list({item.sample.path: item for split in by_split.values() for item in split}.values())
    checked: dict[Path, Checked] = {}
    for dataset in opened.splits.values():
        checked |= dataset.checked
    groups, ties = groups_of([item.sample.path for item in items], checked, group_by)
    sides = _deal(items, groups, len(opened.names), shares, seed)
    splits: dict[str, Sequence[Item]] = {
        side: [item for item, at in zip(items, sides.tolist(), strict=True) if at == i]
        for i, side in enumerate(_SIDES)
        if shares[i] > 0
    }
    for side, dealt in splits.items():
        if not dealt:
            what = f"{counted(len(items), 'picture')} in {counted(len(groups), 'group')} that stay together"
            raise DataError(printable(f"{opened.layout.file}: {what}: none is left for {side}"))
    notes = [*_pooled(by_split, len(items)), *_tie_notes(ties, len(items), len(groups))]
    notes += _class_notes(opened.names, splits)
    plan = Plan(
        name=opened.name,
        names=opened.names,
        splits=splits,
        roots=opened.roots,
        left_out=(*opened.left_out, *repeated),
        notes=(*notes, *source_notes([opened])),
    )
    return write_plan(plan, out, format, on_progress)


def _shares(val: float, test: float) -> np.ndarray:
    if not (0 <= val < 1 and 0 <= test < 1 and 0 < val + test < 1):
        raise UsageError(
            f"val {val:g}, test {test:g}: give shares from 0 to 1 that leave something for train"
        )
    return np.array((1 - val - test, val, test))


def _deal(
    items: list[Item], groups: list[list[int]], num_classes: int, shares: np.ndarray, seed: int
) -> np.ndarray:
    """The side of each item: its index in ``_SIDES``."""
    presence = np.zeros((len(groups), num_classes), np.int64)
    for i, group in enumerate(groups):
        for member in group:
            presence[i, np.unique(items[member].classes)] += 1
    dealt = stratify(presence, np.array([len(group) for group in groups]), shares, seed)
    sides = np.empty(len(items), np.int64)
    for group, side in zip(groups, dealt.tolist(), strict=True):
        sides[group] = side
    return sides


def _pooled(by_split: dict[str, list[Item]], total: int) -> list[str]:
    named = sum(map(len, by_split.values()))
    notes = [f"pictures of {', '.join(by_split)} dealt out together"] if len(by_split) > 1 else []
    if named > total:
        notes.append(f"{counted(named - total, 'picture')} named by several splits, counted once")
    return notes


def _tie_notes(ties: dict[str, int], pictures: int, groups: int) -> list[str]:
    if pictures == groups:
        return []
    reasons = ", ".join(f"{reason} ({number})" for reason, number in ties.items() if number)
    return [f"{pictures} pictures in {counted(groups, 'group')} that stay together: {reasons}"]


def _class_notes(names: Sequence[str], splits: dict[str, Sequence[Item]]) -> list[str]:
    """For each class, and for all pictures, what share ended where."""
    sides = list(splits)
    having = [split_count(side, splits[side], len(names)).class_pictures for side in sides]
    rows: list[tuple[str, *tuple[int, ...]]] = list(zip(names, *having, strict=True))
    rows.append(("all pictures", *(len(splits[side]) for side in sides)))
    notes = []
    for name, *numbers in rows:
        total = sum(numbers)
        parts = (
            [f"{side} {n} ({n / total:.0%})" for side, n in zip(sides, numbers, strict=True)] if total else []
        )
        notes.append(f"pictures with {name}: {', '.join(parts) or 'none'}")
    notes[-1] = notes[-1].removeprefix("pictures with ")
    return notes
