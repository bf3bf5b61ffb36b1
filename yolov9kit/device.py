"""Which device and which precision: decided once, returned with the reason, refused in words where impossible."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from yolov9kit.errors import DeviceError, UsageError

PRECISIONS = ("auto", "fp32", "tf32", "fp16", "bf16")


@dataclass(frozen=True)
class Device:
    """Where a model runs. ``torch_name`` is what torch calls it: ``cpu``, ``cuda:0``, ``mps``."""

    torch_name: str
    label: str
    reason: str

    @property
    def kind(self) -> str:
        return self.torch_name.partition(":")[0]

    @property
    def uuid(self) -> str | None:
        """What tells an NVIDIA GPU from all others, whatever its number is in another process. None for the rest."""
        return str(torch.cuda.get_device_properties(self.torch_name).uuid) if self.kind == "cuda" else None


@dataclass(frozen=True)
class Precision:
    """How a network computes. ``native`` is False where the hardware only emulates it: right numbers, no speed."""

    name: str
    dtype: torch.dtype
    native: bool
    reason: str

    @property
    def label(self) -> str:
        return self.name if self.native else f"{self.name} (emulated here: right numbers, no speed)"


def available_devices() -> list[Device]:
    """Every device of this machine, the processor first."""
    found = [Device("cpu", "CPU", "always there")]
    if torch.cuda.is_available():  # device_count alone also counts cards whose driver torch cannot use
        for i in range(torch.cuda.device_count()):
            found.append(Device(f"cuda:{i}", torch.cuda.get_device_name(i), f"GPU {i}"))
    if torch.backends.mps.is_available():
        found.append(Device("mps", "Apple GPU", "Metal"))
    return found


_ALIASES = {"cuda": "cuda:0", "gpu": "cuda:0", "cpu:0": "cpu", "mps:0": "mps"}


def choose_device(wanted: str | int | torch.device = "auto") -> Device:
    """The device that ``wanted`` names: ``auto``, ``cpu``, ``0``, ``cuda``, ``cuda:1``, ``mps``.

    ``auto`` is the first GPU, or the processor where there is none.

    Raises:
        DeviceError: this machine does not have it; the message lists those that it has.
        UsageError: the name means no device at all, or more than one.
    """
    text = str(wanted).strip().lower()
    found = available_devices()
    if text in ("", "auto"):
        best = found[min(1, len(found) - 1)]
        why = "the first GPU" if len(found) > 1 else "there is no GPU that torch can use"
        return Device(best.torch_name, best.label, f"chosen: {why}")
    if "," in text:
        raise UsageError(f"device {wanted!r}: detection runs on one device; name one of {_listing(found)}")
    name = f"cuda:{int(text)}" if re.fullmatch(r"[0-9]+", text) else _ALIASES.get(text, text)
    for device in found:
        if device.torch_name == name:
            return Device(device.torch_name, device.label, "as asked")
    if not re.fullmatch(r"cpu|mps|(cpu|cuda|mps):[0-9]+", name):
        raise UsageError(f"device {wanted!r}: not a device. This machine has {_listing(found)}")
    has_gpu = any(device.kind == "cuda" for device in found)
    why = "" if has_gpu or not name.startswith("cuda") else _why_no_gpu()
    raise DeviceError(f"device {wanted!r}: not on this machine, which has {_listing(found)}.{why}")


def choose_devices(wanted: str) -> tuple[Device, ...]:
    """One device or more, as ``0,1``; ``cpu,cpu`` is two processes on one processor.

    Raises:
        DeviceError, UsageError: as ``choose_device``; or they are not of one kind, or a GPU is named twice.
    """
    chosen = tuple(choose_device(name) for name in wanted.split(","))
    names = [device.torch_name for device in chosen]
    if len({device.kind for device in chosen}) > 1:
        raise UsageError(
            f"device {wanted!r}: devices of one kind can share the work, not {' and '.join(names)}"
        )
    twice = next((name for name in names if names.count(name) > 1 and name != "cpu"), None)
    if twice:
        raise UsageError(f"device {wanted!r}: {twice} is named twice")
    return chosen


def _listing(devices: list[Device]) -> str:
    return ", ".join(f"{d.torch_name} ({d.label})" for d in devices)


def _why_no_gpu() -> str:
    if torch.version.cuda is None:
        return " The installed torch is built without CUDA."
    return (
        " torch sees no NVIDIA GPU (no card, no driver, or CUDA_VISIBLE_DEVICES hides it): "
        "`yolov9kit env` tells more."
    )


def choose_precision(wanted: str, device: Device) -> Precision:
    """The precision that ``wanted`` names, honoured or refused.

    On an NVIDIA GPU ``auto`` takes the fastest that it has in hardware: bf16 from compute capability 8.0 on, fp16
    from 7.0 on, else fp32; everywhere else it takes fp32. Whether bf16 is native is decided by the hardware's
    generation: torch's own check also says yes where it is emulated. An emulated precision runs only when named,
    and is labelled.

    Raises:
        DeviceError: the device cannot compute in it.
        UsageError: no such precision.
    """
    name = wanted.strip().lower()
    if name not in PRECISIONS:
        raise UsageError(f"precision {wanted!r}: choose one of {', '.join(PRECISIONS)}")
    if device.kind == "cuda":
        return _cuda_precision(name, device)
    if name == "auto":
        return Precision("fp32", torch.float32, True, f"chosen: full precision on {device.label}")
    if name == "fp32":
        return Precision("fp32", torch.float32, True, "as asked")
    if name == "tf32":
        raise DeviceError(
            f"precision tf32: a mode of NVIDIA tensor cores, the device is {device.torch_name}. Take fp32 here."
        )
    if device.kind == "mps":
        if name == "bf16":
            raise DeviceError("precision bf16: not offered on Apple GPUs by this library. Take fp16 or fp32.")
        return Precision("fp16", torch.float16, True, "as asked")
    native = _cpu_has(name)
    dtype = torch.bfloat16 if name == "bf16" else torch.float16
    how = "has instructions for it" if native else "emulates it"
    return Precision(name, dtype, native, f"as asked; this processor {how}")


def _cuda_precision(name: str, device: Device) -> Precision:
    major, minor = torch.cuda.get_device_capability(device.torch_name)
    generation = f"compute capability {major}.{minor}"
    if name == "auto":
        name = "bf16" if major >= 8 else "fp16" if major >= 7 else "fp32"
        why = f"chosen: the fastest that {device.label} ({generation}) has in hardware"
    else:
        why = f"as asked; {device.label} has {generation}"
    if name == "fp32":
        return Precision("fp32", torch.float32, True, f"{why}; TF32 is off during the call")
    if name == "tf32":
        if major < 8:
            raise DeviceError(
                f"precision tf32: needs compute capability 8.0, {device.label} has {generation}. Take fp32."
            )
        return Precision("tf32", torch.float32, True, f"{why}; TF32 is on during the call")
    if name == "fp16":
        return Precision("fp16", torch.float16, major >= 6, why)
    return Precision("bf16", torch.bfloat16, major >= 8, why)


def _cpu_has(name: str) -> bool:
    features = torch.cpu.get_capabilities()
    kinds = ("avx512_bf16", "amx_bf16", "bf16") if name == "bf16" else ("avx512_fp16", "amx_fp16", "fp16")
    return any(bool(features.get(kind)) for kind in kinds)


# TF32 is a switch of the whole process. Whoever computes in float32 on a GPU sets it, under this lock, for the
# time of the call, so that two detectors of different precision in two threads do not change each other.
_TF32_LOCK = threading.RLock()


@contextmanager
def float32_math(precision: Precision, device: Device) -> Iterator[None]:
    """Around a network call: TF32 in convolutions on or off as ``precision`` says, and afterwards as it was.

    A bf16 network has a float32 head, which TF32 serves. Nothing is touched for fp16, or off NVIDIA GPUs.
    """
    if device.kind != "cuda" or precision.name == "fp16":
        yield
        return
    with _TF32_LOCK:
        own, flag = _own_modes(), _older_flag()
        coarse = precision.name in ("tf32", "bf16")
        mode = "tf32" if coarse else "ieee"
        # without cuDNN convolutions become matrix products, which have a switch of their own
        product = own[2] if torch.backends.cudnn.enabled else mode
        try:
            _set_modes(mode, mode, product, flag=coarse)
            yield
        finally:
            _set_modes(*own, flag=flag)


def takes_channels_last(device: Device, precision: Precision) -> bool:
    """Whether training and scoring hold tensors channels-last: what tensor cores read without a copy."""
    return device.kind == "cuda" and precision.name != "fp32"


def as_input(images: torch.Tensor, device: Device, precision: Precision) -> torch.Tensor:
    """uint8 0..255 to float32 0..1, in the memory order that the device's convolutions read fastest."""
    images = images.float() / 255
    return (
        images.contiguous(memory_format=torch.channels_last)
        if takes_channels_last(device, precision)
        else images
    )


@contextmanager
def autocast(device: Device, precision: Precision) -> Iterator[None]:
    """Around a forward pass of float32 weights: half precision where asked for. The loss stays outside, in float32."""
    # without its cache: casts kept from one step would be stale in the next one that a graph replays
    half = precision.dtype != torch.float32
    with torch.autocast(device.kind, precision.dtype, enabled=half, cache_enabled=False):
        yield


def synchronize(torch_name: str) -> None:
    """Wait until the device has done everything, so that a clock can be read."""
    if torch_name.startswith("cuda"):
        torch.cuda.synchronize(torch_name)
    elif torch_name.startswith("mps"):
        torch.mps.synchronize()


_CHUNK = 2**24
"""Numbers that are gathered on the device before they are copied: what that takes of its memory stays small."""


def to_host(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies in main memory, contiguous.

    From a device they come in few large pieces: each copy waits, and where others use the GPU too a wait takes
    milliseconds. One by one, the thousands of tensors of a checkpoint took 9 to 19 s beside five other trainings.
    """
    places: dict[tuple[torch.device, torch.dtype], list[str]] = {}
    for name, tensor in tensors.items():
        places.setdefault((tensor.device, tensor.dtype), []).append(name)
    copies: dict[str, torch.Tensor] = {}
    for names in places.values():
        waiting: list[str] = []
        count = 0
        for name in names:
            waiting.append(name)
            count += tensors[name].numel()
            if count > _CHUNK or name == names[-1]:
                copies |= _together({key: tensors[key] for key in waiting})
                waiting, count = [], 0
    return {name: copies[name] for name in tensors}


def _together(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors.values()]).cpu()
    parts = flat.split([tensor.numel() for tensor in tensors.values()])
    return {name: part.view(tensors[name].shape) for name, part in zip(tensors, parts, strict=True)}


def memory_mib(torch_name: str) -> float:
    """The peak of this process's tensors on an NVIDIA GPU; elsewhere what the whole process holds now."""
    if torch_name.startswith("cuda"):
        return torch.cuda.max_memory_allocated(torch_name) / 2**20
    import psutil

    return float(psutil.Process().memory_info().rss) / 2**20


def _set_modes(convolution: str, recurrent: str, product: str, flag: bool) -> None:
    cudnn: Any = torch.backends.cudnn  # torch puts this module together at run time: its types are not known
    cudnn.allow_tf32 = flag  # overwrites the two modes; reading it raises where it contradicts them
    cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision = convolution, recurrent
    torch.backends.cuda.matmul.fp32_precision = product


def _older_flag() -> bool:
    """What ``cudnn.allow_tf32`` was last set to. It cannot be read where newer switches contradict it."""
    cudnn: Any = torch.backends.cudnn
    try:
        return bool(cudnn.allow_tf32)
    except RuntimeError:
        before = (cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision)
        cudnn.conv.fp32_precision = cudnn.rnn.fp32_precision = "tf32"
        try:
            return bool(cudnn.allow_tf32)
        except RuntimeError:  # it contradicts them still
            return False
        finally:
            cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision = before


def _own_modes() -> tuple[str, str, str]:
    """What the switches of convolutions, recurrent layers and matrix products say themselves.

    Reading one that says "none" gives what it inherits from the switch of all CUDA work or, above that, of all
    work. Put back as its own, it would no longer follow them: so those two are emptied while it is read.
    """
    everything: Any = torch.backends
    cudnn = everything.cudnn  # its own switch is, in spite of its name, that of all CUDA work
    above = everything.fp32_precision
    if above != "none":
        everything.fp32_precision = "none"
    between = cudnn.fp32_precision
    if between != "none":
        cudnn.fp32_precision = "none"
    own = (
        cudnn.conv.fp32_precision,
        cudnn.rnn.fp32_precision,
        everything.cuda.matmul.fp32_precision,
    )
    if between != "none":
        cudnn.fp32_precision = between
    if above != "none":
        everything.fp32_precision = above
    return own
