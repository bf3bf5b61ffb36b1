"""Several data sets joined into one, classes by their names."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from yolov9kit.data.findings import Finding, counted
from yolov9kit.data.formats.layout import in_order
from yolov9kit.errors import UsageError
from yolov9kit.rewrite.item import Item, Plan
from yolov9kit.rewrite.opened import Opened, open_data
from yolov9kit.rewrite.rewritten import Rewritten
from yolov9kit.rewrite.source_items import items_of, source_notes
from yolov9kit.rewrite.write import Format, check_target, write_plan
from yolov9kit.types import ProgressCallback


def merge_data(
    sources: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    format: Format = "yolo",
    skip_bad_rows: bool = False,
    on_progress: ProgressCallback | None = None,
) -> Rewritten:
    """Writes all pictures of several data sets into one new folder; each picture stays in its split.

    Classes of the same name, case included, become one. Names stand in the order in which they first come; the report
    says which number became which.

    Args:
        sources: two data sets or more.
        out: a new or empty folder, not inside a source.
        format: "yolo" or "coco".
        skip_bad_rows: leave out rows, pictures and splits with errors, and list them in ``left_out.txt``.

    Raises:
        UsageError: fewer than two sources, no such format.
        DataError: a data set cannot be used, or has errors.
        KitError: the new folder cannot be written.
    """
    if len(sources) < 2:
        raise UsageError(f"{counted(len(sources), 'data set')} to merge: name two or more")
    check_target(out, format)
    opened = [open_data(data, skip_bad_rows=skip_bad_rows, on_progress=on_progress) for data in sources]
    names = tuple(dict.fromkeys(name for one in opened for name in one.names))
    splits: dict[str, dict[Path, Item]] = {}
    left_out: list[Finding] = []
    notes = []
    twice = 0
    for one in opened:
        new_label = np.array([names.index(name) for name in one.names], np.int64)
        by_split, repeated = items_of(one, new_label)
        left_out += [*one.left_out, *repeated]
        notes.append(_mapping(one, new_label))
        for split, items in by_split.items():
            there = splits.setdefault(split, {})
            for item in items:
                twice += item.sample.path in there
                there.setdefault(item.sample.path, item)
    if twice:
        notes.append(f"{counted(twice, 'picture')} named by several of the data sets, taken from the first")
    plan = Plan(
        name=" + ".join(dict.fromkeys(one.name for one in opened)),
        names=names,
        splits={split: list(splits[split].values()) for split in in_order(set(splits))},
        roots=tuple(root for one in opened for root in one.roots),
        left_out=tuple(dict.fromkeys(left_out)),
        notes=(*notes, *source_notes(opened)),
    )
    return write_plan(plan, out, format, on_progress)


def _mapping(one: Opened, new_label: np.ndarray) -> str:
    numbers = ", ".join(
        f"{old} {name} is {new}"
        for old, (name, new) in enumerate(zip(one.names, new_label.tolist(), strict=True))
    )
    return f"classes of {one.layout.file}: {numbers}"
