"""What the files of a folder look like, judged by names and first bytes. Cheap, and never an error."""

import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path

from yolov9kit.data.formats.coco_files import looks_like_coco
from yolov9kit.data.formats.json_file import head_of
from yolov9kit.data.formats.xml_tree import root_tag

VOC, LABELME, LABELME_WEB = "Pascal VOC", "LabelMe", "LabelMe XML"
CVAT, CVAT_VIDEO = "CVAT for images", "CVAT for video"
COCO, CREATEML, DARKNET, TABLE = "COCO JSON", "CreateML", "Darknet", "a table of boxes"

_DEEP = 3
_ENOUGH = 20
_TELLING = (".xml", ".json", ".csv", ".tsv", ".data")
_FOR_MANY = re.compile("annotation|instances|coco|createml")
_LEFT = re.compile(r"(?:^|[\"',;\t ])(?:x_?min|xtl|left|x1|bbox(?:_x)?|x)(?:[\"',;\t ]|$)", re.IGNORECASE)


def sign_of(file: Path) -> str:
    """The format that a file seems to be of; "" where it tells none."""
    match file.suffix.lower():
        case ".xml":
            return _sign_of_xml(file)
        case ".json":
            return _sign_of_json(file)
        case ".csv" | ".tsv":
            return TABLE if _LEFT.search(head_of(file).partition("\n")[0]) else ""
        case ".data":
            return DARKNET if re.search(r"^\s*(train|names)\s*=", head_of(file), re.MULTILINE) else ""
    return ""


def sign_below(folder: Path, suffix: str) -> str:
    """The first format that a file of a suffix tells; VOC where XML files tell of pictures without objects alone."""
    nothing = ""
    for file in files_near(folder, lambda name: name.lower().endswith(suffix)):
        sign = sign_of(file)
        if sign:
            return sign
        if suffix == ".xml" and root_tag(file) == "annotation":
            nothing = VOC
    return nothing


def signs_in(folder: Path) -> dict[str, Path]:
    """The formats that files in a folder and near below it tell, each with the first file that does.

    Of formats with a file for each picture, the first few in each folder speak for all but those called like a
    file for many pictures.
    """
    signs: dict[str, Path] = {}
    seen: Counter[tuple[Path, str]] = Counter()
    for file in files_near(folder, lambda name: name.lower().endswith(_TELLING)):
        kind = (file.parent, file.suffix.lower())
        if seen[kind] >= _ENOUGH and not _FOR_MANY.search(file.stem.lower()):
            continue
        if sign := sign_of(file):
            signs.setdefault(sign, file)
            if sign in (VOC, LABELME, LABELME_WEB):
                seen[kind] += 1
    return signs


def files_near(folder: Path, wanted: Callable[[str], bool], deep: int = _DEEP) -> Iterator[Path]:
    """Files whose names are wanted, in a folder and at most ``deep`` folders below it, the nearest first. Hidden ones
    and what may not be read are passed over."""
    folders = deque([(folder, 0)])
    while folders:
        here, depth = folders.popleft()
        try:
            with os.scandir(here) as entries:
                visible = [entry for entry in entries if not entry.name.startswith(".")]
        except OSError:
            continue
        for entry in sorted(visible, key=lambda entry: entry.name):
            if _is_folder(entry):
                if depth < deep and entry.name != "__MACOSX":
                    folders.append((here / entry.name, depth + 1))
            elif wanted(entry.name):
                yield here / entry.name


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _sign_of_xml(file: Path) -> str:
    tag = root_tag(file)
    if tag not in ("annotation", "annotations"):
        return ""
    text = head_of(file).replace("\0", "")  # of UTF-16 enough is left
    if tag == "annotations":
        return CVAT_VIDEO if "<track" in text else CVAT if "<image" in text or "<meta" in text else ""
    if "<bndbox" in text or "<robndbox" in text:
        return VOC
    return LABELME_WEB if "<polygon" in text or "<segm>" in text else VOC if "<object" in text else ""


def _sign_of_json(file: Path) -> str:
    head = head_of(file)
    if '"imageData"' in head or ('"shapes"' in head and ('"imagePath"' in head or '"version"' in head)):
        return LABELME
    if '"coordinates"' in head and '"annotations"' in head:
        return CREATEML
    return COCO if looks_like_coco(file) else ""
