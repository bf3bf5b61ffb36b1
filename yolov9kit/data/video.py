"""Video files, streams and cameras → one frame at a time, RGB.

OpenCV decodes. It ends the whole process on some file names and camera numbers, which are therefore refused
before it sees them.
"""

import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from yolov9kit.types import Failed, Picture, printable

_SUFFIXES = "mp4 avi mov mkv webm m4v mpg mpeg wmv ts asf flv 3gp mts m2ts"
VIDEO_SUFFIXES = frozenset(f".{suffix}" for suffix in _SUFFIXES.split())
_STREAM = re.compile(r"^(rtsp|rtmp|rtp|udp|tcp|http|https)://", re.IGNORECASE)


def is_video_name(path: str | os.PathLike[str]) -> bool:
    """Whether the suffix, in any case, is one of ``VIDEO_SUFFIXES``. The file is not opened."""
    return Path(path).suffix.lower() in VIDEO_SUFFIXES


def is_stream(text: str) -> bool:
    """Whether this is the address of a stream and not the name of a file."""
    return _STREAM.match(text) is not None


def frame_count(path: str, stride: int = 1) -> int | None:
    """How many frames ``video_frames`` is going to give, as the file says; None if it does not say."""
    if _why_unreadable(path):
        return 1  # one Failed
    import cv2

    capture = cv2.VideoCapture(path)
    try:
        count = int(capture.get(cv2.CAP_PROP_FRAME_COUNT)) if capture.isOpened() else 1
    finally:
        capture.release()
    return -(-count // stride) if count > 0 else None


def video_frames(address: int | str, name: str, stride: int = 1) -> Iterator[Picture | Failed]:
    """Every ``stride``-th frame of a video file, stream or camera.

    What cannot be opened, and what ends before it should, comes as ``Failed``.
    """
    shown = printable(name)
    why = _why_unreadable(address) if isinstance(address, str) and not is_stream(address) else None
    if why:
        yield Failed(name, f"{shown}: {why}")
        return
    import cv2

    capture = cv2.VideoCapture(address)
    try:
        if not capture.isOpened():
            camera = isinstance(address, int)
            what = "no such camera, or it is in use" if camera else "cannot be opened as a video"
            yield Failed(name, f"{shown}: {what}")
            return
        given = float(capture.get(cv2.CAP_PROP_FPS))
        fps = given if 0 < given <= 1000 else 25.0  # cameras often say 0, some containers nonsense
        index, milliseconds = 0, 0.0
        while True:
            start = time.perf_counter()
            wanted = index % stride == 0
            there, frame = capture.read() if wanted else (capture.grab(), None)
            if not there:
                break
            milliseconds = capture.get(cv2.CAP_PROP_POS_MSEC)
            if frame is not None:
                pixels = cv2.cvtColor(frame, cv2.COLOR_BGR2RGB)
                spent = (time.perf_counter() - start) * 1000
                yield Picture(pixels, name, frame=index, decode_ms=spent, video_fps=fps / stride)
            index += 1
        expected = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
        why = _why_short(isinstance(address, int), index, expected, milliseconds * fps / 1000)
        if why:
            yield Failed(name, f"{shown}: {why}")
    except cv2.error as error:
        yield Failed(name, f"{shown}: broken video ({' '.join(str(error).split())})")
    finally:
        capture.release()


def _why_unreadable(path: str) -> str | None:
    """What is wrong with a file before it is opened. OpenCV would wait for a pipe, and crash on some names."""
    try:
        path.encode()
        status = os.stat(path)
    except UnicodeEncodeError:
        return "a video's file name must be valid UTF-8: rename it"
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return f"cannot be read ({reason})"
    if not stat.S_ISREG(status.st_mode):
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, socket or device"
        return f"{what}, not a video file"
    if not os.access(path, os.R_OK):
        return "cannot be read (Permission denied)"
    return "the file is empty (0 bytes)" if status.st_size == 0 else None


def _why_short(camera: bool, frames: int, expected: int, last: float) -> str | None:
    """What is wrong with an end after ``frames`` frames, the last of them at ``last`` frame lengths.

    Containers often miscount by one. Some state no count but a duration, from which OpenCV reckons one: where the
    frame rate varies only the time tells whether the end was reached, give or take two frames of mean length.
    """
    if camera:
        return f"the camera stopped after {frames} frames" if frames else "the camera gives no picture"
    if not frames:
        return "the video has no frame that can be decoded"
    mean = max(last / max(frames - 1, 1), 1.0)
    if frames < expected - 1 and last + 2 * mean < expected:
        return f"ends after {frames} of {expected} frames: cut off or damaged"
    return None
