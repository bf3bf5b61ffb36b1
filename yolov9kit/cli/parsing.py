"""What the commands share: a parser whose errors are one line, and a line of progress."""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

from yolov9kit.errors import KitError, UsageError


class Parser(argparse.ArgumentParser):
    """Errors are one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see `{self.prog} --help`)")


class Progress:
    """One line on a terminal that is written over; silent elsewhere, where a line per picture is enough."""

    def __init__(self, total: int | None, quiet: bool, stream: TextIO = sys.stderr) -> None:
        self._total, self._stream = total, stream
        self._on = not quiet and stream.isatty()
        self._start = time.monotonic()

    def show(self, done: int) -> None:
        if not self._on:
            return
        spent = time.monotonic() - self._start
        rate = done / spent if spent else 0.0
        if self._total:
            left = (self._total - done) / rate if rate else 0.0
            text = f"{done}/{self._total}, {rate:.1f} a second, {left:.0f} s left"
        else:
            text = f"{done}, {rate:.1f} a second, Ctrl-C stops"
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()

    def clear(self) -> None:
        if self._on:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def quiet_decoder() -> None:
    """Odd metadata makes Pillow warn on standard error; what matters of it is in the pictures' notes."""
    warnings.filterwarnings("ignore", module=r"PIL\.")


class Stages:
    """A line of progress for each thing that is done; ``show`` is a ``ProgressCallback``."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._what = ""
        self._line = Progress(None, quiet=True)

    def show(self, what: str, done: int, total: int) -> None:
        if what != self._what:
            self.clear()
            self._what, self._line = what, Progress(total, self._quiet)
        self._line.show(done)

    def clear(self) -> None:
        self._line.clear()


Given = dict[str, Any]
"""What stands on the command line, by name; what does not stand there is not in it."""


def named_precision(given: Given) -> Given:
    """The setting that ``--half``, ``--bf16`` and ``--precision`` name together; empty where none of them stands.

    Raises:
        UsageError: they contradict each other.
    """
    asked = {"--half": "fp16"} if "half" in given else {}
    asked |= {"--bf16": "bf16"} if "bf16" in given else {}
    asked |= {f"--precision {given['precision']}": given["precision"]} if "precision" in given else {}
    if len(set(asked.values())) > 1:
        raise UsageError(f"{' and '.join(asked)}: two precisions at once; name one")
    return {"precision": next(iter(asked.values()))} if asked else {}


def rounded_up(sizes: Sequence[int], as_whom: str) -> list[int]:
    """Image sizes as old scripts take them: up to the next multiple of 32, which is said. Those below 1 stay."""
    rounded = [-(-size // 32) * 32 for size in sizes]
    if rounded == list(sizes) or min(sizes) < 1:
        return list(sizes)
    print(f"yolov9kit: image size {list(sizes)} rounded up to {rounded}, as {as_whom}", file=sys.stderr)
    return rounded


def refuse_folders(given: "Given", names: Iterable[str]) -> None:
    """Raises UsageError where one of these options names a folder instead of a file: before the work, not after it."""
    for name in names:
        if name in given and given[name].is_dir():
            raise UsageError(f"--{name} {given[name]}: is a folder; name a file to write")


def write_reports(given: "Given", names: Iterable[str], content: Callable[[str], bytes]) -> list[Path]:
    """``content(name)`` into the file that option ``name`` asks for; returns those that were written.

    Raises:
        KitError: one cannot be written.
    """
    from yolov9kit.output.files import write_bytes

    written = []
    for name in names:
        if name not in given:
            continue
        path = given[name]
        try:
            write_bytes(path, content(name))
        except OSError as error:
            raise KitError(f"--{name} {path}: cannot be written ({error.strerror})") from error
        written.append(path)
    return written
