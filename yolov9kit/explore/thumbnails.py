"""Small pictures for a page of many, kept as long as they fit."""

import io
import os
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from yolov9kit.data.image import read_image
from yolov9kit.errors import PictureError, UsageError
from yolov9kit.types import Failed

KEPT_BYTES = 64 * 2**20
_AT_ONCE = 4
_QUALITY = 85

_Key = tuple[Path, int, int, int]


@dataclass(frozen=True)
class Thumbnail:
    """``jpeg``: a JPEG file, ``wh`` pixels wide and high, the picture upright."""

    jpeg: bytes
    wh: tuple[int, int]


class Thumbnails:
    """Makes small pictures and keeps the last used ones, ``kept_bytes`` in all. Threads may share it."""

    def __init__(self, kept_bytes: int = KEPT_BYTES) -> None:
        self.kept_bytes = kept_bytes
        self.bytes = 0
        self._kept: OrderedDict[_Key, Thumbnail] = OrderedDict()
        self._lock = threading.Lock()

    def one(self, path: Path, side_px: int) -> Thumbnail:
        """The picture, longer side ``side_px`` at most; a smaller picture keeps its size.

        Raises:
            PictureError: it cannot be read.
            UsageError: a side below 1.
        """
        if side_px < 1:
            raise UsageError(f"side_px is {side_px}, the smallest picture has 1 pixel")
        key = _key(path, side_px)
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known
        made = small_picture(read_image(path), side_px)
        with self._lock:
            self._keep(key, made)
        return made

    def several(self, paths: Sequence[Path], side_px: int) -> list[Thumbnail | Failed]:
        """The pictures in their order, made by a few threads; ``Failed`` for one that cannot be read."""

        def attempt(path: Path) -> Thumbnail | Failed:
            try:
                return self.one(path, side_px)
            except PictureError as fault:
                return Failed(str(path), str(fault))

        with ThreadPoolExecutor(min(_AT_ONCE, len(paths) or 1), "thumbnails") as pool:
            return list(pool.map(attempt, paths))

    def _keep(self, key: _Key, made: Thumbnail) -> None:
        before = self._kept.pop(key, None)
        self.bytes += len(made.jpeg) - (len(before.jpeg) if before is not None else 0)
        self._kept[key] = made
        while self.bytes > self.kept_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.bytes -= len(oldest.jpeg)


def small_picture(pixels: np.ndarray, side_px: int) -> Thumbnail:
    """H x W x 3 uint8 RGB as a JPEG whose longer side has ``side_px`` pixels at most."""
    import cv2

    height, width = pixels.shape[:2]
    scale = min(1.0, side_px / max(height, width))
    wh = max(1, round(width * scale)), max(1, round(height * scale))
    if scale < 1:
        pixels = cv2.resize(pixels, wh, interpolation=cv2.INTER_AREA)
    jpeg = io.BytesIO()
    Image.fromarray(pixels).save(jpeg, "JPEG", quality=_QUALITY)
    return Thumbnail(jpeg.getvalue(), wh)


def _key(path: Path, side_px: int) -> _Key:
    """A picture that was changed is another one."""
    try:
        status = os.stat(path)
    except OSError:  # reading it will say so
        return path, side_px, 0, 0
    return path, side_px, status.st_mtime_ns, status.st_size
