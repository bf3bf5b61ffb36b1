"""The report as one HTML page that needs no network and no script, in the reader's choice of light or dark."""

from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from yolov9kit.benchmark.profile import KINDS
from yolov9kit.benchmark.report import BenchmarkReport, Row
from yolov9kit.benchmark.text import (
    NOTHING,
    benchmark_remarks,
    boxes,
    duration,
    ms,
    number,
    percent,
    rate,
    run_cells,
)
from yolov9kit.draw import FADED, INK, PAPER, RULE, SHADE, css, line_colour

_STAGES = ("decode", "prepare", "network", "NMS")


def draw_page(report: BenchmarkReport) -> str:
    """HTML that loads nothing from outside."""
    template = Template((files("yolov9kit.benchmark") / "page.html").read_text(encoding="utf-8"))
    plan = report.plan
    colours = {"ink": INK, "faded": FADED, "rule": RULE, "shade": SHADE, "paper": PAPER}
    done = f"{len(report.rows)} of {len(plan.combinations)} rows in {duration(report.seconds)}"
    return template.substitute(
        {name: css(colour) for name, colour in colours.items()},
        title=escape(f"Benchmark of {Path(plan.weights).name}"),
        weights=escape(plan.weights),
        about=escape(
            f"{plan.model} on {plan.device.label} ({plan.device.torch_name}), {plan.environment.date}"
        ),
        settings=escape(
            f"{done}; {plan.config.warm_up} warm-up and {plan.config.runs} timed runs a row; pictures: {plan.source}"
        ),
        glance=_glance(report),
        speed=_speed(report.rows),
        whole=_whole(report.rows),
        agreement=_agreement(report.rows),
        kinds=_kinds(report.rows),
        notes="".join(f"<li>{escape(line)}</li>" for line in benchmark_remarks(report)),
    )


def _glance(report: BenchmarkReport) -> str:
    """What is looked at first: the best of each."""
    timed = [row for row in report.rows if row.network is not None]
    whole = [row for row in report.rows if row.end_to_end is not None]
    tiles = []
    if timed:
        most = max(timed, key=lambda row: row.pictures_per_s or 0)
        tiles.append(("most pictures a second, network", rate(most.pictures_per_s), str(most.combination)))
        least = min(timed, key=_median)
        tiles.append(("shortest run, median", f"{ms(_median(least))} ms", str(least.combination)))
    if whole:
        best = max(whole, key=_whole_rate)
        tiles.append(("most pictures a second, end to end", rate(_whole_rate(best)), str(best.combination)))
    return "".join(
        f"<div><span>{escape(name)}</span><b>{escape(value)}</b><span>{escape(of)}</span></div>"
        for name, value, of in tiles
    )


def _median(row: Row) -> float:
    assert row.network is not None
    return row.network.runs.median


def _whole_rate(row: Row) -> float:
    assert row.end_to_end is not None
    return row.end_to_end.pictures_per_s


def _table(heads: tuple[str, ...], rows: list[str]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in ("px", "batch", "precision", "mode", *heads))
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _row(row: Row, cells: tuple[str, ...], bar: str = "") -> str:
    """Cells are text, ``bar`` is HTML."""
    texts = "".join(f"<td>{escape(cell)}</td>" for cell in (*run_cells(row.combination), *cells))
    last = f'<td class="wide">{bar}</td>' if bar else ""
    return f"<tr>{texts}{last}</tr>"


def _failed(row: Row, columns: int) -> str:
    runs = "".join(f"<td>{escape(cell)}</td>" for cell in run_cells(row.combination))
    return f'<tr>{runs}<td class="why" colspan="{columns}">{escape(row.error)}</td></tr>'


def _bar(parts: list[tuple[str, float]], most: float) -> str:
    """Parts side by side, each with its name and milliseconds under the pointer; ``most`` fills the cell."""
    spans = []
    for number_of_part, (name, value) in enumerate(parts):
        width = 100 * value / most if most else 0.0
        colour = css(line_colour(number_of_part))
        spans.append(
            f'<span style="width:{width:.2f}%;background:{colour}" title="{escape(name)} {ms(value)}"></span>'
        )
    return f'<div class="bar">{"".join(spans)}</div>'


def _legend(names: tuple[str, ...]) -> str:
    dots = (
        f'<span class="dot" style="background:{css(line_colour(n))}"></span>{escape(name)}'
        for n, name in enumerate(names)
    )
    return f'<p class="small faded legend">{" ".join(f"<span>{dot}</span>" for dot in dots)}</p>'


def _speed(rows: tuple[Row, ...]) -> str:
    heads = ("mean ± std, ms", "median", "p99", "least", "first", "waited for", "pictures a second", "peak MiB",
             "fragmented", "busy", "W", "floor ms", "share", "")  # fmt: skip
    most = max((row.pictures_per_s or 0 for row in rows), default=0)
    lines = []
    for row in rows:
        if row.network is None:
            lines.append(_failed(row, len(heads)))
            continue
        runs, memory, usage, floor = row.network.runs, row.memory, row.usage, row.floor
        busy = (
            None if usage is None else usage.cpu_percent if usage.gpu_percent is None else usage.gpu_percent
        )
        cells = (
            f"{ms(runs.mean)} ± {ms(runs.std)}",
            ms(runs.median),
            ms(runs.p99),
            ms(runs.minimum),
            ms(row.network.first_ms),
            number(None if row.latency is None else row.latency.runs.median, 2),
            rate(row.pictures_per_s),
            number(None if memory is None else memory.peak_mib, 0),
            percent(None if memory is None else memory.fragmentation),
            percent(None if busy is None else busy / 100),
            number(None if usage is None else usage.power_w, 0),
            NOTHING if floor is None else ms(floor.ms),
            percent(None if floor is None else floor.share),
        )
        lines.append(_row(row, cells, _bar([("pictures a second", row.pictures_per_s or 0)], most)))
    return _table(heads, lines)


def _whole(rows: tuple[Row, ...]) -> str:
    heads = (*_STAGES, "total", "p99", "pictures a second", "")
    done = [row for row in rows if row.end_to_end is not None]
    most = max((row.end_to_end.total.mean for row in done if row.end_to_end is not None), default=0)
    lines = []
    for row in done:
        one = row.end_to_end
        assert one is not None
        stages = [stage.mean for stage in (one.decode, one.preprocess, one.network, one.nms)]
        cells = (*map(ms, stages), ms(one.total.mean), ms(one.total.p99), rate(one.pictures_per_s))
        lines.append(_row(row, cells, _bar(list(zip(_STAGES, stages, strict=True)), most)))
    return _legend(_STAGES) + _table(heads, lines)


def _agreement(rows: tuple[Row, ...]) -> str:
    heads = ("boxes: matched, lost, new", "mean IoU", "largest score change", "AP 50-95", "AP 50", "AP 75")
    lines = []
    for row in rows:
        one, accuracy = row.difference, row.accuracy
        cells = (
            boxes(row),
            number(None if one is None else one.mean_iou, 4),
            number(None if one is None else one.max_score_change, 5),
            number(None if accuracy is None else accuracy.ap, 4),
            number(None if accuracy is None else accuracy.ap50, 4),
            number(None if accuracy is None else accuracy.ap75, 4),
        )
        lines.append(_row(row, cells))
    return _table(heads, lines)


def _kinds(rows: tuple[Row, ...]) -> str:
    heads = (*KINDS, "outside", "launches", "graph launches", "copies to host", "")
    profiled = [row for row in rows if row.profile is not None]
    if not profiled:
        return ""
    most = max(sum(row.profile.kinds_ms.values()) for row in profiled if row.profile is not None)
    lines = []
    for row in profiled:
        one = row.profile
        assert one is not None
        times = [one.kinds_ms[kind] for kind in KINDS]
        counts = (one.launches, one.graph_launches, one.copies_to_host)
        cells = (*map(ms, times), ms(one.outside_ms), *(number(count, 0) for count in counts))
        lines.append(_row(row, cells, _bar(list(zip(KINDS, times, strict=True)), most)))
    text = "Milliseconds of a batch from decoded pictures to detections; outside: what the profiler does not see."
    return (
        f'<h2>Kinds of operation</h2><p class="faded small">{text}</p>{_legend(KINDS)}{_table(heads, lines)}'
    )
