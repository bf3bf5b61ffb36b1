"""The canvas in Chromium, with a model that stands in for anywidget's and remembers what it was sent. No kernel."""

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.chromium import Guarded, launched
from tests.widgets.test_canvas import SCRIPT, WH, as_the_page_says, page
from widgets.canvas import DetectionCanvas
from yolov9kit.output import as_record

pytestmark = pytest.mark.browser

# What anywidget offers a view. `sent` is what a kernel would have heard.
FAKE = """
<!doctype html><meta charset="utf-8"><style>{css}</style><div id="host" style="width: {width}px"></div>
<script type="module">
  const canvas = await import("data:text/javascript;base64,{module}");
  const bytes = (text) => new DataView(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const pages = {pages}, state = {state}, heard = {{}};
  for (const page of pages) {{
    page.picture.bytes = bytes(page.picture.bytes);
    for (const side of page.sides) side.rows = bytes(side.rows);
  }}
  state.current = pages[state.page];
  const tell = (name) => (heard[name] ?? []).forEach((act) => act());
  window.sent = [];
  let unsaved = {{}};
  const model = {{
    get: (name) => state[name],
    set: (name, value) => {{ state[name] = value; unsaved[name] = value; tell(`change:${{name}}`); }},
    save_changes: () => {{
      const message = unsaved;
      [unsaved] = [{{}}, sent.push(message)];
      if ("page" in message) setTimeout(() => {{ state.current = pages[message.page]; tell("change:current"); }}, 10);
    }},
    on: (name, act) => (heard[name] ??= new Set()).add(act),
    off: (name, act) => heard[name].delete(act),
  }};
  window.ask = () => heard["msg:custom"].forEach((act) => act({{ kind: "save" }}));
  window.heard = () => Object.values(heard).reduce((sum, acts) => sum + acts.size, 0);
  window.end = canvas.default.render({{ model, el: document.getElementById("host") }});
</script>
"""


def fake_page(canvas: DetectionCanvas, width: int) -> str:
    pages = []
    for index in range(len(canvas.pictures)):
        canvas.page = index
        current = json.loads(json.dumps(canvas.current, default=lambda b: base64.b64encode(b).decode()))
        pages.append(current)
    canvas.page = 0
    state = {key: value for key, value in canvas.get_state().items() if not key.startswith("_")}
    for key in ("current", "layout", "tabbable", "tooltip"):
        state.pop(key)
    return FAKE.format(
        css=SCRIPT.with_suffix(".css").read_text(encoding="utf-8"),
        module=base64.b64encode(SCRIPT.read_bytes()).decode(),
        pages=json.dumps(pages),
        state=json.dumps(state),
        width=width,
    )


class Browser(Guarded):
    """A page of Chromium with a canvas."""

    def __init__(self, tab: Any) -> None:
        super().__init__(tab, "http://canvas.test/")

    def open(self, canvas: DetectionCanvas, width: int = 1000) -> None:
        text = fake_page(canvas, width)
        self.show(text)
        self.tab.wait_for_selector(".yk-canvas[data-shown]")

    def shown(self) -> list[int]:
        return [int(n) for n in self.tab.get_attribute(".yk-canvas", "data-shown").split()]

    def after(self, act: Any) -> list[int]:
        """Counts of boxes shown once the page has drawn what ``act`` changed."""
        self.await_drawing(".yk-canvas", act)
        return self.shown()

    def turned(self, act: Any, page: int) -> None:
        act()
        self.tab.wait_for_selector(f'.yk-canvas[data-page="{page}"][data-state="ready"]', timeout=5000)

    @property
    def sent(self) -> list[dict[str, Any]]:
        return self.tab.evaluate("window.sent")  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as chrome:
        yield chrome


@pytest.fixture
def browser(chromium: Any) -> Iterator[Browser]:
    context = chromium.new_context(viewport={"width": 1100, "height": 900}, accept_downloads=True)
    opened = Browser(context.new_page())
    yield opened
    context.close()
    assert opened.errors == []


def sizes(canvas: DetectionCanvas, **state: object) -> list[int]:
    """How many boxes Python would show of each side of the current page."""
    as_the_page_says(canvas, **state)
    return [len(canvas.selection(side=side["label"])) for side in canvas.pictures[canvas.page]["sides"]]


def test_sliders_numbers_and_classes_change_the_boxes_without_a_message(browser: Browser) -> None:
    canvas = DetectionCanvas([page("a.jpg", 0, 1)])
    browser.open(canvas)
    tab = browser.tab
    assert browser.shown() == sizes(canvas)
    slider, number = tab.get_by_label("Confidence", exact=True), tab.get_by_label("Confidence, number")
    place = slider.bounding_box()
    tab.mouse.move(place["x"] + place["width"] * 0.25, place["y"] + place["height"] / 2)
    tab.mouse.down()
    browser.after(lambda: tab.mouse.move(place["x"] + place["width"] * 0.7, place["y"] + 8, steps=5))
    tab.mouse.up()
    tab.wait_for_function("document.querySelector('.yk-number[aria-label^=Confidence]').value > 0.6")
    assert browser.shown() == sizes(canvas, min_score=float(number.input_value()))
    assert browser.after(lambda: number.fill("0.06")) == sizes(canvas, min_score=0.06)
    slider.focus()
    assert browser.after(lambda: tab.keyboard.press("ArrowRight")) == sizes(canvas, min_score=0.07)
    assert number.input_value() == "0.07"
    iou = tab.get_by_label("NMS IoU, number")
    assert browser.after(lambda: iou.fill("0.2")) == sizes(canvas, max_iou=0.2)
    chip = tab.locator(".yk-chip", has_text="mousebite")
    assert browser.after(chip.click) == sizes(canvas, hidden_classes=[2])
    assert chip.get_attribute("aria-pressed") == "false"
    across = tab.get_by_text("NMS across classes")
    assert browser.after(across.click) == sizes(canvas, agnostic=True)
    assert browser.after(lambda: chip.press("Space")) == sizes(canvas, hidden_classes=[])
    assert browser.sent == []
    tab.evaluate("window.dispatchEvent(new Event('pagehide'))")
    (message,) = browser.sent
    assert message["min_score"] == 0.07 and message["max_iou"] == 0.2 and message["agnostic"] is True
    browser.after(lambda: number.fill("0.3"))
    tab.evaluate("window.ask()")
    assert browser.sent[1:] == [{"min_score": 0.3}]


def test_below_the_candidates_floor_the_page_says_why(browser: Browser) -> None:
    canvas = DetectionCanvas([page("a.jpg", floor=0.05)])
    browser.open(canvas)
    number = browser.tab.get_by_label("Confidence, number")
    number.fill("0.01")
    assert browser.after(lambda: number.press("Enter")) == sizes(canvas, min_score=0.05)
    assert number.input_value() == "0.05"
    assert browser.tab.get_by_text("The candidates were kept above 0.05.").is_visible()
    assert browser.after(lambda: number.fill("0.5")) == sizes(canvas, min_score=0.5)
    assert not browser.tab.get_by_text("The candidates were kept above 0.05.").is_visible()


def test_keys_turn_pages_walk_through_boxes_and_leave(browser: Browser) -> None:
    canvas = DetectionCanvas(page(f"{i}.jpg", 0, 1) for i in range(3))
    browser.open(canvas)
    tab, picture = browser.tab, browser.tab.locator("canvas").first
    leaked = "window.leaked = []; document.body.addEventListener('keydown', (e) => window.leaked.push(e.key))"
    tab.evaluate(leaked)
    picture.focus()
    browser.turned(lambda: tab.keyboard.press("ArrowRight"), 1)
    browser.turned(lambda: tab.keyboard.press("j"), 2)
    browser.turned(lambda: tab.keyboard.press("PageUp"), 1)
    browser.turned(lambda: tab.get_by_label("Picture number").fill("3") or tab.keyboard.press("Enter"), 2)
    assert [message["page"] for message in browser.sent] == [1, 2, 1, 2]
    picture.focus()
    first = canvas.selection(0)
    browser.after(lambda: tab.keyboard.press("Tab"))
    readout = tab.locator(".yk-readout")
    assert first.names[first.labels[0]] in readout.inner_text()
    assert f"{first.scores[0]:.3f}" in readout.inner_text()
    browser.after(lambda: tab.keyboard.press("Tab"))
    browser.after(lambda: tab.keyboard.press("Shift+Tab"))
    assert f"{first.scores[0]:.3f}" in readout.inner_text()
    browser.after(lambda: tab.keyboard.press("Escape"))
    tab.keyboard.press("Tab")
    assert not tab.evaluate("document.activeElement.matches('canvas')")
    picture.focus()
    tab.keyboard.press("?")
    assert tab.get_by_role("dialog").is_visible()
    tab.keyboard.press("Escape")
    assert not tab.get_by_role("dialog").is_visible()
    assert tab.evaluate("document.activeElement.matches('canvas')")
    assert tab.evaluate("window.leaked") == []


def test_the_wheel_zooms_only_with_focus_or_control(browser: Browser) -> None:
    browser.open(DetectionCanvas([page("a.jpg")]))
    tab, picture, zoom = browser.tab, browser.tab.locator("canvas"), browser.tab.locator(".yk-percent")
    start = zoom.inner_text()
    picture.hover()
    turn = "(options) => document.querySelector('canvas').dispatchEvent(new WheelEvent('wheel', options))"
    wheel = {"deltaY": -200, "cancelable": True, "clientX": 300, "clientY": 300}
    assert tab.evaluate(turn, wheel) is True  # not prevented: the page scrolls
    browser.after(lambda: tab.evaluate(turn, {**wheel, "ctrlKey": True}))
    near = zoom.inner_text()
    assert near != start
    picture.focus()
    browser.after(lambda: tab.evaluate(turn, wheel))
    assert zoom.inner_text() not in (start, near)
    browser.after(picture.dblclick)
    assert zoom.inner_text() == start


def test_saved_files_hold_what_is_shown(browser: Browser) -> None:
    canvas = DetectionCanvas([page("a.jpg", 0, 1)])
    browser.open(canvas)
    browser.after(lambda: browser.tab.get_by_label("Confidence, number").fill("0.4"))
    as_the_page_says(canvas, min_score=0.4)
    with browser.tab.expect_download() as download:
        browser.tab.get_by_role("button", name="Save JSON").click()
    assert download.value.suggested_filename == "a_detections.json"
    saved = json.loads(Path(download.value.path()).read_text())
    assert saved["settings"]["min_score"] == 0.4
    for entry, side in zip(saved["images"], ("run 0", "run 1"), strict=True):
        assert entry.pop("run") == side
        assert entry == as_record(canvas.selection(side=side))
    with browser.tab.expect_download() as download:
        browser.tab.get_by_role("button", name="Save picture").click()
    picture = Image.open(download.value.path())
    assert picture.width > 2 * WH[0] and picture.height > WH[1]


@pytest.mark.parametrize(("width", "stacked"), [(420, True), (800, False), (1060, False)])
def test_two_sides_stand_side_by_side_where_there_is_room(
    browser: Browser, width: int, stacked: bool
) -> None:
    browser.open(DetectionCanvas([page("a.jpg", 0, 1)]), width)
    first, second = (each.bounding_box() for each in browser.tab.locator("canvas").all())
    assert (second["y"] > first["y"]) is stacked and (second["x"] > first["x"]) is not stacked
    assert (first["width"], first["height"]) == (second["width"], second["height"])
    overhang = (
        "document.querySelector('.yk-canvas').scrollWidth - document.querySelector('.yk-canvas').clientWidth"
    )
    assert browser.tab.evaluate(overhang) <= 0
    assert re.match(r"matched \d+ · lost \d+ · new \d+", browser.tab.locator(".yk-summary").inner_text())


def test_every_control_has_a_name(browser: Browser) -> None:
    browser.open(DetectionCanvas([page("a.jpg", 0, 1)]))
    nameless = """[...document.querySelectorAll("button, input, canvas, output")].filter(
        (e) => !(e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.textContent).trim()
    ).map((e) => e.outerHTML)"""
    assert browser.tab.evaluate(nameless) == []


def test_a_view_that_is_taken_away_leaves_nothing_behind(browser: Browser) -> None:
    browser.open(DetectionCanvas([page("a.jpg")]))
    assert browser.tab.evaluate("window.heard()") > 5
    browser.tab.evaluate("window.end()")
    assert browser.tab.evaluate("window.heard()") == 0
    assert browser.tab.locator(".yk-canvas").count() == 0
