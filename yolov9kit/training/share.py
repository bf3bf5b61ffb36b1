"""The part of a step that one device computes: forward and backward pass of some batches."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from yolov9kit.device import Device, Precision, as_input, autocast, float32_math
from yolov9kit.loss.criterion import DetectionLoss, Normaliser
from yolov9kit.model.blocks import batch_norms
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.types import Outputs, Targets

MicroBatch = tuple[Tensor, Targets]
"""Images B x 3 x H x W uint8, and their targets."""


class Share:
    """What one device does with its batches: adds gradients to the weights of its ``model``, and changes no weight."""

    def __init__(
        self,
        model: YOLOv9,
        loss: DetectionLoss,
        device: Device,
        precision: Precision,
        frozen_norms: Sequence[nn.Module] = (),
    ) -> None:
        self.model, self.loss, self.device, self.precision = model, loss, device, precision
        self.statistics = Statistics(model)
        self._frozen = frozen_norms
        self._norms = batch_norms(model)
        self._kept: Outputs | None = None

    def begin(self, fixed_norms: bool) -> None:
        """Ready for a step, in which the frozen norms rest, or all; what a step changes is kept aside."""
        self.model.train()
        for norm in self._norms if fixed_norms else self._frozen:
            norm.eval()
        self.statistics.keep()

    def forward(self, images: Tensor) -> Outputs:
        """B x 3 x H x W uint8 on the device."""
        with autocast(self.device, self.precision):
            return self.model(as_input(images, self.device, self.precision))

    def strengths(self, batches: Sequence[MicroBatch]) -> Normaliser:
        """What the loss of all these batches is divided by. ``gradients`` comes next, with the same batches.

        The outputs of a single batch are kept for it; several are computed twice, and this first time leaves no trace
        in BatchNorm's statistics.
        """
        if len(batches) == 1:
            images, targets = batches[0]
            self._kept = self.forward(images)
            return self.loss.strengths(self._kept, targets)
        with torch.no_grad():
            total = added([self.loss.strengths(self.forward(images), targets) for images, targets in batches])
        self.statistics.restore()
        return total

    def gradients(
        self, batches: Sequence[MicroBatch], normaliser: Normaliser | None, factor: float
    ) -> Tensor:
        """Parts of the loss, a picture, 4; their gradients, times ``factor``, are added to those of the weights."""
        losses: list[Tensor] = []
        for images, targets in batches:
            outputs, self._kept = self._kept or self.forward(images), None
            parts = self.loss(outputs, targets, normaliser)
            del outputs
            (parts.total * factor).backward()
            pictures = len(images) if normaliser is None else normaliser.pictures
            losses.append(torch.stack((parts.total / pictures, *parts[1:])).detach())
        return torch.stack(losses).sum(0)


def learning(model: nn.Module) -> list[nn.Parameter]:
    """The parameters that are not frozen, in the model's order."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def out_of_memory(error: torch.OutOfMemoryError, what: str) -> str:
    first = " ".join(str(error).split())[:200]
    return f"the GPU's memory does not hold {what}: take a smaller one, or a smaller image size ({first})"


def added(parts: Sequence[Normaliser]) -> Normaliser:
    """The normaliser of all batches together."""
    main = torch.stack([part.main for part in parts]).sum()
    aux = [part.aux for part in parts if part.aux is not None]
    return Normaliser(main, torch.stack(aux).sum() if aux else None, sum(part.pictures for part in parts))


def to_device(batches: Sequence[MicroBatch], device: Device) -> list[MicroBatch]:
    name = device.torch_name
    return [
        (images.to(name, non_blocking=True), targets.to(name, non_blocking=True))
        for images, targets in batches
    ]


class Statistics:
    """BatchNorm's running values, kept aside: a step that is not applied must not leave its mark in them."""

    def __init__(self, model: nn.Module) -> None:
        self.live = list(model.buffers())
        self.kept = [buffer.clone() for buffer in self.live]

    def keep(self) -> None:
        copy_all(self.kept, self.live)

    def restore(self) -> None:
        copy_all(self.live, self.kept)


@torch.no_grad()
def copy_all(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
    """Each target gets the values of its source."""
    for dtype in {target.dtype for target in targets}:  # one kernel for many tensors if they are of one kind
        torch._foreach_copy_(
            [target for target in targets if target.dtype == dtype],
            [source for source in sources if source.dtype == dtype],
        )


@contextmanager
def computing(device: Device, precision: Precision, deterministic: bool = False) -> Iterator[None]:
    """Around training or validation on a device: switches of the whole process, and afterwards as they were.

    cuDNN chooses its algorithms by rule. Its autotuner, which tries them all, takes 18 s for size t on an idle H200 and
    minutes on a busy one, and its choice, and with it the last bits, may differ from run to run. ``deterministic``
    admits deterministic algorithms only.
    """
    cudnn: Any = torch.backends.cudnn
    with ExitStack() as stack:
        stack.enter_context(float32_math(precision, device))
        if device.kind == "cuda":
            # not cudnn.flags(): what it is not told it resets, cuDNN itself would be off
            stack.callback(_set_cudnn, cudnn.benchmark, cudnn.deterministic)
            _set_cudnn(benchmark=False, deterministic=deterministic)
        if deterministic:
            stack.callback(torch.use_deterministic_algorithms, torch.are_deterministic_algorithms_enabled())
            torch.use_deterministic_algorithms(True)
        yield


def _set_cudnn(benchmark: bool, deterministic: bool) -> None:
    cudnn: Any = torch.backends.cudnn
    cudnn.benchmark, cudnn.deterministic = benchmark, deterministic
