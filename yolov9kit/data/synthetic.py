"""Drawn pictures with exact boxes: tests, notebooks and demos stand on them.

Integer NumPy drawing, so that the same seed gives the same pixels on every machine.
"""

from dataclasses import dataclass

import numpy as np

SHAPE_NAMES = ("rectangle", "disc", "triangle")


@dataclass(frozen=True, eq=False)
class Drawing:
    """``pixels`` H x W x 3 uint8 RGB; ``boxes`` M x 4 float32 xyxy pixels; ``labels`` M, index into SHAPE_NAMES."""

    pixels: np.ndarray
    boxes: np.ndarray
    labels: np.ndarray


def draw_shapes(seed: int, picture_wh: tuple[int, int] = (640, 480), count: int = 6) -> Drawing:
    """Plain rectangles, discs and triangles on a shaded ground, none covering another's centre."""
    width, height = picture_wh
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width].astype(np.int64)
    ground = rng.integers(60, 140, 3)
    slope = rng.integers(-40, 41, (2, 3))
    pixels = ground + x[..., None] * slope[0] // width + y[..., None] * slope[1] // height
    boxes: list[tuple[int, int, int, int]] = []
    labels: list[int] = []
    for _ in range(50 * count):
        if len(boxes) == count:
            break
        half = int(rng.integers(min(width, height) // 20, min(width, height) // 7))
        cx, cy = int(rng.integers(half, width - half)), int(rng.integers(half, height - half))
        if any(abs(cx - (a + c) // 2) < half + (c - a) // 2 and abs(cy - (b + d) // 2) < half + (d - b) // 2
               for a, b, c, d in boxes):  # fmt: skip
            continue
        label = int(rng.integers(3))
        mask = _inside(label, x - cx, y - cy, half)
        pixels[mask] = rng.integers(0, 256, 3)
        boxes.append((cx - half, cy - half, cx + half, cy + half))
        labels.append(label)
    return Drawing(
        pixels.clip(0, 255).astype(np.uint8),
        np.array(boxes, np.float32).reshape(-1, 4),
        np.array(labels, np.int64),
    )


def _inside(label: int, dx: np.ndarray, dy: np.ndarray, half: int) -> np.ndarray:
    """Pixels of a shape that fills the square of side ``2 * half`` around the origin."""
    square = (-half <= dx) & (dx < half) & (-half <= dy) & (dy < half)
    if label == 1:
        return square & ((2 * dx + 1) ** 2 + (2 * dy + 1) ** 2 <= 4 * half * half)
    if label == 2:  # widest in its last row
        return square & (2 * np.abs(2 * dx + 1) <= 2 * (dy + half + 1))
    return square
