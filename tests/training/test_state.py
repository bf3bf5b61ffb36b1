"""The state file: whole or not at all, and only with finite values."""

import errno
import os
import resource
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from yolov9kit.errors import CheckpointError, TrainingError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.optim import choose_recipe, make_optimizer
from yolov9kit.training.state import (
    Progress,
    load_optimizer,
    optimizer_tensors,
    read_state,
    write_state,
)


def some_state(folder: Path, value: float = 1.0, progress: Progress | None = None) -> Path:
    tensors = {"model.a": torch.full((3,), value), "model.n": torch.tensor(7)}
    return write_state(folder, tensors, progress or Progress(), 120, {"epochs": 3}, {"size": "t"}, [])


def test_it_comes_back(tmp_path: Path) -> None:
    progress = Progress(
        2, 3, 35, "reported", loss_sums=(1.0, 0.5, 0.25, 0.25), best_ap=0.1 + 0.2, best_epoch=1
    )
    some_state(tmp_path, progress=progress)
    saved = read_state(tmp_path)
    assert saved.progress == progress
    assert saved.tensors["model.a"].tolist() == [1, 1, 1]
    assert (saved.tensors["model.n"].dtype, saved.journal_bytes) == (torch.int64, 120)
    assert (saved.config, saved.facts) == ({"epochs": 3}, {"size": "t"})


def test_values_that_are_not_finite_are_refused_and_the_older_file_stays(tmp_path: Path) -> None:
    before = some_state(tmp_path).read_bytes()
    with pytest.raises(CheckpointError, match=r"model\.a has values that are not finite"):
        some_state(tmp_path, float("inf"))
    assert (tmp_path / "state.safetensors").read_bytes() == before


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_full_disk_leaves_the_older_file_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    before = some_state(tmp_path).read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"os.{call}", full)
    with pytest.raises(CheckpointError, match="No space left"):
        some_state(tmp_path, 2.0)
    assert [path.name for path in tmp_path.iterdir()] == ["state.safetensors"]
    assert (tmp_path / "state.safetensors").read_bytes() == before


def test_a_disk_that_really_takes_no_more_bytes(tmp_path: Path) -> None:
    """The system refuses to let the file grow beyond a few bytes."""
    before = some_state(tmp_path).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(CheckpointError, match="too large"):
            some_state(tmp_path, 2.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["state.safetensors"]
    assert (tmp_path / "state.safetensors").read_bytes() == before


def test_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="holds no run"):
        read_state(tmp_path)
    (tmp_path / "state.safetensors").write_bytes(b"something else")
    with pytest.raises(TrainingError, match="cannot be read"):
        read_state(tmp_path)


@pytest.mark.parametrize("name", ["sgd", "adamw", "adam"])
def test_an_optimizer_goes_on_as_if_nothing_had_happened(tmp_path: Path, name: str) -> None:
    def start() -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1))
        config = TrainConfig(data="x", optimizer=name)
        return model, make_optimizer(model, choose_recipe(config, 64, 10))

    def steps(model: nn.Module, optimizer: torch.optim.Optimizer, seeds: range) -> None:
        for seed in seeds:
            images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
            optimizer.zero_grad()
            model(images).square().sum().backward()
            optimizer.step()

    one, optimizer = start()
    steps(one, optimizer, range(3))
    tensors, groups = optimizer_tensors(optimizer)
    weights = {f"model.{k}": v.clone() for k, v in one.state_dict().items()}
    write_state(tmp_path, tensors | weights, Progress(), 0, {}, {}, groups)
    steps(one, optimizer, range(3, 6))

    other, second = start()
    saved = read_state(tmp_path)
    other.load_state_dict(
        {k.removeprefix("model."): v for k, v in saved.tensors.items() if k.startswith("model.")}
    )
    load_optimizer(second, saved)
    steps(other, second, range(3, 6))
    assert all(
        torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    )


def test_other_groups_are_refused(tmp_path: Path) -> None:
    some_state(tmp_path)
    model = nn.Conv2d(3, 4, 1)
    optimizer = make_optimizer(model, choose_recipe(TrainConfig(data="x"), 64, 10))
    with pytest.raises(TrainingError, match="groups"):
        load_optimizer(optimizer, read_state(tmp_path))
