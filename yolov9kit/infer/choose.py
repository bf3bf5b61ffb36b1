"""Which boxes stay: from raw maps to locations, and from locations to what is shown."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from yolov9kit.data.letterbox import clip
from yolov9kit.errors import KitError, UsageError
from yolov9kit.geometry import anchor_points, nms
from yolov9kit.infer.config import DetectConfig
from yolov9kit.model.decode import BINS, STRIDES, boxes_in_few_cells
from yolov9kit.types import Candidates, Detections

Located = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Boxes N x 4, scores N, labels N of one picture."""


def best_classes(maps: Sequence[Tensor], min_score: float, precision: str) -> list[Located]:
    """Per picture: boxes (input pixels), scores and labels of the locations whose best class scores enough.

    Everything but the largest logit is computed for these locations alone, a hundredth of all.
    """
    maps = [level.float() for level in maps]
    points, scale = anchor_points([(level.shape[-2], level.shape[-1]) for level in maps], STRIDES)
    least = _logit(min_score)
    columns, pictures, locations, first = [], [], [], 0
    for level in maps:
        highest = _highest(level)
        if highest is None:
            raise not_finite(precision)
        picture, location = (highest > least).nonzero(as_tuple=True)
        columns.append(level.flatten(2)[picture, :, location])
        pictures.append(picture)
        locations.append(location + first)
        first += highest.shape[1]
    pictured, located = (torch.cat(numbers).cpu().numpy() for numbers in (pictures, locations))
    column = torch.cat(columns).cpu()
    scores = column[:, 4 * BINS :].sigmoid().numpy()
    best = scores.max(axis=1)
    order = np.lexsort((located, pictured))  # picture by picture, in the order of locations
    order = order[best[order] > np.float32(min_score)]
    pictured, located = pictured[order], located[order]
    cells = boxes_in_few_cells(column[:, : 4 * BINS].numpy()[order], points.numpy()[located])
    found = cells * scale.numpy()[located], best[order], scores.argmax(axis=1)[order]
    cuts = np.searchsorted(pictured, np.arange(1, len(maps[0])))
    return list(zip(*(np.split(values, cuts) for values in found), strict=True))


def _logit(score: float) -> float:
    """A logit whose sigmoid is surely no more than ``score``, and hardly less."""
    if not 0 < score < 1:
        return -math.inf if score <= 0 else 16.0  # from there on float32 rounds the sigmoid to 1
    logit = math.log(score / (1 - score))
    return logit - 1e-3 * (1 + abs(logit))


def _highest(level: Tensor) -> Tensor | None:
    """The largest logit of each location, B x h * w; None where the map holds numbers that are not finite.

    NumPy on a processor: it takes no threads, and torch's, once awake, take ONNX Runtime's cores from it for a while
    (53 against 63 ms a picture of 640 px on two cores).
    """
    if level.device.type == "cpu":
        values = level.detach().numpy()
        highest = torch.from_numpy(values[:, 4 * BINS :].max(axis=1)).flatten(1)
        finite = bool(np.isfinite(values[:, : 4 * BINS]).all() and not np.isnan(highest.numpy()).any())
    else:
        highest = level[:, 4 * BINS :].amax(dim=1).flatten(1)
        finite = bool(torch.isfinite(level[:, : 4 * BINS]).all() & ~torch.isnan(highest).any())
    return highest if finite else None


def not_finite(precision: str) -> KitError:
    """What to say when the network gave NaN or infinity."""
    why = (
        "its numbers exceed what fp16 can hold. Take bf16 or fp32."
        if precision == "fp16"
        else "the weights are damaged."
    )
    return KitError(f"the network gave values that are not finite in {precision}: {why}")


def by_score(located: Located) -> Located:
    """The best first; equal ones keep their order."""
    boxes, scores, labels = located
    order = np.argsort(-scores, kind="stable")
    return boxes[order], scores[order], labels[order]


def kept_candidates(located: Located, count: int, config: DetectConfig) -> Candidates | None:
    """The best of ``count`` candidates, if they were asked for."""
    if not config.keep_candidates:
        return None
    boxes, scores, labels = (values[: config.max_candidates] for values in located)
    return Candidates(boxes, scores, labels, config.floor, cut=count - len(scores))


def select(
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
    boxes, scores, labels = select(
        candidates.boxes, candidates.scores, candidates.labels, detections.picture_wh, config
    )
    return replace(detections, boxes=boxes, scores=scores, labels=labels)
