"""What is known of a picture from decoding it once, remembered outside the data set.

Nothing is ever written beside the pictures. A file under the user's cache folder holds the facts of one split's
pictures; an entry counts only while size, both times and the inode of its picture are those it was made from.
Losing that file costs time, nothing else.
"""

import base64
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import PIL

from yolov9kit.cache import cache_folder, write_whole
from yolov9kit.data.image import decode_image
from yolov9kit.errors import PictureError

# Another decoder may judge otherwise, so its facts start anew.
_FORMAT = f"yolov9kit pictures 2, Pillow {PIL.__version__}"
_AT_ONCE = 16  # pictures that a thread takes: one by one, handing over costs more than a known picture
_SAVE_EVERY_S = 10.0

LOOK_SIDE = 12
"""``Checked.look`` is the picture at this size, in gray."""
_FLAT = 4.0  # standard deviation of gray levels below which noise and compression decide what a picture looks like
# Every so many-th pixel is enough. OpenCV halves its time where the side is a multiple of LOOK_SIDE, and starts no
# threads of its own for so few pixels.
_SAMPLED_SIDE = 21 * LOOK_SIDE
_DIGEST = re.compile(r"(?:[0-9a-f]{32})?")
_LOOK = re.compile(r"(?:[A-Za-z0-9+/]{192})?")

Identity = tuple[int, int, int, int]
"""Size in bytes, mtime and ctime in ns, inode. The ctime cannot be set back, so a forged mtime is noticed."""


@dataclass(frozen=True)
class Checked:
    """What one picture told when it was decoded.

    Attributes:
        size_wh: of the upright picture in pixels, (0, 0) where it cannot be used.
        error: why it cannot be used, in words; "" where it can.
        notes: what the decoder converted, in words.
        lasting: False for errors that may have passed next time.
        fault: the code of the error: "picture_empty" and so on.
        note_codes: the code of each note.
        kind: the format by content, as Pillow calls it: "JPEG". "" where there is an error.
        mode: how the colours are stored: Pillow's mode, with ";16" where it stands for 16 bits a channel.
        orientation: 1 to 8, as EXIF counts.
        frames: pictures in the file; 2 stands for two or more where counting them means reading the whole file.
        bytes: size of the file.
        digest: BLAKE2b of the file's bytes, 128 bits in hex; "" where there is an error.
        look: the upright picture as 12 x 12 gray levels, base64 of 144 bytes; "" where there is an error, and for
            pictures that are flat at this size.
        decode_ms: processor time of reading and decoding, when that was last done.
    """

    size_wh: tuple[int, int]
    error: str = ""
    notes: tuple[str, ...] = ()
    lasting: bool = True
    fault: str = ""
    note_codes: tuple[str, ...] = ()
    kind: str = ""
    mode: str = ""
    orientation: int = 1
    frames: int = 1
    bytes: int = 0
    digest: str = ""
    look: str = ""
    decode_ms: float = field(default=0.0, compare=False)


def check_picture(path: Path) -> Checked:
    """Decodes the whole picture, because a cut-off file has a sound header. Never raises for a bad picture."""
    begun = time.thread_time()  # of this thread alone: the others decode at the same time
    try:
        image = decode_image(path, name="picture")
        spent = time.thread_time() - begun
        size, digest = _size_and_digest(path)
    except PictureError as fault:
        # the system's own errors have a cause with a number: a lost share, no permission, no memory
        passing = isinstance(fault.__cause__, MemoryError) or (
            isinstance(fault.__cause__, OSError) and fault.__cause__.errno is not None
        )
        reason = str(fault).removeprefix("picture: ")
        return Checked((0, 0), reason, lasting=not passing, fault=fault.code)
    except OSError as fault:
        reason = f"cannot be read ({fault.strerror or fault})"
        return Checked((0, 0), reason, lasting=False, fault="picture_unreadable")
    height, width, _ = image.pixels.shape
    return Checked(
        size_wh=(width, height),
        notes=image.notes,
        note_codes=image.note_codes,
        kind=image.kind,
        mode=image.mode,
        orientation=image.orientation,
        frames=image.frames,
        bytes=size,
        digest=digest,
        look=_look(image.pixels),
        decode_ms=round(1000 * spent, 2),
    )


def _size_and_digest(path: Path) -> tuple[int, str]:
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, lambda: hashlib.blake2b(digest_size=16))
        return stream.tell(), digest.hexdigest()


def _look(pixels: np.ndarray) -> str:
    """``Checked.look`` of a picture, H x W x 3."""
    import cv2

    pixels = cv2.resize(pixels, (_SAMPLED_SIDE, _SAMPLED_SIDE), interpolation=cv2.INTER_NEAREST)
    gray = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
    small = cv2.resize(gray, (LOOK_SIDE, LOOK_SIDE), interpolation=cv2.INTER_AREA)
    return base64.b64encode(small.tobytes()).decode() if small.std() >= _FLAT else ""


def facts_file(split: str, sources: Sequence[Path]) -> Path:
    """Where the facts of a split are kept: each split of each data set has a file of its own.

    Not absolute where the system knows no home folder.
    """
    key = json.dumps([split, *(str(source.resolve()) for source in sources)])
    digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    return cache_folder() / "pictures" / f"{digest}.json"


_Result = tuple[Identity | None, Checked, bool]
"""Identity, facts, and whether they were known before."""


class PictureFacts:
    """Facts of pictures, from ``file`` where they still hold. ``file`` None: nothing is remembered.

    ``decoded`` counts the pictures that had to be decoded.
    """

    def __init__(self, file: Path | None) -> None:
        self.decoded = 0
        self._file = file
        self._known = _load(file) if file is not None else {}
        self._fresh: dict[str, tuple[Identity, Checked]] = {}
        self._wanted: set[str] = set()

    def check(self, paths: Sequence[Path]) -> Generator[Checked, None, None]:
        """The facts of each picture, in order. Several threads decode; closing the iterator ends them.

        What was found is saved from time to time, so that a scan that is killed goes on where it was.
        """
        self._wanted.update(map(str, paths))
        threads = ThreadPoolExecutor(min(os.cpu_count() or 1, 16), "check-pictures")
        stop = threading.Event()
        saved = time.monotonic()
        try:
            groups = [paths[i : i + _AT_ONCE] for i in range(0, len(paths), _AT_ONCE)]
            for group, results in zip(groups, threads.map(self._checking(stop), groups), strict=True):
                for path, (identity, checked, known) in zip(group, results, strict=True):
                    self.decoded += not known
                    if identity is not None and checked.lasting:
                        self._fresh[str(path)] = identity, checked
                    yield checked
                if time.monotonic() - saved > _SAVE_EVERY_S:
                    self.save()  # where that fails, the save at the end says why
                    saved = time.monotonic()
        finally:
            stop.set()
            threads.shutdown(cancel_futures=True)

    def save(self) -> str:
        """Remembers what ``check`` found, that of an interrupted one too. Returns why that failed, else ``""``."""
        if self._file is None or self._fresh.items() <= self._known.items():
            return ""
        if not self._file.is_absolute():
            return "no home folder"
        entries = {
            path: _written(*entry)
            for path, entry in (self._known | self._fresh).items()
            if path in self._wanted  # the entries of pictures that are gone go too
        }
        try:
            text = json.dumps({"format": _FORMAT, "pictures": entries}, separators=(",", ":"))
            write_whole(self._file, lambda file: file.write_text(text, encoding="ascii"))
        except OSError as fault:
            return f"{self._file}: {fault.strerror or fault}"
        return ""

    def _checking(self, stop: threading.Event) -> Callable[[Sequence[Path]], list[_Result]]:
        def check_group(paths: Sequence[Path]) -> list[_Result]:
            return [self._check_one(path) for path in paths if not stop.is_set()]

        return check_group

    def _check_one(self, path: Path) -> _Result:
        try:
            status = os.stat(path)
        except OSError:
            return None, check_picture(path), False
        identity = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        known = self._known.get(str(path))
        if known is not None and known[0] == identity:
            return identity, known[1], True
        return identity, check_picture(path), False


def _load(file: Path) -> dict[str, tuple[Identity, Checked]]:
    """What the file remembers; nothing of a file, or an entry, that is damaged or of another format."""
    try:
        content = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    match content:
        case {"format": str(form), "pictures": dict(entries)} if form == _FORMAT:
            read = {path: _entry(entry) for path, entry in entries.items()}
            return {path: entry for path, entry in read.items() if entry is not None}
    return {}


def _written(identity: Identity, checked: Checked) -> list[object]:
    """What stands for a picture in the file, as ``_entry`` reads it."""
    if checked.error:
        return [identity, checked.error, checked.fault]
    stored = [checked.kind, checked.mode, checked.orientation, checked.frames]
    told = [checked.notes, checked.note_codes, checked.digest, checked.look, checked.decode_ms]
    return [identity, *checked.size_wh, *stored, *told]


def _entry(value: object) -> tuple[Identity, Checked] | None:
    match value:
        case [[int(a), int(b), int(c), int(d)], str(error), str(fault)] if error and fault:
            return (a, b, c, d), Checked((0, 0), error, fault=fault)
        case [[int(a), int(b), int(c), int(d)], int(width), int(height), *rest] if width > 0 < height:
            stored = _stored(a, (width, height), rest)
            return None if stored is None else ((a, b, c, d), stored)
    return None


def _stored(size: int, size_wh: tuple[int, int], rest: Sequence[object]) -> Checked | None:
    match rest:
        case [str(kind), str(mode), int(turned), int(frames), list(notes), list(codes), *last]:
            words, tags = tuple(map(str, notes)), tuple(map(str, codes))
        case _:
            return None
    match last:
        case [str(digest), str(look), float(spent)] if _DIGEST.fullmatch(digest) and _LOOK.fullmatch(look):
            if len(words) == len(tags) and 1 <= turned <= 8 and frames > 0:
                told = (kind, mode, turned, frames, size, digest, look, spent)
                return Checked(size_wh, "", words, True, "", tags, *told)
    return None
