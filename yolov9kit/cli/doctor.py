"""``yolov9kit doctor``: what is wrong with a data set, and where."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from yolov9kit.cli.parsing import Given, Parser, Stages, quiet_decoder, refuse_folders, write_reports

if TYPE_CHECKING:
    from yolov9kit.doctor.config import DoctorConfig
    from yolov9kit.types import ProgressCallback

Done = TypeVar("Done")
_STDOUT = Path("-")


def parser_of_doctor() -> Parser:
    from yolov9kit.doctor.config import DoctorConfig

    def about(field: str) -> str:
        return f"{DoctorConfig.model_fields[field].description}"

    parser = Parser(
        prog="yolov9kit doctor",
        description="Look for what is wrong with a data set: every picture is decoded, every row read, splits are "
        "compared. Nothing in the data set is changed.",
        epilog="Exit code 0: no errors; 1: errors, for which training refuses; with --fix, of the repaired copy. After "
        "Ctrl-C the next call goes on where this one stopped.",
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add(
        "data",
        metavar="DATA",
        type=Path,
        help="data.yaml, another annotation file, or the folder that holds it",
    )
    add(
        "--json",
        type=Path,
        metavar="FILE",
        help="write every finding as JSON; - writes it to standard output",
    )
    add("--fix", type=Path, metavar="OUT", help="write a repaired copy into this new folder")
    add("--img", type=int, metavar="PX", help=f"{about('image_size')} (default 640)")
    add("--split", nargs="+", metavar="SPLIT", help=about("splits"))
    add("--all", action="store_true", help="every place of every finding, not the first five")
    add("--no-near", action="store_true", help="do not look for pictures that look alike")
    add("--quiet", "-q", action="store_true", help="the summary alone, and no progress")
    return parser


def run(words: list[str], _script: bool) -> int:
    given = vars(parser_of_doctor().parse_args(words))
    config = _config(given)
    quiet = "quiet" in given
    to_stdout = given.get("json") == _STDOUT
    if not to_stdout:
        refuse_folders(given, ["json"])
    if "fix" in given:
        from yolov9kit.rewrite.write import check_target

        check_target(given["fix"])

    from yolov9kit.doctor.diagnose import diagnose
    from yolov9kit.doctor.text import report

    diagnosis = _with_progress(
        quiet,
        lambda show: diagnose(given["data"], config, on_progress=show),
        "the next call goes on from here",
    )
    if to_stdout:
        sys.stdout.buffer.write(f"{diagnosis.to_json()}\n".encode())  # JSON is UTF-8, whatever the locale
    else:
        everything = "all" in given
        print(diagnosis.summary() if quiet else report(diagnosis, everything=everything, beside=Path.cwd()))
        for path in write_reports(given, ["json"], lambda _: f"{diagnosis.to_json()}\n".encode()):
            print(f"written: {path}", file=sys.stderr)
    if "fix" in given:
        return _fix(given["data"], given["fix"], config, quiet)
    return 0 if diagnosis.ok else 1


def _fix(data: Path, out: Path, config: "DoctorConfig", quiet: bool) -> int:
    """Writes the copy and looks at it; standard output stays the diagnosis of the original."""
    from yolov9kit.doctor.diagnose import diagnose
    from yolov9kit.rewrite.repair import repair

    repaired = _with_progress(
        quiet, lambda show: repair(data, out, on_progress=show), f"{out} is not written"
    )
    copy = _with_progress(
        quiet, lambda show: diagnose(out, config, on_progress=show), f"{out} is written, and not looked at"
    )
    if not quiet:
        print(repaired.summary(), file=sys.stderr)
    print(f"{out}: {copy.summary()}", file=sys.stderr)
    return 0 if copy.ok else 1


def _config(given: Given) -> "DoctorConfig":
    from yolov9kit.doctor.config import DoctorConfig

    settings = {field: given[option] for option, field in (("img", "image_size"),) if option in given}
    if "split" in given:
        settings["splits"] = tuple(given["split"])
    if "no_near" in given:
        settings["near_duplicates"] = False
    return DoctorConfig(**settings)


def _with_progress(quiet: bool, work: "Callable[[ProgressCallback], Done]", when_stopped: str) -> "Done":
    """What ``work(show)`` gives; ``show`` counts on a line of the terminal, one line for each thing that is done."""
    quiet_decoder()
    stages = Stages(quiet)
    try:
        return work(stages.show)
    except KeyboardInterrupt:
        stages.clear()
        print(f"yolov9kit: {when_stopped}", file=sys.stderr)
        raise
    finally:
        stages.clear()
