"""Which pictures are taken: the first ones, all readable, with an end."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from yolov9kit import sample_pictures
from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.benchmark.pictures import HELD_FRAMES, choose_pictures, cycled, in_memory
from yolov9kit.errors import PictureError, UsageError


def test_without_a_source_they_are_the_sample_boards() -> None:
    chosen = choose_pictures(BenchmarkConfig(pictures=3), None)
    assert [Path(item).parent for item in chosen.items] == [sample_pictures()] * 3
    assert chosen.description.startswith("sample boards") and chosen.notes == ()


def test_the_first_pictures_of_a_folder(photos: Path) -> None:
    chosen = choose_pictures(BenchmarkConfig(source=str(photos), pictures=2), None)
    assert chosen.items == (photos / "photo 0.png", photos / "photo 1.png")
    assert len(choose_pictures(BenchmarkConfig(source=str(photos)), None).items) == 5


def test_frames_of_a_video_are_held_and_that_is_said(tmp_path: Path) -> None:
    video = tmp_path / "clip.avi"
    writer = cv2.VideoWriter(str(video), cv2.VideoWriter.fourcc(*"MJPG"), 10, (64, 48))
    for shade in (0, 100, 200):
        writer.write(np.full((48, 64, 3), shade, np.uint8))
    writer.release()
    chosen = choose_pictures(BenchmarkConfig(source=str(video)), None)
    assert [np.asarray(item).shape for item in chosen.items] == [(48, 64, 3)] * 3
    assert chosen.notes == (HELD_FRAMES,)


def test_a_camera_has_no_end() -> None:
    with pytest.raises(UsageError, match="source 0: runs on without an end"):
        choose_pictures(BenchmarkConfig(source="0"), None)


def test_a_picture_that_cannot_be_read_is_an_error_before_anything_is_timed(tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(PictureError, match=r"broken\.png"):
        choose_pictures(BenchmarkConfig(source=str(tmp_path)), None)


def test_all_again_and_again_until_there_are_enough() -> None:
    paths = [Path("a"), Path("b"), Path("c")]
    assert cycled(paths, 7) == [*paths, *paths, Path("a")]
    assert cycled(paths, 2) == paths[:2]


def test_in_memory_they_are_decoded(photos: Path) -> None:
    held = np.zeros((4, 4, 3), np.uint8)
    first, second = in_memory([photos / "photo 0.png", held])
    assert np.asarray(first).shape == (64, 96, 3) and second is held
