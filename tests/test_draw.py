"""Drawn pictures: boxes where they should be, every name legible, and nothing that stops the drawing."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from yolov9kit import draw
from yolov9kit.draw import class_colour, draw_detections, encode_picture, text_colour
from yolov9kit.errors import UsageError
from yolov9kit.types import Detections

NAMES = ("open", "short", "mousebite", "spur", "copper", "pin-hole")


def found(
    boxes: object, width: int, height: int, labels: object = 0, names: tuple[str, ...] = NAMES
) -> Detections:
    boxes = np.asarray(boxes, np.float32).reshape(-1, 4)
    n = len(boxes)
    return Detections(
        boxes, np.linspace(0.9, 0.1, n), np.broadcast_to(labels, n), names, picture_wh=(width, height)
    )


def plain(width: int, height: int, level: int = 128) -> np.ndarray:
    return np.full((height, width, 3), level, np.uint8)


def changed(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return (before != after).any(axis=2)


# --- boxes


def test_the_picture_itself_is_not_changed() -> None:
    image = plain(200, 100)
    image.flags.writeable = False
    drawn = draw_detections(image, found([20, 30, 90, 80], 200, 100))
    assert (image == 128).all() and changed(image, drawn).any()
    assert drawn.shape == image.shape and drawn.dtype == np.uint8 and drawn.flags.writeable


def test_no_detections_give_an_equal_copy() -> None:
    image = plain(64, 48)
    drawn = draw_detections(image, found([], 64, 48))
    assert np.array_equal(drawn, image) and not np.shares_memory(drawn, image)


@pytest.mark.parametrize("line", [1, 2, 5, 9])
def test_the_line_runs_around_the_box(line: int) -> None:
    image = plain(200, 100)
    drawn = draw_detections(
        image, found([60, 30, 120, 80], 200, 100), line_width=line, labels=False, scores=False
    )
    colour = np.array(class_colour(0))
    assert not changed(image, drawn)[31 + line // 4 : 79 - line // 4, 61 + line // 4 : 119 - line // 4].any()
    for row in (*range(30 - line, 30), *range(80, 80 + line)):
        assert (drawn[row, 60:120] == colour).all(), row
    for column in (*range(60 - line, 60), *range(120, 120 + line)):
        assert (drawn[30:80, column] == colour).all(), column
    reach = line + max(1, line // 4)
    outside = np.ones((100, 200), bool)
    outside[30 - reach : 80 + reach, 60 - reach : 120 + reach] = False
    assert not changed(image, drawn)[outside].any()


@pytest.mark.parametrize("level", [0, 255])
def test_every_class_shows_on_black_and_on_white(level: int) -> None:
    image = plain(60, 60, level)
    for label in range(24):
        names = tuple(f"c{i}" for i in range(24))
        drawn = draw_detections(
            image, found([20, 20, 40, 40], 60, 60, label, names), labels=False, scores=False
        )
        assert np.abs(drawn.astype(int) - level).max() >= 115


def test_the_best_detection_lies_on_top() -> None:
    boxes = [[40, 40, 80, 80]] * 2
    drawn = draw_detections(plain(200, 200), found(boxes, 200, 200, [1, 2]), labels=False, scores=False)
    assert tuple(drawn[39, 60]) == class_colour(1)


def test_lines_and_text_grow_with_the_picture() -> None:
    def share(scale: int) -> float:
        width, height = 400 * scale, 300 * scale
        image = plain(width, height)
        box = np.array([100, 100, 300, 200]) * scale
        return float(changed(image, draw_detections(image, found(box, width, height))).mean())

    assert 0.4 < share(10) / share(2) < 1.5


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float32, (5, 4), elements=st.floats(-50, 400, width=32)),
    st.integers(1, 300),
    st.integers(1, 300),
    st.integers(1, 40),
)
def test_any_box_on_any_picture(boxes: np.ndarray, width: int, height: int, line: int) -> None:
    image = plain(width, height)
    for line_width in (None, line):
        drawn = draw_detections(image, found(boxes, width, height, range(5)), line_width=line_width)
        assert drawn.shape == image.shape


def test_wrong_pictures_are_refused() -> None:
    some = found([1, 2, 3, 4], 40, 30)
    for wrong in (
        plain(40, 30)[..., 0],
        plain(40, 30) / 255,
        plain(40, 30)[:0],
        np.zeros((30, 40, 4), np.uint8),
    ):
        with pytest.raises(UsageError, match="H x W x 3 uint8"):
            draw_detections(wrong, some)
    with pytest.raises(UsageError, match="40 x 30 pixels, this one is 30 x 40"):
        draw_detections(plain(30, 40), some)
    with pytest.raises(UsageError, match="line_width is 0"):
        draw_detections(plain(40, 30), some, line_width=0)


# --- text


def tag_at(drawn: np.ndarray, label: int = 0) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of the class colour, where only text is drawn in it."""
    rows, columns = np.nonzero((drawn == class_colour(label)).all(axis=2))
    return int(columns.min()), int(rows.min()), int(columns.max()), int(rows.max())


@pytest.mark.parametrize("box", [[0, 0, 5, 5], [395, 0, 400, 300], [0, 295, 400, 300], [0, 0, 400, 300]])
def test_the_label_stays_inside_the_picture(box: list[int]) -> None:
    alone = draw_detections(plain(400, 300), found(box, 400, 300))
    middle = draw_detections(plain(400, 300), found([200, 150, 210, 160], 400, 300))
    boxes_only = draw_detections(plain(400, 300), found(box, 400, 300), labels=False, scores=False)
    text = changed(boxes_only, alone) & (alone != class_colour(0)).any(axis=2)
    reference = draw_detections(
        plain(400, 300), found([200, 150, 210, 160], 400, 300), labels=False, scores=False
    )
    whole = changed(reference, middle) & (middle != class_colour(0)).any(axis=2)
    assert text.sum() >= 0.9 * whole.sum()  # all of the letters are there


def test_labels_and_scores_can_be_left_out() -> None:
    image, some = plain(300, 200), found([100, 100, 200, 150], 300, 200)
    pictures = [
        draw_detections(image, some, labels=a, scores=b) for a in (True, False) for b in (True, False)
    ]
    widths = [tag_at(drawn[:97])[2] - tag_at(drawn[:97])[0] for drawn in pictures[:3]]
    assert widths[0] > max(widths[1:])
    assert not changed(image, pictures[3])[:90].any()


def test_labels_of_neighbours_do_not_hide_each_other() -> None:
    boxes = [[100, 100, 140, 140], [104, 102, 144, 142], [98, 104, 139, 139]]
    tags = [draw._tag(found(boxes, 400, 300), i, 12, 1, True, True) for i in range(3)]
    placed = draw._placed([tag for tag in tags if tag], 400, 300)
    assert len(placed) == 3
    for i, (_, a) in enumerate(placed):
        for _, b in placed[:i]:
            assert draw._overlap(a, b) == 0


def test_a_long_name_is_shortened_and_keeps_its_score() -> None:
    name = "an exceedingly long class name " * 10
    tag = draw._tag(found([10, 10, 50, 50], 200, 100, 0, (name,)), 0, 12, 1, True, True)
    assert tag is not None and tag.size[0] <= 0.6 * 200
    assert tag.text.startswith("an exc") and tag.text.endswith("… 0.90")


def test_a_tiny_picture_has_boxes_only() -> None:
    some = found([2, 2, 8, 8], 20, 10)
    image = plain(20, 10)
    assert np.array_equal(
        draw_detections(image, some), draw_detections(image, some, labels=False, scores=False)
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("dog", {"dog"}),
        ("two\nlines\there", {"two lines here"}),
        ("café", {"café", "cafe"}),
        ("собака", {"собака", "class 3"}),
        ("鳥", {"鳥", "class 3"}),
        ("🐶", {"🐶", "class 3"}),
        ("", {"class 3"}),
        ("\u200b\x00", {"class 3"}),
    ],
)
def test_every_name_can_be_drawn(name: str, shown: set[str]) -> None:
    text, font = draw._written(name, 3, 14)
    assert text in shown
    missing = bytes(font.getmask("\U0010ffff"))
    assert all(bytes(font.getmask(character)) != missing for character in text)
    image = plain(200, 100)
    drawn = draw_detections(image, found([50, 50, 90, 90], 200, 100, 3, ("a", "b", "c", name)))
    assert changed(image, drawn)[:45].any()


def test_without_system_fonts_the_number_stands_for_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draw, "_FONTS", ("", "no such font.ttf"))
    assert draw._written("собака", 7, 14)[0] == "class 7"
    assert draw._written("crème brûlée", 7, 14)[0] == "creme brulee"
    assert draw._written("plain", 7, 14)[0] == "plain"


def test_importing_loads_no_font() -> None:
    script = (
        "import PIL.ImageFont as fonts\n"
        "def loaded(*a, **k): raise SystemExit('a font was loaded')\n"
        "fonts.truetype = fonts.load_default = loaded\n"
        "import yolov9kit.draw\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=Path(__file__).parents[1], check=True)


# --- colours


def oklab(linear: np.ndarray) -> np.ndarray:
    """Perceptual coordinates (Ottosson 2020): equal distances look equally different."""
    to_lms = [[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]]
    to_lab = [[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]
    return np.cbrt(linear.clip(0, 1) @ np.array(to_lms).T) @ np.array(to_lab).T


# Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB.
VISION = {
    "normal": np.eye(3),
    "protan": [[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]],
    "deutan": [[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]],
    "tritan": [[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]],
}


@pytest.mark.parametrize("vision", VISION)
def test_twenty_four_classes_look_different_to_everybody(vision: str) -> None:
    srgb = np.array([class_colour(label) for label in range(24)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = oklab(linear @ np.array(VISION[vision]).T)
    distances = np.linalg.norm(seen[:, None] - seen[None], axis=2)[np.triu_indices(24, 1)]
    assert distances.min() > (0.075 if vision == "normal" else 0.05)


def test_colours_depend_on_the_class_alone() -> None:
    assert class_colour(0) == (230, 159, 0)  # saved pictures of two releases can be compared
    assert class_colour(24) == class_colour(0)
    assert all(0 <= value <= 255 for label in range(80) for value in class_colour(label))


def test_text_is_legible_on_every_class() -> None:
    def luminance(colour: tuple[int, int, int]) -> float:
        srgb = np.array(colour) / 255
        linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ (0.2126, 0.7152, 0.0722))

    for label in range(24):
        colour = class_colour(label)
        light, dark = sorted((luminance(colour), luminance(text_colour(colour))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5  # the contrast that WCAG asks for


def test_a_small_picture_is_sent_without_loss() -> None:
    image = np.random.default_rng(0).integers(0, 256, (120, 200, 3), dtype=np.uint8)
    data, mime, scale = encode_picture(image)
    assert (mime, scale) == ("image/png", 1.0)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), image)


def test_a_picture_too_heavy_for_png_becomes_a_jpeg_that_looks_the_same() -> None:
    ramp = np.linspace(0, 255, 900, dtype=np.float64)
    image = np.stack(np.broadcast_arrays(ramp, ramp[:, None], 128), axis=-1)
    image = (image + np.random.default_rng(0).normal(0, 4, image.shape)).clip(0, 255).astype(np.uint8)
    data, mime, scale = encode_picture(image)
    shown = np.asarray(Image.open(io.BytesIO(data)))
    assert (mime, scale, shown.shape) == ("image/jpeg", 1.0, image.shape)
    assert np.abs(shown.astype(int) - image).mean() < 4


@pytest.mark.parametrize(("width", "height"), [(300, 150), (150, 300), (4000, 1), (100, 100)])
def test_a_long_side_is_scaled_down_to_the_limit(width: int, height: int) -> None:
    data, _, scale = encode_picture(np.zeros((height, width, 3), np.uint8), limit_px=100)
    assert Image.open(io.BytesIO(data)).size == (
        max(1, round(width * scale)),
        max(1, round(height * scale)),
    )
    assert max(width, height) * scale == pytest.approx(100)


def test_only_pictures_are_encoded() -> None:
    with pytest.raises(UsageError, match="this one is 4 x 4 uint8"):
        encode_picture(np.zeros((4, 4), np.uint8))
    with pytest.raises(UsageError, match="limit_px is 0"):
        encode_picture(np.zeros((4, 4, 3), np.uint8), limit_px=0)


@pytest.mark.parametrize("label", range(24))
def test_lines_of_classes_can_be_seen_on_white_paper(label: int) -> None:
    red, green, blue = draw.line_colour(label)
    assert 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.42 * 255**2.2
    assert draw.line_colour(label) == draw.line_colour(label + 24)


def test_css_writes_what_pages_read() -> None:
    assert draw.css((0, 114, 255)) == "#0072ff"


def test_any_text_can_be_written_in_a_chart() -> None:
    text, font = draw.written("AP 50\n  \U0010ffff", 14)
    assert text == "AP 50 ?" and font.getlength(text) > 20
    assert draw.written("", 14)[0] == ""
