"""The network as detection runs it: deployed, fused, on its device in its precision."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from yolov9kit.device import Device, Precision
from yolov9kit.kernels import bias_silu
from yolov9kit.model.fuse import FusedConv, fuse
from yolov9kit.model.yolov9 import YOLOv9, deployed
from yolov9kit.types import RawMaps


class FloatHead(nn.Module):
    """The head of a bf16 network, computing in fp32 (TF32 where the hardware has it).

    On 16 real boards the largest score difference from fp32 fell from 0.022 to 0.013 for one trained file and from
    0.025 to 0.022 for another (H200; rows in tests/benchmarks).
    """

    def __init__(self, head: nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, levels: Sequence[Tensor]) -> RawMaps:
        return self.head([level.float() for level in levels])


SMALL_MAP = 2**21
"""Elements under which two torch operations start faster than one Triton kernel saves: launches bound small batches."""


class EpilogueConv(nn.Module):
    """A FusedConv whose bias (kept in fp32) and SiLU are one kernel, where the map is large enough to gain from it."""

    def __init__(self, fused: FusedConv, bias: Tensor) -> None:
        super().__init__()
        self.conv = fused.conv
        self.conv.bias = None
        self.bias = nn.Parameter(bias, requires_grad=False)
        self.small_bias = nn.Parameter(bias.to(fused.conv.weight.dtype)[:, None, None], requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        y = self.conv(x)
        if y.numel() < SMALL_MAP:
            return F.silu(y.add_(self.small_bias), inplace=True)
        return bias_silu.bias_silu_(y, self.bias)


def _use_epilogues(network: nn.Module, exact: nn.Module) -> None:
    """Replace in place. ``exact`` is the same network in fp32, for biases that were not rounded."""
    for name, child in network.named_children():
        other = exact.get_submodule(name)
        if isinstance(child, FusedConv) and isinstance(other, FusedConv) and isinstance(child.act, nn.SiLU):
            assert other.conv.bias is not None  # for the type checker: fusing always makes one
            network.add_module(
                name, EpilogueConv(child, other.conv.bias.detach().to(child.conv.weight.device))
            )
        else:
            _use_epilogues(child, other)


def uses_channels_last(device: Device, precision: Precision) -> bool:
    """Tensor cores (every precision but fp32) read channels-last without a copy; processors are faster with it too.

    Only plain fp32 on a GPU is slower so: 101 against 79 ms for size s at batch 64 on an H200.
    """
    return device.kind == "cpu" or precision.name != "fp32"


class MapsAlone(nn.Module):
    """The three maps of a network as a tuple, which is what exporters know."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> RawMaps:
        main: RawMaps = self.network(images).main
        return main


def network_for(model: YOLOv9, device: Device, precision: Precision, epilogues: bool = True) -> YOLOv9:
    """The deployed, fused form of ``model``, which is left as it is, ready to run on ``device`` in ``precision``.

    ``epilogues``: bias and SiLU as one kernel of ours on an NVIDIA GPU. A compiler that fuses them itself needs none.
    """
    if model.form == "training":
        model = deployed(model)
    exact = fuse(model)
    network = copy.deepcopy(exact).to(device.torch_name, precision.dtype)
    if precision.name == "bf16":  # not rounded on the way: from the exact network
        network.head = copy.deepcopy(exact.head).to(device.torch_name)
    if uses_channels_last(device, precision):
        network = network.to(memory_format=torch.channels_last)
    if epilogues and device.kind == "cuda" and bias_silu.available():
        _use_epilogues(network, exact)
    if precision.name == "bf16":
        network.head = FloatHead(network.head)  # type: ignore[assignment]  # same call, same result type
    return network.eval()
