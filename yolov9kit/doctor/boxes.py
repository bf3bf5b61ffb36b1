"""Boxes that can hardly be meant: too small to be seen, as large as the picture, or nearly the same box twice."""

from collections.abc import Sequence

import numpy as np

from yolov9kit.data.findings import Finding
from yolov9kit.doctor.flat_boxes import FlatBoxes, in_words

TINY_PX = 2.0
"""A narrower box covers no cell of the finest map in any useful way: a quarter of its stride of 8."""
HUGE_SHARE = 0.95
SAME_IOU = 0.95


def box_findings(flat: FlatBoxes, names: Sequence[str], image_size: int) -> list[Finding]:
    """``box_tiny``, ``box_huge``, ``label_near_repeat`` and ``label_conflict`` of a split."""
    return [*_tiny(flat, image_size), *_huge(flat), *_nearly_same(flat, names)]


def touching_edge(flat: FlatBoxes) -> np.ndarray:
    """Which boxes (N bool) end at the edge of their picture, to half a pixel."""
    near_start = flat.boxes[:, :2] <= 0.5
    near_end = flat.boxes[:, 2:] >= flat.picture_wh - 0.5
    return np.asarray((near_start | near_end).any(axis=1))


def _tiny(flat: FlatBoxes, image_size: int) -> list[Finding]:
    found = []
    for i in np.flatnonzero((flat.sides_px < TINY_PX).any(axis=1)).tolist():
        width, height = flat.sides_px[i].tolist()
        message = (
            f"a box of {flat.size(i)} pixels is {in_words(width)} x {in_words(height)} at the input size {image_size}, "
            "too small to be learnt: correct the row, remove it, or take a larger input"
        )
        found.append(flat.finding("box_tiny", "warning", i, message, flat.size(i)))
    return found


def _huge(flat: FlatBoxes) -> list[Finding]:
    sides = flat.boxes[:, 2:].astype(np.float64) - flat.boxes[:, :2]
    shares = sides.prod(axis=1) / flat.picture_wh.prod(axis=1)
    found = []
    for i in np.flatnonzero(shares > HUGE_SHARE).tolist():
        message = (
            f"the box covers {shares[i]:.1%} of the picture: look whether one object is really that large"
        )
        found.append(flat.finding("box_huge", "note", i, message, f"{shares[i]:.1%}"))
    return found


def _nearly_same(flat: FlatBoxes, names: Sequence[str]) -> list[Finding]:
    """Each box at most once for each of the two codes, against the first box that it repeats."""
    found = []
    seen: set[tuple[str, int]] = set()
    for first, later, iou in _overlapping(flat):
        same_class = flat.labels[first] == flat.labels[later]
        code = "label_near_repeat" if same_class else "label_conflict"
        if (code, later) in seen:
            continue
        seen.add((code, later))
        name, other = names[flat.labels[later]], names[flat.labels[first]]
        if same_class:
            message = (
                f"nearly the box of {flat.place(first)} (IoU {iou:.3f}, class {name}): remove one of them"
            )
        else:
            where = flat.place(first)
            message = (
                f"class {name} for the box that {where} calls {other} (IoU {iou:.3f}): keep the right one"
            )
        found.append(flat.finding(code, "warning", later, message, f"{iou:.3f}"))
    return found


def _overlapping(flat: FlatBoxes) -> list[tuple[int, int, float]]:
    """Pairs of boxes of one picture with an IoU above ``SAME_IOU``, by their places in ``flat``, earlier row first.

    Boxes are taken from left to right, and each is compared with those that begin so little to its right that they
    could overlap it that much: a crowded picture costs no more than its real candidates.
    """
    order = np.lexsort((flat.boxes[:, 0], flat.owner))
    boxes = flat.boxes[order].astype(np.float64)
    owner = flat.owner[order]
    width = boxes[:, 2] - boxes[:, 0]
    reach = boxes[:, 0] + width * (1 - SAME_IOU) / SAME_IOU
    area = width * (boxes[:, 3] - boxes[:, 1])
    pairs: list[tuple[int, int, float]] = []
    left = np.arange(len(order))
    step = 1
    while True:
        left = left[left + step < len(order)]
        right = left + step
        near = (owner[left] == owner[right]) & (boxes[right, 0] <= reach[left])
        left, right = left[near], right[near]
        if not len(left):
            return sorted(pairs)
        low = np.maximum(boxes[left, :2], boxes[right, :2])
        high = np.minimum(boxes[left, 2:], boxes[right, 2:])
        common = (high - low).clip(0).prod(axis=1)
        iou = common / (area[left] + area[right] - common)
        for i in np.flatnonzero(iou > SAME_IOU).tolist():
            one, two = sorted((int(order[left[i]]), int(order[right[i]])))
            pairs.append((one, two, float(iou[i])))
        step += 1
