"""One COCO JSON file → its pictures, categories and annotations, still as the file has them."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from yolov9kit.data.formats.json_file import number_in, read_json, shown
from yolov9kit.errors import DataError
from yolov9kit.types import printable

Key = int | str
"""An id. Whole numbers by the standard; texts in some exports."""

_KEPT = ("id", "image_id", "category_id", "bbox", "iscrowd", "keypoints")


class CocoImage(NamedTuple):
    """``size_wh``: as the file says; None where it does not."""

    file_name: str
    size_wh: tuple[int, int] | None


class CocoCategory(NamedTuple):
    """``group``: the supercategory, ``""`` where there is none."""

    name: str
    group: str


@dataclass(frozen=True)
class CocoFile:
    """``annotations``: the values of that list, unchecked; None where the file tells of pictures alone. ``other``: what
    it holds instead of boxes, such as captions, and what to do; such a file has nothing else to say."""

    file: Path
    images: dict[Key, CocoImage]
    categories: dict[Key, CocoCategory]
    annotations: list[Any] | None
    other: str = ""


def read_coco(file: Path, *, pictures_alone: bool = False) -> CocoFile | None:
    """Reads one file; None where it holds something else than COCO JSON. ``pictures_alone``: no annotation is expected.

    Raises:
        DataError: not a JSON, or lists or ids that contradict each other.
    """
    content = read_json(file, _slim)
    if isinstance(content, list):
        reason = "holds detections of a network, no ground truth: give the file with images and categories"
        return CocoFile(file, {}, {}, None, reason)
    if not isinstance(content, dict):
        return None
    images, annotations = content.get("images"), content.get("annotations")
    if not isinstance(images, list):
        if isinstance(annotations, list) and any(
            isinstance(a, dict) and "image_id" in a for a in annotations
        ):
            _stop(file, "has no list 'images' with the file names: export it again with them")
        return None
    if annotations is None and "categories" not in content:
        return None
    if annotations is not None and not isinstance(annotations, list):
        _stop(file, f"'annotations' is {shown(annotations)}: expected a list")
    other = _other_kind(file, annotations) if annotations else ""
    if other:
        return CocoFile(file, {}, {}, None, other)
    if pictures_alone and not annotations:
        annotations = None
    return CocoFile(file, _images(file, images), _categories(file, content, bool(annotations)), annotations)


def key_in(value: object) -> Key | None:
    """An id; None for what is none. A whole number may be written ``3.0``."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value


def name_in(value: object) -> str | None:
    """A name that can be written down; None for what is none."""
    if not isinstance(value, str) or not value.strip():
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON may hold halves of characters
        return None
    return value.strip()


def _stop(file: Path, reason: str) -> NoReturn:
    raise DataError(printable(f"{file}: {reason}"))


def _slim(value: dict[str, Any]) -> dict[str, Any]:
    """Masks are most of a large file, and not needed where a box stands beside them."""
    box = value.get("bbox")
    if isinstance(box, list) and len(box) == 4 and "image_id" in value and "segments_info" not in value:
        slim = {key: value[key] for key in _KEPT if key in value}
        slim["keypoints"] = bool(value.get("keypoints"))
        return slim
    return value


def _other_kind(file: Path, annotations: list[Any]) -> str:
    def every(key: str) -> bool:
        return all(isinstance(a, dict) and key in a and "bbox" not in a for a in annotations)

    instances = "export the objects with their boxes (instances_*.json)"
    if every("caption"):
        return f"holds captions of pictures, no boxes: {instances}"
    if every("segments_info"):
        return f"holds panoptic segments, not single objects: {instances}"
    if every("category_id") and not any("segmentation" in a for a in annotations):
        return f"holds classes of whole pictures, no boxes: {instances}"
    if file.stem.lower().startswith("stuff_"):
        return f"holds regions of stuff such as sky and grass, no objects: {instances}"
    return ""


def _images(file: Path, images: list[Any]) -> dict[Key, CocoImage]:
    found: dict[Key, CocoImage] = {}
    for i, image in enumerate(images):
        if not isinstance(image, dict):
            _stop(file, f"images[{i}] is {shown(image)}: expected an object with id and file_name")
        key, name = key_in(image.get("id")), image.get("file_name")
        if key is None:
            _stop(file, f"images[{i}]: id is {shown(image.get('id'))}: write a whole number")
        if not isinstance(name, str) or not name.strip():
            _stop(
                file,
                f"images[{i}] (id {shown(key)}): file_name is {shown(name)}: write the name of the picture's file",
            )
        if key in found:
            _stop(
                file,
                f"images[{i}] ({name}): id {shown(key)} is that of {found[key].file_name}: give each its own",
            )
        sides = [number_in(image.get(side)) for side in ("width", "height")]
        whole = [int(side) for side in sides if side is not None and side.is_integer() and side > 0]
        found[key] = CocoImage(name, (whole[0], whole[1]) if len(whole) == 2 else None)
    return found


def _categories(file: Path, content: dict[str, Any], needed: bool) -> dict[Key, CocoCategory]:
    categories = content.get("categories") or []
    if not categories and needed:
        _stop(file, "has no list 'categories' with the names of the classes: export it again with them")
    if not isinstance(categories, list):
        _stop(file, f"'categories' is {shown(categories)}: expected a list")
    found: dict[Key, CocoCategory] = {}
    for i, category in enumerate(categories):
        if not isinstance(category, dict):
            _stop(file, f"categories[{i}] is {shown(category)}: expected an object with id and name")
        key, name = key_in(category.get("id")), name_in(category.get("name"))
        if key is None:
            _stop(file, f"categories[{i}]: id is {shown(category.get('id'))}: write a whole number")
        if name is None:
            written = shown(category.get("name"))
            _stop(file, f"categories[{i}] (id {shown(key)}): name is {written}: write the name of the class")
        if key in found:
            _stop(
                file,
                f"categories[{i}] ({name}): id {shown(key)} is that of {found[key].name}: give each its own",
            )
        group = category.get("supercategory")
        found[key] = CocoCategory(name, group.strip() if isinstance(group, str) else "")
    twice = [name for name, count in Counter(c.name for c in found.values()).items() if count > 1]
    if twice:
        _stop(file, f"two categories are called '{twice[0]}': rename one of them, or make them one")
    return found
