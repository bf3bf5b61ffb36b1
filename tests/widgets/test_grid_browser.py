"""The grid and the lists beside it in Chromium, with models that stand in for anywidget's. No kernel.

What the page sends is given to a real grid, and what that sends is delivered to the page.
"""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.chromium import Guarded, launched
from tests.widgets.test_grid import Drawn, Wire
from widgets.facets import Bins, Facets, Heat, Row, Rows
from widgets.grid import Mark, Tile
from yolov9kit import encode_picture

pytestmark = pytest.mark.browser

WIDGETS = Path(__file__).parents[2] / "widgets"
TRAITS = (
    "total",
    "everything",
    "per_page",
    "revision",
    "aspect",
    "names",
    "colours",
    "chips",
    "noun",
    "words",
    "page",
)
DOCUMENT = """
<!doctype html><meta charset="utf-8"><style>{css} body {{ margin: 0 }}</style>
<div id="host" style="width: {width}px"></div>
<script type="module">
  const module = await import("data:text/javascript;base64,{module}");
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const state = {state}, heard = {{}};
  const tell = (name, ...what) => [...(heard[name] ?? [])].forEach((act) => act(...what));
  window.sent = [];
  let unsaved = {{}};
  const model = {{
    get: (name) => state[name],
    set: (name, value) => {{ state[name] = value; unsaved[name] = value; tell(`change:${{name}}`); }},
    save_changes: () => {{ sent.push({{ traits: unsaved }}); unsaved = {{}}; }},
    send: (content) => sent.push(content),
    on: (name, act) => (heard[name] ??= new Set()).add(act),
    off: (name, act) => heard[name].delete(act),
  }};
  window.deliver = (content, buffers) => tell("msg:custom", content, buffers.map(bytes));
  window.change = (traits) => {{
    Object.assign(state, traits);
    for (const name of Object.keys(traits)) tell(`change:${{name}}`);
  }};
  window.heard = () => Object.values(heard).reduce((sum, acts) => sum + acts.size, 0);
  window.end = module.default.render({{ model, el: document.getElementById("host") }});
</script>
"""


def document(name: str, state: dict[str, Any], width: int) -> str:
    return DOCUMENT.format(
        css=(WIDGETS / f"{name}.css").read_text(encoding="utf-8"),
        module=base64.b64encode((WIDGETS / f"{name}.js").read_bytes()).decode(),
        state=json.dumps(state),
        width=width,
    )


class Painted(Drawn):
    """Gray pictures, 60 x 40; every fifth cannot be read."""

    def large(self, place: int) -> Tile:
        if place % 5 == 4:
            return Tile(f"{place}.jpg", "train", error="the file is empty")
        file, mime, _ = encode_picture(np.full((40, 60, 3), 128, np.uint8))
        boxes = np.array([[10, 10, 30, 30], [40, 5, 55, 35]], np.float32)
        return Tile(
            f"{place}.jpg", "train", (60, 40), boxes, np.array([0, 1]), marks=self.marks, file=file, mime=mime
        )


class Browser(Guarded):
    """A page of Chromium with a grid."""

    def __init__(self, tab: Any) -> None:
        super().__init__(tab, "http://grid.test/")

    def open(self, wire: Wire, width: int = 900) -> None:
        self.wire = wire
        self.show(document("grid", self.state(), width))
        self.tab.wait_for_selector(".yk-grid")
        self.pump()

    def state(self) -> dict[str, Any]:
        state = self.wire.grid.get_state()
        return {name: state[name] for name in TRAITS}

    def pump(self) -> list[dict[str, Any]]:
        """Carry messages both ways; what the page has sent."""
        sent: list[dict[str, Any]] = self.tab.evaluate("window.sent.splice(0)")
        for message in sent:
            if "traits" in message:
                self.wire.grid.set_state(message["traits"])
            else:
                self.wire.grid._handle_custom_msg(message, [])
        self.wire.grid.wait(60)
        for content, buffers in self.wire.sent:
            texts = [base64.b64encode(part).decode() for part in buffers]
            self.tab.evaluate("([content, buffers]) => deliver(content, buffers)", [content, texts])
        self.wire.sent.clear()
        return sent

    def ready(self, page: int) -> None:
        self.pump()
        self.tab.wait_for_selector(f'.yk-grid[data-page="{page}"][data-state="ready"]', timeout=5000)

    def names(self) -> list[str]:
        return [name.strip() for name in self.tab.locator(".yk-tile .yk-name").all_inner_texts()]

    def focused(self) -> str:
        return str(self.tab.evaluate("document.activeElement.querySelector('.yk-name')?.textContent ?? ''"))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as chrome:
        yield chrome


@pytest.fixture
def browser(chromium: Any) -> Iterator[Browser]:
    context = chromium.new_context(viewport={"width": 1000, "height": 800})
    opened = Browser(context.new_page())
    yield opened
    context.close()
    assert opened.errors == []


def test_keys_walk_and_turn_pages_and_the_kernel_is_asked_once_for_each(browser: Browser) -> None:
    browser.open(Wire(Painted(60)))
    browser.ready(0)
    tab = browser.tab
    assert browser.names() == [f"{k}.jpg" for k in range(24)]
    leaked = "window.leaked = []; document.body.addEventListener('keydown', (e) => window.leaked.push(e.key))"
    tab.evaluate(leaked)
    tab.locator(".yk-tile").first.focus()
    tab.keyboard.press("ArrowRight")
    assert browser.focused() == "1.jpg" and browser.pump() == []  # within a page nothing is asked
    tab.keyboard.press("PageDown")
    assert (
        tab.locator('.yk-grid[data-page="1"][data-state="ready"]').count() == 1
    )  # it was here before it was turned to
    assert browser.focused() == "25.jpg"
    asked = [message for message in browser.pump() if message.get("kind") == "want"]
    assert [message["pages"] for message in asked] == [[2]] and browser.wire.grid.page == 1
    tab.keyboard.press("End")
    browser.ready(2)
    assert browser.names() == [f"{k}.jpg" for k in range(48, 60)] and browser.focused() == "59.jpg"
    tab.keyboard.press("Home")
    assert browser.focused() == "0.jpg"
    assert [message for message in browser.pump() if message.get("kind") == "want"] == []
    tab.keyboard.press("ArrowLeft")
    assert browser.focused() == "0.jpg" and tab.evaluate("window.leaked") == []
    stops = tab.locator(".yk-tile[tabindex='0']")
    assert stops.count() == 1 and "0.jpg" in stops.inner_text()


def test_a_marked_box_is_ringed_numbered_and_told(browser: Browser) -> None:
    marks = [
        Mark(
            "error",
            "Class that does not exist, line 3",
            "class 9: correct it",
            "labels/a.txt:3",
            "9 .5 .5 .1 .1",
            1,
        )
    ]
    wire = Wire(Painted(2, marks))
    browser.open(wire)
    browser.ready(0)
    tile = browser.tab.locator(".yk-tile").first
    assert "error: Class that does not exist, line 3" in tile.get_attribute("aria-label")
    assert tile.locator(".yk-badge.yk-error").inner_text() == "1"
    white = """() => {
      const canvas = document.querySelector('.yk-tile canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) count += Math.min(data[i], data[i + 1], data[i + 2]) > 250;
      return count;
    }"""
    with_ring = browser.tab.evaluate(white)
    wire.grid._pictures.marks = []  # type: ignore[union-attr]
    wire.grid.show(wire.grid._pictures, ("bolt", "nut"))
    browser.await_drawing(
        ".yk-grid", lambda: (browser.tab.evaluate("(s) => change(s)", browser.state()), browser.ready(0))
    )
    assert with_ring > browser.tab.evaluate(white) + 50


def test_one_picture_large(browser: Browser) -> None:
    marks = [
        Mark(
            "error",
            "Class that does not exist, line 3",
            "class 9: correct it",
            "labels/a.txt:3",
            "9 .5 .5 .1 .1",
            1,
        )
    ]
    browser.open(Wire(Painted(30, marks)))
    browser.ready(0)
    tab = browser.tab
    tab.locator(".yk-tile").nth(3).focus()
    tab.keyboard.press("Enter")
    browser.pump()
    tab.wait_for_selector('.yk-grid[data-open="3"]')
    side = tab.locator(".yk-side").inner_text()
    assert (
        "labels/a.txt:3" in side
        and "9 .5 .5 .1 .1" in side
        and "class 9: correct it" in side
        and "60 \u00d7 40" in side
    )
    assert tab.locator(".yk-tiles").is_hidden() and tab.evaluate(
        "document.activeElement.matches('canvas.yk-picture')"
    )
    browser.await_drawing(".yk-grid", lambda: tab.get_by_role("button", name="Show box").click())
    tab.locator("canvas.yk-picture").focus()
    tab.keyboard.press("ArrowRight")
    browser.pump()
    tab.wait_for_selector('.yk-grid[data-open="4"]')
    assert tab.get_by_role("alert").inner_text() == "the file is empty"
    tab.keyboard.press("?")
    assert tab.get_by_role("dialog").is_visible()
    tab.keyboard.press("Escape")
    assert tab.get_by_role("dialog").is_hidden() and tab.locator(".yk-large").is_visible()
    tab.keyboard.press("Escape")
    assert tab.locator(".yk-large").is_hidden() and browser.focused() == "4.jpg"


def test_filters_are_cleared_by_chips_and_other_pictures_take_their_place(browser: Browser) -> None:
    wire = Wire(
        Painted(30), of=90, chips=[("codes/label_class", "finding: <b>"), ("classes/1", "class: nut")]
    )
    browser.open(wire)
    browser.ready(0)
    tab = browser.tab
    assert (
        tab.locator(".yk-total").inner_text() == "30 of 90 pictures" and tab.locator(".yk-chip").count() == 3
    )
    tab.get_by_role("button", name="Clear the filter finding: <b>").click()
    tab.get_by_role("button", name="Clear all filters").click()
    assert [message["key"] for message in browser.pump()] == ["codes/label_class", ""]
    tab.locator(".yk-tile").nth(5).focus()
    wire.grid.show(Painted(3), ("bolt",))
    tab.evaluate("(state) => change(state)", browser.state())
    browser.ready(0)
    assert browser.names() == ["0.jpg", "1.jpg", "2.jpg"] and browser.focused() == "0.jpg"
    assert tab.locator(".yk-chip").count() == 0 and tab.locator(".yk-total").inner_text() == "3 pictures"
    wire.grid.show(None, words="No picture passes all filters.")
    tab.evaluate("(state) => change(state)", browser.state())
    assert tab.get_by_text("No picture passes all filters.").is_visible()


@pytest.mark.parametrize("width", [260, 700, 980])
def test_nothing_sticks_out_and_every_control_has_a_name(browser: Browser, width: int) -> None:
    browser.open(
        Wire(Painted(60, [Mark("warning", "a_long_word_without_a_place_to_break_it" * 3, box=0)])), width
    )
    browser.ready(0)
    root = "document.querySelector('.yk-grid')"
    assert browser.tab.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0
    nameless = """[...document.querySelectorAll("button, [role=option], canvas:not([aria-hidden])")].filter(
        (e) => !e.closest("[hidden]") && !(e.getAttribute("aria-label") || e.textContent).trim()
    ).map((e) => e.outerHTML)"""
    assert browser.tab.evaluate(nameless) == []
    browser.tab.evaluate("window.end()")
    assert browser.tab.evaluate("window.heard()") == 0 and browser.tab.locator(".yk-grid").count() == 0


def test_lines_are_pressed_by_mouse_and_keyboard_and_keep_the_focus(browser: Browser) -> None:
    facets = Facets()

    def sections(pressed: bool, count: int) -> list[dict[str, Any]]:
        rows = [
            Row("label_class", "Class <b>", count, severity="error", pressed=pressed),
            Row("box_tiny", "Tiny", 2, severity="warning"),
        ]
        facets.show(
            [
                Rows("codes", "Findings", rows),
                Bins("sides", "Sizes", ["1", "2", "4"], [0, count], [0, 2]),
                Heat("where", "Where", [count, 0, 0, 0], 2),
            ]
        )
        return list(facets.sections)

    browser.show(document("facets", {"sections": sections(False, 5)}, 260))
    tab = browser.tab
    tab.wait_for_selector(".yk-facets")
    assert tab.locator(".yk-line").first.inner_text().split("\n") == ["error", "Class <b>", "5"]
    tab.locator(".yk-line").first.click()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Space")
    tab.keyboard.press("Enter")
    wanted = [
        {"kind": "pick", "section": "codes", "row": row} for row in ("label_class", "box_tiny", "box_tiny")
    ]
    assert tab.evaluate("window.sent") == wanted
    tab.evaluate("(sections) => change({ sections })", sections(True, 3))
    assert tab.evaluate("document.activeElement.dataset.key") == "box_tiny"
    assert tab.locator(".yk-line").first.get_attribute("aria-pressed") == "true"
    drawings = tab.locator("svg[role=img]")
    assert [drawing.get_attribute("aria-label").split(":")[0] for drawing in drawings.all()] == [
        "Sizes",
        "Where",
    ]
    assert "2 to 4: 3" in drawings.first.get_attribute("aria-label")
    tab.evaluate("window.end()")
    assert tab.evaluate("window.heard()") == 0
