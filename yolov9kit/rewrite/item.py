"""What is to be written: one picture of the new set, and all of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from yolov9kit.data.dataset import Sample
from yolov9kit.data.findings import Finding

WritePicture = Callable[[Path], None]
"""Writes the picture to the path given."""


@dataclass(frozen=True, eq=False)
class Item:
    """One picture of the new set and what is to be said of it.

    Attributes:
        sample: the picture and its boxes, as they were read.
        labels: N int64, the class of each box in the new set; -1: the box is not written.
        clipped_lines: lines of its label file whose boxes reached out of the picture.
        suffix: of the new picture's name, where it is another one than the old.
        write_picture: makes the new picture, where it is no copy of the old one, byte for byte.
    """

    sample: Sample
    labels: np.ndarray
    clipped_lines: frozenset[int] = frozenset()
    suffix: str = ""
    write_picture: WritePicture | None = None

    @property
    def boxes(self) -> np.ndarray:
        """M x 4 float32 xyxy picture pixels: the boxes that are written."""
        return np.asarray(self.sample.boxes[self.labels >= 0])

    @property
    def classes(self) -> np.ndarray:
        """M int64: the classes of ``boxes``."""
        return np.asarray(self.labels[self.labels >= 0])


@dataclass(frozen=True)
class Plan:
    """A whole new set, before a byte of it is written.

    Attributes:
        name: of the data set, for people.
        names: the name of each class.
        splits: the pictures of each split.
        roots: the folders that the pictures come from; the new folder lies in none of them.
        left_out: what was there and is not written.
        notes: what else a person should know.
        keep_polygons: rows of YOLO label files stay as they are written even if they are more than boxes.
    """

    name: str
    names: tuple[str, ...]
    splits: Mapping[str, Sequence[Item]]
    roots: tuple[Path, ...]
    left_out: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = field(default=())
    keep_polygons: bool = False


def item_of(
    sample: Sample, new_label: np.ndarray, clipped_lines: frozenset[int] = frozenset()
) -> tuple[Item, list[Finding]]:
    """The sample under new class numbers, and a finding for each box that another one repeats.

    ``new_label`` C int64: the new number of each class, -1 for a class that is left out.
    """
    labels = new_label[sample.labels]
    findings = []
    rows = list(zip(labels.tolist(), map(tuple, sample.boxes.tolist()), strict=True))
    if len(set(rows)) < len(rows):
        seen: set[tuple[int, tuple[float, ...]]] = set()
        for i, row in enumerate(rows):
            if row[0] >= 0 and row in seen:
                labels[i] = -1
                message = "the same box and class as another row of this picture, written once"
                findings.append(Finding("label_repeated", "warning", sample.path, message))
            seen.add(row)
    return Item(sample, labels, clipped_lines), findings
