"""One update of the weights, from batches to applied gradient. What is not finite is never applied, and is named."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from yolov9kit.cuda_graph import Captured, capture
from yolov9kit.device import Device, Precision
from yolov9kit.loss.criterion import DetectionLoss
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.training.devices import OtherDevices
from yolov9kit.training.optim import WeightAverage
from yolov9kit.training.reports import LossValues
from yolov9kit.training.share import MicroBatch, Share, computing, learning, to_device
from yolov9kit.types import Targets

EXPLODED = 1e8
"""A loss of a picture that no detector has, however bad: its weights are beyond mending, though still finite."""


@dataclass
class LossScale:
    """The factor that keeps small fp16 gradients from vanishing: halved when they overflow, doubled after 2,000 good
    steps (Mixed Precision Training, Micikevicius et al. 2018, section 3.2). Elsewhere it stays 1."""

    value: float = 1.0
    good_steps: int = 0

    def after(self, finite: bool) -> None:
        if not finite:
            self.value, self.good_steps = self.value / 2, 0
        elif self.good_steps + 1 >= 2000:
            self.value, self.good_steps = self.value * 2, 0
        else:
            self.good_steps += 1


@dataclass(frozen=True)
class StepResult:
    """The loss and the gradient's norm before clipping. ``fault`` is (tensor, what) of a step that was not applied; the
    values may then be anything.

    ``overflow``: only the fp16 loss scale was too large, which is a part of its search. ``hopeless``: the weights
    themselves are spoilt, no later step can be good.
    """

    loss: LossValues
    grad_norm: float
    fault: tuple[str, str] | None = None
    overflow: bool = False
    hopeless: bool = False


@dataclass
class TrainStep:
    """``step(batches) -> StepResult``: forward, loss, backward, clipping, update, moving average.

    Several batches make one step whose gradient equals that of one batch of all their pictures (BatchNorm aside, which
    sees each batch on its own); with ``others``, several devices compute them side by side. With ``graph``, on a GPU,
    forward and backward pass of a single batch are recorded and replayed: the same numbers with one launch.
    """

    model: YOLOv9
    average: WeightAverage
    optimizer: torch.optim.Optimizer
    loss: DetectionLoss
    device: Device
    precision: Precision
    clip_norm: float
    deterministic: bool = False
    graph: bool = False
    scale: LossScale = field(default_factory=LossScale)
    frozen_norms: Sequence[nn.Module] = ()
    others: OtherDevices | None = None

    def __post_init__(self) -> None:
        self.share = Share(self.model, self.loss, self.device, self.precision, self.frozen_norms)
        self.statistics = self.share.statistics
        self._learning = learning(self.model)
        self._recorded: dict[tuple[torch.Size, ...], tuple[Captured, list[Tensor | None]]] = {}
        self._pool: Any = None
        self._factor: Tensor | None = None
        self._fixed = False

    def fix_norms(self, fixed: bool) -> None:
        """Whether all BatchNorms use their running values, and keep them, from the next step on.

        Training then computes what detection will: statistics of single batches are another network to the weights
        (Wu and Johnson 2021, Rethinking "Batch" in BatchNorm, section 4).
        """
        if fixed != self._fixed:
            self._fixed = fixed
            self._recorded.clear()
            self._factor = None  # the next recording begins with memory of its own

    def __call__(self, batches: Sequence[MicroBatch]) -> StepResult:
        """``batches`` may lie in the memory of the host."""
        with computing(self.device, self.precision, self.deterministic):
            return self._step(batches)

    def _step(self, batches: Sequence[MicroBatch]) -> StepResult:
        self.share.begin(self._fixed)
        if self.others is not None:
            self.optimizer.zero_grad(set_to_none=True)
            losses = self.others.gradients(self.share, batches, self.scale.value, self._fixed)
        elif self.graph and len(batches) == 1:
            losses = self._replayed(*to_device(batches, self.device)[0])
        else:
            losses = self._accumulated(to_device(batches, self.device))
        gradients = [p.grad for p in self._learning if p.grad is not None]
        if self.scale.value != 1:
            torch._foreach_mul_(gradients, 1 / self.scale.value)
        size = torch.nn.utils.get_total_norm(gradients, foreach=self.device.kind == "cuda" or None)
        values = torch.cat((losses, size[None])).tolist()  # the one wait for the device
        return self._finish(batches, gradients, values)

    def _accumulated(self, batches: Sequence[MicroBatch]) -> Tensor:
        """Loss parts, with the gradients of all batches in the weights."""
        self.optimizer.zero_grad(set_to_none=True)
        normaliser = self.share.strengths(batches) if len(batches) > 1 else None
        return self.share.gradients(batches, normaliser, self.scale.value)

    def _replayed(self, images: Tensor, targets: Targets) -> Tensor:
        """The same for one batch, replayed. Batches of another shape or number of target slots are recorded anew."""
        if self._factor is None:  # a tensor, as a number would be recorded for good
            self._factor = torch.ones((), device=images.device)
            self._pool = torch.cuda.graph_pool_handle()
        self._factor.fill_(self.scale.value)
        key = (images.shape, targets.labels.shape)
        if key not in self._recorded:
            captured = capture(
                self._loss_and_gradients,
                (images, *targets),
                before_each=lambda: self.optimizer.zero_grad(set_to_none=True),
                after_warm_up=self.statistics.restore,
                pool=self._pool,
            )
            self._recorded[key] = captured, [parameter.grad for parameter in self._learning]
        captured, gradients = self._recorded[key]
        losses: Tensor = captured(images, *targets)
        for parameter, gradient in zip(self._learning, gradients, strict=True):
            parameter.grad = gradient
        return losses

    def _loss_and_gradients(self, images: Tensor, boxes: Tensor, labels: Tensor) -> Tensor:
        parts = self.loss(self.share.forward(images), Targets(boxes, labels))
        assert self._factor is not None
        (parts.total * self._factor).backward()
        return torch.stack((parts.total / len(images), *parts[1:])).detach()

    def _finish(
        self, batches: Sequence[MicroBatch], gradients: list[Tensor], values: list[float]
    ) -> StepResult:
        finite = all(math.isfinite(value) for value in values) and max(values[:4]) < EXPLODED
        scaling = self.precision.name == "fp16"
        fault, hopeless = None, False
        if finite:
            norm = values[-1]
            if self.clip_norm and norm > self.clip_norm:
                torch._foreach_mul_(gradients, self.clip_norm / (norm + 1e-6))
            self.optimizer.step()
            self.average.update(self.model)
        else:
            self.statistics.restore()
            fault, hopeless = self._first_fault(to_device(batches, self.device), values)
            self.statistics.restore()
        overflow = (
            scaling and not finite and not hopeless and self.scale.value > 1 and math.isfinite(values[0])
        )
        if scaling:
            self.scale.after(finite)
        return StepResult(LossValues(*values[:4]), values[4], fault, overflow, hopeless)

    def _first_fault(
        self, batches: Sequence[MicroBatch], values: list[float]
    ) -> tuple[tuple[str, str], bool]:
        """Where the first wrong value stands, looked for in the order of computation, and whether it is hopeless."""
        for kind, tensors in (
            ("weight", self.model.named_parameters()),
            ("buffer", self.model.named_buffers()),
        ):
            for name, tensor in tensors:
                if not torch.isfinite(tensor).all():
                    return (f"{kind} {name}", "has values that are not finite before the step"), True
        for images, targets in batches:
            first = _first_output(self.model, lambda images=images: self.share.forward(images))
            if first:
                return (f"output of layer {first}", f"is not finite in {self.precision.name}"), False
            with torch.no_grad():
                parts = self.loss(self.share.forward(images), targets)
            for kind, value in zip(("box", "cls", "dfl"), parts[1:], strict=True):
                if not torch.isfinite(value):
                    return (f"{kind} part of the loss", "is not finite"), False
        if max(values[:4]) >= EXPLODED:
            return ("loss", f"is {values[0]:.1e} a picture: the weights have exploded"), True
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                return (f"gradient of {name}", f"is not finite in {self.precision.name}"), False
        return ("gradient norm", "is not finite: too large for float32"), False


def _first_output(model: nn.Module, run: Any) -> str | None:
    """Name of the first layer whose output is not finite."""
    found: list[str] = []

    def look(name: str) -> Any:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            if not found and isinstance(output, Tensor) and not torch.isfinite(output).all():
                found.append(name)

        return hook

    handles = [module.register_forward_hook(look(name)) for name, module in model.named_modules() if name]
    try:
        with torch.no_grad():
            run()
    finally:
        for handle in handles:
            handle.remove()
    return found[0] if found else None
