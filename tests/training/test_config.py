"""Settings are checked when they are made; the message names the setting, the value and what would do."""

from pathlib import Path
from typing import Any

import pytest

from yolov9kit.errors import UsageError
from yolov9kit.training.config import TrainConfig


def test_data_is_all_that_is_needed() -> None:
    config = TrainConfig(data="data.yaml")
    assert config.data == Path("data.yaml")
    assert (config.epochs, config.batch, config.image_size, config.weights) == (100, 16, 640, None)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "data: is needed"),
        ({"data": "d", "epoch": 3}, "Did you mean epochs"),
        ({"data": "d", "epochs": 0}, "epochs = 0"),
        ({"data": "d", "image_size": 650}, "nearest is 640"),
        ({"data": "d", "size": "l"}, "t, s, m, c, e"),
        ({"data": "d", "lr0": float("nan")}, "lr0"),
        ({"data": "d", "name": "a/b"}, "one folder"),
        ({"data": "d", "optimizer": "lion"}, "optimizer = 'lion'"),
        ({"data": "d", "freeze": (-1,)}, "freeze"),
    ],
)
def test_what_is_wrong_is_one_line(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint) as caught:
        TrainConfig(**settings)
    assert "\n" not in str(caught.value)


def test_empty_weights_mean_from_scratch() -> None:
    assert TrainConfig(data="d", weights="").weights is None


def test_it_survives_json_and_a_change() -> None:
    config = TrainConfig(data="d", weights="w.pt", freeze=(10,), lr0=0.02)
    assert TrainConfig(**config.model_dump(mode="json")) == config
    assert config.changed(epochs=3).epochs == 3
    assert config.epochs == 100
    with pytest.raises(UsageError, match="batch = -1"):
        config.changed(batch=-1)


def test_every_setting_is_described() -> None:
    assert all(field.description for field in TrainConfig.model_fields.values())
