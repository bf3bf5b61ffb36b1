"""Parameter groups, learning rates over a run, and the moving average of the weights."""

import copy
import math
from dataclasses import dataclass
from itertools import chain, compress

import torch
from torch import nn

from yolov9kit.model.blocks import BATCH_NORM_MOMENTUM
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.training.config import TrainConfig

SHORT_RUN_STEPS = 10_000
"""Runs below this are short: plain SGD with the paper's rates has hardly begun to learn there."""


@dataclass(frozen=True)
class Recipe:
    """How the weights are updated: every value that the config left open is decided here, with the reason."""

    optimizer: str
    lr0: float
    momentum: float
    warmup_bias_lr: float
    accumulate: int
    weight_decay: float
    reason: str


def choose_recipe(config: TrainConfig, batch: int, steps_per_epoch: int) -> Recipe:
    """The recipe for a run of ``config`` at this batch size.

    SGD is the paper's (appendix A): learning rate 0.01, momentum 0.937, accumulation to 64 pictures a step.
    """
    total = steps_per_epoch * config.epochs
    name, reason = config.optimizer, "as asked"
    if name == "auto":
        short = total < SHORT_RUN_STEPS
        name = "adamw" if short else "sgd"
        reason = f"chosen: {total:,} steps are {'fewer' if short else 'not fewer'} than {SHORT_RUN_STEPS:,}"
    sgd = name == "sgd"
    accumulate = config.accumulate or (max(1, round(config.nominal_batch / batch)) if sgd else 1)
    lr0 = config.lr0 or (0.01 if sgd else ADAM_LR)
    return Recipe(
        optimizer=name,
        lr0=lr0,
        momentum=(0.937 if sgd else 0.9) if config.momentum is None else config.momentum,
        warmup_bias_lr=(0.1 if sgd else 0.0) if config.warmup_bias_lr is None else config.warmup_bias_lr,
        accumulate=accumulate,
        weight_decay=config.weight_decay * batch * accumulate / config.nominal_batch,
        reason=reason,
    )


ADAM_LR = 1e-3
"""First learning rate of Adam and AdamW."""


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Three groups: weights (with decay), norms, biases. Parameters that are frozen are in none."""
    weights, norms, biases = parameter_groups(model)
    groups = [
        {"params": weights, "weight_decay": recipe.weight_decay, "kind": "weights"},
        {"params": norms, "weight_decay": 0.0, "kind": "norms"},
        {"params": biases, "weight_decay": 0.0, "kind": "biases"},
    ]
    groups = [group for group in groups if group["params"]]
    fused = next(model.parameters()).is_cuda or None  # a few kernels instead of hundreds
    if recipe.optimizer == "sgd":
        nesterov = recipe.momentum > 0
        return torch.optim.SGD(groups, recipe.lr0, recipe.momentum, nesterov=nesterov, fused=fused)
    kind = torch.optim.AdamW if recipe.optimizer == "adamw" else torch.optim.Adam
    return kind(groups, recipe.lr0, (recipe.momentum, 0.999), fused=fused)


def parameter_groups(
    model: nn.Module,
) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
    """Weights, norms and biases that learn, in the model's order."""
    weights: list[nn.Parameter] = []
    norms: list[nn.Parameter] = []
    biases: list[nn.Parameter] = []
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad:
                group = biases if name == "bias" else norms if isinstance(module, nn.BatchNorm2d) else weights
                group.append(parameter)
    return weights, norms, biases


@dataclass(frozen=True)
class Schedule:
    """Learning rate and momentum as functions of the number of steps done."""

    recipe: Recipe
    total_steps: int
    warmup_steps: int
    warmup_momentum: float
    lrf: float
    cosine: bool

    def learning_rate(self, step: int, kind: str = "weights") -> float:
        """For the step after ``step`` steps; ``kind`` is the parameter group's."""
        progress = min(step / self.total_steps, 1.0)
        fall = (1 + math.cos(math.pi * progress)) / 2 if self.cosine else 1 - progress
        rate = self.recipe.lr0 * (self.lrf + (1 - self.lrf) * fall)
        start = self.recipe.warmup_bias_lr if kind == "biases" else 0.0
        return self._risen(step, start, rate)

    def momentum(self, step: int) -> float:
        return self._risen(step, min(self.warmup_momentum, self.recipe.momentum), self.recipe.momentum)

    def _risen(self, step: int, start: float, end: float) -> float:
        share = min((step + 1) / self.warmup_steps, 1.0) if self.warmup_steps else 1.0
        return start + share * (end - start)

    def apply(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """Set rate and momentum for the step after ``step`` steps."""
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate(step, group["kind"])
            if "betas" in group:
                group["betas"] = (self.momentum(step), group["betas"][1])
            else:
                group["momentum"] = self.momentum(step)


def make_schedule(config: TrainConfig, recipe: Recipe, steps_per_epoch: int) -> Schedule:
    """Warm-up lasts ``warmup_epochs``, at least 100 steps, but never more than a quarter of the run."""
    total = steps_per_epoch * config.epochs
    wanted = max(round(config.warmup_epochs * steps_per_epoch), 100) if config.warmup_epochs else 0
    return Schedule(
        recipe,
        total,
        min(wanted, total // 4),
        config.warmup_momentum,
        config.lrf,
        config.schedule == "cosine",
    )


def choose_average(config: TrainConfig, total_steps: int) -> tuple[float, float]:
    """Decay and ramp of the weights' average for a run of this many steps.

    The paper's 0.9999 after a ramp of 2,000 is made for runs of 100,000 steps and more. In one of 800 its average would
    never reach beyond the last step or two; here it spans the last twentieth of a run, however short.
    """
    decay = min(0.9999, max(0.0, 1 - 20 / total_steps)) if config.ema_decay is None else config.ema_decay
    ramp = min(2000.0, max(1.0, total_steps / 20)) if config.ema_ramp is None else config.ema_ramp
    return decay, ramp


def choose_norm_momentum(batches: int) -> float:
    """How fast BatchNorm's running values follow, in a run of this many batches: over a twentieth of it, at most the 33
    batches of the paper's release (0.03), at least ten (0.1, as in torch).

    In a run of 60 batches 0.03 would keep a third of what the statistics were before it. Fine-tuned for 60 on 96
    pictures, AP 50 after the first epoch is 0.74 and 0.84 (two seeds) with 0.1 where it is 0.63 and 0.67 with 0.03, and
    0.89 and 0.88 at the end where it is 0.86 and 0.82.
    """
    return min(0.1, max(BATCH_NORM_MOMENTUM, 20 / batches))


class WeightAverage:
    """The exponential moving average of a model: after n updates the decay is ``decay * (1 - exp(-n / ramp))``.

    Weights and BatchNorm's running statistics are averaged alike; whole numbers (BatchNorm's counters) are copied.
    With a decay of 0 it follows the model.
    """

    def __init__(self, model: YOLOv9, decay: float, ramp: float) -> None:
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay, self.ramp, self.updates = decay, ramp, 0

    @property
    def label(self) -> str:
        if not self.decay:
            return "none: scores and files are of the weights themselves"
        return f"of about the last {1 / (1 - self.decay):,.0f} steps (decay {self.decay:g}, ramp {self.ramp:g} steps)"

    @torch.no_grad()
    def update(self, model: YOLOv9) -> None:
        """Take in the model's values, which the caller knows to be finite."""
        self.updates += 1
        decay = self.decay * (1 - math.exp(-self.updates / self.ramp))
        ours, theirs = (list(chain(m.parameters(), m.buffers())) for m in (self.model, model))
        floats = [tensor.is_floating_point() for tensor in ours]
        torch._foreach_lerp_(list(compress(ours, floats)), list(compress(theirs, floats)), 1 - decay)
        counters = [not is_float for is_float in floats]
        torch._foreach_copy_(list(compress(ours, counters)), list(compress(theirs, counters)))
