"""What is at hand for a first try."""

import re
from pathlib import Path

import numpy as np
import pytest

from yolov9kit import (
    EvalConfig,
    evaluate,
    find_weights,
    load,
    open_dataset,
    open_source,
    read_image,
    sample_data,
    sample_pictures,
    sample_weights,
    samples,
)
from yolov9kit.data.boards.defects import BOARD_NAMES
from yolov9kit.model.fuse import is_fused
from yolov9kit.samples import TRAIN_BOARDS, VAL_BOARDS, write_sample_data


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


def test_the_sample_set_is_drawn_again_equal(tmp_path: Path) -> None:
    """Decoded pixels and boxes, not files: how a PNG is packed may differ between versions of a library."""
    shipped, drawn = sample_data().parent, write_sample_data(tmp_path / "pcb").parent
    assert shipped.name == "pcb" and shipped.parent.name == "sample_data"

    def files(folder: Path) -> list[str]:
        return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())

    assert files(shipped) == files(drawn) and len(files(drawn)) == 2 * (TRAIN_BOARDS + VAL_BOARDS) + 1
    for name in files(drawn):
        if name.endswith(".png"):
            np.testing.assert_array_equal(read_image(shipped / name), read_image(drawn / name), name)
        else:
            assert (shipped / name).read_text() == (drawn / name).read_text(), name


def test_the_sample_set_opens_as_data_and_as_pictures() -> None:
    train, val = (open_dataset(sample_data(), split, cache=False) for split in ("train", "val"))
    assert (len(train.samples), len(val.samples)) == (TRAIN_BOARDS, VAL_BOARDS)
    assert open_source(sample_pictures()).total == VAL_BOARDS
    for data in (train, val):
        assert {label for sample in data.samples for label in sample.labels.tolist()} == set(range(6))


def test_without_the_projects_folder_the_set_is_drawn_into_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "_shipped", lambda: tmp_path / "nowhere")
    monkeypatch.setattr(samples, "TRAIN_BOARDS", 2)
    monkeypatch.setattr(samples, "VAL_BOARDS", 1)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    data = sample_data()
    assert data == tmp_path / "cache/yolov9kit/pcb/data.yaml"
    assert open_source(sample_pictures()).total == 1
    before = data.stat().st_mtime_ns
    assert sample_data().stat().st_mtime_ns == before
    assert [p.name for p in (tmp_path / "cache/yolov9kit").iterdir()] == ["pcb"]


def test_the_sample_weights_are_deployed_unfused_and_small() -> None:
    weights = load(sample_weights())
    assert (weights.form, weights.size, weights.precision) == ("deployed", "t", "fp16")
    assert weights.names == BOARD_NAMES and not is_fused(weights.model)
    assert sample_weights().stat().st_size < 5 << 20


@pytest.mark.parametrize("image_size", [320, 480, 640])
def test_the_sample_weights_score_what_their_card_says(image_size: int) -> None:
    card = (sample_weights().parent / "README.md").read_text()
    row = next(line for line in card.splitlines() if re.match(rf"\|[^|]*\| {image_size} \|", line))
    ap, ap50 = (float(cell) for cell in row.split("|")[3:5])
    config = EvalConfig(image_size=(image_size,), device="cpu")
    scores = evaluate(sample_weights(), sample_data(), config).sizes[0].scores
    assert scores.ap == pytest.approx(ap, abs=0.005) and scores.ap50 == pytest.approx(ap50, abs=0.005)
    if image_size == load(sample_weights()).input_hw[0]:
        assert scores.ap50 >= 0.95  # what the first minute shows
