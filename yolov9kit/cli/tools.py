"""The small commands: convert, fetch, env."""

import sys
import time
from pathlib import Path

from yolov9kit.cli.parsing import Parser


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
