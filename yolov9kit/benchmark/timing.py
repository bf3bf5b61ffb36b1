"""Runs of a callable, timed: the first apart, then warm-up, then the ones that count."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from yolov9kit.benchmark.config import LEAST_RUNS
from yolov9kit.device import synchronize

QUEUED = 16
"""Runs that wait on the device together before their events are read."""
WARM_UP_SHARE = 0.2
"""Of the seconds that there are, at most."""

BY_EVENTS = (
    "device events around each run on the current stream; several runs are queued before any is waited for"
)
BY_WAITING = "host clock around each run, the device waited for before and after it"
BY_HOST = "host clock around each run"


UNSTEADY = 0.2
"""Of the mean: a standard deviation above it."""


@dataclass(frozen=True)
class Spread:
    """Times of single runs in milliseconds. ``std``: of these runs (not of a larger population)."""

    mean: float
    std: float
    median: float
    p99: float
    minimum: float
    count: int

    @property
    def unsteady(self) -> bool:
        """So far apart that it is said aloud: others may use the device too."""
        return self.std > UNSTEADY * self.mean


def spread(times_ms: Sequence[float]) -> Spread:
    """Raises ValueError where there is no time, or one that is not finite."""
    if not times_ms or not all(map(math.isfinite, times_ms)):
        raise ValueError("a spread needs at least one time, and finite ones")
    values = np.asarray(times_ms, np.float64)
    return Spread(
        mean=float(values.mean()),
        std=float(values.std()),
        median=float(np.median(values)),
        p99=float(np.percentile(values, 99)),
        minimum=float(values.min()),
        count=len(values),
    )


@dataclass(frozen=True)
class Timed:
    """``first_ms``: of the first run, with what it records or compiles; it is in no other number.

    ``capped``: the seconds were over before all the runs were done. ``how``: what the clock was.
    """

    first_ms: float
    runs: Spread
    capped: bool
    how: str


def time_runs(
    run: Callable[[], object],
    device: str,
    *,
    warm_up: int,
    runs: int,
    seconds: float | None = None,
    wait_each: bool = False,
) -> Timed:
    """Times of ``run()``, which starts work on ``device`` (torch's name).

    On an NVIDIA GPU device events, unless ``wait_each``: then, as everywhere else, the time until the device has
    finished. ``seconds``, counted from the end of the first run, end warm-up and runs early; ``LEAST_RUNS`` are timed
    all the same.
    """
    first_ms = waiting_times(run, device, 1)[0]
    start = time.perf_counter()  # from here on: a first run that compiles would leave no time for the others
    limit = math.inf if seconds is None else start + seconds
    warm_limit = math.inf if seconds is None else start + seconds * WARM_UP_SHARE
    for _ in range(warm_up):
        if time.perf_counter() >= warm_limit:
            break
        run()
        if seconds is not None:  # or the clock would only see how fast work is queued
            synchronize(device)
    by_events = device.startswith("cuda") and not wait_each
    times: list[float] = []
    while len(times) < runs and (time.perf_counter() < limit or len(times) < LEAST_RUNS):
        few = LEAST_RUNS if not times else QUEUED if by_events else 1
        few = min(few, runs - len(times))
        times += event_times(run, device, few) if by_events else waiting_times(run, device, few)
    how = BY_EVENTS if by_events else BY_HOST if device == "cpu" else BY_WAITING
    return Timed(first_ms, spread(times), capped=len(times) < runs, how=how)


def event_times(run: Callable[[], object], device: str, count: int) -> list[float]:
    """Milliseconds of ``count`` runs by events of an NVIDIA GPU. All are queued, then the device is waited for."""
    with torch.cuda.device(device):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(2 * count)]
        for before, after in zip(marks[::2], marks[1::2], strict=True):
            before.record()
            run()
            after.record()
        torch.cuda.synchronize()
    return [before.elapsed_time(after) for before, after in zip(marks[::2], marks[1::2], strict=True)]


def waiting_times(run: Callable[[], object], device: str, count: int) -> list[float]:
    """Milliseconds from the call until the device has finished, for each of ``count`` runs."""
    times = []
    for _ in range(count):
        synchronize(device)
        before = time.perf_counter()
        run()
        synchronize(device)
        times.append(1000 * (time.perf_counter() - before))
    return times
