"""Which boxes stay: from raw maps to locations, and from locations to what is shown."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch

from yolov9kit.data.letterbox import clip
from yolov9kit.errors import KitError, UsageError
from yolov9kit.geometry import nms
from yolov9kit.infer.config import DetectConfig
from yolov9kit.model.decode import decode
from yolov9kit.types import Candidates, Detections

Located = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Boxes N x 4, scores N, labels N of one picture."""


def best_classes(maps: Sequence[torch.Tensor], min_score: float, precision: str) -> list[Located]:
    """Per picture: boxes (input pixels), scores and labels of the locations whose best class scores enough."""
    boxes, scores = decode(maps)
    best, labels = scores.max(dim=-1)
    if not bool(torch.isfinite(boxes).all() & torch.isfinite(best).all()):
        raise not_finite(precision)
    keep = best > min_score
    rows = torch.cat((boxes, best[..., None], labels[..., None].float()), dim=-1)
    counts = keep.sum(dim=1).tolist()
    survivors = rows[keep].cpu().numpy()  # one transfer for the whole batch
    parts = np.split(survivors, np.cumsum(counts)[:-1])
    return [(part[:, :4], part[:, 4], part[:, 5].astype(np.int64)) for part in parts]


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
