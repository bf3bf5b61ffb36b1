"""What the pictures of a split are called in the new folder: no two share a label file."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from unicodedata import normalize

from yolov9kit.data.image import is_image_name


def picture_names(paths: Sequence[Path], suffixes: Sequence[str]) -> list[str]:
    """A file name for each picture: its own, or one made of its path where its own is not alone.

    Compared without the suffix, as a file system might that ignores case and the form of accents.
    ``suffixes``: of the new names.
    """
    stems = [_stem(path) for path in paths]
    often = Counter(map(_folded, stems))
    taken = {stem for stem, times in often.items() if times == 1}
    shared: dict[str, list[Path]] = {}
    for path, stem in zip(paths, stems, strict=True):
        shared.setdefault(_folded(stem), []).append(path.parent)
    common = {stem: os.path.commonpath(folders) for stem, folders in shared.items()}
    names = []
    for path, stem, suffix in zip(paths, stems, suffixes, strict=True):
        folded = _folded(stem)
        if often[folded] > 1:
            below = Path(os.path.relpath(path.parent, common[folded]))
            stem = next(new for new in _longer(below, stem, path.suffix) if _folded(new) not in taken)
            taken.add(_folded(stem))
        names.append(stem + suffix)
    return names


def _longer(below: Path, stem: str, suffix: str) -> Iterator[str]:
    with_path = _short("_".join([*below.parts, stem]))
    yield with_path
    with_suffix = f"{with_path}_{suffix[1:]}"
    yield with_suffix
    number = 2
    while True:
        yield f"{with_suffix}_{number}"
        number += 1


def _stem(path: Path) -> str:
    """Its own, but hidden files are not found in a folder, and JSON holds no bytes that are no text."""
    stem = path.stem if is_image_name(path) else path.name
    return re.sub(r"[\ud800-\udfff]", "_", stem.lstrip(".")) or "picture"


def _short(name: str) -> str:
    """The end of it, so that there is room for what is added: file systems take 255 bytes."""
    return os.fsencode(name)[-200:].decode("utf-8", "ignore") if len(os.fsencode(name)) > 200 else name


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()
