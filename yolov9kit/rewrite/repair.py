"""A repaired copy of a data set, and the proof that the original is untouched."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from yolov9kit.data.dataset import Dataset, Sample
from yolov9kit.data.findings import Finding, counted
from yolov9kit.data.labels import read_labels
from yolov9kit.errors import KitError
from yolov9kit.rewrite.digests import sha256_of
from yolov9kit.rewrite.item import Item, Plan
from yolov9kit.rewrite.opened import Opened, open_data, source_files
from yolov9kit.rewrite.repair_picture import mend
from yolov9kit.rewrite.rewritten import Rewritten
from yolov9kit.rewrite.source_items import items_of, source_notes
from yolov9kit.rewrite.write import check_target, write_plan
from yolov9kit.types import ProgressCallback, printable

_FROM_ONE = ("label_class_range", "class_from_one")


@dataclass(frozen=True)
class Repaired:
    """A repaired copy.

    Attributes:
        written: the new data set, with what was left out.
        mended: what was done, in words, and to how many pictures, rows or files.
        originals: SHA-256 of every file of the source, before the repair and after it.
    """

    written: Rewritten
    mended: Mapping[str, int]
    originals: Mapping[Path, str]

    def summary(self) -> str:
        """A few lines for people."""
        done = [f"{what}: {number}" for what, number in self.mended.items()]
        proof = f"originals untouched: {counted(len(self.originals), 'file')}, SHA-256 equal before and after"
        return "\n".join([self.written.summary(), *map(printable, done), proof])


def repair(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    on_progress: ProgressCallback | None = None,
) -> Repaired:
    """Writes a repaired copy of a data set into a new folder, in YOLO layout.

    Rows and pictures that cannot be used are left out and listed in ``left_out.txt``; boxes that reach out of the
    picture are clipped; orientation is applied, and pictures of formats that not every program reads, or reads slowly,
    become JPEG or PNG; wrong suffixes are corrected; classes that are counted from 1 are counted from 0. Everything
    else is copied byte for byte.

    Raises:
        DataError: the data set cannot be opened, or holds oriented boxes or key points: convert it first.
        KitError: the new folder cannot be written, or the source changed meanwhile. Then nothing is left.
    """
    check_target(out)
    files = source_files(data)
    before = sha256_of(files, "hashing the originals", on_progress)
    opened = open_data(data, skip_bad_rows=True, on_progress=on_progress)
    mended: Counter[str] = Counter()
    if _counts_from_one(opened):
        opened = _from_zero(opened)
        mended["label files with classes counted from 0 instead of 1"] = _label_files(opened)
    by_split, repeated = items_of(opened, np.arange(len(opened.names)))
    splits: dict[str, Sequence[Item]] = {}
    for split, items in by_split.items():
        splits[split] = [_mended(item, opened.splits[split], mended) for item in items]
    clipped = sum(finding.code == "label_clipped" for finding in opened.findings)
    if clipped:
        mended["boxes clipped to the picture"] = clipped
    plan = Plan(
        name=opened.name,
        names=opened.names,
        splits=splits,
        roots=opened.roots,
        left_out=(*opened.left_out, *repeated),
        notes=source_notes([opened], keep_polygons=True, repaired=True),
        keep_polygons=True,
    )

    def prove() -> None:
        after = sha256_of(files, "hashing the originals again", on_progress)
        changed = [path for path in files if after[path] != before[path]]
        if changed:
            raise KitError(printable(f"{changed[0]}: changed while the copy was written: start again"))

    written = write_plan(plan, out, "yolo", on_progress, before_it_appears=prove)
    return Repaired(written, dict(mended), before)


def _mended(item: Item, dataset: Dataset, mended: Counter[str]) -> Item:
    path = item.sample.path
    needed = mend(path, dataset.checked[path])
    if needed is None:
        return item
    mended.update(needed.done)
    return replace(item, suffix=needed.suffix, write_picture=needed.write)


def _counts_from_one(opened: Opened) -> bool:
    """Every class that does not exist is the first too large, and no split uses class 0."""
    beyond = {finding.value for finding in opened.findings if finding.code == "label_class_range"}
    uses_0 = any((sample.labels == 0).any() for one in opened.splits.values() for sample in one.samples)
    return beyond == {str(len(opened.names))} and not uses_0


def _from_zero(opened: Opened) -> Opened:
    """The same set with every class number one less, and the rows of the last class among the others."""
    splits = {}
    for split, dataset in opened.splits.items():
        findings = [finding for finding in dataset.findings if finding.code not in _FROM_ONE]
        samples = []
        for sample in dataset.samples:
            moved, found = _moved_down(sample, len(opened.names))
            samples.append(moved)
            findings += found
        splits[split] = replace(dataset, samples=tuple(samples), findings=tuple(dict.fromkeys(findings)))
    return replace(opened, splits=splits)


def _moved_down(sample: Sample, num_classes: int) -> tuple[Sample, tuple[Finding, ...]]:
    if sample.label_path is None:
        return sample, ()
    read = read_labels(sample.label_path, sample.size_wh, num_classes + 1)
    labels = read.labels - 1
    labels.flags.writeable = False
    return replace(sample, boxes=read.boxes, labels=labels, lines=read.lines), read.findings


def _label_files(opened: Opened) -> int:
    return len({sample.label_path for one in opened.splits.values() for sample in one.samples} - {None})
