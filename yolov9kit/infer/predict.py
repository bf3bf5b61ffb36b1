"""Detection, the whole sentence: picture, letterbox, network, decode, NMS, back to picture pixels."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from yolov9kit.data.letterbox import Letterbox, clip, input_size, letterbox
from yolov9kit.data.sources import Picture, open_source
from yolov9kit.device import choose_device, choose_precision, memory_mib
from yolov9kit.errors import KitError, PictureError, UsageError
from yolov9kit.geometry import nms
from yolov9kit.infer.config import DetectConfig
from yolov9kit.infer.runner import Runner, make_runner
from yolov9kit.model.checkpoint import Checkpoint, load
from yolov9kit.model.decode import decode
from yolov9kit.types import Candidates, Detections, Failed, Timings


class Detector:
    """Weights, made ready once on a device in a precision. Threads may share one.

    Args:
        weights: a weights file of any kind that ``load`` opens, or a ``Checkpoint``.
        device: ``auto``, ``cpu``, ``0``, ``cuda:1``, ``mps``.
        precision: ``fp32``, ``tf32``, ``fp16``, ``bf16`` or ``auto`` (the fastest that is native).
        config: settings for every call; single calls may change them by keyword.

    Raises:
        CheckpointError, DeviceError, UsageError: see ``load``, ``choose_device``, ``choose_precision``.
    """

    def __init__(
        self,
        weights: str | Path | Checkpoint,
        device: str = "auto",
        precision: str = "fp32",
        config: DetectConfig | None = None,
        **settings: Any,
    ) -> None:
        self.config = (config or DetectConfig()).changed(**settings)
        chosen = choose_device(device)
        precise = choose_precision(precision, chosen)
        checkpoint = weights if isinstance(weights, Checkpoint) else load(weights)
        import torchvision.ops  # noqa: F401 - loaded now, or the first picture's NMS time would hold it

        self.names = checkpoint.names
        self.runner: Runner = make_runner(checkpoint.model, chosen, precise)

    def __repr__(self) -> str:
        network, runner = self.runner.network, self.runner
        return (
            f"Detector(YOLOv9-{network.size}, {len(self.names)} classes, {runner.device.torch_name}, "
            f"{runner.precision.label})"
        )

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
        return [found for _, found in self.stream(source, on_failure=on_failure, bgr=bgr, **settings)]

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
            for item in opened:
                if isinstance(item, Picture):
                    yield item
                elif on_failure is None:
                    raise PictureError(item.error)
                else:
                    on_failure(item)

        # a live source shows each frame at once; a batch would hold it back
        batch = 1 if opened.total is None else config.batch_size
        return self._run(readable(), batch, config)

    def _check(self, config: DetectConfig) -> None:
        wrong = [c for c in config.classes or () if not 0 <= c < len(self.names)]
        if wrong:
            raise UsageError(
                f"class {wrong[0]}: the weights know 0 to {len(self.names) - 1} ({', '.join(self.names[:8])}"
                f"{', …' if len(self.names) > 8 else ''})"
            )

    def _run(
        self, pictures: Iterator[Picture], batch_size: int, config: DetectConfig
    ) -> Iterator[tuple[Picture, Detections]]:
        for batch in _batches(pictures, batch_size):
            results = self._detect_batch(batch, config)
            for result in results:  # let go of each picture at once: the next ones are read meanwhile
                yield batch.pop(0), result

    def _detect_batch(self, pictures: Sequence[Picture], config: DetectConfig) -> list[Detections]:
        clock = _Clock(self.runner)
        size = input_size(config.image_size)
        boxed = [letterbox((p.pixels.shape[0], p.pixels.shape[1]), size) for p in pictures]
        inputs = np.stack([box.apply(picture.pixels) for box, picture in zip(boxed, pictures, strict=True)])
        images = torch.from_numpy(inputs).to(self.runner.device.torch_name).permute(0, 3, 1, 2)
        preprocess_ms = clock.lap() / len(pictures)
        outputs = self.runner(images)
        network_ms = clock.lap() / len(pictures)
        with torch.inference_mode():
            found = _best_classes(outputs.main, _floor(config), self.runner.precision.name)
        results = [
            _finish(raw, box, picture, config, self.names)
            for raw, box, picture in zip(found, boxed, pictures, strict=True)
        ]
        nms_ms = clock.lap() / len(pictures)
        return [
            replace(result, timings=Timings(picture.decode_ms, preprocess_ms, network_ms, nms_ms))
            for result, picture in zip(results, pictures, strict=True)
        ]


def detect(
    weights: str | Path | Checkpoint,
    source: Any,
    *,
    device: str = "auto",
    precision: str = "fp32",
    failed: list[Failed] | None = None,
    **settings: Any,
) -> list[Detections]:
    """One call from weights and pictures to detections. For more than one call keep a ``Detector``."""
    return Detector(weights, device, precision).detect(source, failed=failed, **settings)


def reselect(
    detections: Detections,
    *,
    min_score: float | None = None,
    max_iou: float | None = None,
    max_detections: int = 300,
    classes: Iterable[int] | None = None,
    agnostic: bool = False,
) -> Detections:
    """Other thresholds on the same picture without running the model: equal to detecting again with them.

    Raises:
        UsageError: the detections were made without ``keep_candidates``, the score lies below the candidates' floor,
            or a threshold is out of range.
    """
    candidates = detections.candidates
    if candidates is None:
        raise UsageError("these detections kept no candidates: detect with keep_candidates=True")
    defaults = DetectConfig()
    score = defaults.min_score if min_score is None else min_score
    if score < candidates.min_score:
        raise UsageError(f"min_score {score}: the candidates were kept above {candidates.min_score}")
    config = defaults.changed(
        min_score=score,
        max_iou=defaults.max_iou if max_iou is None else max_iou,
        max_detections=max_detections,
        classes=None if classes is None else tuple(classes),
        agnostic=agnostic,
    )
    boxes, scores, labels = _select(
        candidates.boxes, candidates.scores, candidates.labels, detections.picture_wh, config
    )
    return replace(detections, boxes=boxes, scores=scores, labels=labels)


# ---------------------------------------------------------------------------------------------- parts


class _Clock:
    """Milliseconds since the last look, after the device has finished."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._last = time.perf_counter()

    def lap(self) -> float:
        self._runner.synchronize()
        now = time.perf_counter()
        spent, self._last = (now - self._last) * 1000, now
        return spent


MAX_HELD_BYTES = 96 * 2**20
"""Pixels of a batch that wait for the rest of it. Above this a batch goes on as it is: memory stays bounded."""


def _batches(pictures: Iterator[Picture], size: int) -> Iterator[list[Picture]]:
    batch: list[Picture] = []
    held = 0
    for picture in pictures:
        batch.append(picture)
        held += picture.pixels.nbytes
        if len(batch) == size or held > MAX_HELD_BYTES:
            yield batch
            batch, held = [], 0
        del picture  # or the largest picture would be held while the next one is decoded
    if batch:
        yield batch


def _floor(config: DetectConfig) -> float:
    return min(config.min_score, config.candidate_score) if config.keep_candidates else config.min_score


def _best_classes(
    maps: Sequence[torch.Tensor], min_score: float, precision: str
) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Per picture: boxes (input pixels), scores and labels of the locations whose best class scores enough."""
    boxes, scores = decode(maps)
    best, labels = scores.max(dim=-1)
    if not bool(torch.isfinite(boxes).all() & torch.isfinite(best).all()):
        raise KitError(
            f"the network gave values that are not finite in {precision}: "
            + (
                "its numbers exceed what fp16 can hold. Take bf16 or fp32."
                if precision == "fp16"
                else "the weights are damaged."
            )
        )
    keep = best > min_score
    rows = torch.cat((boxes, best[..., None], labels[..., None].float()), dim=-1)
    counts = keep.sum(dim=1).tolist()
    survivors = rows[keep].cpu().numpy()  # one transfer for the whole batch
    parts = np.split(survivors, np.cumsum(counts)[:-1])
    return [(part[:, :4], part[:, 4], part[:, 5].astype(np.int64)) for part in parts]


def _finish(
    raw: tuple[np.ndarray, np.ndarray, np.ndarray],
    box: Letterbox,
    picture: Picture,
    config: DetectConfig,
    names: tuple[str, ...],
) -> Detections:
    boxes, scores, labels = box.undo(raw[0]), raw[1], raw[2]
    order = np.argsort(-scores, kind="stable")
    boxes, scores, labels = boxes[order], scores[order], labels[order]
    height, width = box.picture_hw
    kept = None
    if config.keep_candidates:
        n = config.max_candidates
        kept = Candidates(boxes[:n], scores[:n], labels[:n], _floor(config), cut=max(len(scores) - n, 0))
    boxes, scores, labels = _select(boxes, scores, labels, (width, height), config)
    return Detections(
        boxes,
        scores,
        labels,
        names,
        (width, height),
        picture.path,
        picture.frame,
        notes=picture.notes,
        candidates=kept,
    )


def _select(
    boxes: np.ndarray,
    scores: np.ndarray,
    labels: np.ndarray,
    picture_wh: tuple[int, int],
    config: DetectConfig,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Score, class and NMS; boxes are then held inside the picture, and those wholly in the padding fall away."""
    keep = scores > config.min_score
    if config.classes is not None:
        keep &= np.isin(labels, config.classes)
    boxes, scores, labels = boxes[keep], scores[keep], labels[keep]
    inside = clip(boxes, (picture_wh[1], picture_wh[0]))
    on_picture = (inside[:, 2] > inside[:, 0]) & (inside[:, 3] > inside[:, 1])
    boxes, scores, labels, inside = (
        boxes[on_picture],
        scores[on_picture],
        labels[on_picture],
        inside[on_picture],
    )
    chosen = nms(
        torch.from_numpy(np.ascontiguousarray(boxes)),
        torch.from_numpy(np.ascontiguousarray(scores)),
        torch.from_numpy(np.ascontiguousarray(labels)),
        config.max_iou,
        config.agnostic,
    )[: config.max_detections].numpy()
    return inside[chosen], scores[chosen], labels[chosen]
