"""Pascal VOC: an XML file for each picture, with corners in pixels and class names."""

import math
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.folder_tree import walk_tree
from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.formats.per_picture import NamedBox, PictureLabels, Sentences, layout_of_files
from yolov9kit.data.formats.pixel_rows import Box
from yolov9kit.data.formats.signs import VOC, sign_below, sign_of
from yolov9kit.data.formats.upright import around_tilted
from yolov9kit.data.formats.xml_tree import Node, XmlError, read_xml
from yolov9kit.data.labels import to_number
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_WORDS = Sentences(VOC, "<filename>", {"label_difficult": "marked difficult: kept like the others"})
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def open_voc(path: Path) -> Layout | None:
    """The data set of a folder with XML files of VOC in it or below; None where there are none.

    Read are the layouts of the challenge (``Annotations``, ``JPEGImages``, ``ImageSets/Main``), of export sites (XML
    beside the pictures in ``train`` and ``valid``) and mixtures of them.

    Corners are taken as they are. VOC itself counts pixels from 1, but labelImg and the export sites count from 0, and
    no file says which; taking 1 away would shift most data sets by a pixel in order to mend few.

    Raises:
        DataError: the XML file of one picture was given, or a file with the order of the class names cannot be used.
    """
    if path.is_file():
        if path.suffix.lower() == ".xml" and sign_of(path) == VOC:
            raise DataError(printable(f"{path}: tells of one picture: give the folder of the data set"))
        return None
    if sign_below(path, ".xml") != VOC:
        return None
    tree = walk_tree(path, ".xml")
    files = [read_voc(file) for file in tree.label_files]
    return layout_of_files(path, tree, files, _WORDS)


def read_voc(path: Path) -> PictureLabels:
    """What a file tells. Raises nothing: a file that cannot be read is an object that cannot be."""
    try:
        root = read_xml(path)
        if root.tag != "annotation":
            raise XmlError(
                f"<{root.tag}> instead of <annotation>: no file of Pascal VOC, remove it", root.line
            )
    except XmlError as fault:
        return PictureLabels(
            path, objects=(Finding("label_file", "error", path, printable(str(fault)), fault.line),)
        )
    size = root.first("size")
    objects = list(root.all("object"))
    difficult = sum(o.text_of("difficult") not in ("", "0") for o in objects)
    return PictureLabels(
        path,
        root.text_of("filename"),
        None if size is None else whole_size(size.text_of("width"), size.text_of("height")),
        None if size is None else size.line,
        tuple(_read_object(path, o) for o in objects),
        counts={"label_difficult": difficult},
    )


def whole_size(width: str, height: str) -> tuple[int, int] | None:
    """A size in pixels; None where the texts are no whole numbers, so that nothing is told."""
    numbers = to_number(width), to_number(height)
    if not all(map(math.isfinite, numbers)) or any(number != int(number) for number in numbers):
        return None
    return int(numbers[0]), int(numbers[1])


def name_of(path: Path, node: Node) -> str | Finding:
    """The class of an object; a finding where it has none."""
    name = node.text_of("name")
    if name:
        return name
    message = "the object has no <name>, or an empty one: write the name of its class"
    return Finding("label_class", "error", path, message, node.line)


def _read_object(path: Path, node: Node) -> NamedBox | Finding:
    name = name_of(path, node)
    if isinstance(name, Finding):
        return name
    place, tilted = node.first("bndbox"), node.first("robndbox")
    if place is None and tilted is not None:
        box = _around_tilted(path, tilted)
        return box if isinstance(box, Finding) else NamedBox(name, box, node.line, oriented=True)
    if place is None:
        message = f"the object '{name}' has no <bndbox> with its corners: draw a box around it, or remove it"
        return Finding("label_columns", "error", path, printable(message), node.line, printable(name))
    box = corners_in(path, place)
    return box if isinstance(box, Finding) else NamedBox(name, box, node.line)


def corners_in(path: Path, place: Node) -> Box | Finding:
    """The box of an element with xmin, ymin, xmax and ymax, in any order."""
    numbers = _numbers(path, place, _CORNERS)
    if isinstance(numbers, Finding):
        return numbers
    left, top, right, bottom = numbers
    for low, high, first, second in ((left, right, "xmin", "xmax"), (top, bottom, "ymin", "ymax")):
        if low > high:
            message = (
                f"{first} {low:g} is greater than {second} {high:g}, left out: swap them or remove the object"
            )
            return Finding("label_no_area", "warning", path, message, place.line, f"{low:g} {high:g}")
    return left, top, right, bottom


def _around_tilted(path: Path, place: Node) -> Box | Finding:
    """The upright box around a tilted one, as roLabelImg writes it: centre, size, angle in radians."""
    numbers = _numbers(path, place, ("cx", "cy", "w", "h", "angle"))
    if isinstance(numbers, Finding):
        return numbers
    return around_tilted(*numbers)


def _numbers(path: Path, place: Node, tags: tuple[str, ...]) -> tuple[float, ...] | Finding:
    numbers = []
    for tag in tags:
        node = place.first(tag)
        if node is None:
            message = f"<{place.tag}> has no <{tag}>: write it, or remove the object"
            return Finding("label_columns", "error", path, message, place.line)
        number = to_number(node.text)
        if not math.isfinite(number):
            shown = printable(node.text)[:60]
            message = f"<{tag}> is '{shown}', which is not a finite number: write one, or remove the object"
            return Finding("label_number", "error", path, message, node.line, shown)
        numbers.append(number)
    return tuple(numbers)
