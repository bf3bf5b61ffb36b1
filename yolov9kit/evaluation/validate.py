"""A model on a validation set: its loss and its AP, from one look at each picture."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from yolov9kit.data.dataset import Sample
from yolov9kit.data.letterbox import clip, letterbox
from yolov9kit.device import synchronize
from yolov9kit.errors import EvaluationError
from yolov9kit.evaluation.average_precision import AveragePrecision, PictureBoxes, average_precision
from yolov9kit.evaluation.selection import DEFAULT, Selection
from yolov9kit.geometry import nms
from yolov9kit.loss.criterion import BranchSums, DetectionLoss, branch_sums
from yolov9kit.model.decode import decode
from yolov9kit.types import Batch, LossParts, Outputs

SETTINGS = str(DEFAULT)


@dataclass(frozen=True, eq=False)
class Validation:
    """What ``validate`` gives.

    Attributes:
        loss: of the main branch, all pictures taken as one batch, per picture.
        scores: AP of ``found`` against ``truths``.
        found: the detections that were scored, in picture pixels; ``truths``: the boxes of the data set.
        cut: candidates over the score that did not fit under the limit before NMS.
        over: boxes that NMS kept and that did not fit under the limit of a picture.
        seconds: of all; ``stages``: of each stage, by name. Preparing counts what the network waited for it.
    """

    loss: LossParts
    scores: AveragePrecision
    found: tuple[PictureBoxes, ...]
    cut: int
    seconds: float
    truths: tuple[PictureBoxes, ...] = ()
    over: int = 0
    stages: dict[str, float] = field(default_factory=dict)


def validate(
    network: Callable[[Tensor], Outputs],
    batches: Iterable[Batch],
    samples: Sequence[Sample],
    loss: DetectionLoss,
    device: str,
    image_size: int,
    selection: Selection = DEFAULT,
    on_progress: Callable[[int, int], None] | None = None,
) -> Validation:
    """Loss and AP of ``network`` (uint8 images on ``device`` to raw maps) on ``samples``, in the order of ``batches``.

    ``on_progress(done, total)`` counts pictures.

    Raises:
        EvaluationError: the network gives values that are not finite.
    """
    clock = _Clock(device)
    sums: BranchSums | None = None
    found: list[PictureBoxes] = []
    cut = over = 0
    with torch.inference_mode():
        for batch in _timed(batches, clock):
            maps = network(batch.images.to(device, non_blocking=True)).main
            clock.lap("network")
            of_batch = branch_sums(maps, batch.targets.to(device))
            sums = (
                of_batch
                if sums is None
                else BranchSums(*(a + b for a, b in zip(sums, of_batch, strict=True)))
            )
            clock.lap("loss")
            boxes, scores = decode(maps)
            for index, box, score in zip(batch.indices, boxes, scores, strict=True):
                one, too_early, too_late = detections(box, score, samples[index], image_size, selection)
                found.append(one)
                cut, over = cut + too_early, over + too_late
            clock.lap("NMS")
            if on_progress is not None:
                on_progress(len(found), len(samples))
    assert sums is not None  # a data set without pictures is refused before
    parts = LossParts(*(part.cpu() for part in loss.parts(sums)))
    if not all(torch.isfinite(part) for part in parts):
        raise EvaluationError("the weights give values that are not finite on the validation pictures")
    truths = tuple(PictureBoxes(s.boxes, s.labels, np.ones(len(s.labels), np.float32)) for s in samples)
    scored = average_precision(truths, found, loss.num_classes, selection.max_detections)
    clock.lap("scoring")
    return Validation(parts, scored, tuple(found), cut, clock.seconds, truths, over, clock.stages)


def detections(
    boxes: Tensor, scores: Tensor, sample: Sample, image_size: int, selection: Selection = DEFAULT
) -> tuple[PictureBoxes, int, int]:
    """Detections of one picture, A x 4 input pixels and A x C scores; candidates that were cut, boxes that were."""
    if selection.multi_label:
        place, label = (scores > selection.min_score).nonzero(as_tuple=True)
    else:
        best_score, best_label = scores.max(1)
        place = (best_score > selection.min_score).nonzero().squeeze(1)
        label = best_label[place]
    score = scores[place, label]
    cut = max(0, len(score) - selection.max_candidates)
    if cut:
        score, best = score.topk(selection.max_candidates)
        place, label = place[best], label[best]
    candidates = boxes[place]
    keep = nms(candidates, score, label, selection.max_iou)
    over = max(0, len(keep) - selection.max_detections)
    keep = keep[: selection.max_detections]
    width, height = sample.size_wh
    box = letterbox((height, width), (image_size, image_size)).undo(candidates[keep].cpu().numpy())
    one = PictureBoxes(clip(box, (height, width)), label[keep].cpu().numpy(), score[keep].cpu().numpy())
    return one, cut, over


class _Clock:
    """Seconds by stage. On a GPU each lap waits for its work, which the next stage would do anyway."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._start = self._last = time.monotonic()
        self.stages: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        synchronize(self._device)
        now = time.monotonic()
        self.stages[stage] = self.stages.get(stage, 0.0) + now - self._last
        self._last = now

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._start


def _timed(batches: Iterable[Batch], clock: _Clock) -> Iterator[Batch]:
    for batch in batches:
        clock.lap("preparing")
        yield batch
