"""What to call files and folders, so that no two pictures or classes of a run share one."""

import re
from collections.abc import Sequence
from pathlib import Path
from unicodedata import normalize

from yolov9kit.types import Detections


class FileNames:
    """File names without ending: the picture's own, and a number if another picture of this run has it.

    Compared as a file system might that ignores case and the form of accents. A frame's name is its clip's and the
    frame number; ``clip`` is that of the frame named last.
    """

    def __init__(self) -> None:
        self.clip = ""
        self._clip_path, self._clip_frame = "", -1
        self._used: dict[str, bool] = {}  # and whether it is a clip, to which frame numbers are added
        self._last: dict[str, int] = {}

    def of(self, detections: Detections) -> str:
        path, frame = detections.path, detections.frame
        if frame is None:
            return self.fresh(_stem(path), clip=False)
        if not self.clip or path != self._clip_path or frame <= self._clip_frame:
            self.clip = self.fresh(_stem(path), clip=True)
        self._clip_path, self._clip_frame = path, frame
        return f"{self.clip}_{frame}"

    def fresh(self, stem: str, clip: bool) -> str:
        """The stem, or the stem with the first number that is free."""
        n = self._last.get(stem, 0) + 1
        while self._taken(name := stem if n == 1 else f"{stem}-{n}", clip):
            n += 1
        self._last[stem] = n
        self._used[_folded(name)] = clip
        return name

    def _taken(self, name: str, clip: bool) -> bool:
        key = _folded(name)
        before, _, number = key.rpartition("_")
        as_frame = number.isdecimal() and self._used.get(before, False)
        frames = clip and any(k.startswith(f"{key}_") and k[len(key) + 1 :].isdecimal() for k in self._used)
        return key in self._used or as_frame or frames


def _folded(name: str) -> str:
    return normalize("NFC", name).casefold()


def _stem(path: str) -> str:
    """What to call the results of ``path``: a file, a stream, ``camera 0`` or ``picture 3``."""
    file = Path(path)
    if "://" in path:
        stem = re.sub(r"[^\w.\-]+", "_", path.rpartition("://")[2])
    else:
        stem = file.stem if file.suffix else file.name.replace(" ", "_")
    return _short(re.sub(r"[\x00-\x1f\x7f\ud800-\udfff]", "_", stem)) or "picture"


def crop_folders(names: Sequence[str]) -> list[str]:
    """The folder of each class: its name as far as a file system takes it, with the label where two would be one."""
    folders: list[str] = []
    taken: set[str] = set()
    for label, name in enumerate(names):
        plain = re.sub(r'[\\/:*?"<>|\x00-\x1f\x7f\ud800-\udfff]+', "_", name)
        folder = _short(plain).strip(". ") or f"class {label}"
        while _folded(folder) in taken:
            folder = f"{folder} {label}"
        taken.add(_folded(folder))
        folders.append(folder)
    return folders


def _short(name: str) -> str:
    """Cut so that there is room for what is added to it: file systems take 255 bytes."""
    return name.encode()[:200].decode(errors="ignore")
