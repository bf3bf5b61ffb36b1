"""The blocks of the paper's figure (YOLOv9, Wang et al. 2024, arXiv 2402.13616; GELAN: section 4.2).

Attribute names inside a block (``cv1``, ``bn``, ``m`` ...) are those of the official weights files, so a key of
a file maps to ours by its layer number alone.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BATCH_NORM_EPS, BATCH_NORM_MOMENTUM = 1e-3, 0.03


def batch_norms(part: nn.Module) -> list[nn.BatchNorm2d]:
    """Every BatchNorm of a network or of a part of it."""
    return [module for module in part.modules() if isinstance(module, nn.BatchNorm2d)]


class Conv(nn.Module):
    """Convolution without bias, BatchNorm, SiLU. Padding keeps the size at stride 1."""

    def __init__(
        self, c_in: int, c_out: int, kernel: int = 1, stride: int = 1, groups: int = 1, act: bool = True
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(c_out, eps=BATCH_NORM_EPS, momentum=BATCH_NORM_MOMENTUM)
        self.act = nn.SiLU() if act else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.bn(self.conv(x)))


class RepConv(nn.Module):
    """A 3x3 and a 1x1 convolution side by side, one SiLU on their sum. ``fuse`` makes one convolution of it."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.conv1 = Conv(c_in, c_out, 3, act=False)
        self.conv2 = Conv(c_in, c_out, 1, act=False)
        self.act = nn.SiLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.conv1(x) + self.conv2(x))


class Bottleneck(nn.Module):
    """RepConv, then 3x3 Conv, with a shortcut around both."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.cv1 = RepConv(channels, channels)
        self.cv2 = Conv(channels, channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.cv2(self.cv1(x))


class RepNCSP(nn.Module):
    """Cross-stage partial block: bottlenecks on one half of the channels, the other half passes by."""

    def __init__(self, c_in: int, c_out: int, repeats: int) -> None:
        super().__init__()
        half = c_out // 2
        self.cv1 = Conv(c_in, half)
        self.cv2 = Conv(c_in, half)
        self.cv3 = Conv(2 * half, c_out)
        self.m = nn.Sequential(*(Bottleneck(half) for _ in range(repeats)))

    def forward(self, x: Tensor) -> Tensor:
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), dim=1))


class ELAN1(nn.Module):
    """Layer aggregation with one plain convolution a step: ``out, part, hidden`` channels."""

    def __init__(self, c_in: int, out: int, part: int, hidden: int) -> None:
        super().__init__()
        self.cv1 = Conv(c_in, part)
        self.cv2 = Conv(part // 2, hidden, 3)
        self.cv3 = Conv(hidden, hidden, 3)
        self.cv4 = Conv(part + 2 * hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.cv1(x).chunk(2, dim=1)
        c = self.cv2(b)
        return self.cv4(torch.cat((a, b, c, self.cv3(c)), dim=1))


class RepNCSPELAN4(nn.Module):
    """GELAN's block: layer aggregation whose steps are RepNCSP and a 3x3 Conv: ``out, part, hidden`` channels."""

    def __init__(self, c_in: int, out: int, part: int, hidden: int, repeats: int) -> None:
        super().__init__()
        self.cv1 = Conv(c_in, part)
        self.cv2 = nn.Sequential(RepNCSP(part // 2, hidden, repeats), Conv(hidden, hidden, 3))
        self.cv3 = nn.Sequential(RepNCSP(hidden, hidden, repeats), Conv(hidden, hidden, 3))
        self.cv4 = Conv(part + 2 * hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.cv1(x).chunk(2, dim=1)
        c = self.cv2(b)
        return self.cv4(torch.cat((a, b, c, self.cv3(c)), dim=1))


class AConv(nn.Module):
    """Down-sampling of sizes t, s, m: average pool, then a 3x3 Conv with stride 2."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.cv1 = Conv(c_in, c_out, 3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.cv1(F.avg_pool2d(x, 2, stride=1))


class ADown(nn.Module):
    """Down-sampling of sizes c and e: one half by convolution, the other by max pool."""

    def __init__(self, c_in: int, c_out: int) -> None:
        super().__init__()
        self.cv1 = Conv(c_in // 2, c_out // 2, 3, 2)
        self.cv2 = Conv(c_in // 2, c_out // 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        a, b = F.avg_pool2d(x, 2, stride=1).chunk(2, dim=1)
        return torch.cat((self.cv1(a), self.cv2(F.max_pool2d(b, 3, stride=2, padding=1))), dim=1)


class SPPELAN(nn.Module):
    """Spatial pyramid pooling: three 5x5 max pools in a chain, all four maps joined."""

    def __init__(self, c_in: int, out: int, hidden: int) -> None:
        super().__init__()
        self.cv1 = Conv(c_in, hidden)
        self.cv5 = Conv(4 * hidden, out)

    def forward(self, x: Tensor) -> Tensor:
        maps = [self.cv1(x)]
        for _ in range(3):
            maps.append(F.max_pool2d(maps[-1], 5, stride=1, padding=2))
        return self.cv5(torch.cat(maps, dim=1))


class CBLinear(nn.Module):
    """One 1x1 convolution with bias, cut along the channels: a hint for each level of another branch."""

    def __init__(self, c_in: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.widths = tuple(widths)
        self.conv = nn.Conv2d(c_in, sum(widths), 1)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return self.conv(x).split(self.widths, dim=1)


def cb_fuse(x: Tensor, hints: Sequence[Tensor]) -> Tensor:
    """Add hints of deeper levels to ``x``, each enlarged to its size by nearest neighbour."""
    height, width = x.shape[-2:]
    total = x
    for hint in hints:
        total = total + F.interpolate(hint, size=(height, width), mode="nearest")
    return total


Hints = Mapping[int, Sequence[Tensor]]
"""Level -> hints to add right after that level's down-sampling."""
