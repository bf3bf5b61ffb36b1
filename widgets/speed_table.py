"""Rows of a benchmark as bars, each with its numbers: HTML that needs neither kernel nor script."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any

import yolov9kit
from widgets.chart_svg import COLOURS, formatted

PLAIN, BEST, LOSSY = COLOURS[0], COLOURS[2], COLOURS[1]
NOTHING = "\u2013"
RULE = "★ the fastest of its size and batch that has lost no box of fp32 eager"

STYLE = """<style>
.yk-speed { contain: inline-size; overflow-x: auto; line-height: 1.4; color: var(--jp-ui-font-color1, inherit); }
.yk-speed table { table-layout: auto; border-collapse: collapse; width: 100%; margin: 0; font-size: 12px;
  font-variant-numeric: tabular-nums; }
.yk-speed tr { background: none !important; }
.yk-speed th, .yk-speed td { text-align: right; padding: 4px 0 4px 12px; line-height: 1.4; white-space: nowrap;
  vertical-align: top; border: 0; border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .3)); }
.yk-speed th { font-weight: 600; }
.yk-speed th:first-child { text-align: left; padding-left: 0; }
.yk-speed thead th { white-space: normal; vertical-align: bottom; }
.yk-speed tbody th { font-weight: 400; }
.yk-speed .yk-speed-group th { font-weight: 600; padding-top: 10px; }
.yk-speed .yk-speed-best th, .yk-speed .yk-speed-best td { font-weight: 600; }
.yk-speed td.yk-speed-words { text-align: left; white-space: normal; }
.yk-speed td.yk-speed-bar { width: 40%; min-width: 150px; }
.yk-speed small { font-size: 11px; font-weight: 400; color: var(--jp-ui-font-color2, inherit); }
.yk-speed p, .yk-speed ul { margin: 6px 0; font-size: 12px; line-height: 1.45; }
.yk-speed .yk-speed-marks { display: flex; flex-wrap: wrap; gap: 0 18px; }
</style>"""


@dataclass(frozen=True)
class Measure:
    """What the bars show: its name, what stands over them, whether more is better, and the number of a row or None."""

    name: str
    head: str
    more_is_better: bool
    of: Callable[[Any], float | None]


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "network": Measure(
            "pictures/s, network alone",
            "pictures a second (network alone)",
            True,
            lambda row: row.pictures_per_s,
        ),
        "whole": Measure(
            "pictures/s, file to detections",
            "pictures a second (file to detections)",
            True,
            lambda row: None if row.end_to_end is None else row.end_to_end.pictures_per_s,
        ),
        "run": Measure(
            "ms a run, network alone",
            "ms a run (network alone, median)",
            False,
            lambda row: None if row.network is None else row.network.runs.median,
        ),
    }
)


@dataclass(frozen=True)
class Column:
    """A number of each row. ``optional`` columns are there where a row has the number."""

    head: str
    of: Callable[[Any], str]
    optional: bool = False


def _digits(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


COLUMNS = (
    Column("ms a run", lambda row: NOTHING if row.network is None else _mean_and_std(row.network.runs)),
    Column("p99 ms", lambda row: NOTHING if row.network is None else _ms(row.network.runs.p99)),
    Column("runs", lambda row: NOTHING if row.network is None else str(row.network.runs.count)),
    Column("MiB", lambda row: NOTHING if row.memory is None else f"{row.memory.peak_mib:,.0f}"),
    Column("boxes lost", lambda row: _lost(row)),
    Column("boxes new", lambda row: NOTHING if row.difference is None else str(row.difference.new)),
    Column("largest score change", lambda row: _score_change(row)),
    Column(
        "pictures compared", lambda row: NOTHING if row.difference is None else str(row.difference.pictures)
    ),
    Column("AP", lambda row: _digits(None if row.accuracy is None else row.accuracy.ap, 3), optional=True),
    Column(
        "of the floor", lambda row: NOTHING if row.floor is None else f"{row.floor.share:.0%}", optional=True
    ),
)
"""Boxes lost mean little without how many pictures were compared: a slow row has time for few."""


def winners(rows: Sequence[Any], measure: Measure) -> set[int]:
    """The number of the best row of each size and batch, of those that are known to have lost no box."""
    best: dict[tuple[int, int], tuple[float, int]] = {}
    for number, row in enumerate(rows):
        value = measure.of(row)
        if row.error or value is None or row.difference is None or row.difference.lost:
            continue
        key = _size_and_batch(row.combination)
        rank = (-value if measure.more_is_better else value), number
        best[key] = min(best.get(key, rank), rank)
    return {number for _, number in best.values()}


def times_faster(row: Any, rows: Sequence[Any], measure: Measure) -> float | None:
    """Than fp32 eager at the same size and batch; None where one of the two has no number."""
    own, run = measure.of(row), row.combination
    for other in rows:
        plainest = (other.combination.precision.name, other.combination.mode.name) == ("fp32", "eager")
        if plainest and _size_and_batch(other.combination) == _size_and_batch(run):
            plain = measure.of(other)
            if own and plain:
                return own / plain if measure.more_is_better else plain / own
    return None


def speed_html(plan: Any, rows: Sequence[Any], measure: Measure, now: str | None = None) -> str:
    """The rows that are done, those that will be, and those that cannot be had.

    Args:
        plan, rows: of a benchmark.
        measure: what the bars show.
        now: what is done for the row after the last of ``rows``; None where nothing goes on.
    """
    columns = [
        column for column in COLUMNS if not column.optional or any(column.of(row) != NOTHING for row in rows)
    ]
    heads = ["precision, mode", measure.head, "times fp32 eager", *(column.head for column in columns)]
    best = winners(rows, measure)
    waiting = {len(rows): "not done" if now is None else f"now: {now}"}
    runs = [row.combination for row in rows] + list(plan.combinations[len(rows) :])
    body = []
    for (size, batch), group in groupby(range(len(runs)), lambda number: _size_and_batch(runs[number])):
        numbers = list(group)
        most = max((measure.of(rows[number]) or 0 for number in numbers if number < len(rows)), default=0)
        body.append(_group(f"{size} px, batch {batch}", len(heads)))
        for number in numbers:
            name = _name(runs[number], number in best)
            if number >= len(rows):
                words = waiting.get(number, "not done" if now is None else "waiting")
                body.append(_words(name, words, len(heads)))
            elif rows[number].error:
                body.append(_words(name, f"failed: {rows[number].error}", len(heads)))
            else:
                bar = _bar(rows[number], measure, most, number in best)
                times = times_faster(rows[number], rows, measure)
                cells = [_digits(times, 2), *(column.of(rows[number]) for column in columns)]
                body.append(_line(name, bar, cells, number in best))
    if plan.refused:
        body.append(_group("not on this machine", len(heads)))
    for one in plan.refused:
        body.append(_words(html.escape(f"{one.precision}, {one.mode}"), one.reason, len(heads)))
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in heads)
    return (
        f'{STYLE}<div class="yk-speed" tabindex="0" role="region" aria-label="speed by precision and mode"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{_marks(rows, best)}</div>"
    )


def remarks_html(report: Any) -> str:
    """What the numbers mean and where they were measured, folded."""
    items = "".join(f"<li>{html.escape(line)}</li>" for line in yolov9kit.benchmark_remarks(report))
    return (
        '<details class="yk-speed"><summary>What the numbers mean, and where they were measured</summary>'
        f"<ul>{items}</ul></details>"
    )


def _marks(rows: Sequence[Any], best: set[int]) -> str:
    """What signs mean, of those that are there."""
    done = [row for row in rows if not row.error]
    told = [RULE] if best else []
    told += ["bars: each size and batch has a scale of its own"] if len(best) > 1 else []
    if done and not best:
        told.append("no ★: no row is known to have lost no box of fp32 eager")
    if any(row.difference is not None and row.difference.lost for row in done):
        told.append("orange: has lost boxes")
    if any(not row.combination.precision.native for row in done):
        told.append("emulated: right numbers, no speed")
    if any(row.network is not None and row.network.runs.unsteady for row in done):
        told.append("~ unsteady, as if others use the device too: measure again")
    memories = dict.fromkeys(row.memory.what for row in done if row.memory is not None)
    told += [f"MiB: {what}" for what in memories]
    compared = {row.difference.min_score for row in done if row.difference is not None}
    told += [f"boxes: those that score over {score:g}, on the pictures compared" for score in compared]
    return f'<p class="yk-speed-marks">{"".join(f"<small>{html.escape(one)}</small>" for one in told)}</p>'


def _name(run: Any, best: bool) -> str:
    emulated = "" if run.precision.native else " <small>emulated</small>"
    star = " ★" if best else ""
    return f"{html.escape(run.precision.name)}, {html.escape(run.mode.name)}{star}{emulated}"


def _size_and_batch(run: Any) -> tuple[int, int]:
    return run.image_size, run.batch_size


def _group(words: str, columns: int) -> str:
    return (
        f'<tr class="yk-speed-group"><th scope="rowgroup" colspan="{columns}">{html.escape(words)}</th></tr>'
    )


def _line(name: str, bar: str, cells: Sequence[str], best: bool) -> str:
    """A row that is done. ``name`` and ``bar`` are HTML, cells are text."""
    kind = ' class="yk-speed-best"' if best else ""
    numbers = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    return f'<tr{kind}><th scope="row">{name}</th>{bar}{numbers}</tr>'


def _words(name: str, words: str, columns: int) -> str:
    return (
        f'<tr><th scope="row">{name}</th>'
        f'<td class="yk-speed-words" colspan="{columns - 1}"><small>{html.escape(words)}</small></td></tr>'
    )


def _bar(row: Any, measure: Measure, most: float, best: bool) -> str:
    """Its colour says nothing that the star and the boxes lost do not say too."""
    value = measure.of(row)
    if value is None:
        return f'<td class="yk-speed-bar">{NOTHING}</td>'
    lossy = row.difference is not None and row.difference.lost
    colour = BEST if best else LOSSY if lossy else PLAIN
    width = 100 * value / most if most else 0.0
    track = "display:inline-block;width:calc(100% - 64px);height:12px;vertical-align:middle;text-align:left"
    bar = f"display:block;height:12px;min-width:2px;border-radius:2px;width:{width:.1f}%;background-color:{colour}"
    number = "display:inline-block;width:60px;text-align:right"
    return (
        f'<td class="yk-speed-bar"><span style="{track}"><span style="{bar}"></span></span>'
        f'<span style="{number}">{_rate(value)}</span></td>'
    )


def _rate(value: float) -> str:
    return formatted(value, digits=3) if value < 1000 else f"{value:,.0f}"


def _ms(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def _mean_and_std(runs: Any) -> str:
    return f"{_ms(runs.mean)} ± {_ms(runs.std)}{' ~' if runs.unsteady else ''}"


def _lost(row: Any) -> str:
    one = row.difference
    return NOTHING if one is None else f"{one.lost} of {one.reference}"


def _score_change(row: Any) -> str:
    one = row.difference
    if one is None or one.max_score_change is None:
        return NOTHING
    return (
        "0"
        if not one.max_score_change
        else "< 0.0001"
        if one.max_score_change < 0.0001
        else f"{one.max_score_change:.4f}"
    )
