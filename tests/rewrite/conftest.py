"""Small data sets to rewrite, and a look at whether they stay what they were."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from tests.rewrite.small_sets import MakeSet, digests, noise, save

Rows = Sequence[str] | None


@pytest.fixture
def blood_cells(shared: Path, tmp_path: Path) -> Path:
    """The test split of a real set of blood cells, 72 pictures, by a description of our own."""
    folder = tmp_path / "cells"
    folder.mkdir()
    content = {"test": f"{shared}/data/bccd/images/test", "names": ["RBC", "WBC", "Platelets"]}
    (folder / "data.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return folder


@pytest.fixture
def make_set(tmp_path: Path) -> MakeSet:
    """A data set in YOLO layout: ``splits`` gives for each split the rows of each picture, None for no label file."""

    def make(
        splits: dict[str, Sequence[Rows]],
        names: Sequence[str] = ("nut", "bolt", "wing nut"),
        folder: str = "source",
        seed: int = 0,
    ) -> Path:
        root = tmp_path / folder
        for split, pictures in splits.items():
            for i, rows in enumerate(pictures):
                seed += 1
                save(root / "images" / split / f"{split} {i}.png", noise(seed))
                label = root / "labels" / split / f"{split} {i}.txt"
                label.parent.mkdir(parents=True, exist_ok=True)
                if rows is not None:
                    label.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
        content = {split: f"images/{split}" for split in splits} | {"names": list(names)}
        (root / "data.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
        return root

    return make


@pytest.fixture
def untouched() -> Iterator[Callable[[Path], None]]:
    """``untouched(folder)``: every file of it must be at the end of the test what it is now."""
    before: dict[Path, dict[str, str]] = {}

    def watch(folder: Path) -> None:
        before[folder] = digests(folder)

    yield watch
    for folder, files in before.items():
        assert files and digests(folder) == files
