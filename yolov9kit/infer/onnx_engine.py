"""The network in ONNX Runtime: exported once, kept by the digest of its weights, proved equal whenever loaded."""

import hashlib
import io
import threading
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from yolov9kit.cache import cache_folder, keep
from yolov9kit.errors import KitError
from yolov9kit.infer.network import MapsAlone
from yolov9kit.machine import usable_cores
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.types import ProgressCallback, RawMaps

OPSET = 17
LAYOUT = 1
"""Counts up when what is exported changes: files of an older layout are not used any more."""

TOLERANCE = 1e-3
"""Largest difference of a raw map's numbers, relative to the map's largest. Seen: under 1e-5 for trained files."""

KEPT = 16
"""Exported files that are kept, the newest: each has the size of its weights in float32."""

_EXPORTING = threading.Lock()  # torch's exporter keeps its state in globals


class OnnxEngine:
    """A network of float32 on a processor, run by ONNX Runtime with a stated number of threads.

    Raises:
        KitError: ONNX Runtime gives other numbers than torch does.
    """

    def __init__(self, network: YOLOv9, progress: ProgressCallback) -> None:
        self.threads = max(1, min(torch.get_num_threads(), int(usable_cores())))
        self._session = self._open(network, progress)

    def _open(self, network: YOLOv9, progress: ProgressCallback) -> Any:
        path = onnx_file(network)
        if path.is_file():
            try:
                session = _session(path.read_bytes(), self.threads)
                _compare(session, network)
                return session
            except Exception:  # cut off, or of a version that is read no more: it is made anew below
                path.unlink(missing_ok=True)
        progress("exporting to ONNX", 0, 1)
        data = export(network)
        session = _session(data, self.threads)
        _compare(session, network)
        progress("exporting to ONNX", 1, 1)
        keep(path, lambda file: file.write_bytes(data), KEPT)
        return session

    def __call__(self, images: Tensor) -> RawMaps:
        return _run(self._session, images)

    def close(self) -> None:
        self._session = None


def version() -> str:
    """Of ONNX Runtime."""
    import onnxruntime

    return str(onnxruntime.__version__)


def onnx_file(network: YOLOv9) -> Path:
    """Where the exported form of exactly this network is kept."""
    digest = hashlib.sha256(f"{LAYOUT} {OPSET} {network.size}".encode())  # groups show in the shapes
    for name, tensor in network.state_dict().items():
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().float().contiguous().numpy())
    return cache_folder() / "onnx" / f"yolov9-{network.size}-{digest.hexdigest()[:32]}.onnx"


def export(network: YOLOv9) -> bytes:
    """``images`` B x 3 x H x W float32 to ``p3``, ``p4``, ``p5``; B, H and W are free.

    By torch's older exporter: a second instead of twelve, and sizes stay free, which torch.export refused (2.14).
    """
    names = ("images", "p3", "p4", "p5")
    file: Any = io.BytesIO()  # taken, although the signature names paths alone
    with _EXPORTING, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is a newer exporter
        torch.onnx.export(
            MapsAlone(network),
            (torch.zeros(1, 3, 64, 64),),
            file,
            input_names=names[:1],
            output_names=names[1:],
            dynamic_axes={name: {0: "batch", 2: f"{name}_h", 3: f"{name}_w"} for name in names},
            opset_version=OPSET,
            dynamo=False,
        )
    return bytes(file.getvalue())


def _session(data: bytes, threads: int) -> Any:
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # which its builds for Windows would send
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors: they are raised anyway
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def _run(session: Any, images: Tensor) -> RawMaps:
    p3, p4, p5 = session.run(None, {"images": images.contiguous().numpy()})
    return torch.from_numpy(p3), torch.from_numpy(p4), torch.from_numpy(p5)


def _compare(session: Any, network: YOLOv9) -> None:
    """Two small pictures of noise, not square, through both."""
    images = torch.rand(2, 3, 64, 96, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        wanted = network(images).main
    for level, (ours, theirs) in enumerate(zip(wanted, _run(session, images), strict=True), start=3):
        if not torch.isfinite(ours).all():
            continue  # the same happens in every mode, and is told when pictures are detected
        difference = float((ours - theirs).abs().max() / ours.abs().max().clamp(min=1))
        if not difference <= TOLERANCE:
            raise KitError(
                f"ONNX Runtime {version()} gives other numbers than torch at level P{level}: they differ by "
                f"{difference:.2g} of the largest, {TOLERANCE:g} is allowed. Take mode eager."
            )
