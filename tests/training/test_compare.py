"""Differences between runs: only what differs, every run's value, and no complaint about a broken file."""

import json
from pathlib import Path

import pytest

from yolov9kit.training.compare import setting_differences
from yolov9kit.training.config import TrainConfig


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    settings = ({"batch": 8}, {"batch": 8, "lr0": 0.002}, {"batch": 16, "name": "other"})
    folders = []
    for i, setting in enumerate(settings):
        folder = tmp_path / str(i)
        folder.mkdir()
        config = TrainConfig(data="data.yaml", **setting)
        (folder / "config.json").write_text(config.model_dump_json())
        folders.append(folder)
    return folders


def test_only_what_differs_is_told(runs: list[Path]) -> None:
    assert setting_differences(runs) == {"batch": ("8", "8", "16"), "lr0": ("auto", "0.002", "auto")}
    assert setting_differences(runs[:1]) == setting_differences([]) == {}


def test_a_config_that_cannot_be_read_is_a_question_mark(runs: list[Path]) -> None:
    (runs[0] / "config.json").write_text("{")
    found = setting_differences(runs[:2])
    assert found["batch"] == ("?", "8") and set(found) == set(
        json.loads((runs[1] / "config.json").read_text())
    ) - {
        "project",
        "name",
    }
