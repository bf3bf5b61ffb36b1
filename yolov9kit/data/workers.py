"""How many processes should prepare pictures, and how many the machine can carry: values with their reason."""

import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SHARED_MEMORY = Path("/dev/shm")
_GIB = 2**30
_HELD = 2
"""Batches in shared memory beside those under way: the one in use and the one before it."""
_GPU_RATE = 1000.0
"""Pictures a second that keep one large GPU busy with the smallest model."""
_MOST_WORKERS = 16
_CHEAP_RATE = 20.0
"""Pictures a second beside which a training on the CPU is slow: preparing them takes a small part of its time."""


@dataclass(frozen=True)
class WorkerSuggestion:
    """``pictures_per_second``: what one process prepares."""

    workers: int
    pictures_per_second: float
    reason: str


def batch_bytes(batch: int, size: int) -> int:
    """What the pictures of a batch take in shared memory."""
    return 3 * batch * size * size


def shared_memory_room(
    batch_bytes: int, workers: int, prefetch: int, folder: Path = SHARED_MEMORY
) -> int | None:
    """How many of ``workers`` find room for their batches in ``/dev/shm``; None on systems without it."""
    if not folder.is_dir():
        return None
    free = shutil.disk_usage(folder).free
    return min(max((free // batch_bytes - _HELD) // prefetch, 0), workers)


def check_workers(
    workers: int, batch_bytes: int, prefetch: int = 2, folder: Path = SHARED_MEMORY
) -> tuple[int, str]:
    """``workers``, or as many as shared memory can carry, and the reason in words if that is fewer, else ``""``."""
    room = shared_memory_room(batch_bytes, workers, prefetch, folder)
    if room is None or room == workers:
        return workers, ""
    free = shutil.disk_usage(folder).free / _GIB
    needed = batch_bytes * (workers * prefetch + _HELD) / _GIB
    number = f"{workers} worker{'s need' if workers > 1 else ' needs'}"
    return room, f"{folder} has {free:.2f} GiB free: {number} {needed:.2f} GiB; using {room}"


def suggest_workers(
    prepare: Callable[[int], object], cores: int, device_kind: str, seconds: float = 0.3
) -> WorkerSuggestion:
    """Prepares pictures for ``seconds`` and says how many processes should do so.

    ``prepare(position)`` makes one training picture; ``cores``: those of this machine; ``device_kind``: ``"cpu"`` or
    the kind of accelerator that trains.
    """
    prepare(0)  # the first picture also loads libraries
    count, wall, processor = 0, time.perf_counter(), time.process_time()
    while count == 0 or time.perf_counter() - wall < seconds:
        count += 1
        prepare(count)
    # OpenCV's threads help here, but not in a worker: what they spent counts too
    spent = max(time.perf_counter() - wall, time.process_time() - processor)
    rate = count / max(spent, 1e-9)
    workers, why = _workers_for(rate, cores, device_kind)
    return WorkerSuggestion(workers, rate, f"one process prepares {rate:.0f} pictures/s; {why}")


def _workers_for(rate: float, cores: int, device_kind: str) -> tuple[int, str]:
    if cores < 2:
        return 0, "there is no second core for workers"
    if device_kind == "cpu":
        if rate >= _CHEAP_RATE:
            return 0, "training on the CPU is slower than that: no workers"
        few = min(cores - 1, 2)
        return few, f"training on the CPU needs its cores: {few} of {cores} prepare pictures"
    wanted = max(math.ceil(_GPU_RATE / rate), 1)
    most = min(cores - 1, _MOST_WORKERS)
    if wanted <= most:
        return wanted, f"{wanted} reach the {_GPU_RATE:.0f} pictures/s that a fast GPU takes"
    return (
        most,
        f"{wanted} would reach the {_GPU_RATE:.0f} pictures/s that a fast GPU takes, {cores} cores allow {most}",
    )
