"""Names of operations and kernels told apart, and what the profiler says summed up."""

import pytest
import torch

from yolov9kit.benchmark.profile import (
    ACTIVATION,
    CONCAT,
    CONV,
    COPIES,
    KINDS,
    NMS,
    OTHER,
    POOLING,
    UPSAMPLE,
    Event,
    kind_of,
    profile,
    summary,
)  # fmt: skip
from yolov9kit.device import Device

CPU = Device("cpu", "CPU", "always there")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("aten::mkldnn_convolution", CONV),
        ("aten::_slow_conv2d_forward", CONV),
        ("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64", CONV),
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64>", CONV),
        ("void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1, false>", CONV),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>", CONV),
        ("triton_tem_fused_convolution_silu_7", CONV),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel(TensorIterator&)>", ACTIVATION),
        ("aten::silu_", ACTIVATION),
        ("aten::native_batch_norm", ACTIVATION),
        ("_bias_silu_kernel", ACTIVATION),
        ("triton_poi_fused_convolution_silu_3", ACTIVATION),
        ("triton_poi_fused_cat_silu_12", CONCAT),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 4, 64, 64>", CONCAT),
        ("aten::cat", CONCAT),
        ("aten::upsample_nearest2d", UPSAMPLE),
        ("void at::native::(anonymous namespace)::upsample_nearest2d_nhwc_out_frame<float>", UPSAMPLE),
        ("aten::max_pool2d_with_indices", POOLING),
        ("void at::native::(anonymous namespace)::avg_pool2d_out_cuda_frame_nhwc<float>", POOLING),
        ("torchvision::nms", NMS),
        ("void (anonymous namespace)::nms_kernel_impl<float>(int, double, float const*)", NMS),
        ("_nms_kernel", NMS),
        ("Memcpy DtoH (Device -> Pageable)", COPIES),
        ("Memset (Device)", COPIES),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float>", COPIES),
        ("aten::copy_", COPIES),
        ("void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda>", COPIES),
        ("aten::softmax", OTHER),
        ("aten::sort", OTHER),
        ("aten::category", OTHER),
    ],
)  # fmt: skip
def test_a_name_has_its_kind(name: str, kind: str) -> None:
    assert kind_of(name) == kind


KERNELS = [
    Event("aten::conv2d", False, 5e6, 10),
    Event("sm90_xmma_fprop", True, 4000.0, 20),
    Event("silu_kernel", True, 2000.0, 20),
    Event("Memcpy DtoH (Device -> Pinned)", True, 100.0, 4),
    Event("Memcpy HtoD (Pageable -> Device)", True, 300.0, 8),
    Event("cudaLaunchKernel", False, 900.0, 40),
    Event("cuLaunchKernelEx", False, 100.0, 2),
    Event("cudaGraphLaunch", False, 500.0, 6),
]


def test_on_a_gpu_only_its_kernels_have_times() -> None:
    one = summary(KERNELS, True, calls=2, wall_ms=10.0)
    assert one.kinds_ms == dict.fromkeys(KINDS, 0.0) | {CONV: 2.0, ACTIVATION: 1.0, COPIES: 0.2}
    assert (one.launches, one.graph_launches, one.copies_to_host) == (21, 3, 2)
    assert one.wall_ms == 5.0 and one.outside_ms == pytest.approx(1.8)


def test_on_a_processor_only_its_operations_have_times_and_nothing_is_launched() -> None:
    one = summary([Event("aten::cat", False, 3000.0, 2), KERNELS[1]], False, calls=1, wall_ms=2.0)
    assert one.kinds_ms[CONCAT] == 3.0 and one.kinds_ms[CONV] == 0.0
    assert one.outside_ms == 0.0  # never less than nothing
    assert one.launches is one.graph_launches is one.copies_to_host is None


def test_operations_of_torch_are_seen() -> None:
    images, calls = torch.rand(1, 4, 64, 64), []

    def call() -> None:
        calls.append(None)
        out = torch.nn.functional.conv2d(images, torch.ones(4, 4, 3, 3))
        torch.cat((torch.nn.functional.silu(out), out))

    one = profile(call, CPU, 3)
    assert len(calls) == 4 and one.calls == 3
    assert min(one.kinds_ms[kind] for kind in (CONV, ACTIVATION, CONCAT)) > 0
    assert one.kinds_ms[NMS] == one.kinds_ms[UPSAMPLE] == 0
    assert 0 < sum(one.kinds_ms.values()) <= one.wall_ms


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_kernels_of_a_gpu_are_seen() -> None:
    images = torch.rand(1, 4, 64, 64, device="cuda")
    weight = torch.ones(4, 4, 3, 3, device="cuda")
    one = profile(lambda: torch.nn.functional.conv2d(images, weight).cpu(), Device("cuda:0", "", ""), 5)
    assert one.kinds_ms[CONV] > 0 and one.copies_to_host == 1 and (one.launches or 0) >= 1
