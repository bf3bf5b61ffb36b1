"""A plan as YOLO: ``images/SPLIT``, ``labels/SPLIT`` and a data.yaml with relative paths."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

from yolov9kit.errors import DataError
from yolov9kit.rewrite.item import Item, Plan
from yolov9kit.rewrite.label_text import write_labels
from yolov9kit.rewrite.pictures import Renamed, write_pictures
from yolov9kit.types import ProgressCallback, printable

YAML = "data.yaml"


def write_yolo(plan: Plan, folder: Path, on_progress: ProgressCallback | None = None) -> list[Renamed]:
    """Writes the plan into an empty folder; returns the pictures that could not keep their name.

    A picture without a label file gets none; one whose file names no box gets an empty file. A split in which no
    picture has one is written, but not named in the yaml: a reader would take its labels for lost. Of splits that are
    the same pictures, one is written and the yaml names it for all.

    Raises:
        DataError: there is no class or no label file at all, or a box that no row can hold.
        OSError: it cannot be written, or a source cannot be read.
    """
    if not plan.names or not any(map(has_labels, plan.splits.values())):
        reason = "no picture has a label file" if plan.names else "no class has a name"
        message = f"{reason}, and YOLO needs some: label the pictures first, or write COCO JSON"
        raise DataError(printable(f"{plan.name}: {message}"))
    renamed = []
    for split, items in plan.splits.items():
        if _folder_of(plan, split) != split:
            continue
        labels = folder / "labels" / split
        labels.mkdir(parents=True)
        write = partial(_write_labels, labels, len(plan.names), plan.keep_polygons)
        _, others = write_pictures(items, folder / "images" / split, f"writing {split}", write, on_progress)
        renamed += others
    (folder / YAML).write_text(_yaml(plan), encoding="utf-8")
    return renamed


def has_labels(items: Sequence[Item]) -> bool:
    """Whether any of these pictures has a label file."""
    return any(item.sample.label_path is not None for item in items)


def _folder_of(plan: Plan, split: str) -> str:
    """The first split of the same pictures, which often is the split itself."""

    def files(name: str) -> list[tuple[Path, Path | None]]:
        return [(item.sample.path, item.sample.label_path) for item in plan.splits[name]]

    return next(one for one in plan.splits if files(one) == files(split))


def _yaml(plan: Plan) -> str:
    splits = [split for split, items in plan.splits.items() if has_labels(items)]
    named = {split: f"images/{_folder_of(plan, split)}" for split in splits}
    record = {**named, "nc": len(plan.names), "names": dict(enumerate(plan.names))}
    # written as they are, the line breaks of Unicode would get lost
    readable = all(name.isprintable() for name in plan.names)
    return yaml.safe_dump(record, sort_keys=False, allow_unicode=readable)


def _write_labels(folder: Path, num_classes: int, keep_polygons: bool, item: Item, picture: Path) -> None:
    if item.sample.label_path is not None:
        write_labels(item, folder / f"{picture.stem}.txt", num_classes, keep_polygons)
