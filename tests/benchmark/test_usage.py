"""Means of telemetry's samples, and memory."""

import pytest
import torch

from yolov9kit.benchmark.usage import memory, reset_memory, usage
from yolov9kit.device import Device
from yolov9kit.telemetry import Sample

CPU = Device("cpu", "CPU", "always there")


def test_means_are_of_the_samples_from_then_on() -> None:
    samples = [
        Sample(0.0, gpu_percent=1.0, power_w=1.0),
        Sample(0.1, gpu_percent=80.0),
        Sample(0.2, gpu_percent=90.0, power_w=500.0),
    ]
    one = usage(samples[1:], {"cpu_percent": "why"})
    assert (one.gpu_percent, one.power_w, one.cpu_percent, one.samples) == (85, 500, None, 2)
    assert one.missing["cpu_percent"] == "why"
    assert one.missing["sm_mhz"] == "the runs were over before a sample was taken"
    assert "gpu_percent" not in one.missing


def test_without_samples_every_value_has_a_reason() -> None:
    one = usage([], {})
    assert one.samples == 0 and set(one.missing) == {
        "gpu_percent",
        "power_w",
        "sm_mhz",
        "temperature_c",
        "cpu_percent",
    }


def test_on_a_processor_memory_is_that_of_the_process_and_says_so() -> None:
    reset_memory(CPU)
    one = memory(CPU)
    assert one.peak_mib > 50 and one.reserved_mib is one.fragmentation is None
    assert "whole process" in one.what


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_on_a_gpu_memory_is_the_peak_since_the_reset() -> None:
    gpu = Device("cuda:0", "GPU", "")
    large = torch.zeros(2**28, dtype=torch.uint8, device="cuda")
    del large
    reset_memory(gpu)
    kept = torch.zeros(2**26, dtype=torch.uint8, device="cuda")
    one = memory(gpu)
    assert 64 <= one.peak_mib < 256 and kept.numel() == 2**26
    assert one.reserved_mib is not None and one.reserved_mib >= one.peak_mib
    assert one.fragmentation == pytest.approx(1 - one.peak_mib / one.reserved_mib)
