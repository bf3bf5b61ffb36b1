"""The report in words and plain values: the table of the command line, the rows of figure and page, the JSON."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from yolov9kit.evaluation.report import EvalReport, SizeScore

NO_OBJECTS = "no objects"
MANY_CLASSES = 24
"""From here on colours repeat: lines of single classes are pale, that of all stands out."""

GLANCE: Mapping[str, Callable[[EvalReport], float | None]] = MappingProxyType(
    {
        "AP 50-95": lambda report: report.ap,
        "AP 50": lambda report: report.ap50,
        "AP 75": lambda report: report.ap75,
        "AP small": lambda report: report.scores.small,
        "AP medium": lambda report: report.scores.medium,
        "AP large": lambda report: report.scores.large,
    }
)
"""What is looked at first."""


def number(value: float | None, digits: int = 3) -> str:
    """A share, or why there is none."""
    return NO_OBJECTS if value is None else f"{value:.{digits}f}"


def of_classes(report: EvalReport) -> list[tuple[str, ...]]:
    """Class, AP 50-95, AP 50, precision, recall, F1, objects of each class."""
    return [
        (
            one.name,
            *(_short(value) for value in (one.ap, one.ap50, one.precision, one.recall, one.f1)),
            f"{one.objects:,}" if one.objects else NO_OBJECTS,
        )
        for one in report.classes
    ]


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def table(report: EvalReport, classes: bool = True) -> str:
    """The report for a terminal; ``classes``: with a line for each."""
    at_size = f"{report.image_size} px: " if len(report.sizes) > 1 else ""
    glance = at_size + ", ".join(f"{name} {number(value(report), 4)}" for name, value in GLANCE.items())
    lines = [glance]
    if len(report.sizes) > 1:
        lines += _columns(
            ("image size", "AP 50-95", "AP 50", "AP 75", "network ms", "cut before NMS", "cut after"),
            [
                (
                    f"{one.image_size} px",
                    *(_short(ap) for ap in (one.scores.ap, one.scores.ap50, one.scores.ap75)),
                    f"{one.speed.get('network', 0.0):.1f}",
                    f"{one.cut:,}",
                    f"{one.over:,}",
                )
                for one in report.sizes
            ],
        )
    point = report.at()
    everything = ("all", *(_short(value) for value in (report.ap, report.ap50, *point.all)))
    heads = ("class", "AP 50-95", "AP 50", "precision", "recall", "F1", "objects")
    objects = f"{report.objects:,}" if report.objects else NO_OBJECTS
    lines += _columns(heads, [(*everything, objects), *(of_classes(report) if classes else [])])
    lines.append(f"precision, recall and F1 at IoU 0.5 and score over {point.threshold:g}, where F1 is best")
    speed = ", ".join(f"{stage} {ms:.1f}" for stage, ms in report.speed.items())
    lines += [f"ms a picture: {speed}", f"settings: {report.settings}"]
    return "\n".join(lines)


def _columns(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]

    def line(row: tuple[str, ...]) -> str:
        first = row[0].ljust(widths[0])
        return "  ".join((first, *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)))).rstrip()

    return ["", *(line(row) for row in (heads, *rows)), ""]


def as_record(report: EvalReport) -> dict[str, Any]:
    """Plain values for JSON. What has no objects is null; arrays of all detections are left to ``report.matches``."""
    point = report.at()
    return {
        "weights": report.weights,
        "data": report.data,
        "settings": report.settings,
        "pictures": len(report.paths),
        "objects": report.objects,
        "detections": report.detections,
        "sizes": [_size_record(one) for one in report.sizes],
        "threshold": point.threshold,
        **point.all._asdict(),
        "ap50_all_points": report.ap_at_50("voc"),
        "ap50_11_points": report.ap_at_50("voc11"),
        "classes": [asdict(one) for one in report.classes],
        "confusion": {
            "names": [*report.names, "background"],
            "rows": "what stands there",
            "columns": "what was found",
            "min_iou": 0.5,
            "counts": report.confusion().tolist(),
        },
        "worst": [asdict(one) for one in report.worst()],
        "notes": list(report.notes),
        "seconds": report.seconds,
    }


def _size_record(one: SizeScore) -> dict[str, Any]:
    scores = one.scores
    return {
        "image_size": one.image_size,
        **{name: vars(scores)[name] for name in ("ap", "ap50", "ap75", "small", "medium", "large")},
        "loss": one.loss._asdict(),
        "detections": one.detections,
        "candidates_cut": one.cut,
        "boxes_cut": one.over,
        "ms_a_picture": dict(one.speed),
    }
