"""Annotation files that tell of a whole split each: where they lie, and which split each of them means."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import in_order, split_called
from yolov9kit.data.image import is_image_name
from yolov9kit.data.listing import files_below
from yolov9kit.errors import DataError
from yolov9kit.types import printable

ANNOTATION_FOLDERS = ("annotations", "annotation", "labels", "label", "json", "jsons", "csv")
_SAY_NOTHING = (
    "",
    *ANNOTATION_FOLDERS,
    "coco",
    "createml",
    "instances",
    "boxes",
    "bbox",
    "default",
    "data",
    "dataset",
    "gt",
    "ann",
)
_MOST_FILES = 100  # a folder with more of a kind holds one for each picture


@dataclass(frozen=True)
class SplitFile:
    """One file. ``kind``: of several files of a split, what this one holds. ``called``: how its name or its folder
    spells the split (``train2017``); ``exactly``: by that word alone. ``root``: pictures are looked for below it."""

    file: Path
    root: Path
    kind: str
    split: str
    called: str
    exactly: bool


def files_at(path: Path, suffixes: Sequence[str]) -> list[Path]:
    """The file at a path, or those of a folder, of the folders in it, and of ``annotations`` in these.

    A folder with very many of them is passed over: they tell of one picture each.
    """
    if not path.is_dir():
        return [path] if path.suffix.lower() in suffixes else []
    return [file for folder in _folders_at(path) for file in _files_in(folder, suffixes)]


def split_file(path: Path, file: Path, kinds: Iterable[str] = ()) -> SplitFile:
    """What the name of one of ``files_at(path)`` tells. A name may begin with one of ``kinds``."""
    root = path if path.is_dir() else file.parent
    if root.name.lower() in ANNOTATION_FOLDERS and not any(files_below(root, is_image_name)):
        root = root.parent
    stem = file.stem
    kind = next((kind for kind in kinds if kind and f"{stem}_".lower().startswith(f"{kind}_")), "")
    called = stem[len(kind) :].strip("_-. ")
    split = split_called(_without_year(called))
    if split is not None:
        return SplitFile(file, root, kind, split, called, exactly=True)
    words = re.split(r"[\W_]+", called.lower())
    splits = {split for word in words if (split := split_called(_without_year(word))) is not None}
    if len(splits) == 1:
        return SplitFile(file, root, kind, splits.pop(), called, exactly=False)
    if any(word not in _SAY_NOTHING for word in words):
        return SplitFile(file, root, kind, called if kind else "", called, exactly=False)
    folder = file.parent
    if folder.name.lower() in ANNOTATION_FOLDERS and folder != root:
        folder = folder.parent
    return SplitFile(file, root, kind, split_called(folder.name) or "", folder.name, exactly=False)


def one_for_each_split(
    path: Path, places: Sequence[SplitFile], kinds: Sequence[str] = ("",)
) -> tuple[dict[str, SplitFile], list[Finding]]:
    """Of the files of each split the one whose kind comes first, and a note that names the others.

    A file that names no split is ``train`` if it is alone.

    Raises:
        DataError: two files of the same kind for one split.
    """
    exact = {place.split: place.called for place in places if place.exactly}
    groups: dict[str, list[SplitFile]] = {}
    for place in places:
        if not place.exactly and exact.get(place.split, place.called) != place.called:
            place = replace(place, split=place.called)  # test-dev2017 beside test2017
        groups.setdefault(place.split, []).append(place)
    taken: dict[str, SplitFile] = {}
    notes = []
    for split in in_order(set(groups)):
        best, *others = sorted(groups[split], key=lambda place: (kinds.index(place.kind), place.file))
        if others and others[0].kind == best.kind:
            which = f"for split '{split}'" if split else "whose names tell no split"
            raise DataError(
                printable(
                    f"{path}: two files {which}: {best.file} and {others[0].file}: give one of them, or call them "
                    "train and val"
                )
            )
        split = split or ("train" if len(groups) == 1 else best.file.stem)
        taken[split] = replace(best, split=split)
        if others:
            names = ", ".join(str(other.file.relative_to(path)) for other in others)
            message = f"the boxes of split '{split}' come from here, {names} not taken"
            notes.append(Finding("place", "note", best.file, printable(message), value=printable(names)))
    return taken, notes


def _without_year(word: str) -> str:
    return re.sub(r"(?<=[A-Za-z])(19|20)\d\d$", "", word)


def _folders_at(root: Path) -> Iterator[Path]:
    yield root
    for folder in _folders_in(root):
        yield folder
        yield from (inner for inner in _folders_in(folder) if inner.name.lower() in ANNOTATION_FOLDERS)


def _files_in(folder: Path, suffixes: Sequence[str]) -> list[Path]:
    names = [name for name in _visible(folder) if name.lower().endswith(tuple(suffixes))]
    return (
        [folder / name for name in names if os.path.isfile(folder / name)]
        if len(names) <= _MOST_FILES
        else []
    )


def _folders_in(folder: Path) -> list[Path]:
    return [folder / name for name in _visible(folder) if os.path.isdir(folder / name)]


def _visible(folder: Path) -> list[str]:
    """Names in a folder, sorted; none where it cannot be listed."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith(".") and name != "__MACOSX")
    except OSError:
        return []
