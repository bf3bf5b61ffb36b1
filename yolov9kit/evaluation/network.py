"""The network as it is scored: the same numbers in a training run and alone."""

from collections.abc import Callable

import torch
from torch import Tensor

from yolov9kit.device import Device, Precision, as_input, autocast, float32_math, takes_channels_last
from yolov9kit.infer.runner import make_runner
from yolov9kit.model.decode import BINS
from yolov9kit.model.yolov9 import YOLOv9, deployed
from yolov9kit.types import Outputs

Network = Callable[[Tensor], Outputs]
"""Images B x 3 x H x W uint8 on the device to raw maps."""


def plain_network(model: YOLOv9, device: Device, precision: Precision) -> Network:
    """The main branch as training scores it: not fused, weights in float32, halves by autocast.

    Fusing changes the last digits of boxes and scores. AP may stay the same to the last digit (it did on 16 real
    boards), but need not: where the order of two boxes hangs on them, it moves.
    """
    network = deployed(model).eval().to(device.torch_name)
    if takes_channels_last(device, precision):
        network = network.to(memory_format=torch.channels_last)
    return scored(network, device, precision)


def scored(network: YOLOv9, device: Device, precision: Precision) -> Network:
    """A network that is on the device, as it is scored: in training and in ``plain_network``."""

    def run(images: Tensor) -> Outputs:
        with float32_math(precision, device), autocast(device, precision):
            return network(as_input(images, device, precision))

    return run


def fused_network(model: YOLOv9, device: Device, precision: Precision) -> Network:
    """The network that detection runs."""
    return make_runner(model, device, precision)


def as_one_class(network: Network) -> Network:
    """The network with its best class in place of all classes."""

    def run(images: Tensor) -> Outputs:
        first, second, third = (
            torch.cat((m[:, : 4 * BINS], m[:, 4 * BINS :].amax(1, keepdim=True)), 1)
            for m in network(images).main
        )
        return Outputs((first, second, third), None)

    return run
