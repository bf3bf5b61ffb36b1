"""The pictures of a benchmark: which ones, and the same again until there are enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.data.dataset import Dataset
from yolov9kit.data.image import read_image
from yolov9kit.data.sources import Source, open_source
from yolov9kit.errors import PictureError, UsageError
from yolov9kit.samples import sample_pictures
from yolov9kit.types import Failed

PictureItem = Path | np.ndarray
"""A file, or H x W x 3 uint8 RGB."""

HELD_FRAMES = "the source has frames of a video: they are decoded before, so decoding is not in the times"


@dataclass(frozen=True, eq=False)
class Pictures:
    """At least one, and each could be read. ``notes``: what one should know of times that they give."""

    description: str
    items: tuple[PictureItem, ...]
    notes: tuple[str, ...] = ()


def choose_pictures(config: BenchmarkConfig, dataset: Dataset | None) -> Pictures:
    """The first pictures of the source that ``config`` names, else of ``dataset``, else of the sample boards.

    All are read, so that the system has the files in memory afterwards and the disk is not what is timed.

    Raises:
        PictureError: one cannot be read, or there is none.
        UsageError: the source runs on without an end.
    """
    if config.source is not None:
        source = open_source(config.source)
        description = source.description
    elif dataset is not None:
        source = open_source([sample.path for sample in dataset.samples])
        description = dataset.summary()
    else:
        source = open_source(sample_pictures())
        description = f"sample boards, {source.description}"
    if source.total is None:
        raise UsageError(f"source {config.source}: runs on without an end; name pictures or a video file")
    items = _read(source, config.pictures)
    frames = any(isinstance(item, np.ndarray) for item in items)
    return Pictures(description, items, (HELD_FRAMES,) if frames else ())


def _read(source: Source, most: int) -> tuple[PictureItem, ...]:
    items: list[PictureItem] = []
    for picture in islice(source, most):
        if isinstance(picture, Failed):
            raise PictureError(picture.error)
        items.append(Path(picture.path) if picture.frame is None else picture.pixels)
    if not items:
        raise PictureError(f"{source.description}: no picture in it")
    return tuple(items)


def cycled(items: Sequence[PictureItem], count: int) -> list[PictureItem]:
    """``count`` of them: all, again and again."""
    return [items[i % len(items)] for i in range(count)]


def in_memory(items: Sequence[PictureItem]) -> list[PictureItem]:
    """Decoded."""
    return [read_image(item) if isinstance(item, Path) else item for item in items]
