"""Drawn circuit boards with six kinds of defect and exact boxes, and data sets of them.

Whole numbers only, so that the same seed gives the same pixels on every machine. A detector trained on these boards
alone is meant to work on real ones: they vary far more than real boards do.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from yolov9kit.data.boards.defects import BOARD_NAMES, Defect, add_defects
from yolov9kit.data.boards.layout import Layout, lay_out
from yolov9kit.data.boards.raster import Dice
from yolov9kit.data.boards.styles import BOARD_STYLES, picture
from yolov9kit.data.synthetic import Drawing
from yolov9kit.errors import UsageError

__all__ = ["BOARD_MARGIN", "BOARD_NAMES", "BOARD_STYLES", "draw_board", "write_boards"]

BOARD_MARGIN = 10
"""Pixels between the outermost changed pixels and the box, as in the labels of real boards."""

_SMALLEST = 64
# no negatives: without a hole or a name in view nobody can tell them from the others
_STYLE_OF_100 = (("binarised", 52), ("scan", 20), ("photo", 28))
_KEPT_APART = 2  # boxes with their margins touch, but share nothing
_SPLITS = ("train", "val")
_SUFFIXES = (".png", ".jpg")


@dataclass(frozen=True, eq=False)
class _Board:
    """A board before it is looked at: its flawless layout, its copper with defects (H x W bool), and where they are."""

    layout: Layout
    copper: np.ndarray
    defects: list[Defect]


def draw_board(
    seed: int | tuple[int, ...],
    picture_wh: tuple[int, int] = (640, 640),
    style: str | None = None,
    margin: int = BOARD_MARGIN,
) -> Drawing:
    """A circuit board with 3 to 12 defects, fewer on small pictures; ``labels`` index BOARD_NAMES.

    Sizes on the board are in pixels and do not grow with the picture: a larger picture shows more of a board.

    Args:
        seed: one number, or some: the same give the same board.
        picture_wh: width and height, at least 64 pixels each.
        style: one of BOARD_STYLES; by the seed where it is None, binarised for half of the seeds, never negative.
        margin: pixels between the outermost changed pixels and the box, which is cut at the picture's edge.

    Raises:
        UsageError: a style, a size or a margin that cannot be drawn.
    """
    _check(picture_wh, style, margin)
    dice = Dice(np.random.default_rng(seed))
    board = _etch(dice, picture_wh)
    chosen = _style_of(dice)  # thrown even where it is not asked for: the rest stays the same
    boxes = _boxes(board.defects, picture_wh, margin)
    keep_clear = np.zeros(board.copper.shape, bool)
    for left, top, right, bottom in _boxes(board.defects, picture_wh, BOARD_MARGIN).astype(int):
        keep_clear[top:bottom, left:right] = True
    layout = board.layout
    pixels = picture(dice, style or chosen, board.copper, layout.holes, layout.bare, keep_clear)
    return Drawing(pixels, boxes, np.array([defect.label for defect in board.defects], np.int64))


def write_boards(
    folder: str | os.PathLike[str],
    train: int,
    val: int,
    seed: int = 0,
    picture_wh: tuple[int, int] = (640, 640),
    style: str | None = None,
    suffix: str = ".png",
    processes: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Draws a data set in YOLO layout into a new or empty folder and returns its data.yaml.

    Args:
        train: boards to train on.
        val: boards to validate on, none of them among the first.
        suffix: ".png", or ".jpg" for high-quality JPEG, several times smaller and faster.
        processes: how many draw at the same time. The boards do not depend on it.
        on_progress: called with (boards done, boards in all).

    Raises:
        UsageError: an argument that makes no sense, or a folder that holds something.
    """
    root = Path(folder)
    _check(picture_wh, style, BOARD_MARGIN)
    if suffix not in _SUFFIXES:
        raise UsageError(f"suffix {suffix!r}: boards are written as one of {', '.join(_SUFFIXES)}")
    for name, value in (("train", train), ("val", val), ("processes", processes)):
        if value < 1:
            raise UsageError(f"{name} is {value}: give 1 or more")
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{root} is not an empty folder: name a new one")
    for split in _SPLITS:
        for kind in ("images", "labels"):
            (root / kind / split).mkdir(parents=True, exist_ok=True)
    jobs = [
        (split, number) for split, count in zip(_SPLITS, (train, val), strict=True) for number in range(count)
    ]
    write = partial(_write_one, root, seed, picture_wh, style, suffix)
    with ExitStack() as stack:
        written: Iterator[None] = map(write, jobs)
        if processes > 1:
            # spawned, not forked: a fork would copy the locks of threads that the caller may have running
            pool = stack.enter_context(ProcessPoolExecutor(processes, mp_context=get_context("spawn")))
            written = pool.map(write, jobs, chunksize=16)
        for done, _ in enumerate(written, start=1):
            if on_progress is not None:
                on_progress(done, len(jobs))
    names = "".join(f"  {label}: {name}\n" for label, name in enumerate(BOARD_NAMES))
    file = root / "data.yaml"
    file.write_text(f"train: images/train\nval: images/val\nnames:\n{names}", encoding="utf-8")
    return file


def _write_one(
    root: Path,
    seed: int,
    picture_wh: tuple[int, int],
    style: str | None,
    suffix: str,
    job: tuple[str, int],
) -> None:
    from PIL import Image

    split, number = job
    drawing = draw_board((seed, _SPLITS.index(split), number), picture_wh, style)
    name = f"board_{number:06}"
    image = Image.fromarray(drawing.pixels)
    target = root / "images" / split / f"{name}{suffix}"
    if suffix == ".png":
        image.save(target, compress_level=3)
    else:
        image.save(target, quality=95, subsampling=0)
    left, top, right, bottom = (drawing.boxes.astype(np.float64) / (*picture_wh, *picture_wh)).T
    shares = np.stack(((left + right) / 2, (top + bottom) / 2, right - left, bottom - top), 1)
    rows = zip(drawing.labels.tolist(), shares.tolist(), strict=True)
    text = "".join(f"{label} {' '.join(f'{share:.8f}' for share in box)}\n" for label, box in rows)
    (root / "labels" / split / f"{name}.txt").write_text(text, encoding="utf-8")


def _check(picture_wh: tuple[int, int], style: str | None, margin: int) -> None:
    if min(picture_wh) < _SMALLEST:
        raise UsageError(f"picture_wh is {picture_wh}: a board needs {_SMALLEST} pixels each way")
    if style is not None and style not in BOARD_STYLES:
        raise UsageError(f"style {style!r}: boards are drawn as one of {', '.join(BOARD_STYLES)}")
    if margin < 0:
        raise UsageError(f"margin is {margin}: give 0 or more pixels")


def _style_of(dice: Dice) -> str:
    return dice.pick([style for style, share in _STYLE_OF_100 for _ in range(share)])


def _etch(dice: Dice, picture_wh: tuple[int, int]) -> _Board:
    width, height = picture_wh
    layout = lay_out(dice, width, height)
    most = max(1, min(12, width * height // 10_000))
    count = dice.between(min(3, most), most)
    copper, defects = add_defects(dice, layout, count, 2 * BOARD_MARGIN + _KEPT_APART)
    return _Board(layout, copper, defects)


def _boxes(defects: list[Defect], picture_wh: tuple[int, int], margin: int) -> np.ndarray:
    """M x 4 float32 xyxy: the changed pixels and a margin, cut at the edge of the picture."""
    ends = np.array([(d.left, d.top, d.right + 1, d.bottom + 1) for d in defects], np.int64).reshape(-1, 4)
    ends += np.array([-margin, -margin, margin, margin])
    return ends.clip(0, (*picture_wh, *picture_wh)).astype(np.float32)
