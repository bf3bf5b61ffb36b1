"""A small data set in COCO JSON, and what tests ask of the layout that opens it."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.coco import open_coco
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.data.labels import LabelFile

EXPORTS = Path(__file__).parents[3].parent / "shared/data/raw/formats_datumaro/tests/assets"
WH = (64, 48)

CLEAN: dict[str, Any] = {
    "images": [
        {"id": 7, "file_name": "a.png", "width": 64, "height": 48},
        {"id": 9, "file_name": "b.png", "width": 64, "height": 48},
    ],
    "categories": [
        {"id": 5, "name": "screw", "supercategory": "part"},
        {"id": 2, "name": "board", "supercategory": "part"},
    ],
    "annotations": [
        {"id": 11, "image_id": 7, "category_id": 5, "bbox": [1, 2, 30, 40], "iscrowd": 0, "area": 1200},
        {"id": 12, "image_id": 9, "category_id": 2, "bbox": [0.5, 0.25, 10, 5.5], "segmentation": []},
        {"id": 13, "image_id": 7, "category_id": 2, "bbox": [0, 0, 64, 48]},
    ],
}


def picture(path: Path, size: tuple[int, int] = WH) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)
    return path


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def with_pictures(folder: Path, *names: str) -> Path:
    for name in names or ("a.png", "b.png"):
        picture(folder / name)
    return folder


def coco_folder(
    folder: Path, change: Callable[[dict[str, Any]], object] | None = None, **replaced: object
) -> Path:
    """Writes two pictures and annotations.json: the clean one, changed by a function or in parts replaced."""
    content = copy.deepcopy(CLEAN) | replaced
    if change is not None:
        change(content)
    write(folder / "annotations.json", content)
    return with_pictures(folder)


def opened(path: Path) -> Layout:
    layout = open_coco(path)
    assert layout is not None
    return layout


def read_all(files: SplitFiles, size_wh: tuple[int, int] = WH) -> list[LabelFile]:
    return [files.read(i, size_wh) for i in range(len(files.pictures)) if files.label_paths[i] is not None]


def every_finding(layout: Layout, split: str = "train") -> list[Finding]:
    files = layout.open(split)
    return [*layout.findings, *files.findings, *(f for read in read_all(files) for f in read.findings)]


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]
