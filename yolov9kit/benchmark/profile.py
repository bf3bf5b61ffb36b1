"""Time by kind of operation, as torch's profiler saw it."""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity

from yolov9kit.device import Device, synchronize

CONV, UPSAMPLE, CONCAT, ACTIVATION = "convolution", "upsample", "concat", "norm + activation"
NMS, POOLING, COPIES, OTHER = "NMS", "pooling", "copies", "other"
KINDS = (CONV, ACTIVATION, CONCAT, UPSAMPLE, POOLING, NMS, COPIES, OTHER)

# Names of torch's operations, of cuDNN's, CUTLASS's and torch's kernels, and of those that torch.compile writes.
# The first pattern that is found decides: names hold several words of these.
_PATTERNS = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        (COPIES, r"memcpy|memset|nchwToNhwc|nhwcToNchw"),
        (NMS, r"\bnms|_nms|nms_kernel"),
        (CONCAT, r"CatArray|\bcat\b|_cat_|::cat\b|concat"),
        (UPSAMPLE, r"upsample|interpolate"),
        (POOLING, r"pool"),
        # fused by torch.compile: "poi" and "red" are epilogues, "tem" a convolution or product with one in it
        (CONV, r"triton_tem_"),
        (ACTIVATION, r"silu|batch_?norm|triton_(poi|red|per)\w*(sigmoid|convolution)"),
        (CONV, r"conv|fprop|implicit_gemm|gemm|cutlass|winograd|cudnn|mkldnn|xmma|aten::(mm|addmm|bmm|matmul)\b"),
        (COPIES, r"copy|aten::(_to_copy|to|contiguous|clone)\b"),
    )
)  # fmt: skip


def kind_of(name: str) -> str:
    """The kind of an operation or kernel by its name: one of ``KINDS``."""
    return next((kind for kind, pattern in _PATTERNS if pattern.search(name)), OTHER)


@dataclass(frozen=True)
class Profile:
    """Means of one call: a batch from decoded pictures to detections. Times in milliseconds.

    Attributes:
        what: whose time ``kinds_ms`` is.
        calls: that were profiled.
        wall_ms: by the host's clock, with the profiler's own cost in it.
        kinds_ms: by kind of operation, each counted once.
        outside_ms: ``wall_ms`` that is in none of the kinds: the host alone, or what the profiler does not see
            (ONNX Runtime). At least 0, as work of the device overlaps with the host.
        launches, graph_launches: of kernels one by one, and of recorded graphs. None on a processor.
        copies_to_host: from the device. None on a processor.
    """

    what: str
    calls: int
    wall_ms: float
    kinds_ms: Mapping[str, float]
    outside_ms: float
    launches: float | None
    graph_launches: float | None
    copies_to_host: float | None


@dataclass(frozen=True)
class Event:
    """An operation or kernel: its own time in microseconds, without what it called, and how often it came."""

    name: str
    on_device: bool
    self_us: float
    count: int


def profile(call: Callable[[], object], device: Device, calls: int) -> Profile:
    """Profile ``calls`` calls, after one that is not counted."""
    call()
    synchronize(device.torch_name)
    on_gpu = device.kind == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    with torch.profiler.profile(activities=activities, acc_events=True) as profiler:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        synchronize(device.torch_name)
        wall_ms = 1000 * (time.perf_counter() - start)
    return summary(map(_event, profiler.key_averages()), on_gpu, calls, wall_ms)


def _event(one: Any) -> Event:
    on_device = one.device_type.name != "CPU"
    self_us = one.self_device_time_total if on_device else one.self_cpu_time_total
    return Event(str(one.key), on_device, float(self_us), int(one.count))


def summary(events: Iterable[Event], on_gpu: bool, calls: int, wall_ms: float) -> Profile:
    """What the profiler's events say of one call."""
    kinds = dict.fromkeys(KINDS, 0.0)
    launches = graphs = to_host = 0
    for event in events:
        if event.on_device == on_gpu:
            kinds[kind_of(event.name)] += event.self_us / 1000 / calls
        if re.match(r"(cuda|cu)LaunchKernel", event.name):
            launches += event.count
        elif re.match(r"(cuda|cu)GraphLaunch", event.name):
            graphs += event.count
        elif event.on_device and re.search(r"Memcpy DtoH", event.name, re.IGNORECASE):
            to_host += event.count
    wall_ms /= calls
    return Profile(
        what="kernels on the GPU" if on_gpu else "operations in the calling thread",
        calls=calls,
        wall_ms=wall_ms,
        kinds_ms=kinds,
        outside_ms=max(0.0, wall_ms - sum(kinds.values())),
        launches=launches / calls if on_gpu else None,
        graph_launches=graphs / calls if on_gpu else None,
        copies_to_host=to_host / calls if on_gpu else None,
    )
