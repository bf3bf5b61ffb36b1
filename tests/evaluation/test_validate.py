"""The one evaluator that training and ``evaluate`` share: what it selects, and its loss."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from yolov9kit.data.dataset import Sample
from yolov9kit.evaluation.selection import DEFAULT, Selection
from yolov9kit.evaluation.validate import SETTINGS, detections, validate
from yolov9kit.loss.criterion import DetectionLoss
from yolov9kit.types import Batch, Outputs, Targets

SAMPLE = Sample(Path("a.png"), (64, 32), np.array([[8, 8, 24, 24]], np.float32), np.array([1]))
BOXES = torch.tensor([[8.0, 24, 24, 40], [9.0, 24, 24, 40], [-9.0, 0, 99, 99]])
SCORES = torch.tensor([[0.2, 0.9], [0.001, 0.8], [0.3, 0.0]])
"""In a 64 x 64 input, the picture lies 16 pixels down."""


def kept(selection: Selection) -> list[tuple[list[float], int, float]]:
    one, _, _ = detections(BOXES, SCORES, SAMPLE, 64, selection)
    return [
        (box.tolist(), int(label), round(float(score), 4))
        for box, label, score in zip(one.boxes, one.labels, one.scores, strict=True)
    ]


def test_boxes_come_back_to_the_picture_and_stay_inside_by_falling_score() -> None:
    assert kept(DEFAULT) == [([8, 8, 24, 24], 1, 0.9), ([0, 0, 64, 32], 0, 0.3), ([8, 8, 24, 24], 0, 0.2)]


def test_a_score_of_the_floor_is_not_over_it() -> None:
    assert len(kept(Selection(max_iou=1.0))) == 4
    assert len(kept(Selection(max_iou=1.0, min_score=0.0009))) == 5
    assert len(kept(Selection(max_iou=1.0, min_score=0.0))) == 5


def test_one_label_takes_the_best_class_of_each_location() -> None:
    assert [(label, score) for _, label, score in kept(Selection(multi_label=False, max_iou=1.0))] == [
        (1, 0.9),
        (1, 0.8),
        (0, 0.3),
    ]


def test_what_the_limits_cut_is_counted() -> None:
    one, cut, over = detections(
        BOXES, SCORES, SAMPLE, 64, Selection(max_iou=1.0, max_candidates=3, max_detections=2)
    )
    assert (one.scores.tolist(), cut, over) == (pytest.approx([0.9, 0.8]), 1, 1)


def test_the_settings_of_training_are_the_defaults_in_words() -> None:
    assert SETTINGS == "score over 0.001, NMS at IoU 0.7, 300 boxes a picture, several classes a box"


def test_loss_and_ap_do_not_depend_on_how_the_set_is_cut() -> None:
    torch.manual_seed(0)
    maps = [torch.randn(4, 64 + 2, side, side) for side in (8, 4, 2)]
    maps[0][:, 64:] += 2
    target = Targets(torch.tensor([[[8.0, 24, 24, 40]]] * 4), torch.tensor([[1]] * 4))

    def network(images: Tensor) -> Outputs:
        first = int(images[0, 0, 0, 0])
        a, b, c = (m[first : first + len(images)] for m in maps)
        return Outputs((a, b, c), None)

    def run(size: int) -> tuple:
        batches = []
        for first in range(0, 4, size):
            images = torch.full((size, 3, 64, 64), first, dtype=torch.uint8)
            targets = Targets(*(t[first : first + size] for t in target))
            batches.append(Batch(images, targets, tuple(range(first, first + size))))
        counted: list[int] = []
        result = validate(
            network, batches, [SAMPLE] * 4, DetectionLoss(2), "cpu", 64,
            on_progress=lambda done, total: counted.append(done),
        )  # fmt: skip
        assert counted == list(range(size, 5, size))
        assert set(result.stages) == {"preparing", "network", "loss", "NMS", "scoring"}
        assert 0 < sum(result.stages.values()) <= result.seconds
        return (
            [float(part) for part in result.loss],
            result.scores,
            [one.scores.tolist() for one in result.found],
        )

    whole, halves, single = run(4), run(2), run(1)
    assert halves[0] == pytest.approx(whole[0], rel=1e-5) and single[0] == pytest.approx(whole[0], rel=1e-5)
    assert halves[1:] == whole[1:] and single[1:] == whole[1:]
    assert min(whole[0]) > 0
