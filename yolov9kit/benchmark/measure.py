"""One row: a network made ready, timed alone and end to end, and compared with fp32 eager."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.benchmark.difference import compare
from yolov9kit.benchmark.pictures import PictureItem, cycled, in_memory
from yolov9kit.benchmark.profile import profile
from yolov9kit.benchmark.report import Combination, EndToEnd, Row
from yolov9kit.benchmark.timing import spread, time_runs
from yolov9kit.benchmark.usage import memory, reset_memory, usage
from yolov9kit.device import Device
from yolov9kit.errors import KitError
from yolov9kit.infer.predict import Detector
from yolov9kit.model.checkpoint import Checkpoint
from yolov9kit.telemetry import Sampler
from yolov9kit.types import Detections, Timings

NETWORK_SHARE, LATENCY_SHARE = 0.6, 0.1
"""Of a row's seconds, where they are limited; what is left is for pictures end to end."""
LATENCY_RUNS = 100
"""At most: it is the network once more, and waiting for each run makes the device idle in between."""
LEAST_BATCHES = 3

Stage = Callable[[str], None]


def measure(
    checkpoint: Checkpoint,
    device: Device,
    combination: Combination,
    config: BenchmarkConfig,
    pictures: Sequence[PictureItem],
    reference: Sequence[Detections],
    sampler: Sampler,
    stage: Stage,
) -> Row:
    """The row of a combination, without floor and AP. ``stage`` is told what is being done.

    ``reference`` is what fp32 eager finds on the ``pictures``, empty where it could not be had. What makes the row
    impossible (no memory, values that are not finite) becomes its ``error``.
    """
    row = Row(combination)
    detector: Detector | None = None
    reset_memory(device)
    try:
        stage("getting ready")
        start = time.perf_counter()
        detector = ready(checkpoint, device, combination, stage)
        row = replace(row, ready_ms=1000 * (time.perf_counter() - start))
        row = _network(row, detector, config, sampler, stage)
        stage("pictures end to end")
        end_to_end, found = _end_to_end(detector, combination, config, pictures)
        row = replace(row, end_to_end=end_to_end)
        if detector.runner.recordable is not None:
            row = replace(row, notes=(_together(row),))
        if reference:
            row = replace(row, difference=compare(reference[: len(found)], found))
        if config.profile:
            stage("profiling")
            held = in_memory(cycled(pictures, combination.batch_size))
            row = replace(
                row,
                profile=profile(lambda: detector.detect(held), detector.runner.device, config.profile_runs),
            )
    except (KitError, RuntimeError, MemoryError) as error:
        row = replace(row, error=in_words(error, str(combination)))
    finally:
        if detector is not None:  # what auto chose may have come down to eager: the row is about what ran
            row = replace(row, combination=replace(combination, mode=detector.runner.mode))
            detector.close()
        del detector
        release(device)
    return row


def ready(checkpoint: Checkpoint, device: Device, combination: Combination, stage: Stage) -> Detector:
    """A detector that runs so, with the defaults of detection."""
    return Detector(
        checkpoint,
        device.torch_name,
        combination.precision.name,
        mode="auto" if combination.mode.chosen else combination.mode.name,
        progress=lambda what, done, total: stage(what),
        image_size=combination.image_size,
        batch_size=combination.batch_size,
    )


def release(device: Device) -> None:
    """Give back what rows before have left, so that each begins with the same memory."""
    gc.collect()
    if device.kind == "cuda":
        torch.cuda.empty_cache()


def noise(image_size: int, batch: int, device: Device) -> torch.Tensor:
    """B x 3 x H x W uint8 on the device, seeded: the time of a convolution does not depend on what is seen."""
    generator = torch.Generator().manual_seed(0)
    shape = (batch, 3, image_size, image_size)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator).to(device.torch_name)


def _network(row: Row, detector: Detector, config: BenchmarkConfig, sampler: Sampler, stage: Stage) -> Row:
    runner, seconds = detector.runner, config.seconds
    images = noise(row.combination.image_size, row.combination.batch_size, runner.device)
    _, first_sample = sampler.since(0)
    stage("timing the network")
    network = time_runs(
        lambda: runner(images),
        runner.device.torch_name,
        warm_up=config.warm_up,
        runs=config.runs,
        seconds=None if seconds is None else seconds * NETWORK_SHARE,
    )
    samples, _ = sampler.since(first_sample)
    seen = usage(samples, sampler.facts.missing)
    row = replace(row, network=network, usage=seen, memory=memory(runner.device))
    if runner.device.kind == "cpu":
        return row
    latency = time_runs(
        lambda: runner(images),
        runner.device.torch_name,
        warm_up=0,
        runs=min(LATENCY_RUNS, config.runs),
        seconds=None if seconds is None else seconds * LATENCY_SHARE,
        wait_each=True,
    )
    return replace(row, latency=latency)


def _end_to_end(
    detector: Detector, combination: Combination, config: BenchmarkConfig, pictures: Sequence[PictureItem]
) -> tuple[EndToEnd, list[Detections]]:
    """Times, and the detections of all the pictures, or of the first ones where the seconds were over before."""
    batch = combination.batch_size
    wanted = max(config.timed_pictures, len(pictures), LEAST_BATCHES * batch)
    wanted += -wanted % batch
    for _ in detector.found(cycled(pictures, batch)):  # not timed: it may record, compile or allocate
        pass
    seconds = config.seconds
    share = 1 - NETWORK_SHARE - LATENCY_SHARE
    found: list[Detections] = []
    stages: list[Timings] = []
    start = time.perf_counter()
    for one in detector.found(cycled(pictures, wanted)):
        stages.append(one.timings)
        if len(found) < len(pictures):
            found.append(one)
        whole = len(stages) % batch == 0 and len(stages) >= LEAST_BATCHES * batch
        if seconds is not None and whole and time.perf_counter() - start > seconds * share:
            break
    spent = time.perf_counter() - start
    times = EndToEnd(
        decode=spread([one.decode_ms for one in stages]),
        preprocess=spread([one.preprocess_ms for one in stages]),
        network=spread([one.network_ms for one in stages]),
        nms=spread([one.nms_ms for one in stages]),
        total=spread([one.total_ms for one in stages]),
        pictures=len(stages),
        pictures_per_s=len(stages) / spent,
        capped=len(stages) < wanted,
    )
    return times, found


def _together(row: Row) -> str:
    """Where one launch does everything, NMS cannot be timed apart from the network: what there is of both is said."""
    assert row.network is not None and row.end_to_end is not None
    alone = row.network.runs.mean / row.combination.batch_size
    return (
        "from file to detections copies, letterbox and NMS on the GPU are in `network`, as one launch does it all: "
        f"{row.end_to_end.network.mean:.2f} ms a picture, the network alone {alone:.2f}"
    )


def in_words(error: Exception, what: str) -> str:
    """Why it could not be done, in one line; ``what`` is said where memory was short."""
    text = " ".join(str(error).split())
    if isinstance(error, KitError):
        return text
    if isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in text:
        return f"not enough memory for {what}: take a smaller batch or size"
    return f"{type(error).__name__}: {text[:200]}"
