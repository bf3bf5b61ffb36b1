"""The journal of a run: one JSON line a report, appended while it runs. A later kernel knows everything from it."""

import json
import os
from pathlib import Path

from yolov9kit.errors import TrainingError
from yolov9kit.training.reports import Report, as_record, from_record

JOURNAL = "journal.jsonl"


class Journal:
    """Appends reports to ``folder/journal.jsonl``. Each is one write of one whole line.

    Raises:
        TrainingError: the line cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / JOURNAL
        self._file = self.path.open("ab", buffering=0)

    def append(self, report: Report) -> None:
        # NaN is no JSON: a reader would refuse the line
        line = json.dumps(as_record(report), ensure_ascii=False, allow_nan=False, default=str) + "\n"
        try:
            self._file.write(line.encode("utf-8", "backslashreplace"))
        except OSError as error:
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
    path = Path(folder) / JOURNAL
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TrainingError(f"{path}: cannot be read ({error.strerror})") from None
    *lines, torn = content.split(b"\n")
    reports = []
    for number, line in enumerate(lines, start=1):
        try:
            reports.append(from_record(json.loads(line)))
        except ValueError as error:
            if number == len(lines) and not torn:  # the disk was full, or the machine lost its power
                break
            raise TrainingError(f"{path}, line {number}: damaged ({error})") from None
    return reports


def cut_back(folder: Path, committed: int) -> int:
    """Take away what was written after a checkpoint, for a run that goes on from there; returns how many lines.

    They are kept beside the journal in ``journal-lost-N.jsonl``. Lines after the checkpoint that tell only of it,
    or that the run ended there, stay.

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
        return json.loads(line).get("kind") in ("checkpoint", "end")
    except ValueError:
        return False
