"""Formats that are recognised and not read, so that a person is told what to do instead."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from yolov9kit.data.formats.json_file import head_of
from yolov9kit.data.formats.layout import split_called
from yolov9kit.data.formats.signs import files_near
from yolov9kit.data.image import is_image_name
from yolov9kit.types import printable

_INSTEAD = "export it as YOLO or COCO JSON"
_RECORDS = (".tfrecord", ".tfrecords", ".record", ".records")
_MASK_FOLDERS = ("masks", "mask", "segmentationclass", "segmentationobject")
_PLAIN_FOLDERS = ("images", "image", "imgs", "img", "pictures", "jpegimages", "data")
_KITTI_ROW = re.compile(r"\S+(?: +-?[\d.]+(?:[eE][-+]?\d+)?){14,15}\s*")
_PIXEL_ROW = re.compile(r"[A-Za-z]\S*(?:[ \t]+-?[\d.]+){4,5}\s*")
_CLASS_ROW = re.compile(r"[^\s,]+\.(?:jpe?g|png|bmp|webp|tiff?)[\s,]+[^\s,]+\s*", re.IGNORECASE)
_VIA = re.compile(r'"(?:_via_img_metadata|regions)"\s*:')


def what_it_looks_like(path: Path) -> str:
    """For a file or folder in no format that is read: what it seems to be and what to do; "" where it seems nothing."""
    looks = _of_folder if path.is_dir() else _of_file
    return printable(looks(path))


def _of_file(path: Path) -> str:
    if path.suffix.lower() in _RECORDS:
        return f"looks like TFRecord, which is not read: {_INSTEAD}"
    head = head_of(path)
    if _VIA.search(head):
        return f"looks like a project of the VGG annotator, which is not read: {_INSTEAD}"
    rows = [row for row in head.splitlines()[:-1] or [head] if row.strip()]
    if rows and all(map(_KITTI_ROW.fullmatch, rows)):
        return f"looks like labels of KITTI, which are not read: {_INSTEAD}"
    if rows and all(map(_CLASS_ROW.fullmatch, rows)):
        return "tells the class of whole pictures, no boxes: a detector needs a box for each object"
    if rows and all(map(_PIXEL_ROW.fullmatch, rows)):
        return f"looks like rows of class and pixels for tools that compute metrics, which are not read: {_INSTEAD}"
    return ""


def _of_folder(folder: Path) -> str:
    for look in _LOOKS:
        found = look(folder)
        if found:
            return found
    return ""


def _records(folder: Path) -> str:
    file = next(files_near(folder, lambda name: name.lower().endswith(_RECORDS)), None)
    return f"looks like TFRecord ({file}), which is not read: {_INSTEAD}" if file else ""


def _wider_face(folder: Path) -> str:
    file = next(
        files_near(folder, lambda name: name.startswith("wider_face_") and name.endswith(".txt")), None
    )
    return f"looks like WIDER FACE ({file}), which is not read: {_INSTEAD}" if file else ""


def _text_rows(folder: Path) -> str:
    """The first text that tells something speaks for all."""
    for file in files_near(folder, lambda name: name.endswith(".txt")):
        found = _of_file(file)
        if found:
            return f"{file} {found}"
    return ""


def _via(folder: Path) -> str:
    file = next((f for f in files_near(folder, lambda name: name.endswith(".json"), 1) if _of_file(f)), None)
    return f"{file} {_of_file(file)}" if file else ""


def _masks(folder: Path) -> str:
    place = next((inner for inner in _folders(folder) if inner.name.lower() in _MASK_FOLDERS), None)
    if place is None or next(files_near(place, is_image_name, 1), None) is None:
        return ""
    return f"looks like pictures with masks ({place}), which are not read: {_INSTEAD}, with boxes"


def _class_folders(folder: Path) -> str:
    """``train/cat/1.jpg``: the pictures lie in folders named after classes. Without ``train`` they may be anything."""
    parts = [place for place in (folder, *_children(folder)) if split_called(place.name)]
    holding = [
        inner
        for part in parts
        for inner in _children(part)
        if inner.name.lower() not in _PLAIN_FOLDERS
        and split_called(inner.name) is None
        and next(files_near(inner, is_image_name, 0), None) is not None
    ]
    pictures_beside = any(next(files_near(part, is_image_name, 0), None) for part in parts)
    if len({inner.name for inner in holding}) < 2 or pictures_beside:
        return ""
    names = ", ".join(sorted({inner.name for inner in holding})[:3])
    return f"looks like pictures in folders named after their class ({names}): a detector needs a box for each object"


_LOOKS: tuple[Callable[[Path], str], ...] = (_records, _wider_face, _text_rows, _via, _masks, _class_folders)


def _folders(folder: Path) -> Iterator[Path]:
    for inner in _children(folder):
        yield inner
        yield from _children(inner)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return []
