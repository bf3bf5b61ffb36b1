"""Small data sets to look into."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

Write = Mapping[str, str | bytes | None]


@pytest.fixture(autouse=True)
def cache_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """data.yaml of six pictures, 200 x 100 pixels, one of them cut off and one without a label file."""
    folder = tmp_path / "Parts"
    rows: Write = {
        "train/Night nut.png": "0 0.5 0.5 0.1 0.2\n1 0.5 0.5 0.9 0.9\n",  # 20 x 20 and 180 x 90
        "train/bolt.png": "\n1 0.25 0.25 0.2 0.4\n0 0.5 0.5 0.2\n0 0.75 0.75 0.05 0.1\n",  # a row of four columns
        "train/cut.png": "0 0.5 0.5 0.1 0.1\n",
        "train/empty.png": "",
        "val/night bolt.png": "1 0.5 0.5 0.5 0.5\n",
        "val/unlabelled.png": None,
    }
    for seed, (name, text) in enumerate(rows.items()):
        picture, labels = folder / "images" / name, folder / "labels" / name
        picture.parent.mkdir(parents=True, exist_ok=True)
        labels.parent.mkdir(parents=True, exist_ok=True)
        grain = np.random.default_rng(seed).integers(0, 256, (10, 20, 3), np.uint8)
        Image.fromarray(grain).resize((200, 100)).save(picture)
        if text is not None:
            labels.with_suffix(".txt").write_text(text)
    cut = folder / "images/train/cut.png"
    cut.write_bytes(cut.read_bytes()[:-200])
    file = folder / "data.yaml"
    file.write_text("train: images/train\nval: images/val\nnames: [nut, bolt]\n")
    return file
