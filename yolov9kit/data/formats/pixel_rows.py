"""Rows of boxes in picture pixels → a label file: what every format but YOLO needs once its text is parsed."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from yolov9kit.data.findings import Finding
from yolov9kit.data.labels import MIN_SIDE_PX, TOLERANCE, LabelFile
from yolov9kit.types import printable

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels of the picture."""


class PixelRow(NamedTuple):
    """One box as a file tells of it. ``box``: left, top, right, bottom in pixels of the upright picture, unclipped.

    ``line``: of a text file, from 1; None for formats without lines, which say ``where`` (``annotations[3] (id 17)``).
    ``value``: the text found there. ``polygon``: the box was drawn around a polygon.
    """

    label: int
    box: Box
    line: int | None
    value: str = ""
    polygon: bool = False
    where: str = ""


def boxes_of_rows(path: Path, rows: Sequence[PixelRow | Finding], size_wh: tuple[int, int]) -> LabelFile:
    """The boxes of one picture of ``size_wh`` pixels, clipped to it; ``path`` is the file that tells of them.

    A ``Finding`` among the rows stands for a row that could not be parsed: it is passed on and counts as a row. A row
    that cannot be used is left out, and a finding of the severity error or warning names it.
    """
    plain = [row for row in rows if isinstance(row, PixelRow)]
    boxes = np.array([row.box for row in plain], np.float64).reshape(-1, 4)
    limits = np.array((*size_wh, *size_wh), np.float64)
    clipped = boxes.clip(0, limits).astype(np.float32)
    labels = np.array([row.label for row in plain], np.int64)
    if len(plain) == len(rows) and _nothing_to_say(plain, boxes, clipped, limits):
        return LabelFile(clipped, labels, rows=len(rows), lines=_lines(plain))
    findings: list[Finding] = []
    keep: list[int] = []
    first: dict[tuple[int, Box], PixelRow] = {}
    i = -1
    for row in rows:
        if isinstance(row, Finding):
            findings.append(row)
            continue
        i += 1
        fault = _fault(path, row, clipped[i], size_wh, first.get((row.label, row.box)))
        if fault is not None:
            findings.append(fault)
        if fault is None or fault.severity == "note":
            first[row.label, row.box] = row
            keep.append(i)
    polygons = sum(plain[i].polygon for i in keep)
    if polygons:
        message = "1 polygon row read as box" if polygons == 1 else f"{polygons} polygon rows read as boxes"
        findings.append(Finding("label_polygons", "note", path, message, value=str(polygons)))
    lines = _lines([plain[i] for i in keep])
    return LabelFile(clipped[keep], labels[keep], tuple(findings), len(rows), lines)


def with_size(
    read: LabelFile,
    picture: Path,
    size_wh: tuple[int, int],
    told: tuple[int, int] | None,
    path: Path,
    line: int | None,
) -> LabelFile:
    """Adds a warning where the file at ``path`` tells another size of the picture than it has: boxes may not fit."""
    if told is None or told == size_wh:
        return read
    turned = " (turned by its orientation)" if told == (size_wh[1], size_wh[0]) else ""
    value = f"{told[0]} x {told[1]}"
    message = (
        f"'{picture.name}' has {value} pixels here, and {size_wh[0]} x {size_wh[1]} as a file{turned}: the boxes are "
        "read as pixels of the file, look whether they fit"
    )
    about = Finding("size_differs", "warning", path, printable(message), line, value)
    return replace(read, findings=(*read.findings, about))


def _lines(rows: list[PixelRow]) -> np.ndarray | None:
    lines = [row.line for row in rows if row.line is not None]
    return np.array(lines, np.int64) if len(lines) == len(rows) else None


def _nothing_to_say(rows: list[PixelRow], boxes: np.ndarray, clipped: np.ndarray, limits: np.ndarray) -> bool:
    inside = np.all((boxes >= -TOLERANCE * limits) & (boxes <= (1 + TOLERANCE) * limits))  # False for NaN
    area = np.all(clipped[:, 2:] - clipped[:, :2] >= MIN_SIDE_PX)
    different = len({(row.label, row.box) for row in rows}) == len(rows)
    return bool(inside and area and different) and not any(row.polygon for row in rows)


def _fault(
    path: Path, row: PixelRow, clipped: np.ndarray, size_wh: tuple[int, int], same: PixelRow | None
) -> Finding | None:
    """What is to be said of a row; of the severity note where its box, ``clipped`` to the picture, is used."""
    start = f"{row.where}: " if row.where else ""
    left, top, right, bottom = row.box
    strange = next((number for number in row.box if not math.isfinite(number)), None)
    if strange is not None:
        message = f"{start}'{strange}' is not a finite number: write one, or remove the row"
        return Finding("label_number", "error", path, printable(message), row.line, row.value or str(strange))
    if same is not None:
        place = same.where or (f"line {same.line}" if same.line is not None else "another place")
        message = f"{start}the same row as in {place}, counted once: remove one of them"
        return Finding("label_repeated", "warning", path, printable(message), row.line, row.value)
    width, height = size_wh
    size = f"{right - left:g} x {bottom - top:g}"
    if right - left < MIN_SIDE_PX or bottom - top < MIN_SIDE_PX:
        message = f"{start}a box of {size} pixels, left out: correct or remove the row"
        return Finding("label_no_area", "warning", path, printable(message), row.line, size)
    if right <= 0 or bottom <= 0 or left >= width or top >= height:
        box = " ".join(f"{number:g}" for number in row.box)
        message = f"{start}the box {box} lies outside the picture of {width} x {height} pixels: correct or remove it"
        return Finding("label_outside", "error", path, printable(message), row.line, row.value or box)
    inside = (clipped[2:] - clipped[:2]).tolist()
    size = f"{inside[0]:g} x {inside[1]:g}"
    if min(inside) < MIN_SIDE_PX:
        message = f"{start}a box of {size} pixels in the picture, left out: correct or remove the row"
        return Finding("label_no_area", "warning", path, printable(message), row.line, size)
    reaches = max(-left / width, right / width - 1, -top / height, bottom / height - 1)
    if reaches > TOLERANCE:
        message = f"{start}the box reaches out of the picture by {reaches:.1%} of its side: clipped to {size} pixels"
        return Finding("label_clipped", "note", path, printable(message), row.line, f"{reaches:.1%}")
    return None
