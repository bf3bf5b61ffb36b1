"""Prepared pictures: their size, whether they fit, and what happens when one has gone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.data.drawn_samples import drawn_samples
from yolov9kit.data.dataset import Sample
from yolov9kit.data.image import read_image
from yolov9kit.data.letterbox import letterbox
from yolov9kit.data.pixels import PreparedPictures, available_bytes, needed_bytes, prepared_wh
from yolov9kit.errors import DataError

SIZE = 96
MISSING = Sample(Path("nowhere/gone.png"), (4000, 3000), np.empty((0, 4), np.float32), np.empty(0, np.int64))


@pytest.fixture
def samples(tmp_path: Path) -> list[Sample]:
    return drawn_samples(tmp_path, 7)


def test_the_longer_side_is_the_size_and_the_place_that_of_the_letterbox(samples: list[Sample]) -> None:
    pictures = PreparedPictures(samples, SIZE)
    for index, sample in enumerate(samples):
        picture = pictures.picture(index)
        assert max(picture.shape[:2]) == SIZE and picture.dtype == np.uint8
        assert picture.shape[1::-1] == pictures.sizes_wh[index] == prepared_wh(sample.size_wh, SIZE)
        assert picture.shape[:2] == letterbox(sample.size_wh[::-1], (SIZE, SIZE)).inner_hw


def test_a_picture_of_the_right_size_keeps_its_pixels(samples: list[Sample]) -> None:
    assert samples[0].size_wh == (96, 64)
    assert np.array_equal(PreparedPictures(samples, SIZE).picture(0), read_image(samples[0].path))


def test_filling_changes_no_pixel_and_takes_what_was_said(samples: list[Sample]) -> None:
    pictures, progress = PreparedPictures(samples, SIZE), []
    before = [pictures.picture(i) for i in range(len(pictures))]
    pictures.fill(lambda done, total: progress.append((done, total)))
    for sample in samples:
        sample.path.unlink()  # nothing is read any more
    after = [pictures.picture(i) for i in range(len(pictures))]
    assert pictures.filled
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert sum(picture.nbytes for picture in after) == needed_bytes(samples, SIZE)
    assert progress == [(done, 7) for done in range(1, 8)]
    with pytest.raises(ValueError, match="read-only"):
        after[0][0, 0] = 0


def test_what_does_not_fit_is_refused_before_anything_is_read() -> None:
    pictures = PreparedPictures([MISSING] * 1000, 640, budget_bytes=2**29)
    assert needed_bytes([MISSING] * 1000, 640) == 1000 * 640 * 480 * 3
    with pytest.raises(
        DataError, match=r"^1000 pictures at 640 px take 0\.86 GiB of memory, 0\.50 GiB may be used"
    ):
        pictures.fill()
    assert not pictures.filled


def test_the_budget_is_a_share_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yolov9kit.data.pixels.available_bytes", lambda: 2**30)
    with pytest.raises(DataError, match=r"take 0\.86 GiB of memory, 0\.80 GiB may be used"):
        PreparedPictures([MISSING] * 1000, 640).fill()


@pytest.mark.parametrize(
    ("limit", "used", "stat", "free"),
    [
        ("3000000\n", "1000000\n", "anon 400000\ninactive_file 500000\n", 2_500_000),
        ("1000\n", "5000\n", "anon 5000\n", 0),
        ("max\n", "1000000\n", "anon 1\n", None),
        (str(2**60), "0", "", None),
    ],
)
def test_a_containers_limit_counts(
    tmp_path: Path, limit: str, used: str, stat: str, free: int | None
) -> None:
    for name, text in {"memory.max": limit, "memory.current": used, "memory.stat": stat}.items():
        (tmp_path / name).write_text(text)
    if free is None:
        assert available_bytes(tmp_path) == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    else:
        assert available_bytes(tmp_path) == free


def test_without_a_container_the_machine_counts(tmp_path: Path) -> None:
    assert available_bytes(tmp_path) == pytest.approx(psutil.virtual_memory().available, rel=0.2)


@pytest.mark.parametrize("cached", [False, True])
def test_d19_a_picture_that_has_gone_bad_is_named(samples: list[Sample], cached: bool) -> None:
    whole = samples[3].path.read_bytes()
    samples[3].path.write_bytes(whole[: len(whole) // 2])
    pictures = PreparedPictures(samples, SIZE)
    with pytest.raises(DataError, match=r"3\.png.*readable when the data set was opened") as caught:
        pictures.fill() if cached else pictures.picture(3)
    assert "\n" not in str(caught.value)
    assert not pictures.filled


def test_a_picture_of_another_size_is_named(samples: list[Sample]) -> None:
    changed = [replace(samples[0], size_wh=(95, 64)), *samples[1:]]
    with pytest.raises(DataError, match=r"0\.png: 96 x 64 pixels, but 95 x 64 when the data set was opened"):
        PreparedPictures(changed, SIZE).picture(0)
