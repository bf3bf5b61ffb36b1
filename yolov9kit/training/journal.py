"""The journal of a run: one JSON line a report, appended while it runs. A later kernel knows everything from it."""

import gc
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pydantic_core import from_json

from yolov9kit.errors import TrainingError
from yolov9kit.training.reports import Report, as_record, from_record

JOURNAL = "journal.jsonl"
_BLOCK = 2**18
_CHECKED = 512
_TOGETHER = 10_000
_KIND = b'{"kind": "'


class Journal:
    """Appends reports to ``folder/journal.jsonl``. Each is one whole line; half a line of a dead writer is taken away.

    Raises:
        TrainingError: the line cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self._file = self.path.open("ab", buffering=0)
        self._file.truncate(end_of_journal(folder).offset)

    def append(self, report: Report) -> None:
        # NaN is no JSON: a reader would refuse the line
        line = json.dumps(as_record(report), ensure_ascii=False, allow_nan=False, default=str) + "\n"
        data = line.encode("utf-8", "backslashreplace")
        start = self._file.seek(0, os.SEEK_END)
        try:
            while data:  # a disk that gets full takes a part and says nothing
                data = data[self._file.write(data) :]
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(start)
            raise TrainingError(
                f"{self.path}: cannot be written ({error.strerror}). Everything up to the last checkpoint is kept: "
                "make room and resume."
            ) from None

    def committed(self) -> int:
        """Bytes that are surely on the disk now."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def read_journal(folder: str | Path) -> list[Report]:
    """All reports of a run, also while it writes. A last line that was cut off is left out.

    Raises:
        TrainingError: there is no journal, or a line before the last is damaged.
    """
    return list(read_new(Path(folder), Position()).reports)


@dataclass(frozen=True)
class Position:
    """A place between two lines of a journal; without arguments, its beginning.

    ``check`` is a checksum of what stands right before: a journal that was cut back and has grown again is noticed.
    """

    offset: int = 0
    check: int = 0


@dataclass(frozen=True)
class News:
    """What a journal has got since a position. ``anew``: it was cut back meanwhile, these are all its reports."""

    reports: tuple[Report, ...]
    position: Position
    anew: bool = False


def read_new(folder: Path, since: Position) -> News:
    """The reports after ``since``; reads nothing else. A last line that is not yet whole waits for the next call.

    Raises:
        TrainingError: there is no journal, or a line before the last is damaged.
    """
    found = read_records(folder, since)
    reports: list[Report] = []
    for number, record in enumerate(found.records, start=1):
        try:
            reports.append(from_record(record))
        except ValueError as error:
            raise _damaged(folder, 0 if found.anew else since.offset, number, error) from None
    return News(tuple(reports), found.position, found.anew)


@dataclass(frozen=True)
class Records:
    """As ``News``, but the reports as plain values: a third of the time for a long journal."""

    records: list[dict[str, Any]]
    position: Position
    anew: bool = False


def read_records(folder: Path, since: Position) -> Records:
    """As ``read_new``, without making reports of the lines.

    Raises:
        TrainingError: there is no journal, or a line before the last is damaged.
    """
    path = folder / JOURNAL
    try:
        with path.open("rb") as file:
            anew = _position(file, since.offset) != since
            start = 0 if anew else since.offset
            file.seek(start)
            content = file.read()
            records, used = _parsed(content[: content.rfind(b"\n") + 1], folder, start)
            return Records(records, _position(file, start + used), anew)
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror})") from None


def _damaged(folder: Path, start: int, number: int, error: ValueError) -> TrainingError:
    after = f" after byte {start}" if start else ""
    return TrainingError(f"{folder / JOURNAL}, line {number}{after}: damaged ({error})")


def _parsed(content: bytes, folder: Path, start: int) -> tuple[list[dict[str, Any]], int]:
    """Whole lines as records, and how many bytes they are; a damaged last line is left out."""
    lines = content.split(b"\n")[:-1]
    records: list[dict[str, Any]] = []
    collecting = gc.isenabled()
    gc.disable()  # it would look at every new record again and again, and finds nothing
    try:
        for first in range(0, len(lines), _TOGETHER):
            some = lines[first : first + _TOGETHER]
            try:
                records += from_json(b"[" + b",".join(some) + b"]")  # twice as fast as json
            except ValueError:
                break
        for number, line in enumerate(
            lines[len(records) :], start=len(records) + 1
        ):  # none, where all is well
            try:
                records.append(json.loads(line))
            except ValueError as error:
                if number < len(lines):
                    raise _damaged(folder, start, number, error) from None
                return records, len(content) - len(line) - 1
    finally:
        if collecting:
            gc.enable()
    return records, len(content)


def end_of_journal(folder: Path) -> Position:
    """The end of the last whole line; the beginning where there is no journal yet."""
    try:
        with (folder / JOURNAL).open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            while end:
                start = max(end - _BLOCK, 0)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    return _position(file, start + newline + 1)
                end = start
    except FileNotFoundError:
        pass
    return Position()


def _position(file: BinaryIO, offset: int) -> Position:
    start = max(offset - _CHECKED, 0)
    file.seek(start)
    before = file.read(offset - start)
    return Position(start + len(before), zlib.crc32(before))


def lines_backwards(folder: Path) -> Iterator[bytes]:
    """The whole lines, the last one first. Reads as far as the caller goes.

    Raises:
        TrainingError: there is no journal.
    """
    path = folder / JOURNAL
    try:
        with path.open("rb") as file:
            start, rest = end_of_journal(folder).offset, b""
            while start:
                end, start = start, max(start - _BLOCK, 0)
                file.seek(start)
                rest, *lines = (file.read(end - start) + rest).split(b"\n")
                yield from filter(None, reversed(lines))
            if rest:
                yield rest
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror})") from None


def kind_of(line: bytes) -> str:
    """The kind of report in a line, without reading the rest of it."""
    return line[10:].partition(b'"')[0].decode(errors="replace") if line.startswith(_KIND) else ""


def cut_back(folder: Path, committed: int) -> int:
    """Take away what was written after a checkpoint, for a run that goes on from there; returns how many lines.

    They are kept beside the journal in ``journal-lost-N.jsonl``. Lines after the checkpoint that tell only of it,
    of requests or that the run ended there, stay.

    Raises:
        TrainingError: the journal is shorter than it was at the checkpoint.
    """
    path = folder / JOURNAL
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror})") from None
    if len(content) < committed:
        raise TrainingError(
            f"{path}: has {len(content)} bytes, the checkpoint knows {committed}. The file was changed: "
            "bring the original back, or start a new run from weights/last.safetensors."
        )
    while (end := content.find(b"\n", committed) + 1) and _adds_nothing(content[committed:end]):
        committed = end
    lost = content[committed:]
    if not lost:
        return 0
    number = 1
    while (aside := folder / f"journal-lost-{number}.jsonl").exists():
        number += 1
    aside.write_bytes(lost)
    with path.open("r+b") as file:
        file.truncate(committed)
        os.fsync(file.fileno())
    return lost.count(b"\n") + (not lost.endswith(b"\n"))


def _adds_nothing(line: bytes) -> bool:
    try:
        return json.loads(line).get("kind") in ("checkpoint", "control", "end")
    except ValueError:
        return False
