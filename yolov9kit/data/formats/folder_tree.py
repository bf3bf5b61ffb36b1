"""All pictures and label files below a folder, and which of them belong together by their places and names."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from yolov9kit.data.formats.layout import split_called
from yolov9kit.data.image import is_image_name
from yolov9kit.data.listing import files_below

_LABEL_FOLDERS = ("annotations", "annotation", "xmls", "xml", "labels", "labelme", "json", "jsons", "ann")
_PICTURE_FOLDERS = ("jpegimages", "images", "image", "imgs", "img", "pictures")
_ORDINARY = (*_LABEL_FOLDERS, *_PICTURE_FOLDERS)
_NO_PICTURES = ("segmentationclass", "segmentationobject", "masks", "scribbles", "imagesets")
"""Folders whose pictures are labels themselves."""

Key = tuple[tuple[str, ...], str]
"""The folders of a file below the root, without those that only say that pictures or labels lie there, and its stem."""


@dataclass(frozen=True)
class FolderTree:
    """``root``: what keys are relative to. ``pictures``: sorted, those of mask folders left out."""

    root: Path
    pictures: tuple[Path, ...]
    label_files: tuple[Path, ...]
    _by_key: dict[Key, list[Path]] = field(default_factory=lambda: defaultdict(list), repr=False)
    _by_stem: dict[str, list[Path]] = field(default_factory=lambda: defaultdict(list), repr=False)

    def __post_init__(self) -> None:
        for picture in self.pictures:
            self._by_key[self.key(picture)].append(picture)
            self._by_stem[picture.stem].append(picture)

    def key(self, path: Path) -> Key:
        parts = path.relative_to(self.root).parts[:-1]
        return tuple(part for part in parts if part.lower() not in _ORDINARY), path.stem

    def split(self, path: Path) -> str | None:
        """The split whose name a folder of the path below the root has; None for what lies elsewhere."""
        if not path.is_relative_to(self.root):
            return None
        parts = path.relative_to(self.root).parts[:-1]
        return next((split for part in parts if (split := split_called(part))), None)

    def pictures_for(self, label_file: Path, stem: str) -> tuple[Path, ...]:
        """The pictures of a stem at the place that matches a label file's, else the only one of that stem."""
        folders, _ = self.key(label_file)
        here = self._by_key.get((folders, stem))
        if here:
            return tuple(here)
        anywhere = self._by_stem.get(stem, [])
        return tuple(anywhere) if len(anywhere) == 1 else ()


def walk_tree(given: Path, suffix: str) -> FolderTree:
    """The pictures, and the files of a suffix, below a folder. Where it holds label files alone (``Annotations``, or a
    folder in it), pictures are looked for beside it.

    Raises:
        OSError: a folder cannot be read.
    """
    root = given
    above = next((folder for folder in (given, given.parent) if folder.name.lower() in _LABEL_FOLDERS), None)
    if above is not None and not any(files_below(given, is_image_name)):
        root = above.parent
    pictures = sorted(_without_masks(root, files_below(root, is_image_name)), key=Path.as_posix)
    label_files = sorted(files_below(given, lambda name: name.lower().endswith(suffix)), key=Path.as_posix)
    return FolderTree(root, tuple(pictures), tuple(label_files))


def _without_masks(root: Path, pictures: Iterable[Path]) -> Iterator[Path]:
    for picture in pictures:
        folders = picture.relative_to(root).parts[:-1]
        if not any(folder.lower() in _NO_PICTURES for folder in folders):
            yield picture
