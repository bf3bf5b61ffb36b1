"""Requests come in order, each once, and are heard between any two reports; the lock is one run's at a time."""

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from yolov9kit.data.synthetic import draw_shapes
from yolov9kit.errors import TrainingError, UsageError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.control import Requests, StopAsked, ask, forget_requests, pending
from yolov9kit.training.journal import Journal, Position, lines_backwards, read_journal, read_new
from yolov9kit.training.lock import LOCK, claim_folder, locked, process, read_lock
from yolov9kit.training.loop import Loop
from yolov9kit.training.prepare import prepare
from yolov9kit.training.reports import (
    CheckpointReport,
    ControlReport,
    EndReport,
    EpochReport,
    EvaluationReport,
    Report,
    StepReport,
)
from yolov9kit.training.state import read_state
from yolov9kit.training.trainer import resume


@pytest.fixture
def loop(tmp_path: Path) -> Loop:
    for split, seeds in (("train", range(4)), ("val", range(100, 102))):
        (tmp_path / "images" / split).mkdir(parents=True)
        (tmp_path / "labels" / split).mkdir(parents=True)
        for seed in seeds:
            drawing = draw_shapes(seed, (64, 64))
            Image.fromarray(drawing.pixels).save(tmp_path / f"images/{split}/{seed}.png")
            x1, y1, x2, y2 = drawing.boxes[0] / np.float32(64)
            row = f"{drawing.labels[0]} {(x1 + x2) / 2:.6f} {(y1 + y2) / 2:.6f} {x2 - x1:.6f} {y2 - y1:.6f}\n"
            (tmp_path / f"labels/{split}/{seed}.txt").write_text(row)
    (tmp_path / "data.yaml").write_text(
        "train: images/train\nval: images/val\nnames: [rectangle, disc, triangle]\n"
    )
    config = TrainConfig(
        data=tmp_path, size="t", epochs=2, batch=2, image_size=32, workers=0, device="cpu", project=tmp_path
    )
    folder = claim_folder(tmp_path, "exp")
    return Loop(folder, prepare(config), requests=Requests(folder))


def run(loop: Loop, act: Callable[[Report], None]) -> list[Any]:
    """All reports; ``act`` is called with each. The loop looks for requests after every report."""
    assert loop.requests is not None
    seen = []
    for report in loop.reports([loop.start()]):
        seen.append(report)
        act(report)
        loop.requests._next_look = 0.0
    return seen


def test_paused_time_is_no_training_time(loop: Loop) -> None:
    def act(report: Report) -> None:
        if isinstance(report, StepReport) and report.step == 1:
            ask(loop.folder, "pause")
        if isinstance(report, ControlReport) and report.action == "pause":
            threading.Timer(1.0, ask, (loop.folder, "resume")).start()

    seen = run(loop, act)
    took = time.monotonic() - loop._began
    assert loop.requests is not None
    assert loop.requests.held > 0
    assert seen[-1].seconds <= took - loop.requests.held
    first = next(report for report in seen if isinstance(report, EpochReport))
    assert first.seconds <= took - loop.requests.held
    assert [(r.action, r.step) for r in seen if isinstance(r, ControlReport)] == [("pause", 1), ("resume", 1)]


def test_requests_wait_in_order_and_a_paused_run_saves_and_stops(loop: Loop) -> None:
    def act(report: Report) -> None:
        if isinstance(report, StepReport) and report.step == 3:
            for action in ("pause", "checkpoint", "stop", "resume"):
                ask(loop.folder, action)

    seen = run(loop, act)
    journal = read_journal(loop.folder)
    assert journal[: len(seen)] == seen
    kinds = [type(report) for report in journal[-6:]]
    assert (
        kinds
        == [
            *(StepReport, ControlReport, ControlReport, CheckpointReport, ControlReport, CheckpointReport),
            EndReport,
        ][-6:]
    )
    assert journal[-1].reason == "stopped"  # type: ignore[union-attr]
    assert read_state(loop.folder).progress.step == 3


def test_a_stop_in_the_middle_of_an_evaluation(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for the end of it; after a resumption the evaluation is done again."""
    from yolov9kit.training import loop as module

    kept = module.scored

    def asked_meanwhile(*arguments: Any) -> Any:
        ask(loop.folder, "stop")
        assert loop.requests is not None
        loop.requests._next_look = 0.0
        return kept(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, "scored", asked_meanwhile)
        seen = run(loop, lambda report: None)
    assert isinstance(seen[-1], EpochReport)
    journal = read_journal(loop.folder)
    assert [type(report) for report in journal[-3:]] == [ControlReport, CheckpointReport, EndReport]
    rest = list(resume(loop.folder))
    assert [r.epoch for r in rest if isinstance(r, EvaluationReport)] == [1, 2]
    assert [r.epoch for r in rest if isinstance(r, EpochReport)] == [2]


def test_after_its_last_checkpoint_a_run_has_finished(loop: Loop) -> None:
    def act(report: Report) -> None:
        if isinstance(report, EvaluationReport) and report.epoch == 2:
            ask(loop.folder, "pause")
            ask(loop.folder, "resume")
        if isinstance(report, CheckpointReport) and report.epoch == 2:
            ask(loop.folder, "stop")

    assert run(loop, act)[-1].reason == "finished"


# ---------------------------------------------------------------------------------------------- requests


def test_each_request_is_taken_once(tmp_path: Path) -> None:
    for action in ("pause", "resume", "pause", "resume"):
        ask(tmp_path, action)
    (tmp_path / "control/notes.txt").write_text("not a request")
    assert [action for _, action, _ in pending(tmp_path)] == ["pause", "resume", "pause", "resume"]
    requests = Requests(tmp_path)
    answers = list(requests.obey(7, lambda: CheckpointReport(0, 7, "s")))
    assert answers == [ControlReport(a, 7) for a in ("pause", "resume", "pause", "resume")]
    assert pending(tmp_path) == []
    ask(tmp_path, "stop")
    requests._next_look = 0.0
    with pytest.raises(StopAsked):
        requests.stop_if_asked()
    forget_requests(tmp_path)
    assert pending(tmp_path) == []


def test_many_may_ask_at_once(tmp_path: Path) -> None:
    threads = [threading.Thread(target=lambda: ask(tmp_path, "pause")) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [number for number, _, _ in pending(tmp_path)] == list(range(1, 21))


def test_a_wrong_request_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'dance'.*pause, resume, checkpoint, stop"):
        ask(tmp_path, "dance")
    with pytest.raises(TrainingError, match="cannot be written"):
        ask(tmp_path / "nowhere", "pause")


# ---------------------------------------------------------------------------------------------- the lock


def test_a_lock_is_held_once_and_given_back(tmp_path: Path) -> None:
    with locked(tmp_path):
        lock = read_lock(tmp_path)
        assert lock is not None and lock.is_held
        with pytest.raises(TrainingError, match=rf"process {os.getpid()}"), locked(tmp_path):
            pass
        assert read_lock(tmp_path) == lock
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("part", ["pid", "born"])
def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path, part: str) -> None:
    """Also where another process has its number by now."""
    me = process(os.getpid())
    text = {"pid": me.pid, "born": me.born, "host": me.host} | {
        part: 2**22 + 1 if part == "pid" else "before"
    }
    record = {"processes": [text], "since": {"offset": 0, "check": 0}, "obeys": True}
    (tmp_path / LOCK).write_text(str(record).replace("'", '"').replace("True", "true"))
    lock = read_lock(tmp_path)
    assert lock is not None and not lock.is_held
    with locked(tmp_path):
        assert read_lock(tmp_path).is_held  # type: ignore[union-attr]


def test_what_is_on_another_machine_cannot_be_known(tmp_path: Path) -> None:
    with locked(tmp_path):
        text = (tmp_path / LOCK).read_text()
    (tmp_path / LOCK).write_text(text.replace(process(os.getpid()).host, "elsewhere"))
    with pytest.raises(TrainingError, match=r"elsewhere.*delete .*lock"), locked(tmp_path):
        pass


def test_a_zombie_is_dead() -> None:
    child = multiprocessing.get_context("spawn").Process(target=int)
    child.start()
    assert child.pid is not None
    its = process(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has buried it
    assert not its.is_alive
    child.join()


def test_a_damaged_lock_is_said(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("{oops")
    with pytest.raises(TrainingError, match=r"is no lock.*delete it"):
        read_lock(tmp_path)
    (tmp_path / LOCK).write_text("")
    assert read_lock(tmp_path) is None


# ---------------------------------------------------------------------------------------------- the journal


def test_half_a_line_of_a_dead_writer_is_taken_away(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(ControlReport("pause", 1))
    journal.close()
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes() + b'{"kind": "st' + b"x" * 2**19)
    seen = read_new(tmp_path, Position())
    journal = Journal(tmp_path)
    journal.append(ControlReport("resume", 1))
    journal.close()
    assert read_journal(tmp_path) == [ControlReport("pause", 1), ControlReport("resume", 1)]
    news = read_new(tmp_path, seen.position)
    assert (news.reports, news.anew) == ((ControlReport("resume", 1),), False)


def test_a_disk_that_takes_half_a_line_leaves_no_half_line(tmp_path: Path) -> None:
    class FullDisk:
        """Takes ten bytes, then none, as a file does whose disk is full."""

        def __init__(self, file: Any) -> None:
            self.file, self.room = file, 10

        def write(self, data: bytes) -> int:
            if not self.room:
                raise OSError(28, "No space left on device")
            taken, self.room = self.file.write(data[: self.room]), 0
            return taken

        def seek(self, *place: int) -> int:
            return self.file.seek(*place)

        def truncate(self, size: int) -> int:
            return self.file.truncate(size)

    journal = Journal(tmp_path)
    journal.append(ControlReport("pause", 1))
    journal._file = FullDisk(journal._file)  # type: ignore[assignment]
    with pytest.raises(TrainingError, match="No space left"):
        journal.append(ControlReport("resume", 1))
    journal._file = journal._file.file  # type: ignore[attr-defined]
    journal.append(ControlReport("stop", 1))
    journal.close()
    assert read_journal(tmp_path) == [ControlReport("pause", 1), ControlReport("stop", 1)]


def test_lines_come_backwards_over_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b"x" * (n % 23 + 1) for n in range(60)]
    (tmp_path / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n" + b"torn")
    for block in (1, 5, 64, 2**18):
        monkeypatch.setattr("yolov9kit.training.journal._BLOCK", block)
        assert list(lines_backwards(tmp_path)) == lines[::-1]


def test_claimed_folders_differ(tmp_path: Path) -> None:
    (tmp_path / "exp").write_text("a file of that name")
    assert [claim_folder(tmp_path, "exp").name for _ in range(3)] == ["exp2", "exp3", "exp4"]
    with pytest.raises(TrainingError, match="cannot be made"):
        claim_folder(tmp_path / "exp", "exp")
