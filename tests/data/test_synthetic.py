"""Drawn pictures: the same on every machine, boxes exact."""

import numpy as np
import pytest

from yolov9kit import draw_shapes
from yolov9kit.data.synthetic import SHAPE_NAMES, _inside


@pytest.mark.parametrize("label", range(len(SHAPE_NAMES)))
@pytest.mark.parametrize("half", [3, 10, 41])
def test_boxes_are_exact(label: int, half: int) -> None:
    y, x = np.mgrid[:100, :100].astype(np.int64)
    mask = _inside(label, x - 50, y - 50, half)
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    assert (columns[0], columns[-1] + 1, rows[-1] + 1) == (50 - half, 50 + half, 50 + half)
    assert rows[0] <= 50 - half + (1 if label == 2 else 0)  # a triangle's tip may be a row lower


def test_drawings_differ_and_hold_what_was_asked() -> None:
    drawings = [draw_shapes(seed, (320, 240), 4) for seed in range(4)]
    assert len({d.pixels.tobytes() for d in drawings}) == 4
    for drawing in drawings:
        assert drawing.pixels.shape == (240, 320, 3) and len(drawing.boxes) == len(drawing.labels) == 4
        assert (drawing.boxes >= 0).all() and (drawing.boxes[:, 2:] <= [320, 240]).all()
