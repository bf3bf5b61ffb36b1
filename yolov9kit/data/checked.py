"""What is known of a picture from decoding it once, remembered outside the data set.

Nothing is ever written beside the pictures. A file under the user's cache folder holds the facts of one split's
pictures; an entry counts only while size, both times and the inode of its picture are those it was made from.
Losing that file costs time, nothing else.
"""

import hashlib
import json
import os
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import PIL

from yolov9kit.cache import cache_folder, write_whole
from yolov9kit.data.image import decode_image
from yolov9kit.errors import PictureError

# Another decoder may judge otherwise, so its facts start anew.
_FORMAT = f"yolov9kit pictures 1, Pillow {PIL.__version__}"
_AT_ONCE = 16  # pictures that a thread takes: one by one, handing over costs more than a known picture

Identity = tuple[int, int, int, int]
"""Size in bytes, mtime and ctime in ns, inode. The ctime cannot be set back, so a forged mtime is noticed."""


@dataclass(frozen=True)
class Checked:
    """``size_wh`` of the upright picture in pixels, (0, 0) where ``error`` says why it cannot be used.

    ``notes``: what the decoder converted, in words. ``lasting``: False for errors that may have passed next time.
    """

    size_wh: tuple[int, int]
    error: str = ""
    notes: tuple[str, ...] = ()
    lasting: bool = True


def check_picture(path: Path) -> Checked:
    """Decodes the whole picture, because a cut-off file has a sound header. Never raises for a bad picture."""
    try:
        image = decode_image(path, name="picture")
    except PictureError as fault:
        # the system's own errors have a cause with a number: a lost share, no permission, no memory
        passing = isinstance(fault.__cause__, MemoryError) or (
            isinstance(fault.__cause__, OSError) and fault.__cause__.errno is not None
        )
        return Checked((0, 0), str(fault).removeprefix("picture: "), lasting=not passing)
    height, width, _ = image.pixels.shape
    return Checked((width, height), notes=image.notes)


def facts_file(split: str, sources: Sequence[Path]) -> Path:
    """Where the facts of a split are kept: each split of each data set has a file of its own.

    Not absolute where the system knows no home folder.
    """
    key = json.dumps([split, *(str(source.resolve()) for source in sources)])
    digest = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
    return cache_folder() / "pictures" / f"{digest}.json"


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
        """The facts of each picture, in order. Several threads decode; closing the iterator ends them."""
        self._wanted.update(map(str, paths))
        threads = ThreadPoolExecutor(min(os.cpu_count() or 1, 16), "check-pictures")
        try:
            groups = [paths[i : i + _AT_ONCE] for i in range(0, len(paths), _AT_ONCE)]
            for group, results in zip(groups, threads.map(self._check_group, groups), strict=True):
                for path, (identity, checked, known) in zip(group, results, strict=True):
                    self.decoded += not known
                    if identity is not None and checked.lasting:
                        self._fresh[str(path)] = identity, checked
                    yield checked
        finally:
            threads.shutdown(cancel_futures=True)

    def save(self) -> str:
        """Remembers what ``check`` found, that of an interrupted one too. Returns why that failed, else ``""``."""
        if self._file is None or self._fresh.items() <= self._known.items():
            return ""
        if not self._file.is_absolute():
            return "no home folder"
        entries = {
            path: [identity, *checked.size_wh, checked.error, checked.notes]
            for path, (identity, checked) in (self._known | self._fresh).items()
            if path in self._wanted  # the entries of pictures that are gone go too
        }
        try:
            text = json.dumps({"format": _FORMAT, "pictures": entries})
            write_whole(self._file, lambda file: file.write_text(text, encoding="ascii"))
        except OSError as fault:
            return f"{self._file}: {fault.strerror or fault}"
        return ""

    def _check_group(self, paths: Sequence[Path]) -> list[tuple[Identity | None, Checked, bool]]:
        return [self._check_one(path) for path in paths]

    def _check_one(self, path: Path) -> tuple[Identity | None, Checked, bool]:
        """Identity, facts, and whether they were known before."""
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


def _entry(value: object) -> tuple[Identity, Checked] | None:
    match value:
        case [[int(a), int(b), int(c), int(d)], int(width), int(height), str(error), [*notes]]:
            words = tuple(note for note in notes if isinstance(note, str))
            if len(words) == len(notes) and bool(error) != (width > 0 < height):
                return (a, b, c, d), Checked((width, height), error, words)
    return None
