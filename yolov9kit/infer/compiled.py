"""The network as Inductor compiles it: operations fused, weights as inputs, code kept on disk for the next start."""

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from yolov9kit.cache import cache_folder, keep
from yolov9kit.device import Device, Precision, float32_math
from yolov9kit.errors import KitError
from yolov9kit.infer.network import MapsAlone
from yolov9kit.types import ProgressCallback, RawMaps

LAYOUT = 1
"""Counts up when what is compiled changes: files of an older layout are not used any more."""

OPTIONS: dict[str, Any] = {}
"""Of Inductor, beyond its defaults. A change counts ``LAYOUT`` up."""

KEPT = 32
"""Compiled files that are kept, the newest: some hundred kilobytes each."""

Artifact = Callable[..., tuple[Tensor, ...]]


class Compiled:
    """Compiled code for each shape it has seen. Networks of one size and shape share it: weights are inputs.

    ``name``: of the network, for people who look at the files.
    """

    def __init__(
        self, network: nn.Module, name: str, device: Device, precision: Precision, progress: ProgressCallback
    ) -> None:
        self._name = name
        self._network, self._device, self._precision, self._progress = network, device, precision, progress
        self._weights = weights_of(network)
        self._ready: dict[tuple[int, ...], Artifact] = {}
        self._lock = threading.Lock()

    def __call__(self, images: Tensor) -> RawMaps:
        with self._lock:
            shape = tuple(images.shape)
            if shape not in self._ready:
                self._ready[shape] = self._prepare(images)
        with float32_math(self._precision, self._device):
            p3, p4, p5 = self._ready[shape](*self._weights, images)
        return p3, p4, p5

    def close(self) -> None:
        self._ready.clear()

    def _prepare(self, images: Tensor) -> Artifact:
        path = compiled_file(self._network, self._name, images, self._device, self._precision)
        if path.is_file():
            try:
                return load(path)
            except Exception:  # cut off, or of another build of torch: it is made anew below
                path.unlink(missing_ok=True)
        batch, _, height, width = images.shape
        what = f"compiling for {batch} x {height} x {width}"
        self._progress(what, 0, 1)
        try:
            with float32_math(self._precision, self._device):
                artifact = compiled(self._network, self._weights, images)
        except Exception as error:
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise KitError(
                f"mode compiled: torch could not compile the network ({reason}). `yolov9kit env` tells what it "
                "needs; mode eager needs nothing."
            ) from error
        self._progress(what, 1, 1)
        keep(path, lambda file: artifact.save(path=str(file), format="binary"), KEPT)
        return artifact


def compiled_file(
    network: nn.Module, name: str, images: Tensor, device: Device, precision: Precision
) -> Path:
    """Where code for such a network, shape, device and version of torch is kept."""
    digest = hashlib.sha256()
    facts = [LAYOUT, OPTIONS, torch.__version__, precision.name, _hardware(device), images.dtype]
    for fact in (*facts, tuple(images.shape), images.stride(), name):
        digest.update(f"{fact}\n".encode())
    for key, tensor in network.state_dict().items():
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)} {tensor.stride()}\n".encode())
    return cache_folder() / "compiled" / f"{name}-{digest.hexdigest()[:32]}.bin"


def _hardware(device: Device) -> str:
    if device.kind == "cuda":
        return f"{device.label} {torch.cuda.get_device_capability(device.torch_name)} {torch.version.cuda}"
    return " ".join(sorted(f"{name}={value}" for name, value in torch.cpu.get_capabilities().items()))


def weights_of(network: nn.Module) -> list[Tensor]:
    """In the order in which torch.export makes inputs of them."""
    return [tensor.detach() for tensor in (*network.parameters(), *network.buffers())]


def compiled(network: nn.Module, weights: list[Tensor], images: Tensor) -> Any:
    """The network for exactly this shape: called with the weights and the images, it gives the three maps.

    torch.export has no say in sizes here, and Dynamo none at all: following 700 modules takes it 5 seconds.
    """
    from torch._inductor import standalone_compile

    with torch.inference_mode(False), torch.no_grad():
        program = torch.export.export(MapsAlone(network), (torch.zeros_like(images),))
    return standalone_compile(
        program.graph_module, [*weights, images], dynamic_shapes="from_example_inputs", options=OPTIONS
    )


def load(path: Path) -> Any:
    from torch._inductor import CompiledArtifact  # type: ignore[attr-defined]

    return CompiledArtifact.load(path=str(path), format="binary")
