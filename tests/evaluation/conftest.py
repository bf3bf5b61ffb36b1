"""Data sets to evaluate on: boards that real weights were trained for, and drawn shapes."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from yolov9kit.data.synthetic import draw_shapes

BOARD_NAMES = ("open", "short", "mousebite", "spur", "copper", "pin-hole")


@pytest.fixture(autouse=True)
def cache_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def boards(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data.yaml of the 16 real boards, which stay where they are."""
    file = tmp_path_factory.mktemp("boards") / "data.yaml"
    file.write_text(f"path: {shared / 'checkpoints'}\nval: images\nnames: [{', '.join(BOARD_NAMES)}]\n")
    return file


@pytest.fixture(scope="session")
def tiles(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data.yaml of 112 pieces of the boards, 320 x 320 pixels; the split ``few`` has 36 of them."""
    folder = tmp_path_factory.mktemp("tiles")
    (folder / "images").mkdir()
    (folder / "labels").mkdir()
    names = []
    for path in sorted((shared / "checkpoints/images").glob("*.jpg")):
        board = np.array(Image.open(path).convert("RGB"))
        rows = np.loadtxt(path.with_suffix(".txt"), ndmin=2)
        for number, (x, y) in enumerate(
            [(0, 0), (320, 0), (0, 320), (320, 320), (160, 160), (160, 0), (0, 160)]
        ):
            name = f"{path.stem}-{number}"
            Image.fromarray(board[y : y + 320, x : x + 320]).save(folder / f"images/{name}.png")
            (folder / f"labels/{name}.txt").write_text(cut_rows(rows, x, y))
            names.append(name)
    (folder / "few.txt").write_text("".join(f"images/{name}.png\n" for name in names[:36]))
    file = folder / "data.yaml"
    file.write_text(f"val: images\nfew: few.txt\nnames: [{', '.join(BOARD_NAMES)}]\n")
    return file


def cut_rows(rows: np.ndarray, x: int, y: int) -> str:
    """Label rows of the boxes (of a 640 x 640 board) whose centre lies in the tile at x, y."""
    first = 640 * (rows[:, 1:3] - rows[:, 3:] / 2) - (x, y)
    second = 640 * (rows[:, 1:3] + rows[:, 3:] / 2) - (x, y)
    centre = (first + second) / 2
    inside = ((centre > 0) & (centre < 320)).all(1)
    first, second = first.clip(0, 320) / 320, second.clip(0, 320) / 320
    return "".join(
        f"{int(label)} {' '.join(f'{v:.6f}' for v in (*(a + b) / 2, *(b - a)))}\n"
        for label, a, b in zip(rows[inside, 0], first[inside], second[inside], strict=True)
    )


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """data.yaml of drawn shapes with the three classes of ``lively_weights``: six pictures to train, four to score."""
    folder = tmp_path_factory.mktemp("shapes")
    for split, seeds in (("train", range(6)), ("val", range(100, 104))):
        (folder / "images" / split).mkdir(parents=True)
        (folder / "labels" / split).mkdir(parents=True)
        for seed in seeds:
            drawing = draw_shapes(seed, (160, 120))
            Image.fromarray(drawing.pixels).save(folder / f"images/{split}/{seed}.png")
            corners = drawing.boxes / (160, 120, 160, 120)
            rows = [
                f"{label} {(x1 + x2) / 2:.6f} {(y1 + y2) / 2:.6f} {x2 - x1:.6f} {y2 - y1:.6f}\n"
                for (x1, y1, x2, y2), label in zip(corners, drawing.labels, strict=True)
            ]
            (folder / f"labels/{split}/{seed}.txt").write_text("".join(rows))
    file = folder / "data.yaml"
    file.write_text("train: images/train\nval: images/val\nnames: [nut, bolt, wing nut]\n")
    return file
