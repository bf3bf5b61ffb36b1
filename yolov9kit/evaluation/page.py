"""The report as one HTML page that needs no network: curves, confusion, classes, the worst pictures."""

import json
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from yolov9kit.draw import FADED, INK, PAPER, RULE, SHADE, css, line_colour
from yolov9kit.evaluation.curve import RECALLS
from yolov9kit.evaluation.gallery import Shown, worst_pictures
from yolov9kit.evaluation.report import EvalReport
from yolov9kit.evaluation.text import GLANCE, MANY_CLASSES, number, of_classes

MOST_BYTES = 5_950_000
"""Of a page, which can then still be sent by mail: plotly takes 4.8 million of them, the pictures what is left."""
_FEWEST_PICTURE_BYTES = 200_000

_WRITTEN_CELLS = 31
"""Up to so many rows the confusion has its numbers written in."""


def draw_page(report: EvalReport) -> str:
    """HTML, under 6 MB (with up to some hundred classes), that loads nothing from outside.

    Raises:
        PictureError: one of the worst pictures cannot be read any more.
    """
    import plotly.offline

    template = Template((files("yolov9kit.evaluation") / "page.html").read_text(encoding="utf-8"))
    colours = {"ink": INK, "faded": FADED, "rule": RULE, "shade": SHADE, "paper": PAPER}
    parts = {name: css(colour) for name, colour in colours.items()} | {
        "title": escape(f"Evaluation of {Path(report.weights).name}"),
        "weights": escape(report.weights),
        "data": escape(report.data),
        "settings": escape(report.settings),
        "threshold": f"{report.threshold:g}",
        "glance": "".join(_tile(name, value(report)) for name, value in GLANCE.items()),
        "sizes": _sizes(report),
        "classes": _classes(report),
        "confusion_height": f"{_confusion_px(len(report.names) + 1)}px",
        "notes": "".join(f"<li>{escape(note)}</li>" for note in _notes(report)),
        "plotly": plotly.offline.get_plotlyjs(),
        "values": _as_script(_values(report)),
    }
    taken = sum(len(part.encode(errors="backslashreplace")) for part in (template.template, *parts.values()))
    pictures = worst_pictures(report, max(MOST_BYTES - taken, _FEWEST_PICTURE_BYTES))
    return template.substitute(parts, worst=_worst(report, pictures))


def _confusion_px(rows: int) -> int:
    """Rows high enough for a number, or for a small name where there are many."""
    return max(300, 110 + 34 * rows) if rows <= _WRITTEN_CELLS else min(1700, 130 + 14 * rows)


def _tile(name: str, value: float | None) -> str:
    kind = ' class="none"' if value is None else ""
    return f"<div><span>{escape(name)}</span><b{kind}>{number(value)}</b></div>"


def _row(cells: list[str], kind: str = "") -> str:
    return f"<tr{kind}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _sizes(report: EvalReport) -> str:
    if len(report.sizes) < 2:
        return ""
    heads = (
        "image size",
        "AP 50-95",
        "AP 50",
        "AP 75",
        "AP small",
        "AP medium",
        "AP large",
        "network, ms a picture",
    )
    rows = []
    for one in report.sizes:
        s = one.scores
        aps = [number(ap) for ap in (s.ap, s.ap50, s.ap75, s.small, s.medium, s.large)]
        rows.append(_row([f"{one.image_size} px", *aps, f"{one.speed.get('network', 0.0):.1f}"]))
    head = "".join(f"<th>{name}</th>" for name in heads)
    first = f"The first, {report.image_size} px, is looked into below."
    return (
        f'<h2>Image sizes</h2><p class="faded small">{first}</p>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _classes(report: EvalReport) -> str:
    everything = [number(value) for value in (report.ap, report.ap50)]
    total = f"{report.objects:,}"
    rows = [_row(["all classes", *everything, "", "", "", total, f"{len(report.paths):,}"], ' class="all"')]
    for label, (row, one) in enumerate(zip(of_classes(report), report.classes, strict=True)):
        colour = css(line_colour(label))
        dot = f'<span class="dot" style="background:{colour}"></span>'
        bar = f'<span class="bar" style="background:{colour};width:{80 * (one.ap or 0):.0f}px"></span>'
        name, ap, *others = (escape(cell) for cell in row)
        rows.append(_row([dot + name, bar + ap, *others, f"{one.pictures:,}"]))
    return "".join(rows)


def _worst(report: EvalReport, shown: list[Shown]) -> str:
    if not shown:
        return ""
    figures = []
    for picture in shown:
        one = picture.about
        faults = f"{one.missed} missed of {one.objects}, {one.wrong} wrong"
        name = escape(Path(one.path).name)
        figures.append(
            f'<figure><img alt="{name}, truth and detections" src="{picture.uri}">'
            f"<figcaption><b>{faults}</b> &ensp; {name}</figcaption></figure>"
        )
    text = f"Left what stands there, right what was found, at score over {report.threshold:g}."
    return (
        f'<h2>Worst pictures</h2><p class="faded small">{text}</p><div class="worst">{"".join(figures)}</div>'
    )


def _notes(report: EvalReport) -> list[str]:
    loss = report.loss
    speed = ", ".join(f"{stage} {ms:.1f}" for stage, ms in report.speed.items())
    kinds = ", ".join(
        f"{name} {number(report.ap_at_50(kind), 4)}"
        for name, kind in (("101 points", "coco"), ("all points", "voc"), ("11 points", "voc11"))
    )
    return [
        f"AP at IoU 0.5 by the three ways to read a curve: {kinds}",
        f"Loss {loss.total:.4f}: box {loss.box:.4f}, class {loss.cls:.4f}, distribution {loss.dfl:.4f}",
        f"Milliseconds a picture: {speed}",
        f"{report.detections:,} detections on {len(report.paths):,} pictures",
        *report.notes,
    ]


def _values(report: EvalReport) -> dict[str, Any]:
    """What the page's own script draws from."""
    thresholds = _thresholds(report)
    labels = [None, *range(len(report.names))]
    curves = [report.curve(label) for label in labels]
    counts = [one.counts(thresholds) for one in curves]
    at_best = [one.counts(np.array([report.threshold])) for one in curves]
    return {
        "recalls": np.round(RECALLS, 2).tolist(),
        "thresholds": thresholds.tolist(),
        "kept": [kept.tolist() for kept, _ in counts],
        "right": [right.tolist() for _, right in counts],
        "at_best": [[int(kept[0]), int(right[0])] for kept, right in at_best],
        "objects": [one.objects for one in curves],
        "best": report.threshold,
        "recall": _recall_lines(report),
        "f1": _f1_lines(report, thresholds),
        "confusion": _heatmap(report),
        "ink": css(INK),
        "paper": css(PAPER),
        "rule": css(RULE),
    }


def _thresholds(report: EvalReport) -> np.ndarray:
    """Steps of the slider; below the floor of the scores nothing is known."""
    steps: np.ndarray = np.arange(100) / 100
    return np.append(report.min_score, steps[steps > report.min_score])


def _line(y: np.ndarray, name: str, label: int | None, many: bool) -> dict[str, Any]:
    """The line of a class, or without a label that of all; of ``many`` classes pale and without a legend.

    The page puts in what they share: recalls or thresholds.
    """
    style = (
        {"color": css(INK), "width": 3.2}
        if label is None
        else {"color": css(line_colour(label)), "width": 1.6}
    )
    pale = many and label is not None
    return {
        "type": "scatter",
        "mode": "lines",
        "name": escape(name),
        "y": [round(float(v), 4) for v in y],
        "line": style | ({"width": 1} if pale else {}),
        "opacity": 0.4 if pale else 1,
        "showlegend": not pale,
    }


def _recall_lines(report: EvalReport) -> list[dict[str, Any]]:
    lines, many = [], len(report.names) > MANY_CLASSES
    for label, name in enumerate(report.names):
        one = report.curve(label)
        if one.objects:
            lines.append(_line(one.precision_at(RECALLS), name, label, many))
    mean = report.mean_precision()
    if mean is not None:
        lines.append(_line(mean, "mean of the classes", None, many))
    for line in lines:
        line["line"]["shape"] = "vh"  # precision holds up to its recall
    return lines


def _f1_lines(report: EvalReport, thresholds: np.ndarray) -> list[dict[str, Any]]:
    many = len(report.names) > MANY_CLASSES
    lines = [
        _line(report.curve(label).f1(thresholds), name, label, many)
        for label, name in enumerate(report.names)
        if report.curve(label).objects
    ]
    return [*lines, _line(report.curve().f1(thresholds), "all detections together", None, many)]


def _heatmap(report: EvalReport) -> dict[str, Any]:
    """Shares of the rows and texts are computed in the page, from the counts."""
    counts = report.confusion().tolist()
    names = [escape(name) for name in _distinct(report.names)] + ["background"]
    return {
        "type": "heatmap",
        "x": names,
        "y": names,
        "customdata": counts,
        "texttemplate": "%{text}" if len(names) <= _WRITTEN_CELLS else "",
        "hovertemplate": "stands there: %{y}<br>found: %{x}<br>%{customdata} (%{z:.1%} of the row)<extra></extra>",
        "colorscale": [[0, css(PAPER)], [1, css(line_colour(4))]],
        "zmin": 0,
        "zmax": 1,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Two classes of one name would be one row."""
    return [f"{name} ({label})" if names.count(name) > 1 else name for label, name in enumerate(names)]


def _as_script(values: dict[str, Any]) -> str:
    """JSON that cannot end the script it stands in."""
    return (
        json.dumps(values, allow_nan=False, separators=(",", ":")).replace("</", "<\\/").replace("<!", "<\\!")
    )
