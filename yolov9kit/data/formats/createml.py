"""Create ML JSON: a list of pictures with their labelled boxes."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.coco_json import name_in
from yolov9kit.data.formats.json_file import head_of, number_in, read_json, shown
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.data.formats.named_classes import ordered_names
from yolov9kit.data.formats.picture_places import PictureFinder, about_unnamed, folders_of, last_part
from yolov9kit.data.formats.pixel_rows import PixelRow, boxes_of_rows
from yolov9kit.data.formats.ready import ReadyLayout
from yolov9kit.data.formats.split_files import SplitFile, files_at, one_for_each_split, split_file
from yolov9kit.data.labels import TOLERANCE, LabelFile
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_PICTURE_KEYS, _LIST_KEYS = ("image", "imagefilename", "filename"), ("annotations", "annotation")
_START = re.compile(r"\s*\[\s*\{")
_SIGNS = re.compile(r'"(image|imagefilename|filename)"\s*:\s*"'), re.compile(r'"annotations?"\s*:\s*\[')


def open_createml(path: Path) -> Layout | None:
    """The data set of a Create ML JSON, or of a folder that holds some; None where there is none.

    x and y are the centre of a box in pixels, as Create ML takes them by default. Classes are sorted by name.

    Raises:
        DataError: a file cannot be used.
    """
    files = [file for file in files_at(path, (".json",)) if _looks_like_createml(file)]
    places, findings = one_for_each_split(path, [split_file(path, file) for file in files])
    if not places:
        return None
    entries = {split: _entries(place.file) for split, place in places.items()}
    used = Counter(
        name
        for of_split in entries.values()
        for entry in of_split
        for box in entry.boxes
        if isinstance(box, dict) and (name := name_in(box.get("label"))) is not None
    )
    names, about = ordered_names(next(iter(places.values())).root, used)
    numbers = {name: number for number, name in enumerate(names)}
    named = {last_part(entry.picture) for of_split in entries.values() for entry in of_split}
    parts = {split: partial(_open, place, entries[split], numbers, named) for split, place in places.items()}
    return ReadyLayout("Create ML JSON", path, names, parts, (*findings, *about))


@dataclass(frozen=True)
class _Entry:
    """A picture of the list, and its boxes as the file has them."""

    place: str
    picture: str
    boxes: list[Any]


def _looks_like_createml(file: Path) -> bool:
    head = head_of(file)
    return bool(_START.match(head)) and all(sign.search(head) for sign in _SIGNS)


def _entries(file: Path) -> list[_Entry]:
    content = read_json(file)
    if not isinstance(content, list):
        raise DataError(printable(f"{file}: expected a list of pictures, found {shown(content)}"))
    entries = []
    for i, entry in enumerate(content):
        if not isinstance(entry, dict):
            raise DataError(
                printable(f"{file}: [{i}] is {shown(entry)}: expected an object with image and annotations")
            )
        picture = next((entry[key] for key in _PICTURE_KEYS if key in entry), None)
        if not isinstance(picture, str) or not picture.strip():
            raise DataError(
                printable(f"{file}: [{i}]: image is {shown(picture)}: write the name of the picture's file")
            )
        boxes = next((entry[key] for key in _LIST_KEYS if key in entry), None)
        if not isinstance(boxes, list):
            raise DataError(
                printable(f"{file}: [{i}] ({picture}): annotations is {shown(boxes)}: expected a list")
            )
        entries.append(_Entry(f"[{i}]", picture, boxes))
    return entries


def _open(place: SplitFile, entries: list[_Entry], numbers: Mapping[str, int], named: set[str]) -> SplitFiles:
    file, split = place.file, place.split
    finder = PictureFinder(
        folders_of(place.root, file, split, (place.called,)), [entry.picture for entry in entries]
    )
    boxes: dict[Path, list[tuple[str, Any]]] = {}
    findings, missing = [], []
    for entry in entries:
        picture = finder.find(entry.picture)
        if picture is None:
            missing.append(entry)
            continue
        if picture in boxes:
            message = (
                f"is named twice by {file} (again in {entry.place}), counted once with the boxes of both"
            )
            findings.append(Finding("picture_repeated", "warning", picture, printable(message)))
        boxes.setdefault(picture, []).extend(
            (f"{entry.place}.annotations[{i}]", box) for i, box in enumerate(entry.boxes)
        )
    if not boxes:
        name = entries[0].picture if entries else ""
        why = (
            f"none of its {len(entries)} pictures was found; '{name}' was looked for in {finder.tried(name)}"
        )
        raise DataError(printable(f"{file}: split '{split}': {why if entries else 'names no picture'}"))
    for entry in missing:
        message = (
            f"{entry.place}: '{entry.picture}' ({len(entry.boxes)} boxes) was not found: put it there, or remove it "
            f"from the file (tried: {finder.tried(entry.picture)})"
        )
        value = printable(entry.picture)
        findings.append(Finding("picture_missing", "error", file, printable(message), value=value))
    pictures = tuple(boxes)
    findings += about_unnamed(file, finder.unnamed(pictures, named))
    read = CreateMlBoxes(file, pictures, tuple(boxes.values()), numbers)
    findings += read.about_anchor()
    return SplitFiles(pictures, (file,) * len(pictures), read, (file,), tuple(findings))


@dataclass(frozen=True)
class CreateMlBoxes:
    """``read`` of one split: for each picture its boxes, with their places in the file."""

    file: Path
    pictures: tuple[Path, ...]
    boxes: tuple[list[tuple[str, Any]], ...]
    numbers: Mapping[str, int]

    def __call__(self, i: int, size_wh: tuple[int, int]) -> LabelFile:
        rows = [self._row(f"{place} of {self.pictures[i].name}", box) for place, box in self.boxes[i]]
        return boxes_of_rows(self.file, rows, size_wh)

    def about_anchor(self) -> list[Finding]:
        """A warning where boxes leave the picture at its left or top, as they do if x, y is not their centre."""
        rows = [self._row(place, box) for of_picture in self.boxes for place, box in of_picture]
        plain = [row for row in rows if isinstance(row, PixelRow)]
        out = [row for row in plain if min(row.box[:2]) < -TOLERANCE * max(row.box[2:])]
        if 2 * len(out) < len(plain) or not out:
            return []
        message = (
            f"{len(out)} of {len(plain)} boxes leave the picture at its left or top if x, y is their centre, as Create "
            "ML takes it by default: look whether this file gives their left top corner, and export it anew if so"
        )
        return [Finding("box_anchor", "warning", self.file, message, value=str(len(out)))]

    def _row(self, where: str, box: Any) -> PixelRow | Finding:
        def fault(code: str, value: object, message: str) -> Finding:
            return Finding(code, "error", self.file, printable(f"{where}: {message}"), value=shown(value))

        at = box.get("coordinates") if isinstance(box, dict) else None
        keys = ("x", "y", "width", "height")
        if not isinstance(box, dict) or not isinstance(at, dict) or not all(key in at for key in keys):
            return fault("label_columns", box, "expected label and coordinates with x, y, width and height")
        name = name_in(box.get("label"))
        if name is None:
            return fault(
                "label_class", box.get("label"), f"label is {shown(box.get('label'))}: write the class's name"
            )
        values = [number_in(at[key]) for key in keys]
        x, y, width, height = (float("nan") if value is None else value for value in values)
        if None in values:
            return fault("label_number", at, f"{shown(at)} holds something that is no number: correct it")
        corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        return PixelRow(self.numbers[name], corners, None, shown(at), where=where)
