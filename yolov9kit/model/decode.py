"""Raw maps to boxes in pixels and scores. Distribution focal decoding, strides and the score rule live here only.

A side's distance from the cell centre is the expectation of a softmax over 16 bins, in grid units (Generalized
Focal Loss, Li et al. 2020, section 3.2). Scores are the sigmoid of the class logits; there is no objectness.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from yolov9kit.geometry import anchor_points

BINS = 16
STRIDES = (8, 16, 32)


def decode(
    maps: Sequence[Float[Tensor, "B K _h _w"]], strides: Sequence[int] = STRIDES
) -> tuple[Float[Tensor, "B A 4"], Float[Tensor, "B A C"]]:
    """Boxes (xyxy, input pixels, not clipped) and scores (0..1), both float32 whatever the maps' precision.

    ``maps``: ``B x (64 + C) x h x w`` per level, lowest stride first; anchor points come row by row, level after
    level.
    """
    points, scale = anchor_points([(m.shape[-2], m.shape[-1]) for m in maps], strides, maps[0].device)
    bins, logits = flat_maps(maps)
    return boxes_in_cells(bins, points) * scale, logits.transpose(1, 2).sigmoid()


def flat_maps(
    maps: Sequence[Float[Tensor, "B K _h _w"]],
) -> tuple[Float[Tensor, "B 64 A"], Float[Tensor, "B C A"]]:
    """Bins and class logits of all levels one after the other, float32."""
    flat = torch.cat([m.flatten(2) for m in maps], dim=2).float()  # (B, 64 + C, A)
    bins, logits = flat.split((4 * BINS, flat.shape[1] - 4 * BINS), dim=1)
    return bins, logits


def boxes_in_cells(bins: Float[Tensor, "B 64 A"], points: Float[Tensor, "A 2"]) -> Float[Tensor, "B A 4"]:
    """Boxes xyxy in grid units of each point's own level."""
    ramp = torch.arange(BINS, dtype=torch.float32, device=bins.device)
    # softmax over dimension 1 and a matrix product: the operation order that equals the reference to the last bit
    probabilities = bins.unflatten(1, (4, BINS)).transpose(1, 2).softmax(1)  # (B, 16, 4, A)
    with torch.autocast(bins.device.type, enabled=False):  # which would make the product a bf16 one
        distances = torch.einsum("brsa,r->bsa", probabilities, ramp).transpose(1, 2)  # left top right bottom
    return torch.cat((points - distances[..., :2], points + distances[..., 2:]), dim=-1)


def boxes_in_few_cells(bins: np.ndarray, points: np.ndarray) -> np.ndarray:
    """As ``boxes_in_cells`` for some locations on a processor: bins N x 64, points N x 2, boxes N x 4, all float32.

    NumPy takes no threads. torch's softmax wakes all of them for ever so little, and until they sleep again, some
    milliseconds, they take the cores from whoever computes next. The last digits may differ.
    """
    sides = bins.reshape(-1, 4, BINS)
    weights = np.exp(sides - sides.max(axis=2, keepdims=True))
    distances = (weights * np.arange(BINS, dtype=np.float32)).sum(axis=2) / weights.sum(axis=2)
    return np.concatenate((points - distances[:, :2], points + distances[:, 2:]), axis=1)
