"""What training does to pictures and boxes: mosaic, mixup, affine, colour, flip.

Drawing the random numbers (``plan``) stands apart from using them: ``render`` makes the picture and ``place`` the
boxes of a plan. The single steps below are the same operations for use on their own. Pictures are H x W x 3 uint8
RGB, boxes N x 4 float32 xyxy pixels.

Positions count from the corner of the first pixel, whose centre is (0.5, 0.5), so a box from 2 to 5 covers the pixels
2, 3 and 4. *Prepared* pictures are scaled so that their longer side is the input size S.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from yolov9kit.data.letterbox import PAD_VALUE, letterbox
from yolov9kit.errors import UsageError

NO_COLOUR_CHANGE = (1.0, 1.0, 1.0)
_SMALLEST_SIDE = 2.0
_SMALLEST_SHARE = 0.1
_LARGEST_ASPECT = 100.0


@dataclass(frozen=True)
class AugmentConfig:
    """How strongly pictures are changed.

    ``mosaic``, ``mixup`` (only of mosaics), ``flip_lr``, ``flip_ud``: probabilities. ``degrees`` (at most 180) and
    ``shear`` (below 90): largest angle to either side. ``translate``: largest shift, as a share of the input.
    ``scale``: the size is multiplied by ``1 - scale`` to ``1 + scale``; ``close_scale`` stands in for it when mosaic is
    off, None: it does not. ``hue``, ``saturation``, ``value``: largest relative change.

    Raises:
        UsageError: a value outside its range.
    """

    mosaic: float = 1.0
    mixup: float = 0.15
    degrees: float = 0.0
    translate: float = 0.1
    scale: float = 0.9
    shear: float = 0.0
    hue: float = 0.015
    saturation: float = 0.7
    value: float = 0.4
    flip_lr: float = 0.5
    flip_ud: float = 0.0
    close_scale: float | None = None

    def __post_init__(self) -> None:
        for name, given in vars(self).items():
            highest = {"degrees": 180.0, "shear": 89.0, "scale": 0.99, "close_scale": 0.99}.get(name, 1.0)
            if given is not None and not 0 <= given <= highest:  # not a number fails too
                raise UsageError(f"augmentation {name} = {given}: must be 0 to {highest:g}")


NO_AUGMENTATION = AugmentConfig(*[0.0] * 11)


@dataclass(frozen=True, eq=False)
class Tile:
    """One prepared picture's place in the output.

    ``matrix`` 2 x 3 float64 maps its pixels to output pixels; ``clip`` is the part of it that shows, xyxy in whole
    pixels of the prepared picture. Neighbouring tiles do not overlap.
    """

    index: int
    matrix: np.ndarray
    clip: tuple[int, int, int, int]


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything drawn for one training picture of ``size`` x ``size``; flips are part of the tiles' matrices.

    ``hsv_gains`` multiply hue, saturation and value. With ``partner`` the picture is the mix
    ``ratio * this + (1 - ratio) * partner``, of which only the tiles count: colours change after mixing.
    """

    size: int
    tiles: tuple[Tile, ...]
    hsv_gains: tuple[float, float, float] = NO_COLOUR_CHANGE
    partner: "Plan | None" = None
    ratio: float = 1.0


# ---------------------------------------------------------------------------------------------- drawing


def plan(
    rng: np.random.Generator,
    config: AugmentConfig,
    index: int,
    sizes_wh: Sequence[tuple[int, int]],
    size: int,
    mosaic: bool = True,
) -> Plan:
    """Draws how the picture ``index`` becomes a training picture.

    ``sizes_wh``: of all prepared pictures, among which partners are drawn evenly. ``mosaic=False``: this picture
    alone, letterboxed, without mixup, as in the last epochs of a training.
    """
    if not mosaic and config.close_scale is not None:
        config = replace(config, scale=config.close_scale)
    flips = _flips(rng, config, size)
    gains = 1 + rng.uniform(-1, 1, 3) * (config.hue, config.saturation, config.value)
    hsv_gains = (float(gains[0]), float(gains[1]), float(gains[2]))
    if not (mosaic and rng.random() < config.mosaic):
        return Plan(size, (_single_tile(rng, config, index, sizes_wh, size, flips),), hsv_gains)
    tiles = _mosaic_tiles(rng, config, index, sizes_wh, size, flips)
    if rng.random() >= config.mixup:
        return Plan(size, tiles, hsv_gains)
    other = int(rng.integers(len(sizes_wh)))
    partner = Plan(size, _mosaic_tiles(rng, config, other, sizes_wh, size, flips))
    return Plan(size, tiles, hsv_gains, partner, float(rng.beta(32, 32)))


def _flips(rng: np.random.Generator, config: AugmentConfig, size: int) -> np.ndarray:
    """3 x 3: mirrors the output, or not."""
    left_right, up_down = rng.random(2) < (config.flip_lr, config.flip_ud)
    mirrored = np.eye(3)
    for axis, wanted in enumerate((left_right, up_down)):
        if wanted:
            mirrored[axis, axis], mirrored[axis, 2] = -1, size
    return mirrored


def _drawn_affine(
    rng: np.random.Generator, config: AugmentConfig, canvas_wh: tuple[int, int], size: int
) -> np.ndarray:
    """3 x 3, canvas to output."""
    degrees, scale, shear_x, shear_y, shift_x, shift_y = rng.uniform(-1, 1, 6)
    return affine_matrix(
        canvas_wh,
        size,
        degrees * config.degrees,
        1 + scale * config.scale,
        (shear_x * config.shear, shear_y * config.shear),
        (shift_x * config.translate, shift_y * config.translate),
    )


def _single_tile(
    rng: np.random.Generator,
    config: AugmentConfig,
    index: int,
    sizes_wh: Sequence[tuple[int, int]],
    size: int,
    flips: np.ndarray,
) -> Tile:
    width, height = sizes_wh[index]
    placing = _shift(*letterbox((height, width), (size, size)).pad_xy)
    whole = flips @ _drawn_affine(rng, config, (size, size), size) @ placing
    return Tile(index, whole[:2], (0, 0, width, height))


def _mosaic_tiles(
    rng: np.random.Generator,
    config: AugmentConfig,
    index: int,
    sizes_wh: Sequence[tuple[int, int]],
    size: int,
    flips: np.ndarray,
) -> tuple[Tile, ...]:
    """Four pictures around a drawn centre, the one asked for first, in a drawn corner."""
    indices = [index, *(int(other) for other in rng.integers(len(sizes_wh), size=3))]
    corners = rng.permutation(4)
    x, y = (int(value) for value in rng.integers(size // 2, size + size // 2, 2, endpoint=True))
    whole = flips @ _drawn_affine(rng, config, (2 * size, 2 * size), size)
    tiles = []
    for other, corner in zip(indices, corners, strict=True):
        left, top, clip = _mosaic_place(int(corner), (x, y), sizes_wh[other], size)
        tiles.append(Tile(other, (whole @ _shift(left, top))[:2], clip))
    return tuple(tiles)


def _mosaic_place(
    corner: int, centre_xy: tuple[int, int], size_wh: tuple[int, int], size: int
) -> tuple[int, int, tuple[int, int, int, int]]:
    """Left and top of a picture that touches the centre (corners row by row), and its part inside the canvas."""
    (width, height), (x, y) = size_wh, centre_xy
    left = x - width if corner % 2 == 0 else x
    top = y - height if corner < 2 else y
    clip = (max(-left, 0), max(-top, 0), min(width, 2 * size - left), min(height, 2 * size - top))
    return left, top, clip


def _shift(x: int | float, y: int | float) -> np.ndarray:
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])


def affine_matrix(
    canvas_wh: tuple[int, int],
    size: int,
    degrees: float = 0.0,
    scale: float = 1.0,
    shear_xy: tuple[float, float] = (0.0, 0.0),
    translate_xy: tuple[float, float] = (0.0, 0.0),
) -> np.ndarray:
    """3 x 3 float64: turns (counter-clockwise), scales and shears (degrees) about the canvas centre, which then comes
    to lie ``translate_xy`` (shares of ``size``) beside the centre of the output.
    """
    angle = math.radians(degrees)
    cosine, sine = scale * math.cos(angle), scale * math.sin(angle)
    turn = np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    lean = np.eye(3)
    lean[0, 1], lean[1, 0] = (math.tan(math.radians(value)) for value in shear_xy)
    back = _shift(*((0.5 + value) * size for value in translate_xy))
    return back @ lean @ turn @ _shift(-canvas_wh[0] / 2, -canvas_wh[1] / 2)


# ---------------------------------------------------------------------------------------------- pixels


def render(plan: Plan, picture: Callable[[int], np.ndarray]) -> np.ndarray:
    """The picture of a plan, S x S x 3; ``picture(index)`` gives prepared pictures.

    Each tile is warped straight into its part of the output: one bilinear interpolation and no canvas. At a tile's rim
    its last pixels are continued, so neighbours do not mix.
    """
    image = np.full((plan.size, plan.size, 3), PAD_VALUE, np.uint8)
    for tile in plan.tiles:
        _warp(tile, picture(tile.index), image)
    if plan.partner is not None:
        image = mixup(image, render(plan.partner, picture), plan.ratio)
    return hsv(image, plan.hsv_gains)


def _warp(tile: Tile, source: np.ndarray, output: np.ndarray) -> None:
    """Draws the visible part of ``source`` over those pixels of ``output`` whose centres it covers."""
    import cv2

    x0, y0, x1, y1 = tile.clip
    left, top, right, bottom = _covered(tile, output.shape[:2])
    if left >= right or top >= bottom:
        return
    linear = tile.matrix[:, :2]
    # OpenCV counts from pixel centres
    shift = tile.matrix[:, 2] + linear @ (x0 + 0.5, y0 + 0.5) - (left + 0.5, top + 0.5)
    matrix = np.column_stack((linear, shift))
    region, size_wh = output[top:bottom, left:right], (right - left, bottom - top)
    upright = linear[0, 1] == 0 and linear[1, 0] == 0
    warped = cv2.warpAffine(
        source[y0:y1, x0:x1],
        matrix,
        size_wh,
        dst=region if upright else None,
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    if not upright:
        cv2.copyTo(warped, _inside(matrix, size_wh, (x1 - x0, y1 - y0)).view(np.uint8), region)


def _covered(tile: Tile, output_hw: tuple[int, ...]) -> tuple[int, int, int, int]:
    """The pixels of the output around the tile, xyxy: exactly its own where nothing is turned or sheared."""
    x, y = _corners(np.array([tile.clip], np.float64))[0].T
    moved = tile.matrix @ np.stack((x, y, np.ones(4)))
    # a centre on a shared edge must fall to one of the neighbours, however their sums were rounded
    edges = np.ceil(np.round(np.stack((moved.min(1), moved.max(1))) - 0.5, 6))
    height, width = output_hw
    left, top, right, bottom = np.clip(edges, 0, (width, height)).astype(int).ravel().tolist()
    return left, top, right, bottom


def _inside(matrix: np.ndarray, region_wh: tuple[int, int], source_wh: tuple[int, int]) -> np.ndarray:
    """Which pixels of a region come from inside the source, h x w bool; ``matrix`` maps pixel centres."""
    width, height = region_wh
    back = np.linalg.inv(matrix[:, :2])
    offset = 0.5 - back @ matrix[:, 2]
    columns, rows = np.arange(width), np.arange(height)[:, None]
    inside = np.ones((height, width), bool)
    for axis, limit in enumerate(source_wh):
        position = (back[axis, 0] * columns + offset[axis]) + back[axis, 1] * rows
        inside &= (position >= 0) & (position < limit)
    return inside


# ---------------------------------------------------------------------------------------------- boxes


def place(
    plan: Plan, boxes: Callable[[int], np.ndarray], labels: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """What stands on the picture of a plan: boxes N x 4 float32 inside the output, and their labels N int64.

    ``boxes(index)`` N x 4 in pixels of the prepared picture, ``labels(index)`` N. Left out is what ``visible`` says.
    """
    tiles = plan.tiles + (plan.partner.tiles if plan.partner else ())
    found_boxes, found_labels = [np.empty((0, 4), np.float32)], [np.empty(0, np.int64)]
    for tile in tiles:
        before = boxes(tile.index)
        after = move_boxes(_clipped(before, tile.clip), tile.matrix, plan.size)
        keep = visible(before, after, abs(np.linalg.det(tile.matrix[:, :2])))
        found_boxes.append(after[keep])
        found_labels.append(labels(tile.index)[keep])
    return np.concatenate(found_boxes), np.concatenate(found_labels)


def move_boxes(boxes: np.ndarray, matrix: np.ndarray, size: int) -> np.ndarray:
    """The upright boxes N x 4 float32 around the moved corners of ``boxes``, held inside ``size`` x ``size``."""
    moved = _corners(boxes.astype(np.float64)) @ matrix[:2, :2].T + matrix[:2, 2]
    around = np.concatenate((moved.min(1), moved.max(1)), axis=1)
    return np.clip(around, 0, size).astype(np.float32)


def visible(before: np.ndarray, after: np.ndarray, area_gain: float = 1.0) -> np.ndarray:
    """Which boxes to keep, N bool: more than 2 pixels wide and high, sides less than 1 : 100, and more than a tenth
    of the area there would be (``area_gain`` times the one ``before``) had nothing been cut off.
    """
    width, height = (after[:, 2:] - after[:, :2]).astype(np.float64).T
    whole = (before[:, 2:] - before[:, :2]).astype(np.float64).prod(1) * area_gain
    sides = np.minimum(width, height), np.maximum(width, height)
    large = (sides[0] > _SMALLEST_SIDE) & (sides[1] < _LARGEST_ASPECT * sides[0])
    return large & (width * height > _SMALLEST_SHARE * whole)


def _corners(boxes: np.ndarray) -> np.ndarray:
    """N x 4 xyxy to N x 4 x 2."""
    return boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)


def _clipped(boxes: np.ndarray, limits: tuple[int, int, int, int]) -> np.ndarray:
    x0, y0, x1, y1 = limits
    return np.clip(boxes, (x0, y0, x0, y0), (x1, y1, x1, y1))


# ---------------------------------------------------------------------------------------------- single steps


def affine(
    image: np.ndarray, boxes: np.ndarray, matrix: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Image H x W x 3 and boxes N x 4 through a 2 x 3 (or 3 x 3) matrix, into ``size`` x ``size`` padded with gray 114.

    No box is dropped, so labels keep fitting: what left the picture has no size (see ``visible``).
    """
    tile = Tile(0, np.asarray(matrix, np.float64)[:2], (0, 0, image.shape[1], image.shape[0]))
    output = np.full((size, size, 3), PAD_VALUE, np.uint8)
    _warp(tile, image, output)
    return output, move_boxes(boxes, tile.matrix, size)


def mosaic(
    images: Sequence[np.ndarray], boxes: Sequence[np.ndarray], centre_xy: tuple[int, int], size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Four pictures around ``centre_xy`` on a canvas of ``2 size`` x ``2 size``, row by row, and their boxes one after
    the other, held inside what shows of their picture. No box is dropped.
    """
    canvas = np.full((2 * size, 2 * size, 3), PAD_VALUE, np.uint8)
    moved = []
    for corner, (image, its_boxes) in enumerate(zip(images, boxes, strict=True)):
        height, width = image.shape[:2]
        left, top, clip = _mosaic_place(corner, centre_xy, (width, height), size)
        x0, y0, x1, y1 = clip
        canvas[top + y0 : top + y1, left + x0 : left + x1] = image[y0:y1, x0:x1]
        moved.append(move_boxes(_clipped(its_boxes, clip), _shift(left, top), 2 * size))
    return canvas, np.concatenate(moved)


def flip(
    image: np.ndarray, boxes: np.ndarray, left_right: bool = True, up_down: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Image H x W x 3 and boxes N x 4, mirrored."""
    height, width = image.shape[:2]
    image, boxes = image[:: -1 if up_down else 1, :: -1 if left_right else 1], boxes.copy()
    if left_right:
        boxes[:, [0, 2]] = width - boxes[:, [2, 0]]
    if up_down:
        boxes[:, [1, 3]] = height - boxes[:, [3, 1]]
    return np.ascontiguousarray(image), boxes


def mixup(a: np.ndarray, b: np.ndarray, ratio: float) -> np.ndarray:
    """``ratio * a + (1 - ratio) * b`` of two pictures of one size, rounded; the boxes of both stay."""
    import cv2

    return np.asarray(cv2.addWeighted(a, ratio, b, 1 - ratio, 0))


def hsv(image: np.ndarray, gains: tuple[float, float, float]) -> np.ndarray:
    """The picture with hue (a circle), saturation and value multiplied; gains of 1 leave it as it is.

    In OpenCV's 8-bit HSV, as the field trains: hue has 180 steps.
    """
    if gains == NO_COLOUR_CHANGE:  # the way through 8-bit HSV and back is not exact
        return image
    import cv2

    levels = np.arange(256)
    hue = levels * gains[0] % 180
    saturation, value = (np.clip(levels * gain, 0, 255) for gain in gains[1:])
    table = np.stack((hue, saturation, value), axis=-1).astype(np.uint8)[:, None]
    changed = cv2.LUT(cv2.cvtColor(image, cv2.COLOR_RGB2HSV), table)
    return np.asarray(cv2.cvtColor(changed, cv2.COLOR_HSV2RGB))
