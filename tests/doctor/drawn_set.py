"""A small data set in memory, clean when it is made: faults are planted into it, then it is written and looked at.

The training pictures are named by their folder, those to validate by a list, labels lie in labels/.
"""

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from yolov9kit.data.synthetic import SHAPE_NAMES, draw_shapes

WIDTH, HEIGHT = 96, 72
Expected = tuple[str, str, int | None]
"""Code, path below the folder of the set, line."""


@dataclass(eq=False)
class Row:
    """One line of a label file; ``box``: class, then centre and size as shares, None where the text is no such row."""

    text: str
    box: tuple[int, float, float, float, float] | None = None

    @staticmethod
    def of(label: int, cx: float, cy: float, w: float, h: float) -> "Row":
        return Row(f"{label} {cx:.6f} {cy:.6f} {w:.6f} {h:.6f}", (label, cx, cy, w, h))


@dataclass(eq=False)
class Drawn:
    """One picture. ``rows`` None: it has no label file. ``labels``: content of the label file, instead of the rows."""

    split: str
    stem: str
    suffix: str
    pixels: np.ndarray
    data: bytes
    rows: list[Row] | None
    labels: bytes | None = None
    beside: bool = False
    taken: bool = False  # by a fault of the picture, or one that needs its label file alone
    closed: bool = False  # no more faults of rows
    used: set[Row] = field(default_factory=set)  # rows that a fault refers to, and those that faults added

    @property
    def picture(self) -> str:
        return f"images/{self.split}/{self.stem}{self.suffix}"

    @property
    def label(self) -> str:
        return f"{'images' if self.beside else 'labels'}/{self.split}/{self.stem}.txt"

    def line(self, row: Row) -> int:
        assert self.rows is not None
        return self.rows.index(row) + 1

    def insert(self, row: Row, at: int) -> Row:
        assert self.rows is not None
        self.rows.insert(at, row)
        self.used.add(row)
        return row

    @property
    def touched(self) -> bool:
        return self.taken or self.closed or bool(self.used)


@dataclass(eq=False)
class DrawnSet:
    """Pictures, what the yaml and the list say beside them, and what a doctor should find."""

    pictures: list[Drawn]
    names: list[str] = field(default_factory=lambda: list(SHAPE_NAMES))
    entries: dict[str, str] = field(default_factory=lambda: {"train": "images/train", "val": "val.txt"})
    listed: list[Drawn | str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    expected: list[Callable[[], Expected]] = field(default_factory=list)
    happened: set[tuple[str, str]] = field(default_factory=set)  # what may be only once in a split
    yaml_text: str | None = None

    def of(self, split: str) -> list[Drawn]:
        """In the order in which the split names them."""
        if split == "val":
            return [one for one in self.listed if isinstance(one, Drawn)]
        return sorted((one for one in self.pictures if one.split == split), key=lambda one: one.picture)

    def add(self, one: Drawn, at: int = 0) -> Drawn:
        """``at``: the place in the list, for pictures of val."""
        self.pictures.append(one)
        if one.split == "val":
            self.listed.insert(at, one)
        return one

    def expect(
        self, code: str, where: Callable[[], str] | str, line: Callable[[], int] | None = None
    ) -> None:
        """Places are asked for when all faults are planted: rows and pictures move until then."""
        self.expected.append(
            lambda: (code, where if isinstance(where, str) else where(), None if line is None else line())
        )

    def expect_row(self, code: str, one: Drawn, row: Row) -> None:
        self.expect(code, lambda: one.label, lambda: one.line(row))

    def expect_picture(self, code: str, one: Drawn) -> None:
        self.expect(code, lambda: one.picture)

    def once(self, code: str, split: str) -> bool:
        """Whether this is the first time."""
        first = (code, split) not in self.happened
        self.happened.add((code, split))
        return first

    def content(self) -> dict[str, bytes]:
        """Every file, by its path below the folder."""
        content = dict(self.files)
        for one in self.pictures:
            content[one.picture] = one.data
            if one.labels is not None:
                content[one.label] = one.labels
            elif one.rows is not None:
                content[one.label] = "".join(f"{row.text}\n" for row in one.rows).encode()
        if any(entry.endswith("val.txt") for entry in self.entries.values()):
            lines = [one if isinstance(one, str) else one.picture for one in self.listed]
            content["val.txt"] = "".join(f"{line}\n" for line in lines).encode()
        content["data.yaml"] = (self.yaml_text or self._yaml()).encode()
        return content

    def _yaml(self) -> str:
        entries = "".join(f"{split}: {entry}\n" for split, entry in self.entries.items())
        return entries + "names:\n" + "".join(f"  {i}: {name}\n" for i, name in enumerate(self.names))

    def write(self, folder: Path) -> Path:
        """Every file; returns the yaml."""
        for path, data in self.content().items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder / "data.yaml"

    def all_expected(self) -> list[Expected]:
        return sorted((make() for make in self.expected), key=str)


def encoded(pixels: np.ndarray, kind: str = "PNG", **options: Any) -> bytes:
    """The file of a picture, H x W x 3 or H x W."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, kind, **options)
    return stream.getvalue()


@cache
def drawing(seed: int, size_wh: tuple[int, int] = (WIDTH, HEIGHT)) -> tuple[np.ndarray, tuple[Row, ...]]:
    """Shapes on coarse noise, so that no picture looks like another, and their rows."""
    drawn = draw_shapes(seed, size_wh, count=5)
    ground = draw_shapes(seed, size_wh, count=0).pixels.astype(np.int64)
    coarse = np.random.default_rng(seed).integers(-50, 51, (9, 12, 1))
    noise = np.kron(coarse, np.ones((size_wh[1] // 9 + 1, size_wh[0] // 12 + 1, 1), np.int64))
    on_ground = (drawn.pixels == ground).all(axis=2, keepdims=True)
    pixels = np.where(on_ground, ground + noise[: size_wh[1], : size_wh[0]], drawn.pixels)
    width, height = size_wh
    rows = [
        Row.of(label, (x1 + x2) / 2 / width, (y1 + y2) / 2 / height, (x2 - x1) / width, (y2 - y1) / height)
        for (x1, y1, x2, y2), label in zip(drawn.boxes.tolist(), drawn.labels.tolist(), strict=True)
    ]
    return pixels.clip(0, 255).astype(np.uint8), tuple(rows)


@cache
def _file(seed: int, suffix: str, size_wh: tuple[int, int]) -> bytes:
    pixels, _ = drawing(seed, size_wh)
    return encoded(pixels) if suffix == ".png" else encoded(pixels, "JPEG", quality=90)


def drawn(
    split: str,
    seed: int,
    stem: str | None = None,
    suffix: str | None = None,
    size_wh: tuple[int, int] = (WIDTH, HEIGHT),
) -> Drawn:
    """A clean picture with its rows; every third is a JPEG."""
    suffix = suffix or (".jpg" if seed % 3 == 0 else ".png")
    pixels, rows = drawing(seed, size_wh)
    return Drawn(split, stem or f"board {seed:03}", suffix, pixels, _file(seed, suffix, size_wh), list(rows))


def clean_set(train: Iterable[int] = range(30), val: Iterable[int] = range(100, 112)) -> DrawnSet:
    """Nothing to find: a picture for each seed."""
    whole = DrawnSet([])
    for split, seeds in (("train", train), ("val", val)):
        for seed in seeds:
            whole.add(drawn(split, seed), len(whole.listed))
    return whole
