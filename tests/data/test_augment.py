"""Augmentation: the identity changes nothing, boxes stay on their pixels, and the fast way equals the plain one."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.drawn_samples import smooth_noise
from yolov9kit.data.augment import (
    NO_AUGMENTATION,
    AugmentConfig,
    Plan,
    Tile,
    affine,
    affine_matrix,
    flip,
    hsv,
    mixup,
    mosaic,
    move_boxes,
    place,
    plan,
    render,
    visible,
)
from yolov9kit.data.letterbox import PAD_VALUE, letterbox
from yolov9kit.errors import UsageError

SIZE = 96
SIZES_WH = [(96, 64), (64, 96), (96, 96), (96, 20), (50, 96)]
UPRIGHT = AugmentConfig(hue=0.0, saturation=0.0, value=0.0, mixup=0.0, scale=0.5)
TURNED = AugmentConfig(hue=0.0, saturation=0.0, value=0.0, mixup=0.0, scale=0.5, degrees=30.0, shear=10.0)
SEEDS = st.integers(0, 2**32)
few = settings(deadline=None, max_examples=60)


def drawn(seed: int, config: AugmentConfig, index: int = 0, mosaic: bool = True) -> Plan:
    return plan(np.random.default_rng(seed), config, index, SIZES_WH, SIZE, mosaic)


def rectangle(width: int, height: int, box: tuple[int, int, int, int]) -> np.ndarray:
    """White on black."""
    image = np.zeros((height, width, 3), np.uint8)
    image[box[1] : box[3], box[0] : box[2]] = 255
    return image


def bright(image: np.ndarray) -> np.ndarray:
    """The box around what is more white than black; of a picture without any, one without size."""
    rows, columns = np.nonzero(image[..., 0] > 127)
    if not len(rows):
        return np.zeros(4)
    return np.array([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])


def picture(index: int) -> np.ndarray:
    width, height = SIZES_WH[index]
    return smooth_noise(index, height, width)


# ---------------------------------------------------------------------------------------------- the plain way


def canvas_of(offsets: Plan) -> tuple[np.ndarray, np.ndarray]:
    """The four pictures of a plan without any affine pasted into a canvas, and whose each pixel is (-1: nobody's)."""
    canvas = np.full((2 * SIZE, 2 * SIZE, 3), PAD_VALUE, np.uint8)
    owner = np.full((2 * SIZE, 2 * SIZE), -1, np.int16)
    for number, tile in enumerate(offsets.tiles):
        left, top = (tile.matrix[:, 2] + SIZE / 2).astype(int)
        x0, y0, x1, y1 = tile.clip
        canvas[top + y0 : top + y1, left + x0 : left + x1] = picture(tile.index)[y0:y1, x0:x1]
        assert (owner[top + y0 : top + y1, left + x0 : left + x1] == -1).all(), "tiles overlap"
        owner[top + y0 : top + y1, left + x0 : left + x1] = number
    return canvas, owner


def seams(owner: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Which output pixels lie near the rim of a tile."""
    margin = 2  # rims just outside count too
    moved = matrix + np.array([[0, 0, margin], [0, 0, margin]])
    wide = (SIZE + 2 * margin, SIZE + 2 * margin)
    warped = cv2.warpAffine(
        owner, moved, wide, flags=cv2.INTER_NEAREST, borderMode=cv2.BORDER_CONSTANT, borderValue=-1
    )
    near = np.ones((2 * margin + 1, 2 * margin + 1), np.uint8)
    rims = cv2.dilate(warped, near) != cv2.erode(warped, near)
    return np.asarray(rims[margin:-margin, margin:-margin])


@few
@given(SEEDS, st.sampled_from([UPRIGHT, TURNED]), st.integers(0, 4))
def test_tiles_warped_straight_equal_a_canvas_warped_at_once(
    seed: int, config: AugmentConfig, index: int
) -> None:
    still = AugmentConfig(
        hue=0.0, saturation=0.0, value=0.0, mixup=0.0, scale=0.0, translate=0.0, flip_lr=0.0
    )
    offsets, moved = drawn(seed, still, index), drawn(seed, config, index)  # the same numbers are drawn
    assert [t.index for t in offsets.tiles] == [t.index for t in moved.tiles]
    canvas, owner = canvas_of(offsets)
    left_top = offsets.tiles[0].matrix[:, 2] + SIZE / 2
    linear = moved.tiles[0].matrix[:, :2]
    shift = moved.tiles[0].matrix[:, 2] - linear @ left_top
    matrix = np.column_stack((linear, shift + linear @ (0.5, 0.5) - 0.5))
    expected = cv2.warpAffine(
        canvas, matrix, (SIZE, SIZE), borderMode=cv2.BORDER_CONSTANT, borderValue=(PAD_VALUE,) * 3
    )
    difference = np.abs(render(moved, picture).astype(int) - expected)
    inner = ~seams(owner, matrix)
    assert inner.mean() > 0.3
    assert difference[inner].max() <= 2


@few
@given(SEEDS)
def test_no_gap_between_tiles(seed: int) -> None:
    config = AugmentConfig(mixup=0.0, scale=0.3, translate=0.0, degrees=20.0, shear=5.0)
    squares = [(SIZE, SIZE)] * 4  # they cover the canvas around its centre without a hole
    drawn_plan = plan(np.random.default_rng(seed), config, 0, squares, SIZE)
    white = render(drawn_plan, lambda index: np.full((SIZE, SIZE, 3), 250, np.uint8))
    matrix = drawn_plan.tiles[0].matrix
    away = np.abs(np.linalg.inv(matrix[:, :2])).sum(1).max()  # canvas pixels of an output pixel
    reach = (
        int(SIZE / 2 / away) - 2
    )  # what surely comes from the middle of the canvas, which pictures always cover
    middle = slice(SIZE // 2 - reach, SIZE // 2 + reach)
    assert len(np.unique(white[middle, middle].reshape(-1, 3), axis=0)) == 1


# ---------------------------------------------------------------------------------------------- boxes


@few
@given(SEEDS, st.booleans())
def test_the_box_of_an_upright_picture_is_tight(seed: int, as_mosaic: bool) -> None:
    box = np.array([[20, 10, 60, 44]], np.float32)
    moved = drawn(
        seed,
        AugmentConfig(0.0 if not as_mosaic else 1.0, 0.0, hue=0.0, saturation=0.0, value=0.0, flip_ud=0.5),
    )
    pictures = {0: rectangle(96, 64, (20, 10, 60, 44))}
    tile = moved.tiles[0]
    alone = Plan(moved.size, (tile,))
    seen = bright(render(alone, pictures.__getitem__))
    boxes, labels = place(alone, lambda _: box, lambda _: np.array([7]))
    assert len(boxes) == len(labels) <= 1
    if len(boxes):
        assert labels[0] == 7
        assert np.abs(boxes[0] - seen).max() <= 0.5 + 0.05  # a pixel counts by its centre


@few
@given(SEEDS)
def test_the_box_of_a_turned_picture_holds_it(seed: int) -> None:
    box = np.array([[20, 10, 60, 44]], np.float32)
    tile = drawn(seed, TURNED, mosaic=False).tiles[0]
    alone = Plan(SIZE, (tile,))
    seen = bright(render(alone, {0: rectangle(96, 64, (20, 10, 60, 44))}.__getitem__))
    around = move_boxes(box, tile.matrix, SIZE)[0]
    outside = np.concatenate((around[:2] - seen[:2], seen[2:] - around[2:]))
    assert outside.max() <= 0.6 or not seen.any()
    if around.min() > 0 and around.max() < SIZE:  # nothing cut off
        assert np.abs(around - seen).max() <= 2


@few
@given(
    SEEDS,
    st.sampled_from([AugmentConfig(), AugmentConfig(degrees=45.0, shear=20.0, translate=0.5)]),
    st.booleans(),
)
def test_boxes_stay_inside_and_are_large_enough(seed: int, config: AugmentConfig, as_mosaic: bool) -> None:
    rng = np.random.default_rng(seed)
    corners = {i: np.sort(rng.random((8, 2, 2)), axis=1) * wh for i, wh in enumerate(SIZES_WH)}
    boxes = {i: its.reshape(-1, 4).astype(np.float32) for i, its in corners.items()}
    found, labels = place(drawn(seed, config, 1, as_mosaic), boxes.__getitem__, lambda _: np.arange(8))
    assert found.dtype == np.float32 and labels.dtype == np.int64 and len(found) == len(labels)
    assert ((found >= 0) & (found <= SIZE)).all()
    assert (found[:, 2:] - found[:, :2] > 2).all()


def test_small_cut_off_and_stretched_boxes_are_left_out() -> None:
    after = np.array([[0, 0, 2, 9], [0, 0, 3, 9], [0, 0, 3, 301], [0, 0, 3, 299], [0, 0, 9, 9]], np.float32)
    before = after.copy()
    before[4] = [0, 0, 9, 90.1]  # less than a tenth is left
    assert visible(before, after).tolist() == [False, True, False, True, False]
    before[4] = [0, 0, 9, 89.9]
    assert visible(before, after).tolist() == [False, True, False, True, True]
    assert visible(before, after, area_gain=1.1).tolist() == [False, True, False, True, False]
    assert visible(before[:0], after[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("scale", "left", "count"),
    [(2, 0.0, 1), (2, -43.0, 1), (2, -47.0, 0), (0.5, 0.0, 1), (0.5, -10.0, 1)],
)
def test_a_tenth_of_the_scaled_box_must_show(scale: float, left: float, count: int) -> None:
    box = np.array([[1, 1, 26, 26]], np.float32)  # 50 or 12.5 pixels wide in the output, from ``left`` on
    tile = Tile(0, np.array([[scale, 0, left - scale], [0, scale, 0]]), (0, 0, 90, 90))
    assert len(place(Plan(SIZE, (tile,)), lambda _: box, lambda _: np.array([0]))[0]) == count


def test_a_box_is_held_to_what_shows_of_its_picture() -> None:
    image = rectangle(64, 64, (0, 0, 64, 64))
    boxes = np.array([[10, 10, 50, 50]], np.float32)
    canvas, moved = mosaic([image] * 4, [boxes] * 4, (32, 96), 64)
    assert moved.tolist() == [[0, 42, 18, 82], [42, 42, 82, 82], [0, 106, 18, 128], [42, 106, 82, 128]]
    assert canvas.shape == (128, 128, 3)
    assert (
        (canvas[32:, :96] == 255).all()
        and (canvas[:32] == PAD_VALUE).all()
        and (canvas[:, 96:] == PAD_VALUE).all()
    )


# ---------------------------------------------------------------------------------------------- single steps


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("as_mosaic", [False, True])
def test_no_augmentation_is_the_letterbox(index: int, as_mosaic: bool) -> None:
    width, height = SIZES_WH[index]
    place_in = letterbox((height, width), (SIZE, SIZE))
    whole = np.array([[3, 4, width - 2, height - 1]], np.float32)
    nothing = drawn(index, NO_AUGMENTATION, index, as_mosaic)
    assert np.array_equal(render(nothing, picture), place_in.apply(picture(index)))
    assert np.array_equal(
        place(nothing, lambda _: whole, lambda _: np.array([0]))[0], place_in.forward(whole)
    )


def test_the_identity_is_the_identity() -> None:
    image, boxes = picture(2), np.array([[1, 2, 30, 40.5]], np.float32)
    for same_image, same_boxes in (
        affine(image, boxes, np.eye(3), SIZE),
        affine(image, boxes, affine_matrix((SIZE, SIZE), SIZE), SIZE),
        flip(image, boxes, left_right=False),
        (hsv(image, (1.0, 1.0, 1.0)), boxes),
        (mixup(image, image, 0.37), boxes),
        (mixup(image, picture(0)[:1].repeat(SIZE, 0), 1.0), boxes),
    ):
        assert np.array_equal(same_image, image) and np.array_equal(same_boxes, boxes)


@few
@given(SEEDS, st.booleans(), st.booleans())
def test_flipping_twice_changes_nothing(seed: int, left_right: bool, up_down: bool) -> None:
    image = np.random.default_rng(seed).integers(0, 256, (5, 8, 3), dtype=np.uint8)
    boxes = np.array([[1, 1, 3, 4], [0, 2, 8, 5]], np.float32)
    once, once_boxes = flip(image, boxes, left_right, up_down)
    assert (once_boxes[:, :2] < once_boxes[:, 2:]).all()
    back, back_boxes = flip(once, once_boxes, left_right, up_down)
    assert np.array_equal(back, image) and np.array_equal(back_boxes, boxes)


@few
@given(st.floats(-180, 180), st.floats(0.5, 2), st.floats(-0.3, 0.3), st.floats(-0.3, 0.3))
def test_the_canvas_centre_comes_where_it_is_sent(degrees: float, scale: float, x: float, y: float) -> None:
    matrix = affine_matrix((200, 120), SIZE, degrees, scale, (3.0, -2.0), (x, y))
    assert matrix @ (100, 60, 1) == pytest.approx([(0.5 + x) * SIZE, (0.5 + y) * SIZE, 1])
    plain = affine_matrix((200, 120), SIZE, degrees, scale)
    assert abs(np.linalg.det(plain)) == pytest.approx(scale**2)
    assert plain @ (101, 60, 0) == pytest.approx(  # counter-clockwise, y points down
        [scale * (101 * np.cos(np.radians(degrees)) + 60 * np.sin(np.radians(degrees))),
         scale * (60 * np.cos(np.radians(degrees)) - 101 * np.sin(np.radians(degrees))), 0]
    )  # fmt: skip


@pytest.mark.parametrize(("config", "flipped"), [("flip_lr", (True, False)), ("flip_ud", (False, True))])
def test_a_planned_flip_is_a_flip(config: str, flipped: tuple[bool, bool]) -> None:
    image, boxes = picture(2), np.array([[1, 2, 30, 40.5]], np.float32)
    never = dict.fromkeys(vars(NO_AUGMENTATION), 0.0)
    mirrored = drawn(0, AugmentConfig(**{**never, config: 1.0}), 2)
    expected, expected_boxes = flip(image, boxes, *flipped)
    assert np.array_equal(render(mirrored, picture), expected)
    assert np.array_equal(place(mirrored, lambda _: boxes, lambda _: np.array([0]))[0], expected_boxes)


def test_colour_gains_multiply() -> None:
    # red, dark green, gray
    image = np.array([[[255, 0, 0], [0, 100, 0], [80, 80, 80]]], np.uint8)
    assert hsv(image, (1.0, 1.0, 0.5)).tolist() == [[[127, 0, 0], [0, 50, 0], [40, 40, 40]]]
    assert hsv(image, (1.0, 0.0, 1.0)).tolist() == [[[255] * 3, [100] * 3, [80] * 3]]
    assert hsv(image, (2.0, 1.0, 1.0)).tolist() == [
        [[255, 0, 0], [0, 0, 100], [80, 80, 80]]
    ]  # 120° twice: blue
    assert hsv(image, (1.0, 1.0, 2.0))[0, 2].tolist() == [160] * 3
    assert hsv(image, (1.0, 1.0, 9.0))[0, 1].tolist() == [0, 255, 0]


def test_mixup_is_only_within_mosaics_and_mixes_boxes_and_pixels() -> None:
    config = AugmentConfig(mixup=1.0, hue=0.0, saturation=0.0, value=0.0)
    mixed = drawn(3, config)
    assert mixed.partner is not None and 0.2 < mixed.ratio < 0.8
    assert drawn(3, config, mosaic=False).partner is None
    parts = [render(Plan(SIZE, p.tiles), picture).astype(float) for p in (mixed, mixed.partner)]
    assert (
        np.abs(mixed.ratio * parts[0] + (1 - mixed.ratio) * parts[1] - render(mixed, picture)).max() <= 0.51
    )
    whole = {i: np.array([[0, 0, *wh]], np.float32) for i, wh in enumerate(SIZES_WH)}
    counts = [
        len(place(p, whole.__getitem__, lambda _: np.array([0]))[0])
        for p in (mixed, Plan(SIZE, mixed.tiles), mixed.partner)
    ]
    assert counts[0] == counts[1] + counts[2] > 0


def test_draws_cover_what_they_promise() -> None:
    plans = [drawn(seed, AugmentConfig(mosaic=0.7), 3) for seed in range(1500)]
    mosaics = [p for p in plans if len(p.tiles) == 4]
    assert 0.65 < len(mosaics) / len(plans) < 0.75
    assert 0.11 < sum(p.partner is not None for p in mosaics) / len(mosaics) < 0.20
    assert 0.45 < sum(p.tiles[0].matrix[0, 0] < 0 for p in plans) / len(plans) < 0.55
    assert all(p.tiles[0].index == 3 for p in plans)
    partners = np.bincount([t.index for p in mosaics for t in p.tiles[1:]]) / (3 * len(mosaics))
    assert partners == pytest.approx([0.2] * 5, abs=0.03)
    scales = [abs(p.tiles[0].matrix[0, 0]) for p in plans]
    assert 0.1 <= min(scales) < 0.15 and 1.85 < max(scales) <= 1.9
    gains = np.array([p.hsv_gains for p in plans])
    assert np.abs(gains - 1).max(0) == pytest.approx([0.015, 0.7, 0.4], rel=0.02)


@pytest.mark.parametrize(
    ("close_scale", "mosaic", "largest"), [(0.1, False, 0.1), (0.1, True, 0.5), (None, False, 0.5)]
)
def test_sizes_change_by_close_scale_where_mosaic_is_off(
    close_scale: float | None, mosaic: bool, largest: float
) -> None:
    config = AugmentConfig(scale=0.5, close_scale=close_scale)
    plans = [plan(np.random.default_rng(seed), config, 3, SIZES_WH, SIZE, mosaic) for seed in range(200)]
    changes = [abs(abs(p.tiles[0].matrix[0, 0]) - 1) for p in plans]
    assert 0.9 * largest < max(changes) <= largest + 1e-9


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"close_scale": 1.0}, "augmentation close_scale = 1.0: must be 0 to 0.99"),
        ({"mosaic": 1.5}, "augmentation mosaic = 1.5: must be 0 to 1"),
        ({"scale": 1.0}, "augmentation scale = 1.0: must be 0 to 0.99"),
        ({"degrees": -1.0}, "augmentation degrees = -1.0: must be 0 to 180"),
        ({"hue": float("nan")}, "augmentation hue = nan: must be 0 to 1"),
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message.replace(".", r"\.")):
        AugmentConfig(**values)
