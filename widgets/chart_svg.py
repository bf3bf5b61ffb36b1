"""A chart as a small SVG that needs neither kernel nor script, and the arithmetic of its axes.

The page's chart.js has the same axes; tests/widgets/test_chart.py compares the two.
"""

import html
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from widgets.chart import Content, Plot

# At least 3:1 against white and against the dark themes' backgrounds; the dash tells series apart without colour.
COLOURS = ("#2f7fe0", "#d9660f", "#1f9a63", "#9a63e0", "#d6457f", "#0f93a8", "#8a7a10", "#7a7f88")
DASHES = ((), (7, 3), (2, 3), (9, 3, 2, 3), (4, 2), (12, 4), (2, 2, 6, 2), (1, 4))
_INK = "#777777"  # readable on white and on dark
_WIDTH, _LEFT, _TOP, _BELOW, _LINE = 360, 50, 24, 22, 16
_FACTORS = (1, 2, 5)

# ------------------------------------------------------------------------------------------------- axes


def style_of(index: int) -> tuple[str, tuple[int, ...]]:
    """Colour and dash of the series of this number: no two of the first 64 are alike."""
    return COLOURS[index % 8], DASHES[(index + index // 8) % 8]


def nice_step(span: float, count: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that cuts ``span`` into at most ``count`` pieces."""
    rough = span / count
    power = 10.0 ** math.floor(math.log10(rough))
    return next(f * power for f in (*_FACTORS, 10) if f * power >= rough * (1 - 1e-9))


def ticks(low: float, high: float, count: int) -> list[float]:
    """The multiples of a nice step from low to high."""
    step = nice_step(high - low, count)
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return [k * step for k in range(first, last + 1)]


def whole_ticks(low: float, high: float, count: int) -> list[float]:
    """Ticks of what is counted, steps or epochs: whole numbers, unless less than one is shown."""
    if high - low < 1 or nice_step(high - low, count) >= 1:
        return ticks(low, high, count)
    return [float(k) for k in range(math.ceil(low), math.floor(high) + 1)]


def axis_range(
    low: float, high: float, minimum: float | None = None, maximum: float | None = None, count: int = 4
) -> tuple[float, float]:
    """The ends of an axis for values from low to high: a little air, ends that seldom move, zero where it is near."""
    low = low if minimum is None else min(low, minimum)
    high = high if maximum is None else max(high, maximum)
    if low == high:
        half = abs(low) * 0.1 or 1.0
        return (low, low + 2 * half) if low == minimum else (low - half, low + half)
    snap, air = nice_step(high - low, count) / 2, 0.04 * (high - low)
    start, end = math.floor((low - air) / snap) * snap, math.ceil((high + air) / snap) * snap
    if 0 <= low and (start < 0 or low <= 0.3 * high):
        start = 0.0
    return (low if low == minimum else start), (high if high == maximum else end)


def _rung(value: float, up: bool) -> int:
    """The number of the nearest of 1, 2, 5, 10, 20 ... not above (up: not below) a positive value; 1 has number 0."""
    power = math.floor(math.log10(value))
    rungs = [3 * power + k for k in range(-1, 5)]
    fits = [
        k for k in rungs if (_at_rung(k) >= value * (1 - 1e-6) if up else _at_rung(k) <= value * (1 + 1e-6))
    ]
    return min(fits) if up else max(fits)


def _at_rung(number: int) -> float:
    return _FACTORS[number % 3] * 10.0 ** (number // 3)


def log_range(low: float, high: float) -> tuple[float, float]:
    """The ends of a logarithmic axis for positive values from low to high, each 1, 2 or 5 times a power of ten."""
    start, end = _rung(low, False), _rung(high, True)
    if start == end:
        start, end = start - 1, end + 1
    return _at_rung(start), _at_rung(end)


def log_ticks(low: float, high: float, count: int) -> list[float]:
    """1, 2 and 5 times the powers of ten where there is room for them, else powers of ten alone."""
    start, end = _rung(low, True), _rung(high, False)
    if end - start < count + 2:
        return [_at_rung(k) for k in range(start, end + 1)]
    first, last = math.ceil(start / 3), end // 3
    stride = math.ceil((last - first + 1) / (count + 1))
    return [10.0**k for k in range(first, last + 1, stride)]


def formatted(value: float, unit: str = "", digits: int = 4) -> str:
    """A number for people: four digits that count, whole numbers whole, thousands apart, a dash for none."""
    if not math.isfinite(value):
        return "\u2013"
    size = abs(value)
    if size == 0:
        text = "0"
    elif value == math.floor(value) and size < 1e9:
        text = f"{value:,.0f}"
    elif size < 1e-3 or size >= 1e6:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{_trimmed(mantissa)}e{int(exponent)}"
    else:
        text = _trimmed(f"{value:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}")
    return text.replace("-", "\u2212") + (f" {unit}" if unit else "")


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


# ------------------------------------------------------------------------------------------------- drawing


def chart_svg(plots: Sequence["Plot"], contents: Mapping[str, "Content"], log_axes: Iterable[str]) -> str:
    """All plots, two beside each other, with everything that their contents hold."""
    columns, parts, top = min(2, len(plots)), [], 0.0
    for first in range(0, len(plots), columns):
        row = plots[first : first + columns]
        blocks = [
            _block(plot, contents[plot.key], plot.key in set(log_axes) and plot.kind == "line")
            for plot in row
        ]
        parts += [
            f'<g transform="translate({k * _WIDTH} {top:g})">{b}</g>' for k, (b, _) in enumerate(blocks)
        ]
        top += max(height for _, height in blocks) + 12
    width = columns * _WIDTH
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top:g}" width="{width}" height="{top:g}" '
        f'role="img" aria-label="{_escaped(", ".join(plot.title for plot in plots))}" '
        f'style="max-width: 100%; height: auto" font-family="system-ui, sans-serif" font-size="11" fill="{_INK}">'
        f"{''.join(parts)}</svg>"
    )


def _escaped(text: str) -> str:
    """Text for XML, which has no room at all for some characters."""
    return html.escape(re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "\ufffd", text))


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{_escaped(text)}</text>'


def _block(plot: "Plot", content: "Content", log: bool) -> tuple[str, float]:
    """One plot with title and legend, and how high it is."""
    unit = f' <tspan font-weight="400">{_escaped(plot.unit)}</tspan>' if plot.unit else ""
    title = f'<text x="8" y="14" font-size="12" font-weight="600">{_escaped(plot.title)}{unit}</text>'
    legend, lines = _legend(plot, content)
    legend = f'<g transform="translate(0 {_TOP + plot.height + _BELOW})">{legend}</g>'
    body = _words(plot, content.note) if content.note else _curves(plot, content, log)
    return title + body + legend, _TOP + plot.height + _BELOW + lines * _LINE


def _words(plot: "Plot", text: str) -> str:
    words, lines = text.split(), [""]
    for word in words:
        lines[-1:] = [f"{lines[-1]} {word}".strip()] if len(lines[-1]) + len(word) < 56 else [lines[-1], word]
    return "".join(_text(16, _TOP + 22 + 15 * k, line) for k, line in enumerate(lines))


def _legend(plot: "Plot", content: "Content") -> tuple[str, int]:
    x, y, parts = 8.0, 10.0, []
    for index, name in enumerate(plot.series):
        points = content.series.get(name)
        last = float(points.y[-1]) if points is not None and len(points.y) else math.nan
        label = f"{name}: {formatted(last, plot.unit)}"
        width = 30 + 6.2 * len(label)
        if x > 8 and x + width > _WIDTH - 8:
            x, y = 8.0, y + _LINE
        parts.append(_stroke(f"M{x:.0f} {y - 4:.0f}h20", *style_of(index), 2) + _text(x + 25, y, label))
        x += width + 10
    return "".join(parts), round((y - 10) / _LINE) + 1


def _stroke(path: str, colour: str, dash: Sequence[int], width: float, more: str = "") -> str:
    dashes = f' stroke-dasharray="{" ".join(map(str, dash))}"' if dash else ""
    return f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{dashes}{more}/>'


def _curves(plot: "Plot", content: "Content", log: bool) -> str:
    shown = {name: content.series[name] for name in plot.series if name in content.series}
    shown = {name: each for name, each in shown.items() if len(each.x)}
    if not shown:
        return _words(plot, "no values yet")
    every = np.concatenate([v for each in shown.values() for v in (each.y, each.raw) if v is not None])
    every = every[np.isfinite(every) & ((every > 0) | (not log))].astype(np.float64)
    if not len(every):
        return _words(plot, "no values above 0 for a logarithmic axis" if log else "no values yet")
    low, high = float(every.min()), float(every.max())
    if log:
        ends = log_range(low, high)
        rows, place_y = (
            log_ticks(*ends, 4),
            _Scale(math.log10(ends[0]), math.log10(ends[1]), _TOP + plot.height, _TOP),
        )
    else:
        ends = axis_range(low, high, plot.minimum, plot.maximum)
        rows, place_y = ticks(*ends, 4), _Scale(*ends, _TOP + plot.height, _TOP)
    level = np.log10 if log else np.asarray
    newest = max(float(each.x[-1]) for each in shown.values())
    first = (
        newest - plot.window_s if plot.kind == "strip" else min(float(each.x[0]) for each in shown.values())
    )
    first, newest = (first, newest) if first < newest else (first - 0.5, newest + 0.5)
    place_x = _Scale(first, newest, _LEFT, _WIDTH - 12)
    parts = []
    for value in rows:
        y = float(place_y(level(value)))
        parts.append(_stroke(f"M{_LEFT} {y:.1f}H{_WIDTH - 12}", _INK, (), 1, ' stroke-opacity=".3"'))
        parts.append(_text(_LEFT - 6, y + 4, formatted(value), 'text-anchor="end"'))
    parts.append(_under(plot, first, newest, place_x))
    marks = [(float(place_x(x)), text) for x, text in content.marks if first <= x <= newest]
    for k, (at, text) in enumerate(marks):
        parts.append(_stroke(f"M{at:.1f} {_TOP}v{plot.height}", _INK, (3, 3), 1))
        shift, side = (-4, "end") if at > _WIDTH - 80 else (4, "start")
        parts.append(_text(at + shift, _TOP + 10 + 12 * (k % 3), text, f'text-anchor="{side}"'))
    for name, each in shown.items():
        colour, dash = style_of(list(plot.series).index(name))
        for values, width, more in ((each.raw, 1, ' stroke-opacity=".4"'), (each.y, 1.75, "")):
            if values is not None:
                seen = (each.x >= first) & ((values > 0) if log else True)
                ys = place_y(level(np.where(seen, values, np.nan).astype(np.float64)))
                parts.append(_curve(place_x(each.x), ys, colour, dash if not more else (), width, more))
    return "".join(parts)


def _under(plot: "Plot", first: float, newest: float, place_x: "_Scale") -> str:
    """The numbers along x: of a strip how many seconds ago, else the steps."""
    y = _TOP + plot.height + 14
    if plot.kind == "strip":
        ends = _text(_LEFT, y, f"\u2212{formatted(plot.window_s, 's')}") + _text(
            _WIDTH - 12, y, "now", 'text-anchor="end"'
        )
        return ends
    names = [
        _text(float(place_x(v)), y, formatted(v), 'text-anchor="middle"')
        for v in whole_ticks(first, newest, 5)
    ]
    return "".join(names)


class _Scale:
    """From values to places: a straight line through two points."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low, self._start, self._slope = low, start, (end - start) / (high - low)

    def __call__(self, values: "float | np.ndarray") -> "np.ndarray":
        return np.asarray(self._start + (np.asarray(values) - self._low) * self._slope)


def _curve(xs: np.ndarray, ys: np.ndarray, colour: str, dash: Sequence[int], width: float, more: str) -> str:
    """A line that breaks at NaN; a point that stands alone is a dot."""
    path, dots = [], []
    holes = np.flatnonzero(~np.isfinite(ys))
    for run in np.split(np.arange(len(xs)), holes):
        run = run[np.isfinite(ys[run])]
        if len(run) == 1:
            dots.append(f'<circle cx="{xs[run[0]]:.1f}" cy="{ys[run[0]]:.1f}" r="2.5" fill="{colour}"/>')
        elif len(run):
            path.append("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs[run], ys[run], strict=True)))
    line = _stroke("".join(path), colour, dash, width, more + ' stroke-linejoin="round"') if path else ""
    return line + "".join(dots)
