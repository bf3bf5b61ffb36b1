"""The detection head: one box tower and one class tower per level. It gives raw maps; ``decode`` reads them."""

import math
from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from yolov9kit.model.blocks import Conv
from yolov9kit.model.decode import BINS, STRIDES
from yolov9kit.types import RawMaps

OFFICIAL_GROUPS = 4
"""Groups of the second and third box layer in the official head; Ultralytics' files have 1."""


def box_width(first_channels: int) -> int:
    """Width of the box towers: a quarter of the stride-8 level, at least 64, a multiple of 4."""
    return math.ceil(max(first_channels // 4, 64) / 4) * 4


def class_width(first_channels: int, num_classes: int) -> int:
    """Width of the class towers of a new model. A file's own width is read from its tensors instead."""
    return max(first_channels, min(2 * num_classes, 128))


class Head(nn.Module):
    """Levels to raw maps ``B x (64 + C) x h x w``.

    ``channels``: of the three levels. ``groups``: of the box towers' later layers. ``width``: of the class
    towers, None for the rule of the official layout.
    """

    def __init__(
        self,
        channels: Sequence[int],
        num_classes: int,
        groups: int = OFFICIAL_GROUPS,
        width: int | None = None,
    ) -> None:
        super().__init__()
        b = box_width(channels[0])
        c = class_width(channels[0], num_classes) if width is None else width
        self.box = nn.ModuleList(
            nn.Sequential(
                Conv(channel, b, 3), Conv(b, b, 3, groups=groups), nn.Conv2d(b, 4 * BINS, 1, groups=groups)
            )
            for channel in channels
        )
        self.cls = nn.ModuleList(
            nn.Sequential(Conv(channel, c, 3), Conv(c, c, 3), nn.Conv2d(c, num_classes, 1))
            for channel in channels
        )
        self.start_biases()

    def start_biases(self) -> None:
        """Start values of all last layers: boxes of middling size, class scores as rare as objects are."""
        for box in self.box:
            nn.init.ones_(_bias(last_layer(box)))
        self.start_class_biases()

    def start_class_biases(self) -> None:
        """Class scores start at about 5 objects in a 640 px picture, shared out over cells and classes."""
        for cls, stride in zip(self.cls, STRIDES, strict=True):
            last = last_layer(cls)
            nn.init.constant_(_bias(last), math.log(5 / last.out_channels / (640 / stride) ** 2))

    def forward(self, levels: Sequence[Tensor]) -> RawMaps:
        m3, m4, m5 = (
            torch.cat((box(level), cls(level)), dim=1)
            for box, cls, level in zip(self.box, self.cls, levels, strict=True)
        )
        return m3, m4, m5


def last_layer(tower: nn.Module) -> nn.Conv2d:
    """The plain convolution at the end of a tower."""
    return cast(nn.Sequential, tower)[-1]  # type: ignore[return-value]  # it is one by construction


def _bias(layer: nn.Conv2d) -> Tensor:
    assert layer.bias is not None  # for the type checker
    return layer.bias
