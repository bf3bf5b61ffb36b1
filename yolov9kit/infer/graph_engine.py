"""One launch for a whole network: recorded once for each shape, replayed by any thread."""

import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from yolov9kit.cuda_graph import Captured, capture
from yolov9kit.device import Device, Precision, float32_math
from yolov9kit.types import RawMaps

MAX_SHAPES = 12
"""Recordings that are kept at a time; each holds the memory of its maps. The one used longest ago goes first."""

LEAST_FILLED = 4
"""A smaller batch rides in a recording of a larger one, of which it fills at least one part in so many."""


class GraphEngine:
    """Replays ``network`` (images to raw maps), on the device asked for."""

    def __init__(self, network: Callable[[Tensor], RawMaps], device: Device, precision: Precision) -> None:
        self._network, self._device, self._precision = network, device, precision
        self._recorded: dict[tuple[int, ...], Captured] = {}  # by shape, the one used last at the end
        self._lock = threading.Lock()
        self._done: torch.cuda.Event | None = None
        self._pool: Any = None

    def __call__(self, images: Tensor) -> RawMaps:
        with self._lock, torch.cuda.device(images.device):
            shape = riding(tuple(images.shape), self._recorded)
            captured = self._recorded.pop(shape, None) or self._record(images)
            self._recorded[shape] = captured
            if self._done is not None:  # a thread with a stream of its own may still read the maps
                torch.cuda.current_stream().wait_event(self._done)
            rows = len(images)
            captured.inputs[0][:rows].copy_(images, non_blocking=True)
            captured.graph.replay()
            p3, p4, p5 = (recorded[:rows].clone() for recorded in captured.outputs)
            self._done = torch.cuda.Event()
            self._done.record()
        return p3, p4, p5

    def _record(self, images: Tensor) -> Captured:
        while len(self._recorded) >= MAX_SHAPES:
            self._recorded.pop(next(iter(self._recorded)))
        if self._pool is None:  # one for all: they never run at the same time, and what they give is copied
            self._pool = torch.cuda.graph_pool_handle()
        with float32_math(self._precision, self._device):
            return capture(self._network, [images], pool=self._pool)

    def close(self) -> None:
        """Drop the recordings and give their memory back to the device."""
        with self._lock:
            self._recorded.clear()
            self._done = self._pool = None
        with torch.cuda.device(self._device.torch_name):
            torch.cuda.synchronize()
            torch.cuda.empty_cache()


def riding(shape: tuple[int, ...], recorded: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the recording to take: the smallest that holds this batch and is not mostly empty, or a new one."""
    batch, *rest = shape
    fitting = [
        other for other in recorded if other[1:] == tuple(rest) and batch <= other[0] <= LEAST_FILLED * batch
    ]
    return min(fitting, default=shape)
