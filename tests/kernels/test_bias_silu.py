"""The kernel equals its reference. Without a GPU it runs in Triton's interpreter, in a process of its own."""

import pytest
import torch

from tests.kernels.interpreter import checked_in_the_interpreter
from yolov9kit.kernels.bias_silu import available, bias_silu_, bias_silu_reference

SHAPES = [(2, 3, 5, 7), (1, 64, 40, 40), (3, 16, 1, 1), (2, 5, 33, 35), (0, 4, 8, 8)]


def check(device: str) -> int:
    """Every shape, layout and type; returns how many were compared."""
    compared = 0
    for shape in SHAPES:
        for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
            for layout in (torch.contiguous_format, torch.channels_last):
                x = (torch.randn(shape, device=device) * 4).to(dtype).to(memory_format=layout)
                bias = torch.randn(shape[1], device=device)
                wanted = bias_silu_reference(x, bias)
                got = bias_silu_(x, bias)
                assert got.data_ptr() == x.data_ptr() and got.dtype == dtype
                torch.testing.assert_close(got, wanted, atol=tolerance, rtol=tolerance)
                compared += 1
    return compared


def test_reference_is_what_torch_does() -> None:
    x, bias = torch.randn(2, 4, 6, 6), torch.randn(4)
    torch.testing.assert_close(
        bias_silu_reference(x, bias), torch.nn.functional.silu(x + bias.view(1, 4, 1, 1))
    )


@pytest.mark.skipif(not available(), reason="Triton is not installed")
def test_kernel_equals_reference_in_the_interpreter() -> None:
    assert checked_in_the_interpreter("test_bias_silu") == 30


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_kernel_equals_reference_on_the_gpu() -> None:
    assert check("cuda") == 30


def test_a_map_with_gaps_is_refused() -> None:
    with pytest.raises(ValueError, match="neither NCHW nor channels-last"):
        bias_silu_(torch.randn(2, 8, 4, 4)[:, ::2], torch.randn(4))
