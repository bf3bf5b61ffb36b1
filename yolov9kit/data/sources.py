"""Where pictures come from: a file, folder, glob, list file, video, camera, or something in memory.

``open_source`` looks once at what was given and returns a ``Source``; iterating over it gives one picture at a
time, so that a day of video needs no more memory than a second. A picture that cannot be read comes as
``Failed``, and the next one follows.
"""

import codecs
import glob
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from yolov9kit.data.image import IMAGE_SUFFIXES, OnSize, decode_image, is_image_name
from yolov9kit.data.in_memory import Decode, unpack
from yolov9kit.data.video import VIDEO_SUFFIXES, frame_count, is_stream, is_video_name, video_frames
from yolov9kit.errors import PictureError, UsageError
from yolov9kit.types import Failed, printable
from yolov9kit.types import Picture as Picture  # named here too, beside what gives it

_CAMERA = re.compile(r"(?:camera )?([0-9]{1,3})")
_GLOB = re.compile(r"[*?\[]")


Pictures = Iterator[Picture | Failed]


@dataclass(frozen=True)
class PictureFile:
    """A file that holds one picture and can be read apart from all others, in any thread."""

    path: Path


@dataclass(frozen=True)
class Sequential:
    """Pictures that can only be read one after the other. ``pictures()`` starts anew each time.

    ``ahead``: they may be read before they are asked for. A video may; a camera shows what it sees when it is asked,
    and what lies in memory belongs to somebody else, who must not meet it in another thread.
    """

    pictures: Callable[[], Pictures]
    ahead: bool


Part = PictureFile | Sequential | Failed


@dataclass(frozen=True)
class Source:
    """``total``: number of pictures, None if nobody knows (a camera). ``parts()`` starts anew each time, in order."""

    description: str
    total: int | None
    parts: Callable[[], Iterator[Part]]

    def pictures(self) -> Pictures:
        """All pictures in order, each read when it is asked for."""
        for part in self.parts():
            if isinstance(part, PictureFile):
                yield read_picture(part.path)
            elif isinstance(part, Failed):
                yield part
            else:
                yield from part.pictures()

    def __iter__(self) -> Pictures:
        return self.pictures()


def open_source(source: Any, *, bgr: bool = False, stride: int = 1) -> Source:
    """Find out what ``source`` is.

    Args:
        source: path of a picture, video, folder, ``.txt`` list or glob; a camera number, also as text (``"0"``,
            ``"camera 0"``); the address of a stream; a PIL picture; a numpy array (H x W, H x W x 3 or 4, uint8 or
            uint16, RGB); a torch tensor (3 x H x W or B x 3 x H x W, RGB, uint8 or float 0..1, which is rounded to
            8 bits as in a file); or a list of such.
        bgr: numpy arrays hold blue first, as OpenCV reads them.
        stride: use every n-th frame of a video or camera.

    A name that exists is that file, also if it looks like a pattern. Folders and patterns leave out hidden files;
    ``**`` in a pattern stands for any number of folders. A list names one path a line, absolute or relative to the
    list's folder or the working folder; ``#`` starts a comment. Arrays are not copied where they need no change.

    Raises:
        PictureError: nothing is there.
        UsageError: something that is no source of pictures.
    """
    if stride < 1:
        raise UsageError(f"frame stride {stride}: must be at least 1")
    if isinstance(source, Source):
        if bgr or stride != 1:
            raise UsageError("bgr and stride are settings of open_source: this source is open already")
        return source
    return _open(source, bgr, stride, ())


def _open(source: Any, bgr: bool, stride: int, place: tuple[int, ...]) -> Source:
    """``place``: the indices that lead to this source through the lists around it."""
    if isinstance(source, Source):
        return source
    if isinstance(source, int | np.integer) and not isinstance(source, bool):
        if len(place) > 1:
            raise UsageError("numbers in a list in a list: give pixels as a numpy array")
        return _camera(int(source), stride)
    if isinstance(source, str):
        return _from_text(source, stride)
    if isinstance(source, os.PathLike):
        return _from_path(os.fsdecode(source), stride)
    if isinstance(source, list | tuple):
        return _from_sequence(source, bgr, stride, place)
    return _from_memory(unpack(source, bgr), place)


def _from_sequence(items: Sequence[Any], bgr: bool, stride: int, place: tuple[int, ...]) -> Source:
    if not items:
        raise PictureError("the list of pictures is empty")
    parts = []
    for i, item in enumerate(items):
        try:
            parts.append(_open(item, bgr, stride, (*place, i)))
        except PictureError as error:  # as in a folder: it comes when it is its turn
            parts.append(_failed(str(item), str(error)))
    totals = [part.total for part in parts]
    total = None if None in totals else sum(t for t in totals if t is not None)

    return Source(f"list of {len(items)}", total, lambda: chain.from_iterable(part.parts() for part in parts))


def _failed(path: str, error: str) -> Source:
    return Source(path, 1, lambda: iter((Failed(path, error),)))


def _from_memory(decodes: Sequence[Decode], place: tuple[int, ...]) -> Source:
    places = [(*place, i) for i in range(len(decodes))] if len(decodes) > 1 else [place or (0,)]
    names = ["picture " + "-".join(map(str, numbers)) for numbers in places]

    def pictures() -> Pictures:
        for decode, name in zip(decodes, names, strict=True):
            start = time.perf_counter()
            try:
                decoded = decode(name)
            except PictureError as error:
                yield Failed(name, str(error))
                continue
            spent = (time.perf_counter() - start) * 1000
            yield Picture(decoded.pixels, name, notes=decoded.notes, decode_ms=spent)

    return Source(
        f"{len(decodes)} in memory", len(decodes), lambda: iter((Sequential(pictures, ahead=False),))
    )


# ---------------------------------------------------------------------------------------------- names


def _from_text(text: str, stride: int) -> Source:
    if not text.strip():
        raise UsageError(f"source {text!r}: name a picture, a video, a folder, a list or a camera number")
    if is_stream(text):
        return _stream(text, re.sub(r"(?<=://)[^/@]*@", "", text), stride)  # the name holds no password
    camera = _CAMERA.fullmatch(text.strip())
    if camera and os.path.lexists(text):
        raise UsageError(
            f"source {text!r}: there is a file or folder of this name, and it is a camera number. "
            f"Write './{text}', or 'camera {camera[1]}' from another folder"
        )
    return _camera(int(camera[1]), stride) if camera else _from_path(text, stride)


def _from_path(text: str, stride: int) -> Source:
    path = Path(text if os.path.lexists(text) else os.path.expanduser(text))
    if os.path.isdir(path):
        return _folder(path, stride)
    if os.path.lexists(path):  # a link to nothing is told from a name that is not there
        return (
            _list_file(path, stride) if path.suffix.lower() == ".txt" else _files([path], str(path), stride)
        )
    shown = printable(text if len(text) <= 300 else f"{text[:300]}…")
    if _GLOB.search(text):
        failed: list[Failed] = []
        found = _matches(str(path), failed)
        media = [p for p in found if _is_media(p)]
        if not media and not failed:
            raise PictureError(
                f"{shown}: no such file, and as a pattern it matches {len(found)} files and folders, none of them a "
                "picture or video"
            )
        return _files([*media, *failed], text, stride)
    raise PictureError(
        f"{shown}: no such file or folder (looked in {printable(str(path.absolute().parent))})"
    )


def _is_media(path: Path) -> bool:
    return (is_image_name(path) or is_video_name(path)) and not os.path.isdir(path)


def _folder(folder: Path, stride: int) -> Source:
    shown = printable(str(folder))
    try:
        inside = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    except OSError as error:
        raise PictureError(f"{shown}: cannot be listed ({error.strerror})") from None
    media = [p for p in inside if _is_media(p)]
    if not media:
        below = sum(1 for p in folder.glob("*/*") if _is_media(p))
        hint = f"; {below} lie one folder below: try '{shown}/**/*'" if below else ""
        raise PictureError(
            f"{shown}: no pictures or videos among its {len(inside)} entries{hint}. "
            f"Known endings: {' '.join(sorted(s[1:] for s in IMAGE_SUFFIXES | VIDEO_SUFFIXES))}"
        )
    return _files(media, str(folder), stride)


def _matches(pattern: str, failed: list[Failed]) -> list[Path]:
    """What the pattern matches, sorted, each once. Folders in front that exist are meant as they are written."""
    parts = Path(pattern).parts
    known = 0
    while known < len(parts) - 1 and os.path.isdir(os.path.join(*parts[: known + 1])):
        known += 1
    found = [os.path.join(*parts[:known]) if known else ""]
    rest = [*parts[known:], "*"] if parts[-1] == "**" else parts[known:]
    for part in rest:
        if part == "**":
            found = [below for start in found for below in _folders(start, failed)]
        else:
            found = [os.path.join(f, name) for f in found for name in glob.glob(part, root_dir=f or None)]
    return [Path(name) for name in sorted(set(found))]


def _folders(start: str, failed: list[Failed]) -> Iterator[str]:
    """A folder and all below it, links followed, but each only once: a link may lead back up."""
    waiting, seen = [start], set()
    while waiting:
        folder = waiting.pop()
        try:
            status = os.stat(folder or ".")
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            names = sorted(
                (entry.name for entry in os.scandir(folder or ".") if entry.is_dir()), reverse=True
            )
        except OSError as error:
            failed.append(Failed(folder, f"{printable(folder)}: cannot be listed ({error.strerror})"))
            continue
        waiting += [os.path.join(folder, name) for name in names if not name.startswith(".")]
        yield folder


def _list_file(path: Path, stride: int) -> Source:
    shown = printable(str(path))
    try:
        content = path.read_bytes()
        utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # as PowerShell writes
        text = content.decode("utf-16" if utf16 else "utf-8-sig")
    except OSError as error:
        raise PictureError(f"{shown}: cannot be read as a list of pictures ({error.strerror})") from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise PictureError(f"{shown}, line {line}: not UTF-8 text; save the list as UTF-8") from None
    lines = [line.strip() for line in re.split(r"\r\n|\r|\n", text)]
    names = [line for line in lines if line and not line.startswith("#")]
    if not names:
        raise PictureError(f"{shown}: the list names no picture")
    return _files([_listed(name, path.parent) for name in names], str(path), stride)


def _listed(name: str, folder: Path) -> Path:
    """The file that a line of a list means; the first guess where there is none."""
    spellings = [name] if os.sep == "\\" else [name, name.replace("\\", "/")]  # lists travel between systems
    places = [Path(base, spelling) for spelling in spellings for base in (folder, "")]
    places.append(Path(os.path.expanduser(name)))
    return next((place for place in places if os.path.lexists(place)), places[0])


def _files(paths: Sequence[Path | Failed], description: str, stride: int) -> Source:
    """Pictures and videos. What could not be looked at before comes as it is."""
    # text, because a folder may hold a million: a Path takes four times the memory
    names = [path if isinstance(path, Failed) else str(path) for path in paths]

    def parts() -> Iterator[Part]:
        for name in names:
            if isinstance(name, Failed):
                yield name
            elif is_video_name(name):
                yield Sequential(partial(video_frames, name, name, stride), ahead=True)
            else:
                yield PictureFile(Path(name))

    counts = [
        frame_count(name, stride) if isinstance(name, str) and is_video_name(name) else 1 for name in names
    ]
    total = None if None in counts else sum(count for count in counts if count is not None)
    return Source(description, total, parts)


def read_picture(path: Path, on_size: OnSize | None = None) -> Picture | Failed:
    """The picture of a file, or why it cannot be read. ``on_size``: see ``decode_image``."""
    start = time.perf_counter()
    waited = 0.0

    def told(width: int, height: int) -> None:
        nonlocal waited
        if on_size is not None:
            asked = time.perf_counter()
            on_size(width, height)
            waited = time.perf_counter() - asked

    try:
        decoded = decode_image(path, on_size=told)
    except PictureError as error:
        return Failed(str(path), str(error))
    spent = (time.perf_counter() - start - waited) * 1000
    return Picture(decoded.pixels, str(path), notes=decoded.notes, decode_ms=spent)


# ---------------------------------------------------------------------------------------------- live


def _camera(number: int, stride: int) -> Source:
    if not 0 <= number <= 999:
        raise UsageError(f"camera {number}: camera numbers go from 0 to 999")
    return _stream(number, f"camera {number}", stride)


def _stream(address: int | str, name: str, stride: int) -> Source:
    frames = Sequential(partial(video_frames, address, name, stride), ahead=False)
    return Source(name, None, lambda: iter((frames,)))
