"""Drawn boards: the same on every machine, boxes exact, and each defect does what its name says."""

import zlib
from collections import Counter
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest

from yolov9kit import UsageError, open_dataset, read_image
from yolov9kit.data.boards.board import (
    BOARD_MARGIN,
    BOARD_NAMES,
    BOARD_STYLES,
    _Board,
    _etch,
    _style_of,
    draw_board,
    write_boards,
)
from yolov9kit.data.boards.raster import Dice

SEEDS = range(12)


@cache
def etched(seed: int) -> _Board:
    return _etch(Dice(np.random.default_rng(seed)), (640, 640))


def pieces(mask: np.ndarray, connectivity: int) -> int:
    """Connected pieces of at least 24 pixels: smaller ones are crumbs of a ragged outline."""
    stats = cv2.connectedComponentsWithStats(mask.astype(np.uint8), connectivity=connectivity)[2]
    return int((stats[1:, cv2.CC_STAT_AREA] >= 24).sum())


def one_by_one(board: _Board) -> list[tuple[str, np.ndarray]]:
    """The kind of each defect and the copper (H x W) that has no other."""
    found = []
    for defect in board.defects:
        copper = board.layout.copper.copy()
        window = np.s_[defect.top : defect.bottom + 1, defect.left : defect.right + 1]
        copper[window] = board.copper[window]
        found.append((BOARD_NAMES[defect.label], copper))
    return found


@pytest.mark.parametrize(
    ("seed", "style", "checksum"), [(0, "binarised", 1076707253), (1, "photo", 1332732773)]
)
def test_a_seed_gives_these_pixels_on_every_machine(seed: int, style: str, checksum: int) -> None:
    drawing = draw_board(seed, (160, 160), style)
    assert zlib.crc32(drawing.pixels.tobytes() + drawing.boxes.astype("<f4").tobytes()) == checksum


def test_a_seed_may_be_some_numbers() -> None:
    once, again, other = (draw_board(seed, (96, 64)).pixels for seed in ((1, 2), (1, 2), (2, 1)))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once, other)


@pytest.mark.parametrize("picture_wh", [(640, 640), (333, 200), (64, 64)])
def test_boxes_lie_inside_and_apart(picture_wh: tuple[int, int]) -> None:
    for seed in range(4):
        drawing = draw_board(seed, picture_wh)
        width, height = picture_wh
        assert drawing.pixels.shape == (height, width, 3) and drawing.pixels.dtype == np.uint8
        assert drawing.boxes.dtype == np.float32 and drawing.labels.dtype == np.int64
        assert len(drawing.boxes) == len(drawing.labels) <= 12
        assert (drawing.boxes >= 0).all() and (drawing.boxes[:, 2:] <= [width, height]).all()
        cells = np.zeros((height, width), int)
        for left, top, right, bottom in drawing.boxes.astype(int):
            cells[top:bottom, left:right] += 1
        assert cells.max(initial=0) <= 1


def test_boards_hold_3_to_12_defects_of_all_kinds() -> None:
    labels = [[defect.label for defect in etched(seed).defects] for seed in SEEDS]
    assert all(3 <= len(found) <= 12 for found in labels)
    assert Counter(label for found in labels for label in found).keys() == set(range(len(BOARD_NAMES)))


@pytest.mark.parametrize("seed", SEEDS)
def test_boxes_are_tight(seed: int) -> None:
    board = etched(seed)
    changed = board.layout.copper ^ board.copper
    tight = draw_board(seed, margin=0).boxes
    wide = draw_board(seed).boxes
    for left, top, right, bottom in tight.astype(int):
        inside = changed[top:bottom, left:right]
        assert inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any()
        changed[top:bottom, left:right] = False
    assert not changed.any()  # nothing changed that no box tells of
    grown = tight + np.array([-BOARD_MARGIN, -BOARD_MARGIN, BOARD_MARGIN, BOARD_MARGIN])
    np.testing.assert_array_equal(wide, grown.clip(0, 640))


@pytest.mark.parametrize("seed", SEEDS)
def test_each_defect_does_what_its_name_says(seed: int) -> None:
    board = etched(seed)
    clean = board.layout.copper
    copper_before, ground_before = pieces(clean, 8), pieces(~clean, 4)
    for kind, copper in one_by_one(board):
        added, removed = (copper & ~clean).any(), (clean & ~copper).any()
        assert (added, removed) == (
            kind in ("short", "spur", "copper"),
            kind in ("open", "mousebite", "pin-hole"),
        )
        more_copper, more_ground = pieces(copper, 8) - copper_before, pieces(~copper, 4) - ground_before
        if kind == "open":  # a trace falls in two, or a ring or loop is cut through
            assert more_copper >= 1 or more_ground <= -1
        elif kind == "short":
            assert more_copper == -1
        elif kind in ("mousebite", "spur"):
            assert (more_copper, more_ground) == (0, 0)
        elif kind == "copper":
            assert not (
                cv2.dilate((copper & ~clean).astype(np.uint8), np.ones((3, 3))).astype(bool) & clean
            ).any()
        else:
            assert not (
                cv2.dilate((clean & ~copper).astype(np.uint8), np.ones((3, 3))).astype(bool) & ~clean
            ).any()


def test_defects_show_in_every_style() -> None:
    """Between the two kinds of pixel in and around a box there is a step that the noise does not hide."""
    seed = 3
    board = etched(seed)
    for style in BOARD_STYLES:
        grey = draw_board(seed, style=style).pixels.astype(int).sum(2)
        for kind, copper in one_by_one(board):
            changed = copper ^ board.layout.copper
            around = cv2.dilate(changed.astype(np.uint8), np.ones((9, 9))).astype(bool) & ~changed
            unlike = around & (board.copper == board.layout.copper) & (copper != copper[changed][0])
            assert abs(grey[changed].mean() - grey[unlike].mean()) > 15, (style, kind)


def test_styles_differ() -> None:
    pictures = {style: draw_board(5, (320, 320), style).pixels for style in BOARD_STYLES}
    assert len({pixels.tobytes() for pixels in pictures.values()}) == len(BOARD_STYLES)
    for style, pixels in pictures.items():
        colourless = (pixels == pixels[..., :1]).all()
        assert colourless == (style != "photo")
    chosen = Counter(_style_of(Dice(np.random.default_rng(seed))) for seed in range(600))
    assert chosen.keys() == set(BOARD_STYLES) - {"negative"} and 240 < chosen["binarised"] < 360


def test_defects_are_seen_whole() -> None:
    for seed in range(12):
        drawing = draw_board(seed, (320, 320), margin=0)
        assert drawing.boxes.min() >= 6 and drawing.boxes.max() <= 314


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_written_boards_open_as_a_data_set(suffix: str, tmp_path: Path) -> None:
    file = write_boards(tmp_path / "boards", 3, 2, seed=4, picture_wh=(160, 128), suffix=suffix)
    for split, count in (("train", 3), ("val", 2)):
        dataset = open_dataset(file, split, cache=False)
        assert dataset.names == BOARD_NAMES and len(dataset.samples) == count and not dataset.findings
        for number, sample in enumerate(dataset.samples):
            drawing = draw_board((4, ("train", "val").index(split), number), (160, 128))
            np.testing.assert_array_equal(sample.labels, drawing.labels)
            np.testing.assert_allclose(sample.boxes, drawing.boxes, atol=1e-4)
            difference = np.abs(read_image(sample.path).astype(int) - drawing.pixels)
            assert difference.max() == 0 if suffix == ".png" else difference.mean() < 4


def test_written_boards_do_not_depend_on_the_processes(tmp_path: Path) -> None:
    one = write_boards(tmp_path / "one", 3, 1, picture_wh=(64, 64)).parent
    two = write_boards(tmp_path / "two", 3, 1, picture_wh=(64, 64), processes=2).parent
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert len(files) == 9 and files == sorted(p.relative_to(two) for p in two.rglob("*") if p.is_file())
    assert all((one / file).read_bytes() == (two / file).read_bytes() for file in files)


def test_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="not an empty folder"):
        write_boards(tmp_path, 1, 1)
    with pytest.raises(UsageError, match=r"notes\.txt is not an empty folder"):
        write_boards(tmp_path / "notes.txt", 1, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"train": 0}, "train is 0"),
        ({"val": -1}, "val is -1"),
        ({"processes": 0}, "processes is 0"),
        ({"suffix": ".gif"}, "suffix '.gif'"),
        ({"style": "sepia"}, "style 'sepia'"),
        ({"picture_wh": (640, 63)}, r"picture_wh is \(640, 63\)"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    arguments: dict, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        write_boards(tmp_path / "new", **{"train": 1, "val": 1} | arguments)
    assert not (tmp_path / "new").exists()


def test_a_negative_margin_is_refused() -> None:
    with pytest.raises(UsageError, match="margin is -1"):
        draw_board(0, margin=-1)
