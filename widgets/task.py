"""One long piece of work at a time beside the kernel: with progress, a way to stop it, and words at the end."""

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

import ipywidgets as w

import yolov9kit
from widgets.job import Job
from widgets.parts import Status, answers_at_once

UPDATE_S = 0.25
"""Pause between updates of the page: four a second."""

Progress = Callable[[str, int, int], None]


class Task(w.Box):
    """Stop button and progress bar of a panel that does several things, one at a time.

    Args:
        status: where it says what is done now, and what went wrong.
        starts: buttons that start something; they rest while something is done.
    """

    def __init__(self, status: Status, starts: Sequence[w.Button]) -> None:
        self._status, self._starts = status, starts
        self.job: Job | None = None
        self._stopping = False
        self._last = 0.0
        self.stop_button = w.Button(
            description="Stop", disabled=True, tooltip="Stop after the current picture"
        )
        self.stop_button.on_click(lambda _: self.stop())
        self.progress = w.IntProgress(layout=w.Layout(width="auto", flex="1 1 200px"))
        super().__init__([self.stop_button, self.progress])
        self.add_class("yk-row").add_class("yk-task")
        answers_at_once(self.stop_button, *starts)

    @property
    def running(self) -> bool:
        return self.job is not None and self.job.running

    def run(self, words: str, work: Callable[[Progress], Any], show: Callable[[Any], str]) -> None:
        """Do ``work(on_progress)`` in a thread, ``show`` what it gave and say the words that ``show`` returns."""
        if self.running:
            return
        self._stopping, self._last = False, time.monotonic()
        self.progress.value, self.progress.max, self.progress.bar_style = 0, 100, ""
        for button in self._starts:
            button.disabled = True
        self.stop_button.disabled = False
        self._status.say(words)
        said: list[str] = []
        self.job = Job(
            self._steps(work), lambda result: said.append(show(result)), lambda e: self._end(e, said)
        )

    def stop(self) -> None:
        """End what is done now; what was there before stays."""
        if self.running:
            self._stopping = True
            self._status.say("Stopping after the current picture…")

    def _steps(self, work: Callable[[Progress], Any]) -> Generator[Any, None, None]:
        try:
            yield work(self._stage)
        except _StoppedError:
            return

    def _stage(self, what: str, done: int, total: int) -> None:
        if self._stopping:
            raise _StoppedError
        if time.monotonic() - self._last >= UPDATE_S:
            self._last = time.monotonic()
            self.progress.max, self.progress.value = max(total, 1), done
            self._status.say(f"{what}: {done:,} of {total:,}…")

    def _end(self, error: BaseException | None, said: Sequence[str]) -> None:
        for button in self._starts:
            button.disabled = False
        self.stop_button.disabled = True
        self.progress.bar_style = "danger" if error is not None else "success" if said else "warning"
        if error is not None:
            known = isinstance(error, yolov9kit.KitError)
            self._status.complain(error if known else f"{type(error).__name__}: {error}")
            return
        self.progress.value = self.progress.max
        self._status.say(said[0] if said else "Stopped. What was shown before is still there.")


class _StoppedError(Exception):
    """Raised where the work says what it does next."""
