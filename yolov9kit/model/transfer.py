"""From any weights file to a model that can be trained on given classes, with an account of what was carried over."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import nn

from yolov9kit.errors import CheckpointError
from yolov9kit.model.checkpoint import Checkpoint, load
from yolov9kit.model.yolov9 import YOLOv9


@dataclass(frozen=True)
class Transfer:
    """``carried`` of the ``total`` tensors of the model came from the file; ``anew`` says in words what did not."""

    model: YOLOv9
    carried: int
    total: int
    anew: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((f"{self.carried:,} of {self.total:,} tensors carried over", *self.anew))


def transfer(weights: str | Path, names: Sequence[str], new_auxiliary: bool = False) -> Transfer:
    """A training-form model for the classes ``names`` that starts from ``weights``.

    Where the class count differs the class outputs start anew and everything else is kept. A file in the deployed form
    has no auxiliary branch; it starts at random, and only with ``new_auxiliary``.

    Raises:
        CheckpointError: as ``load``; a deployed file without ``new_auxiliary``: the message has the numbers.
    """
    checkpoint = load(weights, names=names)
    anew = (
        [f"class outputs start anew for {len(names)} classes"]
        if checkpoint.report.left_out and _restarted(checkpoint)
        else []
    )
    if checkpoint.form == "training":
        return Transfer(
            checkpoint.model.train(), checkpoint.report.fitted, checkpoint.report.total, tuple(anew)
        )
    model = _with_auxiliary(checkpoint.model)
    total = len(model.state_dict())
    text = f"the auxiliary branch ({total - checkpoint.report.total:,} tensors) starts at random"
    if not new_auxiliary:
        raise CheckpointError(
            f"{weights}: has the deployed form, {checkpoint.report.fitted:,} of the training form's {total:,} tensors; "
            f"{text}.\nIf that is wanted, say so: new_auxiliary (--new-auxiliary). Else take a file in the "
            "training form."
        )
    return Transfer(model.train(), checkpoint.report.fitted, total, (*anew, text))


def _restarted(checkpoint: Checkpoint) -> bool:
    return checkpoint.report.fitted < checkpoint.report.total


def _with_auxiliary(model: YOLOv9) -> YOLOv9:
    """The training form: the same main branch, and an auxiliary branch with random weights."""
    box, cls = cast(nn.Sequential, model.head.box[0]), cast(nn.Sequential, model.head.cls[0])
    full = YOLOv9(
        model.size,
        model.num_classes,
        "training",
        box_groups=cast(nn.Conv2d, box[2]).groups,
        class_width=cast(nn.Conv2d, cls[2]).in_channels,
    )
    missing = full.load_state_dict(model.state_dict(), strict=False)
    assert not missing.unexpected_keys
    return full


def freeze(model: YOLOv9, paths: Sequence[str]) -> list[nn.Module]:
    """Keep the parts under these paths as they are; returns their BatchNorms, which must stay in evaluation mode."""
    norms: list[nn.Module] = []
    for path in paths:
        part = model.get_submodule(path)
        part.requires_grad_(False)
        norms += [module for module in part.modules() if isinstance(module, nn.BatchNorm2d)]
    return norms


def new_model(size: str, num_classes: int, seed: int) -> YOLOv9:
    """A training-form model with random weights that follow from ``seed``; the global generator is left as it was."""
    from yolov9kit.model.yolov9 import yolov9

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return yolov9(size, num_classes, "training").train()
