"""Pictures with their boxes on a canvas of our own: zoom, class filter, thresholds that move without the model.

The page holds the candidates from before NMS of the picture on screen and chooses among them itself: moving a
slider sends nothing. The kernel is asked for a page when one is turned, and hears what was chosen at that moment,
when something is saved, when the focus leaves the widget, and when the browser's page is hidden or reloaded.
"""

import base64
import html
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import numpy as np
import traitlets as t

import yolov9kit

if TYPE_CHECKING:
    from yolov9kit import Detections

_HERE = Path(__file__).parent
_STAGES = ("decode", "preprocess", "network", "nms")


@dataclass(frozen=True, eq=False)
class Page:
    """One picture and what one or two runs found on it.

    Attributes:
        title: what to call the picture, a file name for example.
        pixels: H x W x 3 uint8 RGB, or a function without arguments that returns it: it is called when the page is
            turned to, so that a folder of thousands of pictures needs the memory of one.
        sides: the runs by name, ``{"fp32": found}``. With two, the first is the reference. All were detected with
            ``keep_candidates=True``.
    """

    title: str
    pixels: np.ndarray | Callable[[], np.ndarray]
    sides: "Mapping[str, Detections]"

    @property
    def first(self) -> "Detections":
        """The detections of the first side."""
        return next(iter(self.sides.values()))

    def load(self) -> np.ndarray:
        """The pixels. Raises KitError for a picture of another size than the boxes belong to."""
        pixels = self.pixels() if callable(self.pixels) else self.pixels
        expected = self.first.picture_wh
        if pixels.shape != (expected[1], expected[0], 3):
            shape = " x ".join(map(str, pixels.shape))
            raise yolov9kit.KitError(
                f"{self.title}: the boxes belong to a picture of {expected[0]} x {expected[1]} pixels, "
                f"this array is {shape}; it should be {expected[1]} x {expected[0]} x 3"
            )
        return pixels


class DetectionCanvas(anywidget.AnyWidget):
    """Pages of pictures with boxes; see ``show``.

    Traits that the page changes, and that Python may set: ``page``, ``min_score``, ``max_iou``, ``hidden_classes``,
    ``agnostic``, ``max_detections``, ``show_labels``, and ``selected``, the index of the box in focus among those
    shown, side after side (-1: none). They are a copy of the browser's: ``request_state`` asks for the newest.
    Traits that only Python sets: ``pictures`` (a description of every page), ``current`` (the picture and the
    candidates of one page), ``names``, ``colours``, ``score_floor`` (what the candidates were kept above).
    """

    _esm = _HERE / "canvas.js"
    _css = _HERE / "canvas.css"

    pictures = t.List(t.Dict()).tag(sync=True)
    current = t.Dict().tag(sync=True)
    names = t.List(t.Unicode()).tag(sync=True)
    colours = t.List(t.Unicode()).tag(sync=True)
    score_floor = t.Float(0.0, min=0, max=1).tag(sync=True)

    # Without echo_update=False the answer to an older message would move a slider back under the user's hand.
    page = t.Int(0, min=0).tag(sync=True, echo_update=False)
    min_score = t.Float(min=0, max=1).tag(sync=True, echo_update=False)
    max_iou = t.Float(min=0, max=1).tag(sync=True, echo_update=False)
    hidden_classes = t.List(t.Int()).tag(sync=True, echo_update=False)
    agnostic = t.Bool(False).tag(sync=True, echo_update=False)
    max_detections = t.Int(min=1).tag(sync=True, echo_update=False)
    show_labels = t.Bool(True).tag(sync=True, echo_update=False)
    selected = t.Int(-1, min=-1).tag(sync=True, echo_update=False)

    def __init__(self, items: Iterable[Page] = (), **settings: Any) -> None:
        self._items: list[Page] = []
        self._lock = threading.RLock()  # a panel adds pages from a thread while the user turns them
        self._revision = 0
        super().__init__(**settings)
        self.show(items)

    @t.default("min_score")
    def _default_min_score(self) -> float:
        return yolov9kit.DetectConfig().min_score

    @t.default("max_iou")
    def _default_max_iou(self) -> float:
        return yolov9kit.DetectConfig().max_iou

    @t.default("max_detections")
    def _default_max_detections(self) -> int:
        return yolov9kit.DetectConfig().max_detections

    def show(self, items: Iterable[Page]) -> None:
        """Show these pages instead of those before, from the first one on. Thresholds and hidden classes stay.

        Raises:
            KitError: a page without candidates, with other classes or another number of sides than the rest, or whose
                sides belong to different pictures. The pages from before stay.
        """
        pages = list(items)
        names = _checked(pages, None)
        with self._lock, self.hold_sync():
            self._items = []
            self._revision += 1
            self.page, self.selected = 0, -1
            if self.names and names != tuple(self.names):
                self.hidden_classes = []
            self.names = list(names)
            self.colours = [
                "#{:02x}{:02x}{:02x}".format(*yolov9kit.class_colour(i)) for i in range(len(names))
            ]
            self.score_floor = 0.0
            self._add(pages)
            if not pages:
                self.current = {"page": -1, "revision": self._revision}

    def extend(self, items: Iterable[Page]) -> None:
        """Add pages at the end; what is on screen stays. Call it a few times a second at most, with what has come.

        Raises:
            KitError: as ``show``.
        """
        pages = list(items)
        if not self._items:
            self.show(pages)
            return
        _checked(pages, self._items[0])
        with self._lock, self.hold_sync():
            self._add(pages)

    def selection(self, page: int | None = None, side: str | None = None) -> "Detections":
        """What is shown of a page (the current one) and side (the first): equal to the browser's, box by box.

        Raises:
            KitError: no such page or side.
        """
        item = self._item(page)
        name = next(iter(item.sides)) if side is None else side
        if name not in item.sides:
            raise yolov9kit.KitError(f"side {name!r}: there are {', '.join(map(repr, item.sides))}")
        return self._reselected(item.sides[name])

    def static_html(self, page: int | None = None, limit_px: int = 800, png_bytes: int = 256 * 1024) -> str:
        """A page (the current one) as HTML that needs neither kernel nor script: picture, boxes, counts.

        Pictures are scaled down to ``limit_px``; a PNG of more than ``png_bytes`` becomes a JPEG.

        Raises KitError for a page that is not there or cannot be read.
        """
        if not self._items:
            return "<p>No pictures yet.</p>"
        item = self._item(page)
        found = {name: self._reselected(detections) for name, detections in item.sides.items()}
        pixels = item.load()
        figures = "".join(
            _figure(item, name, pixels, each, limit_px, png_bytes) for name, each in found.items()
        )
        settings = f"score above {self.min_score:g}, NMS IoU {self.max_iou:g}"
        hidden = ", ".join(self.names[label] for label in self.hidden_classes)
        settings += ", across classes" * self.agnostic + f", hidden: {hidden}" * bool(hidden)
        return (
            '<div style="font: 13px/1.4 system-ui, sans-serif">'
            f"<p><strong>{html.escape(item.title)}</strong> · {html.escape(settings)}</p>"
            f'<div style="display: flex; flex-wrap: wrap; gap: 12px">{figures}</div>{_counts(found)}</div>'
        )

    def request_state(self) -> None:
        """Ask the browser for what is chosen there. The traits follow when it has answered, after the cell's end."""
        self.send({"kind": "save"})

    def _item(self, page: int | None) -> Page:
        index = self.page if page is None else page
        if not 0 <= index < len(self._items):
            known = f"there are 0 to {len(self._items) - 1}" if self._items else "there are none"
            raise yolov9kit.KitError(f"page {index}: {known}")
        return self._items[index]

    def _reselected(self, detections: "Detections") -> "Detections":
        hidden = set(self.hidden_classes)
        return yolov9kit.reselect(
            detections,
            min_score=self.min_score,
            max_iou=self.max_iou,
            max_detections=self.max_detections,
            classes=[i for i in range(len(self.names)) if i not in hidden] if hidden else None,
            agnostic=self.agnostic,
        )

    def _add(self, pages: list[Page]) -> None:
        first = not self._items
        self._items += pages
        floors = [d.candidates.min_score for page in pages for d in page.sides.values() if d.candidates]
        self.score_floor = max([self.score_floor, *floors])
        self.min_score = max(self.min_score, self.score_floor)
        self.pictures = [*([] if first else self.pictures), *map(_description, pages)]
        if first and pages:
            self.current = self._payload(0)

    @t.validate("min_score")
    def _not_below_the_floor(self, proposal: dict[str, Any]) -> float:
        if proposal["value"] < self.score_floor:
            raise yolov9kit.KitError(
                f"min_score {proposal['value']:g}: the candidates were kept above {self.score_floor:g}. Lower scores "
                f"need a new run with a lower candidate_score"
            )
        return float(proposal["value"])

    @t.validate("page")
    def _an_existing_page(self, proposal: dict[str, Any]) -> int:
        if proposal["value"]:
            self._item(proposal["value"])
        return int(proposal["value"])

    @t.observe("page")
    def _send_page(self, change: dict[str, Any]) -> None:
        with self._lock:
            if self._items:
                self.current = self._payload(change["new"])

    def _payload(self, index: int) -> dict[str, Any]:
        """One page as the browser needs it: the picture as a file, each side's candidates as float32 rows."""
        item, start = self._items[index], {"page": index, "revision": self._revision}
        try:
            pixels = item.load()
            data, mime, scale = yolov9kit.encode_picture(pixels)
        except yolov9kit.KitError as error:
            return {**start, "error": str(error)}
        except Exception as error:  # the reader of the pixels may be anyone's: the page shows what it said
            return {**start, "error": f"{item.title}: {type(error).__name__}: {error}"}
        sides = [{"rows": _rows(detections)} for detections in item.sides.values()]
        return {**start, "picture": {"bytes": data, "mime": mime, "scale": scale}, "sides": sides}


def _checked(pages: list[Page], like: Page | None) -> tuple[str, ...]:
    """The class names of all pages, after a look at whether they go together."""
    like = like or (pages[0] if pages else None)
    for page in pages:
        if not 1 <= len(page.sides) <= 2:
            raise yolov9kit.KitError(f"{page.title}: {len(page.sides)} sides, a page has one or two")
        assert like is not None
        if tuple(page.sides) != tuple(like.sides):
            raise yolov9kit.KitError(
                f"{page.title}: its sides are {', '.join(page.sides)}, those of {like.title} {', '.join(like.sides)}"
            )
        for name, found in page.sides.items():
            if found.candidates is None:
                raise yolov9kit.KitError(
                    f"{page.title}, {name}: no candidates, detect with keep_candidates=True"
                )
            if found.names != like.first.names:
                raise yolov9kit.KitError(f"{page.title}, {name}: other classes than {like.title} has")
            if found.picture_wh != page.first.picture_wh:
                raise yolov9kit.KitError(f"{page.title}, {name}: belongs to a picture of another size")
    return like.first.names if like else ()


def _description(page: Page) -> dict[str, Any]:
    """A page in words, for the list that the browser has of all of them."""
    first = page.first
    notes = dict.fromkeys(note for found in page.sides.values() for note in found.notes)
    return {
        "title": page.title,
        "path": first.path,
        "frame": first.frame,
        "width": first.picture_wh[0],
        "height": first.picture_wh[1],
        "notes": list(notes),
        "sides": [
            {
                "label": name,
                "count": len(found),
                "cut": found.candidates.cut if found.candidates else 0,
                "timings": {stage: round(vars(found.timings)[f"{stage}_ms"], 3) for stage in _STAGES},
            }
            for name, found in page.sides.items()
        ],
    }


def _rows(detections: "Detections") -> bytes:
    """Candidates as little-endian float32 rows x1, y1, x2, y2, score, label, by falling score."""
    candidates = detections.candidates
    assert candidates is not None  # `show` has looked
    rows = np.column_stack((candidates.boxes, candidates.scores, candidates.labels))
    return rows[np.argsort(-candidates.scores, kind="stable")].astype("<f4").tobytes()


def _figure(
    page: Page, name: str, pixels: np.ndarray, found: "Detections", limit_px: int, png_bytes: int
) -> str:
    data, mime, _ = yolov9kit.encode_picture(yolov9kit.draw_detections(pixels, found), limit_px, png_bytes)
    about = html.escape(f"{page.title}, {name}: {len(found)} boxes")
    address = f"data:{mime};base64,{base64.b64encode(data).decode('ascii')}"
    return (
        '<figure style="flex: 1 1 280px; max-width: 640px; margin: 0">'
        f"<figcaption>{html.escape(name)}: {len(found)} boxes</figcaption>"
        f'<img src="{address}" alt="{about}" style="width: 100%; height: auto"></figure>'
    )


def _counts(found: "Mapping[str, Detections]") -> str:
    """The table of how many boxes of each class each side has."""
    per_side = [each.counts() for each in found.values()]
    classes = dict.fromkeys(name for counts in per_side for name in counts)
    cell = 'style="padding: 1px 12px 1px 0; text-align: {}"'
    left, right = cell.format("left"), cell.format("right")
    head = "".join(f'<th scope="col" {right}>{html.escape(name)}</th>' for name in found)
    rows = [
        f'<tr><th scope="row" {left}>{html.escape(name)}</th>'
        + "".join(f"<td {right}>{counts.get(name, 0)}</td>" for counts in per_side)
        + "</tr>"
        for name in [*classes]
    ]
    total = "".join(f"<td {right}><strong>{len(each)}</strong></td>" for each in found.values())
    return (
        f'<table style="margin-top: 8px; border-collapse: collapse"><thead><tr><th scope="col" {left}>class</th>{head}'
        f'</tr></thead><tbody>{"".join(rows)}<tr><th scope="row" {left}>all</th>{total}</tr></tbody></table>'
    )
