"""Two devices equal one: here two processes on one processor, which take the same way as two GPUs."""

import os
import signal
from pathlib import Path

import pytest
import torch

from yolov9kit.errors import TrainingError, UsageError
from yolov9kit.model.checkpoint import load
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.devices import OtherDevices
from yolov9kit.training.reports import EndReport, Report, StartReport, StepReport
from yolov9kit.training.state import read_state
from yolov9kit.training.trainer import resume, train

pytestmark = pytest.mark.usefixtures("one_thread")  # several processes wait for the same cores


def config(data: Path, project: Path, **more: object) -> TrainConfig:
    settings = {
        "size": "t",
        "epochs": 2,
        "batch": 4,
        "image_size": 64,
        "workers": 0,
        "seed": 3,
        "freeze": (1,),
    }
    return TrainConfig(data=data, project=project, **(settings | more))


def one_after_the_other(data: Path, project: Path) -> TrainConfig:
    """The run that two devices share a batch of 4 of, on a single one."""
    return config(data, project, batch=2, accumulate=2, device="cpu")


def states(folder: Path) -> dict[str, torch.Tensor]:
    state = read_state(folder)
    return {f"{part} {name}": t for part in ("model", "average") for name, t in state.part(part).items()}


def assert_equal(one: Path, two: Path) -> None:
    a, b = states(one), states(two)
    assert a.keys() == b.keys()
    worst = {name: (a[name].double() - b[name].double()).abs().max().item() for name in a}
    assert max(worst.values()) < 1e-6, sorted(worst.items(), key=lambda pair: -pair[1])[:5]
    moved = [name for name in a if name.startswith("model") and "running" in name]
    assert moved and any((a[name] - 0).abs().max() > 0 for name in moved)


def step_losses(reports: list[Report]) -> list[float]:
    return [r.loss.total for r in reports if isinstance(r, StepReport) and r.loss is not None]


@pytest.fixture(scope="module")
def single(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Report]]:
    project = tmp_path_factory.mktemp("single")
    reports = list(train(one_after_the_other(data, project)))
    return Path(reports[0].folder), reports  # type: ignore[union-attr]


def test_two_devices_equal_one(data: Path, tmp_path: Path, single: tuple[Path, list[Report]]) -> None:
    """Weights, running values, average, losses and scores."""
    reports = list(train(config(data, tmp_path, device="cpu,cpu")))
    start = reports[0]
    assert isinstance(start, StartReport)
    assert (start.batch, start.accumulate, start.device.count("cpu")) == (4, 1, 2)
    assert step_losses(reports) == pytest.approx(step_losses(single[1]), rel=1e-6)
    assert_equal(Path(start.folder), single[0])
    assert isinstance(reports[-1], EndReport) and reports[-1].reason == "finished"


def test_a_run_goes_on_with_more_devices_or_fewer(
    data: Path, tmp_path: Path, single: tuple[Path, list[Report]]
) -> None:
    running = train(config(data, tmp_path, device="cpu,cpu"))
    start = next(running)
    assert isinstance(start, StartReport)
    for report in running:
        if isinstance(report, StepReport) and report.step == 3:
            break
    running.close()  # type: ignore[attr-defined]
    rest = list(resume(start.folder, device="cpu"))
    assert isinstance(rest[-1], EndReport) and rest[-1].reason == "finished"
    assert_equal(Path(start.folder), single[0])
    assert load(Path(start.folder) / "weights/last.safetensors").size == "t"


def test_devices_that_cannot_share_the_steps_of_a_run_are_refused(
    single: tuple[Path, list[Report]], data: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="take a multiple of 2"):
        next(train(config(data, tmp_path, batch=3, device="cpu,cpu")))
    running = train(one_after_the_other(data, tmp_path))
    folder = next(running).folder  # type: ignore[attr-defined]
    running.close()  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="2 batches of 2 pictures, which 3 devices"):
        next(resume(folder, device="cpu,cpu,cpu"))


def test_a_device_that_dies_ends_the_run_with_its_name(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[OtherDevices] = []
    begin = OtherDevices.__init__
    monkeypatch.setattr(
        OtherDevices, "__init__", lambda self, *args: (made.append(self), begin(self, *args))[1]
    )
    running = train(config(data, tmp_path, device="cpu,cpu"))
    folder = Path(next(running).folder)  # type: ignore[attr-defined]
    next(report for report in running if isinstance(report, StepReport))
    os.kill(made[0].pids[0], signal.SIGKILL)
    with pytest.raises(TrainingError, match="device cpu: its process has ended"):
        list(running)
    assert read_state(folder).progress.step == 0  # the state of before the first step is kept
    assert made[0].pids == []
