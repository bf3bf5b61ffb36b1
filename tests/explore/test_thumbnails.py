"""Small pictures: right, upright, in order, and never more of them than memory was promised."""

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from yolov9kit.errors import PictureError, UsageError
from yolov9kit.explore import thumbnails
from yolov9kit.explore.thumbnails import Thumbnails
from yolov9kit.types import Failed


def smooth(folder: Path, name: str = "a.png", wh: tuple[int, int] = (120, 60)) -> Path:
    """Colours that rise from left to right and from top to bottom, without anything that JPEG would blur."""
    x, y = np.meshgrid(np.linspace(0, 255, wh[0]), np.linspace(0, 255, wh[1]))
    Image.fromarray(np.stack((x, y, 255 - x), 2).astype(np.uint8)).save(folder / name)
    return folder / name


def pixels_of(jpeg: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(jpeg))).astype(int)


@pytest.mark.parametrize(
    ("wh", "side", "expected"),
    [((120, 60), 40, (40, 20)), ((60, 120), 40, (20, 40)), ((30, 20), 40, (30, 20)), ((300, 2), 30, (30, 1))],
)
def test_the_longer_side_fits(
    wh: tuple[int, int], side: int, expected: tuple[int, int], tmp_path: Path
) -> None:
    made = Thumbnails().one(smooth(tmp_path, wh=wh), side)
    assert made.wh == expected and pixels_of(made.jpeg).shape == (expected[1], expected[0], 3)


def test_each_pixel_is_the_mean_of_those_it_stands_for(tmp_path: Path) -> None:
    path = smooth(tmp_path)
    means = np.asarray(Image.open(path)).reshape(20, 3, 40, 3, 3).mean((1, 3))
    assert abs(pixels_of(Thumbnails().one(path, 40).jpeg) - means).mean() < 2


def test_the_picture_is_upright(tmp_path: Path) -> None:
    picture = Image.open(smooth(tmp_path))
    exif = picture.getexif()
    exif[274] = 6
    picture.save(tmp_path / "turned.jpg", exif=exif, quality=95)
    made = Thumbnails().one(tmp_path / "turned.jpg", 40)
    upright = np.rot90(np.asarray(picture), -1).reshape(40, 3, 20, 3, 3).mean((1, 3))
    assert made.wh == (20, 40) and abs(pixels_of(made.jpeg) - upright).mean() < 3


def test_the_least_used_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [smooth(tmp_path, f"{i}.png") for i in range(3)]
    read: list[Path] = []
    decoder = thumbnails.read_image
    monkeypatch.setattr(thumbnails, "read_image", lambda path: read.append(path) or decoder(path))
    one = len(Thumbnails().one(paths[0], 40).jpeg)
    read.clear()
    kept = Thumbnails(2 * one)
    for i in (0, 1, 0, 2, 0, 1):  # 1 has gone for 2, and 2 for 1
        kept.one(paths[i], 40)
        assert kept.bytes <= 2 * one
    assert read == [paths[0], paths[1], paths[2], paths[1]]


def test_one_that_is_larger_than_all_room_is_made_and_not_kept(tmp_path: Path) -> None:
    none = Thumbnails(10)
    assert none.one(smooth(tmp_path), 40).wh == (40, 20) and none.bytes == 0


def test_a_changed_picture_is_made_again(tmp_path: Path) -> None:
    kept = Thumbnails()
    before = kept.one(smooth(tmp_path), 40)
    assert kept.one(tmp_path / "a.png", 40) is before
    Image.new("RGB", (50, 100)).save(tmp_path / "a.png")
    os.utime(tmp_path / "a.png", ns=(1, 1))
    assert kept.one(tmp_path / "a.png", 40).wh == (20, 40)


def test_several_keep_their_order_and_a_broken_one_its_reason(tmp_path: Path) -> None:
    paths = [smooth(tmp_path, f"{i}.png", (100, 10 * (i + 1))) for i in range(9)]
    paths[4].write_bytes(b"no picture")
    made = Thumbnails().several([*paths, tmp_path / "gone.png"], 50)
    assert [one.wh[1] for one in made if not isinstance(one, Failed)] == [5, 10, 15, 20, 30, 35, 40, 45]
    assert isinstance(made[4], Failed) and made[4].path == str(paths[4])
    assert isinstance(made[9], Failed) and "gone.png" in made[9].error
    with pytest.raises(PictureError, match=r"gone\.png"):
        Thumbnails().one(tmp_path / "gone.png", 50)


def test_a_side_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="side_px is 0"):
        Thumbnails().one(tmp_path / "a.png", 0)
