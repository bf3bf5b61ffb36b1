"""Data sets in memory, pictures that need not exist."""

from pathlib import Path

import numpy as np

from yolov9kit.data.checked import Checked
from yolov9kit.data.dataset import Dataset, Sample
from yolov9kit.data.findings import Finding

NAMES = ("nut", "bolt", "washer")
CODES = ("label_clipped", "label_repeated", "picture_mode")


def random_split(split: str, seed: int, pictures: int = 25) -> Dataset:
    """Pictures of different sizes with boxes of 2 to 300 pixels, findings about some, every fifth unreadable."""
    rng = np.random.default_rng(seed)
    samples, findings, checked = [], [], {}
    for i in range(pictures):
        path = Path(f"/set/images/{split}/{rng.choice(['Day', 'night', 'NIGHT'])} {i:03}.png")
        if i % 5 == 4:
            checked[path] = Checked((0, 0), "broken")
            findings.append(Finding("picture_unreadable", "warning", path, "left out: broken"))
            continue
        wh = int(rng.integers(300, 700)), int(rng.integers(300, 700))
        count = int(rng.integers(0, 4))
        sides = 2 ** rng.uniform(1, 8, (count, 2))
        first = rng.uniform(0, 1, (count, 2)) * (np.array(wh) - sides)
        boxes = np.concatenate((first, first + sides), 1).astype(np.float32)
        label_path = Path(f"/set/labels/{split}/{path.stem}.txt")
        lines = np.sort(rng.permutation(6)[:count]) + 1
        samples.append(Sample(path, wh, boxes, rng.integers(0, len(NAMES), count), label_path, lines))
        checked[path] = Checked(wh)
        for line in range(int(rng.integers(0, 3))):
            code = str(rng.choice(CODES[:2]))
            severity = "note" if code == "label_clipped" else "warning"
            findings.append(Finding(code, severity, label_path, "said", line + 1))
        if rng.random() < 0.2:
            findings.append(Finding("picture_mode", "note", path, "gray"))
    return Dataset("set", split, NAMES, tuple(samples), tuple(findings), checked=checked)
