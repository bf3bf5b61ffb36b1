"""Plan and report in words: the tables of the command line, at most 120 columns wide."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from yolov9kit.benchmark.profile import KINDS
from yolov9kit.benchmark.report import BenchmarkReport, Combination, Plan, Refused, Row

WIDTH = 120
NOTHING = "-"
_RUN_HEADS = ("px", "batch", "precision", "mode")
_SPEED_HEADS = ("ms ± std", "median", "p99", "img/s", "MiB", "frag.", "busy %", "W", "floor")
_WHOLE_HEADS = ("decode", "prepare", "network", "NMS", "total", "img/s", "boxes", "score", "AP")
_KIND_HEADS = (
    "conv",
    "norm+act",
    "concat",
    "upsample",
    "pool",
    "NMS",
    "copies",
    "other",
    "outside",
    "launches",
)


def plan_text(plan: Plan) -> str:
    """What will be done, how long it takes, and what cannot be had."""
    rows = len(plan.combinations)
    lines = [
        f"{plan.weights}: {plan.model}, on {plan.device.torch_name} ({plan.device.label}, {plan.device.reason})",
        f"{rows} row{'s' if rows > 1 else ''}, {_runs(plan)}; about {duration(plan.seconds)}, were all as slow as "
        "fp32 eager",
        *(f"cannot be had: {one}" for one in refusals(plan.refused)),
        *plan.notes,
    ]
    return "\n".join(_wrapped(lines))


def _runs(plan: Plan) -> str:
    config = plan.config
    cap = "" if config.seconds is None else f", {config.seconds:g} s a row at most"
    return f"{config.warm_up} warm-up and {config.runs} timed runs each{cap}"


def refusals(refused: Sequence[Refused]) -> list[str]:
    return [f"{one.precision}, {one.mode}: {one.reason}" for one in refused]


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.1f} hours"


def table(report: BenchmarkReport) -> str:
    """The report for a terminal."""
    rows = report.rows
    lines = ["network alone, milliseconds a run:"]
    lines += _columns((*_RUN_HEADS, *_SPEED_HEADS), [_run(row) + _speed(row) for row in rows])
    lines += [
        "",
        "from file to detections, milliseconds a picture, and boxes against fp32 eager (matched, lost, new):",
    ]
    lines += _columns((*_RUN_HEADS, *_WHOLE_HEADS), [_run(row) + _whole(row) for row in rows])
    profiled = [row for row in rows if row.profile is not None]
    if profiled:
        lines += ["", "milliseconds of a batch by kind of operation:"]
        lines += _columns((*_RUN_HEADS, *_KIND_HEADS), [_run(row) + _kinds(row) for row in profiled])
    return "\n".join([*lines, "", *_wrapped(benchmark_remarks(report))])


def benchmark_remarks(report: BenchmarkReport) -> list[str]:
    """What the numbers mean, what is missing among them and why, and where they were measured."""
    return [
        *_failures(report),
        *(f"cannot be had: {one}" for one in refusals(report.plan.refused)),
        *_meanings(report),
        *report.plan.notes,
        *dict.fromkeys(f"{row.combination}: {note}" for row in report.rows for note in row.notes),
        environment_text(report.plan),
    ]


def _failures(report: BenchmarkReport) -> Iterator[str]:
    if not report.complete:
        yield f"stopped after {len(report.rows)} of {len(report.plan.combinations)} rows"
    for row in report.failed:
        run = str(row.combination)
        yield row.error if run in row.error else f"{run}: {row.error}"


def _meanings(report: BenchmarkReport) -> Iterator[str]:
    timed = [(row, row.network) for row in report.rows if row.network is not None]
    if not timed:
        return
    yield f"network alone: pictures on the device, without NMS; {timed[0][1].how}. {_first(report.rows)}"
    if any(not row.combination.precision.native for row, _ in timed):
        yield "*: emulated here: right numbers, no speed"
    wanted = report.plan.config.runs
    for row, network in timed:
        if network.capped:
            yield f"{row.combination}: the seconds were over after {network.runs.count} of {wanted} timed runs"
    unsteady = [str(row.combination) for row, network in timed if network.runs.unsteady]
    if unsteady:
        yield f"unsteady, as if others use the device too: {'; '.join(unsteady)}"
    yield "from file to detections: by stage, while stages may overlap; img/s by the host's clock"
    memories = dict.fromkeys(row.memory.what for row in report.rows if row.memory is not None)
    yield from (f"MiB: {what}" for what in memories)
    yield from _ceilings(report.rows)
    yield from _unknown(report.rows)
    scored = dict.fromkeys(row.accuracy.of for row in report.rows if row.accuracy is not None)
    yield from (f"AP of {what}" for what in scored)


def _first(rows: Sequence[Row]) -> str:
    """The longest first run of each mode."""
    longest: dict[str, tuple[float, float]] = {}
    for row in rows:
        if row.network is not None and row.ready_ms is not None:
            ready, first = longest.get(row.combination.mode.name, (0.0, 0.0))
            longest[row.combination.mode.name] = max(ready, row.ready_ms), max(first, row.network.first_ms)
    each = (f"{mode} up to {ready:.0f} ms and {first:.0f} ms" for mode, (ready, first) in longest.items())
    return f"Not in these numbers, getting ready and the first run: {', '.join(each)}"


def _unknown(rows: Sequence[Row]) -> Iterator[str]:
    """What telemetry could not tell, by its reason."""
    names: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, reason in row.usage.missing.items() if row.usage is not None else ():
            names.setdefault(reason, {})[name] = None
    yield from (f"not known: {', '.join(missing)} ({reason})" for reason, missing in names.items())


def _ceilings(rows: Sequence[Row]) -> Iterator[str]:
    seen = {row.combination.precision.name: row.floor for row in rows if row.floor is not None}
    for precision, one in seen.items():
        yield (
            f"floor in {precision}: the convolutions' work at {one.ceiling.tflops:.3g} TFLOP/s and "
            f"{one.ceiling.gb_per_s:,.0f} GB/s, measured here; the share is that of the median"
        )
    over = [str(row.combination) for row in rows if row.floor is not None and row.floor.share > 1]
    if over:
        yield f"faster than the floor: what measured the device was disturbed, or it clocked lower: {'; '.join(over)}"


def environment_text(plan: Plan) -> str:
    """One line."""
    known = {name: value for name, value in asdict(plan.environment).items() if value is not None}
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in known.items())


# ---------------------------------------------------------------------------------------------- cells


def run_cells(combination: Combination) -> tuple[str, ...]:
    """Size, batch, precision and mode; a star marks a precision that is emulated."""
    emulated = "" if combination.precision.native else "*"
    return (
        str(combination.image_size),
        str(combination.batch_size),
        combination.precision.name + emulated,
        combination.mode.name,
    )


def _run(row: Row) -> tuple[str, ...]:
    return run_cells(row.combination)


def _speed(row: Row) -> tuple[str, ...]:
    if row.network is None:
        return (NOTHING,) * len(_SPEED_HEADS)
    runs, memory, usage = row.network.runs, row.memory, row.usage
    busy = None if usage is None else usage.cpu_percent if usage.gpu_percent is None else usage.gpu_percent
    return (
        f"{ms(runs.mean)} ± {ms(runs.std)}",
        ms(runs.median),
        ms(runs.p99),
        rate(row.pictures_per_s),
        number(None if memory is None else memory.peak_mib, 0),
        percent(None if memory is None else memory.fragmentation),
        number(busy, 0),
        number(None if usage is None else usage.power_w, 0),
        percent(None if row.floor is None else row.floor.share),
    )


def _whole(row: Row) -> tuple[str, ...]:
    one, accuracy = row.end_to_end, row.accuracy
    if one is None:
        times: tuple[str, ...] = (NOTHING,) * 6
    else:
        stages = (one.decode, one.preprocess, one.network, one.nms, one.total)
        times = (*(ms(stage.mean) for stage in stages), rate(one.pictures_per_s))
    return (*times, boxes(row), number(None if row.difference is None else row.difference.max_score_change, 4),
            number(None if accuracy is None else accuracy.ap, 3))  # fmt: skip


def _kinds(row: Row) -> tuple[str, ...]:
    one = row.profile
    assert one is not None
    launches = NOTHING if one.launches is None else f"{one.launches + (one.graph_launches or 0):.0f}"
    return (*(ms(one.kinds_ms[kind]) for kind in KINDS), ms(one.outside_ms), launches)


def boxes(row: Row) -> str:
    """Matched, lost and new boxes against fp32 eager."""
    one = row.difference
    if one is None:
        return NOTHING
    return f"{one.matched} -{one.lost} +{one.new}"


def ms(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def rate(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def number(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def percent(share: float | None) -> str:
    return NOTHING if share is None else f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def _columns(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (heads, *rows)
    ]


def _wrapped(lines: Sequence[str]) -> list[str]:
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False) or [""]
    ]
