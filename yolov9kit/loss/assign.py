"""Task-aligned assignment: which anchor points answer for which target, and how strongly.

TOOD (Feng et al. 2021, section 3.2): a point suits a target as far as it scores the right class *and* predicts the
right box. Float32, fixed shapes, no synchronisation with the host: a whole training step can be captured.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from yolov9kit.geometry import ciou
from yolov9kit.types import Targets

TOP_K, ALPHA, BETA = 10, 0.5, 6.0
_MOST_PAIRS = 2**25
"""Pairs of target and point looked at together: a few hundred MiB. Crowded batches are taken in parts."""


class Assignment(NamedTuple):
    """For each point: ``target`` B x A, the slot it answers for (0 where it answers for none), and ``weight`` B x A,
    the score it should have there, 0 where it answers for none."""

    target: Tensor
    weight: Tensor


@torch.no_grad()
def assign(
    logits: Float[Tensor, "B C A"],
    boxes: Float[Tensor, "B A 4"],
    points: Float[Tensor, "A 2"],
    targets: Targets,
) -> Assignment:
    """Assign by the network's own predictions.

    Args:
        logits: class logits.
        boxes: predicted boxes, xyxy, input pixels.
        points: anchor points in input pixels.
        targets: boxes in input pixels.
    """
    pictures, slots = targets.labels.shape
    if not slots:
        nothing = boxes.new_zeros(boxes.shape[:2])
        return Assignment(nothing.long(), nothing)
    together = max(1, _MOST_PAIRS // (slots * len(points)))
    cuts = [slice(start, start + together) for start in range(0, pictures, together)]
    parts = [_assign(logits[c], boxes[c], points, targets.boxes[c], targets.labels[c]) for c in cuts]
    return Assignment(torch.cat([part.target for part in parts]), torch.cat([part.weight for part in parts]))


def _assign(
    logits: Float[Tensor, "B C A"],
    boxes: Float[Tensor, "B A 4"],
    points: Float[Tensor, "A 2"],
    target_boxes: Float[Tensor, "B M 4"],
    labels: Int[Tensor, "B M"],
) -> Assignment:
    real = labels >= 0
    overlap = ciou(target_boxes[:, :, None], boxes[:, None]).clamp(min=0) * real[..., None]  # (B, M, A)
    column = labels.clamp(min=0)[..., None].expand(-1, -1, logits.shape[2])
    metric = logits.float().gather(1, column).sigmoid() ** ALPHA * overlap**BETA
    chosen = _best_points(metric * _inside(target_boxes, points))
    chosen = _without_conflicts(chosen, overlap)
    metric = metric * chosen
    # the small number is part of the result: with small overlaps the best metric is as small
    strength = (overlap * chosen).amax(2, keepdim=True) / (metric.amax(2, keepdim=True) + 1e-9)
    return Assignment(chosen.int().argmax(1), (metric * strength).amax(1))


def _inside(boxes: Float[Tensor, "B M 4"], points: Float[Tensor, "A 2"]) -> Bool[Tensor, "B M A"]:
    first, second = boxes[:, :, None, :2], boxes[:, :, None, 2:]
    return torch.cat((points - first, second - points), dim=-1).amin(-1) > 1e-9


def _best_points(metric: Float[Tensor, "B M A"]) -> Bool[Tensor, "B M A"]:
    """The ten largest of each target. Points of metric 0 are left out: their order is the platform's, not ours."""
    values, indices = metric.topk(min(TOP_K, metric.shape[2]), dim=2)
    return torch.zeros_like(metric, dtype=torch.bool).scatter_(2, indices, values > 0)


def _without_conflicts(
    chosen: Bool[Tensor, "B M A"], overlap: Float[Tensor, "B M A"]
) -> Bool[Tensor, "B M A"]:
    """A point chosen by several targets answers for the one it overlaps most, of all targets of the picture.

    Even one that did not choose it. The first of equals: argmax alone promises no order.
    """
    slots = torch.arange(chosen.shape[1], device=chosen.device)[:, None]
    largest = overlap.amax(1, keepdim=True)
    best = torch.where(overlap == largest, slots, chosen.shape[1]).amin(1, keepdim=True)
    return torch.where(chosen.sum(1, keepdim=True) > 1, slots == best, chosen)
