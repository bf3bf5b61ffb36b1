"""The best locations of each picture in fixed shapes, without waiting for the device: it can be recorded."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class Chosen(NamedTuple):
    """The best K locations of each picture by falling score; of equal scores the lower location comes first.

    ``boxes`` B x K x 4 float32 xyxy, ``scores`` B x K float32, ``labels`` B x K int64. ``valid`` B x K: slots that hold
    a location, which come first; the others hold zeros. ``found`` B int64: how many locations there were, more than K
    if some got no slot. ``finite`` B: whether all boxes and best scores of the picture are finite numbers.
    """

    boxes: Tensor
    scores: Tensor
    labels: Tensor
    valid: Tensor
    found: Tensor
    finite: Tensor


def best_locations(
    boxes: Float[Tensor, "B A 4"],
    scores: Float[Tensor, "B A C"],
    min_score: Float[Tensor, ""],
    slots: int,
    classes: Bool[Tensor, "C"] | None = None,
) -> Chosen:
    """The ``slots`` best locations (all A, if that is fewer) whose best class scores more than ``min_score``.

    Args:
        boxes: any frame, as decoded.
        scores: 0 to 1. Of equal classes the lower number is the best one.
        min_score: at least 0, on the device, so that it can change under a recording, as ``classes`` can.
        classes: those wanted. A location whose best class is another one is left out, whatever its second best is.
    """
    best, labels = scores.float().max(dim=-1)
    finite = torch.isfinite(boxes).all(dim=-1).all(dim=-1) & torch.isfinite(best).all(dim=-1)
    wanted = best > min_score.float()
    if classes is not None:
        wanted &= classes[labels]
    locations = best.shape[1]
    # one number to sort by, no two alike: the bits of a positive float rise with it, then the lower location wins
    falling = torch.arange(locations - 1, -1, -1, device=best.device)
    key = torch.where(wanted, best.view(torch.int32).long() << 32 | falling, -1)
    best_keys = key.topk(min(slots, locations), dim=1).values
    valid = best_keys >= 0
    at = torch.where(valid, locations - 1 - (best_keys & 0xFFFFFFFF), 0)

    def taken(values: Tensor) -> Tensor:
        return torch.where(valid, values.gather(1, at), 0)

    corners = torch.where(valid[..., None], boxes.float().gather(1, at[..., None].expand(-1, -1, 4)), 0)
    return Chosen(corners, taken(best), taken(labels), valid, wanted.sum(dim=1), finite)
