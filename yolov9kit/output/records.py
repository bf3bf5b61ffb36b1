"""One picture's detections as rows: our JSON, YOLO, COCO, CSV."""

from dataclasses import asdict
from typing import Any

from yolov9kit.types import Detections


def as_record(detections: Detections) -> dict[str, Any]:
    """One entry of ``images`` in the JSON form. Frames of a video also have ``frame``, converted pictures ``notes``."""
    record: dict[str, Any] = {
        "path": detections.path,
        "width": int(detections.picture_wh[0]),
        "height": int(detections.picture_wh[1]),
        "detections": [
            {
                "box": [round(float(v), 4) for v in box],
                "score": round(float(score), 6),
                "label": int(label),
                "name": detections.names[label],
            }
            for box, score, label in zip(detections.boxes, detections.scores, detections.labels, strict=True)
        ],
        "timings_ms": {k.removesuffix("_ms"): round(v, 3) for k, v in asdict(detections.timings).items()},
    }
    if detections.frame is not None:
        record["frame"] = detections.frame
    if detections.notes:
        record["notes"] = list(detections.notes)
    return record


def yolo_rows(detections: Detections, scores: bool = False) -> list[str]:
    """Rows ``class cx cy w h [score]``, relative to the picture, as YOLO label files have them."""
    width, height = detections.picture_wh
    rows = []
    for (x1, y1, x2, y2), score, label in zip(
        detections.boxes.astype(float), detections.scores, detections.labels, strict=True
    ):
        values = ((x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height)
        row = f"{label} " + " ".join(f"{v:.6f}" for v in values)
        rows.append(f"{row} {score:.6f}" if scores else row)
    return rows


def coco_results(detections: Detections, image_id: int | str) -> list[dict[str, Any]]:
    """Rows of COCO's results format: ``bbox`` is x, y, width, height in pixels, ``category_id`` the label, from 0."""
    return [
        {
            "image_id": image_id,
            "category_id": int(label),
            "bbox": [round(float(v), 4) for v in (x1, y1, x2 - x1, y2 - y1)],
            "score": round(float(score), 6),
        }
        for (x1, y1, x2, y2), score, label in zip(
            detections.boxes.astype(float), detections.scores, detections.labels, strict=True
        )
    ]


CSV_COLUMNS = ("path", "frame", "label", "name", "score", "x1", "y1", "x2", "y2")


def csv_rows(detections: Detections) -> list[tuple[Any, ...]]:
    """Rows under ``CSV_COLUMNS``."""
    frame = "" if detections.frame is None else detections.frame
    return [
        (
            detections.path,
            frame,
            int(label),
            detections.names[label],
            f"{score:.6f}",
            *(f"{v:.4f}" for v in box),
        )
        for box, score, label in zip(detections.boxes, detections.scores, detections.labels, strict=True)
    ]
