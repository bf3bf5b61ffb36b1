"""``yolov9kit detect``, which also takes the command lines of ``detect_dual.py``."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from yolov9kit.cli.parsing import Parser, Progress, quiet_decoder, rounded_up
from yolov9kit.errors import UsageError

SCRIPT_SPELLINGS = frozenset(
    [
        "--conf-thres",
        "--iou-thres",
        "--imgsz",
        "--img-size",
        "--agnostic-nms",
        "--half",
        "--bf16",
        "--no-trace",
        "--view-img",
    ]
)
"""Spellings of ``detect_dual.py`` that ours do not share. They bring its defaults: IoU 0.45, at most 1000 boxes."""


def parser_of_detect() -> Parser:
    from yolov9kit.infer.config import MODES, DetectConfig

    def about(field: str) -> str:
        info = DetectConfig.model_fields[field]
        return f"{info.description} (default {info.default})"

    parser = Parser(
        prog="yolov9kit detect",
        description="Find objects. Annotated pictures go to PROJECT/NAME, a line per picture to standard output.",
        epilog="Exit code 1 if a picture could not be read; the others are done all the same, the failed ones listed.",
    )
    add = parser.add_argument
    add(
        "--weights",
        "-w",
        nargs="+",
        required=True,
        metavar="FILE",
        help="weights: .pt of any YOLOv9 project, .safetensors",
    )
    add(
        "--source",
        "-s",
        required=True,
        help="picture, video, folder, 'glob', list.txt, camera number or stream address",
    )
    add(
        "--img",
        "--imgsz",
        "--img-size",
        nargs="+",
        type=int,
        metavar="PX",
        help="input size, or height width (default 640)",
    )
    add("--conf", "--conf-thres", type=float, metavar="P", help=about("min_score"))
    add("--iou", "--iou-thres", type=float, metavar="P", help=about("max_iou"))
    add("--max-det", type=int, metavar="N", help=about("max_detections"))
    add("--classes", nargs="+", metavar="C", help="keep these classes only, by number or name")
    add(
        "--agnostic",
        "--agnostic-nms",
        action="store_true",
        help=DetectConfig.model_fields["agnostic"].description,
    )
    add("--device", default="auto", help="auto, cpu, 0, cuda:1, mps (default auto: a GPU if there is one)")
    add("--precision", choices=("auto", "fp32", "tf32", "fp16", "bf16"), help="(default fp32)")
    add(
        "--mode",
        choices=MODES,
        default="auto",
        help="how the network is run (default auto: the fastest here)",
    )
    add("--batch", "--batch-size", type=int, metavar="N", help=about("batch_size"))
    add("--project", type=Path, default=Path("runs/detect"), help="folder of results (default runs/detect)")
    add(
        "--name", default="exp", help="folder of this run in it (default exp; a number is added if it exists)"
    )
    add("--exist-ok", action="store_true", help="write into an existing folder")
    add("--nosave", action="store_true", help="write no annotated pictures or videos")
    add("--save-txt", action="store_true", help="write YOLO label files, PROJECT/NAME/labels/*.txt")
    add("--save-conf", action="store_true", help="with the score as last value of each row")
    add("--save-crop", action="store_true", help="write the boxes' contents, PROJECT/NAME/crops/CLASS/*")
    add("--json", type=Path, metavar="FILE", help="write everything as JSON")
    add("--coco", type=Path, metavar="FILE", help="write COCO results JSON")
    add("--csv", type=Path, metavar="FILE", help="write a table, one box a row")
    add("--quiet", "-q", action="store_true", help="no line per picture and no progress")
    add("--vid-stride", type=int, default=1, metavar="N", help="use every N-th frame of a video")
    add("--line-thickness", type=int, metavar="PX", help="line width of drawn boxes")
    add("--hide-labels", action="store_true", help="draw boxes without names")
    add("--hide-conf", action="store_true", help="draw names without scores")
    add("--data", type=Path, metavar="YAML", help="class names, for weights that hold none")
    old = parser.add_argument_group(
        "spellings of detect_dual.py",
        "accepted; any of them brings that script's defaults: IoU 0.45, at most 1000 boxes",
    )
    old.add_argument("--half", action="store_true", help="--precision fp16")
    old.add_argument("--bf16", action="store_true", help="--precision bf16")
    old.add_argument(
        "--view-img", action="store_true", help="show pictures in a window, where there is a display"
    )
    old.add_argument("--no-trace", action="store_true", help="changes nothing: models are never traced here")
    for name in ("--augment", "--visualize", "--update", "--dnn"):
        old.add_argument(name, action="store_true", help="refused with the reason")
    return parser


_REFUSED = {
    "augment": "--augment: test-time augmentation is not offered; leave it out for the same boxes on one look",
    "visualize": "--visualize: feature maps are not drawn by this command; leave it out",
    "update": "--update: weights files are never rewritten; `yolov9kit convert` writes a clean copy",
    "dnn": "--dnn: OpenCV's network engine is not used; leave it out",
}


def run(words: list[str], script: bool) -> int:
    args = parser_of_detect().parse_args(words)
    old = script or any(_is_old_spelling(word) for word in words)
    for name, reason in _REFUSED.items():
        if vars(args)[name]:
            raise UsageError(reason)
    if len(args.weights) > 1:
        raise UsageError(f"--weights names {len(args.weights)} files: ensembles are not offered, name one")
    precision = _precision(args)
    size = _image_size(args.img, old)

    from yolov9kit.infer.predict import Detector
    from yolov9kit.output import ResultFolder, run_folder

    settings: dict[str, Any] = {"image_size": size, "agnostic": args.agnostic}
    if old:
        settings |= {"max_iou": 0.45, "max_detections": 1000}
        print(
            "yolov9kit: detect_dual.py's defaults are in use: IoU 0.45, at most 1000 boxes", file=sys.stderr
        )
    given = {
        "min_score": args.conf,
        "max_iou": args.iou,
        "max_detections": args.max_det,
        "batch_size": args.batch,
    }
    settings |= {name: value for name, value in given.items() if value is not None}
    checkpoint = _load_with_names(args.weights[0], args.data)
    if args.classes:
        settings["classes"] = _class_numbers(args.classes, checkpoint.names)
    told = None if args.quiet else _told
    detector = Detector(checkpoint, args.device, precision, mode=args.mode, progress=told, **settings)
    runner = detector.runner
    if not args.quiet:
        print(
            f"{detector}: {runner.device.label}, {runner.precision.reason}; {runner.mode.name} {runner.mode.reason}",
            file=sys.stderr,
        )
        for note in checkpoint.report.notes:
            print(f"yolov9kit: {note}", file=sys.stderr)
    head = {
        "weights": args.weights[0],
        "settings": detector.config.model_dump(mode="json")
        | {"device": runner.device.torch_name, "precision": runner.precision.label, "mode": runner.mode.name},
    }
    folder = run_folder(args.project, args.name, args.exist_ok)
    with ResultFolder(
        folder,
        pictures=not args.nosave,
        txt=args.save_txt,
        txt_scores=args.save_conf,
        crops=args.save_crop,
        json_file=args.json,
        coco_file=args.coco,
        csv_file=args.csv,
        head=head,
        line_width=args.line_thickness,
        labels=not args.hide_labels,
        scores=not args.hide_conf,
    ) as results:
        return _run_detector(detector, args, results)


def _told(what: str, done: int, total: int) -> None:
    """Work that is done once and takes long, when it starts."""
    if done == 0:
        print(f"yolov9kit: {what}, once", file=sys.stderr)


def _is_old_spelling(word: str) -> bool:
    name = word.partition("=")[0]
    return name in SCRIPT_SPELLINGS


def _precision(args: argparse.Namespace) -> str:
    asked = [
        name
        for name, yes in (
            ("fp16 (--half)", args.half),
            ("bf16 (--bf16)", args.bf16),
            (args.precision, args.precision),
        )
        if yes
    ]
    if len({name.partition(" ")[0] for name in asked}) > 1:
        raise UsageError(f"{' and '.join(asked)}: two precisions at once; name one")
    return asked[0].partition(" ")[0] if asked else "fp32"


def _image_size(given: list[int] | None, old: bool) -> int | tuple[int, int]:
    if not given:
        return 640
    if len(given) > 2:
        raise UsageError(f"--img takes one number, or height and width; {len(given)} were given")
    if old:
        given = rounded_up(given, "detect_dual.py does")
    return given[0] if len(given) == 1 else (given[0], given[1])


def _load_with_names(weights: str, data: Path | None) -> Any:
    from dataclasses import replace

    from yolov9kit.model.checkpoint import load

    checkpoint = load(weights)
    if data is None:
        return checkpoint
    if not any(note.startswith("names:") for note in checkpoint.report.notes):
        print(
            f"yolov9kit: --data {data} was not read: the weights hold their own class names", file=sys.stderr
        )
        return checkpoint
    names = _yaml_names(data)
    if len(names) != len(checkpoint.names):
        raise UsageError(
            f"--data {data}: {len(names)} names, but the weights have {len(checkpoint.names)} classes"
        )
    return replace(checkpoint, names=names)


def _yaml_names(path: Path) -> tuple[str, ...]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
        names = content["names"]
    except (OSError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError) as error:
        raise UsageError(
            f"--data {path}: no list of names can be read from it ({' '.join(str(error).split())[:120]})"
        ) from None
    return (
        tuple(str(names[key]) for key in sorted(names)) if isinstance(names, dict) else tuple(map(str, names))
    )


def _class_numbers(given: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
    numbers = []
    for text in given:
        if text.isdigit():
            numbers.append(int(text))
        elif text in names:
            numbers.append(list(names).index(text))
        else:
            raise UsageError(
                f"--classes {text}: the weights know {', '.join(names[:20])}{' …' if len(names) > 20 else ''}"
            )
    return tuple(numbers)


def _run_detector(detector: Any, args: argparse.Namespace, results: Any) -> int:
    from yolov9kit.data.sources import open_source

    quiet_decoder()
    source = open_source(args.source, stride=args.vid_stride)
    window = _Window(args.view_img)
    progress = Progress(source.total, args.quiet)
    pictures = boxes = 0
    network_ms = 0.0

    def failed(item: Any) -> None:
        results.failed.append(item)
        progress.clear()
        print(f"yolov9kit: {item.error}", file=sys.stderr)

    try:
        for picture, found in detector.stream(source, on_failure=failed):
            results.add(picture, found)
            pictures, boxes = pictures + 1, boxes + len(found)
            network_ms += found.timings.network_ms
            if not args.quiet:
                progress.clear()
                print(found, flush=True)
            progress.show(pictures + len(results.failed))
            if not window.show(picture, found):
                break
    finally:
        progress.clear()
        window.close()
    mean = f", network {network_ms / pictures:.1f} ms each" if pictures else ""
    lost = f", {len(results.failed)} failed" if results.failed else ""
    where = f"; results in {results.folder}" if results.folder.exists() else ""
    print(f"{pictures} pictures, {boxes} detections{lost}{mean}{where}", file=sys.stderr)
    return 1 if results.failed else 0


class _Window:
    """The window of --view-img, where there is a display."""

    def __init__(self, wanted: bool) -> None:
        display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")) or sys.platform in (
            "win32",
            "darwin",
        )
        self._on = wanted and display
        if wanted and not display:
            print(
                "yolov9kit: --view-img: there is no display here; see the written pictures", file=sys.stderr
            )

    def show(self, picture: Any, found: Any) -> bool:
        """False when the user pressed q or Esc in the window."""
        if not self._on:
            return True
        import cv2

        from yolov9kit.draw import draw_detections

        cv2.imshow("yolov9kit", draw_detections(picture.pixels, found)[..., ::-1])
        return cv2.waitKey(1 if picture.video_fps else 800) not in (ord("q"), 27)

    def close(self) -> None:
        if self._on:
            import cv2

            cv2.destroyAllWindows()
