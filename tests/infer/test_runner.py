"""The runner: same call, same result, whatever the input's type and the memory layout."""

import copy

import pytest
import torch

from yolov9kit.device import choose_device, choose_precision
from yolov9kit.infer.network import EpilogueConv, _use_epilogues
from yolov9kit.infer.runner import make_runner
from yolov9kit.kernels import bias_silu
from yolov9kit.model.fuse import FusedConv, fuse
from yolov9kit.model.yolov9 import yolov9


def test_uint8_and_float_pictures_are_the_same() -> None:
    device = choose_device("cpu")
    runner = make_runner(yolov9("t", 2), device, choose_precision("fp32", device))
    pixels = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8)
    for a, b in zip(runner(pixels).main, runner(pixels.float() / 255).main, strict=True):
        torch.testing.assert_close(a, b)


def test_the_model_given_is_untouched_and_results_equal_it() -> None:
    model = yolov9("t", 2).eval()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    device = choose_device("cpu")
    runner = make_runner(model, device, choose_precision("fp32", device))
    images = torch.rand(1, 3, 64, 64)
    outputs = runner(images)
    assert outputs.aux is None and model.form == "training"
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    with torch.inference_mode():
        for a, b in zip(outputs.main, model(images).main, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_bf16_is_bf16_up_to_the_head() -> None:
    device = choose_device("cpu")
    runner = make_runner(yolov9("t", 2), device, choose_precision("bf16", device))
    types = {name.partition(".")[0]: p.dtype for name, p in runner.network.named_parameters()}
    assert types.pop("head") == torch.float32 and set(types.values()) == {torch.bfloat16}
    assert runner(torch.rand(1, 3, 64, 64)).main[0].dtype == torch.float32


@pytest.mark.parametrize("small", [0, 2**30])
def test_epilogues_change_no_number(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The surgery; the kernel itself is compared with its reference in tests/kernels."""
    monkeypatch.setattr(bias_silu, "bias_silu_", bias_silu.bias_silu_reference)
    monkeypatch.setattr("yolov9kit.infer.network.SMALL_MAP", small)
    exact = fuse(yolov9("t", 2, "deployed"))
    network = copy.deepcopy(exact)
    _use_epilogues(network, exact)
    kinds = [type(m) for m in network.modules()]
    assert kinds.count(EpilogueConv) == [type(m) for m in exact.modules()].count(FusedConv) > 100
    images = torch.rand(1, 3, 64, 64)
    for a, b in zip(network(images).main, exact(images).main, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize(
    ("precision", "tolerance"), [("fp32", 1e-4), ("tf32", 2e-2), ("fp16", 2e-2), ("bf16", 1e-1)]
)
@pytest.mark.parametrize("small", [0, 2**30])
def test_gpu_equals_cpu(
    precision: str, tolerance: float, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model, images = yolov9("t", 2).eval(), torch.rand(2, 3, 64, 96)
    cpu, gpu = choose_device("cpu"), choose_device("cuda")
    exact = make_runner(model, cpu, choose_precision("fp32", cpu))(images).main
    flags = torch.backends.cudnn.allow_tf32
    monkeypatch.setattr("yolov9kit.infer.network.SMALL_MAP", small)
    fast = make_runner(model, gpu, choose_precision(precision, gpu))(images).main
    assert torch.backends.cudnn.allow_tf32 == flags
    for a, b in zip(fast, exact, strict=True):
        assert (a.float().cpu() - b).norm() / b.norm() < tolerance
