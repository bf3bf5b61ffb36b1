"""YOLO label files without any description: the folders alone tell what belongs together."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.class_names import NAME_FILES, names_in_lines
from yolov9kit.data.formats.layout import Layout, SplitFiles, in_order, split_called
from yolov9kit.data.formats.yolo import YoloRows, no_labels, shared_labels
from yolov9kit.data.image import is_image_name
from yolov9kit.data.labels import point_columns_of
from yolov9kit.data.listing import files_below, label_places
from yolov9kit.data.orphans import find_orphans
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_ROW = re.compile(rb"\s*\+?([0-9]+)(?:\.0*)?(?:[ \t]+[-+.0-9eE]+){4,}[ \t]*(?:#.*)?")
_PICTURE_FOLDERS = ("images", "jpegimages")
_CVAT_FOLDER = re.compile(r"obj_(\w+)_data")
_TRIED_FILES = 200  # to see whether the texts beside pictures hold rows at all
_MOST_CLASSES = 10_000  # a larger number is a slip, and an error of its row


@dataclass(frozen=True)
class LooseLayout:
    """``pictures``: of each split. ``labels``: the label file of each picture that has one."""

    file: Path
    names: tuple[str, ...]
    pictures: dict[str, tuple[Path, ...]]
    labels: dict[Path, Path]
    findings: tuple[Finding, ...] = ()
    as_boxes: bool = False
    kind: str = "YOLO without a yaml"

    @property
    def splits(self) -> tuple[str, ...]:
        return in_order(set(self.pictures))

    def open(self, split: str) -> SplitFiles:
        split = split_called(split) or split
        pictures = pictures_of(self.file, self.pictures, split)
        label_paths = tuple(map(self.labels.get, pictures))
        if not any(label_paths):
            raise no_labels(self.file, split, pictures, loose_places(pictures[0]))
        point_columns = point_columns_of(filter(None, label_paths)) if self.as_boxes else 0
        findings = (*shared_labels(pictures, label_paths), *find_orphans(pictures, loose_places))
        read = YoloRows(label_paths, len(self.names), point_columns)
        return SplitFiles(pictures, label_paths, read, (self.file,), findings)


def open_loose_yolo(path: Path, as_boxes: bool) -> Layout | None:
    """The data set of a folder with pictures and YOLO label files; None where no text holds such rows.

    Labels lie beside the pictures, or in ``labels`` or ``Annotations`` beside their ``images``. Splits are the folders
    called train, val, test; without such all pictures are ``train``. Names stand in obj.names, classes.txt, names.txt
    or predefined_classes.txt; without such a file the classes are called by their numbers.

    Raises:
        DataError: a folder or a file of names cannot be read, or two files of names differ.
    """
    if not path.is_dir():
        return None
    found = files_below(path, lambda name: is_image_name(name) or name.endswith((".txt", ".names")))
    texts = {file for file in found if file.suffix == ".txt" and file.name not in NAME_FILES}
    everything = [file for file in found if is_image_name(file.name)]
    labels = {
        picture: label
        for picture in everything
        if (label := next((place for place in loose_places(picture) if place in texts), None))
    }
    files = list(dict.fromkeys(labels.values()))
    if not any(_has_rows(file) for file in files[:_TRIED_FILES]):
        return None
    splits, findings = by_split(path, everything)
    names, remarks = _names(path, [file for file in found if file.name in NAME_FILES], files)
    return LooseLayout(path, names, splits, labels, (*remarks, *findings), as_boxes)


def loose_places(picture: Path) -> tuple[Path, ...]:
    """Where the label file is looked for: as with a data.yaml, then ``Annotations`` in the place of ``images``."""
    places = list(label_places(picture))
    parts = picture.with_suffix(".txt").parts
    at = max((i for i, part in enumerate(parts[:-1]) if part.lower() in _PICTURE_FOLDERS), default=None)
    if at is not None:
        folders = ("labels", "Labels", "Annotations", "annotations")
        places += [Path(*parts[:at], folder, *parts[at + 1 :]) for folder in folders]
    return tuple(dict.fromkeys(places))


def by_split(root: Path, pictures: Iterable[Path]) -> tuple[dict[str, tuple[Path, ...]], list[Finding]]:
    """Pictures by the first folder below ``root`` that is named after a split; all are ``train`` where none is.

    Pictures outside of such folders, where there are some, are ``train`` as well if no folder is, else of no split: a
    note counts them.
    """
    splits: dict[str, list[Path]] = {}
    outside = []
    for picture in pictures:
        split = _split_of(picture.relative_to(root).parts[:-1])
        if split is None:
            outside.append(picture)
        else:
            splits.setdefault(split, []).append(picture)
    if not splits:
        return {"train": tuple(outside)}, []
    findings = []
    if outside:
        folders = ", ".join(in_order(set(splits)))
        count = "1 picture lies" if len(outside) == 1 else f"{len(outside)} pictures, this one first, lie"
        if "train" in splits:
            message = f"{count} outside the folders of {folders}: in no split"
        else:
            message = f"{count} outside the folders of {folders}: taken as train"
            splits["train"] = outside
        findings.append(Finding("place", "note", outside[0], message, value=str(len(outside))))
    return {split: tuple(paths) for split, paths in splits.items()}, findings


def pictures_of(file: Path, splits: dict[str, tuple[Path, ...]], split: str) -> tuple[Path, ...]:
    """The pictures of a split.

    Raises:
        DataError: there is no such split.
    """
    if split not in splits:
        there = ", ".join(in_order(set(splits)))
        raise DataError(printable(f"{file}: has no folder of the split '{split}' (splits: {there})"))
    return splits[split]


def _split_of(folders: Sequence[str]) -> str | None:
    for folder in folders:
        match = _CVAT_FOLDER.fullmatch(folder)
        split = split_called(match[1] if match else folder)
        if split is not None:
            return split
    return None


def _has_rows(file: Path) -> bool:
    try:
        lines = file.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    except OSError:
        return False
    return any(map(_ROW.fullmatch, lines))


def _names(root: Path, name_files: list[Path], labels: list[Path]) -> tuple[tuple[str, ...], list[Finding]]:
    """From the files of names, which must agree; else the numbers that occur."""
    own = [file for file in name_files if file.name != "predefined_classes.txt"]
    read = {file: names_in_lines(file) for file in own or name_files}  # predefined: only what a tool offered
    if read:
        first, names = next(iter(read.items()))
        for file, others in read.items():
            if others != names:
                raise DataError(
                    printable(
                        f"{file}: names {len(others)} classes and {first} names {len(names)}, not the same: the "
                        "numbers in the label files mean one of them; remove the other, or open the folders one by one"
                    )
                )
        return names, []
    highest = max((_highest(file) for file in labels), default=0)
    which = ", ".join(NAME_FILES)
    message = f"no file of class names ({which}): the classes are called by their numbers 0 to {highest}"
    return tuple(map(str, range(highest + 1))), [
        Finding("names_missing", "note", root, message, value=str(highest + 1))
    ]


def _highest(file: Path) -> int:
    try:
        lines = file.read_bytes().removeprefix(b"\xef\xbb\xbf").splitlines()
    except OSError:
        return 0
    numbers = [int(match[1][:9]) for line in lines if (match := _ROW.fullmatch(line))]
    return max((number for number in numbers if number < _MOST_CLASSES), default=0)
