"""JPEG files decoded on an NVIDIA GPU. What is not a plain JPEG goes through the one decoder, ``decode_image``.

The two agree on shape, orientation, notes, and on which files are refused and why. Of a file whose scan is damaged both
make a picture, but not the same one. Of a whole file the pixels differ a little: nvJPEG rounds its transform
differently (one or two levels of 255), and where a picture stores one colour for several pixels it repeats it, while
libjpeg interpolates: photographs then differ by half a level on average, and single pixels beside sharp edges between
colours by as much as a hundred. Gray pictures and those that store every pixel's colour have no such edges.

nvJPEG gets no more of a file than it needs, tables, frame and scan: broken EXIF has crashed it, and not all versions of
its users turn pictures by it.
"""

import importlib.metadata
import io
import os
import stat
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from yolov9kit.data.image import decode_image
from yolov9kit.data.plain_jpeg import PlainJpeg, plain_jpeg
from yolov9kit.data.prefetch import MAX_AHEAD_BYTES, Reserve, in_batches, prefetched_with, read_decoded
from yolov9kit.data.sources import Source
from yolov9kit.errors import DeviceError, PictureError
from yolov9kit.types import Failed, Picture

Decode = Callable[[list[Tensor]], list[Tensor]]
"""Contents of JPEG files (1-D uint8, on the processor) to 3 x H x W uint8 RGB on the device. All of them or none: a
RuntimeError says that one cannot be decoded."""

BATCH_BYTES = 2**28
"""Pixels of a batch. Above this it goes on as it is."""

_MAX_FILE_BYTES = 2**26  # larger ones are few, and a thread of the processor does them
_WORST_MEAN = 4.0  # levels of 255, of a smooth picture; wrong colours are ten times as far off


# ---------------------------------------------------------------------------------------------- which library


@dataclass(frozen=True)
class JpegEngine:
    """What decodes on the device, and why it was chosen, in words."""

    name: str
    decode: Decode
    reason: str


@dataclass(frozen=True)
class NoJpegEngine:
    """There is none, and why, in words."""

    reason: str


def choose_jpeg_engine(device: str) -> JpegEngine | NoJpegEngine:
    """The library that decodes JPEG on this device: torchcodec from 0.16 on, else torchvision.

    It is tried on three small pictures, and taken only if they come out right.
    """
    chosen = torch.device(device)
    if chosen.type != "cuda":
        return NoJpegEngine(f"the device is {chosen}: only NVIDIA GPUs decode JPEG")
    libraries = (("torchcodec", partial(_torchcodec, chosen)), ("torchvision", partial(_torchvision, chosen)))
    return choose_among(libraries, chosen)


def choose_among(
    libraries: Sequence[tuple[str, Callable[[], Decode]]], device: torch.device
) -> JpegEngine | NoJpegEngine:
    """The first library that can be loaded and decodes a trial right."""
    refused: list[str] = []
    for package, load in libraries:
        name = package
        try:
            name = f"{package} {importlib.metadata.version(package)}"
            decode = load()
            why = _why_wrong(decode, device)
        except importlib.metadata.PackageNotFoundError:
            why = "is not installed"
        except Exception as error:  # a library built for another torch or CUDA can raise anything
            why = f"cannot decode on {device} ({' '.join(str(error).split())[:200]})"
        if not why:
            before = f"; {', '.join(refused)}" if refused else ""
            return JpegEngine(name, decode, f"{name} decodes JPEG on {device}{before}")
        refused.append(f"{name} {why}")
    advice = " (pip install 'torchcodec>=0.16')" if "is not installed" in refused[0] else ""
    return NoJpegEngine(f"{', '.join(refused)}: the processor decodes{advice}")


def _torchcodec(device: torch.device) -> Decode:
    from torchcodec.decoders import decode_jpeg

    return lambda data: list(decode_jpeg(data, mode="RGB", device=device))


def _torchvision(device: torch.device) -> Decode:
    from torchvision.io import ImageReadMode, decode_jpeg

    return lambda data: list(decode_jpeg(data, mode=ImageReadMode.RGB, device=device))


def _why_wrong(decode: Decode, device: torch.device) -> str:
    """What is wrong with the pixels of a trial, empty if nothing is: gray, and colour with and without sampling."""
    y, x = np.mgrid[0:48, 0:80]
    scene = np.stack((3 * x, 5 * y, 255 - 2 * x - y), axis=-1).astype(np.uint8)
    files = []
    for image, sampling in (
        (Image.fromarray(scene[..., 0]), 0),
        (Image.fromarray(scene), 0),
        (Image.fromarray(scene), 2),
    ):
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=95, subsampling=sampling)
        files.append(stream.getvalue())
    decoder = GpuJpegDecoder(str(device), JpegEngine("trial", decode, ""))
    for file, pixels in zip(files, decoder.decode(files), strict=True):
        expected = decode_image(file).pixels.astype(np.float32)
        off = float(np.abs(pixels.permute(1, 2, 0).cpu().numpy() - expected).mean())
        if off > _WORST_MEAN:
            return f"gives wrong pixels (off by {off:.0f} levels of 255 on average)"
    if decoder.refused:
        return f"refuses plain files ({decoder.refusal})"
    return ""


# ---------------------------------------------------------------------------------------------- pictures


@dataclass(frozen=True, eq=False)
class JpegFile:
    """A plain JPEG that was read and not yet decoded. ``content``: the file's own bytes."""

    path: str
    content: bytes
    plain: PlainJpeg
    read_ms: float


@dataclass(frozen=True, eq=False)
class DevicePicture:
    """A ``Picture`` whose ``pixels`` lie on the device: 3 x H x W uint8 RGB, contiguous, upright."""

    pixels: Tensor
    path: str
    frame: int | None = None
    notes: tuple[str, ...] = ()
    decode_ms: float = 0.0
    video_fps: float | None = None

    @property
    def hw(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[1], self.pixels.shape[2]

    def picture(self) -> Picture:
        """The same with its pixels on the processor, H x W x 3."""
        pixels = self.pixels.permute(1, 2, 0).contiguous().cpu().numpy()
        return Picture(pixels, self.path, self.frame, self.notes, self.decode_ms, self.video_fps)


def read_encoded(path: Path, reserve: Reserve) -> JpegFile | Picture | Failed:
    """Reads a plain JPEG and decodes everything else: what threads do for ``GpuJpegDecoder``."""
    start = time.perf_counter()
    content = _small_jpeg(path)
    plain = plain_jpeg(content) if content else None
    if plain is None:
        return read_decoded(path, reserve)
    spent = (time.perf_counter() - start) * 1000
    reserve(len(content) + len(plain.stream))
    return JpegFile(str(path), content, plain, spent)


def _small_jpeg(path: Path) -> bytes:
    """The content of a JPEG file of usual size; nothing for all others, also those that cannot be read."""
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_FILE_BYTES:
            return b""
        with open(path, "rb", buffering=0) as file:
            head = file.read(3)
            return head + file.readall() if head == b"\xff\xd8\xff" else b""
    except OSError:  # the one decoder says what is wrong
        return b""


class GpuJpegDecoder:
    """Decodes batches of JPEG files on a device. One thread at a time may use it.

    Args:
        device: ``cuda:0`` or another NVIDIA GPU.
        engine: see ``choose_jpeg_engine``, which is asked where there is none.

    Attributes:
        refused: how many plain files nvJPEG could not decode; the processor did. ``refusal``: what it said last.

    Raises:
        DeviceError: no library decodes JPEG on this device.
    """

    def __init__(self, device: str, engine: JpegEngine | None = None) -> None:
        chosen = engine or choose_jpeg_engine(device)
        if isinstance(chosen, NoJpegEngine):
            raise DeviceError(f"JPEG on the GPU: {chosen.reason}")
        self.engine = chosen
        self.device = torch.device(device)
        self.refused, self.refusal = 0, ""

    def decode(self, files: Sequence[bytes]) -> list[Tensor]:
        """Contents of picture files to 3 x H x W uint8 RGB tensors on the device, upright.

        Raises:
            PictureError: the first that ``decode_image`` refuses.
        """
        plains = [plain_jpeg(file) for file in files]
        decoded = iter(self._decode_plain([plain for plain in plains if plain]))
        found = [next(decoded) if plain else None for plain in plains]
        return [
            self._upload(decode_image(file).pixels) if pixels is None else pixels
            for file, pixels in zip(files, found, strict=True)
        ]

    def decode_batch(self, items: Sequence[JpegFile | Picture | Failed]) -> list[DevicePicture | Failed]:
        """Everything to the device, in order. Time of decoding is shared evenly among those that nvJPEG decoded."""
        plain = [item for item in items if isinstance(item, JpegFile)]
        start = time.perf_counter()
        decoded = iter(self._decode_plain([item.plain for item in plain]))
        share = (time.perf_counter() - start) * 1000 / max(len(plain), 1)
        made: list[DevicePicture | Failed] = []
        for item in items:
            pixels = next(decoded) if isinstance(item, JpegFile) else None
            if isinstance(item, JpegFile) and pixels is not None:
                spent = item.read_ms + share
                made.append(DevicePicture(pixels, item.path, notes=item.plain.notes, decode_ms=spent))
            else:
                made.append(self._by_the_processor(item))
        return made

    def batches(
        self, source: Source, batch_size: int, threads: int, max_bytes: int = MAX_AHEAD_BYTES
    ) -> Generator[list[DevicePicture | Failed], None, None]:
        """The pictures of a source in order, on the device, in batches of up to ``batch_size`` and ``BATCH_BYTES``.

        ``threads`` read files (see ``prefetched``), and one decodes the next batch on a stream of its own while this
        one is used. The pixels may be used on the stream that is current when the first batch is asked for.
        """
        with ExitStack() as stack:
            items = stack.enter_context(closing(prefetched_with(read_encoded, source, threads, max_bytes)))
            worker = stack.enter_context(ThreadPoolExecutor(1, "JPEG on the GPU"))
            work = self._on_own_stream()
            pending: Future[list[DevicePicture | Failed]] | None = None
            for batch in in_batches(items, batch_size, BATCH_BYTES, _pixel_bytes):
                following = worker.submit(copy_context().run, work, batch)
                if pending is not None:
                    yield pending.result()
                pending = following
            if pending is not None:
                yield pending.result()

    def _on_own_stream(self) -> Callable[[list[JpegFile | Picture | Failed]], list[DevicePicture | Failed]]:
        """``decode_batch`` beside the work of the current stream, which is where the pixels will be used."""
        if self.device.type != "cuda":
            return self.decode_batch
        own, users = torch.cuda.Stream(self.device), torch.cuda.current_stream(self.device)

        def work(batch: list[JpegFile | Picture | Failed]) -> list[DevicePicture | Failed]:
            with torch.cuda.stream(own):
                made = self.decode_batch(batch)
                own.synchronize()
            for item in made:
                if isinstance(item, DevicePicture):
                    item.pixels.record_stream(
                        users
                    )  # its memory is not given away while that stream reads it
            return made

        return work

    def _decode_plain(self, plains: Sequence[PlainJpeg]) -> list[Tensor | None]:
        """None for what nvJPEG refuses. It refuses all for one: that one is looked for by halves."""
        if not plains:
            return []
        try:
            decoded = self._run([torch.frombuffer(plain.stream, dtype=torch.uint8) for plain in plains])
            return [_upright(pixels, plain) for pixels, plain in zip(decoded, plains, strict=True)]
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            if len(plains) == 1:
                self.refused, self.refusal = self.refused + 1, " ".join(str(error).split())[:200]
                return [None]
        middle = len(plains) // 2
        return self._decode_plain(plains[:middle]) + self._decode_plain(plains[middle:])

    def _run(self, streams: list[Tensor]) -> list[Tensor]:
        if self.device.type != "cuda":
            return self.engine.decode(streams)
        with torch.cuda.device(self.device):
            # nvJPEG writes to the memory it is given without waiting for the stream, and torch gives it memory that
            # the stream's earlier work may still read (pytorch/vision#9606, meta-pytorch/torchcodec#1634)
            torch.cuda.current_stream().synchronize()
            return self.engine.decode(streams)

    def _by_the_processor(self, item: JpegFile | Picture | Failed) -> DevicePicture | Failed:
        if isinstance(item, Failed):
            return item
        if isinstance(item, JpegFile):
            start = time.perf_counter()
            try:
                decoded = decode_image(item.content, name=item.path)
            except PictureError as error:
                return Failed(item.path, str(error))
            spent = item.read_ms + (time.perf_counter() - start) * 1000
            item = Picture(decoded.pixels, item.path, notes=decoded.notes, decode_ms=spent)
        pixels = self._upload(item.pixels)
        return DevicePicture(pixels, item.path, item.frame, item.notes, item.decode_ms, item.video_fps)

    def _upload(self, pixels: np.ndarray) -> Tensor:
        return torch.from_numpy(pixels).to(self.device).permute(2, 0, 1).contiguous()


def _upright(pixels: Tensor, plain: PlainJpeg) -> Tensor:
    """The picture as it is looked at. What is no picture of the stated size counts as refused."""
    if pixels.dtype != torch.uint8 or pixels.shape != (3, plain.height, plain.width):
        raise RuntimeError(f"gave {pixels.dtype} of shape {list(pixels.shape)}")
    if plain.orientation == 1:
        return pixels.contiguous()
    mirrored = {2: (2,), 3: (1, 2), 4: (1,), 5: (), 6: (1,), 7: (1, 2), 8: (2,)}[plain.orientation]
    pixels = pixels.flip(mirrored)
    return (pixels.transpose(1, 2) if plain.orientation >= 5 else pixels).contiguous()


def _pixel_bytes(item: JpegFile | Picture | Failed) -> int:
    if isinstance(item, JpegFile):
        return 3 * item.plain.width * item.plain.height
    return item.pixels.nbytes if isinstance(item, Picture) else 0
