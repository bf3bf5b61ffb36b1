"""Which boxes of the network are scored. Part of every score: other values give other scores."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Selection:
    """The defaults are those with which the field reports AP.

    ``multi_label``: every class of a location that scores enough is a candidate of its own, else only its best.
    ``max_candidates``: of one picture, before NMS, the best first. ``max_detections``: of one picture, after NMS.
    """

    min_score: float = 0.001
    max_iou: float = 0.7
    max_detections: int = 300
    multi_label: bool = True
    max_candidates: int = 30_000

    def __str__(self) -> str:
        classes = "several classes a box" if self.multi_label else "one class a box"
        return (
            f"score over {self.min_score:g}, NMS at IoU {self.max_iou:g}, {self.max_detections} boxes a picture, "
            f"{classes}"
        )


DEFAULT = Selection()
