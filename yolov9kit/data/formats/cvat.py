"""CVAT for images: one XML file that tells of all pictures."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import Layout, SplitFiles, split_called
from yolov9kit.data.formats.per_picture import NamedBox
from yolov9kit.data.formats.picture_places import PictureFinder, about_unnamed, folders_of
from yolov9kit.data.formats.pixel_rows import Box, PixelRow, boxes_of_rows, with_size
from yolov9kit.data.formats.ready import ReadyLayout
from yolov9kit.data.formats.signs import CVAT, CVAT_VIDEO, sign_of
from yolov9kit.data.formats.upright import around_ellipse, around_points, around_tilted
from yolov9kit.data.formats.voc import whole_size
from yolov9kit.data.formats.xml_tree import Node, XmlError, as_data_error, read_xml
from yolov9kit.data.labels import LabelFile, to_number
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_SHAPES = ("box", "polygon", "ellipse", "mask", "cuboid", "skeleton", "polyline", "points")
_NO_BOXES = ("polyline", "points", "skeleton", "cuboid")


@dataclass(frozen=True)
class _Image:
    """One ``<image>``. ``rows``: a finding for each shape that cannot be read. ``left_out``: so many are no boxes."""

    name: str
    subset: str
    line: int
    size_wh: tuple[int, int] | None
    rows: tuple[NamedBox | Finding, ...]
    left_out: int


def open_cvat(path: Path) -> Layout | None:
    """The data set of an XML file of CVAT, or of the folder that holds one; None where there is none.

    Boxes, polygons, ellipses and masks are read as boxes; polylines, points, skeletons and cuboids are left out, and a
    note says how many. Subsets called Train, Validation and Test are splits.

    Raises:
        DataError: the file is no XML or tells of a video, or the folder holds several.
    """
    file = _file_of(path)
    if file is None:
        return None
    if sign_of(file) == CVAT_VIDEO:
        raise DataError(
            printable(
                f"{file}: is CVAT for video, whose tracks are not read: export CVAT for images, or YOLO"
            )
        )
    try:
        root = read_xml(file)
    except XmlError as fault:
        raise as_data_error(file, fault) from fault
    images = [_read_image(file, node) for node in root.all("image")]
    if not images:
        raise DataError(printable(f"{file}: names no picture (<image>): export it again"))
    names = _names(root, images)
    numbers = {name: number for number, name in enumerate(names)}
    subsets: dict[str, list[_Image]] = defaultdict(list)
    for image in images:
        subsets[_split(image.subset)].append(image)
    every_name = {image.name for image in images}
    parts = {
        split: partial(_open, file, split, tuple(found), numbers, every_name)
        for split, found in subsets.items()
    }
    return ReadyLayout(CVAT, file, names, parts)


def _file_of(path: Path) -> Path | None:
    if path.is_file():
        return path if path.suffix.lower() == ".xml" and sign_of(path) in (CVAT, CVAT_VIDEO) else None
    found = [file for file in _xml_files(path) if sign_of(file) in (CVAT, CVAT_VIDEO)]
    if len(found) > 1:
        which = ", ".join(file.relative_to(path).as_posix() for file in found[:5])
        raise DataError(printable(f"{path}: several files of CVAT ({which}): name one of them"))
    return found[0] if found else None


def _xml_files(folder: Path) -> list[Path]:
    """In the folder, or else in its ``annotations``."""
    for place in (folder, folder / "annotations", folder / "Annotations"):
        files = sorted(place.glob("*.[xX][mM][lL]"))
        if files:
            return files[:50]
    return []


def _split(subset: str) -> str:
    return split_called(subset) or ("train" if subset.lower() in ("", "default") else subset)


def _names(root: Node, images: Iterable[_Image]) -> tuple[str, ...]:
    """In the order in which the project lists its labels; those of skeletons' joints aside, others behind."""
    used = sorted({row.name for image in images for row in image.rows if isinstance(row, NamedBox)})
    meta = root.first("meta")
    listed = []
    for place in meta.children if meta is not None else []:
        labels = place.first("labels")
        listed += (
            []
            if labels is None
            else [label.text_of("name") for label in labels.all("label") if not label.text_of("parent")]
        )
    return tuple(dict.fromkeys(name for name in (*listed, *used) if name))


# --------------------------------------------------------------------------------------------- reading


def _read_image(file: Path, node: Node) -> _Image:
    size = whole_size(node.attributes.get("width", ""), node.attributes.get("height", ""))
    shapes = [child for child in node.children if child.tag in _SHAPES]
    rows = tuple(_read_shape(file, shape) for shape in shapes if shape.tag not in _NO_BOXES)
    name, subset = node.attributes.get("name", ""), node.attributes.get("subset", "")
    return _Image(name, subset, node.line, size, rows, len(shapes) - len(rows))


def _read_shape(file: Path, node: Node) -> NamedBox | Finding:
    name = node.attributes.get("label", "").strip()
    if not name:
        message = f"the {node.tag} has no label: write the name of its class"
        return Finding("label_class", "error", file, message, node.line)
    box = _polygon_box(file, node) if node.tag == "polygon" else _numbers_box(file, node)
    if isinstance(box, Finding):
        return box
    turned = node.tag == "box" and to_number(node.attributes.get("rotation", "0")) % 90 != 0
    return NamedBox(name, box, node.line, polygon=node.tag != "box", oriented=turned)


def _numbers_box(file: Path, node: Node) -> Box | Finding:
    keys = {
        "box": ("xtl", "ytl", "xbr", "ybr"),
        "ellipse": ("cx", "cy", "rx", "ry"),
        "mask": ("left", "top", "width", "height"),
    }[node.tag]
    numbers = []
    for key in (*keys, "rotation"):
        text = node.attributes.get(key, "0" if key == "rotation" else None)
        if text is None:
            message = f"the {node.tag} has no {key}: write it, or remove the {node.tag}"
            return Finding("label_columns", "error", file, message, node.line)
        number = to_number(text)
        if not math.isfinite(number):
            shown = printable(text)[:60]
            message = f"{key} is '{shown}', which is not a finite number: write one, or remove the {node.tag}"
            return Finding("label_number", "error", file, message, node.line, shown)
        numbers.append(number)
    a, b, c, d, degrees = numbers
    if node.tag == "mask":
        return a, b, a + c, b + d
    if node.tag == "ellipse":
        return around_ellipse(a, b, c, d, math.radians(degrees))
    for low, high, first, second in ((a, c, "xtl", "xbr"), (b, d, "ytl", "ybr")):
        if low > high:
            message = (
                f"{first} {low:g} is greater than {second} {high:g}, left out: swap them or remove the box"
            )
            return Finding("label_no_area", "warning", file, message, node.line, f"{low:g} {high:g}")
    if degrees % 360 == 0:
        return a, b, c, d
    return around_tilted((a + c) / 2, (b + d) / 2, c - a, d - b, math.radians(degrees))


def _polygon_box(file: Path, node: Node) -> Box | Finding:
    texts = [text for text in node.attributes.get("points", "").split(";") if text.strip()]
    if len(texts) < 3:
        message = f"the polygon has {len(texts)} points, at least 3 are needed: draw it again, or remove it"
        return Finding("label_columns", "error", file, message, node.line)
    points = []
    for text in texts:
        numbers = [to_number(part.strip()) for part in text.split(",")]
        if len(numbers) != 2 or not all(map(math.isfinite, numbers)):
            shown = printable(text)[:60]
            message = f"the point '{shown}' is not two finite numbers: correct it, or remove the polygon"
            return Finding("label_number", "error", file, message, node.line, shown)
        points.append((numbers[0], numbers[1]))
    return around_points(points)


# --------------------------------------------------------------------------------------------- a split


def _open(
    file: Path, split: str, images: Sequence[_Image], numbers: Mapping[str, int], every_name: set[str]
) -> SplitFiles:
    subsets = dict.fromkeys(image.subset for image in images if image.subset)
    finder = PictureFinder(folders_of(file.parent, file, split, subsets), (image.name for image in images))
    chosen: dict[Path, _Image] = {}
    findings = []
    for image in images:
        picture = finder.find(image.name) if image.name else None
        if picture is None:
            message = (
                f"'{image.name}' was not found: put it there or remove it (tried: {finder.tried(image.name)})"
            )
            findings.append(
                Finding(
                    "picture_missing", "error", file, printable(message), image.line, printable(image.name)
                )
            )
        elif picture in chosen:
            first = chosen[picture]
            message = f"'{image.name}' stands in line {first.line} too: its boxes are put together"
            findings.append(
                Finding(
                    "picture_repeated", "warning", file, printable(message), image.line, printable(image.name)
                )
            )
            chosen[picture] = replace(
                first, rows=first.rows + image.rows, left_out=first.left_out + image.left_out
            )
        else:
            chosen[picture] = image
    if not chosen:
        raise DataError(printable(f"{file}: split '{split}': no picture was found: {findings[0]}"))
    findings += about_unnamed(file, finder.unnamed(chosen, every_name))
    left_out = sum(image.left_out for image in chosen.values())
    if left_out:
        shapes = "1 shape is" if left_out == 1 else f"{left_out} shapes are"
        message = f"split '{split}': {shapes} drawn as points, lines, skeletons or cuboids: left out"
        findings.append(Finding("label_not_a_box", "note", file, printable(message), value=str(left_out)))
    read = _Read(file, tuple(chosen), tuple(chosen.values()), numbers)
    return SplitFiles(tuple(chosen), (file,) * len(chosen), read, (file,), tuple(findings))


@dataclass(frozen=True)
class _Read:
    """``read`` of a split."""

    file: Path
    pictures: tuple[Path, ...]
    images: tuple[_Image, ...]
    numbers: Mapping[str, int]

    def __call__(self, i: int, size_wh: tuple[int, int]) -> LabelFile:
        image = self.images[i]
        rows = [
            row
            if isinstance(row, Finding)
            else PixelRow(self.numbers[row.name], row.box, row.line, row.name, row.polygon)
            for row in image.rows
        ]
        read = boxes_of_rows(self.file, rows, size_wh)
        kept = set() if read.lines is None else set(np.asarray(read.lines).tolist())
        tilted = tuple(
            row.line
            for row in image.rows
            if isinstance(row, NamedBox) and row.oriented and row.line in kept and row.line
        )
        read = with_size(read, self.pictures[i], size_wh, image.size_wh, self.file, image.line)
        return replace(read, oriented=tilted)
