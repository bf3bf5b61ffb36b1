"""Detections → picture, and what charts are drawn with. The only colours, line widths and fonts in the house.

Class names are drawn with the font that Pillow brings along. It holds plain ASCII only, so a name with other
characters takes a system font that has them all, if one is found; else accents are left out; else the label
reads ``class 3``. Nothing is searched for before the first such name is drawn.
"""

import io
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from yolov9kit.errors import UsageError
from yolov9kit.types import Detections

Colour = tuple[int, int, int]
_Rectangle = tuple[int, int, int, int]

# Okabe and Ito's seven, then those that stay farthest from all before them, seen with normal vision and with
# each of the three kinds of colour blindness. None is too dark or too pale to be seen on a photograph.
_PALETTE: tuple[Colour, ...] = (
    (230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (0, 114, 178), (213, 94, 0),
    (204, 121, 167), (75, 255, 240), (165, 15, 90), (165, 75, 255), (105, 0, 225), (165, 210, 150),
    (120, 90, 0), (150, 135, 255), (195, 30, 150), (135, 210, 255), (165, 255, 150), (165, 90, 75),
    (210, 45, 210), (135, 0, 180), (240, 195, 90), (135, 180, 120), (240, 120, 60), (150, 30, 135),
)  # fmt: skip
_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)

PAPER: Colour = (255, 255, 255)
INK: Colour = (28, 32, 38)
FADED: Colour = (104, 112, 122)
RULE: Colour = (222, 226, 231)
SHADE: Colour = (245, 247, 249)
"""Of charts, tables and pages: ground, text, lesser text, lines, and the ground of what is set apart."""
_LARGEST_PNG_PX = 1_000_000  # to try it on more would take long and mostly be in vain

# Pillow looks these up in the font folders of Linux, macOS and Windows. The empty name is its own font.
_FONTS = (
    "",
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "segoeui.ttf",
    "NotoSansCJK-Regular.ttc",
    "wqy-microhei.ttc",
    "DroidSansFallbackFull.ttf",
    "msyh.ttc",
    "malgun.ttf",
    "meiryo.ttc",
    "Hiragino Sans GB.ttc",
    "PingFang.ttc",
    "Arial Unicode.ttf",
)


def class_colour(label: int) -> Colour:
    """The colour (red, green, blue, each 0..255) of class ``label``; after 24 classes they repeat."""
    return _PALETTE[label % len(_PALETTE)]


def text_colour(background: Colour) -> Colour:
    """Black or white, whichever is easier to read on ``background``."""
    return _BLACK if _luminance(background) > 0.179 else _WHITE  # where both have the same contrast


def _luminance(colour: Colour) -> float:
    linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def line_colour(label: int) -> Colour:
    """The colour of class ``label``, darker where it would be too pale for a line on white paper."""
    colour = class_colour(label)
    while _luminance(colour) > 0.4:  # from there on the contrast to white is under 2.3
        colour = (colour[0] * 9 // 10, colour[1] * 9 // 10, colour[2] * 9 // 10)
    return colour


def css(colour: Colour) -> str:
    """The colour as a page writes it, ``#rrggbb``."""
    return "#{:02x}{:02x}{:02x}".format(*colour)


def written(text: str, size: int) -> tuple[str, ImageFont.FreeTypeFont]:
    """Text as it can be drawn, and a font of ``size`` pixels that has its characters; what none has becomes ``?``."""
    fitting = _fitting(text, size)
    if fitting is None:
        own = _font("", size)
        assert own is not None
        plain = "".join(c if _has_glyph("", c) else "?" for c in " ".join(text.split()))
        return plain, own
    return fitting


def draw_detections(
    image: np.ndarray,
    detections: Detections,
    *,
    line_width: int | None = None,
    labels: bool = True,
    scores: bool = True,
) -> np.ndarray:
    """A copy of the picture with the boxes and, beside each, its class name and score.

    Args:
        image: H x W x 3 uint8 RGB, the original picture that the boxes belong to. It is not changed.
        detections: what to draw, boxes in pixels of that picture.
        line_width: pixels; without it, 0.3 % of the picture's mean side. The text grows with the picture too.
        labels: write the class name.
        scores: write the score.

    Returns H x W x 3 uint8 RGB. Raises UsageError for another kind of array or a picture of another size.
    """
    _check(image, detections, line_width)
    height, width = image.shape[:2]
    side = (width + height) / 2
    line = line_width or max(1, round(0.003 * side))
    canvas = Image.fromarray(image).copy()
    pen = ImageDraw.Draw(canvas)
    for i in reversed(range(len(detections))):  # the best detection comes last and lies on top
        _draw_box(pen, detections.boxes[i], class_colour(int(detections.labels[i])), line)
    if labels or scores:
        size = max(8, round(0.011 * side + 6))
        written = (_tag(detections, i, size, line, labels, scores) for i in range(len(detections)))
        placed = _placed([tag for tag in written if tag], width, height)
        for tag, place in reversed(placed):
            _draw_tag(pen, tag, place)
    return np.array(canvas)


def encode_picture(
    image: np.ndarray, limit_px: int = 2000, png_bytes: int = 256 * 1024
) -> tuple[bytes, str, float]:
    """The picture as a file that every browser shows, small enough to send.

    Args:
        image: H x W x 3 uint8 RGB.
        limit_px: a longer side is scaled down to this many pixels.
        png_bytes: how large a lossless PNG may be; above that the file is a JPEG of quality 90.

    Returns the file, its MIME type, and its size relative to the
    picture, 1 or less. Raises UsageError for another kind of array or a limit below 1.
    """
    _check_pixels(image)
    if limit_px < 1:
        raise UsageError(f"limit_px is {limit_px}, the smallest picture has 1 pixel")
    height, width = image.shape[:2]
    scale = min(1.0, limit_px / max(height, width))
    picture = Image.fromarray(image)
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        picture = picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=2.0)
    if picture.width * picture.height <= _LARGEST_PNG_PX:
        png = io.BytesIO()
        picture.save(png, "PNG", compress_level=6)
        if png.tell() <= png_bytes:
            return png.getvalue(), "image/png", scale
    jpeg = io.BytesIO()
    picture.save(jpeg, "JPEG", quality=90)
    return jpeg.getvalue(), "image/jpeg", scale


def _check_pixels(image: np.ndarray) -> None:
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        shape = " x ".join(map(str, image.shape))
        raise UsageError(f"a picture to draw on is H x W x 3 uint8, this one is {shape} {image.dtype}")


def _check(image: np.ndarray, detections: Detections, line_width: int | None) -> None:
    _check_pixels(image)
    height, width = image.shape[:2]
    if detections.picture_wh != (width, height):
        theirs = "{} x {}".format(*detections.picture_wh)
        raise UsageError(
            f"the detections belong to a picture of {theirs} pixels, this one is {width} x {height}"
        )
    if line_width is not None and line_width < 1:
        raise UsageError(f"line_width is {line_width}, the thinnest line is 1 pixel")


def _pixels(box: np.ndarray, grow: int, width: int, height: int) -> _Rectangle:
    """First and last pixel column and row of the box, grown on each side, as far as the picture reaches."""
    limits = np.array([width, height, width, height]) - 1
    grown = np.round(box).astype(int) + np.array([-grow, -grow, grow - 1, grow - 1])
    left, top, right, bottom = np.clip(grown, 0, limits).tolist()
    return left, top, max(left, right), max(top, bottom)


def _rim(line: int) -> int:
    return max(1, line // 4)


def _draw_box(pen: ImageDraw.ImageDraw, box: np.ndarray, colour: Colour, line: int) -> None:
    """A line around the box, so that small objects stay visible, with a rim that shows it on any picture."""
    outer, rim = _pixels(box, line + _rim(line), *pen.im.size), _rim(line)
    pen.rectangle(outer, outline=text_colour(colour), width=line + 2 * rim)
    pen.rectangle(_pixels(box, line, *pen.im.size), outline=colour, width=line)


@dataclass(frozen=True)
class _Tag:
    text: str
    font: ImageFont.FreeTypeFont
    colour: Colour
    box: _Rectangle
    size: tuple[int, int]
    pad: int


def _tag(detections: Detections, i: int, size: int, line: int, labels: bool, scores: bool) -> _Tag | None:
    """What to write beside detection ``i``; None where the picture is too small for any text."""
    label, (width, height) = int(detections.labels[i]), detections.picture_wh
    name, font = _written(detections.names[label], label, size)
    score = [f"{detections.scores[i]:.2f}"] * scores
    pad = max(1, size // 6)
    text = " ".join([name] * labels + score)
    while labels and len(name) > 1 and font.getlength(text) + 2 * pad > 0.6 * width:
        name = f"{name[:-2]}…"
        text = " ".join([name, *score])
    tag_wh = (round(font.getlength(text)) + 2 * pad, sum(font.getmetrics()) + pad)
    if tag_wh[0] > width or tag_wh[1] > height / 3:
        return None
    box = _pixels(detections.boxes[i], line + _rim(line), width, height)
    return _Tag(text, font, class_colour(label), box, tag_wh, pad)


def _placed(tags: list[_Tag], width: int, height: int) -> list[tuple[_Tag, _Rectangle]]:
    """Each tag where it hides least of those before it: above its box, else below, else inside."""
    placed: list[tuple[_Tag, _Rectangle]] = []
    for tag in tags:
        left, top, right, bottom = tag.box
        w, h = tag.size
        above, below = top - h, bottom + 1
        wishes = ((left, above), (right + 1 - w, above), (left, below), (right + 1 - w, below), (left, top))
        places = []
        for x, y in wishes:
            x, y = min(max(0, x), width - w), min(max(0, y), height - h)
            places.append((x, y, x + w, y + h))
        hidden = [sum(_overlap(place, other) for _, other in placed) for place in places]
        placed.append((tag, places[hidden.index(min(hidden))]))
    return placed


def _overlap(a: _Rectangle, b: _Rectangle) -> int:
    return max(0, min(a[2], b[2]) - max(a[0], b[0])) * max(0, min(a[3], b[3]) - max(a[1], b[1]))


def _draw_tag(pen: ImageDraw.ImageDraw, tag: _Tag, place: _Rectangle) -> None:
    left, top, right, bottom = place
    pen.rectangle((left, top, right - 1, bottom - 1), fill=tag.colour)
    at = (left + tag.pad, top + tag.pad // 2)
    pen.text(at, tag.text, fill=text_colour(tag.colour), font=tag.font)


def _written(name: str, label: int, size: int) -> tuple[str, ImageFont.FreeTypeFont]:
    """The name as it can be drawn, and a font that has all of its characters."""
    fitting = _fitting(name, size)
    if fitting is not None:
        return fitting
    own = _font("", size)
    assert own is not None
    return f"class {label}", own


def _fitting(name: str, size: int) -> tuple[str, ImageFont.FreeTypeFont] | None:
    line = " ".join(name.split())
    plain = unicodedata.normalize("NFKD", line)
    without_accents = "".join(c for c in plain if not unicodedata.combining(c))
    for text in (line, without_accents):
        for file in _FONTS:
            font = _font(file, size)
            if font and text and all(_has_glyph(file, c) for c in text):
                return text, font
    return None


@lru_cache(maxsize=64)
def _font(file: str, size: int) -> ImageFont.FreeTypeFont | None:
    try:
        font = ImageFont.truetype(file, size) if file else ImageFont.load_default(size)
    except OSError:
        return None
    return font if isinstance(font, ImageFont.FreeTypeFont) else None


@lru_cache(maxsize=4096)
def _has_glyph(file: str, character: str) -> bool:
    """Whether the font draws the character as anything but the sign for a missing one."""
    font = _font(file, 16)
    if font is None:
        return False
    drawn, missing = font.getmask(character), font.getmask("\U0010ffff")
    return drawn.size != missing.size or bytes(drawn) != bytes(missing)
