"""The four parts of the figure. Pyramid levels travel as plain tuples, lowest stride first."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from yolov9kit.model.blocks import (
    ELAN1,
    SPPELAN,
    AConv,
    ADown,
    CBLinear,
    Conv,
    Hints,
    RepNCSPELAN4,
    cb_fuse,
)
from yolov9kit.model.variants import Elan, Variant

NO_HINTS: Hints = MappingProxyType({})


def _elan(c_in: int, channels: Elan, repeats: int) -> RepNCSPELAN4:
    return RepNCSPELAN4(c_in, channels.out, channels.part, channels.hidden, repeats)


def _down(kind: str, c_in: int, c_out: int) -> nn.Module:
    return AConv(c_in, c_out) if kind == "AConv" else ADown(c_in, c_out)


class Backbone(nn.Module):
    """Image to P1..P5 (strides 2, 4, 8, 16, 32). Hints of another branch are added after each down-sampling."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        v = variant
        self.conv1 = Conv(3, v.stem[0], 3, 2)
        self.conv2 = Conv(v.stem[0], v.stem[1], 3, 2)
        if v.elan2_plain:
            self.elan2: nn.Module = ELAN1(v.stem[1], v.elan2.out, v.elan2.part, v.elan2.hidden)
        else:
            self.elan2 = _elan(v.stem[1], v.elan2, v.repeats)
        self.down3 = _down(v.down, v.elan2.out, v.down_out[0])
        self.elan3 = _elan(v.down_out[0], v.elan[0], v.repeats)
        self.down4 = _down(v.down, v.elan[0].out, v.down_out[1])
        self.elan4 = _elan(v.down_out[1], v.elan[1], v.repeats)
        self.down5 = _down(v.down, v.elan[1].out, v.down_out[2])
        self.elan5 = _elan(v.down_out[2], v.elan[2], v.repeats)

    def forward(self, images: Tensor, hints: Hints = NO_HINTS) -> tuple[Tensor, ...]:
        p1 = cb_fuse(self.conv1(images), hints.get(1, ()))
        p2 = self.elan2(cb_fuse(self.conv2(p1), hints.get(2, ())))
        p3 = self.elan3(cb_fuse(self.down3(p2), hints.get(3, ())))
        p4 = self.elan4(cb_fuse(self.down4(p3), hints.get(4, ())))
        p5 = self.elan5(cb_fuse(self.down5(p4), hints.get(5, ())))
        return p1, p2, p3, p4, p5


class ReversibleBranch(nn.Module):
    """A second backbone that sees the image again, with hints from every level of the trunk (section 4.1).

    ``levels`` are the trunk levels that give hints. Each gives one to every branch level that is not above it
    and has hints, as wide as that level is right after its down-sampling.
    """

    def __init__(self, variant: Variant, levels: Sequence[int]) -> None:
        super().__init__()
        trunk = dict(
            zip(
                range(1, 6), (variant.stem[0], variant.elan2.out, *(e.out for e in variant.elan)), strict=True
            )
        )
        widths = dict(zip(range(1, 6), (*variant.stem, *variant.down_out), strict=True))
        self.route = nn.ModuleDict(
            {
                str(level): CBLinear(trunk[level], [widths[q] for q in levels if q <= level])
                for level in levels
            }
        )
        self.backbone = Backbone(variant)

    def forward(self, images: Tensor, trunk: Sequence[Tensor]) -> tuple[Tensor, ...]:
        levels = [int(name) for name in self.route]
        hints: Mapping[int, list[Tensor]] = {level: [] for level in levels}
        for name, route in self.route.items():
            for level, hint in zip(levels, route(trunk[int(name) - 1])):  # noqa: B905 - lower levels only
                hints[level].append(hint)
        return self.backbone(images, hints)


class TopDown(nn.Module):
    """P3..P5 to three maps: pyramid pooling on the deepest, then enlarged and joined with the levels below."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        v = variant
        self.spp = SPPELAN(v.elan[2].out, *v.spp)
        self.elan4 = _elan(v.spp[0] + v.elan[1].out, v.top_down[0], v.repeats)
        self.elan3 = _elan(v.top_down[0].out + v.elan[0].out, v.top_down[1], v.repeats)

    def forward(self, levels: Sequence[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        p3, p4, p5 = levels[-3:]
        n5 = self.spp(p5)
        n4 = self.elan4(torch.cat((F.interpolate(n5, scale_factor=2.0, mode="nearest"), p4), dim=1))
        n3 = self.elan3(torch.cat((F.interpolate(n4, scale_factor=2.0, mode="nearest"), p3), dim=1))
        return n3, n4, n5


class BottomUp(nn.Module):
    """The way back down: each map is down-sampled and joined with the one above it."""

    def __init__(self, variant: Variant) -> None:
        super().__init__()
        v = variant
        self.down4 = _down(v.down, v.top_down[1].out, v.bottom_up_down[0])
        self.elan4 = _elan(v.bottom_up_down[0] + v.top_down[0].out, v.bottom_up[0], v.repeats)
        self.down5 = _down(v.down, v.bottom_up[0].out, v.bottom_up_down[1])
        self.elan5 = _elan(v.bottom_up_down[1] + v.spp[0], v.bottom_up[1], v.repeats)

    def forward(self, n3: Tensor, n4: Tensor, n5: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        n4 = self.elan4(torch.cat((self.down4(n3), n4), dim=1))
        n5 = self.elan5(torch.cat((self.down5(n4), n5), dim=1))
        return n3, n4, n5
