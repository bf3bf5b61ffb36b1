"""From any weights file to a model that can be trained on given classes, with an account of what was carried over."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import nn

from yolov9kit.errors import CheckpointError
from yolov9kit.model.blocks import batch_norms
from yolov9kit.model.checkpoint import load
from yolov9kit.model.yolov9 import YOLOv9, yolov9


@dataclass(frozen=True)
class Transfer:
    """``carried`` of the ``total`` tensors of the model came from the file; ``anew`` says in words what did not."""

    model: YOLOv9
    carried: int
    total: int
    anew: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "; ".join((f"{self.carried:,} of {self.total:,} tensors carried over", *self.anew))


@contextmanager
def _random_from(seed: int) -> Iterator[None]:
    """New weights follow from ``seed``; the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def transfer(
    weights: str | Path, names: Sequence[str], new_auxiliary: bool = False, seed: int = 0
) -> Transfer:
    """A training-form model for the classes ``names`` that starts from ``weights``.

    Where the class count differs the class outputs start anew and everything else is kept. A file in the deployed form
    has no auxiliary branch; it starts at random, and only with ``new_auxiliary``. What starts anew follows from
    ``seed``.

    Raises:
        CheckpointError: as ``load``; a deployed file without ``new_auxiliary``: the message has the numbers.
    """
    with _random_from(seed):
        checkpoint = load(weights, names=names)
        model = checkpoint.model if checkpoint.form == "training" else _with_auxiliary(checkpoint.model)
    report = checkpoint.report
    anew = [f"class outputs start anew for {len(names)} classes"] if report.fitted < report.total else []
    if checkpoint.form == "training":
        return Transfer(model.train(), report.fitted, report.total, tuple(anew))
    total = len(model.state_dict())
    text = f"the auxiliary branch ({total - report.total:,} tensors) starts at random"
    if not new_auxiliary:
        raise CheckpointError(
            f"{weights}: has the deployed form, {report.fitted:,} of the training form's {total:,} tensors; "
            f"{text}.\nIf that is wanted, say so: new_auxiliary (--new-auxiliary). Else take a file in the "
            "training form."
        )
    return Transfer(model.train(), report.fitted, total, (*anew, text))


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
        norms += batch_norms(part)
    return norms


def new_model(size: str, num_classes: int, seed: int) -> YOLOv9:
    """A training-form model with random weights that follow from ``seed``; the global generator is left as it was."""
    with _random_from(seed):
        return yolov9(size, num_classes, "training").train()
