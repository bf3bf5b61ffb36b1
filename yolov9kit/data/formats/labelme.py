"""LabelMe: a JSON file of shapes for each picture, and the XML files of its older web tool."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.folder_tree import walk_tree
from yolov9kit.data.formats.json_file import number_in, read_json, shown
from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.formats.per_picture import NamedBox, PictureLabels, Sentences, layout_of_files
from yolov9kit.data.formats.signs import LABELME, LABELME_WEB, sign_below, sign_of
from yolov9kit.data.formats.upright import around_points
from yolov9kit.data.formats.voc import corners_in, name_of, whole_size
from yolov9kit.data.formats.xml_tree import Node, XmlError, read_xml
from yolov9kit.data.labels import to_number
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_LEFT_OUT = {
    "label_not_a_box": "drawn as points or lines, which enclose nothing: left out",
    "label_deleted": "marked deleted: left out",
}
_JSON = Sentences(LABELME, "imagePath", _LEFT_OUT)
_XML = Sentences(LABELME_WEB, "<filename>", _LEFT_OUT)
_NO_BOXES = ("point", "points", "line", "linestrip")
_KEYS = ("imageData", "imageHeight", "imagePath", "imageWidth", "shapes")


def open_labelme(path: Path) -> Layout | None:
    """The data set of a folder with label files of LabelMe in it or below; None where there are none.

    Rectangles, polygons, circles and masks are read as the boxes around them; points and lines are left out, and a note
    says how many.

    Raises:
        DataError: the label file of one picture was given, or a file with the order of the class names cannot be used.
    """
    if path.is_file():
        if path.suffix.lower() in (".json", ".xml") and sign_of(path) in (LABELME, LABELME_WEB):
            raise DataError(printable(f"{path}: tells of one picture: give the folder of the data set"))
        return None
    if sign_below(path, ".json") == LABELME:
        tree = walk_tree(path, ".json")
        found = [read_labelme_json(file) for file in tree.label_files]
        files = [labels for labels in found if labels is not None]
        return layout_of_files(path, tree, files, _JSON)
    if sign_below(path, ".xml") == LABELME_WEB:
        tree = walk_tree(path, ".xml")
        return layout_of_files(path, tree, [read_labelme_xml(file) for file in tree.label_files], _XML)
    return None


# ------------------------------------------------------------------------------------------------ JSON


def read_labelme_json(path: Path) -> PictureLabels | None:
    """What a file tells; None for JSON of another kind, such as a list of settings. Raises nothing."""
    try:
        content = read_json(path, _slim)
    except DataError as fault:
        message = str(fault).removeprefix(f"{printable(str(path))}: ")
        return PictureLabels(path, objects=(Finding("label_file", "error", path, message),))
    if not isinstance(content, dict) or not content.keys() & {"shapes", "imagePath"}:
        return None
    picture, inside = content.get("imagePath"), bool(content.get("imageData"))
    picture = picture if isinstance(picture, str) else ""
    shapes = content.get("shapes")
    if not isinstance(shapes, list):
        message = f"shapes is {shown(shapes)}: expected a list of shapes"
        return PictureLabels(
            path, picture, objects=(Finding("label_file", "error", path, message),), inside=inside
        )
    counts: Counter[str] = Counter()
    objects = []
    for i, shape in enumerate(shapes):
        if isinstance(shape, dict) and shape.get("shape_type") in _NO_BOXES:
            counts["label_not_a_box"] += 1
        else:
            objects.append(_read_shape(path, f"shapes[{i}]", shape))
    size = whole_size(str(content.get("imageWidth")), str(content.get("imageHeight")))
    return PictureLabels(path, picture, size, None, tuple(objects), inside, counts)


def _slim(value: dict[str, Any]) -> dict[str, Any]:
    """The picture inside a file may have megabytes: that it is there is enough."""
    return value | {"imageData": True} if value.get("imageData") else value


def _read_shape(path: Path, where: str, shape: Any) -> NamedBox | Finding:
    if not isinstance(shape, dict):
        return Finding(
            "label_columns", "error", path, f"{where} is {shown(shape)}: expected a shape", None, shown(shape)
        )
    label, kind, points = shape.get("label"), shape.get("shape_type", "polygon"), shape.get("points")
    if not isinstance(label, str) or not label.strip():
        message = f"{where}: label is {shown(label)}: write the name of its class"
        return Finding("label_class", "error", path, message, value=shown(label))
    least = (
        {"rectangle": 2, "circle": 2, "mask": 2}.get(kind or "polygon", 3)
        if isinstance(kind, str | None)
        else 3
    )
    if not isinstance(points, list) or len(points) < least:
        count = len(points) if isinstance(points, list) else 0
        message = (
            f"{where}: a {kind or 'polygon'} of {count} points, at least {least} are needed: draw it again"
        )
        return Finding("label_columns", "error", path, printable(message), value=shown(points))
    numbers = [_point(point) for point in points]
    corners = [point for point in numbers if point is not None]
    if len(corners) < len(numbers):
        wrong = shown(points[numbers.index(None)])
        message = f"{where}: the point {wrong} is not two finite numbers: correct it, or remove the shape"
        return Finding("label_number", "error", path, message, value=wrong)
    if kind == "circle":
        (x, y), (rim_x, rim_y) = corners[:2]
        radius = math.hypot(rim_x - x, rim_y - y)
        return NamedBox(label.strip(), (x - radius, y - radius, x + radius, y + radius), None, where, True)
    return NamedBox(label.strip(), around_points(corners), where=where, polygon=kind != "rectangle")


def _point(point: Any) -> tuple[float, float] | None:
    if not isinstance(point, list) or len(point) != 2:
        return None
    x, y = number_in(point[0]), number_in(point[1])
    if x is None or y is None or not math.isfinite(x) or not math.isfinite(y):
        return None
    return x, y


# ----------------------------------------------------------------------------------- XML of the web tool


def read_labelme_xml(path: Path) -> PictureLabels:
    """What a file of the web tool tells. Raises nothing: a file that cannot be read is an object that cannot be."""
    try:
        root = read_xml(path)
        if root.tag != "annotation":
            raise XmlError(f"<{root.tag}> instead of <annotation>: no file of LabelMe, remove it", root.line)
    except XmlError as fault:
        return PictureLabels(
            path, objects=(Finding("label_file", "error", path, printable(str(fault)), fault.line),)
        )
    objects = list(root.all("object"))
    deleted = [o for o in objects if o.text_of("deleted") not in ("", "0")]
    kept = [_read_object(path, o) for o in objects if o not in deleted]
    size = root.first("imagesize")
    return PictureLabels(
        path,
        root.text_of("filename"),
        None if size is None else whole_size(size.text_of("ncols"), size.text_of("nrows")),
        None if size is None else size.line,
        tuple(kept),
        counts={"label_deleted": len(deleted)},
    )


def _read_object(path: Path, node: Node) -> NamedBox | Finding:
    name = name_of(path, node)
    if isinstance(name, Finding):
        return name
    polygon, mask = node.first("polygon"), node.first("segm")
    drawn = mask.first("box") if mask is not None else node.first("bndbox")
    if polygon is None and drawn is not None:
        box = corners_in(path, drawn)
        return box if isinstance(box, Finding) else NamedBox(name, box, node.line, polygon=mask is not None)
    points = (
        []
        if polygon is None
        else [(_pt.text_of("x"), _pt.text_of("y"), _pt.line) for _pt in polygon.all("pt")]
    )
    if len(points) < 3:
        message = f"the object '{name}' has {len(points)} points, at least 3 are needed: draw it again, or remove it"
        return Finding("label_columns", "error", path, printable(message), node.line, printable(name))
    corners = []
    for x_text, y_text, line in points:
        x, y = _finite(x_text), _finite(y_text)
        if x is None or y is None:
            shown_text = printable(f"{x_text} {y_text}")[:60]
            message = f"the point '{shown_text}' is not two finite numbers: correct it, or remove the object"
            return Finding("label_number", "error", path, message, line, shown_text)
        corners.append((x, y))
    is_box = node.text_of("type") == "bounding_box"
    return NamedBox(name, around_points(corners), node.line, polygon=not is_box)


def _finite(text: str) -> float | None:
    number = to_number(text)
    return number if math.isfinite(number) else None
