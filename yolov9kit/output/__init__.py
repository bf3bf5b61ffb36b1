"""Detections to files: pictures, crops, JSON, COCO JSON, YOLO txt, CSV, annotated video.

Everything is written as it comes, so that a long video needs no memory. A file appears under its name when it is
whole: of a run that broke no JSON or CSV is left, of one that was stopped by hand they hold what was done.
"""

from yolov9kit.output.files import JsonStream
from yolov9kit.output.folder import ResultFolder, run_folder
from yolov9kit.output.records import CSV_COLUMNS, as_record, coco_results, csv_rows, yolo_rows

__all__ = [
    "CSV_COLUMNS",
    "JsonStream",
    "ResultFolder",
    "as_record",
    "coco_results",
    "csv_rows",
    "run_folder",
    "yolo_rows",
]
