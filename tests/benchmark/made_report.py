"""A report made by hand: a full row, one with the least there can be, one that failed, one refused."""

import torch

from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.benchmark.difference import Difference
from yolov9kit.benchmark.environment import Environment
from yolov9kit.benchmark.floor import Ceiling, Floor
from yolov9kit.benchmark.profile import Event, summary
from yolov9kit.benchmark.report import (
    Accuracy,
    BenchmarkReport,
    Combination,
    EndToEnd,
    Plan,
    Refused,
    Row,
)
from yolov9kit.benchmark.timing import BY_EVENTS, BY_WAITING, Timed, spread
from yolov9kit.benchmark.usage import Memory, Usage
from yolov9kit.device import Device, Precision
from yolov9kit.infer.mode import Mode

GPU = Device("cuda:0", "NVIDIA H200", "as asked")
FP32 = Precision("fp32", torch.float32, True, "as asked")
BF16 = Precision("bf16", torch.bfloat16, False, "as asked")
FULL = Combination(1280, 4096, BF16, Mode("compiled", "as asked"))
PLAIN = Combination(640, 64, FP32, Mode("eager", "as asked"))
TOO_LARGE = Combination(4096, 4096, FP32, Mode("graph", "as asked"))


def full_row() -> Row:
    """Every part is there, and numbers are as wide as they get."""
    times = spread([98765.4, 12345.6, 45678.9])
    events = [
        Event("sm90_xmma_fprop_implicit_gemm_bf16", True, 12345678.0, 90),
        Event("CatArrayBatchedCopy", True, 5e5, 10),
        Event("Memcpy DtoH (Device -> Pageable)", True, 100.0, 4),
        Event("cudaGraphLaunch", False, 900.0, 2),
    ]
    return Row(
        FULL,
        ready_ms=61234.5,
        network=Timed(30123.4, times, True, BY_EVENTS),
        latency=Timed(99.0, spread([1.0, 2.0]), False, BY_WAITING),
        end_to_end=EndToEnd(times, times, times, times, times, 8192, 22222.2, True),
        memory=Memory(141312.0, 142000.0, 0.005, "peak of this process's tensors on the GPU"),
        usage=Usage(99.5, 700.0, 1980.0, 70.0, None, 50, {"cpu_percent": "known from the second reading on"}),
        difference=Difference(32, 12345, 12346, 12344, 0.01234, 0.987),
        accuracy=Accuracy(0.468, 0.634, 0.5, "mode eager: 1280 px, bf16"),
        floor=Floor(2.9, 1.5, "memory", 26.4, 192.0, Ceiling(800.0, 4260.0)),
        profile=summary(events, True, 2, 20000.0),
        notes=("a <remark> & more",),
    )


def plain_row() -> Row:
    """Only what is always there."""
    times = spread([10.0, 11.0, 12.0])
    return Row(
        PLAIN,
        ready_ms=1000.0,
        network=Timed(300.0, times, False, BY_EVENTS),
        end_to_end=EndToEnd(times, times, times, times, times, 96, 80.0, False),
        memory=Memory(900.0, None, None, "resident memory of the whole process"),
        usage=Usage(missing={"power_w": "the driver does not tell"}),
        difference=Difference(32, 0, 0, 0, None, None),
    )


def made_report(rows: tuple[Row, ...] | None = None) -> BenchmarkReport:
    failed = Row(TOO_LARGE, error=f"not enough memory for {TOO_LARGE}: take a smaller batch or size")
    environment = Environment(
        date="2026-11-30T12:00:00+00:00", device="cuda:0", device_name="NVIDIA H200", driver="580.159", torch="2.14.1",
        torchvision="0.29.1", cuda="13.0", cudnn=91900, onnxruntime=None, python="3.12.3", yolov9kit="0.1.0",
        system="Linux", cpu="a processor", cores=16.0, threads=16,
    )  # fmt: skip
    config = BenchmarkConfig(image_sizes=(640, 1280, 4096), batch_sizes=(64, 4096), seconds=5)
    plan = Plan(
        weights="runs/<exp>/best.pt",
        config=config,
        device=GPU,
        environment=environment,
        combinations=(FULL, PLAIN, TOO_LARGE),
        refused=(Refused("fp32", "onnx", "mode onnx: is for a processor in fp32"),),
        model="YOLOv9-s, 80 classes",
        source="sample boards",
        pictures=32,
        seconds=7200.0,
    )
    return BenchmarkReport(plan, (full_row(), plain_row(), failed) if rows is None else rows, 5000.0)
