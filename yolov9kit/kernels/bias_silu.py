"""Bias and SiLU in one pass over a convolution's output.

torch adds a convolution's bias and applies SiLU in two passes, each of which reads and writes the whole map and rounds
it. One pass in place halves that traffic, and in half precision rounds once, from float32.
"""

import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any, no_type_check

import torch
from torch import Tensor
from torch.nn import functional as F

BLOCK = 1024


def bias_silu_reference(x: Tensor, bias: Tensor) -> Tensor:
    """``silu(x + bias)`` in float32, rounded once to the type of ``x``. x: B x C x h x w, bias: C, float32."""
    return F.silu(x.float() + bias.float()[:, None, None]).to(x.dtype)


def available() -> bool:
    """Whether the kernel can run at all: Triton is installed (torch's CUDA builds bring it)."""
    return importlib.util.find_spec("triton") is not None


def bias_silu_(x: Tensor, bias: Tensor) -> Tensor:
    """As ``bias_silu_reference``, written over ``x``, which must be dense: NCHW or channels-last."""
    batch, channels, height, width = x.shape
    if x.numel() == 0:
        return x
    contiguous = x.is_contiguous()
    if not contiguous and not x.is_contiguous(memory_format=torch.channels_last):
        raise ValueError(f"bias_silu_: a map of strides {x.stride()} is neither NCHW nor channels-last")
    rows, columns = _kernels()
    with torch.cuda.device_of(x):
        if contiguous:
            grid = (batch * channels, -(-height * width // BLOCK))
            rows[grid](x, bias, channels, height * width, BLOCK)
        else:
            columns[(-(-x.numel() // BLOCK),)](x, bias, channels, x.numel(), BLOCK)
    return x


@cache
def _kernels() -> tuple[Any, Any]:
    """Compiled on first use, so that importing needs no Triton."""
    import triton
    import triton.language as tl

    jit: Callable[[Any], Any] = triton.jit

    @jit
    @no_type_check  # shapes are checked where tensors are; a checked kernel does not compile
    def rows(x_ptr, bias_ptr, channels, size, block: tl.constexpr):
        # NCHW: one program stays within one channel of one picture
        row = tl.program_id(0).to(tl.int64)
        offsets = tl.program_id(1) * block + tl.arange(0, block)
        inside = offsets < size
        bias = tl.load(bias_ptr + row % channels).to(tl.float32)
        at = x_ptr + row * size + offsets
        value = tl.load(at, mask=inside, other=0.0).to(tl.float32) + bias
        tl.store(at, (value * tl.sigmoid(value)).to(x_ptr.dtype.element_ty), mask=inside)

    @jit
    @no_type_check
    def columns(x_ptr, bias_ptr, channels, size, block: tl.constexpr):
        # channels-last: the channel runs fastest. The remainder is taken in 32 bits, which is much cheaper
        start = tl.program_id(0).to(tl.int64) * block
        offsets = start + tl.arange(0, block)
        inside = offsets < size
        channel = ((start % channels).to(tl.int32) + tl.arange(0, block)) % channels
        bias = tl.load(bias_ptr + channel).to(tl.float32)
        value = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32) + bias
        tl.store(x_ptr + offsets, (value * tl.sigmoid(value)).to(x_ptr.dtype.element_ty), mask=inside)

    return rows, columns
