"""``yolov9kit data``: a new folder from a data set. The original is never touched."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from yolov9kit.cli.parsing import Given, Parser, Stages, quiet_decoder

if TYPE_CHECKING:
    from yolov9kit.rewrite.rewritten import Rewritten
    from yolov9kit.types import ProgressCallback

_SOURCE = "data.yaml, another annotation file, or the folder that holds it"


def parser_of_data() -> Parser:
    parser = Parser(
        prog="yolov9kit data",
        description="Write a new folder from a data set: pictures are copied byte for byte, and the original is never "
        "touched. `yolov9kit doctor DATA --fix OUT` writes a repaired copy.",
        epilog="Exit code 1 if a data set cannot be used or OUT cannot be written; then there is no OUT.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", parser_class=Parser)
    convert = _verb(verbs, "convert", "write it in another format")
    _add_source(convert)
    convert.add_argument(
        "--as-boxes", action="store_true", help="oriented boxes and key points become upright boxes"
    )
    split = _verb(verbs, "split", "deal its pictures out to train, val and test")
    _add_source(split)
    split.add_argument("--val", type=float, metavar="SHARE", help="for validation (default 0.2)")
    split.add_argument("--test", type=float, metavar="SHARE", help="for the test (default 0)")
    split.add_argument("--seed", type=int, metavar="N", help="another seed, another split (default 0)")
    split.add_argument(
        "--group-by",
        metavar="REGEX",
        help="pictures whose file names have the same first group stay together (default: the augmented copies of a "
        "Roboflow export, name_jpg.rf.HASH)",
    )
    merge = _verb(verbs, "merge", "join several, classes by their names")
    merge.add_argument("sources", metavar="SRC", nargs="+", type=Path, help=_SOURCE)
    merge.add_argument("out", metavar="OUT", type=Path, help="a new folder")
    subset = _verb(verbs, "subset", "keep some classes, pictures or splits")
    _add_source(subset)
    subset.add_argument("--classes", nargs="+", metavar="NAME", help="that stay, numbered anew (default all)")
    subset.add_argument("--count", type=int, metavar="N", help="at most so many pictures of each split")
    subset.add_argument("--split", dest="splits", nargs="+", metavar="SPLIT", help="that stay (default all)")
    subset.add_argument("--seed", type=int, metavar="N", help="another seed, other pictures (default 0)")
    subset.add_argument(
        "--empty-share",
        type=float,
        metavar="SHARE",
        help="of the pictures may have no box (default: none with --classes, else as they come)",
    )
    for verb in (convert, split, merge, subset):
        verb.add_argument(
            "--to", dest="format", choices=("yolo", "coco"), help="format of the new folder (default yolo)"
        )
        verb.add_argument(
            "--skip-bad-rows",
            action="store_true",
            help="leave out rows, pictures and splits with errors, and list them in OUT/left_out.txt",
        )
        verb.add_argument("--quiet", "-q", action="store_true", help="no progress")
    return parser


def _verb(verbs: "argparse._SubParsersAction[Parser]", name: str, what: str) -> Parser:
    return verbs.add_parser(
        name,
        help=what,
        description=f"A new folder from a data set: {what}.",
        argument_default=argparse.SUPPRESS,
    )


def _add_source(parser: Parser) -> None:
    parser.add_argument("data", metavar="SRC", type=Path, help=_SOURCE)
    parser.add_argument("out", metavar="OUT", type=Path, help="a new folder")


def run(words: list[str], _script: bool) -> int:
    given = vars(parser_of_data().parse_args(words))
    quiet = given.pop("quiet", False)
    work = _work(given)
    quiet_decoder()
    progress = Stages(quiet)
    try:
        written = work(progress.show)
    finally:
        progress.clear()
    print(written.summary())
    return 0


def _work(given: Given) -> "Callable[[ProgressCallback], Rewritten]":
    from yolov9kit.rewrite.convert import convert_data
    from yolov9kit.rewrite.merge import merge_data
    from yolov9kit.rewrite.split import split_data
    from yolov9kit.rewrite.subset import subset_data

    verbs: dict[str, Callable[..., Rewritten]] = {
        "convert": convert_data,
        "split": split_data,
        "merge": merge_data,
        "subset": subset_data,
    }
    verb = verbs[given.pop("verb")]
    return lambda show: verb(**given, on_progress=show)
