"""A data set as its files describe it, before any picture is decoded: what every reader gives."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from yolov9kit.data.findings import Finding
from yolov9kit.data.labels import LabelFile

ReadBoxes = Callable[[int, tuple[int, int]], LabelFile]
"""The boxes of picture number i, whose upright size in pixels is given. Raises nothing: faults are findings."""


@dataclass(frozen=True)
class SplitFiles:
    """One split: which pictures, and where the boxes of each stand.

    Attributes:
        pictures: each once, in a lasting order. Whether they can be decoded is not known yet.
        label_paths: for each picture the file that tells of its boxes, None where no file does. For formats with one
            file for all pictures, that file.
        read: the boxes of one picture; asked only where the label path is not None.
        sources: the files and folders that name these pictures.
        findings: seen on the way: repeated or missing pictures, labels that belong to no picture, and the like.
    """

    pictures: tuple[Path, ...]
    label_paths: tuple[Path | None, ...]
    read: ReadBoxes
    sources: tuple[Path, ...]
    findings: tuple[Finding, ...] = ()


@runtime_checkable
class Layout(Protocol):
    """A data set of one format. Opening one reads descriptions, never a picture."""

    @property
    def kind(self) -> str:
        """The format, for people: ``YOLO``, ``COCO JSON``."""

    @property
    def file(self) -> Path:
        """The file or folder that stands for the data set in messages."""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each class, in the order of the numbers that ``read`` gives."""

    @property
    def splits(self) -> tuple[str, ...]:
        """``train``, ``val``, ``test`` first, as far as they are there, then others."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What concerns no single split: categories that are left out, a file that was not taken."""

    def open(self, split: str) -> SplitFiles:
        """One split; ``val`` is also called valid and validation.

        Raises:
            DataError: no such split, or a file or folder of it does not exist or cannot be read, or it has no picture.
        """


SPLIT_NAMES = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
"""How the usual splits are called elsewhere."""


def split_called(text: str) -> str | None:
    """The split that a folder or file is named after; None where the name says nothing."""
    return next((split for split, names in SPLIT_NAMES.items() if text.lower() in names), None)


def in_order(splits: set[str]) -> tuple[str, ...]:
    """The usual splits first."""
    usual = [split for split in SPLIT_NAMES if split in splits]
    return (*usual, *sorted(splits - set(usual)))
