"""Which mode is taken where, and that nothing is taken quietly in place of what was asked for."""

import itertools
from contextlib import suppress

import pytest
import torch

from yolov9kit.device import Device, Precision
from yolov9kit.errors import DeviceError, UsageError
from yolov9kit.infer import mode as modes
from yolov9kit.infer.mode import MODES, choose_mode

CPU, GPU, APPLE = (Device(name, f"a {name}", "") for name in ("cpu", "cuda:1", "mps"))
FP32, BF16 = Precision("fp32", torch.float32, True, ""), Precision("bf16", torch.bfloat16, True, "")


@pytest.mark.parametrize(
    ("device", "precision", "name"),
    [
        (GPU, FP32, "graph"),
        (GPU, BF16, "graph"),
        (CPU, FP32, "onnx"),
        (CPU, BF16, "eager"),
        (APPLE, FP32, "eager"),
    ],
)
def test_auto_chooses_and_says_why(device: Device, precision: Precision, name: str) -> None:
    chosen = choose_mode("auto", device, precision)
    assert chosen.name == name and chosen.chosen and chosen.reason.startswith("chosen: ")


@pytest.mark.parametrize("wanted", MODES[1:])
def test_what_is_named_is_honoured_or_refused(wanted: str) -> None:
    for device, precision in itertools.product((CPU, GPU, APPLE), (FP32, BF16)):
        with suppress(DeviceError):
            found = choose_mode(wanted, device, precision)
            assert found.name == wanted and not found.chosen


@pytest.mark.parametrize(
    ("wanted", "device", "precision"),
    [
        ("graph", CPU, FP32),
        ("graph", APPLE, FP32),
        ("compiled", APPLE, FP32),
        ("onnx", GPU, FP32),
        ("onnx", CPU, BF16),
    ],
)
def test_what_cannot_be_had_is_refused(wanted: str, device: Device, precision: Precision) -> None:
    with pytest.raises(DeviceError, match=wanted):
        choose_mode(wanted, device, precision)


def test_without_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "_has_onnx", lambda: False)
    found = choose_mode("auto", CPU, FP32)
    assert found.name == "eager" and "not installed" in found.reason
    with pytest.raises(DeviceError, match="pip install onnx onnxruntime"):
        choose_mode("onnx", CPU, FP32)


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(UsageError, match="auto, eager, graph, compiled, onnx"):
        choose_mode("tensorrt", CPU, FP32)
