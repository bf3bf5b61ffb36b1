"""What training sees: the very pictures that a run with some settings learns from, before it is started."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from yolov9kit.data.augment import AugmentConfig, Plan
from yolov9kit.data.batches import PictureKey, TrainBatches
from yolov9kit.data.dataset import Dataset, refuse
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.data.pixels import PreparedPictures
from yolov9kit.errors import UsageError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.prepare import (
    augmentation_of,
    batch_of_a_device,
    epochs_without_mosaic,
    make_train_batches,
    open_train_data,
)
from yolov9kit.types import ProgressCallback, counting

_AT_ONCE = 4


@dataclass(frozen=True, eq=False)
class PreviewPicture:
    """One training picture, after augmentation.

    Attributes:
        pixels: S x S x 3 uint8 RGB, S the image size.
        boxes: N x 4 float32 xyxy, pixels of this picture.
        labels: N int64.
        sources: the pictures that it is made of: one; four of a mosaic; eight of two that are mixed. The first is the
            one whose turn it was, and one picture can come several times.
    """

    pixels: np.ndarray
    boxes: np.ndarray
    labels: np.ndarray
    sources: tuple[Path, ...]


@dataclass(frozen=True, eq=False)
class PreviewPictures:
    """The first pictures of an epoch, in the order in which training takes them.

    Attributes:
        pictures: each of them.
        names: of the classes.
        epoch: counted from 0.
        mosaic: False for the last epochs, which show pictures alone.
        augment: the strengths, with those that were chosen by the length of the run.
    """

    pictures: tuple[PreviewPicture, ...]
    names: tuple[str, ...]
    epoch: int
    mosaic: bool
    augment: AugmentConfig


def preview_batches(
    config: TrainConfig,
    *,
    epoch: int = 0,
    count: int = 8,
    on_progress: ProgressCallback | None = None,
) -> PreviewPictures:
    """The first ``count`` pictures of an epoch (from 0) exactly as a run with this config trains on them.

    To the last bit: the same code makes them, and what a picture becomes depends on seed, epoch and place alone. At
    most as many as the epoch has. Only the training pictures are read, and nothing is written.

    Raises:
        DataError: training would refuse the pictures, or one cannot be read any more.
        UsageError: an epoch that the run does not have, or a count below 1.
    """
    if not 0 <= epoch < config.epochs:
        raise UsageError(f"epoch {epoch}: this run has the epochs 0 to {config.epochs - 1}")
    if count < 1:
        raise UsageError(f"count {count}: ask for 1 picture or more")
    progress = counting(on_progress, "checking training pictures")
    data = open_train_data(config, open_layout(config.data), progress)
    if not config.skip_bad_rows:
        refuse(data)
    batches = _batches(config, data)
    mosaic = epoch < config.epochs - epochs_without_mosaic(config)
    positions = range(min(count, len(batches) * batches.batch))
    with ThreadPoolExecutor(_AT_ONCE, "preview") as pool:
        pictures = tuple(pool.map(lambda place: _picture(data, batches, epoch, place, mosaic), positions))
    return PreviewPictures(pictures, data.names, epoch, mosaic, batches.augment)


def _batches(config: TrainConfig, data: Dataset) -> TrainBatches:
    """As ``prepare`` makes them, but pictures are decoded when they are wanted, and here."""
    devices = config.device.count(",") + 1
    batch, _ = batch_of_a_device(config, len(data.samples), devices)
    augment = augmentation_of(config, len(data.samples), batch * devices)
    pictures = PreparedPictures(data.samples, config.image_size)
    return make_train_batches(config, pictures, batch, 0, augment)


def _picture(data: Dataset, batches: TrainBatches, epoch: int, position: int, mosaic: bool) -> PreviewPicture:
    batch = batches.one(position, epoch, mosaic)
    used = batch.targets.labels[0] >= 0
    sources = _sources(batches.plan(PictureKey(epoch, position, batch.indices[0], mosaic)))
    return PreviewPicture(
        np.ascontiguousarray(batch.images[0].permute(1, 2, 0).numpy()),
        batch.targets.boxes[0][used].numpy(),
        batch.targets.labels[0][used].numpy(),
        tuple(data.samples[i].path for i in sources),
    )


def _sources(plan: Plan) -> Iterator[int]:
    yield from (tile.index for tile in plan.tiles)
    if plan.partner is not None:
        yield from _sources(plan.partner)
