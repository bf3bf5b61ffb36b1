"""A plan → a new folder, whole or not at all."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from yolov9kit.data.findings import counted
from yolov9kit.errors import DataError, UsageError
from yolov9kit.rewrite.item import Plan
from yolov9kit.rewrite.new_folder import new_folder, refuse_folder
from yolov9kit.rewrite.rewritten import LEFT_OUT, Rewritten, split_count
from yolov9kit.rewrite.write_coco import write_coco
from yolov9kit.rewrite.write_yolo import YAML, has_labels, write_yolo
from yolov9kit.types import ProgressCallback, printable

Format = Literal["yolo", "coco"]
_FORMATS = {"yolo": ("YOLO", write_yolo), "coco": ("COCO JSON", write_coco)}
_NO_SPLITS = ("path", "names", "nc", "kpt_shape", "flip_idx", "images", "labels")


def write_plan(
    plan: Plan,
    out: str | os.PathLike[str],
    form: Format,
    on_progress: ProgressCallback | None = None,
    before_it_appears: Callable[[], None] | None = None,
) -> Rewritten:
    """Writes the plan into a new folder.

    ``before_it_appears`` is called when everything is written; what it raises leaves nothing.

    Raises:
        KitError: the folder holds something, lies inside the source or the source inside it, or cannot be written.
        DataError: a split whose name cannot be that of a folder, or a box that no row can hold.
    """
    for split in plan.splits:
        if split.lower() in _NO_SPLITS or not re.fullmatch(r"\w[\w. -]*", split):
            raise DataError(printable(f"{plan.name}: split '{split}': no folder can be called so, rename it"))
    kind, write = _FORMATS[form]
    folder = _folder(out)
    with new_folder(folder, plan.roots) as part:
        renamed = write(plan, part, on_progress)
        if plan.left_out:
            lines = "".join(f"{finding}\n" for finding in plan.left_out)
            (part / LEFT_OUT).write_text(lines, encoding="utf-8")
        if before_it_appears is not None:
            before_it_appears()
    return Rewritten(
        folder=folder,
        file=folder / YAML if form == "yolo" else folder,
        kind=kind,
        names=plan.names,
        splits=tuple(split_count(split, items, len(plan.names)) for split, items in plan.splits.items()),
        left_out=plan.left_out,
        renamed=tuple(renamed),
        notes=(*plan.notes, *_notes(plan, form)),
    )


def check_target(out: str | os.PathLike[str], form: str = "yolo") -> None:
    """What can be said of a target before the source is read.

    Raises:
        UsageError: no such format.
        KitError: ``out`` is there and holds something.
    """
    if form not in _FORMATS:
        raise UsageError(f"format {form!r}: data sets are written as {' or '.join(_FORMATS)}")
    refuse_folder(_folder(out), ())


def _folder(out: str | os.PathLike[str]) -> Path:
    return Path(os.path.abspath(os.path.expanduser(out)))


def _notes(plan: Plan, form: Format) -> list[str]:
    end = f"written, but not named in {YAML}" if form == "yolo" else "not to be trained on"
    return [
        f"{split}: no label file for any of {counted(len(items), 'picture')}: {end}"
        for split, items in plan.splits.items()
        if not has_labels(items)
    ]
