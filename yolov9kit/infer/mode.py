"""How a network is run: the name of a mode, chosen once, with the reason."""

import importlib.util
from dataclasses import dataclass

from yolov9kit.device import Device, Precision
from yolov9kit.errors import DeviceError, UsageError
from yolov9kit.infer.config import MODES as MODES  # there, since `--help` needs them and no torch


@dataclass(frozen=True)
class Mode:
    """``name``: one of ``MODES`` but ``auto``. ``reason``: why, in words. ``chosen``: by ``auto``, not by the user."""

    name: str
    reason: str
    chosen: bool = False


def choose_mode(wanted: str, device: Device, precision: Precision) -> Mode:
    """The mode that ``wanted`` names, honoured or refused.

    - ``eager``: operation by operation.
    - ``graph``: the same operations, recorded once for each shape and replayed by one launch (NVIDIA GPUs).
    - ``compiled``: fused by ``torch.compile``, and on an NVIDIA GPU recorded as well.
    - ``onnx``: ONNX Runtime, on a processor in fp32.

    ``auto`` takes ``graph`` on an NVIDIA GPU, ``onnx`` on a processor in fp32 and ``eager`` everywhere else.

    Raises:
        DeviceError: the device or the precision cannot be run so, or what the mode needs is not installed.
        UsageError: no such mode.
    """
    name = wanted.strip().lower()
    if name not in MODES:
        raise UsageError(f"mode {wanted!r}: choose one of {', '.join(MODES)}")
    if name == "auto":
        return _best(device, precision)
    if name == "graph" and device.kind != "cuda":
        raise DeviceError(
            f"mode graph: records work of an NVIDIA GPU, the device is {device.torch_name}. Take auto."
        )
    if name == "compiled" and device.kind == "mps":
        raise DeviceError("mode compiled: not offered on Apple GPUs by this library. Take eager.")
    if name == "onnx":
        if device.kind != "cpu" or precision.name != "fp32":
            raise DeviceError(
                "mode onnx: is for a processor in fp32, "
                f"asked for are {device.torch_name} and {precision.name}. Take auto."
            )
        if not _has_onnx():
            raise DeviceError(
                "mode onnx: needs the packages onnx and onnxruntime: pip install onnx onnxruntime"
            )
    return Mode(name, "as asked")


def _best(device: Device, precision: Precision) -> Mode:
    if device.kind == "cuda":
        return _chosen("graph", "one launch instead of hundreds, ready in a second")
    if device.kind == "cpu" and precision.name == "fp32":
        if _has_onnx():
            return _chosen("onnx", "faster than torch on a processor")
        return _chosen("eager", "ONNX Runtime, which would be faster, is not installed")
    return _chosen("eager", f"nothing faster is offered for {precision.name} on {device.label}")


def _chosen(name: str, why: str) -> Mode:
    return Mode(name, f"chosen: {why}", chosen=True)


def _has_onnx() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("onnx", "onnxruntime"))
