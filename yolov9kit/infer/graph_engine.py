"""One launch for a whole network: recorded once for each shape, replayed by any thread."""

import threading
from collections.abc import Iterable

import torch
from torch import Tensor

from yolov9kit.cuda_graph import Captured, capture
from yolov9kit.device import Device, Precision
from yolov9kit.infer.engine import Network
from yolov9kit.infer.recordings import Recordings
from yolov9kit.types import RawMaps

MAX_SHAPES = 12
"""Recordings that are kept at a time; each holds the memory of its maps. The one used longest ago goes first."""

LEAST_FILLED = 4
"""A smaller batch rides in a recording of a larger one, of which it fills at least one part in so many."""


class GraphEngine:
    """Replays ``network``, on the device asked for."""

    def __init__(self, network: Network, device: Device, precision: Precision) -> None:
        self._network = network
        self._recordings: Recordings[tuple[int, ...], Captured] = Recordings(device, precision, MAX_SHAPES)
        self._lock = threading.Lock()
        self._done: torch.cuda.Event | None = None

    def __call__(self, images: Tensor) -> RawMaps:
        with self._lock, torch.cuda.device(images.device):
            shape = riding(tuple(images.shape), self._recordings)
            captured = self._recordings.take(shape, lambda pool: capture(self._network, [images], pool=pool))
            if self._done is not None:  # a thread with a stream of its own may still read the maps
                torch.cuda.current_stream().wait_event(self._done)
            rows = len(images)
            captured.inputs[0][:rows].copy_(images, non_blocking=True)
            captured.graph.replay()
            p3, p4, p5 = (recorded[:rows].clone() for recorded in captured.outputs)
            self._done = torch.cuda.Event()
            self._done.record()
        return p3, p4, p5

    def close(self) -> None:
        """Drop the recordings and give their memory back to the device."""
        with self._lock:
            self._done = None
            self._recordings.clear()


def riding(shape: tuple[int, ...], recorded: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the recording to take: the smallest that holds this batch and is not mostly empty, or a new one."""
    batch, *rest = shape
    fitting = [
        other for other in recorded if other[1:] == tuple(rest) and batch <= other[0] <= LEAST_FILLED * batch
    ]
    return min(fitting, default=shape)
