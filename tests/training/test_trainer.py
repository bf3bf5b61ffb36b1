"""Whole runs on drawn pictures: resumed equals uninterrupted, nothing is lost, nothing is silently wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.shapes import write_pictures
from yolov9kit.errors import CheckpointError, DataError, TrainingError, UsageError
from yolov9kit.model.checkpoint import load, save
from yolov9kit.model.transfer import new_model
from yolov9kit.model.yolov9 import YOLOv9, deployed
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.examples import read_examples
from yolov9kit.training.journal import read_journal
from yolov9kit.training.reports import (
    CheckpointReport,
    EndReport,
    EpochReport,
    EvaluationReport,
    Report,
    ResumedReport,
    StartReport,
    StepReport,
)
from yolov9kit.training.state import read_state
from yolov9kit.training.trainer import extend, resume, train

ROOT = Path(__file__).parents[2]


def four_epochs(data: Path, project: Path) -> TrainConfig:
    return TrainConfig(
        data=data,
        size="t",
        epochs=4,
        batch=4,
        image_size=64,
        workers=0,
        device="cpu",
        project=project,
        checkpoint_share=1.0,
    )


@pytest.fixture
def config(data: Path, tmp_path: Path) -> TrainConfig:
    """Four epochs of two steps, with a checkpoint after each epoch."""
    return four_epochs(data, tmp_path / "runs")


@pytest.fixture
def few_checkpoints(config: TrainConfig) -> TrainConfig:
    """The same, with checkpoints at the start and the end only: half of the time goes into the others."""
    return config.changed(checkpoint_share=1e-6)


@dataclass(frozen=True)
class FinishedRun:
    config: TrainConfig
    reports: list[Report]
    folder: Path


@pytest.fixture(scope="module")
def whole_run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """A run of four epochs that nothing interrupted. It is there to be read, and its folder stays as it is."""
    folder = tmp_path_factory.mktemp("whole")
    config = four_epochs(data, folder / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        reports = list(train(config))
    return FinishedRun(config, reports, Path(reports[0].folder))


def kinds(reports: list[Report], kind: type) -> list[Any]:
    return [report for report in reports if isinstance(report, kind)]


def run_until(reports: Iterator[Report], last: Any) -> list[Report]:
    """Reports up to the first for which ``last`` is true; then the run is stopped, as by leaving a loop."""
    seen = []
    for report in reports:
        seen.append(report)
        if last(report):
            break
    reports.close()  # type: ignore[attr-defined]
    return seen


def assert_equal_runs(one: Path, other: Path, within: float = 0.0) -> None:
    a, b = read_state(one), read_state(other)
    assert a.tensors.keys() == b.tensors.keys()
    for key, tensor in a.tensors.items():
        assert (tensor.double() - b.tensors[key].double()).abs().max() <= within, key
    assert (a.progress.step, a.progress.best_ap) == (b.progress.step, b.progress.best_ap)


def step_numbers(folder: Path) -> list[int]:
    return [report.step for report in kinds(read_journal(folder), StepReport)]


# ---------------------------------------------------------------------------------------------- a run


def test_a_run_tells_everything_and_leaves_everything(whole_run: FinishedRun) -> None:
    reports = whole_run.reports
    start, end = reports[0], reports[-1]
    assert isinstance(start, StartReport)
    assert (start.size, start.names, start.batch, start.steps_per_epoch) == (
        "t",
        ("rectangle", "disc", "triangle"),
        4,
        2,
    )
    assert start.average.endswith("BatchNorm's running values over 10 batches") and start.device_uuid is None
    assert [r.step for r in kinds(reports, StepReport)] == list(range(1, 9))
    assert [r.epoch for r in kinds(reports, EpochReport)] == [1, 2, 3, 4]
    assert [r.epoch for r in kinds(reports, EvaluationReport)] == [1, 2, 3, 4]
    assert len(kinds(reports, CheckpointReport)) == 5  # one before the first step
    assert isinstance(end, EndReport)
    assert (end.reason, end.epochs) == ("finished", 4)
    folder = whole_run.folder
    assert folder == whole_run.config.project / "exp"
    assert read_journal(folder) == reports
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "examples.json",
        "journal.jsonl",
        "state.safetensors",
        "weights",
    }
    for kind in ("best", "last"):
        checkpoint = load(folder / f"weights/{kind}.safetensors")
        assert (checkpoint.size, checkpoint.form, checkpoint.names) == ("t", "training", start.names)
        assert checkpoint.input_hw == (64, 64)
    assert TrainConfig(**json.loads((folder / "config.json").read_text())) == whole_run.config
    epoch, examples = read_examples(folder)
    assert (epoch, len(examples)) == (4, 4)  # the newest evaluation's, all four pictures


def test_the_same_seed_gives_the_same_bits_and_workers_change_nothing(few_checkpoints: TrainConfig) -> None:
    config = few_checkpoints
    folders = []
    for settings in (
        {"name": "a"},
        {"name": "b"},
        {"name": "c", "workers": 2},
        {"name": "d", "deterministic": True},
    ):
        reports = list(train(config.changed(epochs=2, **settings)))
        folders.append(Path(reports[0].folder))
    for other in folders[1:]:
        assert_equal_runs(folders[0], other)
    other_seed = list(train(config.changed(epochs=2, seed=1)))
    a, b = read_state(folders[0]), read_state(Path(other_seed[0].folder))
    assert any(not torch.equal(t, b.tensors[k]) for k, t in a.tensors.items())


def test_n06_the_validation_loss_is_real(few_checkpoints: TrainConfig) -> None:
    """Equal to the loss of the main branch on all validation pictures as one batch, worked out apart."""
    from yolov9kit.data.dataset import open_dataset
    from yolov9kit.data.image import read_image
    from yolov9kit.data.letterbox import letterbox
    from yolov9kit.loss.criterion import DetectionLoss
    from yolov9kit.types import Outputs, Targets

    config = few_checkpoints
    reports = list(train(config.changed(epochs=2, val_batch=3)))
    evaluations = kinds(reports, EvaluationReport)
    assert evaluations[0].loss.total > 0
    assert evaluations[0].loss != evaluations[1].loss
    folder = Path(reports[0].folder)
    model = load(folder / "weights/last.safetensors").model
    images, boxes, labels = [], torch.zeros(4, 6, 4), torch.full((4, 6), -1)
    for i, sample in enumerate(open_dataset(config.data, "val").samples):
        box = letterbox((120, 160), (64, 64))
        images.append(box.apply(read_image(sample.path)))
        boxes[i, : len(sample.labels)] = torch.from_numpy(box.forward(sample.boxes))
        labels[i, : len(sample.labels)] = torch.from_numpy(sample.labels.copy())
    with torch.no_grad():
        outputs = model(torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255)
    expected = DetectionLoss(3)(Outputs(outputs.main, None), Targets(boxes, labels))
    last = evaluations[1].loss
    assert last.total == pytest.approx(expected.total.item() / 4, rel=1e-5)
    assert (last.box, last.cls, last.dfl) == pytest.approx([part.item() for part in expected[1:]], rel=1e-5)


def test_mosaic_closes_also_in_a_short_run(whole_run: FinishedRun) -> None:
    assert whole_run.config.close_mosaic == 15  # of four epochs
    assert [r.mosaic for r in kinds(whole_run.reports, EpochReport)] == [True, True, False, False]


@pytest.mark.parametrize("fixed", [None, False])
def test_norms_rest_in_the_last_epochs_of_a_short_run(
    few_checkpoints: TrainConfig, fixed: bool | None
) -> None:
    config = few_checkpoints.changed(epochs=2, fixed_norms=fixed)
    first = run_until(train(config), lambda r: isinstance(r, EpochReport))
    folder = Path(first[0].folder)
    before = {k: t for k, t in read_state(folder).part("model").items() if "running" in k}
    list(resume(folder))
    after = read_state(folder).part("model")
    assert before and all(torch.equal(t, after[k]) for k, t in before.items()) == (fixed is None)


def test_it_learns(few_checkpoints: TrainConfig) -> None:
    """The loss of the averaged weights falls on pictures that are not trained on."""
    reports = list(train(few_checkpoints.changed(epochs=12, mosaic=0.0, evaluate_every=4)))
    losses = [r.loss.total for r in kinds(reports, EvaluationReport)]
    assert losses[2] < losses[1] < losses[0]


# ---------------------------------------------------------------------------------------------- resuming


def test_short_epochs_are_not_spent_on_checkpoints(few_checkpoints: TrainConfig) -> None:
    """Those at the start and the end are always there, and a stop in between saves where it stands."""
    config = few_checkpoints
    whole = list(train(config.changed(name="whole")))
    assert [r.epoch for r in kinds(whole, CheckpointReport)] == [0, 4]
    assert all(r.seconds > 0 for r in kinds(whole, CheckpointReport))
    cut = run_until(train(config.changed(name="cut")), lambda r: isinstance(r, StepReport) and r.step == 5)
    folder = Path(cut[0].folder)
    assert (folder / "weights/last.safetensors").is_file()
    assert read_state(folder).progress.step == 5
    list(resume(folder))
    assert_equal_runs(Path(whole[0].folder), folder)
    assert step_numbers(folder) == list(range(1, 9))


@pytest.mark.parametrize("stop", ["step", "mid-epoch", "epoch", "evaluation", "checkpoint"])
def test_w11_a_stopped_run_resumed_equals_the_uninterrupted_one(
    config: TrainConfig, whole_run: FinishedRun, stop: str
) -> None:
    ends = {
        "step": lambda r: isinstance(r, StepReport) and r.step == 4,
        "mid-epoch": lambda r: isinstance(r, StepReport) and r.step == 5,
        "epoch": lambda r: isinstance(r, EpochReport) and r.epoch == 2,
        "evaluation": lambda r: isinstance(r, EvaluationReport) and r.epoch == 2,
        "checkpoint": lambda r: isinstance(r, CheckpointReport) and r.epoch == 2,
    }
    first = run_until(train(config.changed(name="cut")), ends[stop])
    folder = Path(first[0].folder)
    assert read_journal(folder)[-1].reason == "stopped"
    rest = list(resume(folder))
    assert isinstance(rest[0], ResumedReport)
    assert_equal_runs(whole_run.folder, folder)
    journal = read_journal(folder)
    for kind in (EpochReport, EvaluationReport):
        assert [r.epoch for r in kinds(journal, kind)] == [1, 2, 3, 4]
    assert step_numbers(folder) == list(range(1, 9))
    for a, b in zip(kinds(whole_run.reports, StepReport), kinds(journal, StepReport), strict=True):
        assert (a.loss, a.learning_rate, a.grad_norm) == (b.loss, b.learning_rate, b.grad_norm)
    for kind in ("best", "last"):
        one, other = (load(f / f"weights/{kind}.safetensors").model for f in (whole_run.folder, folder))
        assert all(
            torch.equal(x, y)
            for x, y in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
        )


def test_accumulation_is_resumed_too(few_checkpoints: TrainConfig) -> None:
    config = few_checkpoints
    settings = {"optimizer": "sgd", "batch": 2, "accumulate": 2, "epochs": 2}
    whole = list(train(config.changed(name="whole", **settings)))
    first = run_until(
        train(config.changed(name="cut", **settings)), lambda r: isinstance(r, StepReport) and r.step == 3
    )
    list(resume(first[0].folder))
    assert_equal_runs(Path(whole[0].folder), Path(first[0].folder))


@pytest.mark.parametrize("origin", ["80 classes, other widths", "no groups in the head", "another size"])
def test_a_run_that_began_from_weights_is_resumed_without_them(
    few_checkpoints: TrainConfig, tmp_path: Path, origin: str
) -> None:
    """The state alone says what the model is: its size and widths are the file's, and the file may be gone."""
    if origin == "80 classes, other widths":
        model = new_model("t", 80, 1)
    elif origin == "no groups in the head":
        model = YOLOv9("t", 3, "training", box_groups=1)
    else:
        model = new_model("t", 3, 1)
    names = [str(i) for i in range(model.num_classes)]
    path = save(model, tmp_path / "w.safetensors", names=names)
    start = few_checkpoints.changed(weights=path, size=None, epochs=2)
    whole = list(train(start.changed(name="whole")))
    first = run_until(train(start.changed(name="cut")), lambda r: isinstance(r, StepReport) and r.step == 3)
    path.unlink()
    list(resume(first[0].folder))
    assert_equal_runs(Path(whole[0].folder), Path(first[0].folder))


RUN = """
import json, os, sys
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.trainer import resume, train
def run(settings):
    reports = resume(settings["resume"]) if "resume" in settings else train(TrainConfig(**settings))
    for report in reports:
        print(type(report).__name__, flush=True)
"""
CHILD = RUN + "run(json.loads(sys.argv[1]))"
FORKING = (
    RUN
    + """
import torch._dynamo  # an optimizer loads it
for line in sys.stdin:
    child = os.fork()
    if not child:
        print(os.getpid(), flush=True)
        run(json.loads(line))
        sys.exit()
    os.waitpid(child, 0)
    print("gone", flush=True)
"""
)


def start_child(settings: dict[str, Any]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, json.dumps(settings)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


@contextmanager
def forking_process() -> Iterator["subprocess.Popen[str]"]:
    """Takes settings, a line each, and forks a child for them: a killed child's successor need not load torch again.

    It tells the child's number, what the child reports, and ``gone`` when the child has ended.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:  # its end closes the pipes: no more lines, no more children
        yield process


def test_a_run_killed_in_mid_epoch_with_workers_is_resumed_exactly(config: TrainConfig) -> None:
    config = config.changed(batch=2, workers=2, close_mosaic=1)
    whole = list(train(config.changed(name="whole", workers=0, checkpoint_share=1e-6)))  # neither matters
    child = start_child(config.changed(name="killed").model_dump(mode="json"))
    assert child.stdout is not None
    steps = 0
    for line in child.stdout:
        steps += line.strip() == "StepReport"
        if steps == 10:  # epoch 3 of 4, four steps each
            break
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    folder = config.project / "killed"
    list(resume(folder))
    assert_equal_runs(Path(whole[0].folder), folder, within=1e-6)
    journal = read_journal(folder)
    assert step_numbers(folder) == list(range(1, 17))
    assert [r.epoch for r in kinds(journal, EpochReport)] == [1, 2, 3, 4]
    assert [r.mosaic for r in kinds(journal, EpochReport)] == [True, True, True, False]


@pytest.mark.slow
def test_twenty_kills_lose_no_checkpoint(config: TrainConfig) -> None:
    """Killed at twenty moments, among them those in which files are being written; every file stays whole."""
    rng = np.random.default_rng(0)
    config = config.changed(batch=4, epochs=400, name="often", checkpoint_minutes=1e-6)  # after every step
    folder = config.project / "often"
    settings: dict[str, Any] = config.model_dump(mode="json")
    done = -1
    with forking_process() as parent:
        assert parent.stdin is not None and parent.stdout is not None
        for _ in range(20):
            print(json.dumps(settings), file=parent.stdin, flush=True)
            child = int(parent.stdout.readline())
            for _ in range(int(rng.integers(1, 10))):
                assert parent.stdout.readline().strip().endswith("Report")
            time.sleep(rng.uniform(0, 0.3))
            os.kill(child, signal.SIGKILL)
            while parent.stdout.readline().strip() != "gone":
                assert parent.poll() is None
            saved = read_state(folder)
            assert all(torch.isfinite(t).all() for t in saved.tensors.values())
            assert saved.progress.step >= done
            done = saved.progress.step
            read_journal(folder)
            for path in (folder / "weights").glob("*.safetensors"):
                if not path.name.startswith("."):
                    load(path)
            settings = {"resume": str(folder)}
    assert done > 0
    first = next(resume(folder))
    assert isinstance(first, ResumedReport)


def test_a_full_disk_stops_the_run_and_keeps_the_checkpoint(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    reports = train(config)
    seen = run_from = next(reports)
    folder = Path(seen.folder)
    while not (isinstance(run_from, CheckpointReport) and run_from.epoch == 1):
        run_from = next(reports)
    before = (folder / "state.safetensors").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises((CheckpointError, TrainingError), match="No space left"):
            list(reports)
    assert (folder / "state.safetensors").read_bytes() == before
    assert not list(folder.glob("**/.*.part"))
    list(resume(folder))
    assert step_numbers(folder) == list(range(1, 9))


def test_a_finished_run_is_extended_and_not_resumed(whole_run: FinishedRun) -> None:
    folder = whole_run.folder
    with pytest.raises(TrainingError, match="extend"):
        next(resume(folder))
    with pytest.raises(TrainingError, match="has 4 epochs already"):
        next(extend(folder, 4))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    longer = list(extend(folder, 5))
    assert [r.epoch for r in kinds(longer, EpochReport)] == [5]
    assert longer[-1].reason == "finished"
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert [r.epoch for r in kinds(read_journal(longer[0].folder), EpochReport)] == [1, 2, 3, 4, 5]


def test_other_data_is_no_resumption(config: TrainConfig, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    write_pictures(folder, "train", range(4))
    write_pictures(folder, "val", range(100, 102))
    (folder / "data.yaml").write_text(
        "train: images/train\nval: images/val\nnames: [rectangle, disc, triangle]\n"
    )
    first = run_until(train(config.changed(data=folder)), lambda r: isinstance(r, StepReport))
    label = folder / "labels/train/0.txt"
    text = label.read_text()
    label.write_text(("1" if text[0] != "1" else "2") + text[1:])
    with pytest.raises(TrainingError, match="train data is not what it was"):
        next(resume(first[0].folder))


# ---------------------------------------------------------------------------------------------- faults


def test_n05_a_rate_of_a_million_stops_within_the_epoch_and_says_why(config: TrainConfig) -> None:
    wild = config.changed(lr0=1e6, epochs=20, warmup_epochs=0, batch=1, optimizer="sgd", accumulate=1)
    seen: list[Report] = []
    where = r"step \d+ \(epoch 1\): loss: .*\.png.*the last good checkpoint.*learning rate \(now \S+e\+05"
    with pytest.raises(TrainingError, match=where):
        seen.extend(iter(train(wild)))
    bad = [r for r in kinds(seen, StepReport) if r.problem]
    assert bad
    assert all(r.loss is None for r in bad)
    assert all(path.endswith(".png") for r in bad for path in r.problem.pictures)
    folder = Path(seen[0].folder)
    journal = read_journal(folder)
    assert journal[-1].reason.startswith("failed: step")
    assert not kinds(journal, EvaluationReport)  # stopped within the first epoch
    assert all(torch.isfinite(t).all() for t in read_state(folder).tensors.values())


def test_w14_a_weight_poisoned_in_the_middle_never_reaches_a_file(config: TrainConfig) -> None:
    """The run stops with the fault's name; every file is finite, a checkpoint exists, and resuming goes on."""
    from yolov9kit.training.loop import Loop
    from yolov9kit.training.prepare import prepare

    folder = config.project / "poisoned"
    (folder / "weights").mkdir(parents=True)
    loop = Loop(folder, prepare(config))
    norms = [module for module in loop.parts.model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert {norm.momentum for norm in norms} == {0.1}  # of so short a run
    reports = loop.reports([loop.start()])
    for report in reports:
        if isinstance(report, StepReport) and report.step == 3:
            with torch.no_grad():
                loop.parts.model.backbone.conv1.conv.weight[0] = float("nan")
            break
    with pytest.raises(TrainingError, match=r"step 4 \(epoch 2\): weight backbone\.conv1\.conv\.weight"):
        list(reports)
    assert all(torch.isfinite(t).all() for t in read_state(folder).tensors.values())
    for path in (folder / "weights").iterdir():
        assert all(torch.isfinite(t.float()).all() for t in load(path).model.state_dict().values())
    assert all(torch.isfinite(t.float()).all() for t in loop.parts.step.average.model.state_dict().values())
    assert list(resume(folder))[-1].reason == "finished"


def test_stopping_a_poisoned_run_saves_nothing_poisoned(config: TrainConfig) -> None:
    from yolov9kit.training.loop import Loop
    from yolov9kit.training.prepare import prepare

    folder = config.project / "poisoned"
    (folder / "weights").mkdir(parents=True)
    loop = Loop(folder, prepare(config))
    reports = loop.reports([loop.start()])
    run_until(
        reports,
        lambda r: (
            isinstance(r, StepReport)
            and loop.parts.model.backbone.conv1.conv.weight.data.fill_(float("nan")).isnan().all()
        ),
    )
    assert read_journal(folder)[-1].reason.startswith("stopped; the state was not saved")
    assert read_state(folder).progress.step == 0


# ---------------------------------------------------------------------------------------------- data, weights


def test_d34_seventeen_pictures_in_batches_of_16_at_the_smallest_size(
    config: TrainConfig, tmp_path: Path
) -> None:
    folder = tmp_path / "seventeen"
    write_pictures(folder, "train", range(17))
    write_pictures(folder, "val", range(100, 102))
    (folder / "data.yaml").write_text(
        "train: images/train\nval: images/val\nnames: [rectangle, disc, triangle]\n"
    )
    reports = list(train(config.changed(data=folder, batch=16, image_size=32, epochs=1)))
    assert [r.problem for r in kinds(reports, StepReport)] == [None, None]


def test_a_batch_larger_than_the_set_is_said(config: TrainConfig) -> None:
    start = next(train(config.changed(batch=64)))
    assert start.batch == 8
    assert any("batch 64" in note for note in start.notes)


def test_d36_single_class(config: TrainConfig) -> None:
    reports = list(train(config.changed(single_class=True, epochs=1)))
    assert len(reports[0].names) == 1
    checkpoint = load(Path(reports[0].folder) / "weights/last.safetensors")
    assert checkpoint.model.num_classes == 1
    assert len(kinds(reports, EvaluationReport)[0].per_class) == 1


def test_d04_a_class_out_of_range_stops_before_any_work(config: TrainConfig, tmp_path: Path) -> None:
    folder = tmp_path / "classes"
    write_pictures(folder, "train", range(3))
    write_pictures(folder, "val", range(100, 101))
    (folder / "data.yaml").write_text("train: images/train\nval: images/val\nnames: [rectangle]\n")
    with pytest.raises(DataError, match=r"\.txt.*class [12].*0"):
        next(train(config.changed(data=folder)))
    assert not config.project.exists()


def test_without_validation_pictures_nothing_starts(config: TrainConfig, tmp_path: Path) -> None:
    folder = tmp_path / "no-val"
    write_pictures(folder, "train", range(3))
    (folder / "data.yaml").write_text("train: images/train\nnames: [rectangle, disc, triangle]\n")
    with pytest.raises(DataError, match="validation"):
        next(train(config.changed(data=folder)))


def test_w04_a_deployed_file_needs_an_explicit_yes(config: TrainConfig, tmp_path: Path) -> None:
    path = save(deployed(new_model("t", 3, 0)), tmp_path / "lean.safetensors", names=["a", "b", "c"])
    with pytest.raises(
        CheckpointError, match=r"[\d,]+ of the training form's [\d,]+ tensors.*auxiliary branch.*random"
    ):
        next(train(config.changed(weights=path)))
    start = next(train(config.changed(weights=path, new_auxiliary=True)))
    assert any("auxiliary branch" in note and "starts at random" in note for note in start.notes)


def test_w06_other_classes_keep_all_but_the_class_outputs(config: TrainConfig, tmp_path: Path) -> None:
    path = save(new_model("t", 80, 1), tmp_path / "coco.safetensors", names=[str(i) for i in range(80)])
    start = next(train(config.changed(weights=path)))
    note = next(note for note in start.notes if "carried over" in note)
    assert "class outputs start anew for 3 classes" in note


def test_a_size_that_contradicts_the_weights_is_refused(config: TrainConfig, tmp_path: Path) -> None:
    path = save(new_model("t", 3, 1), tmp_path / "t.safetensors", names=["a", "b", "c"])
    with pytest.raises(UsageError, match="holds size t, but size s"):
        next(train(config.changed(weights=path, size="s")))


def test_frozen_layers_do_not_move(config: TrainConfig) -> None:
    reports = list(train(config.changed(freeze=(10,), epochs=1)))
    folder = Path(reports[0].folder)
    start = new_model("t", 3, config.seed).state_dict()
    after = {
        k.removeprefix("model."): t for k, t in read_state(folder).tensors.items() if k.startswith("model.")
    }
    moved = {key.split(".")[0] for key, tensor in after.items() if not torch.equal(tensor, start[key])}
    assert moved == {"top_down", "bottom_up", "head", "aux", "aux_head"}
    assert all(torch.equal(after[k], start[k]) for k in after if k.startswith(("backbone.", "top_down.spp.")))


def test_early_stop(few_checkpoints: TrainConfig) -> None:
    reports = list(train(few_checkpoints.changed(epochs=30, patience=2, lr0=1e-9)))
    assert reports[-1].reason == "no better AP for 2 epochs"
    assert reports[-1].epochs == 3


def test_training_leaves_the_process_as_it_was(config: TrainConfig) -> None:
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), signal.getsignal(signal.SIGINT))
    list(train(config.changed(epochs=1)))
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()
    assert signal.getsignal(signal.SIGINT) == before[2]
