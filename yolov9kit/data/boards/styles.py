"""How a drawn board is looked at: a thresholded scan, a grey scan, a photo of its solder mask."""

import numpy as np

from yolov9kit.data.boards.glyphs import LETTERS, text
from yolov9kit.data.boards.raster import FINE, Dice, Shapes, box_sum, fill

BOARD_STYLES = ("binarised", "negative", "scan", "photo")

_GROUND, _COPPER, _BARE, _HOLE, _SILK = range(5)
_MASKS = ((24, 96, 44), (14, 78, 60), (20, 50, 120), (130, 24, 30), (36, 36, 40), (86, 34, 96), (60, 110, 30))
_FINISHES = ((206, 172, 92), (196, 198, 200), (214, 160, 110), (180, 184, 176))
_INKS = ((236, 238, 232), (236, 238, 232), (228, 210, 80), (30, 30, 34))


def picture(
    dice: Dice, style: str, copper: np.ndarray, holes: np.ndarray, bare: np.ndarray, keep_clear: np.ndarray
) -> np.ndarray:
    """H x W x 3 uint8 RGB of one of BOARD_STYLES; masks are H x W bool. Print stays away from ``keep_clear``."""
    if style == "photo":
        return _photo(dice, copper, holes, bare, keep_clear)
    grey = _scan(dice, copper, holes) if style == "scan" else _binarised(dice, copper, style == "negative")
    return np.repeat(grey[..., None], 3, 2)


def _binarised(dice: Dice, copper: np.ndarray, negative: bool) -> np.ndarray:
    white = copper if negative else ~copper
    if dice.chance(55):
        return white.astype(np.uint8) * np.uint8(255)
    low, high = dice.between(0, 50), dice.between(200, 255)
    levels = _blurred(np.array([low, high], np.uint16)[white.astype(np.uint8)], dice.between(0, 1))
    return _bytes(levels + _noise(dice, copper.shape, dice.between(0, 10)))


def _scan(dice: Dice, copper: np.ndarray, holes: np.ndarray) -> np.ndarray:
    dark, contrast = dice.between(20, 100), dice.between(60, 130)
    # copper shines: which is which must be told from any part of a board
    ground, metal = dark, dark + contrast
    hole = dice.pick((ground, ground, dice.between(0, 40), dice.between(220, 255)))
    kinds = copper + holes * np.uint8(2)
    levels = _blurred(np.array([ground, metal, hole, hole], np.uint16)[kinds], dice.between(0, 2))
    levels = levels * _light(dice, copper.shape, 60) // 256
    return _bytes(levels + _noise(dice, copper.shape, dice.between(2, 22)))


def _photo(
    dice: Dice, copper: np.ndarray, holes: np.ndarray, bare: np.ndarray, keep_clear: np.ndarray
) -> np.ndarray:
    height, width = copper.shape
    kinds = copper.astype(np.uint8)
    if dice.chance(80):
        kinds[bare & copper] = _BARE
    elif dice.chance(50):
        kinds[copper] = _BARE  # no solder mask at all
    if dice.chance(70):
        kinds[_print(dice, width, height) & ~keep_clear & ~bare] = _SILK
    kinds[holes] = _HOLE
    colours = _colours(dice)
    passes, light = dice.between(0, 2), _light(dice, copper.shape, 90)
    grain = _noise(dice, copper.shape, dice.between(2, 20))
    channels = []
    for channel in range(3):
        levels = _blurred(colours[:, channel][kinds], passes) * light // 256
        channels.append(_bytes(levels + grain))
    return np.stack(channels, 2)


def _colours(dice: Dice) -> np.ndarray:
    """5 x 3 uint16: ground, masked copper, bare copper, hole, print."""
    mask = [max(0, level + dice.between(-20, 20)) for level in dice.pick(_MASKS)]
    lift, tint = dice.between(28, 70), dice.between(110, 150)
    covered = [min(255, level * tint // 100 + lift) for level in mask]
    finish = [level + dice.between(-20, 20) for level in dice.pick(_FINISHES)]
    hole = dice.pick(((12, 12, 14), (40, 36, 30), (235, 235, 235), tuple(mask)))
    return np.array([mask, covered, finish, hole, dice.pick(_INKS)], np.uint16)


def _print(dice: Dice, width: int, height: int) -> np.ndarray:
    """Silk screen: names and outlines of parts."""
    shapes = Shapes()
    unit = dice.between(3, 8) * FINE
    pen = max(FINE * 3 // 4, unit * dice.between(12, 24) // 100)
    for _ in range(dice.between(1, 14)):
        left, top = dice.between(0, width) * FINE, dice.between(0, height) * FINE
        if dice.chance(65):
            words = "".join(dice.pick(LETTERS) for _ in range(dice.between(1, 4)))
            shapes.extend(text(words, left, top, unit, pen, dice.chance(30)))
        else:
            right, bottom = left + dice.between(4, 30) * unit, top + dice.between(4, 16) * unit
            shapes.line([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)], pen)
    return fill(shapes, width, height)


def _blurred(levels: np.ndarray, passes: int) -> np.ndarray:
    """uint16 levels of 0 .. 255 after box blurs of 3 x 3, rounded down each time; as int32."""
    for _ in range(passes):
        levels = box_sum(levels) // 9
    return levels.astype(np.int32)


def _light(dice: Dice, shape: tuple[int, ...], most: int) -> np.ndarray:
    """H x W int32 around 256: brighter on one side, on one axis or both."""
    height, width = shape
    across, down = dice.between(-most, most), dice.between(-most, most)
    middle = 256 - dice.between(-24, 24)
    x = np.arange(width, dtype=np.int32) * across // width - across // 2
    y = np.arange(height, dtype=np.int32) * down // height - down // 2
    return middle + x + y[:, None]


def _noise(dice: Dice, shape: tuple[int, ...], reach: int) -> np.ndarray:
    """H x W int32 in about -reach .. reach: fine grain with some coarser one below."""
    height, width = shape
    fine = dice.grain(height, width).astype(np.int32) - 128
    coarse = dice.grain(height, width, dice.between(2, 12)).astype(np.int32) - 128
    return (fine * 3 + coarse) * reach // 512


def _bytes(levels: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(levels, 0), 255).astype(np.uint8)
