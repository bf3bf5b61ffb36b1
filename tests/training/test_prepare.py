"""Choices that are made for the user, each with its reason."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from yolov9kit.data.dataset import Dataset, Sample
from yolov9kit.device import Device
from yolov9kit.errors import UsageError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.optim import choose_recipe
from yolov9kit.training.prepare import _pictures, augmentation, choose_mode, frozen_paths

CPU = Device("cpu", "CPU", "")
GPU = Device("cuda:0", "a GPU", "")


def recipe(batch: int):  # the type is the recipe's own
    return choose_recipe(TrainConfig(data="x", optimizer="sgd"), batch, 10)


@pytest.mark.parametrize(
    ("wanted", "device", "batch", "graph", "reason"),
    [
        ("auto", GPU, 64, True, "one launch"),
        ("auto", GPU, 16, False, "4 batches make a step"),
        ("auto", CPU, 64, False, "NVIDIA GPU"),
        ("eager", GPU, 64, False, "as asked"),
        ("graph", GPU, 64, True, "as asked"),
    ],
)
def test_steps_are_replayed_where_that_is_possible(
    wanted: str, device: Device, batch: int, graph: bool, reason: str
) -> None:
    chosen, why = choose_mode(wanted, [device], recipe(batch))
    assert chosen == graph
    assert reason in why


def test_several_gpus_share_steps_without_a_graph() -> None:
    chosen, why = choose_mode("auto", [GPU, GPU], recipe(64))
    assert not chosen and "2 devices" in why
    with pytest.raises(UsageError, match="mode graph: 2 devices"):
        choose_mode("graph", [GPU, GPU], recipe(64))


@pytest.mark.parametrize(("device", "batch"), [(CPU, 64), (GPU, 16)])
def test_a_graph_that_cannot_be_is_refused(device: Device, batch: int) -> None:
    with pytest.raises(UsageError, match="mode graph"):
        choose_mode("graph", [device], recipe(batch))


def test_freeze_counts_layers_as_the_official_files_do() -> None:
    assert frozen_paths((3,), "t") == ["backbone.conv1", "backbone.conv2", "backbone.elan2"]
    assert frozen_paths((0, 9), "t") == ["backbone.conv1", "top_down.spp"]
    assert frozen_paths((2,), "c") == ["backbone.conv1"]
    assert frozen_paths((), "t") == []
    with pytest.raises(UsageError, match="layer 30 does not exist"):
        frozen_paths((0, 30), "t")


def test_every_augmentation_knob_reaches_the_pictures() -> None:
    config = TrainConfig(
        data="x", mosaic=0.1, mixup=0.2, degrees=3, translate=0.4, scale=0.5, shear=6, hsv_h=0.7, hsv_s=0.8,
        hsv_v=0.9, flip_lr=0.11, flip_ud=0.12, close_scale=0.13,
    )  # fmt: skip
    assert tuple(vars(augmentation(config, 10)).values()) == (
        0.1,
        0.2,
        3,
        0.4,
        0.5,
        6,
        0.7,
        0.8,
        0.9,
        0.11,
        0.12,
        0.13,
    )


@pytest.mark.parametrize(
    ("steps", "mixup", "scale", "last"), [(9_999, 0.0, 0.5, 0.1), (10_000, 0.15, 0.9, None)]
)
def test_short_runs_get_milder_pictures_unless_asked(
    steps: int, mixup: float, scale: float, last: float | None
) -> None:
    chosen = augmentation(TrainConfig(data="x"), steps)
    assert (chosen.mixup, chosen.scale, chosen.close_scale) == (mixup, scale, last)
    asked = augmentation(TrainConfig(data="x", mixup=0.3, scale=0.2), steps)
    assert (asked.mixup, asked.scale, asked.close_scale) == (0.3, 0.2, None)
    assert augmentation(TrainConfig(data="x", close_scale=0.4), steps).close_scale == 0.4


@pytest.mark.parametrize(
    ("cache", "free", "filled", "reason"),
    [
        ("auto", 4096 * 3 * 8, True, "ram, chosen"),
        ("auto", 4096 * 3 * 8 - 8, False, "more than a quarter"),
        ("ram", 4096 * 3 * 8 - 8, True, "ram, as asked"),
        ("none", 2**40, False, "none, as asked"),
    ],
)
def test_pictures_are_kept_in_memory_where_they_take_little_of_it(
    cache: str, free: int, filled: bool, reason: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two pictures of 64 x 64."""
    samples = []
    for i in range(2):
        Image.new("RGB", (64, 64)).save(tmp_path / f"{i}.png")
        nothing = np.zeros((0, 4), np.float32), np.zeros(0, np.int64)
        samples.append(Sample(tmp_path / f"{i}.png", (64, 64), *nothing))
    monkeypatch.setattr("yolov9kit.training.prepare.available_bytes", lambda: free)
    data = Dataset("d", "train", ("a",), tuple(samples))
    pictures, why = _pictures(TrainConfig(data="x", image_size=64, cache=cache), data, None)
    assert pictures.filled == filled
    assert reason in why
