"""A data set of any format that is read → a new folder in YOLO or COCO format."""

import os

import numpy as np

from yolov9kit.rewrite.item import Plan
from yolov9kit.rewrite.opened import open_data
from yolov9kit.rewrite.rewritten import Rewritten
from yolov9kit.rewrite.source_items import items_of, source_notes
from yolov9kit.rewrite.write import Format, check_target, write_plan
from yolov9kit.types import ProgressCallback


def convert_data(
    data: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    format: Format = "yolo",
    as_boxes: bool = False,
    skip_bad_rows: bool = False,
    on_progress: ProgressCallback | None = None,
) -> Rewritten:
    """Writes all splits of a data set into a new folder. Pictures are copied byte for byte.

    Args:
        data: a data.yaml, an annotation file of another format, or the folder that holds them.
        out: a new or empty folder, not inside the source.
        format: "yolo" or "coco".
        as_boxes: oriented boxes and key points become upright boxes; without it they are refused.
        skip_bad_rows: leave out rows, pictures and splits with errors, and list them in ``left_out.txt``.

    Raises:
        UsageError: no such format.
        DataError: the data set cannot be used, or has errors.
        KitError: the new folder cannot be written.
    """
    check_target(out, format)
    opened = open_data(data, as_boxes=as_boxes, skip_bad_rows=skip_bad_rows, on_progress=on_progress)
    splits, repeated = items_of(opened, np.arange(len(opened.names)))
    kept = format == "yolo" and not as_boxes
    plan = Plan(
        name=opened.name,
        names=opened.names,
        splits=splits,
        roots=opened.roots,
        left_out=(*opened.left_out, *repeated),
        notes=source_notes([opened], kept),
        keep_polygons=kept,
    )
    return write_plan(plan, out, format, on_progress)
