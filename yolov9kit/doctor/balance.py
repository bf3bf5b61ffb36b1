"""How many boxes each class has, and how large they are beside the input size."""

from pathlib import Path

import numpy as np

from yolov9kit.data.dataset import Dataset
from yolov9kit.data.findings import Finding
from yolov9kit.doctor.flat_boxes import FlatBoxes
from yolov9kit.types import printable

RARE = 10
UNBALANCED = 100
SMALL_PX = 8.0
SMALL_SHARE = 0.5


def boxes_per_class(dataset: Dataset) -> np.ndarray:
    """C int64: how many boxes each class has."""
    labels = [sample.labels for sample in dataset.samples]
    together = np.concatenate([np.empty(0, np.int64), *labels])
    return np.bincount(together, minlength=len(dataset.names))


def absent_findings(file: Path, train: Dataset, val: Dataset | None) -> list[Finding]:
    """``class_absent`` and ``class_absent_val``; ``file`` is the description that names the classes."""
    counts = boxes_per_class(train)
    val_counts = None if val is None else boxes_per_class(val)
    found = []
    for number, name in enumerate(train.names):
        shown = printable(name)
        if not counts[number]:
            message = f"class {number} '{shown}' has no box in train, it cannot be learnt: add boxes or remove its name"
            found.append(Finding("class_absent", "warning", file, message, value=shown))
        elif val_counts is not None and not val_counts[number]:
            message = (
                f"class {number} '{shown}' has no box in val, it gets no score: put pictures of it into val"
            )
            found.append(Finding("class_absent_val", "warning", file, message, value=shown))
    return found


def balance_findings(file: Path, train: Dataset) -> list[Finding]:
    """``class_rare`` and ``class_balance`` of the training pictures."""
    counts = boxes_per_class(train)
    found = []
    for number in np.flatnonzero((counts > 0) & (counts < RARE)).tolist():
        name, boxes = printable(train.names[number]), int(counts[number])
        message = (
            f"class {number} '{name}' has only {boxes} box{'' if boxes == 1 else 'es'} in train: add some, "
            "ten of each class are little"
        )
        found.append(Finding("class_rare", "note", file, message, value=name))
    present = np.flatnonzero(counts)
    if len(present):
        most, least = int(counts.argmax()), int(present[counts[present].argmin()])
        ratio = counts[most] / counts[least]
        if ratio > UNBALANCED:
            often, seldom = printable(train.names[most]), printable(train.names[least])
            message = (
                f"'{often}' has {counts[most]} boxes in train, '{seldom}' {counts[least]}: add pictures of the rare "
                "one, or expect it to be missed"
            )
            found.append(Finding("class_balance", "note", file, message, value=f"{ratio:.0f}"))
    return found


def size_findings(file: Path, split: str, flat: FlatBoxes, image_size: int) -> list[Finding]:
    """``objects_small``: half of the boxes have a side below 8 pixels, the finest stride of the network."""
    if not len(flat.labels):
        return []
    shorter = flat.sides_px.min(axis=1)
    small = int((shorter < SMALL_PX).sum())
    if small < SMALL_SHARE * len(shorter):
        return []
    middle = float(np.quantile(shorter, SMALL_SHARE, method="higher"))
    helping = int(-(-image_size * SMALL_PX / middle // 32) * 32)
    message = (
        f"{small} of {len(shorter)} boxes of {split} have a side below {SMALL_PX:g} pixels at the input size "
        f"{image_size}: {helping} would bring half of them above it; or cut pictures into tiles"
    )
    return [Finding("objects_small", "warning", file, message, value=f"{small / len(shorter):.0%}")]
