"""The preview shows what training sees, to the last bit."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.shapes import SIZE
from yolov9kit.errors import DataError, UsageError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.prepare import prepare
from yolov9kit.training.preview import PreviewPicture, preview_batches
from yolov9kit.training.reports import LossValues, StepReport
from yolov9kit.training.step import StepResult, TrainStep
from yolov9kit.training.trainer import train
from yolov9kit.types import Targets

Seen = tuple[torch.Tensor, Targets]

# eight pictures: the second batch is filled up with two of the first
BATCH = 5


@pytest.fixture
def config(data: Path, tmp_path: Path) -> TrainConfig:
    """Two epochs of two steps, the last without mosaic."""
    return TrainConfig(
        data=data,
        size="t",
        epochs=2,
        batch=BATCH,
        image_size=64,
        workers=0,
        device="cpu",
        project=tmp_path / "runs",
        evaluate_every=100,
        checkpoint_share=1e-6,
    )


def assert_same(
    picture: PreviewPicture, image: torch.Tensor, boxes: torch.Tensor, labels: torch.Tensor
) -> None:
    assert picture.pixels.dtype == np.uint8 and picture.pixels.flags["C_CONTIGUOUS"]
    assert np.array_equal(picture.pixels, image.numpy().transpose(1, 2, 0))
    used = labels.numpy() >= 0
    assert np.array_equal(picture.labels, labels.numpy()[used])
    assert np.array_equal(picture.boxes, boxes.numpy()[used]) and picture.boxes.dtype == np.float32


def test_each_epoch_begins_with_the_previewed_pictures(
    config: TrainConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the loop of a run feeds its step, epoch by epoch. What the step does with it is of no interest here."""
    seen: list[Seen] = []

    def watched(_: TrainStep, batches: Sequence[Seen]) -> StepResult:
        seen.extend(batches)
        return StepResult(LossValues(3.0, 1.0, 1.0, 1.0), 1.0)

    monkeypatch.setattr(TrainStep, "__call__", watched)
    reports = (report for report in train(config) if isinstance(report, StepReport))
    assert len(list(islice(reports, 4))) == 4
    for epoch in range(2):
        preview = preview_batches(config, epoch=epoch, count=100)
        assert (preview.epoch, preview.mosaic) == (epoch, epoch == 0)
        fed = [
            (images[i], targets.boxes[i], targets.labels[i])
            for images, targets in seen[2 * epoch : 2 * epoch + 2]
            for i in range(BATCH)
        ]
        assert len(preview.pictures) == len(fed) == 10
        for picture, (image, boxes, labels) in zip(preview.pictures, fed, strict=True):
            assert_same(picture, image, boxes, labels)


@pytest.mark.parametrize(
    "settings",
    [
        {"seed": 3, "mixup": 1.0, "degrees": 20.0, "shear": 5.0, "hsv_h": 0.2},
        {"batch": 64, "cache": "none"},
        {"device": "cpu,cpu", "batch": 4},
        {"single_class": True, "min_items": 2},
        {"image_size": 96, "mosaic": 0.5, "close_mosaic": 0, "flip_ud": 0.5},
        {"epochs": 6000, "close_mosaic": 5999},  # long enough for the paper's strengths
    ],
    ids=lambda settings: ", ".join(settings),
)
def test_every_setting_shows(config: TrainConfig, settings: dict[str, Any]) -> None:
    """The batches that a run is prepared with, without running it."""
    config = config.changed(**settings)
    preview = preview_batches(config, epoch=1, count=3)
    prepared = prepare(config)
    try:
        batches = list(prepared.train_batches.epoch(1, mosaic=preview.mosaic))
        assert prepared.train_batches.augment == preview.augment
        assert prepared.train_data.names == preview.names
        samples = prepared.train_data.samples
    finally:
        prepared.close()
    fed = [
        (batch.images[i], batch.targets.boxes[i], batch.targets.labels[i], samples[sample].path)
        for batch in batches
        for i, sample in enumerate(batch.indices)
    ]
    for picture, (image, boxes, labels, path) in zip(preview.pictures, fed[:3], strict=True):
        assert_same(picture, image, boxes, labels)
        assert picture.sources[0] == path


@pytest.mark.parametrize(("settings", "sources"), [({"mosaic": 0.0}, 1), ({}, 4), ({"mixup": 1.0}, 8)])
def test_sources_are_the_pictures_it_is_made_of(
    config: TrainConfig, settings: dict[str, Any], sources: int
) -> None:
    pictures = preview_batches(config.changed(**settings), count=8).pictures
    assert {len(picture.sources) for picture in pictures} == {sources}
    assert all(path.is_file() for picture in pictures for path in picture.sources)
    first = {picture.sources[0].name for picture in pictures}
    assert first == {f"{i}.png" for i in range(8)}  # each picture has its turn once


def test_a_picture_that_nothing_changes_is_the_picture_itself(config: TrainConfig) -> None:
    plain = dict.fromkeys(("mosaic", "translate", "scale", "hsv_h", "hsv_s", "hsv_v", "flip_lr"), 0.0)
    [picture] = preview_batches(config.changed(image_size=160, **plain), count=1).pictures
    label_file = Path(str(picture.sources[0]).replace("images", "labels")).with_suffix(".txt")
    rows = np.loadtxt(label_file, ndmin=2)
    centre, size = rows[:, 1:3] * SIZE, rows[:, 3:] * SIZE
    margin = np.array([0, 20, 0, 20])  # above and below a picture of 160 x 120
    expected = np.concatenate((centre - size / 2, centre + size / 2), 1) + margin
    assert abs(picture.boxes - expected).max() < 0.01
    assert picture.labels.tolist() == rows[:, 0].astype(int).tolist()


def test_what_the_run_does_not_have_is_refused(config: TrainConfig) -> None:
    with pytest.raises(UsageError, match="epoch 2: this run has the epochs 0 to 1"):
        preview_batches(config, epoch=2)
    with pytest.raises(UsageError, match="count 0"):
        preview_batches(config, count=0)


def test_rows_that_training_refuses_are_refused(config: TrainConfig, tmp_path: Path) -> None:
    labels = tmp_path / "set/labels"
    labels.mkdir(parents=True)
    (tmp_path / "set/images").symlink_to(config.data / "images/train")
    for i in range(8):
        (labels / f"{i}.txt").write_text("0 0.5 0.5 0.2 0.2\n" + "9 0.5 0.5 0.1 0.1\n" * (i == 3))
    (tmp_path / "set/data.yaml").write_text("train: images\nval: images\nnames: [a, b]\n")
    config = config.changed(data=tmp_path / "set/data.yaml")
    with pytest.raises(DataError, match=r"3\.txt:2: class 9"):
        preview_batches(config)
    assert len(preview_batches(config.changed(skip_bad_rows=True)).pictures) == 8


def test_progress_counts_pictures(config: TrainConfig) -> None:
    told: list[tuple[str, int, int]] = []
    preview_batches(config, count=1, on_progress=lambda *what: told.append(what))
    assert told[-1] == ("checking training pictures", 8, 8)
