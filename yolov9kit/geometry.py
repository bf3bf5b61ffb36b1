"""Boxes as pure functions, always in float32. Formats, IoU, anchor points, non-maximum suppression."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

_GUARD = 1e-7
"""Keeps quotients of empty boxes finite; the value used throughout the field."""


def cxcywh_to_xyxy(boxes: Float[Tensor, "*n 4"]) -> Float[Tensor, "*n 4"]:
    """Centre and size to corners, in the unit they come in."""
    centre, size = boxes.float().split(2, dim=-1)
    return torch.cat((centre - size / 2, centre + size / 2), dim=-1)


def xyxy_to_cxcywh(boxes: Float[Tensor, "*n 4"]) -> Float[Tensor, "*n 4"]:
    """Corners to centre and size, in the unit they come in."""
    first, second = boxes.float().split(2, dim=-1)
    return torch.cat(((first + second) / 2, second - first), dim=-1)


def area(boxes: Float[Tensor, "*n 4"]) -> Float[Tensor, "*n"]:
    """Area; a box turned inside out has none."""
    first, second = boxes.float().split(2, dim=-1)
    width, height = (second - first).clamp(min=0).unbind(-1)
    return width * height


def iou_matrix(a: Float[Tensor, "n 4"], b: Float[Tensor, "m 4"]) -> Float[Tensor, "n m"]:
    """Intersection over union of every pair, xyxy. Two empty boxes have IoU 0, never NaN."""
    a, b = a.float(), b.float()
    first = torch.maximum(a[:, None, :2], b[None, :, :2])
    second = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    intersection = (second - first).clamp(min=0).prod(dim=-1)
    union = area(a)[:, None] + area(b)[None, :] - intersection
    return torch.where(union > 0, intersection / torch.where(union > 0, union, 1.0), 0.0)


def ciou(a: Float[Tensor, "*n 4"], b: Float[Tensor, "*m 4"]) -> Float[Tensor, "*k"]:
    """Complete IoU of boxes that stand opposite each other (shapes broadcast), xyxy, float32, -1.5 to 1.

    IoU less the squared distance of the centres over that of the enclosing box's corners, less a penalty for unequal
    shapes whose weight is held constant for the gradient (Distance-IoU Loss, Zheng et al. 2020, section 3.4). Finite,
    with finite gradients, for boxes without size too.
    """
    a, b = a.float(), b.float()
    a_first, a_second, b_first, b_second = a[..., :2], a[..., 2:], b[..., :2], b[..., 2:]
    a_width, a_height = (a_second - a_first).unbind(-1)
    b_width, b_height = (b_second - b_first).unbind(-1)
    overlap = (torch.minimum(a_second, b_second) - torch.maximum(a_first, b_first)).clamp(min=0)
    intersection = overlap[..., 0] * overlap[..., 1]
    iou = intersection / (a_width * a_height + b_width * b_height - intersection + _GUARD)
    enclosing = torch.maximum(a_second, b_second) - torch.minimum(a_first, b_first)
    diagonal = enclosing.square().sum(-1) + _GUARD
    distance = ((b_first + b_second - a_first - a_second) / 2).square().sum(-1)
    turn = torch.atan(b_width / (b_height + _GUARD)) - torch.atan(a_width / (a_height + _GUARD))
    shape = 4 / math.pi**2 * turn.square()
    with torch.no_grad():
        weight = shape / (shape - iou + 1 + _GUARD)
    return iou - (distance / diagonal + weight * shape)


def anchor_points(
    sizes_hw: Sequence[tuple[int, int]], strides: Sequence[int], device: torch.device | None = None
) -> tuple[Float[Tensor, "A 2"], Float[Tensor, "A 1"]]:
    """Cell centres (x, y) in grid units, row by row, level after level, and the stride of each."""
    points, scale = [], []
    for (height, width), stride in zip(sizes_hw, strides, strict=True):
        y, x = torch.meshgrid(
            torch.arange(height, dtype=torch.float32, device=device) + 0.5,
            torch.arange(width, dtype=torch.float32, device=device) + 0.5,
            indexing="ij",
        )
        points.append(torch.stack((x, y), dim=-1).reshape(-1, 2))
        scale.append(torch.full((height * width, 1), float(stride), device=device))
    return torch.cat(points), torch.cat(scale)


def nms(
    boxes: Float[Tensor, "n 4"],
    scores: Float[Tensor, "n"],
    labels: Int[Tensor, "n"],
    max_iou: float,
    agnostic: bool = False,
) -> Int[Tensor, "k"]:
    """Greedy non-maximum suppression: indices of the boxes that stay, by falling score.

    A box falls when a better one of its class (of any class if ``agnostic``) overlaps it by *more* than
    ``max_iou``. Classes are treated one by one instead of shifted apart by large offsets: an offset of
    thousands of pixels rounds float32 corners and moves decisions near the threshold.
    """
    from torchvision.ops import nms as greedy  # imported here: the model and its files need no torchvision

    boxes, scores = boxes.float(), scores.float()
    # rounded as the overlaps are: else, on a processor, an IoU of exactly a third would be more than 1/3
    max_iou = torch.tensor(max_iou, dtype=torch.float32).item()
    if agnostic:
        return greedy(boxes, scores, max_iou)
    kept = [torch.empty(0, dtype=torch.int64, device=boxes.device)]
    for label in labels.unique().tolist():
        of_class = (labels == label).nonzero().squeeze(1)
        kept.append(of_class[greedy(boxes[of_class], scores[of_class], max_iou)])
    keep = torch.cat(kept).sort().values  # stable by index first, so that equal scores keep their order
    return keep[scores[keep].sort(descending=True, stable=True).indices]
