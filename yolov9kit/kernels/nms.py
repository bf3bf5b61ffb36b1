"""Greedy class-wise non-maximum suppression in fixed shapes, without waiting for the device: it can be recorded.

Equal to ``geometry.nms`` on a processor to the last decision: the overlap is computed in float32 in the same order,
each result rounded, and compared with the threshold by *more than*.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, no_type_check

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

WORD = 32
"""Boxes whose decisions share one integer."""

WORDS = 2
"""Integers that one program of the first kernel writes for each of its 32 rows."""


def nms_reference(
    boxes: Float[Tensor, "B K 4"],
    labels: Int[Tensor, "B K"],
    valid: Bool[Tensor, "B K"],
    max_iou: Float[Tensor, ""],
    agnostic: Bool[Tensor, ""],
) -> Bool[Tensor, "B K"]:
    """Which boxes stay. A box falls when a better one that stays overlaps it by more than ``max_iou``.

    Args:
        boxes: xyxy float32, by falling score: only their order counts.
        labels: boxes of different ones leave each other alone, unless ``agnostic``.
        valid: slots that hold a box. Empty ones may lie anywhere.
        max_iou: float32, on the device like ``agnostic``, so that both can change under a recording.
    """
    boxes, max_iou = boxes.float(), max_iou.float()
    keep = valid.clone()
    rivals = (labels[:, :, None] == labels[:, None, :]) | agnostic
    beaten = rivals & (_overlaps(boxes) > max_iou)
    for row in range(boxes.shape[1] - 1):
        keep[:, row + 1 :] &= ~(keep[:, row, None] & beaten[:, row, row + 1 :])
    return keep


def _overlaps(boxes: Tensor) -> Tensor:
    """IoU of all pairs as torchvision computes it, B x K x K; NaN, which exceeds no threshold, of two empty boxes."""
    size = boxes[..., 2:] - boxes[..., :2]
    area = size[..., 0] * size[..., 1]
    upper_left = torch.maximum(boxes[:, :, None, :2], boxes[:, None, :, :2])
    lower_right = torch.minimum(boxes[:, :, None, 2:], boxes[:, None, :, 2:])
    sides = (lower_right - upper_left).clamp(min=0)
    both = sides[..., 0] * sides[..., 1]
    return both / (area[:, :, None] + area[:, None, :] - both)


def nms(
    boxes: Float[Tensor, "B K 4"],
    labels: Int[Tensor, "B K"],
    valid: Bool[Tensor, "B K"],
    max_iou: Float[Tensor, ""],
    agnostic: Bool[Tensor, ""],
) -> Bool[Tensor, "B K"]:
    """As ``nms_reference``, in two launches: who beats whom, then one walk through each picture's boxes.

    The walk goes 32 boxes at a time and ends with the last valid one. Memory: K x K / 8 bytes a picture.
    """
    pictures, slots = valid.shape
    words = -(-slots // WORD)
    keep = torch.empty_like(valid, memory_format=torch.contiguous_format)
    if not keep.numel():
        return keep
    boxes, max_iou = boxes.float().contiguous(), max_iou.float()
    labels, valid = labels.contiguous(), valid.contiguous()
    beaten = torch.empty(pictures, words * WORD, words, dtype=torch.int32, device=boxes.device)
    compare, walk = _kernels()
    padded = 1 << (words - 1).bit_length()  # vectors have a power of 2 of elements
    with torch.cuda.device_of(boxes):
        # fused, a product and a sum would be rounded once where a processor rounds twice
        compare[(words, -(-words // WORDS), pictures)](
            *(boxes, labels, valid, max_iou, agnostic, beaten, slots, words, WORDS), enable_fp_fusion=False
        )
        walk[(pictures,)](beaten, valid, keep, slots, words, padded, num_warps=max(1, min(padded // 64, 4)))
    return keep


@cache
def _kernels() -> tuple[Any, Any]:
    """Compiled on first use, so that importing needs no Triton."""
    import triton
    import triton.language as tl

    jit: Callable[[Any], Any] = triton.jit

    @jit
    @no_type_check  # shapes are checked where tensors are; a checked kernel does not compile
    def compare(
        boxes_ptr,
        labels_ptr,
        valid_ptr,
        max_iou_ptr,
        agnostic_ptr,
        beaten_ptr,
        slots,
        words,
        span: tl.constexpr,
    ):
        # bit j of word w in row i: box i, if it stays, fells box 32 w + j, which comes after it
        first_row = tl.program_id(0) * 32
        first_column = tl.program_id(1) * span * 32
        picture = tl.program_id(2).to(tl.int64)
        row = first_row + tl.arange(0, 32)
        column = first_column + tl.arange(0, span * 32)
        row_in, column_in = row < slots, column < slots
        rows_valid = tl.load(valid_ptr + picture * slots + row, mask=row_in, other=0).to(tl.int32)
        columns_valid = tl.load(valid_ptr + picture * slots + column, mask=column_in, other=0).to(tl.int32)
        # what is not written here is of no consequence: the walk asks valid rows about later boxes alone
        if (first_column + span * 32 > first_row) & (tl.max(rows_valid) > 0) & (tl.max(columns_valid) > 0):
            max_iou = tl.load(max_iou_ptr)
            agnostic = tl.load(agnostic_ptr) != 0
            at = boxes_ptr + (picture * slots + row) * 4
            a_left = tl.load(at, mask=row_in, other=0.0)[:, None]
            a_top = tl.load(at + 1, mask=row_in, other=0.0)[:, None]
            a_right = tl.load(at + 2, mask=row_in, other=0.0)[:, None]
            a_bottom = tl.load(at + 3, mask=row_in, other=0.0)[:, None]
            a_label = tl.load(labels_ptr + picture * slots + row, mask=row_in, other=0)[:, None]
            at = boxes_ptr + (picture * slots + column) * 4
            b_left = tl.load(at, mask=column_in, other=0.0)[None, :]
            b_top = tl.load(at + 1, mask=column_in, other=0.0)[None, :]
            b_right = tl.load(at + 2, mask=column_in, other=0.0)[None, :]
            b_bottom = tl.load(at + 3, mask=column_in, other=0.0)[None, :]
            b_label = tl.load(labels_ptr + picture * slots + column, mask=column_in, other=0)[None, :]
            width = tl.maximum(tl.minimum(a_right, b_right) - tl.maximum(a_left, b_left), 0.0)
            height = tl.maximum(tl.minimum(a_bottom, b_bottom) - tl.maximum(a_top, b_top), 0.0)
            both = width * height
            a_area = (a_right - a_left) * (a_bottom - a_top)
            b_area = (b_right - b_left) * (b_bottom - b_top)
            iou = tl.div_rn(both, a_area + b_area - both)
            falls = (iou > max_iou) & ((a_label == b_label) | agnostic) & (column[None, :] > row[:, None])
            bits = tl.reshape(falls.to(tl.int32) << (column % 32)[None, :], (32, span, 32))
            word = tl.program_id(1) * span + tl.arange(0, span)
            to = beaten_ptr + (picture * words * 32 + row[:, None]) * words + word[None, :]
            tl.store(to, tl.sum(bits, axis=2), mask=(word < words)[None, :])

    @jit
    @no_type_check  # shapes are checked where tensors are; a checked kernel does not compile
    def walk(beaten_ptr, valid_ptr, keep_ptr, slots, words, padded: tl.constexpr):
        picture = tl.program_id(0).to(tl.int64)
        word = tl.arange(0, padded)
        bit = tl.arange(0, 32)
        slot = word[:, None] * 32 + bit[None, :]
        valid = tl.load(valid_ptr + picture * slots + slot, mask=slot < slots, other=0).to(tl.int32)
        left = tl.sum(valid << bit[None, :], axis=1)  # boxes that nobody felled so far, 32 to a word
        end = tl.max(tl.where(left != 0, word + 1, 0))
        current = 0
        while current < end:  # a range up to a value on the device is beyond the interpreter of Triton 3.6
            alive = tl.sum(tl.where(word == current, left, 0))
            if alive != 0:
                row = beaten_ptr + (picture * words * 32 + current * 32 + bit) * words
                among = tl.load(row + current)
                later = (word > current) & (word < end)
                after = tl.load(row[:, None] + word[None, :], mask=later[None, :], other=0)
                # who stays among these 32: a box's fate hangs on earlier ones only, so that the first n are right
                # after n rounds, and what a round leaves as it was is final
                stays = alive
                before = 0
                while stays != before:
                    before = stays
                    stays = alive & ~tl.reduce_or(tl.where(((before >> bit) & 1) != 0, among, 0), 0)
                stay = ((stays >> bit) & 1) != 0
                left = tl.where(word == current, stays, left)
                left = left & ~tl.reduce_or(tl.where(stay[:, None], after, 0), 0)
            current += 1
        tl.store(
            keep_ptr + picture * slots + slot, ((left[:, None] >> bit[None, :]) & 1) != 0, mask=slot < slots
        )

    return compare, walk
