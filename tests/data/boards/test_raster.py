"""Rasters of the drawn boards against the plain definition, pixel by pixel."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.data.boards.raster import FINE, Dice, Shapes, box_sum, dilate, fill

SIDE = 24
COORDINATE = st.integers(-8 * FINE, (SIDE + 8) * FINE)
POINT = st.tuples(COORDINATE, COORDINATE)
CENTRES = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), 2) * FINE + FINE // 2
MASKS = st.integers(0, 2**32).map(lambda seed: np.random.default_rng(seed).integers(0, 8, (9, 13)) == 0)


@given(POINT, st.integers(0, 10 * FINE))
def test_discs_cover_the_centres_within_their_radius(centre: tuple[int, int], radius: int) -> None:
    shapes = Shapes(discs=[(*centre, radius)])
    within = ((CENTRES - centre) ** 2).sum(2) <= radius**2
    np.testing.assert_array_equal(fill(shapes, SIDE, SIDE), within)


@given(st.tuples(POINT, POINT, POINT))
def test_triangles_cover_the_centres_on_their_inner_sides(corners: tuple[tuple[int, int], ...]) -> None:
    points = np.array(corners)
    to_next, to_centre = np.roll(points, -1, 0) - points, CENTRES[:, :, None] - points
    sides = to_next[:, 0] * to_centre[..., 1] - to_next[:, 1] * to_centre[..., 0]
    longest = np.abs(to_next).max()
    surely_in = (sides > longest).all(2) | (sides < -longest).all(2)
    surely_out = (sides > longest).any(2) & (sides < -longest).any(2)  # what lies between is on an edge
    covered = fill(Shapes([corners]), SIDE, SIDE)
    assert covered[surely_in].all() and not covered[surely_out].any()


@given(POINT, POINT, st.integers(2 * FINE, 5 * FINE))
def test_a_line_keeps_its_width_at_any_angle(
    start: tuple[int, int], end: tuple[int, int], radius: int
) -> None:
    shapes = Shapes()
    shapes.bone(start, end, radius)
    a, b = np.array(start, float), np.array(end, float)
    share = ((CENTRES - a) @ (b - a) / max((b - a) @ (b - a), 1)).clip(0, 1)
    distance = np.linalg.norm(CENTRES - a - share[..., None] * (b - a), axis=2)
    covered = fill(shapes, SIDE, SIDE)
    assert covered[distance < radius - 2].all() and not covered[distance > radius + 2].any()


@given(MASKS, st.integers(0, 5))
def test_dilate_takes_everything_within_its_radius(mask: np.ndarray, radius: int) -> None:
    y, x = np.indices(mask.shape)
    near = np.zeros_like(mask)
    for v, u in zip(*np.nonzero(mask), strict=True):
        near |= (abs(y - v) <= radius) & (abs(x - u) <= radius)
    np.testing.assert_array_equal(dilate(mask, radius), near)


@given(MASKS)
def test_box_sum_adds_nine_neighbours(mask: np.ndarray) -> None:
    padded = np.pad(mask.astype(np.uint8), 1, mode="edge")
    expected = sum(padded[i : i + mask.shape[0], j : j + mask.shape[1]] for i in range(3) for j in range(3))
    np.testing.assert_array_equal(box_sum(mask.astype(np.uint8)), expected)


def test_dice_keep_to_their_bounds() -> None:
    dice = Dice(np.random.default_rng(0))
    assert {dice.between(-2, 3) for _ in range(5000)} == set(range(-2, 4))
    assert sorted(dice.shuffled("abcde")) == list("abcde")
    assert not dice.chance(0) and dice.chance(100)
