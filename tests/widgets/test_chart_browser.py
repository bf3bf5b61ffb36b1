"""The chart in Chromium, with a model that stands in for anywidget's. What Python sends is delivered by the test."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.chromium import Guarded, launched
from tests.widgets.test_chart import SCRIPT, Wire, as_text
from widgets.chart import Chart, Plot

pytestmark = pytest.mark.browser

# What anywidget offers a view. `sent` is what a kernel would have heard.
FAKE = """
<!doctype html><meta charset="utf-8">
<style>{css} body {{ margin: 0; {theme} background: var(--jp-layout-color0, white) }}</style>
<div id="host" style="width: {width}px"></div><div id="other" style="width: {width}px"></div>
<script type="module">
  const chart = await import("data:text/javascript;base64,{module}");
  const revive = (key, value) => (value && value.$bytes !== undefined
    ? new DataView(Uint8Array.from(atob(value.$bytes), (c) => c.charCodeAt(0)).buffer) : value);
  const state = JSON.parse({state}, revive), heard = {{}};
  const tell = (name, ...what) => [...(heard[name] ?? [])].forEach((act) => act(...what));
  window.sent = [];
  let unsaved = {{}};
  const model = {{
    get: (name) => state[name],
    set: (name, value) => {{ state[name] = value; unsaved[name] = value; tell(`change:${{name}}`); }},
    save_changes: () => {{ sent.push(unsaved); unsaved = {{}}; }},
    send: (content) => sent.push(content),
    on: (name, act) => (heard[name] ??= new Set()).add(act),
    off: (name, act) => heard[name].delete(act),
  }};
  window.deliver = (text) => {{
    const {{ content, buffers, points }} = JSON.parse(text, revive);
    if (points) {{ state.points = points; tell("change:points"); }} else tell("msg:custom", content, buffers);
  }};
  window.heard = () => Object.values(heard).reduce((sum, acts) => sum + acts.size, 0);
  window.view = (id) => chart.default.render({{ model, el: document.getElementById(id) }});
  window.ends = [chart.default.initialize({{ model }}), window.view("host")];
</script>
"""
LIGHT = "--jp-layout-color0: #fff; --jp-ui-font-color1: rgba(0, 0, 0, 0.87); --jp-ui-font-color2: rgba(0, 0, 0, 0.54);"
DARK = (
    "--jp-layout-color0: #111; --jp-ui-font-color1: rgba(255, 255, 255, 1); --jp-ui-font-color2: "
    "rgba(255, 255, 255, 0.7); --jp-border-color1: #616161; --jp-brand-color1: #2196f3;"
)


class Browser(Guarded):
    """A page of Chromium that is wired to a chart."""

    def __init__(self, tab: Any) -> None:
        super().__init__(tab, "http://chart.test/")

    def open(self, chart: Chart, width: int = 1000, theme: str = LIGHT) -> None:
        self.wire = Wire(chart)
        names = ("plots", "points", "hidden", "log_axes", "min_width")
        text = FAKE.format(
            css=SCRIPT.with_suffix(".css").read_text(encoding="utf-8"),
            module=base64.b64encode(SCRIPT.read_bytes()).decode(),
            state=json.dumps(as_text({name: chart.get_state()[name] for name in names})),
            theme=theme,
            width=width,
        )
        self.show(text)
        self.tab.wait_for_selector(".yk-chart[data-revision]")
        self.pump()

    def pump(self) -> None:
        """Carry messages both ways until there are none."""
        while True:
            for message in self.tab.evaluate("window.sent.splice(0)"):
                self.wire.from_page(message)
            if not self.wire.sent:
                return
            self.after(
                lambda: [self.tab.evaluate("(t) => deliver(t)", as_text(each)) for each in self.wire.taken()]
            )

    def after(self, act: Any, view: str = "#host") -> None:
        """``act``, and wait until the page has drawn what it changed."""
        self.await_drawing(f"{view} .yk-chart", act)

    def flush(self) -> None:
        self.wire.chart.flush()
        self.pump()

    def plot(self, key: str, view: str = "#host") -> Any:
        return self.tab.locator(f'{view} .yk-plot[data-key="{key}"]')

    def readout(self, key: str) -> str:
        return str(self.plot(key).locator(".yk-plot-readout").inner_text())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as chrome:
        yield chrome


@pytest.fixture
def browser(chromium: Any) -> Iterator[Browser]:
    context = chromium.new_context(viewport={"width": 1300, "height": 900})
    opened = Browser(context.new_page())
    yield opened
    context.close()
    assert opened.errors == []


def a_chart() -> Chart:
    chart = Chart(
        [
            Plot("loss", "Training <b>loss</b>", series=("total", "box"), minimum=0),
            Plot("rate", "Learning rate"),
            Plot("empty", "Nothing so far"),
            Plot("gpu", "GPU busy", "%", kind="strip", minimum=0, maximum=100, height=70),
        ]
    )
    x = np.arange(11)
    chart.set("loss", "total", x * 100, 10.0 - x, raw=10.5 - x)
    chart.set("loss", "box", x * 100, 5 - x / 2)
    chart.set("rate", "value", x * 100, np.where(x < 3, 0, 0.01 / (x + 1)))
    chart.append("gpu", "value", x / 10, 80 + x)
    chart.flush()
    return chart


def canvas_of(browser: Browser, key: str) -> Any:
    return browser.plot(key).locator("canvas")


INK = """(canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let ink = 0;
    for (let p = 3; p < data.length; p += 4) ink += data[p] > 0;
    return ink;
}"""


def test_values_arrive_and_are_drawn(browser: Browser) -> None:
    chart = a_chart()
    browser.open(chart)
    loss, gpu, empty = (browser.plot(key) for key in ("loss", "gpu", "empty"))
    assert loss.get_attribute("data-shown") == "total box" and loss.get_attribute("data-points") == "11 11"
    assert browser.readout("loss") == "step 1,000 · total 0 · box 0"
    assert loss.locator(".yk-plot-title").inner_text() == "Training <b>loss</b>"
    assert empty.locator(".yk-plot-words").inner_text() == "no values yet"
    assert canvas_of(browser, "empty").evaluate(INK) == 0 < canvas_of(browser, "loss").evaluate(INK)
    assert gpu.locator(".yk-plot-now").inner_text() == "90 %"
    assert browser.readout("gpu") == "last 1 s: 80 to 90 %"
    for k in range(5):
        chart.append("gpu", "value", 2 + k, 30 + k)
    chart.append("loss", "box", 1100, 7)
    chart.set("empty", "value", [5], [3.5])
    browser.flush()
    assert gpu.locator(".yk-plot-now").inner_text() == "34 %" and gpu.get_attribute("data-points") == "16"
    assert browser.readout("loss") == "step 1,100 · total 0 at 1,000 · box 7"
    assert browser.readout("empty") == "step 5 · 3.5" and canvas_of(browser, "empty").evaluate(INK) > 0
    chart.note("gpu", 'no NVIDIA driver: <img src="https://example.org">')
    browser.flush()
    assert gpu.locator(".yk-plot-words").inner_text() == 'no NVIDIA driver: <img src="https://example.org">'
    assert not gpu.locator(".yk-plot-now").is_visible()
    chart.note("gpu", "")
    browser.flush()
    assert not gpu.locator(".yk-plot-words").is_visible() and gpu.get_attribute("data-points") == "16"


def test_the_pointer_reads_out_raw_and_smoothed_on_all_plots_of_the_same_steps(browser: Browser) -> None:
    browser.open(a_chart())
    canvas = canvas_of(browser, "loss")
    middle = {"x": canvas.bounding_box()["width"] * 0.53, "y": 40}
    browser.after(lambda: canvas.hover(position=middle))
    assert browser.readout("loss") == "step 500 · total 5 (raw 5.5) · box 2.5"
    assert browser.readout("rate") == "step 500 · 0.001667"
    assert browser.readout("gpu").startswith("last")  # counts seconds, not steps
    browser.after(lambda: browser.tab.mouse.move(5, 899))
    assert browser.readout("loss") == "step 1,000 · total 0 · box 0"


def test_keys_move_the_cursor_and_the_values_are_spoken_once_they_rest(browser: Browser) -> None:
    browser.open(a_chart())
    tab, press = browser.tab, browser.tab.keyboard.press
    tab.evaluate("document.body.addEventListener('keydown', (e) => (window.leaked = e.key))")
    canvas_of(browser, "loss").focus()
    for key, step in (("ArrowLeft", "1,000"), ("ArrowLeft", "900"), ("Home", "0"), ("ArrowRight", "100")):
        browser.after(lambda key=key: press(key))
        assert browser.readout("loss").startswith(f"step {step} ·")
    tab.wait_for_function("document.querySelector('.yk-spoken').textContent.startsWith('step 100 · total 9')")
    browser.after(lambda: press("End"))
    browser.after(lambda: press("Escape"))
    assert "raw" not in browser.readout("loss")
    assert tab.evaluate("window.leaked") is None


def test_the_legend_hides_a_series_and_that_lasts(browser: Browser) -> None:
    chart = a_chart()
    browser.open(chart)
    chip = browser.plot("loss").get_by_role("button", name="total")
    assert chip.get_attribute("aria-pressed") == "true"
    browser.after(chip.click)
    browser.pump()
    assert chip.get_attribute("aria-pressed") == "false" and chart.hidden == {"loss": ["total"]}
    assert browser.plot("loss").get_attribute("data-shown") == "box"
    assert browser.readout("loss") == "step 1,000 · box 0"
    chart.append("loss", "total", 1100, 7)
    browser.flush()
    assert browser.plot("loss").get_attribute("data-shown") == "box"
    browser.after(lambda: browser.plot("loss").get_by_role("button", name="box").press("Space"))
    assert browser.plot("loss").locator(".yk-plot-words").inner_text() == "all series are hidden"
    browser.after(lambda: chip.press("Enter"))
    assert browser.plot("loss").get_attribute("data-points") == "12"


def test_a_logarithmic_axis_says_what_it_leaves_out(browser: Browser) -> None:
    chart = a_chart()
    browser.open(chart)
    plot = browser.plot("rate")
    button = plot.get_by_role("button", name="log")
    browser.after(lambda: button.press("Enter"))
    browser.pump()
    assert button.get_attribute("aria-pressed") == "true" and chart.log_axes == ["rate"]
    assert plot.locator(".yk-plot-hint").inner_text() == "3 values are 0 or below: not on a log axis"
    low, high = map(float, plot.get_attribute("data-range").split())
    assert 0 < low <= 0.01 / 11 and high >= 0.0025
    chart.set("rate", "value", [1, 2], [0, -1])
    browser.flush()
    assert plot.locator(".yk-plot-words").inner_text() == "no values above 0 for a logarithmic axis"
    browser.after(button.click)
    assert not plot.locator(".yk-plot-hint").is_visible()


def test_a_reloaded_page_and_a_second_view_show_the_same(browser: Browser) -> None:
    chart = a_chart()
    browser.open(chart)
    browser.after(browser.plot("loss").get_by_role("button", name="total").click)
    browser.pump()
    for k in range(3):
        chart.append("gpu", "value", 2 + k, 50 + k)
        browser.flush()
    browser.tab.evaluate("ends.push(view('other'))")
    browser.tab.wait_for_selector("#other .yk-chart[data-revision]")
    chart.append("gpu", "value", 9, 66)
    browser.flush()
    seen = """(id) => [...document.querySelectorAll(`${id} .yk-plot`)].map(
        (e) => [e.dataset.points, e.dataset.shown, e.textContent])"""
    browser.tab.wait_for_function("document.querySelector('#other .yk-plot-value').textContent === '66 %'")
    here = browser.tab.evaluate(seen, "#host")
    assert browser.tab.evaluate(seen, "#other") == here
    assert here[3][0] == "15" and here[0][1] == "box"
    browser.open(chart)
    assert browser.tab.evaluate(seen, "#host") == here


def test_a_page_that_missed_a_message_asks_for_the_whole(browser: Browser) -> None:
    chart = a_chart()
    browser.open(chart)
    chart.append("gpu", "value", 2, 1)
    chart.flush()
    assert len(browser.wire.taken()) == 1  # lost
    chart.append("gpu", "value", 3, 2)
    chart.flush()
    (late,) = browser.wire.taken()
    browser.tab.evaluate("(t) => deliver(t)", as_text(late))
    assert browser.plot("gpu").get_attribute("data-points") == "11"
    browser.pump()
    assert browser.plot("gpu").get_attribute("data-points") == "13"


def test_the_theme_is_followed_at_once(browser: Browser) -> None:
    browser.open(a_chart())
    corner = "(c) => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].join()"
    before = canvas_of(browser, "loss").evaluate(corner)
    browser.after(lambda: browser.tab.evaluate("(t) => document.body.setAttribute('style', t)", DARK))
    assert canvas_of(browser, "loss").evaluate(corner) != before


@pytest.mark.parametrize(("width", "columns"), [(270, 1), (800, 2), (1280, 4)])
def test_plots_stand_beside_each_other_where_there_is_room(
    browser: Browser, width: int, columns: int
) -> None:
    browser.open(a_chart(), width)
    boxes = [each.bounding_box() for each in browser.tab.locator("#host .yk-plot").all()]
    assert len({box["x"] for box in boxes}) == columns
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)
    root = "document.querySelector('.yk-chart')"
    assert browser.tab.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0


def test_the_cursor_does_not_move_the_plots(browser: Browser) -> None:
    browser.open(a_chart(), 600)
    canvas = canvas_of(browser, "loss")
    before = canvas.bounding_box()
    browser.after(lambda: canvas.hover(position={"x": 150, "y": 40}))
    assert "raw" in browser.readout("loss") and canvas.bounding_box() == before


def test_nothing_is_drawn_while_the_chart_is_out_of_sight(browser: Browser) -> None:
    chart = a_chart()
    browser.open(chart)
    tab, rendered = browser.tab, "document.querySelector('.yk-chart').dataset.rendered"
    tab.evaluate("document.getElementById('host').style.display = 'none'")
    frames = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
    tab.evaluate(frames)
    before = tab.evaluate(rendered)
    chart.append("gpu", "value", 2, 33)
    chart.flush()
    for each in browser.wire.taken():
        tab.evaluate("(t) => deliver(t)", as_text(each))
    tab.evaluate(frames)
    assert tab.evaluate(rendered) == before
    browser.after(lambda: tab.evaluate("document.getElementById('host').style.display = ''"))
    assert browser.plot("gpu").locator(".yk-plot-now").inner_text() == "33 %"


def test_many_messages_in_one_frame_are_drawn_once(browser: Browser) -> None:
    chart = a_chart()
    browser.open(chart)
    for k in range(50):
        chart.append("gpu", "value", 2 + k, k)
        chart.flush()
    texts = [as_text(each) for each in browser.wire.taken()]
    assert len(texts) == 50
    rendered = "Number(document.querySelector('.yk-chart').dataset.rendered)"
    before = browser.tab.evaluate(rendered)
    browser.after(lambda: browser.tab.evaluate("(all) => all.forEach((t) => deliver(t))", texts))
    assert browser.tab.evaluate(rendered) == before + 1
    assert browser.plot("gpu").get_attribute("data-points") == "61"


def test_every_control_has_a_name(browser: Browser) -> None:
    browser.open(a_chart())
    nameless = """[...document.querySelectorAll("button, canvas, figure")].filter(
        (e) => !(e.getAttribute("aria-label") || e.textContent).trim()
    ).map((e) => e.outerHTML)"""
    assert browser.tab.evaluate(nameless) == []


def test_a_view_that_is_taken_away_leaves_nothing_behind(browser: Browser) -> None:
    browser.open(a_chart())
    assert browser.tab.evaluate("window.heard()") == 5
    browser.tab.evaluate("ends.forEach((end) => end())")
    assert browser.tab.evaluate("window.heard()") == 0
    assert browser.tab.locator(".yk-chart").count() == 0
