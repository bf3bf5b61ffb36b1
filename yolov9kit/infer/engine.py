"""What runs a network: a call from prepared images to raw maps. Each mode is one engine."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from torch import Tensor

from yolov9kit.device import Device, Precision, float32_math
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.types import RawMaps

Network = Callable[[Tensor], RawMaps]
"""Prepared images to raw maps, never waiting for the device: what can be recorded."""


@runtime_checkable
class Engine(Protocol):
    """Images on the device, in the network's type, to raw maps that nobody writes over afterwards.

    Threads may share one.
    """

    def __call__(self, images: Tensor) -> RawMaps: ...

    def close(self) -> None:
        """Give back what is held beyond the network itself."""


class Eager:
    """Operation by operation."""

    def __init__(self, network: YOLOv9, device: Device, precision: Precision) -> None:
        self._network, self._device, self._precision = network, device, precision

    def __call__(self, images: Tensor) -> RawMaps:
        with float32_math(self._precision, self._device):
            main: RawMaps = self._network(images).main
        return main

    def close(self) -> None:
        pass
