"""A small data set of drawn shapes in YOLO layout."""

from pathlib import Path

import numpy as np
from PIL import Image

from yolov9kit.data.synthetic import SHAPE_NAMES, draw_shapes

SIZE = (160, 120)


def write_pictures(folder: Path, split: str, seeds: range) -> None:
    """One split: a picture and a label file for each seed."""
    (folder / "images" / split).mkdir(parents=True)
    (folder / "labels" / split).mkdir(parents=True)
    for seed in seeds:
        drawing = draw_shapes(seed, SIZE)
        Image.fromarray(drawing.pixels).save(folder / f"images/{split}/{seed}.png")
        rows = []
        for box, label in zip(drawing.boxes, drawing.labels, strict=True):
            x1, y1, x2, y2 = box / np.array([*SIZE, *SIZE])
            rows.append(f"{label} {(x1 + x2) / 2:.6f} {(y1 + y2) / 2:.6f} {x2 - x1:.6f} {y2 - y1:.6f}")
        (folder / f"labels/{split}/{seed}.txt").write_text("\n".join(rows) + "\n")


def write_shapes(folder: Path, train: range = range(8), val: range = range(100, 104)) -> Path:
    """Both splits and the data.yaml in ``folder``, which is returned."""
    write_pictures(folder, "train", train)
    write_pictures(folder, "val", val)
    names = ", ".join(SHAPE_NAMES)
    (folder / "data.yaml").write_text(f"train: images/train\nval: images/val\nnames: [{names}]\n")
    return folder
