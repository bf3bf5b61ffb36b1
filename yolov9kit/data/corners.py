"""Four corners: whether they are those of a tilted rectangle."""

from typing import Literal

Corners = Literal["oriented", "unclear", "polygon"]

_SLACK = 0.01  # of the diagonal: how far from a rectangle the corners of one may be
_ROUNDING = 1e-4  # of the picture's side: some files give four decimals only
_FARTHEST = 2.0  # share: corners of a tilted box may reach out of the picture, but not from afar


def corners_of(shares: tuple[float, ...], size_wh: tuple[int, int]) -> Corners:
    """What ``x1 y1 x2 y2 ...`` as shares of a picture of ``size_wh`` pixels are.

    ``oriented``: the four corners of a rectangle, in pixels, whose sides are parallel to no side of the picture;
    ``unclear``: four corners that may be a polygon as well, because they stand upright, or because one lies on the
    edge of the picture, where tilted boxes are cut off; ``polygon``: anything else.
    """
    if len(shares) != 8 or max(map(abs, shares)) > _FARTHEST:
        return "polygon"
    width, height = size_wh
    a, b, c, d = [complex(x * width, y * height) for x, y in zip(shares[::2], shares[1::2], strict=True)]
    one, other = b - a, c - b
    rounding = _ROUNDING * max(size_wh)
    slack = _SLACK * max(abs(c - a), abs(d - b)) + rounding
    if min(abs(one), abs(other)) <= rounding:
        return "polygon"
    if abs(a + c - b - d) > slack or abs(abs(c - a) - abs(d - b)) > slack:
        return "unclear" if {0.0, 1.0}.intersection(shares) else "polygon"
    longer = max(one, other, key=abs)
    return "oriented" if min(abs(longer.real), abs(longer.imag)) > slack else "unclear"
