"""A run on the terminal, from made-up reports: what is shown, where, and what a stop leaves."""

import io
import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.cli.follow import duration, follow, how_it_stopped
from yolov9kit.errors import TrainingError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.journal import Journal
from yolov9kit.training.reports import (
    CheckpointReport,
    EndReport,
    EpochReport,
    EvaluationReport,
    LossValues,
    Problem,
    Report,
    ResumedReport,
    StartReport,
    StepReport,
)

LOSS = LossValues(4.21, 1.2, 2.11, 0.9)


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def start(folder: str = "runs/train/exp", **settings: Any) -> StartReport:
    return StartReport(
        folder=folder,
        config=TrainConfig(data="d", epochs=3, **settings).model_dump(mode="json"),
        size="t",
        names=("nut", "wing\x1bnut"),
        parameters=3_720_000,
        device="cpu (CPU), as asked",
        precision="fp32, chosen: why",
        optimizer="adamw at 0.001, chosen: short",
        mode="eager, why",
        workers="2, measured",
        cache="ram, chosen",
        train_data="8 pictures",
        val_data="4 pictures",
        batch=4,
        accumulate=2,
        steps_per_epoch=2,
        total_steps=6,
        notes=("one thing", "another"),
    )


def step(number: int, problem: Problem | None = None) -> StepReport:
    return StepReport(
        epoch=(number + 1) // 2,
        step=number,
        step_in_epoch=2 - number % 2,
        loss=None if problem else LOSS,
        learning_rate=0.0098,
        grad_norm=None if problem else 1.0,
        pictures_per_s=182.4,
        waiting=0.03,
        memory_mib=3021.0,
        problem=problem,
    )


def epoch(number: int, skipped: int = 0) -> EpochReport:
    return EpochReport(number, 2, skipped, LOSS, 0.0098, True, 61.0, 18.24, 0.03)


def evaluation(number: int, ap: float | None = 0.3124, best: bool = True) -> EvaluationReport:
    return EvaluationReport(
        number,
        LossValues(4.4, 1.0, 2.0, 1.0),
        ap,
        None if ap is None else 0.544,
        0.3,
        (),
        4,
        9,
        "how",
        best,
        1.0,
    )


def whole_run() -> Iterator[Report]:
    yield start()
    for number in (1, 2, 3):
        yield step(2 * number - 1)
        yield step(2 * number)
        yield epoch(number)
        yield evaluation(number, best=number < 3)
        yield CheckpointReport(number, 2 * number, "runs/train/exp/state.safetensors")
    yield EndReport("finished", 3, 2, 0.3124, "runs/train/exp/weights/best.safetensors", 3723.0)


def shown(
    reports: Callable[[], Iterator[Report]], terminal: bool = False, **options: Any
) -> tuple[int, str, str]:
    """Exit code, standard output, standard error. Each look at the clock takes a second."""
    out, err = io.StringIO(), Screen() if terminal else io.StringIO()
    ticks = count()
    code = follow(lambda _: reports(), out=out, err=err, clock=lambda: float(next(ticks)), **options)
    return code, out.getvalue(), err.getvalue()


def test_without_a_terminal_there_is_a_line_an_epoch() -> None:
    code, out, err = shown(whole_run)
    assert code == 0
    assert out.splitlines() == [
        "epoch 1  train 4.21  val 4.40  AP 0.312  AP50 0.544  best",
        "epoch 2  train 4.21  val 4.40  AP 0.312  AP50 0.544  best",
        "epoch 3  train 4.21  val 4.40  AP 0.312  AP50 0.544",
        "finished after 3 epochs in 1:02:03; best AP 0.312 in epoch 2",
        "weights: runs/train/exp/weights/best.safetensors",
        "run: runs/train/exp",
    ]
    lines = err.splitlines()
    line = "loss 4.21 (box 1.20 cls 2.11 dfl 0.90)  lr 0.0098  18.2 img/s  3% waiting  1:01"
    assert lines[-3:] == [f"epoch {number}/3  {line}" for number in (1, 2, 3)]
    assert "\r" not in err and "\x1b" not in err


def test_the_start_tells_each_choice_with_its_reason() -> None:
    rows = dict(line.split(maxsplit=1) for line in shown(lambda: iter_of(start()))[2].splitlines())
    assert rows["run"] == "runs/train/exp"
    assert rows["model"] == "YOLOv9-t, 3,720,000 parameters, from scratch"
    assert rows["classes"] == r"2: nut, wing\x1bnut"  # a class name does not reach the terminal's controls
    assert rows["device"] == "cpu (CPU), as asked" and rows["precision"] == "fp32, chosen: why"
    assert rows["optimizer"] == "adamw at 0.001, chosen: short" and rows["workers"] == "2, measured"
    assert (rows["train"], rows["val"]) == ("8 pictures", "4 pictures")
    assert rows["batches"] == "4 pictures, 2 batches (8 pictures) a step"
    assert rows["length"] == "3 epochs of 2 steps, 6 in all"
    err = shown(lambda: iter_of(start(weights="w.pt")))[2]
    assert err.count("note ") == 2 and "from w.pt" in err


def iter_of(*reports: Report) -> Iterator[Report]:
    yield from reports


def test_on_a_terminal_progress_is_one_line_written_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = shown(whole_run, terminal=True)
    assert code == 0 and len(out.splitlines()) == 6
    written = [part for part in err.split("\r\x1b[K") if part.startswith("epoch")]
    loss = "loss 4.21 (box 1.20 cls 2.11 dfl 0.90)  lr 0.0098  182 img/s  3,021 MiB"
    assert written[0] == f"epoch 1/3  step 1/2  {loss}"
    assert written[1].startswith(f"epoch 1/3  step 2/2  {loss}  0:") and written[1].endswith(" left")
    assert written[-1] == f"epoch 3/3  step 2/2  {loss}  0:00 left"
    assert len(written) == 6 and not any("\n" in part for part in written)
    assert err.endswith("\r\x1b[K")  # nothing of it is left


def test_the_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    def line(columns: str) -> str:
        monkeypatch.setenv("COLUMNS", columns)
        return shown(lambda: iter_of(start(), step(1), step(2)), terminal=True)[2].split("\r\x1b[K")[-2]

    assert "(box 1.20" in line("200")
    assert "loss 4.21  lr" in line("80") and line("80").endswith(" left")
    assert len(line("40")) == 39


def test_the_line_is_not_written_more_often_than_it_can_be_read() -> None:
    err = Screen()
    steps = (StepReport(1, n, n, LOSS, 0.1, 1.0, 9.0, 0.0, 1.0) for n in range(1, 101))
    ticks = count()
    follow(lambda _: steps, err=err, out=io.StringIO(), folder=None, clock=lambda: next(ticks) / 1000)
    assert 1 < err.getvalue().count("epoch 1") < 10


def test_time_left_goes_by_the_steps_done_here(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(start(str(tmp_path)))
    journal.append(epoch(1))
    journal.close()

    def resumed() -> Iterator[Report]:
        yield ResumedReport(3, 2, ("on another device",))
        yield evaluation(1)
        yield step(4)
        yield step(5)

    code, out, err = shown(resumed, terminal=True, folder=tmp_path)
    assert code == 0 and "epoch 1  train 4.21  val 4.40" in out  # trained before the stop, scored after it
    assert "goes on after step 3; 2 reports after it are set aside" in err and "on another device" in err
    line = err.split("\r\x1b[K")[-2]
    assert line.startswith("epoch 3/3  step 1/2")  # known from the journal
    seconds = int(line.split()[-2].partition(":")[2])
    assert 1 <= seconds <= 3  # one step is left, and a step took a look or two at the clock


def test_the_data_check_is_seen_on_the_line() -> None:
    err = Screen()

    def begin(preparing: Callable[[str, int, int], None]) -> Iterator[Report]:
        preparing("checking training pictures", 120, 1000)
        yield start()

    follow(begin, err=err, out=io.StringIO())
    assert "\r\x1b[Kchecking training pictures 120/1,000\r\x1b[K" in err.getvalue()


def test_steps_that_were_not_applied_are_told_as_they_come() -> None:
    bad = Problem("head.box.0", "nan", ("a.png", "b.png"))
    reports = [start(), step(1, bad), epoch(1, skipped=1)]
    for quiet in (False, True):
        _, _, err = shown(lambda: iter_of(*reports), quiet=quiet)
        assert "yolov9kit: step 1 was not applied: head.box.0: nan (pictures: a.png, b.png)" in (
            err.splitlines()
        )
    assert err.count("\n") == 1
    assert "1 steps not applied" in shown(lambda: iter_of(*reports))[2]
    line = shown(lambda: iter_of(*reports), terminal=True)[2]
    assert "loss not finite" in line


def test_quiet_leaves_the_summary() -> None:
    code, out, err = shown(whole_run, terminal=True, quiet=True)
    assert (code, err) == (0, "") and len(out.splitlines()) == 3 and out.startswith("finished after 3")


def test_what_was_not_scored_is_none() -> None:
    out = shown(lambda: iter_of(start(), evaluation(1, ap=None, best=False)))[1]
    assert out == "epoch 1  train none  val 4.40  AP none  AP50 none\n"
    out = shown(lambda: iter_of(start(), EndReport("stopped", 0, None, None, "w", 0.4)))[1]
    assert out.startswith("stopped after 0 epochs in 0:00; no evaluation\n")


# ---------------------------------------------------------------------------------------------- stops


class StoppedRun:
    """Writes its journal as a run does, and is stopped by a signal while a step is shown."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder, self.number, self.closed = folder, number, False

    def reports(self) -> Iterator[Report]:
        journal = Journal(self.folder)
        try:
            for report in (start(str(self.folder)), CheckpointReport(0, 0, "s"), step(1), step(2)):
                journal.append(report)
                yield report
                if isinstance(report, StepReport):
                    signal.raise_signal(self.number)
        except (GeneratorExit, KeyboardInterrupt):
            self.closed = True
            journal.append(CheckpointReport(1, 1, "s"))
            journal.append(EndReport("stopped", 0, None, None, "w", 1.0))
            raise
        finally:
            journal.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_saves_and_says_how_to_go_on(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "my run"
    folder.mkdir()
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    run = StoppedRun(folder, number)
    code, _, err = shown(run.reports)
    assert code == 130 and run.closed
    assert err.splitlines()[-1] == (
        f"stopped after step 1; go on with: yolov9kit train --resume '{folder}'"  # quoted for the shell
    )
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


def test_a_stop_while_a_line_is_written_saves_too(tmp_path: Path) -> None:
    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            if "epoch 1" in text:
                raise KeyboardInterrupt
            return super().write(text)

        def isatty(self) -> bool:
            return True

    run, err = StoppedRun(tmp_path, signal.SIGINT), Interrupted()
    reports = run.reports()
    assert follow(lambda _: reports, out=io.StringIO(), err=err) == 130
    assert run.closed and "stopped after step 1" in err.getvalue()


def test_sigterm_where_ctrl_c_is_ignored_and_a_second_one(tmp_path: Path) -> None:
    """As in a background job of a shell. The second signal does not disturb the saving."""
    saved = []

    def reports() -> Iterator[Report]:
        journal = Journal(tmp_path)
        journal.append(CheckpointReport(0, 0, "s"))
        journal.close()
        yield start(str(tmp_path))
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGTERM)
            saved.append(True)
            raise

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert shown(reports)[0] == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert saved == [True]


def test_a_stop_before_there_is_a_run_is_passed_on() -> None:
    def reports() -> Iterator[Report]:
        raise KeyboardInterrupt
        yield start()

    with pytest.raises(KeyboardInterrupt):
        shown(reports)


def test_an_error_leaves_no_half_line_behind() -> None:
    err = Screen()

    def reports() -> Iterator[Report]:
        yield start()
        yield step(1)
        raise TrainingError("too bad")

    with pytest.raises(TrainingError, match="too bad"):
        follow(lambda _: reports(), out=io.StringIO(), err=err)
    assert err.getvalue().endswith("\r\x1b[K")


def test_how_a_run_stopped_is_read_from_its_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for report in (
        CheckpointReport(0, 4, "s"),
        step(5),
        EndReport("stopped; not saved: full", 0, None, None, "w", 1.0),
    ):
        journal.append(report)
    journal.close()
    assert how_it_stopped(tmp_path) == (4, "stopped; not saved: full")
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"kind": "st')
    assert how_it_stopped(tmp_path)[0] == 4


@given(st.integers(0, 10**6).map(float))
def test_durations_read_back(seconds: int) -> None:
    value = 0
    for part in duration(seconds).split(":"):
        value = value * 60 + int(part)
    assert value == seconds
