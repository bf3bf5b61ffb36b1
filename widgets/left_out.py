"""Rows of label files that were left out: what stands there, and where the box would lie."""

import math
from pathlib import Path

import numpy as np


def raw_row(path: Path, line: int | None) -> str:
    """The text in a line (from 1) of a file; empty where there is none."""
    if line is None:
        return ""
    try:
        text = path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    rows = text.removeprefix("\ufeff").splitlines()
    return rows[line - 1].strip() if 1 <= line <= len(rows) else ""


def box_of_row(row: str, picture_wh: tuple[int, int]) -> tuple[int, np.ndarray] | None:
    """Class and xyxy in pixels of a row ``class cx cy w h``, as far as it lies in the picture.

    None where the row tells of no place there. The class is -1 where it is no whole number.
    """
    try:
        label, *values = (float(word) for word in row.split())
    except ValueError:
        return None
    if "_" in row:  # a number for Python alone
        return None
    if len(values) != 4 or not all(map(math.isfinite, values)):
        return None
    cx, cy, width, height = values
    corners = np.array([cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2])
    box = corners.clip(0, 1) * (*picture_wh, *picture_wh)
    if not (box[2] > box[0] and box[3] > box[1]):
        return None
    whole = math.isfinite(label) and label >= 0 and label == int(label)
    return (int(label) if whole else -1), box
