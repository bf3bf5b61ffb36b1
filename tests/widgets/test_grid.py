"""The grid and the lists beside it, without a browser: what is sent, when, and how little."""

import json
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from widgets.facets import Bins, Facets, Heat, Row, Rows
from widgets.grid import DOTTED, SOLID, Mark, PictureGrid, Tile
from yolov9kit import KitError

JPEG = b"\xff\xd8 not a real one"


class Drawn:
    """``count`` pictures, which know what was asked for. ``hold``: waits at the second chunk until let go."""

    def __init__(self, count: int, marks: Sequence[Mark] = (), hold: bool = False) -> None:
        self.count, self.marks, self.hold = count, marks, hold
        self.asked: list[int] = []
        self.held, self.go = threading.Event(), threading.Event()

    def __len__(self) -> int:
        return self.count

    def boxes(self, place: int) -> np.ndarray:
        return np.random.default_rng(place).uniform(0, 300, (place % 4, 4)).astype(np.float32)

    def tiles(self, places: Sequence[int]) -> list[Tile]:
        if self.hold and len(self.asked) >= 8:
            self.held.set()
            assert self.go.wait(60)
        self.asked += places
        return [self.large(place) for place in places]

    def large(self, place: int) -> Tile:
        boxes = self.boxes(place)
        return Tile(
            f"{place}.jpg",
            "train",
            (300, 200),
            boxes,
            np.arange(len(boxes)),
            np.full(len(boxes), DOTTED if place % 2 else SOLID),
            self.marks,
            JPEG + bytes([place % 256]),
        )


class Wire:
    """A grid and what it has sent, message by message."""

    def __init__(self, pictures: Any, **how: Any) -> None:
        self.grid = PictureGrid(how.pop("on_clear", None))
        self.sent: list[tuple[dict[str, Any], list[bytes]]] = []
        self.grid.send = lambda content, buffers=None: self.sent.append((content, list(buffers or [])))  # type: ignore[method-assign]
        self.grid.show(pictures, ("bolt", "nut", "washer"), **how)

    def hear(self, **content: Any) -> None:
        self.grid._handle_custom_msg(content, [])

    def want(self, *pages: int, large: Sequence[int] = (), revision: int | None = None) -> None:
        at = self.grid.revision if revision is None else revision
        self.hear(kind="want", revision=at, pages=list(pages), large=list(large))

    def got(self) -> list[tuple[dict[str, Any], list[bytes]]]:
        assert self.grid.wait(60)
        return self.sent

    def places(self, page: int) -> list[int]:
        """Which places of a page have come, in order."""
        parts = [c for c, _ in self.sent if c["kind"] == "tiles" and c["page"] == page]
        return [page * self.grid.per_page + c["first"] + k for c in parts for k in range(len(c["tiles"]))]


# ------------------------------------------------------------------------------------------- pages


def test_nothing_is_made_before_it_is_asked_for() -> None:
    pictures = Drawn(20_000)
    wire = Wire(pictures)
    assert wire.got() == [] and pictures.asked == []
    wire.want(800, 801)
    wire.got()
    assert pictures.asked == list(range(800 * 24, 802 * 24))
    state = {key: value for key, value in wire.grid.get_state().items() if key not in ("_esm", "_css")}
    assert len(json.dumps(state)) < 4_000


@pytest.mark.parametrize(("count", "page", "wanted"), [(60, 0, 24), (60, 2, 12), (3, 0, 3), (24, 1, 0)])
def test_a_page_has_its_pictures_in_order(count: int, page: int, wanted: int) -> None:
    wire = Wire(Drawn(count))
    wire.want(page)
    wire.got()
    assert wire.places(page) == list(range(24 * page, 24 * page + wanted))


def test_files_and_boxes_arrive_bit_by_bit() -> None:
    pictures = Drawn(30)
    wire = Wire(pictures)
    wire.want(0)
    place = 0
    for content, buffers in wire.got():
        for k, tile in enumerate(content["tiles"]):
            rows = np.frombuffer(buffers[2 * k + 1], "<f4").reshape(-1, 6)
            assert buffers[2 * k] == JPEG + bytes([place])
            assert np.array_equal(rows[:, :4], pictures.boxes(place))
            assert np.array_equal(rows[:, 4], np.arange(len(rows)))
            assert (rows[:, 5] == (DOTTED if place % 2 else SOLID)).all()
            assert (tile["title"], tile["width"], tile["height"]) == (f"{place}.jpg", 300, 200)
            place += 1
    assert place == 24


def test_who_turns_on_does_not_wait_for_the_page_before() -> None:
    pictures = Drawn(480, hold=True)
    wire = Wire(pictures)
    wire.want(0, 1)
    assert pictures.held.wait(60)
    wire.want(7, 8)
    pictures.go.set()
    wire.got()
    assert wire.places(0) == list(range(8)) and wire.places(1) == []  # what was made meanwhile is not sent
    assert wire.places(7) == list(range(168, 192)) and wire.places(8) == list(range(192, 216))


def test_a_page_of_other_pictures_is_neither_made_nor_sent() -> None:
    old, new = Drawn(48, hold=True), Drawn(48)
    wire = Wire(old)
    before = wire.grid.revision
    wire.want(0)
    assert old.held.wait(60)
    wire.grid.page = 1
    wire.grid.show(new, ("bolt",))
    old.go.set()
    wire.want(0, revision=before)
    wire.got()
    assert wire.places(0) == list(range(8)) and new.asked == [] and wire.grid.page == 0


def test_the_thread_ends_when_nothing_is_asked_for() -> None:
    wire = Wire(Drawn(48))
    for _ in range(2):
        wire.want(0)
        wire.got()
        assert not any(thread.name == "yolov9kit pictures" for thread in threading.enumerate())
    assert wire.places(0) == [*range(24), *range(24)]


def test_what_cannot_be_made_says_why_in_its_place() -> None:
    class Broken(Drawn):
        def tiles(self, places: Sequence[int]) -> list[Tile]:
            raise KitError("disk gone") if 0 in places else ValueError("unexpected")

        def large(self, place: int) -> Tile:
            raise KitError("disk gone")

    wire = Wire(Broken(10))
    wire.want(0, large=[3])
    (large, _), *pages = wire.got()
    assert large["tile"]["error"] == "disk gone"
    errors = [tile["error"] for content, _ in pages for tile in content["tiles"]]
    assert errors == ["disk gone"] * 8 + ["ValueError: unexpected"] * 2


def test_nothing_is_made_for_a_grid_that_is_closed() -> None:
    wire = Wire(pictures := Drawn(48))
    wire.grid.close()
    wire.want(0)
    assert wire.got() == [] and pictures.asked == []


# ------------------------------------------------------------------------------------------- marks, one picture


def test_a_small_picture_has_its_first_marks_and_a_large_one_all() -> None:
    marks = [Mark("note", f"mark {k}", box=k - 10 if k > 9 else -1) for k in range(30)]
    wire = Wire(Drawn(1, marks))
    wire.want(0, large=[0])
    (large, _), (small, _) = wire.got()
    assert [mark["box"] for mark in large["tile"]["marks"]] == [*range(20), *[-1] * 10]
    (tile,) = small["tiles"]
    assert tile["marks"] == large["tile"]["marks"][:12] and tile["more"] == 18


@pytest.mark.parametrize("place", [-1, 5, 10**9])
def test_a_picture_that_is_not_there_is_not_made(place: int) -> None:
    wire = Wire(Drawn(5))
    wire.want(-1, 1, 10**9, large=[place])
    assert wire.got() == []


def test_shown_again_it_starts_at_the_first_page() -> None:
    wire = Wire(Drawn(100), of=5000, chips=[("codes/label_class", "finding: <b>")], noun="pictures")
    grid = wire.grid
    assert (grid.total, grid.everything, grid.names) == (100, 5000, ["bolt", "nut", "washer"])
    assert grid.chips == [{"key": "codes/label_class", "text": "finding: <b>"}]
    assert len(set(grid.colours)) == 3
    grid.page = 3
    assert grid.places() == list(range(72, 96))
    grid.show(None, words="nothing here")
    assert (grid.page, grid.total, grid.everything, grid.words) == (0, 0, 0, "nothing here")


def test_clearing_a_filter_is_told() -> None:
    told: list[str] = []
    wire = Wire(Drawn(1), on_clear=told.append)
    wire.hear(kind="clear", key="classes/2")
    wire.hear(kind="clear", key="")
    wire.hear(kind="something else")
    assert told == ["classes/2", ""]


# ------------------------------------------------------------------------------------------- lists and charts


def test_a_line_that_is_pressed_is_told() -> None:
    told: list[tuple[str, str]] = []
    facets = Facets(lambda section, row: told.append((section, row)))
    facets._handle_custom_msg({"kind": "pick", "section": "codes", "row": "label_class"}, [])
    facets._handle_custom_msg({"kind": "other"}, [])
    assert told == [("codes", "label_class")]


def test_sections_travel_as_plain_values() -> None:
    facets = Facets()
    heat = Heat("where", "Where", np.arange(4).reshape(2, 2), 2)
    facets.show(
        [Rows("a", "A", [Row("k", "label", 3, 0.5)]), Bins("b", "B", ["1", "2"], np.array([7]), [0, 1]), heat]
    )
    rows, bins, where = json.loads(json.dumps(facets.sections))
    assert rows["rows"][0] == {
        "key": "k", "label": "label", "count": 3, "share": 0.5, "pressed": False, "severity": "",
        "colour": "", "about": "",
    }  # fmt: skip
    assert bins["counts"] == [7] and where["counts"] == [0, 1, 2, 3]
