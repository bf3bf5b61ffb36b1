"""Live curves and telemetry strips on canvases of our own: light enough for ten on a page and ten updates a second.

Values are collected between two calls of ``flush`` and sent as one message, as binary arrays. The model holds the
whole, bounded state, so that a page that is reloaded, or a second view, shows the same.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import anywidget
import numpy as np
import traitlets as t

import yolov9kit
from widgets.chart_svg import chart_svg, style_of

_HERE = Path(__file__).parent
_LIMITS = {"line": 2000, "strip": 600}  # points of a series that are held and drawn
_MARKS = 50


@dataclass(frozen=True)
class Plot:
    """One plot of a chart.

    Attributes:
        key: what the methods of ``Chart`` call it.
        title: what the page calls it.
        unit: of the values: "%", "W", "".
        series: the names of its curves, in the order of the legend.
        log: start with a logarithmic axis; the page has a button for it.
        minimum, maximum: the axis reaches at least this far. Values beyond extend it.
        height: of the drawing, in CSS pixels.
        kind: "line", curves over ``x_name``; or "strip", the last ``window_s`` seconds with the value now.
        x_name: what a line's x counts, "step" or "epoch". A strip's x is a time in seconds.
        window_s: how many seconds a strip shows.
    """

    key: str
    title: str
    unit: str = ""
    series: Sequence[str] = ("value",)
    log: bool = False
    minimum: float | None = None
    maximum: float | None = None
    height: int = 150
    kind: Literal["line", "strip"] = "line"
    x_name: str = "step"
    window_s: float = 60.0

    def __post_init__(self) -> None:
        if self.kind not in _LIMITS:
            raise yolov9kit.KitError(f"plot {self.key!r}: kind {self.kind!r}, there are 'line' and 'strip'")
        if isinstance(self.series, str) or not self.series or len(set(self.series)) < len(self.series):
            raise yolov9kit.KitError(f"plot {self.key!r}: series {self.series!r}, needs names, each once")
        if None not in (self.minimum, self.maximum) and not self.minimum < self.maximum:  # type: ignore[operator]
            raise yolov9kit.KitError(
                f"plot {self.key!r}: minimum {self.minimum:g} is not below maximum {self.maximum:g}"
            )


@dataclass(frozen=True, eq=False)
class Points:
    """A series: x float64 and rising, y and raw float32 with NaN for gaps; ``total`` were given, the rest thinned."""

    x: np.ndarray
    y: np.ndarray
    raw: np.ndarray | None
    total: int

    def __getitem__(self, index: Any) -> "Points":
        raw = None if self.raw is None else self.raw[index]
        return Points(self.x[index], self.y[index], raw, self.total)

    def arrays(self) -> list[bytes]:
        every = [self.x.astype("<f8"), self.y.astype("<f4")]
        return [each.tobytes() for each in every + ([] if self.raw is None else [self.raw.astype("<f4")])]


@dataclass
class Content:
    """What one plot shows."""

    series: dict[str, Points] = field(default_factory=dict)
    marks: list[tuple[float, str]] = field(default_factory=list)
    note: str = ""

    def words(self) -> dict[str, Any]:
        return {"marks": [list(mark) for mark in self.marks], "note": self.note}


class Chart(anywidget.AnyWidget):
    """Plots in a grid that follows the width. Safe to call from any thread; nothing is sent before ``flush``.

    Bounds: a series holds at most 2,000 points in a "line" plot and 600 in a "strip", a plot 50 marks. Of a longer
    line the extremes of each stretch are drawn, and the plot says so; a strip forgets its oldest points.

    Traits that the page changes, and that Python may set: ``hidden`` ({key: names of series}) and ``log_axes`` (keys).
    """

    _esm = _HERE / "chart.js"
    _css = _HERE / "chart.css"

    plots = t.List(t.Dict()).tag(sync=True)
    min_width = t.Int(280, min=120).tag(sync=True)
    # What a page that opens reads: the state of the last flush. It is built when asked for; updates are messages.
    points = t.Dict().tag(sync=True, to_json=lambda _, chart: chart._whole())
    hidden = t.Dict().tag(sync=True, echo_update=False)
    log_axes = t.List(t.Unicode()).tag(sync=True, echo_update=False)

    def __init__(self, plots: Sequence[Plot], *, min_width: int = 280) -> None:
        self._lock = threading.RLock()
        self._by_key = {plot.key: plot for plot in plots}
        if len(self._by_key) < len(plots) or not plots:
            keys = ", ".join(repr(plot.key) for plot in plots)
            raise yolov9kit.KitError(
                f"plots {keys or 'none'}: a chart needs plots, each with a key of its own"
            )
        self._content = {key: Content() for key in self._by_key}
        self._changed: dict[tuple[str, str], int | None] = {}  # how many points are new; None: all
        self._reworded: set[str] = set()
        self._flushed = self._snapshot()
        self._revision = 0
        self._heard = False  # whether a page has said that it listens: what is sent before is lost
        self._closed = False
        super().__init__(
            plots=[_description(plot) for plot in plots],
            min_width=min_width,
            log_axes=[plot.key for plot in plots if plot.log],
        )
        self.on_msg(self._hear)

    # ---- values

    def set(self, key: str, series: str, x: Any, y: Any, raw: Any = None) -> None:
        """Replace the points of a series.

        Args:
            key, series: which.
            x: N numbers that never fall, steps or seconds.
            y: N numbers; NaN, None and infinite ones break the line.
            raw: N numbers that y is the smoothed form of, drawn faint.

        Raises:
            KitError: no such plot or series, arrays of different lengths, an x that falls or is no number.
        """
        plot = self._plot(key, series)
        points = _checked(f"{key}, {series}", x, y, raw)
        with self._lock:
            if not self._closed:
                self._content[key].series[series] = _bounded(points, plot)
                self._changed[key, series] = None

    def append(self, key: str, series: str, x: Any, y: Any, raw: Any = None) -> None:
        """Add one point or several at the end of a series; as ``set``, and x goes on from where it was."""
        plot = self._plot(key, series)
        fresh = _checked(f"{key}, {series}", x, y, raw)
        with self._lock:
            old = self._content[key].series.get(series)
            if old is None or not len(old.x):
                return self.set(key, series, x, y, raw)
            if self._closed or not len(fresh.x):
                return
            if fresh.x[0] < old.x[-1]:
                raise yolov9kit.KitError(f"{key}, {series}: x {fresh.x[0]:g} comes after {old.x[-1]:g}")
            joined = _joined(old, fresh)
            bounded = _bounded(joined, plot)
            news = self._changed.get((key, series), 0)
            thinned = plot.kind == "line" and len(bounded.x) < len(joined.x)
            whole = news is None or thinned or (old.raw is None) != (joined.raw is None)
            self._content[key].series[series] = bounded
            self._changed[key, series] = None if whole else min(news + len(fresh.x), len(bounded.x))  # type: ignore[operator]

    def mark(self, key: str, x: float, text: str) -> None:
        """A vertical line with a word, such as "best". Of more than 50 in a plot the oldest go."""
        self._plot(key)
        if not math.isfinite(x):
            raise yolov9kit.KitError(f"{key}: mark {text!r} at x {x}, which is no number")
        with self._lock:
            if not self._closed:
                marks = [*self._content[key].marks, (float(x), str(text))]
                self._content[key].marks = sorted(marks[-_MARKS:])
                self._reworded.add(key)

    def note(self, key: str, text: str) -> None:
        """Words instead of a plot, such as why there are no values. "" shows the plot again."""
        self._plot(key)
        with self._lock:
            if not self._closed and text != self._content[key].note:
                self._content[key].note = str(text)
                self._reworded.add(key)

    def clear(self, key: str | None = None) -> None:
        """Forget the points, marks and note of a plot, or of all."""
        keys = self._by_key if key is None else [self._plot(key).key]
        with self._lock:
            for each in keys:
                for series in self._content[each].series:
                    self.set(each, series, (), ())
                self._content[each].marks, self._content[each].note = [], ""
                self._reworded.add(each)

    # ---- to the page

    def flush(self) -> None:
        """Send what has changed since the last call, as one message. Four times a second is plenty for curves."""
        with self._lock:
            if self._closed or not (self._changed or self._reworded):
                return
            content, buffers = self._delta()
            self._revision += 1
            self._changed, self._reworded = {}, set()
            self._flushed = self._snapshot()
            if self._heard:
                self.send(content, buffers)
            else:
                self.send_state("points")

    def close(self) -> None:
        """Leave the page and free the points. What is set or flushed afterwards is ignored."""
        with self._lock:
            self._closed = True
            self._content = {key: Content() for key in self._by_key}
            self._changed, self._reworded = {}, set()
            self._flushed = self._snapshot()
        super().close()

    def static_svg(self, points: int = 200) -> str:
        """The plots as an SVG that needs neither kernel nor script, on white or dark; ``points`` a series at most."""
        with self._lock:
            shown = self._snapshot()
        for content in shown.values():
            content.series = {name: _thinned(each, points) for name, each in content.series.items()}
        return chart_svg(list(self._by_key.values()), shown, self.log_axes)

    def _plot(self, key: str, series: str | None = None) -> Plot:
        if key not in self._by_key:
            raise yolov9kit.KitError(f"plot {key!r}: there are {', '.join(map(repr, self._by_key))}")
        plot = self._by_key[key]
        if series is not None and series not in plot.series:
            raise yolov9kit.KitError(
                f"series {series!r} of plot {key!r}: there are {', '.join(map(repr, plot.series))}"
            )
        return plot

    def _snapshot(self) -> dict[str, Content]:
        return {
            key: replace(content, series=dict(content.series), marks=list(content.marks))
            for key, content in self._content.items()
        }

    def _whole(self) -> dict[str, Any]:
        with self._lock:
            plots = {
                key: content.words()
                | {
                    "series": {
                        name: dict(zip(("x", "y", "raw"), each.arrays(), strict=False))
                        | {"total": each.total}
                        for name, each in content.series.items()
                    }
                }
                for key, content in self._flushed.items()
            }
            return {"revision": self._revision, "plots": plots}

    def _delta(self) -> tuple[dict[str, Any], list[bytes]]:
        changes, buffers = [], []
        for (key, name), news in self._changed.items():
            points = self._content[key].series[name]
            part = points if news is None else points[len(points.x) - news :]
            arrays = part.arrays()
            buffers += arrays
            changes.append(
                {
                    "key": key,
                    "series": name,
                    "add": news is not None,
                    "arrays": len(arrays),
                    "total": part.total,
                }
            )
        words = {key: self._content[key].words() for key in self._reworded}
        start = {"kind": "delta", "from": self._revision, "revision": self._revision + 1}
        return {**start, "changes": changes, "words": words}, buffers

    def _hear(self, _: Any, content: Any, __: Any) -> None:
        """A page says what it has: when it begins to listen, and when it finds that a message is missing."""
        if isinstance(content, dict) and content.get("kind") == "have":
            with self._lock:
                self._heard = True
                if content.get("revision") != self._revision and not self._closed:
                    self.send_state("points")


def _description(plot: Plot) -> dict[str, Any]:
    names = ("key", "title", "unit", "minimum", "maximum", "height", "kind", "x_name", "window_s")
    series = [
        dict(zip(("name", "colour", "dash"), (name, *style_of(i)), strict=True))
        for i, name in enumerate(plot.series)
    ]
    return {name: vars(plot)[name] for name in names} | {"series": series, "limit": _LIMITS[plot.kind]}


def _checked(name: str, x: Any, y: Any, raw: Any) -> Points:
    try:
        with np.errstate(over="ignore"):
            xs = np.atleast_1d(np.asarray(x, dtype=np.float64))
            ys = np.atleast_1d(np.asarray(y, dtype=np.float64)).astype(np.float32)
            raws = (
                None if raw is None else np.atleast_1d(np.asarray(raw, dtype=np.float64)).astype(np.float32)
            )
    except (TypeError, ValueError) as error:
        raise yolov9kit.KitError(
            f"{name}: x, y and raw have to be numbers or lists of them: {error}"
        ) from error
    shapes = [each.shape for each in (xs, ys, raws) if each is not None]
    if len(set(shapes)) > 1 or xs.ndim != 1:
        raise yolov9kit.KitError(
            f"{name}: x, y and raw have shapes {', '.join(map(str, shapes))}, need one length"
        )
    if not np.isfinite(xs).all():
        raise yolov9kit.KitError(
            f"{name}: x {xs[~np.isfinite(xs)][0]} at {np.argmin(np.isfinite(xs))} is no number"
        )
    falls = np.flatnonzero(np.diff(xs) < 0)
    if len(falls):
        raise yolov9kit.KitError(
            f"{name}: x has to rise, but {xs[falls[0] + 1]:g} comes after {xs[falls[0]]:g}"
        )
    gap = np.float32(np.nan)
    ys = np.where(np.isfinite(ys), ys, gap)
    return Points(xs.copy(), ys, None if raws is None else np.where(np.isfinite(raws), raws, gap), len(xs))


def _joined(old: Points, fresh: Points) -> Points:
    raw = None
    if old.raw is not None or fresh.raw is not None:
        raw = np.concatenate(
            [np.full_like(each.y, np.nan) if each.raw is None else each.raw for each in (old, fresh)]
        )
    x, y = np.concatenate((old.x, fresh.x)), np.concatenate((old.y, fresh.y))
    return Points(x, y, raw, old.total + fresh.total)


def _bounded(points: Points, plot: Plot) -> Points:
    limit = _LIMITS[plot.kind]
    if len(points.x) <= limit:
        return points
    return points[-limit:] if plot.kind == "strip" else _thinned(points, limit)


def _thinned(points: Points, limit: int) -> Points:
    """At most ``limit`` points: first, last, and of each stretch the lowest, the highest and the first gap."""
    values = points.y if points.raw is None else np.where(np.isnan(points.raw), points.y, points.raw)
    return points[yolov9kit.thinned(values, limit, np.isnan(points.y))]
