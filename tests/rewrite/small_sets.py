"""Pictures and digests, for the tests that write data sets anew."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

MakeSet = Callable[..., Path]


def noise(seed: int, size_wh: tuple[int, int] = (64, 48)) -> Image.Image:
    """A picture that looks like no other: coarse noise."""
    coarse = np.random.default_rng(seed).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize(size_wh, Image.Resampling.BILINEAR)


def save(path: Path, image: Image.Image) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return path


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
