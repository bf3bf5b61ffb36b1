"""Four values of a table → a box: what they mean where the header leaves it open, decided by all rows together."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.pixel_rows import Box
from yolov9kit.data.formats.table_columns import Form
from yolov9kit.data.formats.table_rows import Numbers, Table, TableRow
from yolov9kit.data.labels import TOLERANCE
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_FEW = 0.2  # of the rows may contradict what the others say: they are faults of their own
_PIXELS_FROM = 2.0  # no slip of the hand gives a share this large


@dataclass(frozen=True)
class Meaning:
    """``shares``: values are shares of the picture's width and height, not pixels. ``four``: what four values without
    names are."""

    shares: bool
    four: Form

    def box(self, table: Table, row: TableRow, size_wh: tuple[int, int]) -> Box | Finding:
        """The box of a row that has one, in pixels of a picture of ``size_wh``."""
        assert isinstance(row.box, tuple), "asked for the box of a row without one"
        if self.shares and max(map(abs, row.box)) > _PIXELS_FROM:
            message = (
                "looks like pixels among shares of the picture: divide x by its width and y by its height"
            )
            return Finding("label_pixels", "error", table.file, message, row.line, row.text)
        left, top, right, bottom = _corners(
            self.four if table.columns.form == "four" else table.columns.form, row.box
        )
        scale_x, scale_y = size_wh if self.shares else (1, 1)
        return left * scale_x, top * scale_y, right * scale_x, bottom * scale_y


def meaning_of(tables: Sequence[Table]) -> tuple[Meaning, list[Finding]]:
    """What the values of all tables of a data set mean, and notes on what had to be decided.

    Raises:
        DataError: it cannot be told, or rows contradict each other.
    """
    findings = []

    def note(table: Table, message: str) -> None:
        findings.append(
            Finding("table_columns", "note", table.file, printable(message), value=message.split(":")[0])
        )

    for table in tables:
        for text in table.columns.notes:
            note(table, text)
        if table.columns.label is None:
            note(table, "names no classes: every box is an 'object'")
    by_definition = all(table.columns.open_images for table in tables)
    shares = by_definition or _are_shares(tables)
    if shares and not by_definition:
        note(tables[0], "all values lie in 0..1: read as shares of the picture's width and height")
    untold = [table for table in tables if table.columns.corner_untold]
    if untold and shares:
        raise DataError(
            printable(
                f"{untold[0].file}: x and y are shares of the picture, and may be the centre or the corner of a box: "
                "call the columns x_center and y_center, or xmin and ymin"
            )
        )
    for table in untold:
        note(
            table,
            "x and y are read as the left top corner: call them x_center and y_center if they are the centre",
        )
    four: Form = "corners"
    open_tables = [table for table in tables if table.columns.form == "four"]
    if open_tables and any(_boxes(open_tables)):
        four, why = _form_of(open_tables, shares)
        note(open_tables[0], why)
    return Meaning(shares, four), findings


def _corners(form: Form, values: Numbers) -> Box:
    first, second, third, fourth = values
    if form == "centre":
        return first - third / 2, second - fourth / 2, first + third / 2, second + fourth / 2
    if form == "size":
        return first, second, first + third, second + fourth
    return values


def _boxes(tables: Sequence[Table]) -> Iterator[tuple[Table, TableRow, Numbers]]:
    for table in tables:
        for row in table.rows:
            if isinstance(row.box, tuple) and all(map(math.isfinite, row.box)):
                yield table, row, row.box


def _are_shares(tables: Sequence[Table]) -> bool:
    shares, pixels = [], []
    for table, row, box in _boxes(tables):
        if max(map(abs, box)) > 1 + TOLERANCE:
            pixels.append((table, row))
        elif not all(value.is_integer() for value in box):  # 0 and 1 alone may be either
            shares.append((table, row))
    if not shares or len(shares) <= _FEW * len(pixels):
        return False
    if len(pixels) <= _FEW * len(shares):
        return True
    (table, row), (other, second) = shares[0], pixels[0]
    raise DataError(
        printable(
            f"{table.file}: mixes shares of the picture (line {row.line}: {row.text}) and pixels "
            f"({other.file.name}, line {second.line}: {second.text}): write one of them throughout"
        )
    )


def _form_of(tables: Sequence[Table], shares: bool) -> tuple[Form, str]:
    """Two corners, or corner and size: what fits the rows, and why, as a sentence."""

    def against(fits: Callable[[Numbers, tuple[float, float]], bool]) -> list[TableRow]:
        unlimited = (1.0 + TOLERANCE,) * 2 if shares else (math.inf, math.inf)
        return [
            row for _, row, box in rows if not fits(box, unlimited if shares else row.size_wh or unlimited)
        ]

    rows = list(_boxes(tables))
    corners = against(lambda b, wh: b[2] > b[0] and b[3] > b[1])
    sizes = against(lambda b, wh: b[2] > 0 and b[3] > 0 and b[0] + b[2] <= wh[0] and b[1] + b[3] <= wh[1])
    fewer = min(len(corners), len(sizes))
    if fewer > _FEW * len(rows) or (fewer and len(corners) == len(sizes)):
        raise DataError(
            printable(
                f"{tables[0].file}: the four values of a box are neither two corners (line {corners[0].line}: "
                f"{corners[0].text}) nor a corner and the size (line {sizes[0].line}: {sizes[0].text}) throughout: "
                "write the names of the columns above them (xmin,ymin,xmax,ymax or xmin,ymin,width,height)"
            )
        )
    if len(sizes) < len(corners):
        return (
            "size",
            f"four values without names: read as left, top, width, height, as line {corners[0].line} shows",
        )
    if sizes:
        return (
            "corners",
            f"four values without names: read as left, top, right, bottom, as line {sizes[0].line} shows",
        )
    return "corners", (
        "four values without names: read as left, top, right, bottom, which all rows allow; if they are left, top, "
        "width, height, write the names of the columns above them"
    )
