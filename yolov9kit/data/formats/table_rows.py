"""A text table of boxes → its rows with their lines: delimiter, header, and what each row says."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.json_file import head_of
from yolov9kit.data.formats.table_columns import Columns, by_header, by_rows, is_class_table, is_number
from yolov9kit.data.yaml_file import text_of
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_DELIMITERS = ",;\t"
_SHOWN_CELLS = 60

Line = tuple[int, list[str]]
"""The number of a line, from 1, and its cells."""

Numbers = tuple[float, float, float, float]


class TableRow(NamedTuple):
    """One row. ``box``: four values as they stand, the finding that says why there are none, or None for a picture
    without boxes. ``size_wh``: of the picture, as the row says. ``group``: many objects, not one."""

    line: int
    picture: str
    split: str
    label: str
    box: Numbers | Finding | None
    text: str
    size_wh: tuple[int, int] | None
    group: bool


@dataclass(frozen=True)
class Table:
    """``findings``: rows that cannot be given to any picture."""

    file: Path
    columns: Columns
    rows: tuple[TableRow, ...]
    findings: tuple[Finding, ...]


def looks_like_table(file: Path) -> bool:
    """Whether the first lines are those of a table of boxes, also of one that cannot be read."""
    head = head_of(file)
    try:
        return _columns_and_lines(head.rpartition("\n")[0] or head) is not None
    except csv.Error:
        return False


def looks_like_classes(file: Path) -> bool:
    """Whether the first lines are those of a table of pictures and their classes, without boxes."""
    physical = _physical(head_of(file))[:2]
    try:
        tables = [[cells for _, cells in _lines(physical, delimiter)] for delimiter in _DELIMITERS]
    except csv.Error:
        return False
    return any(is_class_table(*table) for table in tables if len(table) == 2)


def read_table(file: Path) -> Table | None:
    """None: no table of boxes.

    Raises:
        DataError: the file cannot be read, or its boxes are of no kind that is read.
    """
    try:
        found = _columns_and_lines(text_of(file))
    except csv.Error as fault:
        raise DataError(printable(f"{file}: not a table: {fault}")) from fault
    if found is None:
        return None
    columns, lines = found
    if isinstance(columns, str):
        raise DataError(printable(f"{file}: {columns}"))
    rows: list[TableRow] = []
    findings: list[Finding] = []
    for number, cells in lines:
        row = _row(file, columns, number, cells)
        if isinstance(row, Finding):
            findings.append(row)
        else:
            rows.append(row)
    return Table(file, columns, tuple(rows), tuple(findings))


def _columns_and_lines(text: str) -> tuple[Columns | str, list[Line]] | None:
    """What the columns mean, and the lines below the header."""
    physical = _physical(text)
    start = next((i for i, line in enumerate(physical) if line.strip()), None)
    if start is None:
        return None
    for delimiter in _DELIMITERS:
        first = next(csv.reader([physical[start]], delimiter=delimiter))
        columns = by_header(first)
        if isinstance(columns, str):
            return columns, []
        if columns is not None:
            lines = list(_lines(physical, delimiter, columns.count))
            return columns, lines[1:]
        if len(first) > 4:
            lines = list(_lines(physical, delimiter, len(first)))
            columns = by_rows([cells for _, cells in lines])
            if columns is not None:
                return columns, lines
    return None


def _physical(text: str) -> list[str]:
    return re.split(r"\r\n|\r|\n", text)


def _lines(physical: list[str], delimiter: str, count: int = 0) -> Iterator[Line]:
    """The lines with text in them. A text in quotation marks may go over several lines if ``count`` cells come out;
    otherwise a mark was forgotten, and each line stands for itself."""
    reader = csv.reader((f"{line}\n" for line in physical), delimiter=delimiter)
    end = 0
    for cells in reader:
        start, end = end + 1, reader.line_num
        if end > start and len(cells) != count:
            for number in range(start, end + 1):
                yield from _filled(number, next(csv.reader([physical[number - 1]], delimiter=delimiter), []))
        else:
            yield from _filled(start, cells)


def _filled(number: int, cells: list[str]) -> Iterable[Line]:
    return [(number, cells)] if any(cell.strip() for cell in cells) else []


def _row(file: Path, columns: Columns, line: int, cells: list[str]) -> TableRow | Finding:
    text = printable(", ".join(cells))
    text = text if len(text) <= _SHOWN_CELLS else f"{text[: _SHOWN_CELLS - 3]}..."
    while len(cells) > columns.count and not cells[-1].strip():
        cells = cells[:-1]
    picture = cells[columns.file].strip() if columns.file < len(cells) else ""
    if not picture:
        message = "names no picture: write its file name, or remove the row"
        return Finding("label_columns", "error", file, message, line, text)

    def cell(column: int | None) -> str:
        return "" if column is None or column >= len(cells) else cells[column].strip()

    label = cell(columns.label)
    box = _box(file, columns, line, cells, label)
    sides = [
        int(float(side)) for column in (columns.width, columns.height) if is_number(side := cell(column))
    ]
    size_wh = (sides[0], sides[1]) if len(sides) == 2 and min(sides) > 0 else None
    return TableRow(line, picture, cell(columns.split), label, box, text, size_wh, cell(columns.group) == "1")


def _box(file: Path, columns: Columns, line: int, cells: list[str], label: str) -> Numbers | Finding | None:
    def fault(code: str, value: str, message: str) -> Finding:
        return Finding(code, "error", file, printable(message), line, printable(value)[:_SHOWN_CELLS])

    if len(cells) != columns.count:
        expected = "the header has" if columns.header else "the other rows have"
        hint = (
            ": put a box of several values in quotation marks"
            if columns.form == "four" and columns.header
            else ""
        )
        row = ", ".join(cells)
        return fault(
            "label_columns", row, f"{len(cells)} columns, {expected} {columns.count}: correct the row{hint}"
        )
    texts = [cells[column].strip() for column in columns.box]
    if not any(texts) and not label:
        return None
    if columns.label is not None and not label:
        return fault("label_class", "", "names no class: write one, or remove the row")
    if len(columns.box) == 1:
        texts = [text for text in re.split(r"[\s,;()\[\]]+", texts[0]) if text]
        if len(texts) != 4:
            return fault("label_columns", cells[columns.box[0]], f"a box of {len(texts)} values: write four")
    for text in texts:
        if not is_number(text):
            hint = ", with a decimal point" if "," in text else ""
            return fault(
                "label_number",
                text,
                f"'{text[:60]}' is not a finite number: write one{hint}, or remove the row",
            )
    left, top, third, fourth = map(float, texts)
    return left, top, third, fourth
