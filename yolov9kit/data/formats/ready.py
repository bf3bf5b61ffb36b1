"""A data set whose splits are all known once it is opened."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import SplitFiles, in_order, split_called
from yolov9kit.errors import DataError
from yolov9kit.types import printable


@dataclass(frozen=True)
class ReadyLayout:
    """``parts``: for each split what gives its files; it may raise DataError."""

    kind: str
    file: Path
    names: tuple[str, ...]
    parts: Mapping[str, Callable[[], SplitFiles]]
    findings: tuple[Finding, ...] = ()

    @property
    def splits(self) -> tuple[str, ...]:
        return in_order(set(self.parts))

    def open(self, split: str) -> SplitFiles:
        part = self.parts.get(split) or self.parts.get(split_called(split) or "")
        if part is None:
            raise DataError(
                printable(f"{self.file}: has no split '{split}' (splits: {', '.join(self.splits) or 'none'})")
            )
        return part()
