"""Raw maps to boxes in pixels and scores. Distribution focal decoding, strides and the score rule live here only.

A side's distance from the cell centre is the expectation of a softmax over 16 bins, in grid units (Generalized
Focal Loss, Li et al. 2020, section 3.2). Scores are the sigmoid of the class logits; there is no objectness.
"""

from collections.abc import Sequence

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
    flat = torch.cat([m.flatten(2) for m in maps], dim=2).float()  # (B, 64 + C, A)
    bins, logits = flat.split((4 * BINS, flat.shape[1] - 4 * BINS), dim=1)
    ramp = torch.arange(BINS, dtype=torch.float32, device=flat.device)
    # softmax over dimension 1 and a matrix product: the operation order that equals the reference to the last bit
    probabilities = bins.unflatten(1, (4, BINS)).transpose(1, 2).softmax(1)  # (B, 16, 4, A)
    distances = torch.einsum("brsa,r->bsa", probabilities, ramp).transpose(
        1, 2
    )  # (B, A, 4) left top right bottom
    boxes = torch.cat((points - distances[..., :2], points + distances[..., 2:]), dim=-1) * scale
    return boxes, logits.transpose(1, 2).sigmoid()
