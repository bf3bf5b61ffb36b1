"""Four corners: turned rectangles are known in pixels, whatever the picture's shape."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.data.corners import corners_of


def shares(corners: np.ndarray, size_wh: tuple[int, int], digits: int = 6) -> tuple[float, ...]:
    width, height = size_wh
    return tuple(round(number, digits) for z in corners for number in (z.real / width, z.imag / height))


def turned(size: complex, degrees: float, centre: complex) -> np.ndarray:
    a, b = size.real / 2, size.imag / 2
    return centre + np.exp(1j * np.radians(degrees)) * np.array(
        [complex(-a, -b), complex(a, -b), complex(a, b), complex(-a, b)]
    )


sizes = st.tuples(st.integers(200, 4000), st.integers(200, 4000))
sides = st.floats(0.1, 0.6)


@given(sizes, sides, sides, st.floats(3, 87), st.integers(0, 3), st.sampled_from([4, 6]))
def test_a_turned_rectangle_is_oriented_whatever_its_first_corner_and_digits(
    size_wh: tuple[int, int], w: float, h: float, degrees: float, first: int, digits: int
) -> None:
    size = complex(w, h) * min(size_wh)
    corners = np.roll(turned(size, degrees, complex(*size_wh) / 2), first)
    assert corners_of(shares(corners, size_wh, digits), size_wh) == "oriented"
    assert corners_of(shares(corners[::-1], size_wh, digits), size_wh) == "oriented"


@given(sizes, sides, sides, st.integers(0, 3), st.sampled_from([0, 90, 180, 270]))
def test_an_upright_one_is_unclear(
    size_wh: tuple[int, int], w: float, h: float, first: int, degrees: int
) -> None:
    size = complex(w, h) * min(size_wh)
    corners = np.roll(turned(size, degrees, complex(*size_wh) / 2), first)
    assert corners_of(shares(corners, size_wh), size_wh) == "unclear"


@given(sizes, sides, sides, st.floats(0, 360), st.integers(0, 3), st.floats(0.1, 0.4))
def test_with_one_corner_moved_it_is_a_polygon(
    size_wh: tuple[int, int], w: float, h: float, degrees: float, i: int, away: float
) -> None:
    size = complex(w, h) * min(size_wh)
    corners = turned(size, degrees, complex(*size_wh) / 2)
    corners[i] += away * (corners[i] - complex(*size_wh) / 2)
    assert corners_of(shares(corners, size_wh), size_wh) == "polygon"


def test_a_thin_one_is_oriented_and_a_cut_off_one_unclear() -> None:
    thin = turned(300 + 1j, 30, 320 + 240j)
    assert corners_of(shares(thin, (640, 480)), (640, 480)) == "oriented"
    cut = turned(300 + 100j, 30, 100 + 240j)
    kept = np.maximum(cut.real, 0) + 1j * cut.imag
    assert corners_of(shares(kept, (640, 480)), (640, 480)) == "unclear"


def test_a_square_in_shares_is_no_rectangle_in_a_wide_picture() -> None:
    diamond = (0.5, 0.4, 0.6, 0.5, 0.5, 0.6, 0.4, 0.5)
    assert corners_of(diamond, (500, 500)) == "oriented"
    assert corners_of(diamond, (1000, 500)) == "polygon"


@pytest.mark.parametrize(
    "corners",
    [
        (0.1, 0.1, 0.5, 0.2, 0.4, 0.6),
        (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1),
        (0.1, 0.1, 0.5, 0.5, 0.5, 0.5, 0.1, 0.1),
        (100.0, 50.0, 150.0, 100.0, 100.0, 150.0, 50.0, 100.0),
        (1e308, 1e308, -1e308, 1e308, 1e308, 0.0, 0.0, 0.0),
    ],
)
def test_lines_points_pixels_and_nonsense_are_polygons(corners: tuple[float, ...]) -> None:
    assert corners_of(corners, (640, 640)) == "polygon"
