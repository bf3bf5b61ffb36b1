"""``yolov9kit val``, which also takes the command lines of ``val_dual.py``."""

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from yolov9kit.cli.parsing import (
    Given,
    Parser,
    Stages,
    named_precision,
    quiet_decoder,
    refuse_folders,
    rounded_up,
    write_reports,
)
from yolov9kit.errors import UsageError

if TYPE_CHECKING:
    from yolov9kit.evaluation.config import EvalConfig
    from yolov9kit.evaluation.report import EvalReport

_REFUSED = {
    "save_hybrid": "--save-hybrid: truth among the detections would score itself; leave it out, --html shows both",
    "augment": "--augment: test-time augmentation is not offered; leave it out for the score of one look",
    "dnn": "--dnn: OpenCV's network engine is not used; leave it out",
}
_REPORTS = ("json", "html", "png")
_MANY_CLASSES = 30
"""More than this are listed when asked for."""


def parser_of_val() -> Parser:
    from yolov9kit.evaluation.config import EvalConfig

    def about(field: str) -> str:
        info = EvalConfig.model_fields[field]
        default = info.default[0] if isinstance(info.default, tuple) else info.default
        return f"{info.description}" + ("" if default is False else f" (default {default})")

    parser = Parser(
        prog="yolov9kit val",
        description="Score weights on a data set. The table goes to standard output, with the settings of the score.",
        epilog="Exit code 1 if the weights cannot be scored. Files are written only where asked for.",
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add("--weights", "-w", nargs="+", required=True, metavar="FILE", help="weights: .pt, .safetensors")
    add("--data", required=True, type=Path, metavar="YAML", help="data.yaml, or the folder that holds it")
    add("--split", "--task", metavar="SPLIT", help=about("split"))
    add("--img", "--imgsz", "--img-size", nargs="+", type=int, metavar="PX", help=about("image_size"))
    add("--batch", "--batch-size", type=int, metavar="N", help=about("batch"))
    add("--device", help=about("device"))
    add("--precision", choices=("auto", "fp32", "tf32", "fp16", "bf16"), help=about("precision"))
    add("--workers", type=int, metavar="N", help=about("workers"))
    add("--conf", "--conf-thres", type=float, metavar="P", help=about("min_score"))
    add("--iou", "--iou-thres", type=float, metavar="P", help=about("max_iou"))
    add("--max-det", type=int, metavar="N", help=about("max_detections"))
    add("--single-cls", "--single-class", action="store_true", help=about("single_class"))
    add("--one-label", action="store_true", help="a location counts for its best class only")
    add("--fused", action="store_true", help=about("fused"))
    add("--min-items", type=int, metavar="N", help=about("min_items"))
    add("--skip-bad-rows", action="store_true", help=about("skip_bad_rows"))
    add("--worst", type=int, metavar="N", help=about("worst"))
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--html", type=Path, metavar="FILE", help="write the report as a page that needs no network")
    add("--png", type=Path, metavar="FILE", help="write scores, curve and table as a picture")
    add(
        "--save-json",
        action="store_true",
        help="write PROJECT/NAME/predictions.json, COCO results; category_id is the class number, from 0",
    )
    add("--save-txt", action="store_true", help="write YOLO label files, PROJECT/NAME/labels/*.txt")
    add("--save-conf", action="store_true", help="with the score as last value of each row")
    add("--project", type=Path, help="folder of results (default runs/val)")
    add("--name", help="folder of this run in it (default exp; a number is added if it exists)")
    add("--exist-ok", action="store_true", help="write into an existing folder")
    add(
        "--verbose",
        action="store_true",
        help=f"a line for each class also where there are over {_MANY_CLASSES}",
    )
    add("--quiet", "-q", action="store_true", help="no notes and no progress")
    old = parser.add_argument_group("spellings of val_dual.py")
    old.add_argument("--half", action="store_true", help="--precision fp16")
    old.add_argument("--bf16", action="store_true", help="--precision bf16")
    for name in _REFUSED:
        option = f"--{name.replace('_', '-')}"
        old.add_argument(option, dest=name, action="store_true", help="refused with the reason")
    return parser


_FIELDS = {
    "split": "split",
    "img": "image_size",
    "batch": "batch",
    "device": "device",
    "workers": "workers",
    "conf": "min_score",
    "iou": "max_iou",
    "max_det": "max_detections",
    "single_cls": "single_class",
    "fused": "fused",
    "min_items": "min_items",
    "skip_bad_rows": "skip_bad_rows",
    "worst": "worst",
}
"""Options that are settings under another name or their own."""


def run(words: list[str], script: bool) -> int:
    given = vars(parser_of_val().parse_args(words))
    config = _config(given, script)
    refuse_folders(given, _REPORTS)
    quiet = "quiet" in given

    from yolov9kit.evaluation.evaluate import evaluate
    from yolov9kit.evaluation.text import table

    quiet_decoder()
    progress = Stages(quiet)
    try:
        report = evaluate(given["weights"][0], given["data"], config, on_progress=progress.show)
    finally:
        progress.clear()
    if not quiet:
        for note in report.notes:
            print(f"yolov9kit: {note}", file=sys.stderr)
    print(table(report, classes="verbose" in given or len(report.names) <= _MANY_CLASSES))
    for path in _write(report, given):
        print(f"written: {path}", file=sys.stderr)
    return 0


def _config(given: Given, script: bool) -> "EvalConfig":
    from yolov9kit.evaluation.config import EvalConfig

    for name, reason in _REFUSED.items():
        if name in given:
            raise UsageError(reason)
    if len(given["weights"]) > 1:
        raise UsageError(
            f"--weights names {len(given['weights'])} files: ensembles are not offered, name one"
        )
    if given.get("split") in ("speed", "study"):
        raise UsageError(
            f"--task {given['split']}: not offered; several --img sizes give AP and time by size"
        )
    if "save_conf" in given and "save_txt" not in given:
        raise UsageError("--save-conf: adds scores to the files of --save-txt; ask for those too")
    settings = {field: given[option] for option, field in _FIELDS.items() if option in given}
    settings |= named_precision(given)
    if "one_label" in given:
        settings["multi_label"] = False
    if "image_size" in settings:
        sizes = settings["image_size"]
        settings["image_size"] = tuple(rounded_up(sizes, "val_dual.py does") if script else sizes)
    return EvalConfig(**settings)


# ---------------------------------------------------------------------------------------------- files


def _write(report: "EvalReport", given: Given) -> list[Path]:
    """What was asked for; returns where it lies."""
    written = write_reports(given, _REPORTS, lambda name: _content(name, report))
    if "save_json" in given or "save_txt" in given:
        written.append(_write_folder(report, given))
    return written


def _content(name: str, report: "EvalReport") -> bytes:
    if name == "json":
        from yolov9kit.evaluation.text import as_record

        text = json.dumps(as_record(report), ensure_ascii=False, allow_nan=False, indent=1)
        return (text + "\n").encode(errors="backslashreplace")
    if name == "html":
        from yolov9kit.evaluation.page import draw_page

        return draw_page(report).encode(errors="backslashreplace")
    from yolov9kit.evaluation.figure import draw_report

    return draw_report(report)


def _write_folder(report: "EvalReport", given: Given) -> Path:
    import numpy as np

    from yolov9kit.output import ResultFolder, run_folder
    from yolov9kit.types import Detections, Picture

    folder = run_folder(given.get("project", Path("runs/val")), given.get("name", "exp"), "exist_ok" in given)
    no_pixels = np.empty((0, 0, 3), np.uint8)  # of the pictures nothing is written
    with ResultFolder(
        folder,
        pictures=False,
        txt="save_txt" in given,
        txt_scores="save_conf" in given,
        coco_file=folder / "predictions.json" if "save_json" in given else None,
    ) as results:
        for path, size_wh, one in zip(report.paths, report.sizes_wh, report.found, strict=True):
            found = Detections(one.boxes, one.scores, one.labels, report.names, size_wh, path=path)
            results.add(Picture(no_pixels, path), found)
    return folder
