"""A part of a data set: some classes, some pictures, some splits."""

import os
from collections.abc import Sequence

import numpy as np

from yolov9kit.data.findings import counted
from yolov9kit.errors import DataError, UsageError
from yolov9kit.rewrite.item import Item, Plan
from yolov9kit.rewrite.opened import open_data
from yolov9kit.rewrite.rewritten import Rewritten
from yolov9kit.rewrite.source_items import items_of, source_notes
from yolov9kit.rewrite.write import Format, check_target, write_plan
from yolov9kit.types import ProgressCallback, printable


def subset_data(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    classes: Sequence[str] | None = None,
    count: int | None = None,
    splits: Sequence[str] | None = None,
    seed: int = 0,
    empty_share: float | None = None,
    format: Format = "yolo",
    skip_bad_rows: bool = False,
    on_progress: ProgressCallback | None = None,
) -> Rewritten:
    """Writes a part of a data set into a new folder.

    Args:
        data: a data.yaml, an annotation file of another format, or the folder that holds them.
        out: a new or empty folder, not inside the source.
        classes: names of the classes that stay; they keep their order and are numbered anew from 0. None: all.
        count: at most so many pictures of each split, drawn by the seed; they keep their order. None: all.
        splits: those that stay. None: all.
        seed: another seed, other pictures.
        empty_share: of the pictures of each split, this share has no box, as far as there are such. None: with
            ``classes`` pictures without a box of them are left out, else backgrounds are taken like any picture.
        format: "yolo" or "coco".
        skip_bad_rows: leave out rows, pictures and splits with errors, and list them in ``left_out.txt``.

    Raises:
        UsageError: a class or split that is not there, a count below 1, a share outside 0..1, no such format.
        DataError: the data set cannot be used, has errors, or nothing is left of a split.
        KitError: the new folder cannot be written.
    """
    check_target(out, format)
    if count is not None and count < 1:
        raise UsageError(f"count {count}: give 1 or more")
    if empty_share is not None and not 0 <= empty_share < 1:
        raise UsageError(f"empty_share {empty_share:g}: give a share from 0 up to, not including, 1")
    opened = open_data(data, splits=splits, skip_bad_rows=skip_bad_rows, on_progress=on_progress)
    new_label = _new_labels(opened.names, classes)
    by_split, repeated = items_of(opened, new_label)
    if empty_share is None and classes is not None:
        empty_share = 0.0
    random = np.random.default_rng(seed)
    chosen: dict[str, Sequence[Item]] = {}
    notes = _class_notes(opened.names, new_label) if classes is not None else []
    for split, items in by_split.items():
        chosen[split] = _draw(items, count, empty_share, random)
        if not chosen[split]:
            wanted = f" with a box of {', '.join(classes)}" if classes is not None else ""
            raise DataError(printable(f"{opened.layout.file}: split '{split}': no picture{wanted}"))
        notes.append(_split_note(split, items, chosen[split], classes is not None))
    plan = Plan(
        name=opened.name,
        names=tuple(opened.names[i] for i in np.flatnonzero(new_label >= 0).tolist()),
        splits=chosen,
        roots=opened.roots,
        left_out=(*opened.left_out, *repeated),
        notes=(*notes, *source_notes([opened])),
    )
    return write_plan(plan, out, format, on_progress)


def _new_labels(names: Sequence[str], classes: Sequence[str] | None) -> np.ndarray:
    """The new number of each class, C int64; -1 for those that do not stay."""
    if classes is None:
        return np.arange(len(names))
    unknown = [name for name in classes if name not in names]
    if unknown or not classes:
        there = ", ".join(names)
        raise UsageError(printable(f"classes: {', '.join(unknown) or 'none named'}: there are {there}"))
    kept = np.array([name in classes for name in names])
    return np.where(kept, np.cumsum(kept) - 1, -1)


def _draw(
    items: list[Item], count: int | None, empty_share: float | None, random: np.random.Generator
) -> list[Item]:
    """The pictures that stay, in their order."""
    order = random.permutation(len(items)).tolist()
    if empty_share is None:
        return [items[i] for i in sorted(order[:count])]
    filled = [i for i in order if len(items[i].classes)]
    empty = [i for i in order if not len(items[i].classes)]
    if count is None:
        # of f pictures with boxes and e without, e / (f + e) is the share
        backgrounds = min(len(empty), round(len(filled) * empty_share / (1 - empty_share)))
    else:
        backgrounds = min(len(empty), int(count * empty_share))  # at least one place stays
        filled = filled[: count - backgrounds]
        backgrounds = min(backgrounds, round(len(filled) * empty_share / (1 - empty_share)))
    return [items[i] for i in sorted([*filled, *empty[:backgrounds]])]


def _class_notes(names: Sequence[str], new_label: np.ndarray) -> list[str]:
    pairs = zip(names, new_label.tolist(), strict=True)
    kept = [f"{old} {name} is {new}" for old, (name, new) in enumerate(pairs) if new >= 0]
    return [f"classes: {', '.join(kept)}; {counted(len(names) - len(kept), 'class', 'classes')} left out"]


def _split_note(split: str, items: Sequence[Item], chosen: Sequence[Item], by_class: bool) -> str:
    before = sum(not len(item.classes) for item in items)
    after = sum(not len(item.classes) for item in chosen)
    what = "without a box of these classes" if by_class else "without a box"
    return f"{split}: {len(chosen)} of {counted(len(items), 'picture')} stay; {what} {after} of {before}"
