"""COCO JSON: pictures, categories and boxes in one file for each split."""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yolov9kit.data.findings import Finding, Severity
from yolov9kit.data.formats.coco_files import find_coco
from yolov9kit.data.formats.coco_json import CocoCategory, CocoFile, Key, key_in, read_coco
from yolov9kit.data.formats.json_file import number_in, shown
from yolov9kit.data.formats.layout import Layout, SplitFiles, in_order, split_called
from yolov9kit.data.formats.picture_places import PictureFinder, about_unnamed, folders_of, last_part
from yolov9kit.data.formats.pixel_rows import Box, PixelRow, boxes_of_rows, with_size
from yolov9kit.data.formats.split_files import SplitFile
from yolov9kit.data.labels import LabelFile
from yolov9kit.errors import DataError
from yolov9kit.types import printable


def open_coco(path: Path) -> Layout | None:
    """The data set of a COCO JSON file, or of a folder that holds some; None where there is none.

    Of several kinds of files for a split the instances are taken. Classes are numbered in the order of the category
    ids. A category without boxes that only groups others is left out.

    Raises:
        DataError: a file cannot be used, or holds no boxes.
    """
    places, found = find_coco(path)
    findings = list(found)
    files, others = {}, []
    for split, place in places.items():
        file = read_coco(place.file, pictures_alone=place.kind == "image_info")
        if file is not None and file.other:
            others.append(file)
        elif file is not None:
            files[split] = file
    if not files:
        if others:
            raise DataError(printable(f"{others[0].file}: {others[0].other}"))
        return None
    findings += [
        Finding("place", "note", file.file, f"not taken: {file.other}", value=file.file.name)
        for file in others
    ]
    names, numbers, about = _classes(files)
    return CocoLayout(path, names, files, places, numbers, (*findings, *about))


@dataclass(frozen=True)
class CocoLayout:
    """``files`` and ``places`` by split; ``numbers``: for each split the class number of each category id."""

    file: Path
    names: tuple[str, ...]
    files: dict[str, CocoFile]
    places: dict[str, SplitFile]
    numbers: dict[str, dict[Key, int]]
    findings: tuple[Finding, ...] = ()
    kind: str = "COCO JSON"

    @property
    def splits(self) -> tuple[str, ...]:
        return in_order(set(self.files))

    def open(self, split: str) -> SplitFiles:
        split = split if split in self.files else split_called(split) or split
        if split not in self.files:
            raise DataError(
                printable(f"{self.file}: has no split '{split}' (splits: {', '.join(self.splits)})")
            )
        coco, place = self.files[split], self.places[split]
        names = [image.file_name for image in coco.images.values()]
        finder = PictureFinder(folders_of(place.root, coco.file, split, (place.called,)), names)
        pictures, index, findings = _pictures(coco, split, finder)
        rows: list[list[tuple[int, dict[str, Any]]]] = [[] for _ in pictures]
        findings += _distribute(coco, index, rows)
        named = {last_part(image.file_name) for file in self.files.values() for image in file.images.values()}
        findings += about_unnamed(coco.file, finder.unnamed(pictures, named))
        sizes: list[list[tuple[int, int]]] = [[] for _ in pictures]
        for key, i in index.items():
            if (told := coco.images[key].size_wh) is not None:
                sizes[i].append(told)
        read = CocoRows(coco, pictures, rows, sizes, self.numbers[split])
        label_paths = (None if coco.annotations is None else coco.file,) * len(pictures)
        return SplitFiles(pictures, label_paths, read, (coco.file,), tuple(findings))


# ------------------------------------------------------------------------------------------------ classes


def _classes(files: dict[str, CocoFile]) -> tuple[tuple[str, ...], dict[str, dict[Key, int]], list[Finding]]:
    """The class names, for each split the number of each category id, and what there is to say."""
    findings = []
    first: dict[Key, tuple[CocoCategory, Path]] = {}
    by_name: dict[str, Key] = {}
    for split in in_order(set(files)):
        coco = files[split]
        for key, category in _in_order_of_ids(coco.categories):
            known = first.setdefault(key, (category, coco.file))
            if known[0].name != category.name or by_name.get(category.name, key) != key:
                message = (
                    f"category '{category.name}' has the id {shown(key)} here and another meaning or id in another "
                    "file of this data set: the categories were matched by their names"
                )
                findings = [Finding("category_ids", "warning", coco.file, message, value=category.name)]
            by_name.setdefault(category.name, key)
    if findings:
        names = list(by_name)
    else:
        names = [
            category.name for _, category in _in_order_of_ids({key: known[0] for key, known in first.items()})
        ]
    for name in _groups(files):
        names.remove(name)
        message = (
            f"category '{name}' has no annotation and groups others (supercategory): it is no class here"
        )
        findings.append(
            Finding(
                "category_left_out", "note", next(iter(files.values())).file, printable(message), value=name
            )
        )
    numbers = {name: number for number, name in enumerate(names)}
    of_split = {
        split: {key: numbers[c.name] for key, c in coco.categories.items() if c.name in numbers}
        for split, coco in files.items()
    }
    return tuple(names), of_split, findings


def _in_order_of_ids(categories: dict[Key, CocoCategory]) -> list[tuple[Key, CocoCategory]]:
    return sorted(categories.items(), key=lambda item: (isinstance(item[0], str), item[0]))


def _groups(files: dict[str, CocoFile]) -> list[str]:
    """Names of categories without any annotation that are the supercategory of others."""
    used, groups, names = set(), set(), dict[str, None]()
    for coco in files.values():
        used |= {
            coco.categories[key].name
            for annotation in coco.annotations or ()
            if isinstance(annotation, dict)
            and (key := key_in(annotation.get("category_id"))) is not None
            and key in coco.categories
        }
        groups |= {c.group for c in coco.categories.values() if c.group != c.name}
        names |= dict.fromkeys(c.name for c in coco.categories.values())
    return [name for name in names if name in groups and name not in used]


# ----------------------------------------------------------------------------------------------- pictures


def _pictures(
    coco: CocoFile, split: str, finder: PictureFinder
) -> tuple[tuple[Path, ...], dict[Key, int], list[Finding]]:
    """The pictures that exist, the number of the picture of each image id, and what there is to say."""
    pictures: dict[Path, int] = {}
    index: dict[Key, int] = {}
    missing, findings = [], []
    for key, image in coco.images.items():
        path = finder.find(image.file_name)
        if path is None:
            missing.append(key)
            continue
        if path in pictures:
            message = f"is named twice by {coco.file} (again as id {shown(key)}), counted once with the boxes of both"
            findings.append(Finding("picture_repeated", "warning", path, printable(message)))
        index[key] = pictures.setdefault(path, len(pictures))
    if not pictures:
        if not missing:
            raise DataError(printable(f"{coco.file}: split '{split}': names no picture"))
        name = coco.images[missing[0]].file_name
        raise DataError(
            printable(
                f"{coco.file}: split '{split}': none of its {len(missing)} pictures was found; '{name}' was looked for "
                f"in {finder.tried(name)}"
            )
        )
    lost = Counter(
        key_in(annotation.get("image_id"))
        for annotation in coco.annotations or ()
        if isinstance(annotation, dict)
    )
    for key in missing:
        name = coco.images[key].file_name
        message = (
            f"'{name}' (image id {shown(key)}, {lost[key]} annotations) was not found: put it there, or remove it from "
            f"the file (tried: {finder.tried(name)})"
        )
        findings.append(
            Finding("picture_missing", "error", coco.file, printable(message), value=printable(name))
        )
    return tuple(pictures), index, findings


# --------------------------------------------------------------------------------------------- annotations


def _distribute(
    coco: CocoFile, index: dict[Key, int], rows: list[list[tuple[int, dict[str, Any]]]]
) -> list[Finding]:
    """Puts each annotation to its picture; those of no picture, and regions of many objects, are told of instead."""
    findings = []
    crowds = points = 0
    for number, annotation in enumerate(coco.annotations or ()):
        where = _where(number, annotation)
        if not isinstance(annotation, dict):
            message = (
                f"{where} is {shown(annotation)}: expected an object with image_id, category_id and bbox"
            )
            findings.append(Finding("label_columns", "error", coco.file, message, value=shown(annotation)))
            continue
        key = key_in(annotation.get("image_id"))
        if key is None or key not in coco.images:
            value = shown(annotation.get("image_id"))
            message = (
                f"{where}: image_id {value} is the id of no picture: correct it, or remove the annotation"
            )
            findings.append(Finding("label_orphan", "warning", coco.file, message, value=value))
        elif key in index:
            if _is_crowd(annotation) is True:
                crowds += 1
            else:
                rows[index[key]].append((number, annotation))
                points += bool(annotation.get("keypoints"))
    if crowds:
        regions = "1 region" if crowds == 1 else f"{crowds} regions"
        message = f"{regions} of many objects (iscrowd 1) left out: no single object is meant"
        findings.append(Finding("label_crowd", "note", coco.file, message, value=str(crowds)))
    if points:
        have = "1 annotation has" if points == 1 else f"{points} annotations have"
        message = f"{have} key points: only the boxes are read"
        findings.append(Finding("label_points", "note", coco.file, message, value=str(points)))
    return findings


def _where(number: int, annotation: object) -> str:
    name = f" (id {shown(annotation['id'])})" if isinstance(annotation, dict) and "id" in annotation else ""
    return f"annotations[{number}]{name}"


def _is_crowd(annotation: dict[str, Any]) -> bool | None:
    """None: neither yes nor no."""
    value = annotation.get("iscrowd", 0)
    if value is None or value == 0:
        return False
    return True if value == 1 else None


@dataclass(frozen=True)
class CocoRows:
    """``read`` of one split: for each picture the annotations with their places in the list, and its size as told."""

    coco: CocoFile
    pictures: tuple[Path, ...]
    rows: list[list[tuple[int, dict[str, Any]]]]
    sizes_wh: list[list[tuple[int, int]]]
    numbers: dict[Key, int]

    def __call__(self, i: int, size_wh: tuple[int, int]) -> LabelFile:
        rows = [self._row(i, number, annotation) for number, annotation in self.rows[i]]
        read = boxes_of_rows(self.coco.file, rows, size_wh)
        other = next((told for told in self.sizes_wh[i] if told != size_wh), None)
        return with_size(read, self.pictures[i], size_wh, other, self.coco.file, None)

    def _row(self, i: int, number: int, annotation: dict[str, Any]) -> PixelRow | Finding:
        where = f"{_where(number, annotation)} of {self.pictures[i].name}"

        def fault(code: str, value: object, message: str, severity: Severity = "error") -> Finding:
            return Finding(
                code, severity, self.coco.file, printable(f"{where}: {message}"), value=shown(value)
            )

        if _is_crowd(annotation) is None:
            value = annotation["iscrowd"]
            return fault("label_number", value, f"iscrowd is {shown(value)}: write 0 or 1")
        category = annotation.get("category_id")
        key = key_in(category)
        if key is None or key not in self.numbers:
            return fault(
                "label_class",
                category,
                f"category_id {shown(category)} is the id of no category: correct it, or add the category",
            )
        value, polygon = annotation.get("bbox"), False
        if value is None or value == []:
            polygon = True
            value = annotation.get("segmentation")
            box = _around(value)
            expected = "no bbox and no polygon: write a bbox"
        else:
            box = _corners(value)
            expected = "a bbox that is no list [x, y, width, height] of four values: correct it"
        if box is None:
            return fault("label_columns", value, expected)
        if not all(map(math.isfinite, box)):
            message = f"{shown(value)} holds something that is no finite number: correct it, or remove the annotation"
            return fault("label_number", value, message)
        return PixelRow(self.numbers[key], box, None, str(value)[:60], polygon, where)


def _corners(bbox: object) -> Box | None:
    """Of x, y, width, height. NaN stands for what is no number; None: not four values."""
    if not isinstance(bbox, list) or len(bbox) != 4:
        return None
    left, top, width, height = (math.nan if (n := number_in(value)) is None else n for value in bbox)
    return left, top, left + width, top + height


def _around(segmentation: object) -> Box | None:
    """The box around polygons ``[[x, y, x, y, x, y, ...], ...]``; None: no polygon, but a mask or nothing."""
    if not isinstance(segmentation, list) or not segmentation:
        return None
    polygons = segmentation if isinstance(segmentation[0], list) else [segmentation]
    if not all(isinstance(points, list) and len(points) >= 6 and len(points) % 2 == 0 for points in polygons):
        return None
    numbers = [[number_in(value) for value in points] for points in polygons]
    finite = [[math.nan if number is None else number for number in points] for points in numbers]
    if not all(math.isfinite(number) for points in finite for number in points):
        return math.nan, math.nan, math.nan, math.nan
    xs = [x for points in finite for x in points[::2]]
    ys = [y for points in finite for y in points[1::2]]
    return min(xs), min(ys), max(xs), max(ys)
