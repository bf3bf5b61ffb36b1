"""The chart: what is set is bounded, sent once a flush, and the same for whoever opens a page."""

import base64
import json
import math
import re
import sys
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.node import in_node
from widgets.chart import Chart, Plot
from widgets.chart_svg import (
    COLOURS,
    axis_range,
    formatted,
    log_range,
    log_ticks,
    style_of,
    ticks,
    whole_ticks,
)
from yolov9kit import KitError

SCRIPT = Path(sys.modules[Chart.__module__].__file__ or "").with_name("chart.js")


class Wire:
    """What a chart sends instead of sending it, and what a page answers."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.sent: list[dict[str, Any]] = []
        chart.send = self._send  # type: ignore[method-assign]
        chart.send_state = self._send_state  # type: ignore[method-assign]

    def _send(self, content: Any, buffers: Any = None) -> None:
        self.sent.append({"content": content, "buffers": list(buffers or [])})

    def _send_state(self, key: Any = None) -> None:
        self.sent.append({key: self.chart.get_state(key)[key]})

    def taken(self) -> list[dict[str, Any]]:
        sent, self.sent = self.sent, []
        return sent

    def from_page(self, message: dict[str, Any]) -> None:
        if message.get("kind") == "have":
            self.chart._handle_custom_msg(message, [])
        else:
            self.chart.set_state(message)


# ------------------------------------------------------------------------------------------- what is held


def arrays(chart: Chart, key: str, series: str) -> dict[str, np.ndarray]:
    """A series as a page that opens now reads it."""
    held = chart.get_state("points")["points"]["plots"][key]["series"][series]
    kinds = {"x": "<f8", "y": "<f4", "raw": "<f4"}
    return {name: np.frombuffer(held[name], kind) for name, kind in kinds.items() if name in held}


def a_chart() -> Chart:
    return Chart(
        [
            Plot("loss", "Loss", series=("total", "box"), minimum=0),
            Plot("gpu", "GPU", "%", kind="strip", minimum=0, maximum=100),
        ]
    )


def heard(chart: Chart) -> Wire:
    """The wire of a chart whose page listens."""
    wire = Wire(chart)
    wire.from_page({"kind": "have", "revision": 0})
    assert wire.taken() == []
    return wire


def test_values_arrive_bit_by_bit() -> None:
    chart = a_chart()
    x, y = np.array([0.1, 2**40, 2**40 + 1]), np.array([1.5, np.nan, -3])
    chart.set("loss", "total", x, y, raw=[None, 2, math.inf])
    chart.flush()
    held = arrays(chart, "loss", "total")
    assert np.array_equal(held["x"], x)
    assert np.array_equal(held["y"], y.astype(np.float32), equal_nan=True)
    assert np.array_equal(held["raw"], [np.nan, 2, np.nan], equal_nan=True)


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=60),
    st.integers(0, 60),
    st.booleans(),
)
def test_appended_in_pieces_equals_set_at_once(values: list[float], cut: int, with_raw: bool) -> None:
    x, raw = np.arange(len(values)), values[::-1] if with_raw else None
    once, pieces = a_chart(), a_chart()
    once.set("loss", "total", x, values, raw)
    for part in (slice(None, cut), slice(cut, None)):
        pieces.append("loss", "total", x[part], values[part], raw and raw[part])
    once.flush(), pieces.flush()
    for name, each in arrays(once, "loss", "total").items():
        assert np.array_equal(arrays(pieces, "loss", "total")[name], each, equal_nan=True)


def test_a_strip_holds_its_last_600_points() -> None:
    chart = a_chart()
    for k in range(100):
        chart.append("gpu", "value", np.arange(7 * k, 7 * k + 7), np.full(7, k))
    chart.flush()
    held = arrays(chart, "gpu", "value")
    assert np.array_equal(held["x"], np.arange(100, 700))
    assert held["y"][-1] == 99


@pytest.mark.parametrize("n", [2000, 2001, 5000, 123_457])
def test_a_long_line_keeps_its_ends_extremes_and_gaps(n: int) -> None:
    chart, rng = a_chart(), np.random.default_rng(0)
    y = rng.normal(0, 1, n)
    y[n // 3], y[n // 2], y[n // 5] = 50, -50, np.nan
    chart.set("loss", "total", np.arange(n), y)
    chart.flush()
    held = arrays(chart, "loss", "total")
    assert len(held["x"]) <= 2000 and (len(held["x"]) == n) == (n <= 2000)
    assert np.all(np.diff(held["x"]) > 0) and (held["x"][0], held["x"][-1]) == (0, n - 1)
    assert np.array_equal(held["y"], y[held["x"].astype(int)].astype(np.float32), equal_nan=True)
    assert np.nanmax(held["y"]) == 50 and np.nanmin(held["y"]) == -50 and np.isnan(held["y"]).sum() == 1
    assert chart.get_state("points")["points"]["plots"]["loss"]["series"]["total"]["total"] == n


def test_a_line_that_is_appended_to_for_ever_stays_bounded() -> None:
    chart = a_chart()
    wire = heard(chart)
    for k in range(50):
        chart.append("loss", "total", np.arange(100 * k, 100 * k + 100), np.arange(100))
        chart.flush()
        assert len(arrays(chart, "loss", "total")["x"]) <= 2000
    assert arrays(chart, "loss", "total")["x"][0] == 0
    kinds = [message["content"]["changes"][0]["add"] for message in wire.taken()]
    assert kinds[1:20] == [True] * 19 and False in kinds[20:]  # thinned: sent anew


def test_marks_are_bounded_too() -> None:
    chart = a_chart()
    for k in range(200):
        chart.mark("loss", k, str(k))
    chart.flush()
    marks = chart.get_state("points")["points"]["plots"]["loss"]["marks"]
    assert marks == [[float(k), str(k)] for k in range(150, 200)]


def test_clear_forgets_everything_of_one_plot_or_of_all() -> None:
    chart = a_chart()
    for key, series in (("loss", "total"), ("gpu", "value")):
        chart.set(key, series, [1, 2], [3, 4])
        chart.mark(key, 1, "here")
        chart.note(key, "words")
    chart.clear("gpu")
    chart.flush()
    assert len(arrays(chart, "gpu", "value")["x"]) == 0 and len(arrays(chart, "loss", "total")["x"]) == 2
    chart.clear()
    chart.flush()
    plots = chart.get_state("points")["points"]["plots"]
    assert all(not plot["marks"] and not plot["note"] for plot in plots.values())
    assert len(arrays(chart, "loss", "total")["x"]) == 0
    chart.append("loss", "total", 0, 1)  # x may start anew
    chart.flush()
    assert arrays(chart, "loss", "total")["x"].tolist() == [0]


# ------------------------------------------------------------------------------------------- what is sent


def test_a_thousand_sets_and_one_flush_are_one_message() -> None:
    chart = a_chart()
    wire = heard(chart)
    for k in range(1000):
        chart.set("loss", "total", [k], [k])
        chart.append("gpu", "value", k, k)
    assert wire.sent == []
    chart.flush()
    (message,) = wire.taken()
    assert [change["series"] for change in message["content"]["changes"]] == ["total", "value"]
    chart.flush()
    assert wire.taken() == []


def test_a_point_more_costs_a_few_hundred_bytes() -> None:
    chart = Chart([Plot(str(k), "GPU", kind="strip") for k in range(6)])
    wire = heard(chart)
    for step in range(700):
        for k in range(6):
            chart.append(str(k), "value", step / 10, 50)
        chart.flush()
    sizes = [len(json.dumps(m["content"])) + sum(map(len, m["buffers"])) for m in wire.taken()]
    assert max(sizes[1:]) < 900


def test_before_a_page_listens_the_whole_state_is_sent_as_a_message_may_be_lost() -> None:
    chart = a_chart()
    wire = Wire(chart)
    chart.set("loss", "total", [1], [2])
    chart.flush()
    (first,) = wire.taken()
    assert first["points"]["revision"] == 1
    wire.from_page({"kind": "have", "revision": 1})
    assert wire.taken() == []
    chart.append("loss", "total", 2, 3)
    chart.flush()
    (second,) = wire.taken()
    assert (second["content"]["from"], second["content"]["revision"]) == (1, 2)
    wire.from_page({"kind": "have", "revision": 1})  # it has missed one
    (third,) = wire.taken()
    assert third["points"]["revision"] == 2


def test_the_whole_state_is_that_of_the_last_flush() -> None:
    """What is not flushed yet comes with the next message: in both, a page would draw it twice."""
    chart = a_chart()
    chart.append("gpu", "value", 1, 10)
    chart.flush()
    chart.append("gpu", "value", 2, 20)
    assert arrays(chart, "gpu", "value")["x"].tolist() == [1]
    wire = heard_at(chart, 1)
    chart.flush()
    (message,) = wire.taken()
    assert np.frombuffer(message["buffers"][0], "<f8").tolist() == [2]


def heard_at(chart: Chart, revision: int) -> Wire:
    wire = Wire(chart)
    wire.from_page({"kind": "have", "revision": revision})
    return wire


def test_the_page_that_follows_deltas_has_what_a_page_that_opens_reads() -> None:
    chart, rng = a_chart(), np.random.default_rng(3)
    start = chart.get_state("points")["points"]
    wire, at = heard(chart), {"total": 0, "box": 0, "value": 0}
    for _ in range(60):
        for key, series in (("loss", "total"), ("loss", "box"), ("gpu", "value")):
            n = int(rng.integers(0, 90))
            x, y = np.arange(at[series], at[series] + n), np.round(rng.normal(0, 1, n), 3)
            raw = y if series == "box" and rng.uniform() < 0.5 else None
            if rng.uniform() < 0.1:
                chart.set(key, series, x, y, raw)
            else:
                chart.append(key, series, x, y, raw)
            at[series] += n
        if rng.uniform() < 0.3:
            chart.mark("loss", float(rng.integers(9)), "m")
        if rng.uniform() < 0.05:
            chart.clear("gpu")
        chart.flush()
    text = as_text({"points": start, "messages": wire.taken(), "end": chart.get_state("points")["points"]})
    assert in_node(SCRIPT, FOLLOWED, text) is True


FOLLOWED = """(() => {
    const { points, messages, end } = JSON.parse(data, (key, value) => (value?.$bytes === undefined ? value
        : new DataView(Uint8Array.from(Buffer.from(value.$bytes, "base64")).buffer)));
    for (const { content, buffers } of messages) {
        if (!chart.apply(points, content, buffers, { loss: 2000, gpu: 600 })) return "refused";
    }
    const seen = (state) => JSON.stringify(state, (key, value) => (value instanceof DataView
        ? [...new Uint8Array(value.buffer, value.byteOffset, value.byteLength)].join() : value));
    for (const plot of Object.values(end.plots)) {  // in the order of the other
        const held = Object.values(points.plots)[Object.values(end.plots).indexOf(plot)];
        for (const [name, series] of Object.entries(plot.series)) {
            for (const part of ["x", "y", "raw", "total"]) {
                if (seen(series[part] ?? null) !== seen(held.series[name][part] ?? null)) return `${name} ${part}`;
            }
        }
        if (seen([plot.marks, plot.note]) !== seen([held.marks, held.note])) return "words";
    }
    return points.revision === end.revision;
})()"""


def as_text(data: object) -> str:
    return json.dumps(data, default=lambda b: {"$bytes": base64.b64encode(bytes(b)).decode()})


def test_threads_may_set_and_flush_at_the_same_time() -> None:
    chart = a_chart()
    wire = heard(chart)

    def work(series: str) -> None:
        for k in range(200):
            chart.append("loss", series, k, k)
            chart.flush()

    threads = [threading.Thread(target=work, args=(series,)) for series in ("total", "box")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    revisions = [(m["content"]["from"], m["content"]["revision"]) for m in wire.taken()]
    assert revisions == [(k, k + 1) for k in range(len(revisions))]
    assert all(len(arrays(chart, "loss", series)["x"]) == 200 for series in ("total", "box"))


def test_after_close_nothing_is_held_or_sent() -> None:
    chart = a_chart()
    wire = heard(chart)
    chart.set("loss", "total", [1], [1])
    chart.close()
    chart.append("loss", "total", 2, 2)
    chart.mark("loss", 1, "x")
    chart.flush()
    wire.from_page({"kind": "have", "revision": 0})
    assert wire.taken() == []
    assert "no values yet" in chart.static_svg()


# ------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda c: c.set("lr", "value", [1], [1]), "plot 'lr': there are 'loss', 'gpu'"),
        (lambda c: c.set("loss", "cls", [1], [1]), "series 'cls' of plot 'loss': there are 'total', 'box'"),
        (lambda c: c.set("loss", "box", [1, 2], [1]), r"loss, box: x, y and raw have shapes \(2,\), \(1,\)"),
        (lambda c: c.set("loss", "box", [[1]], [[1]]), "need one length"),
        (lambda c: c.set("loss", "box", [1, 3, 2], [1, 1, 1]), "x has to rise, but 2 comes after 3"),
        (lambda c: c.set("loss", "box", [1, math.nan], [1, 1]), "x nan at 1 is no number"),
        (lambda c: c.set("loss", "box", ["a"], [1]), "have to be numbers"),
        (lambda c: c.mark("loss", math.inf, "best"), "mark 'best' at x inf"),
        (lambda c: c.note("lr", "words"), "plot 'lr'"),
        (lambda c: c.clear("lr"), "plot 'lr'"),
    ],
)
def test_what_does_not_fit_is_named(act: Any, said: str) -> None:
    with pytest.raises(KitError, match=said):
        act(a_chart())


def test_an_append_that_goes_back_is_refused_and_changes_nothing() -> None:
    chart = a_chart()
    chart.append("gpu", "value", [1, 2], [3, 4])
    with pytest.raises(KitError, match=r"gpu, value: x 1\.5 comes after 2"):
        chart.append("gpu", "value", 1.5, 0)
    chart.flush()
    assert arrays(chart, "gpu", "value")["x"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"kind": "bar"}, "kind 'bar'"),
        ({"series": ()}, "needs names"),
        ({"series": "box"}, "needs names"),
        ({"series": ("a", "a")}, "each once"),
        ({"minimum": 1, "maximum": 1}, "minimum 1 is not below maximum 1"),
    ],
)
def test_a_plot_that_makes_no_sense_is_refused(how: Any, said: str) -> None:
    with pytest.raises(KitError, match=said):
        Plot("k", "Title", **how)


def test_a_chart_needs_plots_with_keys_of_their_own() -> None:
    for plots in ([], [Plot("a", "A"), Plot("a", "B")]):
        with pytest.raises(KitError, match="needs plots, each with a key of its own"):
            Chart(plots)


# ------------------------------------------------------------------------------------------- axes and the static copy


def test_the_page_and_the_static_copy_have_the_same_axes() -> None:
    rng = np.random.default_rng(1)
    spans = [sorted(float(v) for v in rng.normal(0, 10.0 ** rng.integers(-6, 8), 2)) for _ in range(200)]
    spans += [[0, 100], [5, 5], [0, 0], [-3, -3], [0.3, 1], [2, 7]]
    logs = [[float(low), float(low * 10 ** rng.uniform(0, 9))] for low in 10 ** rng.uniform(-9, 6, 100)]
    values = [*np.ravel(spans), *np.ravel(logs), 0, 999.96, 1e6, 999_999.5, 1e-3, -12345.678, 2.5, 1e300]
    theirs = in_node(
        SCRIPT,
        """({
            ranges: data.spans.map(([a, b]) =>
                [chart.axisRange(a, b), chart.axisRange(a, b, 0), chart.axisRange(a, b, 0, 1)]),
            rows: data.spans.map(([a, b]) => chart.ticks(...chart.axisRange(a, b), 4)),
            whole: data.spans.map(([a, b]) => chart.wholeTicks(...chart.axisRange(a, b), 4).slice(0, 9)),
            logs: data.logs.map(([a, b]) => [chart.logRange(a, b), chart.logTicks(...chart.logRange(a, b), 4)].flat()),
            texts: data.values.map((v) => [chart.formatted(v), chart.formatted(v, "W", 3)]),
        })""",
        {"spans": spans, "logs": logs, "values": [float(v) for v in values]},
    )
    for (low, high), ranges in zip(spans, theirs["ranges"], strict=True):
        ours = [axis_range(low, high), axis_range(low, high, 0), axis_range(low, high, 0, 1)]
        np.testing.assert_allclose(ranges, ours, rtol=1e-9)
    for (low, high), rows, whole in zip(spans, theirs["rows"], theirs["whole"], strict=True):
        np.testing.assert_allclose(rows, ticks(*axis_range(low, high), 4), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(whole, whole_ticks(*axis_range(low, high), 4)[:9], rtol=1e-9, atol=1e-12)
    for (low, high), found in zip(logs, theirs["logs"], strict=True):
        ends = log_range(low, high)
        np.testing.assert_allclose(found, [*ends, *log_ticks(*ends, 4)], rtol=1e-9)
    assert theirs["texts"] == [[formatted(float(v)), formatted(float(v), "W", 3)] for v in values]


def full_chart() -> Chart:
    chart = Chart(
        [
            Plot("a", "<script>alert(1)</script> & \x00", series=("<b>total", "box")),
            Plot("lr", "Learning rate", log=True),
            Plot("gpu", "GPU busy", "%", kind="strip", minimum=0, maximum=100),
            Plot("none", "Nothing"),
            Plot("words", "Words"),
        ]
    )
    x = np.arange(5000)
    chart.set("a", "<b>total", x, np.where(x % 1000 == 7, np.nan, np.sin(x / 300)), raw=np.cos(x))
    chart.set("a", "box", [3], [0.5])
    chart.mark("a", 100, 'best" onload="x')
    chart.set("lr", "value", x, 0.01 * np.exp(-x / 500) - 1e-5)
    chart.append("gpu", "value", np.arange(600) / 10, np.linspace(0, 100, 600))
    chart.note("words", "no NVIDIA driver: <img src=x onerror=alert(1)>")
    return chart


def test_the_static_copy_is_xml_without_script_and_names_everything() -> None:
    text = full_chart().static_svg()
    root = ElementTree.fromstring(text)
    words = ["".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")]
    for expected in ("<script>alert(1)</script> & \ufffd", "Learning rate", "GPU busy %", "Nothing", "Words"):
        assert expected in words
    for expected in (
        "<b>total: ",
        "box: 0.5",
        "no values yet",
        'best" onload="x',
        "no NVIDIA driver: <img src=x",
    ):
        assert any(word.startswith(expected) for word in words), expected
    names = {each.tag.partition("}")[2] for each in root.iter()}
    assert names <= {"svg", "g", "text", "tspan", "path", "circle"}
    assert not any(name.startswith("on") or name == "href" for each in root.iter() for name in each.attrib)
    assert len(text) < 40_000


def test_the_static_copy_draws_at_most_200_points_a_series_inside_the_picture() -> None:
    root = ElementTree.fromstring(full_chart().static_svg())
    paths = [each.attrib["d"] for each in root.iter("{http://www.w3.org/2000/svg}path")]
    curves = [re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path) for path in paths if "L" in path]
    assert len(curves) == 4 and all(50 < len(curve) <= 200 for curve in curves)
    for curve in curves:
        assert all(0 <= float(x) <= 360 and 20 <= float(y) <= 180 for x, y in curve)


@pytest.mark.parametrize("back", ["#ffffff", "#111111", "#1e1e1e", "#16181c"])
def test_colours_hold_on_light_and_dark(back: str) -> None:
    for colour in COLOURS:
        high, low = sorted((luminance(colour), luminance(back)), reverse=True)
        assert (high + 0.05) / (low + 0.05) >= 3, colour


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_no_two_series_look_alike() -> None:
    assert len({style_of(k) for k in range(64)}) == 64


def test_words_reach_the_page_as_text_only() -> None:
    """Titles, notes and names are written by textContent; innerHTML is used for one constant."""
    assert re.findall(r"innerHTML = (.)", SCRIPT.read_text(encoding="utf-8")) == ["'"]
