"""The upright box around tilted shapes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.data.formats.upright import around_ellipse, around_points, around_tilted

NUMBER = st.floats(-500, 500)
SIDE = st.floats(0, 500)
ANGLE = st.floats(-7, 7)


def turned(points: np.ndarray, angle: float) -> list[tuple[float, float]]:
    cos, sin = math.cos(angle), math.sin(angle)
    return [(x * cos - y * sin, x * sin + y * cos) for x, y in points.tolist()]


@given(x=NUMBER, y=NUMBER, width=SIDE, height=SIDE, angle=ANGLE)
def test_a_tilted_box_is_the_box_around_its_corners(
    x: float, y: float, width: float, height: float, angle: float
) -> None:
    corners = np.array([(-1, -1), (1, -1), (1, 1), (-1, 1)]) * (width / 2, height / 2)
    around = around_points([(x + a, y + b) for a, b in turned(corners, angle)])
    assert around_tilted(x, y, width, height, angle) == pytest.approx(around, abs=1e-6)


@given(x=NUMBER, y=NUMBER, width=SIDE, height=SIDE, angle=ANGLE)
def test_an_ellipse_is_the_box_around_its_rim(
    x: float, y: float, width: float, height: float, angle: float
) -> None:
    steps = np.linspace(0, 2 * math.pi, 721)
    rim = np.stack((width * np.cos(steps), height * np.sin(steps)), 1)
    around = around_points([(x + a, y + b) for a, b in turned(rim, angle)])
    assert around_ellipse(x, y, width, height, angle) == pytest.approx(around, abs=0.02)
