"""``yolov9kit benchmark``, which also takes the command lines of ``benchmark.py``."""

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yolov9kit.cli.parsing import Given, Parser, refuse_folders, rounded_up, write_reports
from yolov9kit.errors import UsageError

if TYPE_CHECKING:
    from yolov9kit.benchmark.config import BenchmarkConfig
    from yolov9kit.benchmark.report import BenchmarkReport

_FILES = ("json", "html")


def parser_of_benchmark() -> Parser:
    from yolov9kit.benchmark.config import BenchmarkConfig

    def about(field: str) -> str:
        info = BenchmarkConfig.model_fields[field]
        default = info.default[0] if isinstance(info.default, tuple) else info.default
        return f"{info.description}" + (
            "" if default is None or default is False else f" (default {default})"
        )

    parser = Parser(
        prog="yolov9kit benchmark",
        description="Time weights on this machine: every combination of --img, --batch, --precision and --mode is a "
        "row. Several values stand behind one another or with commas. The table goes to standard output.",
        epilog="Exit code 1 if a row could not be measured; the others are. Ctrl-C keeps the rows that are done.",
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    add("--weights", "-w", nargs="+", required=True, metavar="FILE", help="weights: .pt, .safetensors")
    add("--img", "--imgsz", "--img-size", nargs="+", metavar="PX", help=about("image_sizes"))
    add("--batch", "--batch-size", nargs="+", metavar="N", help=about("batch_sizes"))
    add("--precision", nargs="+", metavar="P", help=about("precisions"))
    add("--mode", nargs="+", metavar="MODE", help=about("modes"))
    add("--device", help=about("device"))
    add("--warm-up", "--warmup", type=int, metavar="N", help=about("warm_up"))
    add("--runs", type=int, metavar="N", help=about("runs"))
    add("--seconds", type=float, metavar="S", help=about("seconds"))
    add("--source", "-s", help=about("source"))
    add("--pictures", type=int, metavar="N", help=about("pictures"))
    add("--timed-pictures", type=int, metavar="N", help=about("timed_pictures"))
    add("--data", metavar="YAML", help=about("data"))
    add("--split", "--task", metavar="SPLIT", help=about("split"))
    add("--profile", action="store_true", help=about("profile"))
    add("--profile-runs", type=int, metavar="N", help=about("profile_runs"))
    add("--no-floor", action="store_true", help="do not measure what the device can do at most")
    add("--json", type=Path, metavar="FILE", help="write the report as JSON")
    add("--html", type=Path, metavar="FILE", help="write the report as a page that needs no network")
    add("--quiet", "-q", action="store_true", help="no plan, notes and progress")
    old = parser.add_argument_group("spellings of benchmark.py")
    old.add_argument("--half", action="store_true", help="--precision fp16")
    old.add_argument("--bf16", action="store_true", help="--precision bf16")
    return parser


_FIELDS = {
    "device": "device",
    "warm_up": "warm_up",
    "runs": "runs",
    "seconds": "seconds",
    "source": "source",
    "pictures": "pictures",
    "timed_pictures": "timed_pictures",
    "data": "data",
    "split": "split",
    "profile": "profile",
    "profile_runs": "profile_runs",
}
"""Options that are settings under their own name."""


def run(words: list[str], script: bool) -> int:
    given = vars(parser_of_benchmark().parse_args(words))
    config = _config(given, script)
    refuse_folders(given, _FILES)
    if config.profile:  # else torch's profiler tells on standard error when it begins and ends
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
    report, stopped = _measure(given["weights"][0], config, quiet="quiet" in given)

    from yolov9kit.benchmark.text import table

    print(table(report))
    for path in write_reports(given, _FILES, lambda name: _content(name, report)):
        print(f"written: {path}", file=sys.stderr)
    if stopped:
        print(
            f"yolov9kit: stopped; {len(report.rows)} of {len(report.plan.combinations)} rows were done and kept",
            file=sys.stderr,
        )
        return 130
    return 1 if report.failed else 0


def _measure(weights: str, config: "BenchmarkConfig", quiet: bool) -> tuple["BenchmarkReport", bool]:
    """The report, of what there is where Ctrl-C has stopped it, and whether it did.

    Raises:
        KeyboardInterrupt: it was stopped before there was a plan.
    """
    from yolov9kit.benchmark.benchmark import run_benchmark
    from yolov9kit.benchmark.report import BenchmarkReport, Plan, Row
    from yolov9kit.benchmark.text import plan_text

    start = time.monotonic()
    plan: Plan | None = None
    rows: list[Row] = []
    progress = _Line(quiet)
    reports = run_benchmark(weights, config, on_progress=progress.show)
    try:
        for report in reports:
            progress.clear()
            if isinstance(report, BenchmarkReport):
                return report, False
            if isinstance(report, Row):
                rows.append(report)
            else:
                plan = report
                if not quiet:
                    print(plan_text(plan), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        if plan is None:
            raise
    finally:
        progress.clear()
        reports.close()
    assert plan is not None
    return BenchmarkReport(plan, tuple(rows), time.monotonic() - start), True


# ---------------------------------------------------------------------------------------------- settings


def _config(given: Given, script: bool) -> "BenchmarkConfig":
    from yolov9kit.benchmark.config import BenchmarkConfig

    if len(given["weights"]) > 1:
        raise UsageError(
            f"--weights names {len(given['weights'])} files: one is timed at a time, so that nothing else is in memory"
        )
    settings: dict[str, Any] = {field: given[option] for option, field in _FIELDS.items() if option in given}
    if "img" in given:
        sizes = _numbers("--img", given["img"])
        settings["image_sizes"] = tuple(rounded_up(sizes, "scripts do") if script else sizes)
    if "batch" in given:
        settings["batch_sizes"] = _numbers("--batch", given["batch"])
    settings |= _precisions(given)
    if "mode" in given:
        settings["modes"] = _parts(given["mode"])
    if "no_floor" in given:
        settings["floor"] = False
    return BenchmarkConfig(**settings)


def _parts(words: Sequence[str]) -> tuple[str, ...]:
    """``320,640 1280`` in its parts."""
    return tuple(part.strip() for word in words for part in word.split(",") if part.strip())


def _numbers(option: str, words: Sequence[str]) -> tuple[int, ...]:
    parts = _parts(words)
    wrong = next((part for part in parts if not re.fullmatch(r"-?[0-9]{1,9}", part)), None)
    if wrong is not None:
        raise UsageError(f"{option} {wrong}: give whole numbers, with commas or spaces between them")
    return tuple(map(int, parts))


def _precisions(given: Given) -> Given:
    """The setting that ``--half``, ``--bf16`` and ``--precision`` name together; empty where none of them stands."""
    asked: dict[str, tuple[str, ...]] = {"--half": ("fp16",)} if "half" in given else {}
    asked |= {"--bf16": ("bf16",)} if "bf16" in given else {}
    if "precision" in given:
        precisions = _parts(given["precision"])
        asked |= {f"--precision {','.join(precisions)}": precisions}
    if len(set(asked.values())) > 1:
        raise UsageError(f"{' and '.join(asked)}: contradict each other; name all of them behind --precision")
    return {"precisions": next(iter(asked.values()))} if asked else {}


# ---------------------------------------------------------------------------------------------- output


class _Line:
    """One line on a terminal that says what is done now; silent elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self._on = not quiet and sys.stderr.isatty()
        self._start = time.monotonic()

    def show(self, what: str, done: int, total: int) -> None:
        if self._on:
            spent = time.monotonic() - self._start
            print(
                f"\r\x1b[K{done}/{total} done, {spent:.0f} s, now {what}"[:110],
                end="",
                file=sys.stderr,
                flush=True,
            )

    def clear(self) -> None:
        if self._on:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _content(name: str, report: "BenchmarkReport") -> bytes:
    if name == "json":
        from yolov9kit.benchmark.record import as_record

        text = json.dumps(as_record(report), ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    else:
        from yolov9kit.benchmark.page import draw_page

        text = draw_page(report)
    return text.encode(errors="backslashreplace")
