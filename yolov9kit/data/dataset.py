"""One split of a data set in memory: which pictures, which boxes, what was found on the way.

Only reads: nothing is ever written into the folders of a data set.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from yolov9kit.data.checked import Checked, PictureFacts, facts_file
from yolov9kit.data.findings import Finding, counted
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.data.labels import LabelFile
from yolov9kit.data.picture_findings import findings_of
from yolov9kit.data.split_rows import SplitRows
from yolov9kit.errors import DataError
from yolov9kit.types import printable

__all__ = ["Dataset", "Finding", "Sample", "has_split", "open_dataset", "refuse"]

_SHOWN_ERRORS = 5
_RANK = {"error": 0, "warning": 1, "note": 2}
_PLAIN_NAMES = ("data", "dataset", "obj")


@dataclass(frozen=True, eq=False)
class Sample:
    """One picture and its boxes, N x 4 float32 xyxy in pixels of the upright picture; ``labels`` N int64.

    ``size_wh``: of the upright picture. ``label_path``: the label file, None where there is none (a background).
    ``lines``: N int64, the line of the label file that each box stands in, None for formats without lines.
    """

    path: Path
    size_wh: tuple[int, int]
    boxes: np.ndarray
    labels: np.ndarray
    label_path: Path | None = None
    lines: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """One split, as ``open_dataset`` gives it.

    Attributes:
        name: of the data set, for people.
        split: "train", "val" or another key of the yaml.
        names: the name of each class.
        samples: the pictures that can be used, backgrounds among them.
        findings: errors first, then warnings, then notes.
        empty_labels: samples whose label file has no row: backgrounds on purpose.
        missing_labels: samples without a label file: backgrounds, or forgotten.
        left_out: pictures that cannot be read. They are no samples.
        below_min_items: pictures with fewer boxes than asked for. They are no samples.
        checked: what decoding told of each picture of the split, also of those left out.
        sources: the files and folders that name its pictures.
    """

    name: str
    split: str
    names: tuple[str, ...]
    samples: tuple[Sample, ...]
    findings: tuple[Finding, ...] = ()
    empty_labels: int = 0
    missing_labels: int = 0
    left_out: int = 0
    below_min_items: int = 0
    checked: Mapping[Path, Checked] = field(default_factory=dict)
    sources: tuple[Path, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def digest(self) -> str:
        """Identifies classes, pictures (by their names below their common folder) and boxes, wherever they lie."""
        common = os.path.commonpath([sample.path.parent for sample in self.samples]) if self.samples else ""
        digest = hashlib.blake2b(repr((self.names, len(self.samples))).encode(), digest_size=16)
        for sample in self.samples:
            name = os.fsencode(Path(os.path.relpath(sample.path, common)).as_posix())
            digest.update(f"\n{len(name)} {len(sample.labels)} {sample.size_wh}\n".encode())
            digest.update(name)
            digest.update(sample.boxes.astype("<f4").tobytes())
            digest.update(sample.labels.astype("<i8").tobytes())
        return digest.hexdigest()

    def summary(self) -> str:
        """One line: pictures, boxes, the two kinds of background, what was left out."""
        boxes = sum(len(sample.labels) for sample in self.samples)
        facts = [
            f"{self.name} {self.split}: {counted(len(self.samples), 'picture')}",
            counted(boxes, "box", "boxes"),
            f"{counted(self.empty_labels, 'background')} with an empty label file",
            f"{self.missing_labels} without a label file",
        ]
        if self.left_out:
            facts.append(f"{counted(self.left_out, 'unreadable picture')} left out")
        if self.below_min_items:
            facts.append(f"{counted(self.below_min_items, 'picture')} with too few boxes left out")
        if self.errors:
            facts.append(counted(len(self.errors), "error"))
        return printable(", ".join(facts))


def has_split(data: str | os.PathLike[str], split: str) -> bool:
    """Whether the data set names pictures for a split. Does not look whether they exist.

    Raises:
        DataError: the description itself cannot be read.
    """
    return split in open_layout(data).splits


def open_dataset(
    data: str | os.PathLike[str] | Layout,
    split: str = "train",
    *,
    single_class: bool = False,
    min_items: int = 0,
    as_boxes: bool = False,
    cache: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> Dataset:
    """Reads one split of a data set: every picture is decoded once, every row of its boxes read.

    ``data`` is a data.yaml, an annotation file of another format, the folder that holds them, or any of these opened
    by ``open_layout`` with the same ``as_boxes``, so that several splits take one reading of the description. With
    ``single_class`` every box is an ``object``. Pictures with fewer than ``min_items`` boxes are left out. With
    ``as_boxes`` the upright boxes of oriented boxes and of key points are asked for; else such rows are errors. With
    ``cache``, what decoding a picture told is remembered under ``~/.cache/yolov9kit`` until that picture changes.
    ``progress(done, total)`` counts pictures.

    Faults of single pictures and rows become findings, and the rest is usable; ``refuse`` turns errors into one.

    Raises:
        DataError: the description, a folder or a list cannot be used, no boxes are told of, or no picture can be used.
    """
    layout = open_layout(data, as_boxes=as_boxes) if isinstance(data, str | os.PathLike) else data
    files = layout.open(split)
    rows = SplitRows(layout.file, len(layout.names), as_boxes)
    scan = _Scan(single_class, min_items, rows, files, [*layout.findings, *files.findings])
    facts = PictureFacts(facts_file(split, files.sources) if cache else None)
    total = len(files.pictures)
    try:
        with closing(facts.check(files.pictures)) as checks:
            for done, checked in enumerate(checks, 1):
                picture = files.pictures[done - 1]
                scan.checked[picture] = checked
                scan.findings += findings_of(picture, checked)
                if checked.error:
                    scan.leave_out(picture, checked.error)
                else:
                    scan.add(done - 1, checked.size_wh)
                if progress is not None:
                    progress(done, total)
    finally:
        not_saved = facts.save()
    file = layout.file
    if not_saved:
        message = f"what was learnt of the pictures is not kept for next time ({not_saved})"
        scan.findings.append(Finding("cache", "note", file, message))
    if not scan.samples:
        raise DataError(printable(f"{file}: split '{split}': {scan.why_nothing()}"))
    return Dataset(
        name=file.parent.name if file.stem in _PLAIN_NAMES else file.stem,
        split=split,
        names=("object",) if single_class else layout.names,
        samples=tuple(scan.samples),
        findings=tuple(sorted(scan.final_findings(), key=lambda finding: _RANK[finding.severity])),
        empty_labels=scan.empty_labels,
        missing_labels=sum(sample.label_path is None for sample in scan.samples),
        left_out=scan.left_out,
        below_min_items=scan.below_min_items,
        checked=scan.checked,
        sources=files.sources,
    )


def refuse(dataset: Dataset) -> None:
    """Does nothing for a data set without errors.

    Raises:
        DataError: there are errors: the first five with file, line, value and what to do, and how many more.
    """
    errors = dataset.errors
    if not errors:
        return
    lines = [f"{dataset.name} {dataset.split}: {counted(len(errors), 'error')} in the data set"]
    lines += [str(finding) for finding in errors[:_SHOWN_ERRORS]]
    if len(errors) > _SHOWN_ERRORS:
        lines.append(f"and {len(errors) - _SHOWN_ERRORS} more")
    lines.append("Correct these files, or go on without these rows and pictures (skip_bad_rows).")
    raise DataError("\n  ".join(lines))


@dataclass
class _Scan:
    """What one pass over the pictures gathers."""

    single_class: bool
    min_items: int
    rows: SplitRows
    files: SplitFiles
    findings: list[Finding]
    samples: list[Sample] = field(default_factory=list)
    checked: dict[Path, Checked] = field(default_factory=dict)
    empty_labels: int = 0
    left_out: int = 0
    below_min_items: int = 0
    first_fault: str = ""

    def leave_out(self, picture: Path, error: str) -> None:
        self.left_out += 1
        self.first_fault = self.first_fault or f"{picture}: {error}"

    def add(self, i: int, size_wh: tuple[int, int]) -> None:
        picture, label_path = self.files.pictures[i], self.files.label_paths[i]
        read = _NO_LABELS if label_path is None else self.files.read(i, size_wh)
        self.findings += [replace(finding, picture=picture) for finding in read.findings]
        self.rows.add(label_path or picture, read)
        if len(read.labels) < self.min_items:
            self.below_min_items += 1
            return
        self.empty_labels += label_path is not None and read.rows == 0
        labels = read.labels
        if self.single_class:
            labels = np.zeros_like(labels)
            labels.flags.writeable = False
        self.samples.append(Sample(picture, size_wh, read.boxes, labels, label_path, read.lines))

    def why_nothing(self) -> str:
        if self.below_min_items:
            return f"no picture has {self.min_items} boxes or more ({self.below_min_items} have fewer)"
        return f"none of {counted(self.left_out, 'picture')} can be read: {self.first_fault}"

    def final_findings(self) -> list[Finding]:
        return self.rows.revise(self.findings)


_NO_LABELS = LabelFile(np.empty((0, 4), np.float32), np.empty(0, np.int64))
