"""The worst pictures of a report, truth beside detections, small enough to send."""

import base64
import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from yolov9kit.data.image import read_image
from yolov9kit.draw import RULE, draw_detections
from yolov9kit.evaluation.average_precision import PictureBoxes
from yolov9kit.evaluation.report import EvalReport, WorstPicture
from yolov9kit.types import Detections

MOST = 24
_LARGEST, _SMALLEST = 560, 160
_GAP = 6


@dataclass(frozen=True)
class Shown:
    """``uri``: a JPEG as a data URI, the objects on the left and the detections on the right."""

    about: WorstPicture
    uri: str


def worst_pictures(report: EvalReport, most_bytes: int) -> list[Shown]:
    """The worst pictures, 24 at most, in ``most_bytes``: as large as they can be.

    Raises:
        PictureError: one of them cannot be read any more.
    """
    worst = report.worst()[:MOST]
    pictures = [read_image(one.path) for one in worst]
    side = _LARGEST
    while True:
        shown = [
            Shown(one, _uri(pair(report, one.index, picture, side)))
            for one, picture in zip(worst, pictures, strict=True)
        ]
        size = sum(len(one.uri) for one in shown)
        if size <= most_bytes or side <= _SMALLEST:
            return shown
        side = max(_SMALLEST, min(round(side * 0.95), round(side * (most_bytes / size) ** 0.6)))


def pair(report: EvalReport, index: int, picture: np.ndarray, side: int) -> np.ndarray:
    """One picture twice, scaled so that its longer side is ``side``: with its objects, with its detections.

    ``picture``: H0 x W0 x 3 uint8. Detections are those that score more than the report's threshold.
    """
    height, width = picture.shape[:2]
    scale = side / max(height, width)
    small_wh = (max(1, round(width * scale)), max(1, round(height * scale)))
    small = np.array(Image.fromarray(picture).resize(small_wh, Image.Resampling.LANCZOS, reducing_gap=2.0))
    truth, found = report.truths[index], report.found[index]
    keep = found.scores > report.threshold
    above = PictureBoxes(found.boxes[keep], found.labels[keep], found.scores[keep])
    left = draw_detections(small, _scaled(truth, scale, report.names, small_wh), scores=False)
    right = draw_detections(small, _scaled(above, scale, report.names, small_wh))
    gap = np.full((small_wh[1], _GAP, 3), RULE, np.uint8)
    return np.concatenate((left, gap, right), 1)


def _scaled(
    one: PictureBoxes, scale: float, names: tuple[str, ...], picture_wh: tuple[int, int]
) -> Detections:
    return Detections(one.boxes * np.float32(scale), one.scores, one.labels, names, picture_wh)


def _uri(pixels: np.ndarray) -> str:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=80, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(file.getvalue()).decode()
