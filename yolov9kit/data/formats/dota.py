"""DOTA: rows ``x1 y1 x2 y2 x3 y3 x4 y4 name difficulty`` in pixels, in ``labelTxt`` folders beside the pictures."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import Layout, SplitFiles, in_order, split_called
from yolov9kit.data.formats.loose import by_split, pictures_of
from yolov9kit.data.formats.pixel_rows import PixelRow, boxes_of_rows
from yolov9kit.data.formats.yolo import no_labels
from yolov9kit.data.image import is_image_name
from yolov9kit.data.labels import LabelFile, shown, text_of_labels, to_number
from yolov9kit.data.listing import files_below, list_pictures
from yolov9kit.data.yaml_file import DataYaml, read_data_yaml
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_FOLDER = "labelTxt"  # labelTxt-v1.0 and the like begin with it
_HEADERS = ("imagesource:", "gsd:")
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class _Texts:
    """``places``: label files by the folder that holds labels and pictures, one of ``homes``, and by their path or stem
    below it."""

    homes: frozenset[Path]
    places: dict[tuple[Path, str], list[Path]]

    def of(self, picture: Path) -> Path | None:
        for folder in picture.parents:
            if folder not in self.homes:
                continue
            inner = picture.relative_to(folder).with_suffix("").parts
            for key in ("/".join(inner[1:]), "/".join(inner), picture.stem):
                found = self.places.get((folder, key), [])
                if len(found) > 1:
                    both = " and ".join(map(str, found[:2]))
                    raise DataError(
                        printable(f"{picture}: has two label files, {both}: move one of the folders away")
                    )
                if found:
                    return found[0]
        return None


@dataclass(frozen=True)
class DotaLayout:
    """Tilted boxes: every row is one, and the scan of a split says so. ``texts``: the label files, by where their
    pictures lie. ``yaml`` tells names and splits where there is one, else ``pictures`` does."""

    file: Path
    names: tuple[str, ...]
    texts: _Texts
    yaml: DataYaml | None
    pictures: dict[str, tuple[Path, ...]]
    findings: tuple[Finding, ...] = ()
    kind: str = "DOTA"

    @property
    def splits(self) -> tuple[str, ...]:
        return in_order(set(self.yaml.splits if self.yaml else self.pictures))

    def open(self, split: str) -> SplitFiles:
        split = split_called(split) or split
        findings: tuple[Finding, ...] = ()
        sources: tuple[Path, ...] = (self.file,)
        if self.yaml is not None:
            listing = list_pictures(self.yaml, split)
            pictures, sources, findings = listing.pictures, listing.sources, listing.findings
        else:
            pictures = pictures_of(self.file, self.pictures, split)
        label_paths = tuple(map(self.texts.of, pictures))
        if not any(label_paths):
            place = pictures[0].parent.parent / _FOLDER / f"{pictures[0].stem}.txt"
            raise no_labels(self.file, split, pictures, (place,))
        numbers = {name: i for i, name in enumerate(self.names)}

        def read(i: int, size_wh: tuple[int, int]) -> LabelFile:
            path = label_paths[i]
            assert path is not None, "asked for the boxes of a picture without a label file"
            return _read(path, size_wh, numbers)

        return SplitFiles(pictures, label_paths, read, sources, findings)


def open_dota(path: Path, as_boxes: bool) -> Layout | None:
    """The data set of a folder, or of a data.yaml in it, whose labels lie in ``labelTxt``; None where there are none
    or the pictures have ``labels`` as well. To be asked before the reader of data.yaml.

    Its boxes are tilted: they are findings that refuse training, or notes with ``as_boxes``, as the whole split tells.

    Raises:
        DataError: a file or folder cannot be read, or a picture has two label files.
    """
    given = path.suffix.lower() in _YAML and path.is_file()
    folder = path.parent if given else path
    if not folder.is_dir():
        return None
    label_folders = list(_label_folders(folder))
    if not label_folders:
        return None
    yaml = None
    if given or any(file.suffix.lower() in _YAML for file in folder.iterdir()):
        yaml = read_data_yaml(path)
    places: dict[tuple[Path, str], list[Path]] = {}
    files = []
    for label_folder in label_folders:
        for file in files_below(label_folder, lambda name: name.endswith(".txt")):
            inner = file.relative_to(label_folder).with_suffix("").as_posix()
            for key in dict.fromkeys((inner, file.stem)):
                places.setdefault((label_folder.parent, key), []).append(file)
            files.append(file)
    texts = _Texts(frozenset(label_folder.parent for label_folder in label_folders), places)
    everything = files_below(folder, is_image_name)
    if not everything:
        return None
    owned = set(map(texts.of, everything))
    findings = [
        Finding("label_orphan", "warning", file, "label file without a picture: find it, or remove the file")
        for file in files
        if file not in owned
    ]
    splits, remarks = ({}, []) if yaml else by_split(folder, everything)
    names = yaml.names if yaml else tuple(sorted({name for file in files for name in _names_in(file)}))
    return DotaLayout(yaml.file if yaml else folder, names, texts, yaml, splits, (*findings, *remarks))


def _label_folders(folder: Path) -> Iterator[Path]:
    """In the folder and in those in it, where no ``labels`` lie beside."""
    for place in (folder, *sorted(inner for inner in folder.iterdir() if inner.is_dir())):
        inside = sorted(
            inner for inner in place.iterdir() if inner.name.startswith(_FOLDER) and inner.is_dir()
        )
        if inside and not (place / "labels").is_dir():
            yield from inside


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for line, content in enumerate(text.split("\n"), 1):
        columns = content.split()
        if columns and not columns[0].lower().startswith(_HEADERS):
            yield line, columns


def _names_in(file: Path) -> set[str]:
    text = text_of_labels(file)
    return (
        {columns[8] for _, columns in _rows(text) if len(columns) in (9, 10)}
        if isinstance(text, str)
        else set()
    )


def _read(path: Path, size_wh: tuple[int, int], numbers: dict[str, int]) -> LabelFile:
    text = text_of_labels(path)
    if isinstance(text, LabelFile):
        return text
    rows = [_parse(path, line, columns, numbers) for line, columns in _rows(text)]
    read = boxes_of_rows(path, rows, size_wh)
    return replace(read, oriented=() if read.lines is None else tuple(read.lines.tolist()))


def _parse(path: Path, line: int, columns: list[str], numbers: dict[str, int]) -> PixelRow | Finding:
    value = shown(columns)
    if len(columns) not in (9, 10):
        count = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
        message = f"{count}: expected x1 y1 x2 y2 x3 y3 x4 y4 name difficulty"
        return Finding("label_columns", "error", path, message, line, value)
    if columns[8] not in numbers:
        known = ", ".join(list(numbers)[:5]) + (", ..." if len(numbers) > 5 else "")
        message = (
            f"class '{shown(columns[8:9])}' is not among the names ({known}): correct it, or add the name"
        )
        return Finding("label_class_range", "error", path, message, line, shown(columns[8:9]))
    corners = [to_number(column) for column in columns[:8]]
    for number, column in zip(corners, columns, strict=False):
        if not math.isfinite(number):
            message = f"'{shown([column])}' is not a finite number: write one, or remove the row"
            return Finding("label_number", "error", path, message, line, shown([column]))
    xs, ys = corners[::2], corners[1::2]
    return PixelRow(numbers[columns[8]], (min(xs), min(ys), max(xs), max(ys)), line, value)
