"""Compiled code equals what it was made from, lies on disk for the next start, and takes other weights as they are."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from yolov9kit.device import Device, Precision, choose_device, choose_precision
from yolov9kit.errors import KitError
from yolov9kit.infer import compiled as module
from yolov9kit.infer.compiled import Compiled, compiled_file
from yolov9kit.model.blocks import Conv
from yolov9kit.types import Outputs

CPU = choose_device("cpu")
FP32 = choose_precision("fp32", CPU)


class Small(nn.Module):
    """What the engine needs of a network: three maps."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.down = Conv(3, 8, 3, 2), Conv(8, 8, 3, 2)

    def forward(self, images: Tensor) -> Outputs:
        first = self.stem(images)
        second = self.down(first)
        return Outputs((first, second, torch.cat((second, second), 1)), None)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "yolov9kit" / "compiled"


def network() -> Any:
    return Small().eval().to(memory_format=torch.channels_last)


def images_of(*shape: int) -> Tensor:
    return torch.rand(shape).contiguous(memory_format=torch.channels_last)


def unheard(what: str, done: int, total: int) -> None:
    pass


@pytest.mark.compiled
def test_it_equals_eager_is_kept_and_knows_no_weights(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str, int, int]] = []
    first = network()
    images = images_of(2, 3, 64, 96)
    with torch.inference_mode():
        engine = Compiled(first, "small", CPU, FP32, lambda *told: heard.append(told))
        for a, b in zip(engine(images), first(images).main, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
        assert heard == [("compiling for 2 x 64 x 96", 0, 1), ("compiling for 2 x 64 x 96", 1, 1)]
        assert len(list(cache.iterdir())) == 1

        monkeypatch.setattr(module, "compiled", lambda *_: pytest.fail("compiled again"))
        other = network()
        again = Compiled(other, "small", CPU, FP32, unheard)
        for a, b in zip(again(images), other(images).main, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)
        other.stem.bn.bias.data.add_(1)  # weights that change in place take effect
        for a, b in zip(again(images), other(images).main, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_the_file_is_one_of_exactly_this_shape_type_and_structure() -> None:
    images = images_of(2, 3, 64, 96)
    bf16 = Precision("bf16", torch.bfloat16, True, "")
    files = {
        compiled_file(network(), "small", images, CPU, FP32),
        compiled_file(network(), "small", images, CPU, FP32),  # other weights, same file
        compiled_file(network(), "small", images_of(1, 3, 64, 96), CPU, FP32),
        compiled_file(network(), "small", images.contiguous(), CPU, FP32),
        compiled_file(network(), "small", images, CPU, bf16),
        compiled_file(network().bfloat16(), "small", images, CPU, FP32),
        compiled_file(shorter(network()), "small", images, CPU, FP32),
    }
    assert len(files) == 6


def shorter(small: Any) -> Any:
    small.down = nn.Identity()
    return small


def test_a_file_of_another_build_is_made_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, small = images_of(1, 3, 32, 32), network()
    path = compiled_file(small, "small", images, CPU, FP32)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not compiled code")

    class Artifact:
        def __call__(self, *inputs: Tensor) -> Any:
            return small(inputs[-1]).main

        def save(self, path: str, format: str) -> None:
            Path(path).write_bytes(b"new")

    monkeypatch.setattr(module, "compiled", lambda *_: Artifact())
    assert len(Compiled(small, "small", CPU, FP32, unheard)(images)) == 3
    assert path.read_bytes() == b"new"


def test_what_cannot_be_compiled_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no working C++ compiler\nwas found")

    monkeypatch.setattr(module, "compiled", fails)
    with pytest.raises(KitError, match=r"no working C\+\+ compiler was found.*yolov9kit env.*mode eager"):
        Compiled(network(), "small", CPU, FP32, unheard)(images_of(1, 3, 32, 32))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_compiled_and_recorded_equals_eager_on_the_gpu(precision: str) -> None:
    from yolov9kit import load, sample_weights
    from yolov9kit.infer.runner import make_runner

    gpu: Device = choose_device("cuda")
    precise = choose_precision(precision, gpu)
    model = load(sample_weights()).model
    images = torch.rand(2, 3, 128, 96)
    wanted = make_runner(model, gpu, precise)(images).main
    for _ in range(2):  # the second comes from disk
        found = make_runner(model, gpu, precise, "compiled")(images).main
        for a, b in zip(found, wanted, strict=True):
            assert float((a.float() - b.float()).norm() / b.float().norm()) < 3e-2
