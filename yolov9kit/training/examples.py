"""Some validation pictures with what the newest weights find on them, for eyes that follow a run."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from yolov9kit.data.dataset import Sample
from yolov9kit.errors import TrainingError
from yolov9kit.evaluation.average_precision import PictureBoxes
from yolov9kit.model.checkpoint import replace_file
from yolov9kit.types import Candidates, Detections

EXAMPLES = "examples.json"
PICTURES = 12
"""As many are kept, evenly spread over the validation set."""

LEAST_SCORE = 0.05
"""Detections below are left out: early in a run there are hundreds of them on every picture."""

MOST_BOXES = 100


@dataclass(frozen=True, eq=False)
class Example:
    """One picture: its objects (each with score 1) and what was found, both in picture pixels, both with candidates."""

    path: Path
    truth: Detections
    found: Detections


def write_examples(
    folder: Path, epoch: int, samples: Sequence[Sample], found: Sequence[PictureBoxes], names: Sequence[str]
) -> Path:
    """Write ``folder/examples.json``, in place of that of the evaluation before. ``found`` is in ``samples``' order.

    Raises:
        CheckpointError: the disk refused; what was there before is still there.
    """
    chosen = np.unique(np.linspace(0, len(samples) - 1, min(PICTURES, len(samples))).round().astype(int))
    pictures = []
    for index in chosen.tolist():
        sample, boxes = samples[index], found[index]
        kept = np.flatnonzero(boxes.scores > LEAST_SCORE)[:MOST_BOXES]
        pictures.append(
            {
                "path": str(sample.path.absolute()),
                "size": list(sample.size_wh),
                "objects": _rows(sample.boxes, sample.labels),
                "found": [
                    [*row, round(score, 4)]
                    for row, score in zip(
                        _rows(boxes.boxes[kept], boxes.labels[kept]), boxes.scores[kept].tolist(), strict=True
                    )
                ],
            }
        )
    record = {"epoch": epoch, "names": list(names), "pictures": pictures}
    replace_file(
        folder / EXAMPLES, json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace")
    )
    return folder / EXAMPLES


def read_examples(folder: str | Path) -> tuple[int, list[Example]]:
    """The epoch they are of, and the examples; epoch 0 and none before a run's first evaluation.

    Raises:
        TrainingError: the file is there and cannot be read.
    """
    path = Path(folder) / EXAMPLES
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        names = tuple(record["names"])
        return record["epoch"], [_example(picture, names) for picture in record["pictures"]]
    except FileNotFoundError:
        return 0, []
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TrainingError(f"{path}: cannot be read ({error})") from None


def _rows(boxes: np.ndarray, labels: np.ndarray) -> list[list[Any]]:
    return [
        [*(round(value, 2) for value in box), label]
        for box, label in zip(boxes.tolist(), labels.tolist(), strict=True)
    ]


def _example(record: dict[str, Any], names: tuple[str, ...]) -> Example:
    path, size = record["path"], (int(record["size"][0]), int(record["size"][1]))
    objects = [[*row, 1.0] for row in record["objects"]]
    return Example(
        Path(path), _detections(objects, names, size, path), _detections(record["found"], names, size, path)
    )


def _detections(
    rows: list[list[Any]], names: tuple[str, ...], size: tuple[int, int], path: str
) -> Detections:
    table = np.array(rows, np.float32).reshape(-1, 6)
    boxes, labels, scores = table[:, :4].copy(), table[:, 4].astype(np.int64), table[:, 5].copy()
    candidates = Candidates(boxes, scores, labels, LEAST_SCORE)
    return Detections(boxes, scores, labels, names, size, path, candidates=candidates)
