"""What a grid shows of a data set: its own pictures, those that training sees, those whose labels are doubted."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import yolov9kit
from widgets.grid import DOTTED, SIDE_PX, SOLID, Mark, Tile
from widgets.left_out import box_of_row, raw_row

LARGE_PX = 1600
"""Longer side of a picture that is seen large."""

KINDS = {"missed": "no box here", "misplaced": "box elsewhere", "swapped": "another class"}
"""The kinds of label errors, and what each says of the labels."""


class DataPictures:
    """Pictures of an ``Explorer``.

    Args:
        explorer: of a data set.
        selection: numbers of its pictures.
        codes: the findings that the small pictures tell of; none: all.
        folder: file names below it are shown without it.
    """

    def __init__(
        self, explorer: Any, selection: Sequence[int], codes: Collection[str] = (), folder: Path | None = None
    ) -> None:
        self._explorer, self._codes = explorer, frozenset(codes)
        self._selection = np.asarray(selection)
        self._folder = folder

    def __len__(self) -> int:
        return len(self._selection)

    def tiles(self, places: Sequence[int]) -> list[Tile]:
        numbers = [int(self._selection[place]) for place in places]
        small = _small(self._explorer, numbers)
        return [
            _tile(self._explorer.item(i), self._codes, self._folder, file)
            for i, file in zip(numbers, small, strict=True)
        ]

    def large(self, place: int) -> Tile:
        item = self._explorer.item(int(self._selection[place]))
        return _tile(item, (), self._folder, _large(item.path))


class SeenPictures:
    """Pictures as training sees them: ``PreviewPictures``."""

    def __init__(self, preview: Any) -> None:
        self._pictures = preview.pictures

    def __len__(self) -> int:
        return len(self._pictures)

    def tiles(self, places: Sequence[int]) -> list[Tile]:
        return [self._tile(place, SIDE_PX, 0) for place in places]

    def large(self, place: int) -> Tile:
        return self._tile(place, LARGE_PX, 256 * 1024)

    def _tile(self, place: int, side_px: int, png_bytes: int) -> Tile:
        one = self._pictures[place]
        sources = list(dict.fromkeys(path.name for path in one.sources))
        rest = f" and {len(sources) - 1} more" if len(sources) > 1 else ""
        height, width = one.pixels.shape[:2]
        file, mime, _ = yolov9kit.encode_picture(one.pixels, side_px, png_bytes)
        made_of = rest.strip() if png_bytes == 0 else f"made of {', '.join(sources)}" if rest else ""
        return Tile(sources[0], made_of, (width, height), one.boxes, one.labels, file=file, mime=mime)


class DoubtedPictures:
    """A picture for each label error, with its labels and, dotted, what the detector suggests.

    Args:
        explorer: of the data set.
        errors: of ``LabelErrors.ranking()``, in the order in which they are shown.
        names: of the classes.
    """

    def __init__(self, explorer: Any, errors: Sequence[Any], names: Sequence[str]) -> None:
        self._explorer, self._errors, self._names = explorer, errors, names
        self._numbers = numbers_of(explorer) if errors else {}

    def __len__(self) -> int:
        return len(self._errors)

    def tiles(self, places: Sequence[int]) -> list[Tile]:
        small = _small(self._explorer, [self._number(place) for place in places])
        return [self._tile(place, file) for place, file in zip(places, small, strict=True)]

    def large(self, place: int) -> Tile:
        return self._tile(place, _large(Path(self._errors[place].path)))

    def _number(self, place: int) -> int:
        return self._numbers[os.path.abspath(self._errors[place].path)]

    def _tile(self, place: int, file: "_File") -> Tile:
        error, item = self._errors[place], self._explorer.item(self._number(place))
        said, row = doubt(error, self._names), error.row if error.row >= 0 else len(item.labels)
        return Tile(
            title=f"{place + 1}. {item.path.name}",
            about=f"trust {error.score:.2f}",
            picture_wh=item.size_wh,
            boxes=np.vstack((item.boxes, [error.suggested_box])),
            labels=np.append(item.labels, error.suggested_label),
            kinds=np.append(np.full(len(item.labels), SOLID), DOTTED),
            marks=[Mark("warning", said[0], said[1], box=row)],
            file=file[0],
            mime=file[1],
            error=file[2],
        )


def numbers_of(explorer: Any) -> dict[str, int]:
    """Absolute path of each picture of an explorer → its number."""
    return {os.path.abspath(explorer.item(i).path): i for i in range(len(explorer))}


def doubt(error: Any, names: Sequence[str]) -> tuple[str, str]:
    """What a label error says, in a few words and in all."""
    suggested = names[error.suggested_label]
    seen = f"detected with score {error.confidence:.2f}"
    if error.kind == "missed":
        return (
            f"{suggested}? no box here",
            f"{suggested}, {seen}, has no label. The dotted box is the suggestion.",
        )
    label = names[error.label]
    if error.kind == "swapped":
        return (
            f"{label}, or {suggested}?",
            f"Labelled {label}; {suggested} was {seen}. The dotted box is the suggestion.",
        )
    return f"{label}: box elsewhere?", f"{label} was {seen} at the dotted box, elsewhere than labelled."


def marked(
    item: Any, codes: Collection[str] = (), folder: Path | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[Mark]]:
    """Boxes, classes, kinds and marks of an ``ExploreItem``.

    The place of a row that was left out is added as a dotted box where the row tells of one. ``codes``: only findings
    of these are marked; none: all are.
    """
    boxes, labels, marks = [*item.boxes], [*item.labels], []
    for finding, box in zip(item.findings, item.lines, strict=True):
        if codes and finding.code not in codes:
            continue
        row = raw_row(finding.path, finding.line) if finding.path == item.label_path else ""
        if box < 0 and (found := box_of_row(row, item.size_wh)) is not None:
            labels.append(found[0])
            boxes.append(found[1])
            box = len(boxes) - 1
        line = "" if finding.line is None else f", line {finding.line}"
        where = _below(finding.path, folder) + ("" if finding.line is None else f":{finding.line}")
        marks.append(
            Mark(
                finding.severity,
                title_of_code(finding.code) + line,
                finding.message,
                where,
                row or finding.value,
                box,
            )
        )
    kinds = np.arange(len(boxes)) >= len(item.boxes)  # SOLID, then DOTTED
    return np.reshape(boxes, (-1, 4)), np.array(labels, np.int64), kinds.astype(np.int64), marks


def title_of_code(code: str) -> str:
    """What a finding is called for people."""
    known: Mapping[str, Any] = yolov9kit.CODES
    return str(known[code].title) if code in known else code.replace("_", " ")


_File = tuple[bytes, str, str]
"""A picture as a file, its MIME type, and why there is none."""


def _tile(item: Any, codes: Collection[str], folder: Path | None, file: _File) -> Tile:
    boxes, labels, kinds, marks = marked(item, codes, folder)
    return Tile(item.path.name, item.split, item.size_wh, boxes, labels, kinds, marks, *file)


def _small(explorer: Any, numbers: Sequence[int]) -> list[_File]:
    made = explorer.thumbnails(numbers, SIDE_PX)
    return [
        (b"", "", one.error.removeprefix(f"{one.path}: "))
        if isinstance(one, yolov9kit.Failed)
        else (one.jpeg, "image/jpeg", "")
        for one in made
    ]


def _large(path: Path) -> _File:
    try:
        file, mime, _ = yolov9kit.encode_picture(yolov9kit.read_image(path), LARGE_PX)
    except yolov9kit.KitError as error:
        return b"", "", str(error).removeprefix(f"{path}: ")
    return file, mime, ""


def _below(path: Path, folder: Path | None) -> str:
    if folder is None:
        return str(path)
    whole, start = Path(os.path.abspath(path)), Path(os.path.abspath(folder))
    return str(whole.relative_to(start)) if whole.is_relative_to(start) else str(path)
