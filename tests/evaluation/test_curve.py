"""Curves against numbers worked out by hand and numbers that were published."""

from pathlib import Path

import numpy as np
import pytest

from tests.evaluation.random_boxes import boxes, random_set
from yolov9kit.errors import UsageError
from yolov9kit.evaluation.average_precision import PictureBoxes
from yolov9kit.evaluation.curve import Curve, Point, curve
from yolov9kit.evaluation.matching import match

RIGHT_WRONG_RIGHT = Curve(np.array([0.9, 0.8, 0.7]), np.array([True, False, True]), 2)


def test_v01_by_hand() -> None:
    assert RIGHT_WRONG_RIGHT.ap() == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert RIGHT_WRONG_RIGHT.ap("voc") == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert RIGHT_WRONG_RIGHT.ap("voc11") == pytest.approx((6 + 5 * 2 / 3) / 11)


@pytest.mark.parametrize(
    ("threshold", "point"),
    [
        (0.95, (None, 0, 0)),
        (0.9, (None, 0, 0)),
        (0.85, (1, 0.5, 2 / 3)),
        (0.75, (0.5, 0.5, 0.5)),
        (0.0, (2 / 3, 1, 0.8)),
    ],
)
def test_points_by_hand(threshold: float, point: tuple[float | None, ...]) -> None:
    assert RIGHT_WRONG_RIGHT.at(threshold) == pytest.approx(Point(*point))
    assert RIGHT_WRONG_RIGHT.f1(np.array([threshold]))[0] == pytest.approx(point[2])


def test_the_padilla_samples_give_the_published_numbers(shared: Path) -> None:
    """24.56 % and 26.84 % at IoU 0.3. Corners are whole pixels that belong to the box, so that one is added."""
    folder = shared / "data/raw/voc_metrics_samples"
    truths, found = [], []
    for file in sorted((folder / "groundtruths").glob("*.txt")):
        truths.append(read_samples(file))
        found.append(read_samples(folder / "detections" / file.name))
    assert (sum(len(t.labels) for t in truths), sum(len(f.labels) for f in found)) == (15, 24)
    one = curve(match(truths, found, 0.3), 0)
    assert 100 * one.ap("voc") == pytest.approx(24.56, abs=0.01)
    assert 100 * one.ap("voc11") == pytest.approx(26.84, abs=0.01)


def read_samples(file: Path) -> PictureBoxes:
    rows = [line.split()[1:] for line in file.read_text().splitlines() if line.strip()]
    values = np.array(rows, np.float32).reshape(len(rows), -1)
    xy, wh = values[:, -4:-2], values[:, -2:]
    scores = values[:, 0] if values.shape[1] == 5 else np.ones(len(rows), np.float32)
    return PictureBoxes(np.concatenate((xy, xy + wh + 1), 1), np.zeros(len(rows), np.int64), scores)


def test_at_counts_what_a_loop_counts() -> None:
    truths, found = random_set(2, pictures=20)
    matches = match(truths, found)
    for label in (None, 0, 4):
        mine = np.ones(len(matches.label), bool) if label is None else matches.label == label
        objects = len(matches.target_label) if label is None else (matches.target_label == label).sum()
        for threshold in (0.0, 0.3, 0.77):
            above = mine & (matches.score > threshold)
            right = (matches.target[above] >= 0).sum()
            precision, recall = right / above.sum(), right / objects
            expected = (precision, recall, 2 * precision * recall / (precision + recall))
            assert curve(matches, label).at(threshold) == pytest.approx(expected)


def test_the_envelope_never_rises_and_ends_in_0_where_recall_is_not_reached() -> None:
    one = Curve(np.array([0.9, 0.8, 0.7]), np.array([False, True, True]), 4)
    assert one.precision_at(np.array([0, 0.25, 0.5, 0.51, 1])) == pytest.approx([2 / 3, 2 / 3, 2 / 3, 0, 0])


@pytest.mark.parametrize("kind", ["coco", "voc", "voc11"])
def test_v08_without_objects_there_is_no_ap_and_without_detections_it_is_0(kind: str) -> None:
    nothing, some = boxes(), boxes((0, 0, 9, 9))
    assert curve(match([nothing], [some]), 0).ap(kind) is None
    assert curve(match([some], [nothing]), 0).ap(kind) == 0
    assert curve(match([some], [some]), 0).ap(kind) == pytest.approx(1)
    assert curve(match([nothing], [some]), 0).at(0.5) == Point(0, None, None)


def test_another_kind_of_ap_is_refused() -> None:
    with pytest.raises(UsageError, match="AP 'pascal': there are coco, voc, voc11"):
        RIGHT_WRONG_RIGHT.ap("pascal")
