"""Fold BatchNorm into its convolution and merge RepConv: a new, equal, faster model for inference.

A fused model cannot be trained or saved: files keep the unfused form, so that every file can be trained further.
"""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from yolov9kit.model.blocks import Conv, RepConv
from yolov9kit.model.yolov9 import YOLOv9


class FusedConv(nn.Module):
    """One convolution with bias and its activation: what is left of a Conv or a RepConv."""

    def __init__(self, conv: nn.Conv2d, act: nn.Module) -> None:
        super().__init__()
        self.conv = conv
        # the convolution's output has no other reader: writing over it saves a pass through memory
        self.act = nn.SiLU(inplace=True) if isinstance(act, nn.SiLU) else act

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.conv(x))


def fuse(model: YOLOv9) -> YOLOv9:
    """A new model in evaluation mode with equal outputs (fp32 rounding apart); the given one is untouched."""
    fused = copy.deepcopy(model).eval()
    _replace(fused)
    return fused.requires_grad_(False)


def is_fused(model: nn.Module) -> bool:
    return any(isinstance(module, FusedConv) for module in model.modules())


def _replace(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, RepConv):
            weight1, bias1 = _folded(child.conv1)
            weight2, bias2 = _folded(child.conv2)
            merged = weight1 + F.pad(weight2, (1, 1, 1, 1))  # the 1x1 kernel is the centre of a 3x3 one
            module.add_module(name, FusedConv(_conv_like(child.conv1.conv, merged, bias1 + bias2), child.act))
        elif isinstance(child, Conv):
            module.add_module(name, FusedConv(_conv_like(child.conv, *_folded(child)), child.act))
        else:
            _replace(child)


def _folded(block: Conv) -> tuple[Tensor, Tensor]:
    """Weight and bias, in float64, of the one convolution that equals convolution and BatchNorm."""
    bn = block.bn
    assert (
        bn.running_mean is not None and bn.running_var is not None
    )  # for the type checker: always tracked here
    scale = bn.weight.detach().double() / torch.sqrt(bn.running_var.double() + bn.eps)
    weight = block.conv.weight.detach().double() * scale[:, None, None, None]
    return weight, bn.bias.detach().double() - bn.running_mean.double() * scale


def _conv_like(conv: nn.Conv2d, weight: Tensor, bias: Tensor) -> nn.Conv2d:
    out, groups = conv.out_channels, conv.groups
    made = nn.utils.skip_init(
        nn.Conv2d, conv.in_channels, out, conv.kernel_size, conv.stride, conv.padding, groups=groups,
        device=conv.weight.device, dtype=conv.weight.dtype,
    )  # fmt: skip
    with torch.no_grad():
        made.weight.copy_(weight)
        made.bias.copy_(bias)
    return made
