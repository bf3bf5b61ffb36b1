"""Videos frame by frame: numbers, stride, a truncated file, cameras that are not there, constant memory."""

import os
import shutil
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from yolov9kit.data.video import frame_count, is_stream, is_video_name, video_frames
from yolov9kit.types import Failed, Picture

MakeVideo = Callable[..., Path]


def pictures(items: Iterator[Picture | Failed]) -> list[Picture]:
    found = list(items)
    assert all(isinstance(item, Picture) for item in found), found
    return found  # type: ignore[return-value]


def failure(address: int | str, name: str = "x") -> str:
    """Why there is no picture at all."""
    (item,) = video_frames(address, name)
    assert isinstance(item, Failed) and item.path == name and item.error.startswith(f"{name}: ")
    assert len(item.error.splitlines()) == 1
    return item.error


@pytest.mark.parametrize("name", ["v.mp4", "v.avi", "v.mkv", "UPPER CASE 视频 1.2.MP4"])
def test_every_frame_in_order(make_video: MakeVideo, name: str) -> None:
    path = str(make_video(name, frames=12, size=(64, 48), fps=12.5))
    found = pictures(video_frames(path, path))
    assert [picture.frame for picture in found] == list(range(12)) and frame_count(path) == 12
    for i, picture in enumerate(found):
        assert picture.pixels.shape == (48, 64, 3) and picture.pixels.dtype == np.uint8
        assert abs(picture.pixels.mean() - 8 * i) < 4
        assert (picture.path, picture.video_fps) == (path, 12.5) and picture.decode_ms > 0


@pytest.mark.parametrize("frames", [1, 10, 12])
@pytest.mark.parametrize("stride", [1, 2, 5, 100])
def test_stride_gives_every_nth_frame_with_its_own_number(
    make_video: MakeVideo, frames: int, stride: int
) -> None:
    path = str(make_video(frames=frames))
    found = pictures(video_frames(path, path, stride))
    assert [picture.frame for picture in found] == list(range(0, frames, stride))
    assert len(found) == frame_count(path, stride)
    for picture in found:
        assert picture.frame is not None and abs(picture.pixels.mean() - 8 * picture.frame) < 4
        assert picture.video_fps == 10 / stride


def test_colours_are_red_green_blue(tmp_path: Path) -> None:
    import cv2

    writer = cv2.VideoWriter(str(tmp_path / "red.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 5, (32, 32))
    writer.write(np.full((32, 32, 3), (0, 0, 255), np.uint8))  # OpenCV writes blue first
    writer.release()
    (picture,) = pictures(video_frames(str(tmp_path / "red.avi"), "red.avi"))
    assert picture.pixels[..., 0].min() > 240 and picture.pixels[..., 1:].max() < 15


@pytest.mark.parametrize("name", ["v.avi", "v.mkv"])
def test_a_truncated_video_gives_what_is_there_and_then_says_so(make_video: MakeVideo, name: str) -> None:
    path = make_video(name, frames=30)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    *found, last = video_frames(str(path), "cut")
    assert 5 < len(found) < 29 and all(isinstance(item, Picture) for item in found)
    assert isinstance(last, Failed)
    assert last.error == f"cut: ends after {len(found)} of 30 frames: cut off or damaged"


def test_a_truncated_mp4_lacks_its_index_and_is_refused(make_video: MakeVideo) -> None:
    path = make_video("v.mp4", frames=30)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert failure(str(path)) == "x: cannot be opened as a video"
    assert frame_count(str(path)) == 1


class _Capture:
    """Stands in for OpenCV's reader: a stream as it may come."""

    frames: ClassVar[int] = 0
    said: ClassVar[dict[int, float]] = {}
    open: ClassVar[bool] = True
    released: ClassVar[int] = 0

    def __init__(self, _address: object) -> None:
        self.given = 0

    def isOpened(self) -> bool:  # noqa: N802
        return self.open

    def get(self, what: int) -> float:
        import cv2

        if what == cv2.CAP_PROP_POS_MSEC:
            return 1000.0 * (self.given - 1)  # a frame a second, whatever rate is stated
        return self.said.get(what, 0.0)

    def grab(self) -> bool:
        self.given += 1
        return self.given <= self.frames

    def read(self) -> tuple[bool, np.ndarray | None]:
        there = self.grab()
        return there, np.zeros((4, 4, 3), np.uint8) if there else None

    def release(self) -> None:
        type(self).released += 1


@pytest.fixture
def capture(monkeypatch: pytest.MonkeyPatch) -> type[_Capture]:
    import cv2

    class Capture(_Capture):
        said: ClassVar[dict[int, float]] = {}

    monkeypatch.setattr(cv2, "VideoCapture", Capture)
    return Capture


def test_a_varying_frame_rate_is_not_taken_for_damage(capture: Any) -> None:
    """Ten frames of a second each, in a file that says 30 a second: OpenCV reckons 300."""
    import cv2

    capture.frames, capture.said = 10, {cv2.CAP_PROP_FPS: 30.0, cv2.CAP_PROP_FRAME_COUNT: 300.0}
    assert len(pictures(video_frames("http://x/v.mkv", "v"))) == 10
    capture.frames = 5
    *found, last = video_frames("http://x/v.mkv", "v")
    assert len(found) == 5 and isinstance(last, Failed)
    assert "ends after 5 of 300 frames" in last.error


@pytest.mark.parametrize("expected", [11.0, 10.0, 9.0, 0.0, -1.0, -9.2e18])
def test_a_miscount_by_one_and_nonsense_counts_are_not_damage(capture: Any, expected: float) -> None:
    import cv2

    capture.frames, capture.said = 10, {cv2.CAP_PROP_FPS: 1.0, cv2.CAP_PROP_FRAME_COUNT: expected}
    assert len(pictures(video_frames("http://x/v.mp4", "v"))) == 10


@pytest.mark.parametrize("stated", [0.0, -1.0, float("nan"), float("inf"), 90_000.0])
def test_a_nonsense_frame_rate_becomes_25(capture: Any, stated: float) -> None:
    import cv2

    capture.frames, capture.said = 2, {cv2.CAP_PROP_FPS: stated}
    first, *_ = video_frames(0, "camera 0")
    assert isinstance(first, Picture) and first.video_fps == 25


def test_a_camera_that_stops_is_told(capture: Any) -> None:
    capture.frames = 3
    *found, last = video_frames(0, "camera 0")
    assert len(found) == 3
    assert last == Failed("camera 0", "camera 0: the camera stopped after 3 frames")
    capture.frames = 0
    assert list(video_frames(0, "camera 0")) == [Failed("camera 0", "camera 0: the camera gives no picture")]
    capture.open = False
    assert "no such camera, or it is in use" in failure(0, "camera 0")


def test_opencv_faults_become_failures(capture: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    def broken(self: object) -> None:
        raise cv2.error("OpenCV: two\nlines")

    capture.frames = 3
    monkeypatch.setattr(capture, "read", broken)
    assert failure("http://x/v.mp4") == "x: broken video (OpenCV: two lines)"
    assert capture.released == 1


def test_the_reader_is_released_when_iterating_stops(capture: Any) -> None:
    capture.frames = 100
    frames = video_frames("http://x/v.mp4", "v")
    next(frames)
    assert capture.released == 0
    frames.close()  # type: ignore[attr-defined]
    assert capture.released == 1


def test_a_camera_that_does_not_exist_is_a_clear_failure() -> None:
    assert failure(97, "camera 97") == "camera 97: no such camera, or it is in use"


def test_what_is_no_video_file(tmp_path: Path, make_video: MakeVideo) -> None:
    (tmp_path / "empty.mp4").write_bytes(b"")
    (tmp_path / "text.mp4").write_text("no video, but long enough to be looked at\n" * 50)
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "gone.mp4").symlink_to(tmp_path / "nowhere.mp4")
    (tmp_path / "loop.mp4").symlink_to(tmp_path / "loop.mp4")
    os.mkfifo(tmp_path / "pipe.mp4")
    reasons = {
        "empty": "the file is empty (0 bytes)",
        "text": "cannot be opened as a video",
        "folder": "a folder, not a video file",
        "gone": "cannot be read (No such file or directory)",
        "loop": "cannot be read (Too many levels of symbolic links)",
        "pipe": "a pipe, socket or device, not a video file",
    }
    for stem, reason in reasons.items():
        path = str(tmp_path / f"{stem}.mp4")
        assert failure(path) == f"x: {reason}"
        assert frame_count(path) == 1
    assert "embedded null byte" in failure("a\0b.mp4")


def test_a_file_that_may_not_be_read(make_video: MakeVideo, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(make_video())
    monkeypatch.setattr(
        os, "access", lambda *_: False
    )  # the tests may run as someone who may read everything
    assert failure(path) == "x: cannot be read (Permission denied)"


def test_a_name_that_opencv_crashes_on_is_refused(make_video: MakeVideo, tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.mp4")
    shutil.copy(make_video(), path)
    (item,) = video_frames(path, path)
    assert isinstance(item, Failed) and item.path == path
    assert "caf\\udce9.mp4: a video's file name must be valid UTF-8: rename it" in item.error
    assert item.error.isprintable() and frame_count(path) == 1


def test_memory_does_not_grow_with_the_video(make_video: MakeVideo) -> None:
    path = str(make_video(frames=60))
    alive: list[weakref.ref[np.ndarray]] = []
    most = 0
    for picture in video_frames(path, path):
        assert isinstance(picture, Picture)
        alive.append(weakref.ref(picture.pixels))
        most = max(most, sum(ref() is not None for ref in alive))
        del picture
    assert len(alive) == 60 and most <= 2


def test_names() -> None:
    assert is_video_name("a.MP4") and is_video_name(Path("x/b.webm")) and not is_video_name("mp4")
    assert (
        is_stream("RTSP://host/1")
        and is_stream("https://x")
        and not is_stream("file:///a")
        and not is_stream("a/b")
    )
