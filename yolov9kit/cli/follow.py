"""A training run on a terminal: its reports as lines, and what stops it."""

import json
import shlex
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from yolov9kit.training.journal import kind_of, lines_backwards
from yolov9kit.training.reports import (
    CheckpointReport,
    EndReport,
    EpochReport,
    EvaluationReport,
    LossValues,
    Report,
    ResumedReport,
    StartReport,
    StepReport,
    from_record,
)


@runtime_checkable
class Stream(Protocol):
    """What is written to: standard output, or a file in memory."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...
    def isatty(self) -> bool: ...


Begin = Callable[[Callable[[str, int, int], None]], Iterator[Report]]
"""Begins a run. Takes what is to be called with (what, done, of how many) before the first step."""


def follow(
    begin: Begin,
    *,
    quiet: bool = False,
    folder: Path | None = None,
    out: Stream | None = None,
    err: Stream | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Show a run until it ends; returns the exit code, 130 for one that was stopped.

    Evaluations and the summary go to ``out``, everything else to ``err``. ``quiet`` leaves the bad steps and the
    summary. ``folder``: that of a run that goes on. SIGTERM stops a run as Ctrl-C does.

    Raises:
        KitError: whatever the run raises.
        KeyboardInterrupt: stopped before there was a run.
    """
    display = Display(quiet, folder, out or sys.stdout, err or sys.stderr, clock)
    try:
        with terminating_is_interrupting(), closing(as_generator(begin(display.preparing))) as reports:
            for report in reports:
                display.show(report)
    except KeyboardInterrupt:
        if not display.began:
            raise
        display.stopped()
        return 130
    finally:
        display.clear()
    return 0


def as_generator(reports: Iterator[Report]) -> Generator[Report, None, None]:
    """A run is a generator: closing it is what makes the library save the state."""
    return cast(Generator[Report, None, None], reports)


@contextmanager
def terminating_is_interrupting() -> Iterator[None]:
    """The first SIGTERM does what Ctrl-C would do at that moment: the library holds that back within a step."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def terminate(number: int, frame: Any) -> None:
        if came:  # the state is being saved
            return
        came.append(number)
        interrupt = signal.getsignal(signal.SIGINT)
        if callable(interrupt):
            interrupt(signal.SIGINT, frame)
        else:  # a shell's background job, where Ctrl-C is ignored
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Display:
    """Turns reports into lines. On a terminal, progress is one line that is written over."""

    def __init__(
        self, quiet: bool, folder: Path | None, out: Stream, err: Stream, clock: Callable[[], float]
    ) -> None:
        self.began = False
        self._quiet, self._folder, self._out, self._err, self._clock = quiet, folder, out, err, clock
        self._terminal = not quiet and err.isatty()
        self._start: StartReport | None = None
        self._first: tuple[float, int] | None = None  # when the first step was done here, and its number
        self._trained: EpochReport | None = None
        self._shown = -1.0

    # ------------------------------------------------------------------------------------------ the line

    def preparing(self, what: str, done: int, total: int) -> None:
        self._progress(f"{what} {done:,}/{total:,}", now=done == total)

    def clear(self) -> None:
        if self._terminal:
            self._err.write("\r\x1b[K")
            self._err.flush()

    def _progress(self, text: str, now: bool) -> None:
        """Write the line over, ten times a second at most; ``now`` in any case."""
        clock = self._clock()
        if not self._terminal or (clock - self._shown < 0.1 and self._shown >= 0 and not now):
            return
        self._shown = clock
        self._err.write(f"\r\x1b[K{text[: line_width()]}")
        self._err.flush()

    def _print(self, text: str, stream: Stream) -> None:
        from yolov9kit.types import printable

        self.clear()
        print("\n".join(map(printable, text.splitlines())), file=stream, flush=True)

    # ------------------------------------------------------------------------------------------ the reports

    def show(self, report: Report) -> None:
        if not self.began:
            self.began = True
            if self._folder is not None and not isinstance(report, StartReport):
                self._start, self._trained = told_before(self._folder)
        match report:
            case StartReport():
                self._start, self._folder = report, Path(report.folder)
                self._tell(start_block(report))
            case ResumedReport():
                lost = f"; {report.lost_lines} reports after it are set aside" if report.lost_lines else ""
                notes = "".join(f"\nnote        {note}" for note in report.notes)
                self._tell(f"goes on after step {report.step}{lost}{notes}")
            case StepReport():
                self._step(report)
            case EpochReport():
                self._trained = report
                if not self._terminal:
                    self._tell(epoch_line(report, self._epochs()))
            case EvaluationReport():
                if not self._quiet:
                    same = self._trained and self._trained.epoch == report.epoch
                    self._print(evaluation_line(report, self._trained if same else None), self._out)
            case CheckpointReport():
                pass
            case EndReport():
                self._print(f"{summary(report)}\nrun: {self._folder}", self._out)

    def _tell(self, text: str) -> None:
        if not self._quiet:
            self._print(text, self._err)

    def _epochs(self) -> int | None:
        return None if self._start is None else int(self._start.config["epochs"])

    def _step(self, report: StepReport) -> None:
        now = self._clock()
        first_at, first = self._first = self._first or (now, report.step)
        left = None
        if self._start is not None and report.step > first:
            left = (now - first_at) / (report.step - first) * (self._start.total_steps - report.step)
        if report.problem is not None:
            self._print(f"yolov9kit: step {report.step} was not applied: {report.problem}", self._err)
        steps = self._start.steps_per_epoch if self._start else None
        text = step_line(report, self._epochs(), steps, left)
        if len(text) > line_width():
            text = step_line(report, self._epochs(), steps, left, short=True)
        self._progress(text, now=report.step_in_epoch == steps)

    def stopped(self) -> None:
        """Tell where a stopped run can go on, as its journal has it."""
        assert self._folder is not None
        step, reason = how_it_stopped(self._folder)
        where = f"{reason} after step" if reason == "stopped" else f"{reason}; the last checkpoint is of step"
        go_on = f"yolov9kit train --resume {shlex.quote(str(self._folder))}"
        self._print(f"{where} {step}; go on with: {go_on}", self._err)


# ---------------------------------------------------------------------------------------------- lines


def start_block(report: StartReport) -> str:
    """What a run is about to do, a line for each matter."""
    names = ", ".join(report.names[:10]) + (", …" if len(report.names) > 10 else "")
    weights = report.config.get("weights")
    batches = f"{report.batch} pictures"
    if report.accumulate > 1:
        batches += f", {report.accumulate} batches ({report.batch * report.accumulate} pictures) a step"
    rows = [
        ("run", report.folder),
        (
            "model",
            f"YOLOv9-{report.size}, {report.parameters:,} parameters, from {weights or 'scratch'}",
        ),
        ("classes", f"{len(report.names)}: {names}"),
        ("device", report.device),
        ("precision", report.precision),
        ("optimizer", report.optimizer),
        # journals of older versions have neither
        *([("average", report.average)] if report.average else []),
        *([("pictures", report.augmentation)] if report.augmentation else []),
        ("steps", report.mode),
        ("train", report.train_data),
        ("val", report.val_data),
        ("batches", batches),
        (
            "length",
            f"{report.config['epochs']} epochs of {report.steps_per_epoch} steps, {report.total_steps:,} in all",
        ),
        ("workers", report.workers),
        ("cache", report.cache),
        *(("note", note) for note in report.notes),
    ]
    return "\n".join(f"{name:<11} {' '.join(text.split())}" for name, text in rows)


def line_width() -> int:
    """Columns of the terminal less one: a line that wraps could not be written over."""
    return shutil.get_terminal_size().columns - 1


def step_line(
    report: StepReport, epochs: int | None, steps: int | None, left: float | None, short: bool = False
) -> str:
    """Where the run is. ``short`` leaves out the parts of the loss, for a terminal of 80 columns."""
    parts = [
        f"epoch {of(report.epoch, epochs)}",
        f"step {of(report.step_in_epoch, steps)}",
        loss_text(report.loss).partition(" (")[0] if short else loss_text(report.loss),
        f"lr {report.learning_rate:.3g}",
        speed(report.pictures_per_s),
        f"{report.memory_mib:,.0f} MiB",
        *([f"{duration(left)} left"] if left is not None else []),
    ]
    return "  ".join(parts)


def epoch_line(report: EpochReport, epochs: int | None) -> str:
    parts = [
        f"epoch {of(report.epoch, epochs)}",
        loss_text(report.loss),
        f"lr {report.learning_rate:.3g}",
        speed(report.pictures_per_s),
        f"{report.waiting:.0%} waiting",
        duration(report.seconds),
        *([f"{report.skipped} steps not applied"] if report.skipped else []),
    ]
    return "  ".join(parts)


def evaluation_line(report: EvaluationReport, trained: EpochReport | None) -> str:
    train = "none" if trained is None or trained.loss is None else f"{trained.loss.total:.2f}"
    parts = [
        f"epoch {report.epoch}",
        f"train {train}",
        f"val {report.loss.total:.2f}",
        f"AP {score(report.ap)}",
        f"AP50 {score(report.ap50)}",
        *(["best"] if report.best else []),
    ]
    return "  ".join(parts)


def summary(report: EndReport) -> str:
    best = (
        "no evaluation"
        if report.best_epoch is None
        else f"best AP {score(report.best_ap)} in epoch {report.best_epoch}"
    )
    return (
        f"{report.reason} after {report.epochs} epochs in {duration(report.seconds)}; {best}\n"
        f"weights: {report.weights}"
    )


def loss_text(loss: LossValues | None) -> str:
    if loss is None:
        return "loss not finite"
    return f"loss {loss.total:.2f} (box {loss.box:.2f} cls {loss.cls:.2f} dfl {loss.dfl:.2f})"


def of(number: int, total: int | None) -> str:
    return str(number) if total is None else f"{number}/{total}"


def score(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def speed(pictures_per_s: float) -> str:
    return f"{pictures_per_s:,.0f} img/s" if pictures_per_s >= 100 else f"{pictures_per_s:.3g} img/s"


def duration(seconds: float) -> str:
    """``0:07``, ``12:34``, ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# ---------------------------------------------------------------------------------------------- the journal


def told_before(folder: Path) -> tuple[StartReport | None, EpochReport | None]:
    """The newest of each in the journal of a run that goes on; an extended run has two starts."""
    newest: dict[str, Report] = {}
    for line in lines_backwards(folder):
        kind = kind_of(line)
        if kind in ("start", "epoch") and kind not in newest:
            newest[kind] = from_record(json.loads(line))
        if len(newest) == 2:
            break
    return cast(StartReport | None, newest.get("start")), cast(EpochReport | None, newest.get("epoch"))


def how_it_stopped(folder: Path) -> tuple[int, str]:
    """The step of the last checkpoint, and the reason that stands at the journal's end."""
    reason = ""
    for line in lines_backwards(folder):
        try:
            record = json.loads(line)
        except ValueError:  # cut off by a full disk
            continue
        if record["kind"] == "checkpoint":
            return int(record["step"]), reason or "stopped"
        if record["kind"] == "end" and not reason:
            reason = str(record["reason"])
    return 0, reason or "stopped"
