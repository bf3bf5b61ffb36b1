"""Which format a data set is written in, found out by looking at names and the first bytes of files."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.coco import open_coco
from yolov9kit.data.formats.createml import open_createml
from yolov9kit.data.formats.cvat import open_cvat
from yolov9kit.data.formats.darknet import open_darknet
from yolov9kit.data.formats.dota import open_dota
from yolov9kit.data.formats.json_file import head_of
from yolov9kit.data.formats.labelme import open_labelme
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.data.formats.loose import open_loose_yolo
from yolov9kit.data.formats.not_read import what_it_looks_like
from yolov9kit.data.formats.pictures import open_pictures
from yolov9kit.data.formats.signs import (
    COCO,
    CREATEML,
    CVAT,
    CVAT_VIDEO,
    DARKNET,
    LABELME,
    LABELME_WEB,
    TABLE,
    VOC,
    files_near,
    signs_in,
)
from yolov9kit.data.formats.table import open_table
from yolov9kit.data.formats.voc import open_voc
from yolov9kit.data.formats.yolo import YoloLayout
from yolov9kit.data.image import is_image_name
from yolov9kit.data.yaml_file import exists, read_data_yaml, without_dots
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_READ = "YOLO, Darknet, COCO JSON, Create ML, CVAT for images, Pascal VOC, LabelMe or a table of boxes"
_YAML_NAMES = ("data.yaml", "dataset.yaml")
_HAS_NAMES = re.compile(r"^[\"']?names[\"']?\s*:", re.MULTILINE)
_NOT_A_YAML = (".json", ".xml", ".csv", ".tsv", ".txt", ".data", ".names", ".record", ".tfrecord")
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")


def open_layout(data: str | os.PathLike[str], *, as_boxes: bool = False) -> Layout:
    """The data set at a path: a data.yaml, another annotation file, or the folder that holds them.

    Where a folder holds several descriptions, the first of these is taken, and a note names the others: DOTA, YOLO with
    a data.yaml, Darknet, COCO JSON, Create ML, CVAT for images, Pascal VOC, LabelMe, a table of boxes, YOLO labels
    without a yaml, pictures without labels. A file that is named itself is the one taken.

    With ``as_boxes``, tilted boxes and key points are read as the upright boxes around them.

    Raises:
        DataError: nothing there, a format that is not read, or a description that contradicts itself.
    """
    path = without_dots(Path(os.path.expanduser(data)).absolute())
    if not exists(path):
        raise DataError(printable(f"{path}: no such file or folder: give a data.yaml or its folder"))
    try:
        return _of_folder(path, as_boxes) if path.is_dir() else _of_file(path, as_boxes)
    except OSError as fault:
        reason = f"{fault.filename or path}: cannot be read ({fault.strerror or fault})"
        raise DataError(printable(reason)) from fault


# ------------------------------------------------------------------------------------------ the order


@dataclass(frozen=True)
class _Reader:
    """``open``: gives None for what is of another format. ``signs``: what ``signs_in`` calls files of this one."""

    open: Callable[[Path, bool], Layout | None]
    signs: tuple[str, ...] = ()


def _readers() -> tuple[_Reader, ...]:
    """In the order in which a folder is offered to them."""
    return (
        _Reader(open_dota),
        _Reader(_open_yolo),
        _Reader(open_darknet, (DARKNET,)),
        _Reader(lambda path, as_boxes: open_coco(path), (COCO,)),
        _Reader(lambda path, as_boxes: open_createml(path), (CREATEML,)),
        _Reader(lambda path, as_boxes: open_cvat(path), (CVAT, CVAT_VIDEO)),
        _Reader(lambda path, as_boxes: open_voc(path), (VOC,)),
        _Reader(lambda path, as_boxes: open_labelme(path), (LABELME, LABELME_WEB)),
        _Reader(lambda path, as_boxes: open_table(path), (TABLE,)),
    )


def _of_file(path: Path, as_boxes: bool) -> Layout:
    for reader in _readers():
        layout = reader.open(path, as_boxes)
        if layout is not None:
            return layout
    if path.suffix.lower() in _ARCHIVES:
        raise DataError(printable(f"{path}: is an archive: unpack it and give its folder"))
    if is_image_name(path):
        raise DataError(printable(f"{path}: is one picture: give the folder of the data set"))
    if path.suffix.lower() in _NOT_A_YAML:
        looks = what_it_looks_like(path)
        reason = looks or f"is not {_READ}: give the data set's folder, or another of its files"
        raise DataError(printable(f"{path}: {reason}"))
    return YoloLayout(read_data_yaml(path), as_boxes=as_boxes)


def _of_folder(path: Path, as_boxes: bool) -> Layout:
    for reader in _readers():
        layout = reader.open(path, as_boxes)
        if layout is not None:
            return _with_others(layout, path, reader.signs)
    layout = _in_inner_folder(path, as_boxes) or open_loose_yolo(path, as_boxes)
    if layout is not None:
        return layout
    looks = what_it_looks_like(path) or _inside(signs_in(path))
    if looks:
        raise DataError(printable(f"{path}: {looks}"))
    layout = open_pictures(path)
    if layout is None:
        raise DataError(printable(f"{path}: {_why_nothing(path)}"))
    return layout


def _in_inner_folder(path: Path, as_boxes: bool) -> Layout | None:
    """A folder around a data set with a data.yaml: archives are often unpacked into one."""
    found = list(files_near(path, lambda name: name in _YAML_NAMES))
    files = [file for file in found if _HAS_NAMES.search(head_of(file))]
    if not files:
        return None
    if len(files) > 1:
        which = ", ".join(str(file.parent) for file in files[:3]) + (", ..." if len(files) > 3 else "")
        raise DataError(printable(f"{path}: holds {len(files)} data sets ({which}): name one of them"))
    layout = _of_file(files[0], as_boxes)
    message = f"holds the data set in {files[0].parent}: that was read"
    return Noted(layout, (Finding("place", "note", path, printable(message), value=str(files[0])),))


def _inside(signs: Mapping[str, Path]) -> str:
    """Files of formats that are read, but not at a place where they tell of this folder."""
    if not signs:
        return ""
    which = ", ".join(f"{file} looks like {sign}" for sign, file in signs.items())
    return f"is no data set itself, but {which}: name that file, or the folder of the data set that it belongs to"


# ----------------------------------------------------------------------------------------------- YOLO


def _open_yolo(path: Path, as_boxes: bool) -> Layout | None:
    """What a yaml with class names describes. Yaml files of another kind, of settings, may lie in any folder."""
    if path.is_file():
        is_yaml = path.suffix.lower() in (".yaml", ".yml")
        return YoloLayout(read_data_yaml(path), as_boxes=as_boxes) if is_yaml else None
    if any((path / name).is_file() for name in _YAML_NAMES):
        return YoloLayout(read_data_yaml(path), as_boxes=as_boxes)
    files = [file for file in _yaml_files(path) if _HAS_NAMES.search(head_of(file))]
    if not files:
        return None
    return YoloLayout(read_data_yaml(files[0] if len(files) == 1 else path), as_boxes=as_boxes)


def _yaml_files(folder: Path) -> list[Path]:
    return sorted(
        file
        for file in folder.iterdir()
        if file.suffix in (".yaml", ".yml") and not file.name.startswith(".")
    )


def _why_nothing(path: Path) -> str:
    """For a folder without pictures and without a description that is read."""
    yamls = _yaml_files(path)
    if yamls:
        keys = "has no key 'names' with the name of each class"
        return f"no data.yaml in this folder, and {yamls[0].name} {keys}: give a data.yaml or its folder"
    if not any(path.iterdir()):
        return "the folder is empty: give a data.yaml or the folder of a data set"
    texts = list(files_near(path, lambda name: name.lower().endswith((".txt", ".xml")), 1))
    if texts:
        files = "a text file" if len(texts) == 1 else f"{len(texts)} text files"
        return (
            f"holds {files} ({texts[0].name}) and no pictures: give the folder that holds pictures and labels"
        )
    return f"no data.yaml in this folder, no pictures, and no {_READ}"


# --------------------------------------------------------------------------------------------- others


@dataclass(frozen=True)
class Noted:
    """A layout with notes about what else its folder holds."""

    layout: Layout
    notes: tuple[Finding, ...]

    @property
    def kind(self) -> str:
        return self.layout.kind

    @property
    def file(self) -> Path:
        return self.layout.file

    @property
    def names(self) -> tuple[str, ...]:
        return self.layout.names

    @property
    def splits(self) -> tuple[str, ...]:
        return self.layout.splits

    @property
    def findings(self) -> tuple[Finding, ...]:
        return (*self.layout.findings, *self.notes)

    def open(self, split: str) -> SplitFiles:
        return self.layout.open(split)


def _with_others(layout: Layout, folder: Path, own_signs: tuple[str, ...]) -> Layout:
    others = {sign: file for sign, file in signs_in(folder).items() if sign not in own_signs}
    if not others:
        return layout
    notes = []
    for sign, file in others.items():
        choose = file.parent if sign in (VOC, LABELME, LABELME_WEB) else file
        message = f"was read as {layout.kind}; {file} looks like {sign}: name {choose} itself to read that"
        notes.append(Finding("place", "note", layout.file, printable(message), value=str(file)))
    return Noted(layout, tuple(notes))
