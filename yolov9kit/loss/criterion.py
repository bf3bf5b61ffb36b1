"""The training loss: class, box and distribution parts of the main branch and, weaker, of the auxiliary one.

Binary cross-entropy against the assigned strengths (TOOD, Feng et al. 2021), complete IoU (Zheng et al. 2020) and
distribution focal loss (Generalized Focal Loss, Li et al. 2020, section 3.2). The auxiliary branch is assigned by its
own predictions (YOLOv9, Wang et al. 2024, section 4.1). All of it in float32, whatever the network computes in.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from yolov9kit.geometry import anchor_points, ciou
from yolov9kit.loss.assign import assign
from yolov9kit.model.decode import BINS, STRIDES, boxes_in_cells, flat_maps
from yolov9kit.types import LossParts, Outputs, RawMaps, Targets


class BranchSums(NamedTuple):
    """The parts of one branch, summed over points and pictures, before gains; ``weight`` is the sum of all assigned
    strengths, which they are divided by where it is at least 1."""

    box: Tensor
    cls: Tensor
    dfl: Tensor
    weight: Tensor


class Normaliser(NamedTuple):
    """Of a larger batch that this one is a part of: the sums of its assigned strengths, and its number of pictures.

    Normalisers of the parts add up to that of the whole.
    """

    main: Tensor
    aux: Tensor | None
    pictures: int


@dataclass(frozen=True)
class DetectionLoss:
    """``loss(outputs, targets) -> LossParts``.

    Outputs without an auxiliary branch are scored by the main one alone. A batch without any target has box and DFL
    parts of exactly 0 and a class part that is finite.

    ``normaliser``: a batch too large for the memory is taken in parts; with that of the whole batch the losses of the
    parts add up to the loss of the whole, and so do the gradients.
    """

    num_classes: int
    box_gain: float = 7.5
    cls_gain: float = 0.5
    dfl_gain: float = 1.5
    aux_weight: float = 0.25

    def __call__(self, outputs: Outputs, targets: Targets, normaliser: Normaliser | None = None) -> LossParts:
        self._check(outputs, targets)
        main = branch_sums(outputs.main, targets)
        parts = self.parts(main, None if normaliser is None else normaliser.main.clamp(min=1))
        if outputs.aux is not None:
            aux_weight = None if normaliser is None or normaliser.aux is None else normaliser.aux.clamp(min=1)
            aux = self.parts(branch_sums(outputs.aux, targets), aux_weight)
            parts = LossParts(*(a + self.aux_weight * b for a, b in zip(parts, aux, strict=True)))
        return parts._replace(
            total=parts.total * (len(targets.labels) if normaliser is None else normaliser.pictures)
        )

    def parts(self, sums: BranchSums, weight: Tensor | None = None) -> LossParts:
        """Parts of one branch with their gains; ``total`` is their plain sum here."""
        by = sums.weight.clamp(min=1) if weight is None else weight
        box, cls, dfl = (
            gain * value / by
            for gain, value in zip((self.box_gain, self.cls_gain, self.dfl_gain), sums[:3], strict=True)
        )
        return LossParts(box + cls + dfl, box, cls, dfl)

    def strengths(self, outputs: Outputs, targets: Targets) -> Normaliser:
        """What ``Normaliser`` says of this batch. Needs no gradients."""
        self._check(outputs, targets)
        with torch.no_grad():
            main, aux = (
                None if maps is None else branch_sums(maps, targets).weight
                for maps in (outputs.main, outputs.aux)
            )
        assert main is not None  # for the type checker
        return Normaliser(main, aux, len(targets.labels))

    def _check(self, outputs: Outputs, targets: Targets) -> None:
        pictures, channels = outputs.main[0].shape[:2]
        if channels != 4 * BINS + self.num_classes:
            raise ValueError(
                f"the maps have {channels} channels: {channels - 4 * BINS} classes, this loss is for {self.num_classes}"
            )
        shape = (*targets.labels.shape, 4)
        if len(targets.labels) != pictures or targets.boxes.shape != shape:
            raise ValueError(
                f"targets: boxes {list(targets.boxes.shape)} and labels {list(targets.labels.shape)} "
                f"do not fit a batch of {pictures}"
            )


def branch_sums(maps: RawMaps, targets: Targets) -> BranchSums:
    """The parts of one branch, see ``BranchSums``. Gradients flow into the box, class and DFL sums."""
    points, stride = anchor_points([(m.shape[-2], m.shape[-1]) for m in maps], STRIDES, maps[0].device)
    bins, logits = flat_maps(maps)
    boxes = boxes_in_cells(bins, points)
    target_boxes = targets.boxes.float()
    assignment = assign(
        logits.detach(), boxes.detach() * stride, points * stride, Targets(target_boxes, targets.labels)
    )
    weight, total = assignment.weight, assignment.weight.sum()
    if not targets.labels.shape[1]:
        empty = (boxes.sum() + bins.sum()) * 0
        return BranchSums(empty, _class_sum(logits, torch.zeros_like(logits)), empty, total)
    assigned = (weight > 0)[..., None]
    goal = target_boxes.gather(1, assignment.target[..., None].expand(-1, -1, 4)) / stride
    # points that answer for nothing get their own box as goal: their part is 0 times a number that is surely finite
    box = ((1 - ciou(boxes, torch.where(assigned, goal, boxes.detach()))) * weight).sum()
    distances = torch.cat((points - goal[..., :2], goal[..., 2:] - points), dim=-1)
    dfl = (_distribution_loss(bins, distances) * weight).sum()
    label = targets.labels.clamp(min=0).gather(1, assignment.target)
    wanted = torch.zeros_like(logits).scatter_(1, label[:, None], weight[:, None])
    return BranchSums(box, _class_sum(logits, wanted), dfl, total)


def _class_sum(logits: Float[Tensor, "B C A"], wanted: Float[Tensor, "B C A"]) -> Tensor:
    return F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum")


def _distribution_loss(
    bins: Float[Tensor, "B 64 A"], distances: Float[Tensor, "B A 4"]
) -> Float[Tensor, "B A"]:
    """Cross-entropy of the two bins beside each side's distance, weighted by nearness; mean of the four sides."""
    distances = distances.clamp(0, BINS - 1 - 0.01).transpose(1, 2)  # (B, 4, A)
    lower = distances.floor()
    log_probabilities = bins.unflatten(1, (4, BINS)).log_softmax(2)  # (B, 4, 16, A)
    index = lower.long()[:, :, None]
    near = log_probabilities.gather(2, index).squeeze(2)
    far = log_probabilities.gather(2, index + 1).squeeze(2)
    return -(near * (lower + 1 - distances) + far * (distances - lower)).mean(1)
