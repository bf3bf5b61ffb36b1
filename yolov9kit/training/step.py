"""One update of the weights, from batches to applied gradient. What is not finite is never applied, and is named."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from yolov9kit.cuda_graph import Captured, capture
from yolov9kit.device import Device, Precision, as_input, autocast, float32_math
from yolov9kit.loss.criterion import DetectionLoss, Normaliser
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.training.optim import WeightAverage
from yolov9kit.training.reports import LossValues
from yolov9kit.types import Outputs, Targets

EXPLODED = 1e8
"""A loss of a picture that no detector has, however bad: its weights are beyond mending, though still finite."""

MicroBatch = tuple[Tensor, Targets]
"""Images B x 3 x H x W uint8 on the device, and their targets there."""


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
    sees each batch on its own). With ``graph``, on a GPU, forward and backward pass of a single batch are recorded and
    replayed: the same numbers with one launch.
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

    def __post_init__(self) -> None:
        self.statistics = Statistics(self.model)
        self._learning = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self._recorded: dict[tuple[torch.Size, ...], tuple[Captured, list[Tensor | None]]] = {}
        self._pool: Any = None
        self._factor: Tensor | None = None

    def __call__(self, batches: Sequence[MicroBatch]) -> StepResult:
        with computing(self.device, self.precision, self.deterministic):
            return self._step(batches)

    def _step(self, batches: Sequence[MicroBatch]) -> StepResult:
        self.model.train()
        for norm in self.frozen_norms:
            norm.eval()
        self.statistics.keep()
        if self.graph and len(batches) == 1:
            losses = self._replayed(*batches[0])
        else:
            losses = self._accumulated(batches)
        gradients = [p.grad for p in self._learning if p.grad is not None]
        if self.scale.value != 1:
            torch._foreach_mul_(gradients, 1 / self.scale.value)
        size = torch.nn.utils.get_total_norm(gradients, foreach=self.device.kind == "cuda" or None)
        values = torch.cat((losses, size[None])).tolist()  # the one wait for the device
        return self._finish(batches, gradients, values)

    def _accumulated(self, batches: Sequence[MicroBatch]) -> Tensor:
        """Loss parts, with the gradients of all batches in the weights."""
        self.optimizer.zero_grad(set_to_none=True)
        normaliser = self._look_ahead(batches) if len(batches) > 1 else None
        pictures = sum(len(images) for images, _ in batches)
        losses: list[Tensor] = []
        for images, targets in batches:
            parts = self.loss(self._forward(images), targets, normaliser)
            (parts.total * self.scale.value).backward()
            losses.append(torch.stack((parts.total / pictures, *parts[1:])).detach())
        return torch.stack(losses).sum(0)

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
        parts = self.loss(self._forward(images), Targets(boxes, labels))
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
            fault, hopeless = self._first_fault(batches, values)
            self.statistics.restore()
        overflow = (
            scaling and not finite and not hopeless and self.scale.value > 1 and math.isfinite(values[0])
        )
        if scaling:
            self.scale.after(finite)
        return StepResult(LossValues(*values[:4]), values[4], fault, overflow, hopeless)

    def _forward(self, images: Tensor) -> Outputs:
        with autocast(self.device, self.precision):
            return self.model(as_input(images, self.device, self.precision))

    @torch.no_grad()
    def _look_ahead(self, batches: Sequence[MicroBatch]) -> Normaliser:
        """What the loss of all batches together is divided by. Leaves no trace in BatchNorm's statistics."""
        sums = [self.loss.strengths(self._forward(images), targets) for images, targets in batches]
        self.statistics.restore()
        main = torch.stack([s.main for s in sums]).sum()
        aux = [s.aux for s in sums if s.aux is not None]
        pictures = sum(s.pictures for s in sums)
        return Normaliser(main, torch.stack(aux).sum() if aux else None, pictures)

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
            first = _first_output(self.model, lambda images=images: self._forward(images))
            if first:
                return (f"output of layer {first}", f"is not finite in {self.precision.name}"), False
            with torch.no_grad():
                parts = self.loss(self._forward(images), targets)
            for kind, value in zip(("box", "cls", "dfl"), parts[1:], strict=True):
                if not torch.isfinite(value):
                    return (f"{kind} part of the loss", "is not finite"), False
        if max(values[:4]) >= EXPLODED:
            return ("loss", f"is {values[0]:.1e} a picture: the weights have exploded"), True
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
                return (f"gradient of {name}", f"is not finite in {self.precision.name}"), False
        return ("gradient norm", "is not finite: too large for float32"), False


class Statistics:
    """BatchNorm's running values, kept aside: a step that is not applied must not leave its mark in them."""

    @torch.no_grad()
    def __init__(self, model: nn.Module) -> None:
        self._buffers = list(model.buffers())
        self._values = [buffer.clone() for buffer in self._buffers]

    def keep(self) -> None:
        self._copy(self._values, self._buffers)

    def restore(self) -> None:
        self._copy(self._buffers, self._values)

    @torch.no_grad()
    def _copy(self, targets: Sequence[Tensor], sources: Sequence[Tensor]) -> None:
        for dtype in {
            target.dtype for target in targets
        }:  # one kernel for many tensors if they are of one kind
            torch._foreach_copy_(
                [target for target in targets if target.dtype == dtype],
                [source for source in sources if source.dtype == dtype],
            )


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
