"""A model on a validation set: its loss and its AP, from one look at each picture."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from yolov9kit.data.dataset import Sample
from yolov9kit.data.letterbox import clip, letterbox
from yolov9kit.errors import EvaluationError
from yolov9kit.evaluation.average_precision import AveragePrecision, PictureBoxes, average_precision
from yolov9kit.geometry import nms
from yolov9kit.loss.criterion import BranchSums, DetectionLoss, branch_sums
from yolov9kit.model.decode import decode
from yolov9kit.types import Batch, LossParts, Outputs

MIN_SCORE, MAX_IOU, MAX_DETECTIONS, MAX_CANDIDATES = 0.001, 0.7, 300, 30_000
SETTINGS = (
    f"score over {MIN_SCORE}, NMS at IoU {MAX_IOU}, {MAX_DETECTIONS} boxes a picture, several classes a box"
)


@dataclass(frozen=True, eq=False)
class Validation:
    """``loss``: of the main branch, all pictures taken as one batch, per picture. ``found``: the detections that were
    scored, in picture pixels. ``cut``: candidates over the score that did not fit under the limit before NMS."""

    loss: LossParts
    scores: AveragePrecision
    found: tuple[PictureBoxes, ...]
    cut: int
    seconds: float


def validate(
    network: Callable[[Tensor], Outputs],
    batches: Iterable[Batch],
    samples: Sequence[Sample],
    loss: DetectionLoss,
    device: str,
    image_size: int,
) -> Validation:
    """Loss and AP of ``network`` (uint8 images on ``device`` to raw maps) on ``samples``, in the order of ``batches``.

    Raises:
        EvaluationError: the network gives values that are not finite.
    """
    start = time.monotonic()
    sums: BranchSums | None = None
    found: list[PictureBoxes] = []
    cut = 0
    with torch.inference_mode():
        for batch in batches:
            images = batch.images.to(device, non_blocking=True)
            maps = network(images).main
            of_batch = branch_sums(maps, batch.targets.to(device))
            sums = (
                of_batch
                if sums is None
                else BranchSums(*(a + b for a, b in zip(sums, of_batch, strict=True)))
            )
            boxes, scores = decode(maps)
            for index, box, score in zip(batch.indices, boxes, scores, strict=True):
                one, left = detections(box, score, samples[index], image_size)
                found.append(one)
                cut += left
    assert sums is not None  # a data set without pictures is refused before
    parts = LossParts(*(part.cpu() for part in loss.parts(sums)))
    if not all(torch.isfinite(part) for part in parts):
        raise EvaluationError("the weights give values that are not finite on the validation pictures")
    truths = [PictureBoxes(s.boxes, s.labels, np.ones(len(s.labels), np.float32)) for s in samples]
    scored = average_precision(truths, found, loss.num_classes, MAX_DETECTIONS)
    return Validation(parts, scored, tuple(found), cut, time.monotonic() - start)


def detections(boxes: Tensor, scores: Tensor, sample: Sample, image_size: int) -> tuple[PictureBoxes, int]:
    """Detections of one picture, A x 4 input pixels and A x C scores, and how many candidates were cut.

    Every class of a location that scores enough is a candidate of its own.
    """
    place, label = (scores > MIN_SCORE).nonzero(as_tuple=True)
    score = scores[place, label]
    cut = max(0, len(score) - MAX_CANDIDATES)
    if cut:
        score, best = score.topk(MAX_CANDIDATES)
        place, label = place[best], label[best]
    candidates = boxes[place]
    keep = nms(candidates, score, label, MAX_IOU)[:MAX_DETECTIONS]
    width, height = sample.size_wh
    box = letterbox((height, width), (image_size, image_size)).undo(candidates[keep].cpu().numpy())
    one = PictureBoxes(clip(box, (height, width)), label[keep].cpu().numpy(), score[keep].cpu().numpy())
    return one, cut
