"""What is said about a data set: one finding for each fact."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from yolov9kit.types import printable

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Finding:
    """Something about a data set that its owner should know.

    ``severity``: ``error`` (training refuses), ``warning`` (training goes on, and says so), ``note``. ``code`` is the
    same for findings of one kind. ``message`` holds the value and what to do; ``str(finding)`` puts file and line
    before it. ``line`` counts from 1 and is None where the whole file is meant; ``value`` is the text found there.
    ``picture``: the one whose boxes were read when this was found, which a file about many pictures does not tell.
    """

    code: str
    severity: Severity
    path: Path
    message: str
    line: int | None = None
    value: str = ""
    picture: Path | None = field(default=None, compare=False)

    def __str__(self) -> str:
        where = str(self.path) if self.line is None else f"{self.path}:{self.line}"
        return printable(f"{where}: {self.message}")


def counted(number: int, one: str, many: str = "") -> str:
    """``1 picture``, ``2 pictures``; ``many`` where the plural is another than ``one`` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"
