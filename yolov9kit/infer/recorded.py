"""The whole sentence on a GPU: stored pixels to final boxes in one recording, and one copy each way.

What happens is what ``predict`` does step by step, and the boxes are the same; only nobody waits in between.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from yolov9kit.cuda_graph import Captured, capture
from yolov9kit.data.letterbox import Letterbox
from yolov9kit.device import Device, Precision
from yolov9kit.infer.config import DetectConfig
from yolov9kit.infer.engine import Network
from yolov9kit.infer.graph_engine import LEAST_FILLED
from yolov9kit.infer.network import uses_channels_last
from yolov9kit.infer.recordings import Recordings
from yolov9kit.kernels.candidates import best_locations
from yolov9kit.kernels.letterbox import Placement, interleaved, letterbox_, letterbox_table, planar, undo
from yolov9kit.kernels.nms import nms
from yolov9kit.model.decode import decode

Pixels = Sequence[np.ndarray] | Sequence[Tensor]
Strides = Callable[[tuple[int, int]], tuple[int, int, int]]

SLOTS = 2048
"""Locations of one picture that reach NMS, the best first. Where there are more, the picture takes the plain way."""

MAX_FORMS = 6
"""Recordings that are kept at a time; the one used longest ago goes first."""

IN_FLIGHT = 2
"""Batches under way at a time: while the GPU works on one, the next is put together."""


class Form(NamedTuple):
    """What a recording is made for: batches of at most ``batch`` pictures and ``room`` bytes of pixels."""

    batch: int
    input_hw: tuple[int, int]
    room: int
    rows: int
    suppress: bool


class Kernels(NamedTuple):
    """The two ends of the recording; tests put in their references."""

    letterbox: Callable[[Tensor, Tensor, Tensor], Tensor] = letterbox_
    nms: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor] = nms


class Found(NamedTuple):
    """Of one picture, by falling score: boxes in picture pixels, scores, labels. ``located``: how many locations
    scored enough, of which ``SLOTS`` fit; ``finite``: whether the network gave numbers at all."""

    boxes: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    located: int
    finite: bool


class Sentence:
    """Letterbox, network, decoding, choice and NMS for one form, as a call from tensors to tensors."""

    def __init__(self, network: Network, form: Form, device: Device, precision: Precision, kernels: Kernels):
        self._network, self._form, self._kernels, self._dtype = network, form, kernels, precision.dtype
        last = uses_channels_last(device, precision)
        self._order = torch.channels_last if last else torch.contiguous_format

    def __call__(
        self, pixels: Tensor, table: Tensor, limits: Tensor, classes: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Pixels: ``room`` bytes. The rest: see ``Settings``.

        Returns:
            B x rows x 6 float32: box, score and label; and B x 3 int64: filled rows, locations found, finite.
        """
        form = self._form
        out = torch.empty(
            (form.batch, 3, *form.input_hw),
            dtype=self._dtype,
            device=pixels.device,
            memory_format=self._order,
        )
        boxes, scores = decode(self._network(self._kernels.letterbox(pixels, table, out)))
        chosen = best_locations(boxes, scores, limits[0], SLOTS, classes)
        moved, held, seen = undo(chosen.boxes, table)
        keep = chosen.valid
        if form.suppress:
            keep = self._kernels.nms(moved, chosen.labels, keep & seen, limits[1], limits[2] > 0)
        corners = held if form.suppress else moved
        rows = torch.cat((corners, chosen.scores[..., None], chosen.labels[..., None].float()), dim=-1)
        first = keep.byte().sort(dim=1, descending=True, stable=True).indices[:, : form.rows]
        rows = rows.gather(1, first[..., None].expand(-1, -1, 6))
        filled = keep.sum(dim=1).clamp(max=form.rows)
        return rows, torch.stack((filled, chosen.found, chosen.finite.long()), dim=1)


class Settings(NamedTuple):
    """What goes into the sentence beside the pixels: the table, see ``letterbox_table``; least score, largest IoU and
    agnostic (0 or 1); and which of the C classes are wanted."""

    table: Tensor
    limits: Tensor
    classes: Tensor


@dataclass(eq=False)
class Staging:
    """Page-locked memory of one batch: copies from and to it run beside the processor's work.

    ``started`` and ``ended`` are CUDA events around everything that the GPU does for it.
    """

    settings: Settings
    rows: Tensor
    counts: Tensor
    started: Any
    ended: Any
    pixels: Tensor | None = None

    def room(self, size: int) -> Tensor:
        """For pixels from the processor; those that are on the device already need none."""
        if self.pixels is None:
            self.pixels = torch.empty(size, dtype=torch.uint8).pin_memory()
        return self.pixels


@dataclass(eq=False)
class Underway:
    """A batch that the GPU works on."""

    staging: Staging
    pictures: int
    free: list[Staging]

    def result(self) -> tuple[list[Found], float]:
        """Waits for the device. What was found on each picture, and the milliseconds that the GPU took."""
        self.staging.ended.synchronize()
        spent = self.staging.started.elapsed_time(self.staging.ended)
        rows, counts = self.staging.rows.numpy(), self.staging.counts.numpy()
        results = [found(rows[i], counts[i]) for i in range(self.pictures)]
        self.free.append(self.staging)
        return results, spent


def found(rows: np.ndarray, counts: np.ndarray) -> Found:
    filled, located, finite = (int(number) for number in counts)
    taken = rows[:filled].copy()  # the memory is written again by a later batch
    return Found(taken[:, :4], taken[:, 4], taken[:, 5].astype(np.int64), located, bool(finite))


class Recorded:
    """The recordings of one network. Threads may share it; each batch waits for its turn.

    Args:
        network: prepared images to raw maps; never waits for the device.
        classes: C.
    """

    def __init__(self, network: Network, device: Device, precision: Precision, classes: int) -> None:
        self._network, self._device, self._precision, self._classes = network, device, precision, classes
        self._lock = threading.Lock()
        # with the staging memory that nobody uses now
        self._recordings: Recordings[Form, tuple[Captured, list[Staging]]] = Recordings(
            device, precision, MAX_FORMS
        )

    @torch.inference_mode()  # the recorded inputs were made in it
    def submit(
        self, pictures: Pixels, boxes: Sequence[Letterbox], config: DetectConfig, batch: int
    ) -> Underway:
        """Send a batch on its way and return at once.

        Args:
            pictures: uint8, at most ``batch`` of them: H0 x W0 x 3 on the processor, or 3 x H0 x W0 on the device.
            boxes: how each lies in the input; all inputs have one size.
        """
        with self._lock, torch.cuda.device(self._device.torch_name):
            used = sum(3 * height * width for height, width in (box.picture_hw for box in boxes))
            form = self._form(used, boxes[0].input_hw, config, batch)
            captured, free = self._recordings.take(form, lambda pool: (self._record(form, pool), []))
            staging = free.pop() if free else _staging(form, self._classes, captured)
            target, *places = captured.inputs
            staging.started.record()
            arrays = [picture for picture in pictures if isinstance(picture, np.ndarray)]
            if arrays:
                copy_pixels(arrays, staging.room(form.room)[:used], target[:used])
            else:
                flat = [picture.reshape(-1) for picture in pictures if isinstance(picture, Tensor)]
                torch.cat(flat, out=target[:used])
            strides = interleaved if arrays else planar
            set_up(staging.settings, boxes, strides, form.room, config)
            for place, values in zip(places, staging.settings, strict=True):
                place.copy_(values, non_blocking=True)
            captured.graph.replay()
            rows, counts = captured.outputs
            staging.rows.copy_(rows, non_blocking=True)
            staging.counts.copy_(counts, non_blocking=True)
            staging.ended.record()
            return Underway(staging, len(pictures), free)

    def close(self) -> None:
        """Drop the recordings and give their memory back."""
        with self._lock:
            self._recordings.clear()

    def _form(self, used: int, input_hw: tuple[int, int], config: DetectConfig, batch: int) -> Form:
        rows = SLOTS if config.keep_candidates else min(config.max_detections, SLOTS)
        room = 1 << max(used - 1, 1).bit_length()
        wanted = Form(batch, input_hw, room, rows, not config.keep_candidates)
        fitting = [
            form
            for form in self._recordings
            if form[1:2] + form[3:] == wanted[1:2] + wanted[3:]
            and batch <= form.batch <= LEAST_FILLED * batch
            and form.room >= room
        ]
        return min(fitting, default=wanted)

    def _record(self, form: Form, pool: Any) -> Captured:
        sentence = Sentence(self._network, form, self._device, self._precision, Kernels())
        pixels = torch.zeros(form.room, dtype=torch.uint8, device=self._device.torch_name)
        settings = blank_settings(form.batch, self._classes)
        return capture(sentence, [pixels, *(one.to(pixels.device) for one in settings)], pool=pool)


def blank_settings(batch: int, classes: int) -> Settings:
    """Those of a batch of gray pictures, on the processor."""
    return Settings(
        letterbox_table([], 0, batch),
        torch.tensor((0.25, 0.7, 0.0)),
        torch.ones(classes, dtype=torch.bool),
    )


def _staging(form: Form, classes: int, captured: Captured) -> Staging:
    rows, counts = captured.outputs  # fewer rows than asked for, where a picture has fewer locations
    return Staging(
        Settings(*(tensor.pin_memory() for tensor in blank_settings(form.batch, classes))),
        torch.empty_like(rows, device="cpu").pin_memory(),
        torch.empty_like(counts, device="cpu").pin_memory(),
        torch.cuda.Event(enable_timing=True),
        torch.cuda.Event(enable_timing=True),
    )


def copy_pixels(pictures: Sequence[np.ndarray], staging: Tensor, target: Tensor) -> None:
    """Pictures one after the other, by way of page-locked memory."""
    together, offset = staging.numpy(), 0
    for picture in pictures:
        together[offset : offset + picture.size] = picture.reshape(-1)
        offset += picture.size
    target.copy_(staging, non_blocking=True)


def set_up(
    settings: Settings, boxes: Sequence[Letterbox], strides: Strides, room: int, config: DetectConfig
) -> None:
    """Where each picture lies and goes, and what counts as found."""
    placements, offset = [], 0
    for box in boxes:
        height, width = box.picture_hw
        placements.append(
            Placement(offset, strides(box.picture_hw), box.picture_hw, box.inner_hw, box.pad_xy)
        )
        offset += 3 * height * width
    settings.table.copy_(letterbox_table(placements, room, len(settings.table)))
    settings.limits.copy_(torch.tensor((config.floor, config.max_iou, float(config.agnostic))))
    every = config.keep_candidates or config.classes is None
    settings.classes.fill_(every)
    if not every:
        settings.classes[list(config.classes or ())] = True
