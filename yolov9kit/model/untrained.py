"""A model that has learned nothing but whose scores spread: to try the machinery where no weights are at hand."""

from collections.abc import Sequence

import torch
from torch import nn

from yolov9kit.model.blocks import BATCH_NORM_MOMENTUM, batch_norms
from yolov9kit.model.checkpoint import Checkpoint, LoadReport
from yolov9kit.model.variants import Size
from yolov9kit.model.yolov9 import yolov9


def untrained(names: Sequence[str], size: Size = "t", seed: int = 0) -> Checkpoint:
    """Random weights in the deployed form, seeded. Its boxes are real boxes of the real machinery, and nonsense.

    BatchNorm statistics are set by one look at noise of every grain, so that no layer dies or explodes.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = yolov9(size, len(names), "deployed").train()
        for norm in batch_norms(model):
            norm.momentum = 1.0
        grains = (1, 2, 4, 16, 64, 256)
        noise = [nn.functional.interpolate(torch.rand(2, 3, n, n), size=256, mode="bilinear") for n in grains]
        with torch.no_grad():
            model(torch.cat(noise))
            for tower in model.head.cls:
                last = tower[-1]  # type: ignore[index]
                last.weight.mul_(4)
                last.bias.fill_(-0.5)
    for norm in batch_norms(model):
        norm.momentum = BATCH_NORM_MOMENTUM
    report = LoadReport(0, len(model.state_dict()), notes=("random weights: the boxes mean nothing",))
    return Checkpoint(model.eval(), tuple(names), size, "deployed", "yolov9kit", report)
