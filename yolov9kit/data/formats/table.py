"""Tables of boxes, CSV and the like: a row for each box, pictures and classes by name."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import Layout, SplitFiles, split_called
from yolov9kit.data.formats.named_classes import ordered_names
from yolov9kit.data.formats.picture_places import PictureFinder, about_unnamed, folders_of, last_part
from yolov9kit.data.formats.pixel_rows import PixelRow, boxes_of_rows, with_size
from yolov9kit.data.formats.ready import ReadyLayout
from yolov9kit.data.formats.split_files import SplitFile, files_at, one_for_each_split, split_file
from yolov9kit.data.formats.table_boxes import Meaning, meaning_of
from yolov9kit.data.formats.table_rows import (
    Table,
    TableRow,
    looks_like_classes,
    looks_like_table,
    read_table,
)
from yolov9kit.data.labels import LabelFile
from yolov9kit.data.listing import files_below
from yolov9kit.data.yaml_file import text_of
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_SUFFIXES = (".csv", ".tsv", ".txt")


def open_table(path: Path) -> Layout | None:
    """The data set of a table of boxes, or of a folder that holds some; None where there is none.

    Columns are known by their header, or by what stands in rows without one; what a table leaves open is decided by
    all rows and told in a note, or refused. Classes are sorted by name, or by number where all are whole numbers.

    Raises:
        DataError: a table cannot be used, or it tells of classes without boxes.
    """
    candidates = files_at(path, _SUFFIXES)
    files = [file for file in candidates if looks_like_table(file)]
    if not files:
        classes = [file for file in candidates if looks_like_classes(file)]
        if classes and not (
            path.is_dir() and any(files_below(path, lambda name: name.lower().endswith(".txt")))
        ):
            reason = "names classes of whole pictures, no boxes: a detector needs a box for each object"
            raise DataError(printable(f"{classes[0]}: {reason}"))
        return None
    places, findings = one_for_each_split(path, [split_file(path, file) for file in files])
    parts = []
    for split, place in places.items():
        table = read_table(place.file)
        if table is not None:
            parts += _parts(table, place, split)
    if not parts:
        return None
    twice = [split for split, count in Counter(part.split for part in parts).items() if count > 1]
    if twice:
        raise DataError(printable(f"{path}: two tables tell of split '{twice[0]}': give one of them"))
    tables = list({part.table.file: part.table for part in parts}.values())
    meaning, about = meaning_of(tables)
    names, numbers, about_names = _classes(parts)
    named = {last_part(row.picture) for table in tables for row in table.rows}
    opened = {part.split: partial(_open, part, meaning, numbers, named) for part in parts}
    return ReadyLayout("table of boxes", path, names, opened, (*findings, *about, *about_names))


@dataclass(frozen=True)
class _Part:
    """The rows of one table that belong to one split. ``findings``: about rows of no picture."""

    split: str
    table: Table
    place: SplitFile
    rows: tuple[TableRow, ...]
    findings: tuple[Finding, ...]


def _parts(table: Table, place: SplitFile, split: str) -> list[_Part]:
    """One part, or several where a column names the split."""
    if table.columns.split is None or not table.rows:
        return [_Part(split, table, place, table.rows, table.findings)]
    rows: dict[str, list[TableRow]] = defaultdict(list)
    for row in table.rows:
        rows[split_called(row.split) or row.split or split].append(row)
    first = next(iter(rows))
    return [
        _Part(name, table, place, tuple(of_split), table.findings if name == first else ())
        for name, of_split in rows.items()
    ]


# ------------------------------------------------------------------------------------------------ classes


def _classes(parts: Sequence[_Part]) -> tuple[tuple[str, ...], dict[str, int], Sequence[Finding]]:
    """The names of the classes, the number of each label, and what there is to say."""
    used = Counter(
        row.label for part in parts for row in part.rows if isinstance(row.box, tuple) and not row.group
    )
    if all(part.table.columns.label is None for part in parts):
        return ("object",), {"": 0}, ()
    if any(part.table.columns.label is None for part in parts):
        missing = next(part for part in parts if part.table.columns.label is None)
        raise DataError(
            printable(f"{missing.table.file}: has no column of classes, other tables have: add one")
        )
    findings: Sequence[Finding] = ()
    if all(label.isascii() and label.isdecimal() for label in used):
        labels = tuple(sorted(used, key=lambda label: (int(label), label)))
    else:
        labels, findings = ordered_names(parts[0].place.root, used)
    numbers = {label: number for number, label in enumerate(labels)}
    told = _descriptions(parts) if parts[0].table.columns.open_images else {}
    names = tuple(told.get(label, label) for label in labels)
    return (names if len(set(names)) == len(names) else labels), numbers, findings


def _descriptions(parts: Sequence[_Part]) -> dict[str, str]:
    """The names that Open Images gives for its codes, where their file lies beside the boxes."""
    told: dict[str, str] = {}
    for folder in dict.fromkeys(part.table.file.parent for part in parts):
        for file in sorted(folder.glob("*class-descriptions*.csv")):
            pairs = [line.partition(",") for line in text_of(file).splitlines()]
            told |= {code.strip(): name.strip().strip('"') for code, _, name in pairs if name.strip()}
    return told


# ------------------------------------------------------------------------------------------------- splits


def _open(part: _Part, meaning: Meaning, numbers: Mapping[str, int], named: set[str]) -> SplitFiles:
    file, split = part.table.file, part.split
    names = dict.fromkeys(row.picture for row in part.rows)
    finder = PictureFinder(folders_of(part.place.root, file, split, (part.place.called,)), names, bare=True)
    places = {name: finder.find(name) for name in names}
    pictures = tuple(dict.fromkeys(place for place in places.values() if place is not None))
    if not pictures:
        raise DataError(printable(f"{file}: split '{split}': {_why_nothing(part, finder)}"))
    index = {picture: i for i, picture in enumerate(pictures)}
    rows: list[list[TableRow]] = [[] for _ in pictures]
    lost: dict[str, list[TableRow]] = defaultdict(list)
    groups = 0
    for row in part.rows:
        place = places[row.picture]
        if place is None:
            lost[row.picture].append(row)
        elif row.group and isinstance(row.box, tuple):
            groups += 1
        else:
            rows[index[place]].append(row)
    findings = list(part.findings)
    for name, of_picture in lost.items():
        message = (
            f"'{name}' ({len(of_picture)} rows) was not found: put it there, or remove the rows (tried: "
            f"{finder.tried(name)})"
        )
        line = of_picture[0].line
        findings.append(Finding("picture_missing", "error", file, printable(message), line, printable(name)))
    if groups:
        boxes = "1 box" if groups == 1 else f"{groups} boxes"
        message = f"{boxes} around many objects (IsGroupOf 1) left out: no single object is meant"
        findings.append(Finding("label_crowd", "note", file, message, value=str(groups)))
    findings += about_unnamed(file, finder.unnamed(pictures, named))
    read = TableBoxes(part.table, pictures, rows, meaning, numbers)
    return SplitFiles(pictures, (file,) * len(pictures), read, (file,), tuple(findings))


def _why_nothing(part: _Part, finder: PictureFinder) -> str:
    if not part.rows:
        return f"names no picture{f': {part.findings[0]}' if part.findings else ''}"
    name = part.rows[0].picture
    count = len({row.picture for row in part.rows})
    return f"none of its {count} pictures was found; '{name}' was looked for in {finder.tried(name)}"


@dataclass(frozen=True)
class TableBoxes:
    """``read`` of one split: for each picture its rows."""

    table: Table
    pictures: tuple[Path, ...]
    rows: list[list[TableRow]]
    meaning: Meaning
    numbers: Mapping[str, int]

    def __call__(self, i: int, size_wh: tuple[int, int]) -> LabelFile:
        rows = [self._row(row, size_wh) for row in self.rows[i] if row.box is not None]
        read = boxes_of_rows(self.table.file, rows, size_wh)
        told = next((row for row in self.rows[i] if row.size_wh is not None), None)
        if told is None:
            return read
        return with_size(read, self.pictures[i], size_wh, told.size_wh, self.table.file, told.line)

    def _row(self, row: TableRow, size_wh: tuple[int, int]) -> PixelRow | Finding:
        if isinstance(row.box, Finding):
            return row.box
        box = self.meaning.box(self.table, row, size_wh)
        if isinstance(box, Finding):
            return box
        return PixelRow(self.numbers[row.label], box, row.line, row.text)
