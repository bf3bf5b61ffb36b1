"""What the tests of pictures and videos share: files to read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

MakeVideo = Callable[..., Path]
MakePicture = Callable[..., Path]


@pytest.fixture
def make_picture(tmp_path: Path) -> MakePicture:
    """Writes a small picture whose red channel is ``level`` all over; the name says the format."""

    def make(name: str = "a.png", level: int = 100, size: tuple[int, int] = (8, 6)) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        ending = path.suffix.lower()
        image = Image.new("RGB", size, (level, 0, 0))
        image.save(path, {".png": "PNG", ".bmp": "BMP", ".tif": "TIFF"}.get(ending, "JPEG"), quality=100)
        return path

    return make


@pytest.fixture
def make_video(tmp_path: Path) -> MakeVideo:
    """Writes a video whose frame ``i`` has the gray level ``8 i``: MPEG-4 in .mp4 and .mkv, JPEG in .avi."""
    import cv2

    def make(
        name: str = "v.mp4", frames: int = 12, size: tuple[int, int] = (64, 48), fps: float = 10.0
    ) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        codec = "MJPG" if path.suffix.lower() == ".avi" else "mp4v"
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*codec), fps, size)
        assert writer.isOpened()
        for i in range(frames):
            writer.write(np.full((size[1], size[0], 3), 8 * i % 256, np.uint8))
        writer.release()
        return path

    return make
