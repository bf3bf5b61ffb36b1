"""What a row takes besides time: memory, and what telemetry saw of the device meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from yolov9kit.device import Device, memory_mib
from yolov9kit.telemetry import Sample

HZ = 10
_WATCHED = ("gpu_percent", "power_w", "sm_mhz", "temperature_c", "cpu_percent")


@dataclass(frozen=True)
class Memory:
    """The most that tensors held, and the most that was taken from the GPU for them, in a row.

    ``fragmentation``: the share of what was taken that no tensor used, 1 - allocated / reserved. Elsewhere than on an
    NVIDIA GPU ``peak_mib`` is what the whole process held at the row's end, and the other two are None; ``what`` says
    which it is.
    """

    peak_mib: float
    reserved_mib: float | None
    fragmentation: float | None
    what: str


@dataclass(frozen=True)
class Usage:
    """Means over the timed runs, sampled 10 times a second. None where it is not known: ``missing`` has the reason."""

    gpu_percent: float | None = None
    power_w: float | None = None
    sm_mhz: float | None = None
    temperature_c: float | None = None
    cpu_percent: float | None = None
    samples: int = 0
    missing: Mapping[str, str] = field(default_factory=dict)


def reset_memory(device: Device) -> None:
    """Begin a row: give back what is held for nothing, and forget the peak."""
    if device.kind == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device.torch_name)


def memory(device: Device) -> Memory:
    """Since the last ``reset_memory``."""
    held = memory_mib(device.torch_name)
    if device.kind != "cuda":
        return Memory(held, None, None, "resident memory of the whole process, Python and libraries included")
    reserved = torch.cuda.max_memory_reserved(device.torch_name) / 2**20
    unused = max(0.0, 1 - held / reserved) if reserved else 0.0
    return Memory(held, reserved, unused, "peak of this process's tensors on the GPU")


def usage(samples: Sequence[Sample], reasons: Mapping[str, str]) -> Usage:
    """Means of the samples. ``reasons``: of values that this machine cannot tell."""
    means = {name: _mean([_value(sample, name) for sample in samples]) for name in _WATCHED}
    none_yet = "the runs were over before a sample was taken"
    missing = {name: reasons.get(name, none_yet) for name, value in means.items() if value is None}
    return Usage(**means, samples=len(samples), missing=missing)


def _value(sample: Sample, name: str) -> float | None:
    values: dict[str, float | None] = {
        "gpu_percent": sample.gpu_percent,
        "power_w": sample.power_w,
        "sm_mhz": sample.sm_mhz,
        "temperature_c": sample.temperature_c,
        "cpu_percent": sample.cpu_percent,
    }
    return values[name]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
