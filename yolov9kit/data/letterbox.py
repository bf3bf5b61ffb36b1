"""The one preprocessing: scale a picture into the input, pad evenly, and the way back. Exports carry this value."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from yolov9kit.errors import UsageError

PAD_VALUE = 114
"""Gray of the padding, the field's convention."""


@dataclass(frozen=True)
class Letterbox:
    """How one picture lies in the input: ``input = picture * scale_xy + pad_xy``.

    Sizes are height, width. The picture keeps its shape up to the rounding of its new size to whole pixels, which
    ``scale_xy`` takes into account.
    """

    picture_hw: tuple[int, int]
    input_hw: tuple[int, int]
    inner_hw: tuple[int, int]
    pad_xy: tuple[int, int]

    @property
    def scale_xy(self) -> tuple[float, float]:
        return self.inner_hw[1] / self.picture_hw[1], self.inner_hw[0] / self.picture_hw[0]

    def apply(self, image: np.ndarray) -> np.ndarray:
        """H0 x W0 x 3 uint8 picture to H x W x 3 uint8 input, bilinear, padded with gray 114."""
        if image.shape != (*self.picture_hw, 3) or image.dtype != np.uint8:
            expected, got = (" x ".join(map(str, shape)) for shape in ((*self.picture_hw, 3), image.shape))
            raise ValueError(f"this letterbox is for {expected} uint8, the picture is {got} {image.dtype}")
        import cv2  # imported here: reading a config or a checkpoint needs no OpenCV

        (height, width), (left, top) = self.inner_hw, self.pad_xy
        if self.inner_hw != self.picture_hw:
            image = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
        if self.inner_hw == self.input_hw:
            return np.ascontiguousarray(image)
        padded = np.full((*self.input_hw, 3), PAD_VALUE, dtype=np.uint8)
        padded[top : top + height, left : left + width] = image
        return padded

    def undo(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes N x 4 xyxy from input pixels to picture pixels, float32, not clipped."""
        scale, pad = np.tile(self.scale_xy, 2), np.tile(self.pad_xy, 2)
        return ((np.asarray(boxes, np.float64).reshape(-1, 4) - pad) / scale).astype(np.float32)

    def forward(self, boxes: np.ndarray) -> np.ndarray:
        """Boxes N x 4 xyxy from picture pixels to input pixels, float32."""
        scale, pad = np.tile(self.scale_xy, 2), np.tile(self.pad_xy, 2)
        return (np.asarray(boxes, np.float64).reshape(-1, 4) * scale + pad).astype(np.float32)


def letterbox(picture_hw: tuple[int, int], input_hw: tuple[int, int]) -> Letterbox:
    """The placement of a picture in an input: as large as fits, centred (an odd pixel goes right and below).

    Raises:
        UsageError: a side without pixels.
    """
    (height, width), (input_height, input_width) = picture_hw, input_hw
    if min(height, width, input_height, input_width) < 1:
        raise UsageError(
            f"a picture of {width} x {height} has no place in an input of {input_width} x {input_height}"
        )
    ratio = min(input_height / height, input_width / width)
    inner_height = min(max(round(height * ratio), 1), input_height)
    inner_width = min(max(round(width * ratio), 1), input_width)
    pad_xy = ((input_width - inner_width) // 2, (input_height - inner_height) // 2)
    return Letterbox((height, width), (input_height, input_width), (inner_height, inner_width), pad_xy)


def clip(boxes: np.ndarray, picture_hw: tuple[int, int]) -> np.ndarray:
    """Boxes held inside the picture."""
    height, width = picture_hw
    return np.clip(boxes, 0, np.array([width, height, width, height], dtype=np.float32))


def input_size(image_size: int | np.integer | Sequence[int], stride: int = 32) -> tuple[int, int]:
    """Height and width of the input for one number or two.

    Raises:
        UsageError: not one or two whole numbers, or a side that is not a positive multiple of ``stride``; the message
            names the nearest that is.
    """
    sides = tuple(image_size) if isinstance(image_size, Sequence) else (image_size, image_size)
    whole = all(type(side) is not bool and isinstance(side, int | np.integer) for side in sides)
    if len(sides) != 2 or not whole:
        raise UsageError(f"image size {image_size!r}: give one whole number, or height and width")
    height, width = (int(side) for side in sides)
    for side in (height, width):
        if side < stride or side % stride:
            nearest = max(stride, round(side / stride) * stride)
            raise UsageError(f"image size {side}: must be a multiple of {stride}, the nearest is {nearest}")
    return height, width
