"""The one preprocessing: there and back, the picture exactly where it says, sizes refused with the nearest."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from yolov9kit.data.letterbox import PAD_VALUE, Letterbox, clip, input_size, letterbox
from yolov9kit.errors import UsageError

SIDES = st.integers(1, 5000)
STEPS = st.integers(1, 40).map(lambda n: 32 * n)


def noise(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def some_boxes(height: int, width: int) -> np.ndarray:
    """Boxes all over the picture, its corners among them."""
    corners = np.random.default_rng(1).random((20, 2, 2)).astype(np.float32)
    corners = np.concatenate((corners, [[[0, 0], [1, 1]]], [[[1, 0], [1, 1]]]))
    return (np.sort(corners, axis=1) * (width, height)).reshape(-1, 4).astype(np.float32)


@settings(deadline=None, max_examples=300)
@given(SIDES, SIDES, st.sampled_from([32, 64, 320, 640, 1280]))
@example(5000, 11, 1280)
@example(1, 5000, 640)
@example(5000, 5000, 32)
def test_there_and_back(height: int, width: int, side: int) -> None:
    box = letterbox((height, width), (side, side))
    boxes = some_boxes(height, width)
    back = box.undo(box.forward(boxes))
    assert back.dtype == np.float32 and back.shape == boxes.shape
    assert np.abs(back - boxes).max() < 1e-3


@settings(deadline=None, max_examples=300)
@given(SIDES, SIDES, STEPS, STEPS)
def test_the_picture_is_as_large_as_fits_and_in_the_middle(
    height: int, width: int, rows: int, columns: int
) -> None:
    box = letterbox((height, width), (rows, columns))
    (inner_height, inner_width), (left, top) = box.inner_hw, box.pad_xy
    assert 1 <= inner_height <= rows and 1 <= inner_width <= columns
    assert inner_height == rows or inner_width == columns
    assert 0 <= columns - inner_width - 2 * left <= 1 and 0 <= rows - inner_height - 2 * top <= 1
    scale = min(rows / height, columns / width)
    assert abs(inner_height - max(height * scale, 1)) <= 0.5 + 1e-9
    assert abs(inner_width - max(width * scale, 1)) <= 0.5 + 1e-9
    whole = box.forward(np.array([[0, 0, width, height]]))[0]
    np.testing.assert_allclose(whole, [left, top, left + inner_width, top + inner_height], atol=1e-3)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([(64, 64), (96, 160), (224, 32)]))
def test_apply_puts_the_picture_exactly_there(height: int, width: int, input_hw: tuple[int, int]) -> None:
    import cv2

    box, picture = letterbox((height, width), input_hw), noise(height, width)
    before = picture.copy()
    applied = box.apply(picture)
    assert applied.shape == (*input_hw, 3) and applied.dtype == np.uint8 and applied.flags.c_contiguous
    (inner_height, inner_width), (left, top) = box.inner_hw, box.pad_xy
    inside = np.zeros(input_hw, bool)
    inside[top : top + inner_height, left : left + inner_width] = True
    assert (applied[~inside] == PAD_VALUE).all()
    expected = cv2.resize(picture, (inner_width, inner_height), interpolation=cv2.INTER_LINEAR)
    np.testing.assert_array_equal(applied[inside].reshape(inner_height, inner_width, 3), expected)
    np.testing.assert_array_equal(picture, before)


def test_e03_1280_x_720_gives_scale_one_half_and_140_above_and_below() -> None:
    box = letterbox((720, 1280), (640, 640))
    assert box.scale_xy == (0.5, 0.5) and box.pad_xy == (0, 140) and box.inner_hw == (360, 640)
    applied = box.apply(np.full((720, 1280, 3), 7, np.uint8))
    assert (applied[:140] == 114).all() and (applied[140:500] == 7).all() and (applied[500:] == 114).all()
    np.testing.assert_array_equal(box.undo(np.array([[0, 140, 640, 500]])), [[0, 0, 1280, 720]])


def test_a_picture_that_fits_is_left_as_it_is() -> None:
    picture = noise(64, 96)
    np.testing.assert_array_equal(letterbox((64, 96), (64, 96)).apply(picture), picture)
    np.testing.assert_array_equal(letterbox((64, 96), (128, 96)).apply(picture)[32:96], picture)


def test_an_odd_pixel_goes_right_and_below() -> None:
    box = letterbox((64, 61), (64, 64))
    assert box.pad_xy == (1, 0)
    applied = box.apply(np.zeros((64, 61, 3), np.uint8))
    assert (applied[:, 0] == 114).all() and (applied[:, 62:] == 114).all() and (applied[:, 1:62] == 0).all()


@pytest.mark.parametrize("picture_hw", [(1, 10_000), (10_000, 1), (1, 1), (3, 40_000)])
def test_extreme_shapes(picture_hw: tuple[int, int]) -> None:
    box = letterbox(picture_hw, (640, 640))
    assert min(box.inner_hw) >= 1 and max(box.inner_hw) == 640
    assert box.apply(np.full((*picture_hw, 3), 200, np.uint8)).max() == 200
    boxes = some_boxes(*picture_hw)
    np.testing.assert_allclose(box.undo(box.forward(boxes)), boxes, atol=5e-3)


@pytest.mark.parametrize("view", ["turned", "mirrored", "blue first", "read-only"])
def test_any_memory_layout_will_do(view: str) -> None:
    picture = noise(50, 80)
    given = {
        "turned": picture.transpose(1, 0, 2),
        "mirrored": picture[:, ::-1],
        "blue first": picture[..., ::-1],
        "read-only": picture.copy(),
    }[view]
    given.flags.writeable = False
    box = letterbox((given.shape[0], given.shape[1]), (64, 64))
    np.testing.assert_array_equal(box.apply(given), box.apply(np.ascontiguousarray(given)))


@pytest.mark.parametrize(
    ("picture", "got"),
    [
        (np.zeros((5, 4, 3), np.uint8), "5 x 4 x 3 uint8"),
        (np.zeros((4, 5), np.uint8), "4 x 5 uint8"),
        (np.zeros((4, 5, 4), np.uint8), "4 x 5 x 4 uint8"),
        (np.zeros((4, 5, 3), np.float32), "4 x 5 x 3 float32"),
    ],
)
def test_another_picture_is_refused(picture: np.ndarray, got: str) -> None:
    with pytest.raises(ValueError, match=f"this letterbox is for 4 x 5 x 3 uint8, the picture is {got}"):
        letterbox((4, 5), (64, 64)).apply(picture)


@pytest.mark.parametrize(
    ("picture_hw", "input_hw"), [((0, 5), (64, 64)), ((5, 0), (64, 64)), ((5, 5), (0, 64))]
)
def test_a_side_without_pixels_is_refused(picture_hw: tuple[int, int], input_hw: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="has no place in an input of"):
        letterbox(picture_hw, input_hw)


def test_no_boxes_there_and_back() -> None:
    box = letterbox((30, 40), (64, 64))
    assert box.undo(np.zeros((0, 4))).shape == box.forward(np.zeros((0, 4))).shape == (0, 4)


def test_it_is_a_value_that_an_export_can_carry() -> None:
    assert letterbox((30, 40), (64, 64)) == Letterbox((30, 40), (64, 64), (48, 64), (0, 8))
    assert len({letterbox((30, 40), (64, 64)), letterbox((30, 40), (64, 64))}) == 1


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.floats(-1e4, 1e4, width=32)] * 4), max_size=8), SIDES, SIDES)
def test_clip_holds_boxes_inside_and_leaves_those_that_are(rows: list, height: int, width: int) -> None:
    boxes = np.array(rows, np.float32).reshape(-1, 4)
    clipped = clip(boxes, (height, width))
    assert clipped.dtype == np.float32 and clipped.shape == boxes.shape
    assert ((clipped >= 0) & (clipped <= [width, height, width, height])).all()
    np.testing.assert_array_equal(clip(clipped, (height, width)), clipped)
    inside = ((boxes >= 0) & (boxes <= [width, height, width, height])).all(axis=1)
    np.testing.assert_array_equal(clipped[inside], boxes[inside])


# --- input sizes


@pytest.mark.parametrize(
    ("given", "hw"),
    [(640, (640, 640)), ((384, 640), (384, 640)), ([32, 64], (32, 64)), (np.int64(640), (640, 640))],
)
def test_one_number_or_two(given: object, hw: tuple[int, int]) -> None:
    found = input_size(given)  # type: ignore[arg-type]
    assert found == hw and all(type(side) is int for side in found)


@pytest.mark.parametrize(
    ("given", "wrong", "nearest"),
    [
        (641, 641, 640),
        (100, 100, 96),
        (0, 0, 32),
        (-64, -64, 32),
        (1, 1, 32),
        ((640, 639), 639, 640),
        ((33, 64), 33, 32),
    ],
)
def test_a_wrong_side_is_refused_with_the_nearest(given: object, wrong: int, nearest: int) -> None:
    message = f"^image size {wrong}: must be a multiple of 32, the nearest is {nearest}$"
    with pytest.raises(UsageError, match=message):
        input_size(given)  # type: ignore[arg-type]
    assert input_size(nearest) == (nearest, nearest)


@settings(deadline=None)
@given(st.integers(-100, 5000))
def test_the_nearest_is_the_nearest(side: int) -> None:
    try:
        assert input_size(side) == (side, side) and side % 32 == 0
    except UsageError as error:
        nearest = int(str(error).rpartition(" ")[2])
        assert all(abs(side - nearest) <= abs(side - other) for other in range(32, 6000, 32))


@pytest.mark.parametrize("given", [(640, 640, 640), (640,), (), (640, True)])
def test_anything_but_one_or_two_numbers_is_refused(given: tuple) -> None:
    with pytest.raises(UsageError, match="give one whole number, or height and width"):
        input_size(given)


def test_another_stride() -> None:
    assert input_size(64, stride=64) == (64, 64)
    with pytest.raises(UsageError, match="must be a multiple of 64, the nearest is 128"):
        input_size(100, stride=64)
