"""Pages of small pictures with their boxes, turned and opened by keyboard or mouse; see ``PictureGrid``.

The page asks for what it shows, a page of pictures at a time, and for those beside it before they are turned to.
Nothing else travels, so 20,000 pictures cost what 24 do. They are made in a thread that ends when nothing is asked for.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anywidget
import numpy as np
import traitlets as t

import yolov9kit
from widgets.job import started

_HERE = Path(__file__).parent
PER_PAGE = 24
SIDE_PX = 240
"""Longer side of a small picture."""

_CHUNK = 8
"""Pictures that are made and sent together: the first are seen while the last are made."""

_MOST_MARKS = 12
"""Marks of a small picture that travel with it; the picture seen large has all."""

SOLID, DOTTED = 0, 1
"""How a box is drawn: as labelled, or as something that no label says: a row that was left out, a suggestion."""


@dataclass(frozen=True)
class Mark:
    """Something that is said about a picture.

    Attributes:
        severity: error, warning or note.
        text: a few words, under the small picture.
        message: all of it.
        where: file and line.
        row: the text that stands there.
        box: which of the picture's boxes is meant; -1: none.
    """

    severity: str
    text: str
    message: str = ""
    where: str = ""
    row: str = ""
    box: int = -1


@dataclass(frozen=True, eq=False)
class Tile:
    """One picture.

    Attributes:
        title: what to call it.
        about: more words, under the title.
        picture_wh: its size in pixels; (0, 0) where it cannot be read.
        boxes: N x 4 xyxy, pixels of the picture.
        labels: N class numbers.
        kinds: N, SOLID or DOTTED; None: all solid.
        marks: what is said about it.
        file: the picture as a JPEG or PNG file, small or large; empty where it cannot be read.
        mime: of ``file``.
        error: why it cannot be shown.
    """

    title: str
    about: str = ""
    picture_wh: tuple[int, int] = (0, 0)
    boxes: np.ndarray = field(default_factory=lambda: np.empty((0, 4), np.float32))
    labels: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))
    kinds: np.ndarray | None = None
    marks: Sequence[Mark] = ()
    file: bytes = b""
    mime: str = "image/jpeg"
    error: str = ""


class Pictures(Protocol):
    """What a grid shows. Asked from a thread of its own."""

    def __len__(self) -> int: ...

    def tiles(self, places: Sequence[int]) -> list[Tile]:
        """The small pictures at these places, longer side ``SIDE_PX`` at most."""
        ...

    def large(self, place: int) -> Tile:
        """The picture at a place as large as a page shows it."""
        ...


class PictureGrid(anywidget.AnyWidget):
    """Pages of pictures; see ``show``.

    Args:
        on_clear: called with the key of a filter that the page wants gone; "" stands for all of them.

    ``page`` is changed by the page, and may be set by Python.
    """

    _esm = _HERE / "grid.js"
    _css = _HERE / "grid.css"

    total = t.Int(0).tag(sync=True)
    everything = t.Int(0).tag(sync=True)
    per_page = t.Int(PER_PAGE).tag(sync=True)
    revision = t.Int(0).tag(sync=True)
    aspect = t.Float(1.0).tag(sync=True)
    names = t.List(t.Unicode()).tag(sync=True)
    colours = t.List(t.Unicode()).tag(sync=True)
    chips = t.List(t.Dict()).tag(sync=True)
    noun = t.Unicode("pictures").tag(sync=True)
    words = t.Unicode("Nothing to show yet.").tag(sync=True)
    page = t.Int(0, min=0).tag(sync=True, echo_update=False)

    def __init__(self, on_clear: Callable[[str], object] | None = None) -> None:
        self._lock = threading.RLock()
        self._pictures: Pictures | None = None
        self._on_clear = on_clear
        self._todo: list[tuple[str, int]] = []
        self._asked: set[tuple[str, int]] = set()
        self._maker: threading.Thread | None = None
        self._making = self._closed = False
        super().__init__()
        self.on_msg(self._hear)

    def show(
        self,
        pictures: Pictures | None,
        names: Sequence[str] = (),
        *,
        of: int | None = None,
        aspect: float = 1.0,
        chips: Sequence[tuple[str, str]] = (),
        noun: str = "pictures",
        words: str = "No pictures.",
    ) -> None:
        """Show these pictures instead of those before, from the first page on.

        Args:
            pictures: None: nothing.
            names: of the classes.
            of: how many there would be without filters; None: as many.
            aspect: width by height of the usual picture.
            chips: key and words of each filter that holds.
            noun: what is counted.
            words: what is said where there is no picture.
        """
        total = 0 if pictures is None else len(pictures)
        with self._lock, self.hold_sync():
            self._pictures = pictures
            self._todo, self._asked = [], set()
            self.names = list(names)
            self.colours = [
                "#{:02x}{:02x}{:02x}".format(*yolov9kit.class_colour(i)) for i in range(len(names))
            ]
            self.chips = [{"key": key, "text": text} for key, text in chips]
            self.total, self.everything = total, total if of is None else of
            self.aspect, self.noun, self.words = min(max(aspect, 0.5), 2.0), noun, words
            self.page = 0
            self.revision += 1

    def places(self, page: int | None = None) -> list[int]:
        """The places of the pictures on a page (the current one)."""
        first = (self.page if page is None else page) * self.per_page
        return list(range(first, min(first + self.per_page, self.total)))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until all that was asked for is sent; False if it is not within ``timeout_s``."""
        maker = self._maker
        if maker is not None:
            maker.join(timeout_s)
        return maker is None or not maker.is_alive()

    def close(self) -> None:
        """Leave the page. What is asked for afterwards is not made."""
        with self._lock:
            self._closed, self._todo, self._asked, self._pictures = True, [], set(), None
        super().close()

    # ------------------------------------------------------------------------------------ what the page asks for

    def _hear(self, _: Any, content: Any, __: Any) -> None:
        kind = content.get("kind") if isinstance(content, dict) else None
        if kind == "want":
            self._want(content)
        elif kind == "clear" and self._on_clear is not None:
            self._on_clear(str(content.get("key", "")))

    def _want(self, content: dict[str, Any]) -> None:
        """What a page needs now, the most urgent first. What it needed before and has not got is forgotten."""
        with self._lock:
            if self._closed or content.get("revision") != self.revision or self._pictures is None:
                return
            wanted = [("large", int(place)) for place in content.get("large", ()) if 0 <= place < self.total]
            wanted += [
                ("page", int(page))
                for page in content.get("pages", ())
                if page >= 0 and self.places(int(page))
            ]
            self._todo, self._asked = wanted, set(wanted)
            if wanted and not self._making:
                self._making = True
                self._maker = started(self._make, "yolov9kit pictures")

    def _make(self) -> None:
        while True:
            with self._lock:
                if not self._todo or self._pictures is None:
                    self._making = False
                    return
                wanted = self._todo.pop(0)
                pictures, revision = self._pictures, self.revision
            if wanted[0] == "large":
                self._send_large(pictures, revision, wanted[1])
            else:
                self._send_page(pictures, revision, wanted)

    def _send_page(self, pictures: Pictures, revision: int, wanted: tuple[str, int]) -> None:
        places = self.places(wanted[1])
        for first in range(0, len(places), _CHUNK):
            chunk = places[first : first + _CHUNK]
            try:
                tiles = pictures.tiles(chunk)
            except Exception as error:  # whatever it was, the page says so in place of the pictures
                tiles = [Tile("", error=_words_of(error)) for _ in chunk]
            with self._lock:
                if revision != self.revision or wanted not in self._asked:
                    return
                start = {"kind": "tiles", "revision": revision, "page": wanted[1], "first": first}
                self.send(
                    {**start, "tiles": [_described(tile, _MOST_MARKS) for tile in tiles]},
                    [part for tile in tiles for part in (tile.file, _rows(tile))],
                )

    def _send_large(self, pictures: Pictures, revision: int, place: int) -> None:
        try:
            tile = pictures.large(place)
        except Exception as error:
            tile = Tile("", error=_words_of(error))
        with self._lock:
            if revision == self.revision:
                start = {"kind": "large", "revision": revision, "place": place}
                self.send({**start, "tile": _described(tile, None)}, [tile.file, _rows(tile)])


def _words_of(error: Exception) -> str:
    return str(error) if isinstance(error, yolov9kit.KitError) else f"{type(error).__name__}: {error}"


def _described(tile: Tile, most_marks: int | None) -> dict[str, Any]:
    """A picture in words. Marks that mean a box come first: they are numbered in the picture."""
    marks = sorted(tile.marks, key=lambda mark: mark.box < 0)
    return {
        "title": tile.title,
        "about": tile.about,
        "width": tile.picture_wh[0],
        "height": tile.picture_wh[1],
        "mime": tile.mime,
        "error": tile.error,
        "marks": [asdict(mark) for mark in marks[:most_marks]],
        "more": 0 if most_marks is None else max(0, len(marks) - most_marks),
    }


def _rows(tile: Tile) -> bytes:
    """Boxes as little-endian float32 rows x1, y1, x2, y2, label, kind."""
    kinds = np.zeros(len(tile.labels)) if tile.kinds is None else tile.kinds
    return np.column_stack((tile.boxes, tile.labels, kinds)).astype("<f4").tobytes()
