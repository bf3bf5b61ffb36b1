"""Runs in processes of their own: they outlive who began them, obey whoever asks, and always say how they ended."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import waiting
from tests.shapes import write_pictures
from yolov9kit.errors import CheckpointError, DataError, TrainingError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.control import pending
from yolov9kit.training.history import runs
from yolov9kit.training.journal import Position, read_journal
from yolov9kit.training.launch import launch, launch_extend, launch_resume
from yolov9kit.training.lock import read_lock
from yolov9kit.training.reports import (
    CheckpointReport,
    ControlReport,
    EndReport,
    EpochReport,
    ResumedReport,
    StartReport,
    StepReport,
)
from yolov9kit.training.run import Run, attach
from yolov9kit.training.state import read_state
from yolov9kit.training.supervisor import last_words
from yolov9kit.training.trainer import resume, train

ROOT = Path(__file__).parents[2]
LONG = 300.0
"""Seconds after which a test gives up waiting; nothing takes that long."""


@pytest.fixture(autouse=True)
def no_run_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    for folder in (tmp_path / "runs").glob("*"):  # a test that failed leaves nothing running
        lock = read_lock(folder)
        for process in lock.processes if lock else ():
            if process.is_alive and process.pid != os.getpid():
                os.kill(process.pid, signal.SIGKILL)


def two_epochs(data: Path, project: Path) -> TrainConfig:
    """Of two steps each."""
    return TrainConfig(
        data=data,
        size="t",
        epochs=2,
        batch=4,
        image_size=64,
        workers=0,
        device="cpu",
        project=project,
        checkpoint_share=1e-6,
    )


@pytest.fixture
def config(data: Path, tmp_path: Path) -> TrainConfig:
    return two_epochs(data, tmp_path / "runs")


@pytest.fixture
def endless(config: TrainConfig) -> TrainConfig:
    return config.changed(epochs=100_000, patience=0)


# Runs that several tests look at. Each has a project of its own, and its folder stays as it is.


@contextmanager
def shared_config(data: Path, folder: Path) -> Iterator[TrainConfig]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        yield two_epochs(data, folder / "runs")


@pytest.fixture(scope="module")
def trained_here(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two epochs that ``train`` did in this process."""
    with shared_config(data, tmp_path_factory.mktemp("here")) as config:
        list(train(config))
        return config.project / "exp"


@pytest.fixture(scope="module")
def eight_epochs_trained_here(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same over eight epochs: the uninterrupted run, long enough to cut its twin in the middle."""
    with shared_config(data, tmp_path_factory.mktemp("eight")) as config:
        list(train(config.changed(epochs=8)))
        return config.project / "exp"


@pytest.fixture(scope="module")
def launched_and_finished(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A launched run of two epochs, watched from its launch to its end."""
    with shared_config(data, tmp_path_factory.mktemp("launched")) as config:
        children = _children()
        run = launch(config)
        assert run.folder == config.project / "exp"
        assert run.folder.is_dir()
        assert run.state in ("starting", "running")
        assert run.wait(LONG) == "finished"
        assert _children() <= children
        return run


def _children() -> set[str]:
    """Processes that this one would have to bury."""
    found = Path(f"/proc/self/task/{os.getpid()}/children")
    return set(found.read_text().split()) if found.is_file() else set()


until = partial(waiting.until, seconds=LONG)


def steps(run: Run) -> list[int]:
    return [report.step for report in run.tail().reports if isinstance(report, StepReport)]


def answers(run: Run) -> list[str]:
    return [report.action for report in run.tail().reports if isinstance(report, ControlReport)]


def until_step(run: Run, number: int) -> None:
    until(lambda: ((taken := steps(run)) and taken[-1] >= number) or not run.is_alive)
    assert run.is_alive, run.log_tail()


def assert_equal_states(one: Path, other: Path) -> None:
    a, b = read_state(one), read_state(other)
    assert a.tensors.keys() == b.tensors.keys()
    assert all(torch.equal(tensor, b.tensors[key]) for key, tensor in a.tensors.items())
    assert (a.progress.step, a.progress.best_ap) == (b.progress.step, b.progress.best_ap)


# ---------------------------------------------------------------------------------------------- a run


def test_a_launched_run_is_the_run_that_train_does(launched_and_finished: Run, trained_here: Path) -> None:
    run = launched_and_finished
    assert run.state == "finished"
    assert run.last_words == "finished"
    assert run.pid is None
    assert read_lock(run.folder) is None
    assert_equal_states(run.folder, trained_here)
    news = run.tail()
    assert list(news.reports) == read_journal(run.folder)
    assert [type(report) for report in news.reports] == [type(r) for r in read_journal(trained_here)]
    assert run.tail(news.position).reports == ()


def test_requests_are_obeyed_in_order_and_two_panels_agree(endless: TrainConfig) -> None:
    run = launch(endless)
    other = attach(run.folder)
    until_step(run, 3)
    other.pause()
    until(lambda: run.state == "paused")
    assert other.state == "paused"
    held = steps(run)
    time.sleep(0.5)
    assert steps(run) == held
    run.checkpoint_now()
    until(lambda: isinstance(other.tail().reports[-1], CheckpointReport))
    assert other.state == "paused"
    assert read_state(run.folder).progress.step == held[-1]
    assert other.tail().reports == run.tail().reports
    run.resume()
    until(lambda: len(steps(other)) > len(held))
    assert other.state == run.state == "running"
    other.pause()
    until(lambda: run.state == "paused")
    assert run.stop(LONG) == other.state == "stopped"
    assert answers(run) == ["pause", "checkpoint", "resume", "pause", "stop"]
    assert not pending(run.folder)
    assert read_state(run.folder).progress.step == steps(run)[-1]


def test_u03_stopped_within_a_step_resumable_exactly_and_the_kernel_trains_again(
    config: TrainConfig, trained_here: Path
) -> None:
    config = config.changed(epochs=40, patience=0)
    threads = set(threading.enumerate())
    run = launch(config)
    until_step(run, 3)
    assert run.stop(LONG) == "stopped"
    reports = run.tail().reports
    heard = next(report for report in reports if isinstance(report, ControlReport))
    assert steps(run)[-1] == heard.step < 80
    assert isinstance(reports[-2], CheckpointReport)
    assert reports[-1].reason == "stopped"
    assert set(threading.enumerate()) == threads
    assert run.pid is None

    shorter = config.changed(epochs=2, name="again")
    assert launch(shorter).wait(LONG) == "finished"
    assert_equal_states(config.project / "again", trained_here)


@pytest.mark.slow
def test_a_stopped_run_resumed_equals_the_uninterrupted_one(
    config: TrainConfig, eight_epochs_trained_here: Path
) -> None:
    run = launch(config.changed(epochs=8))
    until_step(run, 2)
    run.pause()
    until(lambda: run.state in ("paused", "finished"))
    assert run.state == "paused"
    assert run.stop(LONG) == "stopped"
    seen = run.tail()
    again = launch_resume(run.folder)
    assert again.folder == run.folder
    assert again.wait(LONG) == "finished"
    assert_equal_states(eight_epochs_trained_here, run.folder)
    news = run.tail(seen.position)
    assert not news.anew
    assert isinstance(news.reports[0], ResumedReport)
    assert steps(run) == list(range(1, 17))
    with pytest.raises(TrainingError, match="launch_extend"):
        launch_resume(run.folder)


@pytest.mark.slow
def test_a_finished_run_is_extended(launched_and_finished: Run) -> None:
    run, project = launched_and_finished, launched_and_finished.folder.parent
    longer = launch_extend(run.folder, 3)
    assert longer.folder == project / "exp-extended"
    assert longer.wait(LONG) == "finished", longer.last_words
    assert [r.epoch for r in longer.tail().reports if isinstance(r, EpochReport)] == [1, 2, 3]
    assert [(info.planned_epochs, info.epochs) for info in runs(project)] == [(3, 3), (2, 2)]
    fewer = launch_extend(run.folder, 2)
    assert fewer.wait(LONG) == "failed"
    assert "has 2 epochs already" in fewer.last_words


def test_launching_from_a_thread_never_shares_a_folder(config: TrainConfig) -> None:
    found: list[Run] = []
    threads = [
        threading.Thread(target=lambda: found.append(launch(config.changed(epochs=1)))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {run.folder.name for run in found} == {"exp", "exp2", "exp3"}
    for run in found:
        run.kill()
    assert {run.wait(LONG) for run in found} == {"failed"}


# ---------------------------------------------------------------------------------------------- attaching


STARTER = """
import json, sys, time
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.launch import launch
run = launch(TrainConfig(**json.loads(sys.argv[1])))
print(run.folder, flush=True)
time.sleep(600)
"""


def start_elsewhere(config: TrainConfig, **options: Any) -> "subprocess.Popen[str]":
    settings = json.dumps(config.model_dump(mode="json"))
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, settings], cwd=ROOT, stdout=subprocess.PIPE, text=True, **options
    )


def test_u06_the_kernel_dies_the_run_goes_on_and_a_fresh_one_sees_all_of_it(endless: TrainConfig) -> None:
    kernel = start_elsewhere(endless, start_new_session=True)
    assert kernel.stdout is not None
    folder = Path(kernel.stdout.readline().strip())
    run = attach(folder)
    until_step(run, 2)
    os.killpg(kernel.pid, signal.SIGINT)
    os.killpg(kernel.pid, signal.SIGKILL)  # its whole group, as a server does that restarts it
    kernel.wait()
    kernel.stdout.close()
    until_step(run, steps(run)[-1] + 5)
    fresh = (
        "import sys\nfrom yolov9kit.training.run import attach\nrun = attach(sys.argv[1])\n"
        "reports = run.tail().reports\n"
        "print(run.state, type(reports[0]).__name__, reports[2].step, run.stop(300), 'torch' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", fresh, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == ["running", "StartReport", "1", "stopped", "False"]
    assert steps(run) == list(range(1, len(steps(run)) + 1))


def test_a_run_that_was_not_launched_can_be_seen_but_not_asked(config: TrainConfig) -> None:
    reports = train(config)
    start = next(reports)
    run = attach(start.folder)
    next(reports)
    assert run.state == "running"
    assert run.pid == os.getpid()
    for request in (run.pause, run.resume, run.stop, run.checkpoint_now, run.kill):
        with pytest.raises(TrainingError, match=rf"not launched.*process {os.getpid()}"):
            request()
    reports.close()
    assert run.state == "stopped"
    with pytest.raises(TrainingError, match=r"has ended \(stopped\).*nothing to pause"):
        run.pause()


def test_two_runs_never_write_one_folder(config: TrainConfig, endless: TrainConfig) -> None:
    run = launch(endless)
    until_step(run, 1)
    with pytest.raises(TrainingError, match=rf"alive there, in process {run.pid}"):
        launch_resume(run.folder)
    with pytest.raises(TrainingError, match=r"alive there, in process \d+"):
        next(resume(run.folder))
    assert run.stop(LONG) == "stopped"
    reports = resume(run.folder)
    next(reports)
    with pytest.raises(TrainingError, match=rf"process {os.getpid()}"):
        next(resume(run.folder))
    reports.close()
    assert read_lock(run.folder) is None


def test_a_cut_back_journal_is_read_anew(config: TrainConfig) -> None:
    reports = train(config)
    run = attach(next(reports).folder)
    while not isinstance(next(reports), EpochReport):
        pass
    seen = run.tail()
    saved = (run.folder / "state.safetensors").read_bytes()
    reports.close()
    (run.folder / "state.safetensors").write_bytes(saved)  # as if it had been killed there
    list(resume(run.folder))
    news = run.tail(seen.position)
    assert news.anew
    assert isinstance(news.reports[0], StartReport)
    assert list(news.reports) == read_journal(run.folder)


def test_a_line_that_is_half_written_waits(trained_here: Path, tmp_path: Path) -> None:
    run = attach(shutil.copytree(trained_here, tmp_path / "copy"))
    journal = run.folder / "journal.jsonl"
    content = journal.read_bytes()
    whole = run.tail().reports
    for cut in range(len(content) - len(content.splitlines(keepends=True)[-1]) + 1, len(content)):
        journal.write_bytes(content[:cut])
        news = run.tail()
        assert news.reports == whole[:-1]
        journal.write_bytes(content)
        assert run.tail(news.position).reports == whole[-1:]
    assert run.tail(Position(7, 7)).anew


# ---------------------------------------------------------------------------------------------- ends


def test_a_killed_trainer_has_last_words_and_the_run_can_be_resumed(
    config: TrainConfig, eight_epochs_trained_here: Path
) -> None:
    run = launch(config.changed(epochs=8))
    until_step(run, 3)
    assert run.pid is not None
    os.kill(run.pid, signal.SIGKILL)
    assert run.wait(LONG) == "failed"
    assert "killed by SIGKILL" in run.last_words
    assert "out-of-memory killer" in run.last_words
    end = run.tail().reports[-1]
    assert isinstance(end, EndReport)
    assert run.wait() == "failed"
    assert launch_resume(run.folder).wait(LONG) == "finished"
    assert_equal_states(eight_epochs_trained_here, run.folder)
    assert steps(run) == list(range(1, 17))


def test_killing_on_request_is_said(endless: TrainConfig) -> None:
    run = launch(endless)
    until_step(run, 1)
    run.kill()
    assert run.wait(LONG) == "failed"
    assert run.last_words == "failed: killed by SIGKILL, as was asked"


def test_a_run_whose_processes_are_all_killed_is_lost_and_says_so(endless: TrainConfig) -> None:
    run = launch(endless)
    until_step(run, 1)
    lock = read_lock(run.folder)
    assert lock is not None
    supervisor, trainer = (process.pid for process in lock.processes)
    os.kill(supervisor, signal.SIGKILL)
    taken = steps(run)[-1]
    until_step(run, taken + 2)  # the trainer does not need it
    os.kill(trainer, signal.SIGKILL)
    fresh = attach(run.folder)
    assert fresh.wait(LONG) == "lost"
    assert f"without last words: process {trainer} is gone" in fresh.last_words
    assert "resume it" in fresh.last_words
    assert runs(run.folder.parent)[0].state == "lost"
    again = launch_resume(run.folder)  # the lock of the dead is taken over
    until_step(again, 1)
    assert again.stop(LONG) == "stopped"


def test_the_supervisor_loads_no_torch(endless: TrainConfig) -> None:
    code = "import sys; import yolov9kit.training.supervisor; print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_sigterm_stops_as_asked(endless: TrainConfig) -> None:
    run = launch(endless)
    until_step(run, 1)
    lock = read_lock(run.folder)
    assert lock is not None
    for process in lock.processes:  # as a machine that shuts down does
        os.kill(process.pid, signal.SIGTERM)
    assert run.wait(LONG) == "stopped"
    assert read_state(run.folder).progress.step == steps(run)[-1]


def test_a_stop_before_the_first_step(endless: TrainConfig) -> None:
    run = launch(endless)
    assert run.state == "starting"
    run.stop(0.0)
    assert run.state == "stopping"
    assert run.wait(LONG) == "stopped"
    assert steps(run) == []


def test_what_goes_wrong_before_the_first_step_is_said(config: TrainConfig, tmp_path: Path) -> None:
    folder = tmp_path / "classes"
    write_pictures(folder, "train", range(3))
    write_pictures(folder, "val", range(100, 101))
    (folder / "data.yaml").write_text("train: images/train\nval: images/val\nnames: [rectangle]\n")
    run = launch(config.changed(data=folder))
    assert run.wait(LONG) == "failed"
    assert ".txt" in run.last_words and "class" in run.last_words
    (info,) = runs(config.project)
    assert (info.state, info.epochs, info.best_ap, info.words) == ("failed", 0, None, run.last_words)


def test_what_cannot_go_well_starts_nothing(config: TrainConfig, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere"):
        launch(config.changed(data=tmp_path / "nowhere"))
    with pytest.raises(CheckpointError, match=r"no\.pt"):
        launch(config.changed(weights=tmp_path / "no.pt"))
    assert not config.project.exists()
    for call in (attach, launch_resume, lambda path: launch_extend(path, 3)):
        with pytest.raises(TrainingError, match=r"holds no run"):
            call(tmp_path)
    assert runs(tmp_path / "nowhere") == []


def test_relative_paths_are_those_of_the_caller(
    config: TrainConfig,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torch.py").write_text(
        "raise SystemExit('not this one')"
    )  # a user's file beside the notebook
    relative = Path(os.path.relpath(data, tmp_path))
    run = launch(config.changed(data=relative, project=Path("runs"), epochs=1))
    assert run.folder == tmp_path / "runs/exp"
    assert run.wait(LONG) == "finished", run.last_words
    assert capfd.readouterr() == ("", "")  # whatever the processes print, they print it into their log


def test_a_full_disk_is_said(config: TrainConfig) -> None:
    """A limit on the size of files, inherited by the run, stands for the disk."""
    limit = 200_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    kernel = start_elsewhere(config, preexec_fn=limited)
    assert kernel.stdout is not None
    run = attach(kernel.stdout.readline().strip())
    assert run.wait(LONG) == "failed"
    kernel.kill()
    kernel.wait()
    kernel.stdout.close()
    assert "File too large" in run.last_words
    assert not list(run.folder.glob("**/.*.part"))


def test_the_supervisor_tells_what_is_known_of_a_death(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("Traceback\nImportError: no module named torch\n")
    assert last_words(tmp_path, 1) == "the process ended with code 1: ImportError: no module named torch"
    assert "shared memory" in last_words(tmp_path, -signal.SIGBUS)
    assert last_words(tmp_path, -signal.SIGSEGV).startswith("killed by SIGSEGV")
    assert last_words(tmp_path, -99) == "killed by signal 99"


# ---------------------------------------------------------------------------------------------- many runs


def test_runs_are_told_from_head_and_tail(config: TrainConfig, trained_here: Path) -> None:
    shutil.copytree(trained_here, config.project / "one")
    reports = train(config.changed(name="two", epochs=9))
    for report in reports:
        if isinstance(report, StepReport) and report.step == 5:
            break
    two, one = runs(config.project)
    assert (one.folder.name, one.state, one.epochs, one.planned_epochs) == ("one", "finished", 2, 2)
    assert (two.folder.name, two.state, two.epochs, two.planned_epochs) == ("two", "running", 2, 9)
    end = read_journal(one.folder)[-1]
    assert (one.best_ap, one.best_epoch, one.seconds) == (end.best_ap, end.best_epoch, end.seconds)
    assert two.best_epoch is not None
    assert one.device.startswith("cpu")
    assert one.precision.startswith("FP32") or "fp32" in one.precision.lower()
    reports.close()
    (one.folder / "config.json").write_text("{oops")
    words = {info.folder.name: info.words for info in runs(config.project)}
    assert words["two"] == "stopped"
    assert "cannot be read" in words["one"]


def test_a_long_journal_is_not_read_whole(
    trained_here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 steps: of some 80 MB a few hundred kB are looked at."""
    from yolov9kit.training import journal as module

    journal = shutil.copytree(trained_here, tmp_path / "runs/exp") / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    step = next(line for line in lines if line.startswith(b'{"kind": "step"'))
    journal.write_bytes(lines[0] + step * 200_000 + b"".join(lines[1:-1]))
    looked: list[bytes] = []
    kept = module.lines_backwards

    def counted(folder: Path) -> Iterator[bytes]:
        for line in kept(folder):
            looked.append(line)
            yield line

    monkeypatch.setattr("yolov9kit.training.history.lines_backwards", counted)
    (info,) = runs(tmp_path / "runs")
    assert (info.state, info.epochs) == ("lost", 2)
    assert len(looked) < len(lines)
