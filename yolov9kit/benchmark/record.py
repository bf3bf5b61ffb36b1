"""The report as plain values for JSON. Units stand in the names; what is not known is null, never NaN."""

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from yolov9kit.benchmark.report import BenchmarkReport, EndToEnd, Row
from yolov9kit.benchmark.timing import Spread, Timed

SCHEMA = "yolov9kit benchmark 1"
"""The number counts up when a name goes or changes its meaning; new names may come without."""

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "network": "runs of the network alone: uint8 pictures on the device already, without decoding of boxes and NMS",
        "first_ms": "the first run, with what it records or compiles; in no other number",
        "latency": "single runs of the network that the host waits for; null on a processor, where network is that",
        "end_to_end": "milliseconds a picture by stage, from file to detections; pictures_per_s by the host's clock",
        "memory": "peak_mib as `what` says; fragmentation_share = 1 - allocated / reserved",
        "usage": "means over the timed runs of the network, sampled 10 times a second; `missing` has reasons for null",
        "difference": "boxes matched one to one by class with those of fp32 eager on the same device",
        "accuracy": "AP on the data set, of what `of` says",
        "floor": "time that the convolutions need at least at the ceilings measured here; share of the median",
        "profile": "milliseconds of one batch from decoded pictures to detections, by kind of operation",
    }
)


def as_record(report: BenchmarkReport) -> dict[str, Any]:
    """Everything, for ``json.dumps(..., allow_nan=False)``."""
    plan = report.plan
    return {
        "schema": SCHEMA,
        "meanings": dict(MEANINGS),
        "weights": plan.weights,
        "model": plan.model,
        "source": plan.source,
        "source_pictures": plan.pictures,
        "settings": plan.config.model_dump(mode="json"),
        "environment": asdict(plan.environment),
        "complete": report.complete,
        "planned_rows": len(plan.combinations),
        "estimated_s": plan.seconds,
        "spent_s": report.seconds,
        "rows": [_row(row) for row in report.rows],
        "refused": [asdict(one) for one in plan.refused],
        "notes": list(plan.notes),
    }


def _row(row: Row) -> dict[str, Any]:
    run = row.combination
    return {
        "image_size_px": run.image_size,
        "batch_size": run.batch_size,
        "precision": run.precision.name,
        "precision_native": run.precision.native,
        "precision_reason": run.precision.reason,
        "mode": run.mode.name,
        "mode_reason": run.mode.reason,
        "error": row.error or None,
        "ready_ms": row.ready_ms,
        "pictures_per_s": row.pictures_per_s,
        "network": None if row.network is None else _timed(row.network),
        "latency": None if row.latency is None else _timed(row.latency),
        "end_to_end": None if row.end_to_end is None else _end_to_end(row.end_to_end),
        **_parts(row),
        "notes": list(row.notes),
    }


def _parts(row: Row) -> dict[str, Any]:
    memory, difference, floor = row.memory, row.difference, row.floor
    return {
        "memory": None
        if memory is None
        else {
            "peak_mib": memory.peak_mib,
            "reserved_mib": memory.reserved_mib,
            "fragmentation_share": memory.fragmentation,
            "what": memory.what,
        },
        "usage": None if row.usage is None else asdict(row.usage),
        "difference": None
        if difference is None
        else {
            "pictures": difference.pictures,
            "boxes_fp32_eager": difference.reference,
            "boxes": difference.found,
            "matched": difference.matched,
            "lost": difference.lost,
            "new": difference.new,
            "max_score_change": difference.max_score_change,
            "mean_iou": difference.mean_iou,
            "min_iou": difference.min_iou,
            "min_score": difference.min_score,
        },
        "accuracy": None if row.accuracy is None else asdict(row.accuracy),
        "floor": None
        if floor is None
        else {
            "floor_ms": floor.ms,
            "share": floor.share,
            "bound": floor.bound,
            "work_gflop": floor.gflop,
            "traffic_mib": floor.traffic_mib,
            "ceiling_tflops": floor.ceiling.tflops,
            "ceiling_gb_per_s": floor.ceiling.gb_per_s,
        },
        "profile": None if row.profile is None else asdict(row.profile),
    }


def _timed(timed: Timed) -> dict[str, Any]:
    return {"first_ms": timed.first_ms, **_spread(timed.runs), "capped": timed.capped, "clock": timed.how}


def _spread(one: Spread) -> dict[str, Any]:
    return {
        "mean_ms": one.mean,
        "std_ms": one.std,
        "median_ms": one.median,
        "p99_ms": one.p99,
        "min_ms": one.minimum,
        "count": one.count,
    }


def _end_to_end(one: EndToEnd) -> dict[str, Any]:
    stages = {
        "decode": one.decode,
        "preprocess": one.preprocess,
        "network": one.network,
        "nms": one.nms,
        "total": one.total,
    }
    return {
        **{name: _spread(stage) for name, stage in stages.items()},
        "pictures": one.pictures,
        "pictures_per_s": one.pictures_per_s,
        "capped": one.capped,
    }
