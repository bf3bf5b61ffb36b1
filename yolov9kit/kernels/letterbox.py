"""Letterboxing on the device: stored pixels of any sizes to the network's input, in one launch and in fixed shapes.

The pixels between are those of OpenCV's bilinear resizing of uint8, bit for bit: positions in float64 rounded to
float32, weights of 11 bits, the column sum cut to 16 bits as OpenCV cuts it. What differs from picture to picture
stands in a table on the device, so that one recording serves all sizes.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, no_type_check

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

PAD_VALUE = 114
"""Gray of the padding, the field's convention."""

COLUMNS = 12
"""Of the table: offset, strides of row, column and channel, picture height and width, inner height and width, padding
above and to the left, picture pixels per input pixel down and across (float64, its bits)."""

ROWS, BLOCK = 4, 256
"""Rows and values of a row that one program writes."""


class Placement(NamedTuple):
    """Where the pixels of one picture lie and where they go.

    ``offset`` of the upper left pixel and ``strides`` of row, column and channel, in bytes. Strides may be negative or
    change places: so a picture can be turned upright while it is read. Sizes are height, width; ``inner_hw`` is the
    picture's size in the input and ``pad_xy`` the padding to its left and above.
    """

    offset: int
    strides: tuple[int, int, int]
    picture_hw: tuple[int, int]
    inner_hw: tuple[int, int]
    pad_xy: tuple[int, int]


def interleaved(picture_hw: tuple[int, int]) -> tuple[int, int, int]:
    """Strides of pixels stored as H0 x W0 x 3."""
    return 3 * picture_hw[1], 3, 1


def planar(picture_hw: tuple[int, int]) -> tuple[int, int, int]:
    """Strides of pixels stored as 3 x H0 x W0."""
    return picture_hw[1], 1, picture_hw[0] * picture_hw[1]


def letterbox_table(placements: Sequence[Placement], pixel_count: int, slots: int | None = None) -> Tensor:
    """The table of a batch: ``slots`` x 12 int64, on the processor. Slots without a picture become gray.

    Args:
        pixel_count: how many bytes there are; what would reach beyond them is refused here, a kernel cannot.

    Raises:
        ValueError: more pictures than slots, a side without pixels, or pixels outside the given ones.
    """
    slots = len(placements) if slots is None else slots
    if len(placements) > slots:
        raise ValueError(f"letterbox_table: {len(placements)} pictures for {slots} slots")
    table = np.zeros((slots, COLUMNS), dtype=np.int64)
    if placements:
        rows = [(at, *strides, *size, *inner, *pad[::-1]) for at, strides, size, inner, pad in placements]
        filled = table[: len(rows)]
        filled[:, :10] = rows
        strides, sizes, inner = filled[:, 1:4], filled[:, 4:6], filled[:, 6:8]
        if (filled[:, 4:8] < 1).any():
            raise ValueError("letterbox_table: a side without pixels")
        reach = strides * np.column_stack((sizes - 1, np.full(len(rows), 2)))
        lowest, highest = filled[:, 0] + np.sort((reach, 0 * reach), axis=0).sum(axis=2)
        if lowest.min() < 0 or highest.max() >= pixel_count:
            raise ValueError(
                f"letterbox_table: pixels {lowest.min()} to {highest.max()} of {pixel_count} are asked for"
            )
        # in OpenCV's order of operations: the last bit decides where halves are rounded
        table.view(np.float64)[: len(rows), 10:] = 1.0 / (inner / sizes)
    return torch.from_numpy(table)


def letterbox_reference(
    pixels: Tensor, table: Tensor, output_hw: tuple[int, int], dtype: torch.dtype, channels: int = 3
) -> Tensor:
    """Letterboxed pictures, 0..1, as B x ``channels`` x H x W of type ``dtype``; channels above the third are 0.

    Args:
        pixels: the pictures' bytes, uint8, one dimension, at least one.
        table: B x 12 int64 on the same device, see ``letterbox_table``.
    """
    offset, row, column, channel = table[:, :4, None, None, None].unbind(1)
    height, width, inner_height, inner_width, top, left = table[:, 4:10, None].unbind(1)
    down, across = table.view(torch.float64)[:, 10:, None].unbind(1)
    y = torch.arange(output_hw[0], device=table.device) - top  # B x H, in pixels of the resized picture
    x = torch.arange(output_hw[1], device=table.device) - left  # B x W
    seen_down, seen_across = (y >= 0) & (y < inner_height), (x >= 0) & (x < inner_width)
    inside = seen_down[:, :, None, None] & seen_across[:, None, :, None]
    first_row, part_down = _position(y, down)
    first_column, part_across = _position(x, across)
    # a column beyond the edge has no weight; a row has, and two roundings of the same row are not one
    beyond = (first_column < 0) | (first_column >= width - 1)
    part_across = torch.where(beyond, 0.0, part_across)

    def mixed(row_of: Tensor) -> Tensor:
        """The two columns beside each position, in 2048ths: B x H x W x 3."""
        start = offset + _held(row_of, height)[:, :, None, None] * row
        start = start + torch.arange(3, device=table.device) * channel
        total = torch.zeros_like(start)
        for column_of, weight in ((first_column, 1 - part_across), (first_column + 1, part_across)):
            at = start + _held(column_of, width)[:, None, :, None] * column
            total = total + pixels[torch.where(inside, at, 0)] * _fixed(weight)[:, None, :, None]
        return total

    upper = (mixed(first_row) >> 4) * _fixed(1 - part_down)[:, :, None, None] >> 16
    lower = (mixed(first_row + 1) >> 4) * _fixed(part_down)[:, :, None, None] >> 16
    resized = torch.where(inside, (upper + lower + 2) >> 2, PAD_VALUE)
    images = (resized.float() / 255).to(dtype).permute(0, 3, 1, 2)  # divided in fp32, then rounded once
    return torch.cat((images, images.new_zeros((len(images), channels - 3, *output_hw))), dim=1)


def _position(at: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Where the centre of output pixel ``at`` lies: the pixel before it and how far beyond that, float32."""
    position = ((at.double() + 0.5) * scale - 0.5).float()
    before = position.floor()
    return before.long(), position - before


def _fixed(weight: Tensor) -> Tensor:
    """11 bits; halves go to the even number."""
    return (weight * 2048).round().long()


def _held(at: Tensor, size: Tensor) -> Tensor:
    """The nearest pixel that there is."""
    return at.clamp(min=0).minimum(size - 1)


def undo(boxes: Float[Tensor, "B N 4"], table: Int[Tensor, "B 12"]) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes xyxy from input pixels to picture pixels, float32; the same held inside the picture; which of them then
    have any pixels, B x N. Slots without a picture have none."""
    sizes_wh, inner_wh, pad_xy = (table[:, None, None, i : i + 2].flip(-1) for i in (4, 6, 8))
    scale_xy = inner_wh.clamp(min=1).double() / sizes_wh.clamp(min=1)
    moved = ((boxes.double().unflatten(-1, (2, 2)) - pad_xy) / scale_xy).float()
    held = moved.clamp(min=0).minimum(sizes_wh.float())
    seen = (held[:, :, 1] > held[:, :, 0]).all(dim=-1)
    return moved.flatten(2), held.flatten(2), seen


def letterbox_(pixels: Tensor, table: Tensor, out: Tensor) -> Tensor:
    """As ``letterbox_reference``, written into ``out``, B x C x H x W of any float type, NCHW or channels-last."""
    slots, channels, height, width = out.shape
    planes = out.is_contiguous()
    if not planes and not out.is_contiguous(memory_format=torch.channels_last):
        raise ValueError(f"letterbox_: an output of strides {out.stride()} is neither NCHW nor channels-last")
    if pixels.dtype != torch.uint8 or not pixels.is_contiguous():
        raise ValueError(
            f"letterbox_: pixels of {pixels.dtype} and strides {pixels.stride()} are no dense uint8"
        )
    if table.shape != (slots, COLUMNS) or table.dtype != torch.int64 or not table.is_contiguous():
        raise ValueError(f"letterbox_: a table of {tuple(table.shape)} {table.dtype} for {slots} pictures")
    grid = (-(-width * channels // BLOCK), -(-height // ROWS), slots)
    with torch.cuda.device_of(out):
        # a multiplication and a subtraction fused would round once where OpenCV rounds twice
        _kernel()[grid](
            *(pixels, table, out, height, width, channels, planes, PAD_VALUE, COLUMNS, ROWS, BLOCK),
            enable_fp_fusion=False,
        )
    return out


@cache
def _kernel() -> Any:
    """Compiled on first use, so that importing needs no Triton."""
    import triton
    import triton.language as tl

    jit: Callable[[Any], Any] = triton.jit

    @jit
    @no_type_check  # shapes are checked where tensors are; a checked kernel does not compile
    def resample(
        pixels_ptr,
        table_ptr,
        out_ptr,
        height,
        width,
        channels: tl.constexpr,
        planes: tl.constexpr,
        pad_value: tl.constexpr,
        table_columns: tl.constexpr,
        rows: tl.constexpr,
        block: tl.constexpr,
    ):
        picture = tl.program_id(2).to(tl.int64)
        entry = table_ptr + picture * table_columns
        offset = tl.load(entry)
        row_stride = tl.load(entry + 1)
        column_stride = tl.load(entry + 2)
        channel_stride = tl.load(entry + 3)
        picture_height = tl.load(entry + 4).to(tl.int32)
        picture_width = tl.load(entry + 5).to(tl.int32)
        inner_height = tl.load(entry + 6).to(tl.int32)
        inner_width = tl.load(entry + 7).to(tl.int32)
        top = tl.load(entry + 8).to(tl.int32)
        left = tl.load(entry + 9).to(tl.int32)
        down = tl.load(entry + 10).to(tl.float64, bitcast=True)
        across = tl.load(entry + 11).to(tl.float64, bitcast=True)

        # neighbours in a block are neighbours in memory, whichever of column and channel runs fastest there
        value = tl.program_id(0) * block + tl.arange(0, block)
        row = tl.program_id(1) * rows + tl.arange(0, rows)
        if planes:
            x, channel = value % width, value // width
            at = (picture * channels + channel[None, :]) * height * width + row[:, None] * width + x[None, :]
        else:
            x, channel = value // channels, value % channels
            at = (picture * height + row[:, None]) * width * channels + value[None, :]
        x -= left
        y = row - top

        position = ((y.to(tl.float64) + 0.5) * down - 0.5).to(tl.float32)
        before = tl.floor(position)
        part = position - before
        # adding and taking off 1.5 * 2**23 rounds halves to the even number
        above = ((1.0 - part) * 2048.0 + 12582912.0) - 12582912.0
        below = (part * 2048.0 + 12582912.0) - 12582912.0
        first_row = before.to(tl.int32)
        upper = tl.minimum(tl.maximum(first_row, 0), picture_height - 1) * row_stride
        lower = tl.minimum(tl.maximum(first_row + 1, 0), picture_height - 1) * row_stride

        position = ((x.to(tl.float64) + 0.5) * across - 0.5).to(tl.float32)
        before = tl.floor(position)
        first = before.to(tl.int32)
        part = tl.where((first < 0) | (first >= picture_width - 1), 0.0, position - before)
        left_weight = (((1.0 - part) * 2048.0 + 12582912.0) - 12582912.0).to(tl.int32)[None, :]
        right_weight = ((part * 2048.0 + 12582912.0) - 12582912.0).to(tl.int32)[None, :]
        start = pixels_ptr + offset + channel * channel_stride
        before_at = start + tl.minimum(tl.maximum(first, 0), picture_width - 1) * column_stride
        after_at = start + tl.minimum(tl.maximum(first + 1, 0), picture_width - 1) * column_stride

        seen = (x >= 0) & (x < inner_width) & (channel < 3)
        inside = ((y >= 0) & (y < inner_height))[:, None] & seen[None, :]
        total = tl.load(before_at[None, :] + upper[:, None], mask=inside, other=0).to(tl.int32) * left_weight
        total += tl.load(after_at[None, :] + upper[:, None], mask=inside, other=0).to(tl.int32) * right_weight
        gray = ((total >> 4) * above.to(tl.int32)[:, None]) >> 16
        total = tl.load(before_at[None, :] + lower[:, None], mask=inside, other=0).to(tl.int32) * left_weight
        total += tl.load(after_at[None, :] + lower[:, None], mask=inside, other=0).to(tl.int32) * right_weight
        gray += ((total >> 4) * below.to(tl.int32)[:, None]) >> 16
        gray = tl.where(inside, (gray + 2) >> 2, pad_value)
        gray = tl.where((channel < 3)[None, :], gray, 0)
        scaled = tl.div_rn(gray.to(tl.float32), 255.0)
        stored = (row < height)[:, None] & (value < width * channels)[None, :]
        tl.store(out_ptr + at, scaled.to(out_ptr.dtype.element_ty), mask=stored)

    return resample
