"""The physical floor: the work of the convolutions, against what the device does at most, measured on the spot."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from yolov9kit.benchmark.timing import event_times, waiting_times
from yolov9kit.device import Device, Precision, float32_math
from yolov9kit.model.fuse import fuse
from yolov9kit.model.yolov9 import YOLOv9, deployed

_SECONDS = 0.3
"""For each ceiling, about."""


@dataclass(frozen=True)
class ConvWork:
    """Of all convolutions of the fused network: ``flops`` and ``values`` (inputs and outputs) a picture, ``weights``.

    A multiplication and an addition are two FLOPs. What lies between convolutions is left out, as if fused into them.
    """

    flops: int
    values: int
    weights: int

    def bytes(self, batch: int, value_bytes: int) -> int:
        """Memory traffic of one run if each value is read once and written once."""
        return (self.values * batch + self.weights) * value_bytes


@dataclass(frozen=True)
class Ceiling:
    """The most that was measured here: ``tflops`` in one precision, and ``gb_per_s`` of a copy, read and written."""

    tflops: float
    gb_per_s: float


@dataclass(frozen=True)
class Floor:
    """What a run must take at least, and the share that it is of the measured median.

    ``bound``: ``arithmetic`` or ``memory``, whichever takes longer.
    """

    ms: float
    share: float
    bound: str
    gflop: float
    traffic_mib: float
    ceiling: Ceiling


def conv_work(model: YOLOv9, image_size: int) -> ConvWork:
    """Counted by running the deployed, fused form of ``model`` with shapes and no values, so it costs nothing."""
    network = fuse(deployed(model) if model.form == "training" else model).to("meta")
    flops: list[int] = []
    values: list[int] = []
    weights: list[int] = []

    def count(conv: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(conv, nn.Conv2d)
        a_value = conv.in_channels // conv.groups * conv.kernel_size[0] * conv.kernel_size[1]
        flops.append(2 * a_value * output.numel())
        values.append(inputs[0].numel() + output.numel())
        weights.append(sum(part.numel() for part in conv.parameters()))

    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(count)
    with torch.inference_mode():
        network(torch.empty(1, 3, image_size, image_size, device="meta"))
    return ConvWork(sum(flops), sum(values), sum(weights))


def floor(work: ConvWork, ceiling: Ceiling, batch: int, value_bytes: int, median_ms: float) -> Floor:
    """The floor of one run of ``batch`` pictures, and its share of the ``median_ms`` that was measured."""
    traffic = work.bytes(batch, value_bytes)
    arithmetic_ms = work.flops * batch / ceiling.tflops / 1e9
    memory_ms = traffic / ceiling.gb_per_s / 1e6
    ms = max(arithmetic_ms, memory_ms)
    return Floor(
        ms=ms,
        share=ms / median_ms,
        bound="arithmetic" if arithmetic_ms > memory_ms else "memory",
        gflop=work.flops * batch / 1e9,
        traffic_mib=traffic / 2**20,
        ceiling=ceiling,
    )


def measure_ceiling(device: Device, precision: Precision) -> Ceiling:
    """The best of a large matrix product and a large copy. Takes about a second and, on a GPU, 2 GiB for a moment."""
    return Ceiling(_tflops(device, precision), _gb_per_s(device))


def _tflops(device: Device, precision: Precision) -> float:
    """Of a 1x1 convolution: a matrix product, but its TF32 is what ``float32_math`` switches. Of halves, of both."""
    channels, side, batch = (256, 64, 1) if device.kind == "cpu" else (2048, 32, 16)
    name, dtype = device.torch_name, precision.dtype
    images = torch.randn(batch, channels, side, side, device=name).to(
        dtype, memory_format=torch.channels_last
    )
    weight = torch.randn(channels, channels, 1, 1, device=name).to(dtype, memory_format=torch.channels_last)
    rows, square = images.permute(0, 2, 3, 1).reshape(-1, channels), weight.reshape(channels, channels)
    flops = 2 * rows.shape[0] * channels * channels
    with torch.inference_mode(), float32_math(precision, device):
        best = _best_ms(lambda: F.conv2d(images, weight), name)
        if device.kind == "cpu" or dtype != torch.float32:
            best = min(best, _best_ms(lambda: rows @ square, name))
    return flops / best / 1e9


def _gb_per_s(device: Device) -> float:
    size = 2**26 if device.kind == "cpu" else 2**30
    source = torch.ones(size, dtype=torch.uint8, device=device.torch_name)
    target = torch.empty_like(source)
    return 2 * size / _best_ms(lambda: target.copy_(source), device.torch_name) / 1e6


def _best_ms(run: Callable[[], object], device: str) -> float:
    """The shortest of as many runs as fit into the seconds, three at least."""
    measure = event_times if device.startswith("cuda") else waiting_times
    measure(run, device, 1)
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        times += measure(run, device, 1)
    return min(times)
