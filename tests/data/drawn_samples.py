"""Samples made of drawn pictures, for the tests of augmentation and batches."""

from pathlib import Path

import numpy as np
from PIL import Image

from yolov9kit.data.dataset import Sample
from yolov9kit.data.synthetic import draw_shapes

SIZES_WH = ((96, 64), (64, 96), (80, 80), (200, 120), (40, 30))
"""Wide, high and square, larger and smaller than the 64 and 96 pixels of the tests."""


def drawn_samples(folder: Path, count: int) -> list[Sample]:
    """PNG pictures of several sizes; every third has nothing on it."""
    samples = []
    for number in range(count):
        drawing = draw_shapes(number, SIZES_WH[number % len(SIZES_WH)], count=0 if number % 3 == 2 else 4)
        path = folder / f"{number}.png"
        Image.fromarray(drawing.pixels).save(path)
        height, width = drawing.pixels.shape[:2]
        samples.append(Sample(path, (width, height), drawing.boxes, drawing.labels))
    return samples


def smooth_noise(seed: int, height: int, width: int) -> np.ndarray:
    """H x W x 3 uint8 without hard edges, so that a slightly other interpolation gives nearly the same."""
    import cv2

    coarse = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC))
