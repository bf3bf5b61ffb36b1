"""What was read of a data set, as items that can be written."""

from collections import Counter
from pathlib import Path

import numpy as np

from yolov9kit.data.dataset import Dataset
from yolov9kit.data.findings import Finding, counted
from yolov9kit.rewrite.item import Item, item_of
from yolov9kit.rewrite.opened import Opened


def items_of(opened: Opened, new_label: np.ndarray) -> tuple[dict[str, list[Item]], list[Finding]]:
    """Every sample of each split under new class numbers (C int64, -1: left out), and what is repeated.

    A picture whose label file cannot be read is no item: what stands on it is not known.
    """
    splits, repeated = {}, []
    for split, dataset in opened.splits.items():
        clipped = _clipped_lines(dataset)
        unread = {finding.path for finding in dataset.findings if finding.code == "label_file"}
        items = []
        for sample in dataset.samples:
            if sample.label_path is not None and sample.label_path in unread:
                continue
            item, again = item_of(sample, new_label, clipped.get(sample.label_path, frozenset()))
            items.append(item)
            repeated += again
        splits[split] = items
    return splits, repeated


def _clipped_lines(dataset: Dataset) -> dict[Path | None, frozenset[int]]:
    """By label file: the lines whose boxes reached out of the picture."""
    clipped: dict[Path, set[int]] = {}
    for finding in dataset.findings:
        if finding.code == "label_clipped" and finding.line is not None:
            clipped.setdefault(finding.path, set()).add(finding.line)
    return {path: frozenset(lines) for path, lines in clipped.items()}


def source_notes(
    sources: list[Opened], keep_polygons: bool = False, repaired: bool = False
) -> tuple[str, ...]:
    """What a person should know of how the sources were read. ``repaired``: what is mended is said elsewhere."""
    notes = []
    findings = [finding for opened in sources for finding in opened.findings]
    codes = Counter(finding.code for finding in findings if finding.severity == "note")
    polygons = sum(int(finding.value) for finding in findings if finding.code == "label_polygons")
    if polygons:
        now = "kept as written, the box around each counts" if keep_polygons else "written as boxes"
        notes.append(f"{counted(polygons, 'polygon row')}: {now}")
    if codes["label_clipped"] and not repaired:
        boxes = counted(codes["label_clipped"], "box", "boxes")
        notes.append(f"{boxes} reached out of the picture: they end at its edge")
    if codes["picture_orientation"] and not repaired:
        pictures = counted(codes["picture_orientation"], "picture")
        notes.append(f"{pictures} with an orientation in the file: boxes are those of the upright picture")
    notes += [
        str(f) for f in findings if f.severity == "note" and f.code in ("label_oriented", "label_points")
    ]
    missing = sum(dataset.missing_labels for opened in sources for dataset in opened.splits.values())
    if missing:
        notes.append(f"{counted(missing, 'picture')} without a label file: backgrounds, or forgotten")
    return tuple(notes)
