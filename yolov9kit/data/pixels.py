"""Prepared pictures: decoded and scaled so that the longer side is the input size, kept in memory where they fit."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil

from yolov9kit.data.dataset import Sample
from yolov9kit.data.image import read_image
from yolov9kit.data.letterbox import letterbox
from yolov9kit.errors import DataError, PictureError

_GIB = 2**30
_SHARE = 0.8
"""How much of the free memory pictures may take."""

Progress = Callable[[int, int], None]
"""Called with the number of pictures done and the number of all."""


def prepared_wh(picture_wh: tuple[int, int], size: int) -> tuple[int, int]:
    """Width and height of a prepared picture."""
    height, width = letterbox((picture_wh[1], picture_wh[0]), (size, size)).inner_hw
    return width, height


def needed_bytes(samples: Sequence[Sample], size: int) -> int:
    """What all prepared pictures take, from their sizes alone."""
    return sum(3 * width * height for width, height in (prepared_wh(s.size_wh, size) for s in samples))


def available_bytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Memory that can still be taken: the machine's, or what the container's limit leaves if that is less."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
        rows = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    except OSError:  # no container, or an older kind
        return free
    if limit == "max":
        return free
    reclaimable = int(rows.get("inactive_file", 0))  # file cache counts as used, but gives way
    return max(min(free, int(limit) - used + reclaimable), 0)


class PreparedPictures:
    """The pictures of a data set as training takes them: ``picture(i)`` is h x w x 3 uint8 RGB, longer side ``size``.

    Decoded at each call until ``fill`` has read them all into memory. Filled arrays are read-only; worker processes
    forked afterwards share them with their parent. ``budget_bytes``: what they may take, without it 80 % of the free
    memory.
    """

    def __init__(self, samples: Sequence[Sample], size: int, budget_bytes: int | None = None) -> None:
        self.samples = tuple(samples)
        self.size = size
        self.budget_bytes = budget_bytes
        self.sizes_wh = tuple(prepared_wh(sample.size_wh, size) for sample in self.samples)
        self._kept: tuple[np.ndarray, ...] = ()

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def filled(self) -> bool:
        return bool(self._kept)

    def picture(self, index: int) -> np.ndarray:
        """The prepared picture of one sample.

        Raises:
            DataError: it cannot be read any more, or has another size than when the data set was opened.
        """
        return self._kept[index] if self._kept else self._read(index)

    def fill(self, progress: Progress | None = None) -> None:
        """Reads all pictures into memory, in threads. Nothing is read if they would not fit.

        Raises:
            DataError: they take more than the budget, or one of them cannot be read.
        """
        needed = needed_bytes(self.samples, self.size)
        budget = int(available_bytes() * _SHARE) if self.budget_bytes is None else self.budget_bytes
        if needed > budget:
            raise DataError(
                f"{len(self)} pictures at {self.size} px take {needed / _GIB:.2f} GiB of memory, {budget / _GIB:.2f} "
                "GiB may be used: train without the cache, or at a smaller image size"
            )
        kept = []
        pool = ThreadPoolExecutor(min(os.cpu_count() or 1, 16), thread_name_prefix="prepare-pictures")
        try:
            for picture in pool.map(self._read, range(len(self))):
                picture.flags.writeable = False
                kept.append(picture)
                if progress is not None:
                    progress(len(kept), len(self))
        finally:  # also after an error or an interrupt: what has not begun never begins
            pool.shutdown(cancel_futures=True)
        self._kept = tuple(kept)

    def _read(self, index: int) -> np.ndarray:
        import cv2

        sample, size_wh = self.samples[index], self.sizes_wh[index]
        picture = read_sample(sample)
        if sample.size_wh == size_wh:
            return picture
        smaller = size_wh[0] <= sample.size_wh[0]
        method = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
        return np.asarray(cv2.resize(picture, size_wh, interpolation=method))


def read_sample(sample: Sample) -> np.ndarray:
    """The decoded picture of a sample, H0 x W0 x 3.

    Raises:
        DataError: it cannot be read any more, or has another size than when the data set was opened.
    """
    try:
        picture = read_image(sample.path)
    except PictureError as error:
        raise DataError(
            f"{error}; it was readable when the data set was opened: open the data set again"
        ) from error
    height, width = picture.shape[:2]
    if (width, height) != sample.size_wh:
        expected = f"{sample.size_wh[0]} x {sample.size_wh[1]}"
        raise DataError(
            f"{sample.path}: {width} x {height} pixels, but {expected} when the data set was opened: open it again"
        )
    return picture
