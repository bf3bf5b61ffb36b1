"""Folders of pictures that lie beside those of the data set and that no split names."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from yolov9kit.data.dataset import Dataset
from yolov9kit.data.findings import Finding
from yolov9kit.data.image import is_image_name
from yolov9kit.types import printable


def unnamed_folders(datasets: Sequence[Dataset]) -> list[Finding]:
    """``picture_unnamed`` for each folder beside a named one, or at the same place beside its parent, with pictures.

    ``images/test`` beside ``images/train``, ``val/images`` beside ``valid/images``: forgotten, or left on purpose.
    Only these places are looked at, each without what lies below it.
    """
    named = {path.resolve() for dataset in datasets for path in (*dataset.sources, *dataset.checked)}
    sources = dict.fromkeys(path for dataset in datasets for path in dataset.sources if path.is_dir())
    found = {}
    for folder in (place for source in sources for place in _beside(source)):
        if folder.resolve() in named or folder in found:
            continue
        pictures = [entry for entry in _entries(folder) if is_image_name(entry.name)]
        left = sorted(entry.name for entry in pictures if Path(entry.path).resolve() not in named)
        if pictures and len(left) == len(pictures):
            message = (
                f"{len(left)} picture{' that no split names' if len(left) == 1 else 's that no split names'}, "
                f"{left[0]} first: name the folder in the description, or leave it out on purpose"
            )
            found[folder] = Finding(
                "picture_unnamed", "warning", folder, printable(message), value=str(len(left))
            )
    return list(found.values())


def _beside(source: Path) -> Iterator[Path]:
    yield from _folders(source.parent)
    if source.parent != source.parent.parent:
        yield from (folder / source.name for folder in _folders(source.parent.parent))


def _folders(parent: Path) -> list[Path]:
    names = sorted(entry.name for entry in _entries(parent) if entry.is_dir() and entry.name[0] != ".")
    return [parent / name for name in names]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # not there, or not for us to see
        return []
