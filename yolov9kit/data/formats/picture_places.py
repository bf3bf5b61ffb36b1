"""Where the pictures lie that an annotation file names. Folders are listed, each once; no picture is opened."""

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import SPLIT_NAMES
from yolov9kit.data.image import is_image_name
from yolov9kit.data.yaml_file import spellings, without_dots
from yolov9kit.types import printable

_PICTURE_FOLDERS = ("images", "Images", "JPEGImages", "image", "img", "imgs", "data")
_SHOWN_PLACES = 4


def folders_of(root: Path, file: Path, split: str, also: Iterable[str] = ()) -> tuple[Path, ...]:
    """Where names in an annotation file may start, the likeliest first. ``also``: other names of the split."""
    called = [name for name in dict.fromkeys((*also, *SPLIT_NAMES.get(split, (split,)))) if name]
    bases = tuple(dict.fromkeys((file.parent, root)))
    inner = [
        base / place
        for base in bases
        for name in called
        for place in (f"images/{name}", f"{name}/images", name)
    ]
    return tuple(
        dict.fromkeys((*inner, *(base / name for base in bases for name in _PICTURE_FOLDERS), *bases))
    )


class PictureFinder:
    """Finds pictures by name below some folders, which are listed once each.

    ``names``: all that will be asked for. One whose folders are found nowhere is also looked for by its last part
    alone, if that is the last part of no other. With ``bare``, the suffix may be missing.
    """

    def __init__(self, folders: Iterable[Path], names: Iterable[str], bare: bool = False) -> None:
        self.folders = tuple(folders)
        self._existing = [str(folder) for folder in self.folders if os.path.isdir(folder)]
        self._bare = bare
        self._last = Counter(last_part(name) for name in dict.fromkeys(names))
        self._listed: dict[str, dict[str, str]] = {}

    def find(self, name: str) -> Path | None:
        """None: there is no such file in any of the folders."""
        for place in self._places(name):
            folder, _, last = place.rpartition("/")
            found = self._names_in(folder or "/").get(_composed(last))
            if found is not None:
                path = Path(folder or "/", found)
                return without_dots(path) if ".." in folder else path
        return None

    def tried(self, name: str) -> str:
        """The places looked at, for people."""
        places = [str(folder / spellings(_encodable(name))[-1]) for folder in self.folders]
        more = f" and {len(places) - _SHOWN_PLACES} more" if len(places) > _SHOWN_PLACES else ""
        return ", ".join(places[:_SHOWN_PLACES]) + more

    def unnamed(self, pictures: Iterable[Path], named: set[str]) -> list[Path]:
        """Files that look like pictures, in the folders of ``pictures``, whose last part is not among ``named``."""
        folders = sorted({str(picture.parent) for picture in pictures})
        known = {_composed(name) for name in named}
        if self._bare:
            known |= {os.path.splitext(name)[0] for name in known}
        return [
            Path(folder, name)
            for folder in folders
            for key, name in sorted(self._names_in(folder).items())
            if is_image_name(name) and key not in known and key == _composed(name)
            if not (self._bare and os.path.splitext(key)[0] in known)
        ]

    def _places(self, name: str) -> Iterator[str]:
        if name != _encodable(name) or "\0" in name:
            return
        for spelling in spellings(name):
            yield from (os.path.join(folder, spelling) for folder in self._existing)
        last = last_part(name)
        if last != name and self._last[last] == 1:
            yield from (os.path.join(folder, spellings(last)[0]) for folder in self._existing)

    def _names_in(self, folder: str) -> dict[str, str]:
        """The files of a folder by their composed names; with ``bare``, pictures also by what is before the suffix."""
        if folder not in self._listed:
            try:
                with os.scandir(folder) as entries:
                    names = sorted(entry.name for entry in entries if not _is_folder(entry))
            except (OSError, ValueError):
                names = []
            listed: dict[str, str] = {}
            if self._bare:
                pictures = [name for name in names if is_image_name(name)]
                listed = {os.path.splitext(_composed(name))[0]: name for name in reversed(pictures)}
            self._listed[folder] = listed | {_composed(name): name for name in names}
        return self._listed[folder]


def about_unnamed(file: Path, unnamed: list[Path]) -> list[Finding]:
    """Pictures that no annotation file names: one finding for all."""
    if not unnamed:
        return []
    lie = "1 picture lies" if len(unnamed) == 1 else f"{len(unnamed)} pictures lie"
    message = (
        f"{lie} beside those it names and {'is' if len(unnamed) == 1 else 'are'} named nowhere, left out: "
    )
    return [
        Finding(
            "picture_unnamed", "warning", file, printable(f"{message}{unnamed[0]}"), value=str(len(unnamed))
        )
    ]


def last_part(name: str) -> str:
    """What is behind the last separator, that of Windows too."""
    return re.split(r"[/\\]", name)[-1]


def _composed(name: str) -> str:
    """Accents may be written in two ways; archives made on a Mac hold the other one."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def _encodable(name: str) -> str:
    """JSON may hold halves of characters, which no file name does."""
    return name.encode("utf-8", "replace").decode("utf-8")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False
