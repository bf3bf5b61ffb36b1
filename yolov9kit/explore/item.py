"""One picture of a data set, as a person looks at it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from yolov9kit.data.dataset import Dataset
from yolov9kit.data.findings import Finding

_NO_BOXES, _NO_LABELS = np.empty((0, 4), np.float32), np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class ExploreItem:
    """One picture with its boxes and what was found about it.

    Attributes:
        path: of the picture.
        split: its name.
        size_wh: of the upright picture in pixels; (0, 0) where it cannot be read.
        boxes: N x 4 float32 xyxy, pixels of the upright picture.
        labels: N int64.
        label_path: the file that tells of the boxes, None where there is none or the picture cannot be read.
        findings: about the picture, or about its labels.
        lines: for each finding the box that it means, an index into ``boxes``; -1 where it means none, or a row that
            was left out and so has no box: ``finding.line`` and ``finding.value`` tell of it.
    """

    path: Path
    split: str
    size_wh: tuple[int, int]
    boxes: np.ndarray
    labels: np.ndarray
    label_path: Path | None
    findings: tuple[Finding, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Entry:
    """A picture without its findings. ``split``: its number. ``rows``: N, the line of each box, None without lines."""

    path: Path
    split: int
    size_wh: tuple[int, int]
    boxes: np.ndarray
    labels: np.ndarray
    label_path: Path | None
    rows: np.ndarray | None

    def row_of(self, finding: Finding) -> int:
        """The box that a finding about this picture or its labels means, else -1."""
        if self.rows is None or self.label_path is None or finding.line is None:
            return -1
        if finding.path.absolute() != self.label_path.absolute():
            return -1
        here = np.flatnonzero(self.rows == finding.line)
        return int(here[0]) if len(here) else -1


def entries_of(split: int, dataset: Dataset) -> list[Entry]:
    """The pictures of a split in their order, those that cannot be read among them."""
    samples = {sample.path: sample for sample in dataset.samples}
    unread = {path for path, checked in dataset.checked.items() if checked.error}
    paths = [path for path in dataset.checked if path in samples or path in unread]
    paths += [path for path in samples if path not in dataset.checked]
    entries = []
    for path in paths:
        sample = samples.get(path)
        if sample is None:
            entries.append(Entry(path, split, (0, 0), _NO_BOXES, _NO_LABELS, None, None))
        else:
            entries.append(
                Entry(
                    path, split, sample.size_wh, sample.boxes, sample.labels, sample.label_path, sample.lines
                )
            )
    return entries
