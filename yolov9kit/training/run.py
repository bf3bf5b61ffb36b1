"""A person's hold on a run, from any process: how it stands, what it said, and requests to it. Imports no torch."""

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from yolov9kit.errors import TrainingError
from yolov9kit.training.control import KILL, ask, pending
from yolov9kit.training.journal import (
    JOURNAL,
    News,
    Position,
    end_of_journal,
    kind_of,
    lines_backwards,
    read_new,
)
from yolov9kit.training.lock import Lock, read_lock
from yolov9kit.training.reports import Report

LOG = "log.txt"
JOB = "job.json"
BEGINNING = Position()

State = Literal["starting", "running", "paused", "stopping", "finished", "stopped", "failed", "lost"]
RUN_ENDED = ("finished", "stopped", "failed", "lost")


@dataclass(frozen=True)
class Run:
    """A run, alive or not, in its folder. Keeps nothing open and starts no thread: each answer is read anew.

    Requests raise ``TrainingError`` where the run has ended, or was not launched and takes none.
    """

    folder: Path

    @property
    def state(self) -> State:
        """How the run stands, from its processes and its journal.

        starting, running, paused, stopping; then finished, stopped, failed, or lost: ended without last words.
        """
        lock = read_lock(self.folder)
        if lock is not None and lock.is_held:
            return _state_alive(self.folder, lock)
        end = end_line(self.folder)
        if end is None:
            return "lost"
        reason = str(end.get("reason"))
        return (
            "failed"
            if reason.startswith("failed")
            else "stopped"
            if reason.startswith("stopped")
            else "finished"
        )

    @property
    def is_alive(self) -> bool:
        """Whether a process of the run is alive."""
        lock = read_lock(self.folder)
        return lock is not None and lock.is_held

    @property
    def pid(self) -> int | None:
        """The process that trains; None when it has ended."""
        lock = read_lock(self.folder)
        return lock.trainer.pid if lock is not None and lock.trainer.is_alive else None

    @property
    def last_words(self) -> str:
        """Why the run ended, and what to do where it did not say so itself; empty while it is alive."""
        lock = read_lock(self.folder)
        if lock is not None and lock.is_held:
            return ""
        end = end_line(self.folder)
        return str(end.get("reason")) if end is not None else _lost(self.folder, lock)

    def tail(self, since: Position = BEGINNING) -> News:
        """The reports after ``since``, and the position to go on from. Reads only what is new.

        Where ``anew`` is true the journal was cut back by a resumption, and these are all reports from the first.
        """
        return read_new(self.folder, since)

    def follow(self, since: Position = BEGINNING, poll_s: float = 0.1) -> Iterator[Report]:
        """Every report after ``since``, those to come too; ends when the run has ended. To leave is to stop iterating.

        Where a resumption cuts the journal back, what was cut off has been given already and the rest follows.
        """
        while True:
            ended = self.state in RUN_ENDED  # asked first: an end that is seen has all its reports there
            news = self.tail(since)
            since = news.position
            yield from news.reports
            if ended and not news.reports:
                return
            time.sleep(0 if news.reports else poll_s)

    def log_tail(self, lines: int = 50) -> str:
        """The last lines that the run's processes wrote to stdout and stderr."""
        return last_lines(self.folder / LOG, lines)

    def pause(self) -> None:
        """Hold after the current step. The GPU's memory stays taken."""
        self._ask("pause")

    def resume(self) -> None:
        """Go on after a pause."""
        self._ask("resume")

    def checkpoint_now(self) -> None:
        """Save everything that an exact resumption needs after the current step."""
        self._ask("checkpoint")

    def stop(self, timeout: float | None = None) -> State:
        """Finish the step, save, end the process; waits for that, at most ``timeout`` seconds. The state then."""
        self._ask("stop")
        return self.wait(timeout)

    def kill(self) -> None:
        """End the process at once. What it did since the last checkpoint is lost."""
        self._ask(KILL)
        pid = self.pid
        if pid is not None:
            os.kill(pid, signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> State:
        """Until the run has ended, or ``timeout`` seconds are over; the state then."""
        began = time.monotonic()
        while self.is_alive and (timeout is None or time.monotonic() - began < timeout):
            time.sleep(0.05)
        return self.state

    def _ask(self, action: str) -> None:
        lock = read_lock(self.folder)
        if lock is None or not lock.is_held:
            raise TrainingError(
                f"{self.folder}: the run has ended ({self.last_words}); there is nothing to {action}"
            )
        if not lock.obeys:
            raise TrainingError(
                f"{self.folder}: the run was not launched, it trains in process {lock.trainer.pid} and takes no "
                f"requests ({action}): stop it there"
            )
        ask(self.folder, action)


def attach(folder: str | Path) -> Run:
    """A run's handle, from any process, also for one that has ended.

    Raises:
        TrainingError: the folder holds no run.
    """
    folder = Path(folder).absolute()
    if not is_run(folder):
        raise TrainingError(f"{folder}: holds no run ({JOURNAL} is missing). Name the folder of a run.")
    return Run(folder)


def is_run(folder: Path) -> bool:
    return (folder / JOURNAL).is_file()


def has_ended(folder: Path, lock: Lock | None) -> bool:
    """Whether the run that holds the lock has said in the journal that it ended."""
    said = lock is None or end_of_journal(folder) != lock.since
    return said and end_line(folder) is not None


def end_line(folder: Path) -> dict[str, Any] | None:
    """The record of the run's end, if that is the journal's last line."""
    for line in lines_backwards(folder):
        return _record(line) if kind_of(line) == "end" else None
    return None


def last_lines(path: Path, count: int) -> str:
    """The last lines of a text file that may be large; empty where there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - 2**16, 0))
            text = file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.rstrip().split("\n")[-count:])


def _state_alive(folder: Path, lock: Lock) -> State:
    if lock.obeys and any(action == "stop" for _, action, _ in pending(folder)):
        return "stopping"
    if end_of_journal(folder) == lock.since:
        return "starting"
    for line in islice(lines_backwards(folder), 1000):
        kind = kind_of(line)
        if kind == "end":
            return "stopping"
        action = _record(line).get("action") if kind == "control" else None
        if action in ("stop", "pause"):
            return "stopping" if action == "stop" else "paused"
        if kind != "checkpoint" and action != "checkpoint":
            break
    return "running"


def _record(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _lost(folder: Path, lock: Lock | None) -> str:
    who = "its process is gone"
    if lock is not None and not lock.trainer.is_here:
        who = (
            f"it was begun on another machine or container, {lock.trainer.host}, and cannot be seen from here"
        )
    elif lock is not None:
        who = f"process {lock.trainer.pid} is gone: killed, or the machine went down"
    saved = (folder / "state.safetensors").is_file()
    what = (
        "everything up to the last checkpoint is kept, resume it"
        if saved
        else "nothing was saved, start it anew"
    )
    return f"ended without last words: {who}; {what}"
