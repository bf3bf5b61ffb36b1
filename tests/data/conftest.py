"""What the tests of pictures and videos share: files to read."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from yolov9kit.data.synthetic import SHAPE_NAMES, draw_shapes

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


@pytest.fixture(scope="session")
def drawn_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 drawn pictures of 640 x 480 with 3 classes in YOLO layout: 6 to train, 2 to validate. Not to be changed."""
    folder = tmp_path_factory.mktemp("drawn set")
    for i in range(8):
        split, drawing = "train" if i < 6 else "val", draw_shapes(seed=i, count=4)
        picture = folder / "images" / split / f"board {i}.jpg"
        label = folder / "labels" / split / f"board {i}.txt"
        for file in (picture, label):
            file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(drawing.pixels).save(picture, quality=90)
        left, top, right, bottom = (drawing.boxes.astype(np.float64) / (640, 480, 640, 480)).T
        shares = np.stack(((left + right) / 2, (top + bottom) / 2, right - left, bottom - top), 1)
        rows = zip(drawing.labels.tolist(), shares.tolist(), strict=True)
        label.write_text("".join(f"{c} {' '.join(map(str, box))}\n" for c, box in rows), encoding="utf-8")
    names = dict(enumerate(SHAPE_NAMES))
    content = {"train": "images/train", "val": "images/val", "names": names}
    (folder / "data.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


@pytest.fixture
def yolo_set(drawn_set: Path, tmp_path: Path) -> Path:
    """A copy of the drawn set: data cases are this with one thing changed."""
    return Path(shutil.copytree(drawn_set, tmp_path / "boards"))


@pytest.fixture
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder
