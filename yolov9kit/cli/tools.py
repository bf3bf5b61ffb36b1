"""The small commands: boards, convert, fetch, env."""

import sys
import time
from pathlib import Path

from yolov9kit.cli.parsing import Parser, Progress


def boards(words: list[str], _script: bool) -> int:
    parser = Parser(
        prog="yolov9kit boards",
        description="Draw a data set of circuit boards with six kinds of defect and exact boxes, in YOLO layout. "
        "The same seed gives the same pixels on every machine.",
    )
    parser.add_argument("folder", metavar="OUT", type=Path, help="a new or empty folder")
    parser.add_argument(
        "--train", type=int, default=1000, metavar="N", help="boards to train on (default 1000)"
    )
    parser.add_argument(
        "--val", type=int, default=100, metavar="N", help="boards to validate on (default 100)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="another seed, other boards (default 0)"
    )
    parser.add_argument(
        "--img", type=int, default=640, metavar="PX", help="side of a board's picture (default 640)"
    )
    parser.add_argument("--style", help="binarised, negative, scan or photo (default: by the seed)")
    parser.add_argument("--jpg", action="store_true", help="JPEG instead of PNG: smaller, faster to read")
    parser.add_argument(
        "--processes", type=int, metavar="N", help="that draw at once (default: the processors)"
    )
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress")
    args = parser.parse_args(words)

    from yolov9kit.data.boards.board import write_boards
    from yolov9kit.machine import usable_cores

    progress = Progress(args.train + args.val, args.quiet)
    file = write_boards(
        args.folder,
        args.train,
        args.val,
        args.seed,
        (args.img, args.img),
        args.style,
        ".jpg" if args.jpg else ".png",
        args.processes or max(1, int(usable_cores())),
        lambda done, total: progress.show(done),
    )
    progress.clear()
    print(file)
    return 0


def convert(words: list[str], _script: bool) -> int:
    parser = Parser(
        prog="yolov9kit convert",
        description="Write the deployed form of any YOLOv9 weights file. The new file is read back and its outputs are "
        "compared with the old one's before it appears.",
    )
    parser.add_argument("source", metavar="IN", help="weights of any YOLOv9 project")
    parser.add_argument("target", metavar="OUT.safetensors", type=Path)
    parser.add_argument(
        "--precision", choices=("fp32", "fp16", "bf16"), help="of the stored numbers (default: as in IN)"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace OUT if it exists")
    parser.add_argument(
        "--admit",
        action="append",
        default=[],
        metavar="NAME",
        help="read this class of a pickled file as an empty shell",
    )
    args = parser.parse_args(words)

    from yolov9kit.model import checkpoint

    done = checkpoint.convert(
        args.source, args.target, precision=args.precision, overwrite=args.overwrite, admit=args.admit
    )
    made = done.checkpoint
    print(f"{done.path}: YOLOv9-{made.size}, {len(made.names)} classes, {made.precision}, deployed form")
    print(
        f"parameters: {done.parameters_before:,} in {args.source}, {done.parameters_after:,} deployed; "
        f"largest difference of the outputs {done.max_difference:.1e}"
    )
    return 0


def fetch(words: list[str], _script: bool) -> int:
    parser = Parser(
        prog="yolov9kit fetch", description="Download released weights. Nothing else here uses the network."
    )
    parser.add_argument("name", nargs="?", help="for example yolov9-s; leave it out to list all")
    parser.add_argument("--folder", type=Path, default=Path("weights"), help="where to (default weights)")
    args = parser.parse_args(words)

    from yolov9kit import download

    if args.name is None:
        for name, release in download.RELEASES.items():
            print(f"{name:20s} {release.project}, {release.licence}")
        return 0
    shown = 0.0
    for report in download.fetch(args.name, args.folder):
        if isinstance(report, download.Progress):
            now = time.monotonic()
            if sys.stderr.isatty() and now - shown > 0.2:
                print(f"\r\x1b[K{report}", end="", file=sys.stderr, flush=True)
                shown = now
        else:
            print(("\r\x1b[K" if shown else "") + str(report), file=sys.stderr, flush=True)
            shown = 0.0
    return 0


def env(words: list[str], _script: bool) -> int:
    parser = Parser(
        prog="yolov9kit env",
        description="What this machine can do. Exit code 1 if something needed is missing.",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    args = parser.parse_args(words)

    import json

    from yolov9kit.machine import inspect_machine

    report = inspect_machine()
    print(json.dumps(report.as_dict(), indent=2) if args.json else report)
    return report.exit_code
