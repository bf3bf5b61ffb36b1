"""Files that appear when they are whole: JSON lists, pictures, annotated videos."""

import io
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from yolov9kit.errors import KitError, UsageError


class PartFile:
    """A text file that appears under its name when it is finished; until then it is written beside it.

    Undecodable bytes of file names are written as escapes, which in JSON mean those very bytes.

    Raises:
        KitError: it cannot be written there.
    """

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise UsageError(f"{path}: is a folder; name a file to write")
        self._path = path
        self._beside = path.with_name(f".{os.getpid()}-{id(self):x}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self.text: TextIO = self._beside.open(
                "w", newline="", encoding="utf-8", errors="backslashreplace"
            )
        except OSError as error:
            raise KitError(f"{path}: cannot be written ({error.strerror})") from error

    def finish(self) -> None:
        try:
            self.text.close()
            os.replace(self._beside, self._path)
        except BaseException:
            self.abandon()
            raise

    def abandon(self) -> None:
        try:
            self.text.close()
        finally:
            self._beside.unlink(missing_ok=True)


class JsonStream:
    """A JSON list that grows, alone or as the last member of an object; the file appears when it is closed."""

    def __init__(self, path: Path, head: Mapping[str, Any] | None, member: str = "") -> None:
        opening, self._end = "[", "]"
        if head is not None:
            opening = "{" + ", ".join([*(_member(k, v) for k, v in head.items()), f"{json.dumps(member)}: ["])
            self._end = "]}"
        self._file = PartFile(path)
        self._file.text.write(opening)
        self._first = True

    def add(self, item: Any) -> None:
        self._file.text.write(("\n" if self._first else ",\n") + _json(item))
        self._first = False

    def close(self, tail: Mapping[str, Any] | None = None) -> None:
        """Finish the list; ``tail`` are members that follow it in the object."""
        members = "".join(f",\n{_member(k, v)}" for k, v in (tail or {}).items())
        self._file.text.write(f"\n{self._end[0]}{members}{self._end[1:]}\n")
        self._file.finish()

    def abandon(self) -> None:
        self._file.abandon()


def _json(value: Any) -> str:
    # NaN is no JSON: a reader would refuse the whole file
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _member(name: str, value: Any) -> str:
    return f"{json.dumps(name)}: {_json(value)}"


def write_bytes(path: Path, content: bytes) -> None:
    """All of it or nothing, also when it is interrupted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


_KINDS = {".png": "PNG", ".bmp": "BMP", ".webp": "WEBP", ".jpg": "JPEG"}
_MOST_PIXELS = {".jpg": 65500, ".webp": 16383}


def save_picture(path_without_ending: Path, pixels: np.ndarray, like: str) -> None:
    """In the format that the file ``like`` has, if it is one of ours; else as JPEG, or PNG where that is too small."""
    from PIL import Image

    ending = Path(like).suffix.lower()
    ending = ending if ending in _KINDS else ".jpg"
    if max(pixels.shape) > _MOST_PIXELS.get(ending, max(pixels.shape)):
        ending = ".png"
    encoded = io.BytesIO()
    # 4:4:4, or thin coloured lines would smear
    options: dict[str, Any] = {"subsampling": 0} if ending == ".jpg" else {}
    Image.fromarray(np.ascontiguousarray(pixels)).save(encoded, _KINDS[ending], quality=95, **options)
    write_bytes(path_without_ending.with_name(path_without_ending.name + ending), encoded.getvalue())


class AnnotatedVideo:
    """An annotated video. ``fps`` is held between 1 and 1000 and rounded: the encoder aborts on odd rates."""

    def __init__(self, path: Path, clip: str, shape: tuple[int, ...], fps: float) -> None:
        import cv2

        path.parent.mkdir(parents=True, exist_ok=True)
        self.clip, self.shape, self._path = clip, shape, path
        rate = min(max(round(fps, 2), 1.0), 1000.0)
        self._writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), rate, (shape[1], shape[0]))
        if not self._writer.isOpened():
            raise KitError(f"{path}: the annotated video cannot be written (OpenCV has no MP4 writer for it)")

    def add(self, rgb: np.ndarray) -> None:
        import cv2

        self._writer.write(cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))

    def close(self) -> None:
        self._writer.release()
        if not self._path.is_file() or not self._path.stat().st_size:  # the writer itself reports nothing
            raise KitError(f"{self._path}: the annotated video was not written (is the disk full?)")
