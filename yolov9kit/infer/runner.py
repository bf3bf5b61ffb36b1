"""The speed seam: ``Runner(images) -> Outputs``, the same call and the same result whatever makes it fast."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from yolov9kit.cuda_graph import CaptureError
from yolov9kit.device import Device, Precision, synchronize
from yolov9kit.errors import KitError
from yolov9kit.infer.compiled import Compiled
from yolov9kit.infer.engine import Eager, Engine
from yolov9kit.infer.graph_engine import GraphEngine
from yolov9kit.infer.mode import Mode, choose_mode
from yolov9kit.infer.network import network_for, uses_channels_last
from yolov9kit.infer.onnx_engine import OnnxEngine, version
from yolov9kit.kernels import bias_silu
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.types import Outputs, ProgressCallback


@dataclass(eq=False)
class Runner:
    """A network, ready on its device in its precision and its mode. Threads may share one.

    ``mode.reason`` says why it runs so; where ``auto`` chose, it may come down to eager later, and says why.
    """

    device: Device
    precision: Precision
    mode: Mode
    network: YOLOv9 = field(repr=False)
    _engine: Engine | None = field(repr=False)
    recordable: Engine | None = field(default=None, repr=False)
    """Prepared images to raw maps, as part of a larger recording; None where nothing is recorded."""

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Outputs:
        """Images B x 3 x H x W, RGB, 0..1, float or uint8 0..255, on any device, to raw maps on ``device``.

        Raises:
            KitError: the runner was closed.
            CaptureError: mode ``graph`` was asked for by name and the network cannot be recorded.
        """
        engine = self.engine()
        prepared = self.prepared(images)
        try:
            return Outputs(engine(prepared), None)
        except CaptureError as error:
            if not self.mode.chosen:
                raise
            engine.close()
            self._engine = engine = Eager(self.network, self.device, self.precision)
            self.mode, self.recordable = Mode("eager", f"chosen: {error}", chosen=True), None
            return Outputs(engine(prepared), None)

    def engine(self) -> Engine:
        """What runs the network.

        Raises:
            KitError: the runner was closed.
        """
        if self._engine is None:
            raise KitError("this runner is closed: make another")
        return self._engine

    def prepared(self, images: Tensor) -> Tensor:
        """Images as the network takes them: on its device, 0..1, in its type and memory order."""
        if self.mode.name == "onnx":
            return _prepared_by_numpy(images)
        images = images.to(self.device.torch_name, non_blocking=True)
        if images.dtype == torch.uint8:
            images = images.float() / 255  # divided in fp32, then rounded once
        images = images.to(self.precision.dtype)
        if uses_channels_last(self.device, self.precision):
            images = images.contiguous(memory_format=torch.channels_last)
        return images

    def synchronize(self) -> None:
        """Wait until the device has done everything, so that a clock can be read."""
        synchronize(self.device.torch_name)

    def close(self) -> None:
        """Give back what recordings and sessions hold. The runner cannot be called afterwards."""
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()


def make_runner(
    model: YOLOv9,
    device: Device,
    precision: Precision,
    mode: Mode | str = "eager",
    progress: ProgressCallback | None = None,
) -> Runner:
    """A runner for the deployed, fused form of ``model``, which is left as it is.

    ``progress`` hears of work that is done once and takes long: exporting, compiling.

    Raises:
        DeviceError, UsageError: see ``choose_mode``.
        KitError: what the mode makes of the network gives other numbers.
    """
    chosen = choose_mode(mode, device, precision) if isinstance(mode, str) else mode
    progress = progress or _unheard
    network = network_for(model, device, precision, epilogues=chosen.name != "compiled")
    if chosen.name == "onnx":
        engine, chosen = _onnx(network, device, precision, chosen, progress)
        return Runner(device, precision, chosen, network, engine)
    code: Engine = Eager(network, device, precision)
    if chosen.name == "compiled":
        code = Compiled(network, f"yolov9-{network.size}", device, precision, progress)
    if chosen.name == "eager" or device.kind != "cuda":
        return Runner(device, precision, chosen, network, code)
    recordable = code if bias_silu.available() else None  # the ends of the larger recording are Triton's
    return Runner(device, precision, chosen, network, GraphEngine(code, device, precision), recordable)


def _prepared_by_numpy(images: Tensor) -> Tensor:
    """NumPy takes no threads: torch's, once awake, take ONNX Runtime's cores from it for a while."""
    if images.dtype != torch.uint8:
        return images.detach().float().cpu().contiguous()
    # turned over while they are bytes, which is less to move
    whole = np.ascontiguousarray(images.cpu().numpy())
    return torch.from_numpy(np.divide(whole, np.float32(255), dtype=np.float32))


def _unheard(what: str, done: int, total: int) -> None:
    """Progress that nobody asked for."""


def _onnx(
    network: YOLOv9, device: Device, precision: Precision, mode: Mode, progress: ProgressCallback
) -> tuple[Engine, Mode]:
    try:
        engine = OnnxEngine(network, progress)
    except KitError as error:
        if not mode.chosen:
            raise
        return Eager(network, device, precision), Mode("eager", f"chosen: {error}", chosen=True)
    threads = f"{engine.threads} thread{'s' if engine.threads > 1 else ''}"
    return engine, Mode("onnx", f"{mode.reason} (ONNX Runtime {version()}, {threads})", mode.chosen)
