"""What was written: the report of a rewriting."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from yolov9kit.data.findings import Finding, counted
from yolov9kit.rewrite.item import Item
from yolov9kit.types import printable

_SHOWN = 5


@dataclass(frozen=True)
class SplitCount:
    """One split of a new set: how many pictures, those among them without a box, and for each class how many boxes
    there are and how many pictures have one."""

    split: str
    pictures: int
    backgrounds: int
    class_boxes: tuple[int, ...]
    class_pictures: tuple[int, ...]

    @property
    def boxes(self) -> int:
        return sum(self.class_boxes)

    def __str__(self) -> str:
        facts = [counted(self.pictures, "picture"), counted(self.boxes, "box", "boxes")]
        facts += [counted(self.backgrounds, "background")] if self.backgrounds else []
        return f"{self.split}: {', '.join(facts)}"


@dataclass(frozen=True)
class Rewritten:
    """A new data set.

    Attributes:
        folder: the new folder.
        file: what to open: its data.yaml, or the folder itself for COCO JSON.
        kind: the format.
        names: the name of each class.
        splits: what stands in each split.
        left_out: rows, pictures and splits of the source that are not in it, also listed in ``left_out.txt``.
        renamed: pictures that could not keep their name, and their new one.
        notes: what else a person should know.
    """

    folder: Path
    file: Path
    kind: str
    names: tuple[str, ...]
    splits: tuple[SplitCount, ...]
    left_out: tuple[Finding, ...] = ()
    renamed: tuple[tuple[Path, str], ...] = ()
    notes: tuple[str, ...] = ()

    def summary(self) -> str:
        """A few lines for people."""
        lines = [f"{self.file}: {self.kind}, {counted(len(self.names), 'class', 'classes')}"]
        lines += [str(split) for split in self.splits]
        lines += self.notes
        if self.renamed:
            pairs = [f"{path} is {name}" for path, name in self.renamed[:_SHOWN]]
            more = [f"{len(self.renamed) - _SHOWN} more"] if len(self.renamed) > _SHOWN else []
            what = counted(len(self.renamed), "picture")
            lines.append(f"{what} under a new name, that no two share one: {', '.join([*pairs, *more])}")
        if self.left_out:
            things = counted(len(self.left_out), "thing")
            lines.append(f"left out: {things}, listed in {self.folder / LEFT_OUT}")
            lines += [f"  {finding}" for finding in self.left_out[:_SHOWN]]
            lines += ["  ..."] if len(self.left_out) > _SHOWN else []
        return "\n".join(map(printable, lines))


LEFT_OUT = "left_out.txt"
"""The file that lists what was left out: file, line, reason."""


def split_count(split: str, items: Sequence[Item], num_classes: int) -> SplitCount:
    boxes, pictures = np.zeros(num_classes, np.int64), np.zeros(num_classes, np.int64)
    for item in items:
        of_class = np.bincount(item.classes, minlength=num_classes)
        boxes += of_class
        pictures += of_class > 0
    backgrounds = sum(not len(item.classes) for item in items)
    return SplitCount(split, len(items), backgrounds, tuple(boxes.tolist()), tuple(pictures.tolist()))
