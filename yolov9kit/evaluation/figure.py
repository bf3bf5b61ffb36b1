"""The report as one picture: the scores, the curve of precision over recall, the table of classes."""

import io

import numpy as np
from PIL import Image, ImageDraw

from yolov9kit.draw import FADED, INK, PAPER, RULE, SHADE, Colour, line_colour, written
from yolov9kit.evaluation.curve import RECALLS
from yolov9kit.evaluation.report import EvalReport
from yolov9kit.evaluation.text import GLANCE, MANY_CLASSES, number, of_classes

Pixels = float | int

WIDTH, MARGIN = 1280, 32
_PLOT = (MARGIN + 44, 560, 400)
"""Left edge, width and height of the plot."""
_TABLE_LEFT = 664
_ROW = 24
_MOST_ROWS = 60
_FINE = 2
"""Drawn this many times larger and scaled down, which makes lines smooth."""


def draw_report(report: EvalReport) -> bytes:
    """A PNG, 1280 pixels wide."""
    rows = of_classes(report)[:_MOST_ROWS]
    settings = _wrapped(report.settings, 13, WIDTH - 2 * MARGIN)
    top = 108 + 18 * len(settings)
    body = top + 92
    height = max(body + _PLOT[2] + 76, body + _ROW * (len(rows) + 3)) + 8
    sheet = _Sheet(WIDTH, height)
    sheet.text(MARGIN, 24, f"Evaluation of {report.weights}", 22, fits=WIDTH - 2 * MARGIN)
    sheet.text(MARGIN, 58, report.data, 14, FADED, fits=WIDTH - 2 * MARGIN)
    for line, text in enumerate(settings):
        sheet.text(MARGIN, 84 + 18 * line, text, 13, FADED)
    _scores(sheet, report, top)
    _curves(sheet, report, body)
    _table(sheet, report, rows, body)
    picture = sheet.image.resize((WIDTH, height), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()


class _Sheet:
    """White paper, measured in pixels of the finished picture."""

    def __init__(self, width: int, height: int) -> None:
        self.image = Image.new("RGB", (width * _FINE, height * _FINE), PAPER)
        self._pen = ImageDraw.Draw(self.image)

    def text(
        self,
        x: Pixels,
        y: Pixels,
        text: str,
        size: int,
        colour: Colour = INK,
        anchor: str = "la",
        fits: Pixels | None = None,
    ) -> None:
        """``fits``: what does not fit into this width is cut, with an ellipsis. ``anchor`` as in Pillow."""
        while fits and len(text) > 4 and _length(text, size) > fits:
            text = text[: -max(2, len(text) // 20)].rstrip(". ") + "..."
        drawable, font = written(text, size * _FINE)
        self._pen.text((x * _FINE, y * _FINE), drawable, fill=colour, font=font, anchor=anchor)

    def line(self, points: np.ndarray, colour: Colour, width: Pixels) -> None:
        """``points`` N x 2."""
        flat = [(float(x), float(y)) for x, y in np.asarray(points, float) * _FINE]
        self._pen.line(flat, fill=colour, width=round(width * _FINE), joint="curve")

    def box(self, left: Pixels, top: Pixels, right: Pixels, bottom: Pixels, colour: Colour) -> None:
        self._pen.rectangle((left * _FINE, top * _FINE, right * _FINE - 1, bottom * _FINE - 1), fill=colour)


def _length(text: str, size: int) -> float:
    drawable, font = written(text, size)
    return font.getlength(drawable)


def _wrapped(text: str, size: int, width: Pixels) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _length(longer, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _scores(sheet: _Sheet, report: EvalReport, top: Pixels) -> None:
    step = (WIDTH - 2 * MARGIN) / len(GLANCE)
    sheet.box(MARGIN, top, WIDTH - MARGIN, top + 68, SHADE)
    for place, (name, value) in enumerate(GLANCE.items()):
        x = MARGIN + place * step + 14
        shown = number(value(report))
        sheet.text(x, top + 12, name, 12, FADED)
        small = len(shown) > 6  # "no objects"
        sheet.text(x, top + (38 if small else 31), shown, 14 if small else 22, FADED if small else INK)


def _curves(sheet: _Sheet, report: EvalReport, top: Pixels) -> None:
    left, width, height = _PLOT
    for step in range(0, 11, 2):
        share = step / 10
        x, y = left + share * width, top + 20 + (1 - share) * height
        sheet.line(np.array([[left, y], [left + width, y]]), RULE, 1)
        sheet.line(np.array([[x, top + 20], [x, top + 20 + height]]), RULE, 1)
        sheet.text(left - 8, y, f"{share:.1f}", 12, FADED, "rm")
        sheet.text(x, top + 28 + height, f"{share:.1f}", 12, FADED, "ma")
    sheet.text(left, top - 4, "Precision over recall at IoU 0.5", 14)
    sheet.text(left + width, top + 48 + height, "recall", 12, FADED, "ra")

    def draw(values: np.ndarray, colour: Colour, thickness: Pixels) -> None:
        reached = values > 0
        points = np.column_stack((left + RECALLS * width, top + 20 + (1 - values) * height))[reached]
        if len(points) > 1:
            sheet.line(points, colour, thickness)

    many = len(report.names) > MANY_CLASSES
    for label in range(len(report.names)):
        one = report.curve(label)
        if one.objects:
            colour = _pale(line_colour(label)) if many else line_colour(label)
            draw(one.precision_at(RECALLS), colour, 1 if many else 1.5)
    mean = report.mean_precision()
    if mean is not None:
        draw(mean, INK, 3)
        sheet.line(np.array([[left, top + 56 + height], [left + 26, top + 56 + height]]), INK, 3)
        sheet.text(left + 34, top + 56 + height, "mean of the classes", 12, FADED, "lm")


def _pale(colour: Colour) -> Colour:
    red, green, blue = ((part + 2 * white) // 3 for part, white in zip(colour, PAPER, strict=True))
    return red, green, blue


def _table(sheet: _Sheet, report: EvalReport, rows: list[tuple[str, ...]], top: Pixels) -> None:
    right = WIDTH - MARGIN
    edges = [right - 70 * n for n in range(5, -1, -1)]
    heads = ("class", "AP 50-95", "AP 50", "precision", "recall", "F1", "objects")
    sheet.text(_TABLE_LEFT, top - 4, f"Classes; precision, recall, F1 at score {report.threshold:g}", 14)
    line = top + 24
    sheet.text(_TABLE_LEFT + 18, line, heads[0], 12, FADED)
    for head, edge in zip(heads[1:], edges, strict=True):
        sheet.text(edge, line, head, 12, FADED, "ra")
    for label, row in enumerate(rows):
        line = top + 24 + _ROW * (label + 1)
        sheet.line(np.array([[_TABLE_LEFT, line - 5], [right, line - 5]]), RULE, 1)
        sheet.box(_TABLE_LEFT, line + 2, _TABLE_LEFT + 10, line + 12, line_colour(label))
        sheet.text(_TABLE_LEFT + 18, line, row[0], 13, fits=edges[0] - _TABLE_LEFT - 84)
        for text, edge in zip(row[1:], edges, strict=True):
            sheet.text(edge, line, text, 13, FADED if text == "-" else INK, "ra")
    left_out = len(report.names) - len(rows)
    if left_out:
        sheet.text(
            _TABLE_LEFT + 18, line + _ROW, f"and {left_out} more classes, in the page and JSON", 12, FADED
        )
