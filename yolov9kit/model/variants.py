"""The table: one frozen row for each size, numbers as used (not as a formula that makes them)."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Size = Literal["t", "s", "m", "c", "e"]
Form = Literal["training", "deployed"]


@dataclass(frozen=True)
class Elan:
    """Channels of one layer-aggregation block."""

    out: int
    part: int
    hidden: int


@dataclass(frozen=True)
class Variant:
    """Everything that differs between the sizes.

    ``down``: kind of down-sampling. ``elan2_plain``: level 2 is ELAN1 and not RepNCSPELAN4. ``pgi``: what the
    auxiliary branch is, a second top-down path or a reversible branch that looks at the image again.
    ``reversible_main``: size e has such a branch in its main path too, and keeps it when deployed.
    """

    down: Literal["AConv", "ADown"]
    stem: tuple[int, int]
    elan2: Elan
    elan2_plain: bool
    down_out: tuple[int, int, int]
    elan: tuple[Elan, Elan, Elan]
    repeats: int
    spp: tuple[int, int]
    top_down: tuple[Elan, Elan]
    bottom_up_down: tuple[int, int]
    bottom_up: tuple[Elan, Elan]
    pgi: Literal["top_down", "reversible"]
    reversible_main: bool = False


VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        "t": Variant(
            down="AConv",
            stem=(16, 32),
            elan2=Elan(32, 32, 16),
            elan2_plain=True,
            down_out=(64, 96, 128),
            elan=(Elan(64, 64, 32), Elan(96, 96, 48), Elan(128, 128, 64)),
            repeats=3,
            spp=(128, 64),
            top_down=(Elan(96, 96, 48), Elan(64, 64, 32)),
            bottom_up_down=(48, 64),
            bottom_up=(Elan(96, 96, 48), Elan(128, 128, 64)),
            pgi="top_down",
        ),
        "s": Variant(
            down="AConv",
            stem=(32, 64),
            elan2=Elan(64, 64, 32),
            elan2_plain=True,
            down_out=(128, 192, 256),
            elan=(Elan(128, 128, 64), Elan(192, 192, 96), Elan(256, 256, 128)),
            repeats=3,
            spp=(256, 128),
            top_down=(Elan(192, 192, 96), Elan(128, 128, 64)),
            bottom_up_down=(96, 128),
            bottom_up=(Elan(192, 192, 96), Elan(256, 256, 128)),
            pgi="top_down",
        ),
        "m": Variant(
            down="AConv",
            stem=(32, 64),
            elan2=Elan(128, 128, 64),
            elan2_plain=False,
            down_out=(240, 360, 480),
            elan=(Elan(240, 240, 120), Elan(360, 360, 180), Elan(480, 480, 240)),
            repeats=1,
            spp=(480, 240),
            top_down=(Elan(360, 360, 180), Elan(240, 240, 120)),
            bottom_up_down=(184, 240),
            bottom_up=(Elan(360, 360, 180), Elan(480, 480, 240)),
            pgi="reversible",
        ),
        "c": Variant(
            down="ADown",
            stem=(64, 128),
            elan2=Elan(256, 128, 64),
            elan2_plain=False,
            down_out=(256, 512, 512),
            elan=(Elan(512, 256, 128), Elan(512, 512, 256), Elan(512, 512, 256)),
            repeats=1,
            spp=(512, 256),
            top_down=(Elan(512, 512, 256), Elan(256, 256, 128)),
            bottom_up_down=(256, 512),
            bottom_up=(Elan(512, 512, 256), Elan(512, 512, 256)),
            pgi="reversible",
        ),
        "e": Variant(
            down="ADown",
            stem=(64, 128),
            elan2=Elan(256, 128, 64),
            elan2_plain=False,
            down_out=(256, 512, 1024),
            elan=(Elan(512, 256, 128), Elan(1024, 512, 256), Elan(1024, 512, 256)),
            repeats=2,
            spp=(512, 256),
            top_down=(Elan(512, 512, 256), Elan(256, 256, 128)),
            bottom_up_down=(256, 512),
            bottom_up=(Elan(512, 512, 256), Elan(512, 1024, 512)),
            pgi="top_down",
            reversible_main=True,
        ),
    }
)
