"""The upright box around shapes that are none."""

import math
from collections.abc import Sequence

from yolov9kit.data.formats.pixel_rows import Box


def around_points(points: Sequence[tuple[float, float]]) -> Box:
    """The upright box around at least one point."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return min(xs), min(ys), max(xs), max(ys)


def around_tilted(x: float, y: float, width: float, height: float, angle: float) -> Box:
    """The upright box around a box with its centre at ``x`` and ``y``, turned by an angle in radians."""
    cos, sin = abs(math.cos(angle)), abs(math.sin(angle))
    half_x, half_y = (width * cos + height * sin) / 2, (width * sin + height * cos) / 2
    return x - half_x, y - half_y, x + half_x, y + half_y


def around_ellipse(x: float, y: float, radius_x: float, radius_y: float, angle: float) -> Box:
    """The upright box around an ellipse with its centre at ``x`` and ``y``, turned by an angle in radians."""
    half_x = math.hypot(radius_x * math.cos(angle), radius_y * math.sin(angle))
    half_y = math.hypot(radius_x * math.sin(angle), radius_y * math.cos(angle))
    return x - half_x, y - half_y, x + half_x, y + half_y
