"""Label files that belong to no picture. Folders are listed, single files hardly looked at."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.image import is_image_name
from yolov9kit.data.listing import label_places

_NO_LABELS = frozenset(
    ("classes.txt", "names.txt", "predefined_classes.txt", "train.txt", "val.txt", "test.txt")
)
_LOOKED_AT = 4096  # bytes, to tell rows from other text


def find_orphans(
    pictures: Iterable[Path], places: Callable[[Path], tuple[Path, ...]] = label_places
) -> list[Finding]:
    """Label files, where those of ``pictures`` are looked for, beside which no picture exists.

    Pictures of other splits in the same folders count as well. A text that does not begin with a number is no label
    file.
    """
    homes: dict[Path, dict[Path, None]] = {}
    for folder in dict.fromkeys(picture.parent for picture in pictures):
        for place in places(folder / "a.jpg"):
            homes.setdefault(place.parent, {})[folder] = None
    found: list[Finding] = []
    for folder, picture_folders in homes.items():
        found += _below(folder, list(picture_folders), homes)
    return found


def _below(folder: Path, picture_folders: list[Path], homes: dict[Path, dict[Path, None]]) -> list[Finding]:
    texts, folders = _listed(folder)
    texts = [name for name in texts if name.endswith(".txt") and name not in _NO_LABELS]
    known: set[str] = set()
    exist = False
    for pictures in picture_folders if texts or folders else ():
        names, _ = _listed(pictures)
        exist = exist or pictures.is_dir()
        known.update(os.path.splitext(name)[0] for name in names if is_image_name(name))
    alone = [folder / name for name in texts if name[:-4] not in known]
    alone = [path for path in sorted(alone) if _begins_with_a_number(path)]
    if alone and not exist:
        message = f"{len(alone)} label files, but there is no folder {picture_folders[0]} with their pictures"
        found = [Finding("label_orphan", "warning", folder, message, value=str(len(alone)))]
    else:
        where = " or ".join(map(str, picture_folders))
        message = f"label file without a picture in {where}: find the picture, or remove the file"
        found = [Finding("label_orphan", "warning", path, message) for path in alone]
    if folder not in picture_folders:
        for name in sorted(folders):
            if folder / name not in homes:
                found += _below(folder / name, [pictures / name for pictures in picture_folders], homes)
    return found


def _listed(folder: Path) -> tuple[list[str], list[str]]:
    """Names of files and of folders; none where it cannot be listed. Links to folders are left alone."""
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and entry.name != "__MACOSX":
                    (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
    except OSError:
        return [], []
    return files, folders


def _begins_with_a_number(path: Path) -> bool:
    """Rows do; lists and notes do not. An empty file is the label of a background."""
    try:
        with path.open("rb") as file:
            start = file.read(_LOOKED_AT).removeprefix(b"\xef\xbb\xbf")
    except OSError:
        return False
    columns = start.split(maxsplit=1)
    try:
        return not columns or float(columns[0]) == float(columns[0])
    except ValueError:
        return False
