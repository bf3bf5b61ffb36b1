"""Requests to a run that is alive in another process: empty files in its folder, named by number and action."""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from yolov9kit.errors import TrainingError, UsageError
from yolov9kit.training.reports import ControlReport, Report

CONTROL = "control"
ACTIONS = ("pause", "resume", "checkpoint", "stop")
KILL = "kill"
"""No request: it tells the supervisor why the trainer died."""
_NAME = re.compile(rf"(\d+)-({'|'.join((*ACTIONS, KILL))})")
_LOOK_EVERY = 0.1


class StopAsked(Exception):  # noqa: N818  # nothing went wrong
    """A run was asked to stop."""


def ask(folder: Path, action: str) -> None:
    """Leave a request. It is taken after those that are there already.

    Raises:
        UsageError: no such action.
        TrainingError: the folder cannot be written to.
    """
    if action not in (*ACTIONS, KILL):
        raise UsageError(f"{action!r} is no request to a run: there are {', '.join(ACTIONS)}")
    try:
        (folder / CONTROL).mkdir(exist_ok=True)
        number = max((number for number, _, _ in pending(folder)), default=0)
        while True:
            number += 1
            try:
                (folder / CONTROL / f"{number:06d}-{action}").touch(exist_ok=False)
                return
            except FileExistsError:  # somebody else asked at the same moment
                pass
    except OSError as error:
        raise TrainingError(f"{folder}: the request cannot be written ({error.strerror})") from None


def pending(folder: Path) -> list[tuple[int, str, Path]]:
    """Number, action and file of each request that waits, in order."""
    try:
        names = os.listdir(folder / CONTROL)
    except FileNotFoundError:
        return []
    matches = (match for match in map(_NAME.fullmatch, names) if match)
    return sorted((int(match[1]), match[2], folder / CONTROL / match[0]) for match in matches)


def forget_requests(folder: Path) -> None:
    """Take away what was asked of a run that has ended since."""
    for _, _, path in pending(folder):
        path.unlink(missing_ok=True)


class Requests:
    """The run's side: takes requests in order, looking for them ten times a second at most.

    ``held``: seconds that the run was paused.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.held = 0.0
        self._next_look = 0.0

    def obey(self, step: int, checkpoint: Callable[[], Report]) -> Iterator[Report]:
        """Do what is asked for after ``step`` steps, and answer. While paused, this does not end.

        Raises:
            StopAsked: to be answered by whoever ends the run.
        """
        paused = False
        while True:
            while (action := self._take()) is not None:
                if action == "stop":
                    raise StopAsked
                yield ControlReport(action, step)
                if action == "checkpoint":
                    yield checkpoint()
                else:
                    paused = action == "pause"
            if not paused:
                return
            began = time.monotonic()
            time.sleep(_LOOK_EVERY)
            self.held += time.monotonic() - began

    def stop_if_asked(self) -> None:
        """For long work between two reports.

        Raises:
            StopAsked: a stop was asked for, whatever else waits before it.
        """
        if self._is_time() and any(action == "stop" for _, action, _ in pending(self.folder)):
            raise StopAsked

    def _take(self) -> str | None:
        if not self._is_time():
            return None
        for _, action, path in pending(self.folder):
            if action in ACTIONS:
                path.unlink(missing_ok=True)
                self._next_look = 0.0  # there may be more
                return action
        return None

    def _is_time(self) -> bool:
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + _LOOK_EVERY
        return True
