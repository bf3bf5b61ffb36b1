"""The CUDA graphs of one network, by what they are for: a bounded number of them, in one pool of memory."""

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

import torch

from yolov9kit.device import Device, Precision, float32_math

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recordings(Generic[Key, Value]):
    """The ``most`` recordings that were used last. Whoever has them lets one thread in at a time.

    They share one pool of memory: they never run at the same time, and what they give is copied.
    """

    def __init__(self, device: Device, precision: Precision, most: int) -> None:
        self._device, self._precision, self._most = device, precision, most
        self._kept: dict[Key, Value] = {}  # the one used last is at the end
        self._pool: Any = None

    def __iter__(self) -> Iterator[Key]:
        """What there are recordings for, the one used longest ago first."""
        return iter(self._kept)

    def take(self, key: Key, record: Callable[[Any], Value]) -> Value:
        """The one for ``key``; where there is none, ``record(pool)`` makes it, and the one used longest ago goes."""
        if key in self._kept:
            value = self._kept.pop(key)
        else:
            while len(self._kept) >= self._most:
                self._kept.pop(next(iter(self._kept)))
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            with float32_math(self._precision, self._device):
                value = record(self._pool)
        self._kept[key] = value
        return value

    def clear(self) -> None:
        """Drop them all and give their memory back to the device."""
        self._kept.clear()
        self._pool = None
        with torch.cuda.device(self._device.torch_name):
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
