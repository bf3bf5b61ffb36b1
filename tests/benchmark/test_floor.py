"""The work of convolutions counted, and the least time that it takes at given ceilings."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from yolov9kit import fuse, yolov9
from yolov9kit.benchmark.floor import Ceiling, ConvWork, conv_work, floor, measure_ceiling
from yolov9kit.device import choose_device, choose_precision
from yolov9kit.model.yolov9 import YOLOv9

WORK = ConvWork(flops=2_000_000_000, values=1_000_000, weights=500_000)


@pytest.fixture(scope="module")
def model() -> YOLOv9:
    return yolov9("t", 6, "deployed")


def test_the_count_is_that_of_torchs_own_counter_whatever_the_form(model: YOLOv9) -> None:
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        fuse(model)(torch.zeros(1, 3, 32, 32))
    training = yolov9("t", 6)
    assert conv_work(model, 32).flops == counter.get_total_flops()
    assert conv_work(training, 32) == conv_work(model, 32)
    assert training.form == "training" and next(training.parameters()).device.type == "cpu"  # not touched


def test_four_times_the_pixels_are_four_times_the_work(model: YOLOv9) -> None:
    small, large = conv_work(model, 64), conv_work(model, 128)
    assert large.flops == 4 * small.flops and large.weights == small.weights
    # before a down-sampling a pool takes one row and one column away
    assert large.values == pytest.approx(4 * small.values, rel=0.01)


def test_the_numbers_of_size_s_are_those_that_are_known() -> None:
    work = conv_work(yolov9("s", 80, "deployed"), 640)
    assert work.flops / 1e9 == pytest.approx(26.4, rel=0.02)
    assert work.bytes(1, 2) / 1e6 == pytest.approx(192, rel=0.02)


def test_memory_or_arithmetic_whichever_takes_longer() -> None:
    slow_memory = floor(WORK, Ceiling(tflops=2.0, gb_per_s=1.0), 4, 2, median_ms=17.0)
    assert slow_memory.bound == "memory" and slow_memory.ms == pytest.approx(9.0)  # 9 MB at 1 GB/s
    assert slow_memory.share == pytest.approx(9 / 17)
    slow_arithmetic = floor(WORK, Ceiling(tflops=0.5, gb_per_s=1000.0), 4, 2, median_ms=32.0)
    assert slow_arithmetic.bound == "arithmetic" and slow_arithmetic.ms == pytest.approx(16.0)
    assert slow_arithmetic.share == pytest.approx(0.5)
    assert (slow_arithmetic.gflop, slow_arithmetic.traffic_mib) == (8.0, pytest.approx(9e6 / 2**20))


def test_weights_are_read_once_for_all_pictures() -> None:
    assert WORK.bytes(8, 4) - WORK.bytes(1, 4) == 7 * 4 * WORK.values


def test_ceilings_of_this_processor_are_numbers() -> None:
    device = choose_device("cpu")
    ceiling = measure_ceiling(device, choose_precision("fp32", device))
    assert 0 < ceiling.tflops < 1000 and 0 < ceiling.gb_per_s < 10_000


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_halves_have_the_higher_ceiling_on_a_gpu() -> None:
    device = choose_device("cuda")
    half, single = (measure_ceiling(device, choose_precision(name, device)) for name in ("fp16", "fp32"))
    assert half.tflops > single.tflops
