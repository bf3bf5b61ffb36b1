"""About how long a benchmark takes, from a few runs of fp32 eager."""

from collections.abc import Sequence

from yolov9kit.benchmark.config import LEAST_RUNS, BenchmarkConfig
from yolov9kit.benchmark.measure import LATENCY_RUNS, LEAST_BATCHES, noise
from yolov9kit.benchmark.report import Combination
from yolov9kit.benchmark.timing import waiting_times
from yolov9kit.device import Device
from yolov9kit.errors import KitError
from yolov9kit.infer.predict import Detector

READY_SECONDS = {"eager": 1.0, "graph": 2.0, "compiled": 60.0, "onnx": 5.0}
"""To make a network ready and run it for the first time: what was seen, rounded up."""
_BESIDE_MS = 5.0
"""Of a picture, end to end, beside the network: decoding, preparing, NMS."""
_PROFILER = 3.0
"""Times as slow is a call that is profiled."""
_CEILING_SECONDS = 1.0

Run = tuple[int, int]
"""Image size and batch."""


def probe(detector: Detector, combinations: Sequence[Combination], device: Device) -> dict[Run, float]:
    """Milliseconds of one run of fp32 eager for each size and batch.

    A processor's time grows with the pixels, so there one picture of the smallest size is run and the rest is computed.
    A GPU is run with each, as small batches leave most of it idle; what does not fit into its memory is left out.
    """
    wanted = {(one.image_size, one.batch_size): one for one in combinations}
    if device.kind == "cpu":
        smallest = min(size for size, _ in wanted)
        example = next(one for one in combinations if one.image_size == smallest)
        one_ms = _run_ms(detector, example, 1)
        return {(size, batch): one_ms * batch * (size / smallest) ** 2 for size, batch in wanted}
    found = {}
    for run, combination in wanted.items():
        try:
            found[run] = _run_ms(detector, combination, combination.batch_size)
        except (KitError, RuntimeError):  # the row itself will tell
            continue
    return found


def _run_ms(detector: Detector, combination: Combination, batch: int) -> float:
    images = noise(combination.image_size, batch, detector.runner.device)
    return min(waiting_times(lambda: detector.runner(images), detector.runner.device.torch_name, 3))


def estimate(
    run_ms: dict[Run, float],
    combinations: Sequence[Combination],
    config: BenchmarkConfig,
    pictures: int,
    scored: int,
    on_cpu: bool,
) -> float:
    """Seconds for all rows, every precision and mode taken to be as slow as fp32 eager.

    ``pictures`` are compared with fp32 in each row, ``scored`` is the size of the data set.
    """
    seconds = 0.0
    for one in combinations:
        ms = run_ms.get((one.image_size, one.batch_size), 0.0)
        picture_ms = ms / one.batch_size + _BESIDE_MS
        runs = config.warm_up + config.runs + 1 + (0 if on_cpu else min(LATENCY_RUNS, config.runs))
        timed = max(config.timed_pictures, pictures, LEAST_BATCHES * one.batch_size) + one.batch_size
        row = (runs * ms + timed * picture_ms) / 1000
        if config.seconds is not None:  # a little is run all the same
            least = (1 + LEAST_RUNS) * ms + (1 + LEAST_BATCHES) * one.batch_size * picture_ms
            row = min(row, config.seconds + least / 1000)
        if config.profile:
            row += _PROFILER * config.profile_runs * one.batch_size * picture_ms / 1000
        seconds += row + READY_SECONDS.get(one.mode.name, 0.0)
    precisions = len({one.precision.name for one in combinations})
    for size in {one.image_size for one in combinations}:
        picture_ms = min(run_ms.get((size, one.batch_size), 0.0) / one.batch_size for one in combinations)
        seconds += precisions * scored * (picture_ms + _BESIDE_MS) / 1000
    return seconds + (_CEILING_SECONDS * precisions if config.floor else 0)
