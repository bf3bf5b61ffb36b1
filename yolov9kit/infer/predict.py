"""Detection, the whole sentence: picture, letterbox, network, decode, NMS, back to picture pixels."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from yolov9kit.data.gpu_jpeg import DevicePicture, GpuJpegDecoder, NoJpegEngine, choose_jpeg_engine
from yolov9kit.data.prefetch import decode_threads, in_batches, prefetched
from yolov9kit.data.sources import Picture, Source, open_source
from yolov9kit.device import choose_device, choose_precision, memory_mib
from yolov9kit.errors import PictureError, UsageError
from yolov9kit.infer.config import DetectConfig
from yolov9kit.infer.mode import choose_mode
from yolov9kit.infer.runner import Runner, make_runner
from yolov9kit.infer.way import OneLaunch, Started, Way, way_of
from yolov9kit.machine import usable_cores
from yolov9kit.model.checkpoint import Checkpoint, load
from yolov9kit.types import Detections, Failed, ProgressCallback

T = TypeVar("T", Picture, DevicePicture)

MAX_HELD_BYTES = 96 * 2**20
"""Pixels of a batch that wait for the rest of it. Above this it goes on as it is."""


class Detector:
    """Weights, made ready once on a device in a precision. Threads may share one.

    Args:
        weights: a weights file of any kind that ``load`` opens, or a ``Checkpoint``.
        device: ``auto``, ``cpu``, ``0``, ``cuda:1``, ``mps``.
        precision: ``fp32``, ``tf32``, ``fp16``, ``bf16`` or ``auto`` (the fastest that is native).
        mode: ``eager``, ``graph``, ``compiled``, ``onnx`` or ``auto`` (see ``choose_mode``).
        config: settings for every call; single calls may change them by keyword.
        gpu_jpeg: ``detect`` and ``found`` decode plain JPEG files on the GPU where everything else happens there too.
            Pixels differ from the processor's by half a level of 255 on average, see ``data/gpu_jpeg.py``.
        progress: hears of what is done once and takes long (exporting, compiling).

    Raises:
        CheckpointError, DeviceError, UsageError: see ``load``, ``choose_device``, ``choose_precision`` and
            ``choose_mode``.
    """

    def __init__(
        self,
        weights: str | Path | Checkpoint,
        device: str = "auto",
        precision: str = "fp32",
        config: DetectConfig | None = None,
        mode: str = "auto",
        gpu_jpeg: bool = True,
        progress: ProgressCallback | None = None,
        **settings: Any,
    ) -> None:
        self.config = (config or DetectConfig()).changed(**settings)
        chosen = choose_device(device)
        precise = choose_precision(precision, chosen)
        moded = choose_mode(mode, chosen, precise)
        checkpoint = weights if isinstance(weights, Checkpoint) else load(weights)
        import torchvision.ops  # noqa: F401 - loaded now, or the first picture's NMS time would hold it

        self.names = checkpoint.names
        self.runner: Runner = make_runner(checkpoint.model, chosen, precise, moded, progress)
        self._way: Way = way_of(self.runner, self.names)
        self._gpu_jpeg = gpu_jpeg
        self._decoder: GpuJpegDecoder | NoJpegEngine | None = None  # None: not tried yet
        self._threads = decode_threads(usable_cores()).threads

    def __repr__(self) -> str:
        network, runner = self.runner.network, self.runner
        return (
            f"Detector(YOLOv9-{network.size}, {len(self.names)} classes, {runner.device.torch_name}, "
            f"{runner.precision.label}, {runner.mode.name})"
        )

    def close(self) -> None:
        """Give back what recordings and sessions hold; the detector cannot be used afterwards."""
        self._way.close()
        self.runner.close()

    @property
    def memory_mib(self) -> float:
        """Memory: the peak of this process's tensors on a GPU, what the whole process holds elsewhere."""
        return memory_mib(self.runner.device.torch_name)

    def detect(
        self, source: Any, *, failed: list[Failed] | None = None, bgr: bool = False, **settings: Any
    ) -> list[Detections]:
        """Detections of every picture of ``source`` (see ``open_source``), in order.

        Pictures that cannot be read are put into ``failed``; without such a list the first one raises.

        Raises:
            PictureError: a picture cannot be read, or nothing is there.
        """
        on_failure = None if failed is None else failed.append
        return list(self.found(source, on_failure=on_failure, bgr=bgr, **settings))

    def found(
        self,
        source: Any,
        *,
        on_failure: Callable[[Failed], object] | None = None,
        bgr: bool = False,
        stride: int = 1,
        **settings: Any,
    ) -> Iterator[Detections]:
        """As ``stream`` without the pictures, which need not come to the processor then: see ``gpu_jpeg``."""
        opened = open_source(source, bgr=bgr, stride=stride)
        if opened.total in (None, 1) or (decoder := self._gpu_decoder()) is None:
            pairs = self.stream(opened, on_failure=on_failure, **settings)
            return (detections for _, detections in pairs)
        config = self.config.changed(**settings)
        self._check(config)
        batches = self._device_batches(decoder, opened, config.batch_size, on_failure)
        return (detections for _, detections in self._run(batches, config, self._way.ahead))

    def _gpu_decoder(self) -> GpuJpegDecoder | None:
        """Decodes JPEG files where they are looked at, if that was asked for and can be had."""
        if not self._gpu_jpeg or not isinstance(self._way, OneLaunch):
            return None
        if self._decoder is None:
            device = self.runner.device.torch_name
            engine = choose_jpeg_engine(device)
            self._decoder = engine if isinstance(engine, NoJpegEngine) else GpuJpegDecoder(device, engine)
        return None if isinstance(self._decoder, NoJpegEngine) else self._decoder

    def _device_batches(
        self,
        decoder: GpuJpegDecoder,
        source: Source,
        size: int,
        on_failure: Callable[[Failed], object] | None,
    ) -> Iterator[list[DevicePicture]]:
        with closing(decoder.batches(source, size, self._threads)) as batches:
            for batch in batches:
                whole = [item for item in batch if isinstance(item, DevicePicture)]
                for item in batch:
                    if isinstance(item, Failed):
                        _fail(item, on_failure)
                if whole:
                    yield whole

    def stream(
        self,
        source: Any,
        *,
        on_failure: Callable[[Failed], object] | None = None,
        bgr: bool = False,
        stride: int = 1,
        **settings: Any,
    ) -> Iterator[tuple[Picture, Detections]]:
        """Pictures and their detections, one by one, in constant memory. To stop, stop iterating."""
        config = self.config.changed(**settings)
        self._check(config)
        opened = open_source(source, bgr=bgr, stride=stride)

        def readable() -> Iterator[Picture]:
            with closing(prefetched(opened, self._threads)) as pictures:
                for item in pictures:
                    if isinstance(item, Picture):
                        yield item
                    else:
                        _fail(item, on_failure)

        # a live source shows each frame at once; a batch would hold it back
        batch, ahead = (1, 1) if opened.total is None else (config.batch_size, self._way.ahead)
        batches = in_batches(readable(), batch, MAX_HELD_BYTES, lambda picture: picture.pixels.nbytes)
        return self._run(batches, config, ahead)

    def _check(self, config: DetectConfig) -> None:
        wrong = [c for c in config.classes or () if not 0 <= c < len(self.names)]
        if wrong:
            raise UsageError(
                f"class {wrong[0]}: the weights know 0 to {len(self.names) - 1} ({', '.join(self.names[:8])}"
                f"{', …' if len(self.names) > 8 else ''})"
            )

    def _run(
        self, batches: Iterator[list[T]], config: DetectConfig, ahead: int
    ) -> Iterator[tuple[T, Detections]]:
        """``ahead``: how many batches may be under way when the first of them is waited for."""
        waiting: deque[tuple[list[T], Started]] = deque()
        largest = 0
        for batch in batches:
            largest = max(largest, len(batch))
            waiting.append((batch, self._way.start(batch, config, largest)))
            if len(waiting) >= ahead:
                yield from _finished(*waiting.popleft())
        while waiting:
            yield from _finished(*waiting.popleft())


def _finished(batch: list[T], started: Started) -> Iterator[tuple[T, Detections]]:
    results = started()
    for result in results:  # let go of each picture at once: the next ones are read meanwhile
        yield batch.pop(0), result


def detect(
    weights: str | Path | Checkpoint,
    source: Any,
    *,
    device: str = "auto",
    precision: str = "fp32",
    mode: str = "auto",
    failed: list[Failed] | None = None,
    **settings: Any,
) -> list[Detections]:
    """One call from weights and pictures to detections. For more than one call keep a ``Detector``."""
    return Detector(weights, device, precision, mode=mode).detect(source, failed=failed, **settings)


def _fail(failed: Failed, on_failure: Callable[[Failed], object] | None) -> None:
    if on_failure is None:
        raise PictureError(failed.error)
    on_failure(failed)
