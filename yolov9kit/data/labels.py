"""Label file → boxes and labels: what a row means, and what is wrong with it.

A row is ``class cx cy w h``, ``class x1 y1 x2 y2 x3 y3 ...`` (a polygon, read as the box around it) or a box with
key points behind it (read as the box), all coordinates as shares of the picture's width and height, separated by
blanks. ``#`` starts a comment.
"""

import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from yolov9kit.data.corners import Corners, corners_of
from yolov9kit.data.findings import Finding, Severity
from yolov9kit.types import printable

TOLERANCE = 1e-3  # a share this far outside 0..1 comes from rounding and is clipped without a word
MIN_SIDE_PX = 1e-3  # of a narrower box nothing is left in float32
_PIXELS_FROM = 2.0  # no slip of the hand gives a share this large: the unit is another


@dataclass(frozen=True, eq=False)
class LabelFile:
    """``boxes`` N x 4 float32 xyxy picture pixels and ``labels`` N int64 of the rows that hold, in their order.

    Attributes:
        rows: how many rows the file has, those left out too (0: an empty file).
        lines: N int64, the line of each box, from 1; None for formats without lines.
        oriented: lines whose four corners are those of a tilted rectangle. What that means, the whole split tells.
        other_polygons: polygon rows that can be no box of four corners.
        points: lines with key points behind the box.

    The arrays are read-only.
    """

    boxes: np.ndarray
    labels: np.ndarray
    findings: tuple[Finding, ...] = ()
    rows: int = 0
    lines: np.ndarray | None = None
    oriented: tuple[int, ...] = ()
    other_polygons: int = 0
    points: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        self.boxes.flags.writeable = self.labels.flags.writeable = False
        if self.lines is not None:
            self.lines.flags.writeable = False


class _Fault(NamedTuple):
    """Why a row is left out."""

    code: str
    severity: Severity
    value: str
    message: str


class _Row(NamedTuple):
    """``numbers``: the class, then ``cx cy w h`` or the corners of a polygon."""

    numbers: tuple[float, ...]
    kind: Literal["box", "points"] | Corners


def read_labels(
    path: str | os.PathLike[str], size_wh: tuple[int, int], num_classes: int, *, point_columns: int = 0
) -> LabelFile:
    """The boxes of a label file, for a picture of ``size_wh`` pixels and classes 0 to ``num_classes - 1``.

    ``point_columns``: so many columns of key points stand behind the box where there are more than five; 0: unknown,
    and only rows that can be nothing else are taken for key points.

    Never raises for what the file holds: a row that cannot be used is left out, and a finding names it. Corners
    are clipped to the picture.
    """
    path = Path(path)
    text = text_of_labels(path)
    if isinstance(text, LabelFile):
        return text
    plain = _plain_values(text, num_classes)
    if plain is not None:
        values, lines = plain
        shares = _corners(values[:, 1:])
        boxes = _pixels(shares, size_wh)
        if not (_outside(shares) | _without_area(boxes)).any():
            return LabelFile(boxes, values[:, 0].astype(np.int64), rows=len(values), lines=lines)
    return _row_by_row(path, text, size_wh, num_classes, point_columns)


def text_of_labels(path: Path) -> str | LabelFile:
    """The text of a label file, lines ended by ``\\n`` alone; where it cannot be read, a file without boxes that says
    why."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as fault:
        return _unreadable(path, f"cannot be read ({fault.strerror or fault})")
    except UnicodeDecodeError as fault:
        return _unreadable(path, f"byte {fault.start} is no UTF-8 text: save the file as UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _unreadable(path: Path, message: str) -> LabelFile:
    finding = Finding("label_file", "error", path, message)
    return LabelFile(np.empty((0, 4), np.float32), np.empty(0, np.int64), (finding,), rows=1)


# ---------------------------------------------------------------------------------------------- boxes


def _corners(cxcywh_norm: np.ndarray) -> np.ndarray:
    """Centre and size to the two corners, N x 4, shares of the picture."""
    centre, half = cxcywh_norm[:, :2], cxcywh_norm[:, 2:] / 2
    return np.concatenate((centre - half, centre + half), axis=1)


def _pixels(shares: np.ndarray, size_wh: tuple[int, int]) -> np.ndarray:
    """Corners N x 4 float64 as shares → float32 pixels inside the picture. Only the last step rounds."""
    limits = np.array((*size_wh, *size_wh), np.float64)
    return (shares * limits).clip(0, limits).astype(np.float32)


def _outside(shares: np.ndarray) -> np.ndarray:
    return np.any((shares < -TOLERANCE) | (shares > 1 + TOLERANCE), axis=1)


def _without_area(boxes: np.ndarray) -> np.ndarray:
    return np.any(boxes[:, 2:] - boxes[:, :2] < MIN_SIDE_PX, axis=1)


# ---------------------------------------------------------------------------------- the usual file


def _plain_values(text: str, num_classes: int) -> tuple[np.ndarray, np.ndarray] | None:
    """N x 5 float64 of a file of ``class cx cy w h`` rows without any fault, and the line of each, from 1; None for
    every other file."""
    if not text.isascii() or "_" in text:  # float() takes both
        return None
    rows = [columns for line in text.split("\n") if (columns := line.split())]
    if any(len(columns) != 5 for columns in rows):
        return None
    try:
        numbers = [tuple(map(float, columns)) for columns in rows]
    except ValueError:
        return None
    if len(set(numbers)) < len(numbers):
        return None
    values = np.array(numbers, np.float64).reshape(-1, 5)
    classes, coordinates = values[:, 0], values[:, 1:]
    with np.errstate(invalid="ignore"):  # NaN and infinity fail the comparisons
        whole = ((classes >= 0) & (classes < num_classes) & (classes == np.floor(classes))).all()
        inside = ((coordinates >= -TOLERANCE) & (coordinates <= 1 + TOLERANCE)).all()
    if not (whole and inside):
        return None
    if len(rows) == text.count("\n") + (not text.endswith("\n")):
        return values, np.arange(1, len(rows) + 1)
    return values, np.array([line for line, row in enumerate(text.split("\n"), 1) if row.split()], np.int64)


# -------------------------------------------------------------------------- files with something to say


def _row_by_row(
    path: Path, text: str, size_wh: tuple[int, int], num_classes: int, point_columns: int
) -> LabelFile:
    count, findings = 0, []
    first_line: dict[tuple[float, ...], int] = {}
    kinds: list[str] = []
    for line, content in enumerate(text.split("\n"), 1):
        columns = content.partition("#")[0].split()
        if not columns:
            continue
        count += 1
        row = _parse(columns, size_wh, num_classes, point_columns)
        if isinstance(row, _Row) and row.numbers in first_line:
            message = f"the same row as in line {first_line[row.numbers]}, counted once: remove one of them"
            row = _Fault("label_repeated", "warning", shown(columns), message)
        if isinstance(row, _Fault):
            findings.append(Finding(row.code, row.severity, path, row.message, line, row.value))
        else:
            first_line[row.numbers] = line
            kinds.append(row.kind)
    rows, lines = list(first_line), list(first_line.values())
    shares = np.array([_share_box(row) for row in rows], np.float64).reshape(-1, 4)
    boxes = _pixels(shares, size_wh)
    keep = ~_without_area(boxes)
    findings += _about_boxes(path, lines, shares, boxes, keep)
    findings.sort(key=lambda finding: finding.line or 0)
    findings += _about_polygons(path, [len(row) > 5 for row in rows])
    labels = np.array([row[0] for row in rows], np.float64).astype(np.int64)
    return LabelFile(
        boxes[keep],
        labels[keep],
        tuple(findings),
        count,
        np.array(lines, np.int64)[keep],
        oriented=tuple(line for line, kind in zip(lines, kinds, strict=True) if kind == "oriented"),
        other_polygons=kinds.count("polygon"),
        points=tuple(line for line, kind in zip(lines, kinds, strict=True) if kind == "points"),
    )


def _parse(
    columns: list[str], size_wh: tuple[int, int], num_classes: int, point_columns: int
) -> _Row | _Fault:
    """The numbers of a row: the class, then coordinates that lie in the picture."""
    count = len(columns)
    has_points = count == 5 + point_columns > 5 or (point_columns == 0 and _must_be_points(columns))
    if has_points:
        columns = columns[:5]
    elif count != 5 and (point_columns or count < 7 or count % 2 == 0):
        return _wrong_count(columns, point_columns)
    row = tuple(map(to_number, columns))
    for number, column in zip(row, columns, strict=True):
        if not math.isfinite(number):
            hint = ", with a decimal point" if "," in column else ""
            message = f"'{shown([column])}' is not a finite number: write one{hint}, or remove the row"
            return _Fault("label_number", "error", shown([column]), message)
    if row[0] != math.floor(row[0]):
        message = f"class {shown(columns[:1])} is not a whole number: correct it"
        return _Fault("label_class", "error", shown(columns[:1]), message)
    if not 0 <= row[0] < num_classes:
        value = f"{row[0]:.15g}"
        message = f"class {value}, allowed 0-{num_classes - 1}: correct it, or give it a name"
        return _Fault("label_class_range", "error", value, message)
    kind = "points" if has_points else "box" if len(row) == 5 else corners_of(row[1:], size_wh)
    if kind == "oriented" and _centre_inside(row[1:]):
        return _Row(row, kind)  # the corners of a tilted box may reach out, as a box of cx cy w h may
    for number, column in zip(row[1:], columns[1:], strict=True):
        if not -TOLERANCE <= number <= 1 + TOLERANCE:
            return _why_outside(row[1:], column, size_wh)
    return _Row(row, kind)


def _must_be_points(columns: list[str]) -> bool:
    """No polygon has an even number of columns, or a coordinate of 2."""
    return _may_be_points(columns) and (len(columns) % 2 == 0 or 2 in map(to_number, columns[7::3]))


def _may_be_points(columns: list[str]) -> bool:
    """Whether a row reads as a box and key points ``x y visibility`` in the picture."""
    if len(columns) < 8 or (len(columns) - 5) % 3:
        return False
    if not all(to_number(column) in (0, 1, 2) for column in columns[7::3]):
        return False
    shares = [to_number(column) for i, column in enumerate(columns[1:]) if i < 4 or i % 3 != 0]
    return all(-TOLERANCE <= share <= 1 + TOLERANCE for share in shares)


def point_columns_of(paths: Iterable[Path]) -> int:
    """How many columns of key points the rows of these label files have, where all agree; else 0."""
    counts: set[int] = set()
    certain = False
    for path in paths:
        text = text_of_labels(path)
        for line in text.split("\n") if isinstance(text, str) else ():
            columns = line.partition("#")[0].split()
            if len(columns) in (0, 5):
                continue
            counts.add(len(columns))
            if len(counts) > 1 or not _may_be_points(columns):
                return 0
            certain = certain or _must_be_points(columns)
    return counts.pop() - 5 if certain else 0


def _centre_inside(corners: tuple[float, ...]) -> bool:
    xs, ys = corners[::2], corners[1::2]
    return 0 <= sum(xs) / len(xs) <= 1 and 0 <= sum(ys) / len(ys) <= 1


def to_number(text: str) -> float:
    """NaN for what is no number. ``float`` alone would take ``1_0`` and the digits of every script."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def _wrong_count(columns: list[str], point_columns: int) -> _Fault:
    count = len(columns)
    if point_columns:
        hint = f"expected 5, or {5 + point_columns} with the key points that kpt_shape in the yaml tells of"
    elif count == 6:
        hint = "a detection result with a score? Remove the sixth"
    elif any("," in column for column in columns):
        hint = "separate the values by blanks, not commas"
    else:
        hint = "expected class cx cy w h, or class and at least three points x y of a polygon"
    message = f"{count} column{'' if count == 1 else 's'}: {hint}"
    return _Fault("label_columns", "error", shown(columns), message)


def _why_outside(coordinates: tuple[float, ...], column: str, size_wh: tuple[int, int]) -> _Fault:
    value = shown([column])
    if max(map(abs, coordinates)) > _PIXELS_FROM:
        width, height = size_wh
        message = f"{value} looks like pixels: divide x by the width {width} and y by the height {height}"
        return _Fault("label_pixels", "error", value, message)
    return _Fault(
        "label_outside", "error", value, f"{value} lies outside 0..1: correct it, or remove the row"
    )


def _share_box(row: tuple[float, ...]) -> tuple[float, float, float, float]:
    if len(row) == 5:
        left, top, right, bottom = _corners(np.array([row[1:]], np.float64))[0].tolist()
        return left, top, right, bottom
    xs, ys = row[1::2], row[2::2]
    return min(xs), min(ys), max(xs), max(ys)


def _about_boxes(
    path: Path, lines: list[int], shares: np.ndarray, boxes: np.ndarray, keep: np.ndarray
) -> list[Finding]:
    found = []
    outside = _outside(shares)
    for i, line in enumerate(lines):
        width, height = (boxes[i, 2:] - boxes[i, :2]).tolist()
        size = f"{width:g} x {height:g}"
        if not keep[i]:
            message = f"a box of {size} pixels in the picture, left out: correct or remove the row"
            found.append(Finding("label_no_area", "warning", path, message, line, size))
        elif outside[i]:
            farthest = max(-shares[i].min(), shares[i].max() - 1)
            message = (
                f"the box reaches out of the picture by {farthest:.1%} of its side: clipped to {size} pixels"
            )
            found.append(Finding("label_clipped", "note", path, message, line, f"{farthest:.1%}"))
    return found


def _about_polygons(path: Path, is_polygon: list[bool]) -> list[Finding]:
    polygons = sum(is_polygon)
    if not polygons:
        return []
    rows = "1 polygon row read as box" if polygons == 1 else f"{polygons} polygon rows read as boxes"
    found = [Finding("label_polygons", "note", path, rows, value=str(polygons))]
    boxes = len(is_polygon) - polygons
    if boxes:
        message = f"mixed file: polygon rows ({polygons}) beside box rows ({boxes})"
        found.append(Finding("label_mixed", "note", path, message, value=f"{polygons}, {boxes}"))
    return found


def shown(columns: list[str]) -> str:
    """Columns of a row as a message shows them: printable and short."""
    text = printable(" ".join(columns))
    return text if len(text) <= 60 else f"{text[:57]}..."
