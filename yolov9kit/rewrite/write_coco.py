"""A plan as COCO JSON: ``images/SPLIT`` and ``annotations/instances_SPLIT.json``."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from yolov9kit.errors import DataError
from yolov9kit.rewrite.item import Plan
from yolov9kit.rewrite.pictures import Renamed, write_pictures
from yolov9kit.types import ProgressCallback, printable


def write_coco(plan: Plan, folder: Path, on_progress: ProgressCallback | None = None) -> list[Renamed]:
    """Writes the plan into an empty folder; returns the pictures that could not keep their name.

    Ids of pictures, annotations and categories count from 1; categories stand in the order of the classes. Boxes are
    left, top, width, height in pixels of the upright picture, with every digit.

    Raises:
        DataError: two classes of one name: a COCO file tells classes by their names.
        OSError: it cannot be written, or a source cannot be read.
    """
    often = Counter(name.strip() for name in plan.names).most_common(1)
    if often and often[0][1] > 1:
        message = (
            f"several classes are called '{often[0][0]}', which COCO files tell by their names: rename one"
        )
        raise DataError(printable(f"{plan.name}: {message}"))
    (folder / "annotations").mkdir()
    categories = [{"id": i, "name": name, "supercategory": ""} for i, name in enumerate(plan.names, 1)]
    renamed = []
    for split, items in plan.splits.items():
        names, others = write_pictures(
            items, folder / "images" / split, f"writing {split}", lambda item, picture: None, on_progress
        )
        renamed += others
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        for image_id, (item, name) in enumerate(zip(items, names, strict=True), 1):
            width, height = item.sample.size_wh
            images.append({"id": image_id, "file_name": name, "width": width, "height": height})
            for label, (left, top, right, bottom) in zip(
                item.classes.tolist(), item.boxes.tolist(), strict=True
            ):
                wide, high = right - left, bottom - top
                annotations.append(
                    {
                        "id": len(annotations) + 1,
                        "image_id": image_id,
                        "category_id": label + 1,
                        "bbox": [left, top, wide, high],
                        "area": wide * high,
                        "iscrowd": 0,
                        "segmentation": [],
                    }
                )
        content = {
            "info": {"description": plan.name},
            "licenses": [],
            "images": images,
            "annotations": annotations,
            "categories": categories,
        }
        file = folder / "annotations" / f"instances_{split}.json"
        file.write_text(json.dumps(content), encoding="ascii")
    return renamed
