"""What is at hand for a first try."""

from pathlib import Path

import pytest

from yolov9kit import find_weights, open_source, sample_pictures
from yolov9kit.samples import SHAPES, write_shapes


def test_weights_are_found_in_the_usual_places(tmp_path: Path) -> None:
    names = [
        "a.pt",
        "weights/b 螺.safetensors",
        "runs/train/exp/weights/best.pt",
        "sample_data/weights/c.safetensors",
    ]
    for name in [*names, "weights/notes.txt", "deep/down/below/x.pt"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [p.relative_to(tmp_path).as_posix() for p in find_weights(tmp_path)] == sorted(names)
    assert find_weights(tmp_path / "nowhere") == []


def test_sample_pictures_are_there_or_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_source(sample_pictures()).total == SHAPES
    write_shapes(tmp_path)
    assert open_source(tmp_path).total == SHAPES
