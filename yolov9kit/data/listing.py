"""Which pictures a split names, and where the label file of each may lie. Looks at names only."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.image import is_image_name
from yolov9kit.data.yaml_file import DataYaml, exists, spellings, text_of, without_dots
from yolov9kit.errors import DataError
from yolov9kit.types import printable


@dataclass(frozen=True)
class Listing:
    """``pictures``: each once, those of a folder sorted, those of a list as they stand there. ``sources``: the
    folders, lists and pictures that the yaml names."""

    pictures: tuple[Path, ...]
    sources: tuple[Path, ...]
    findings: tuple[Finding, ...]


def list_pictures(data: DataYaml, split: str) -> Listing:
    """The pictures of a split.

    Raises:
        DataError: a folder or list does not exist or cannot be read, or there is no picture at all.
    """
    pictures: dict[Path, None] = {}
    sources, findings = [], []
    for entry in data.split(split):
        source, note = data.resolve(entry)
        sources.append(source)
        if note:
            findings.append(Finding("place", "note", data.file, note, value=entry))
        found, more = _of_source(data, source)
        findings += more
        for picture in found:
            if picture in pictures:
                message = f"is named twice by split '{split}', counted once"
                findings.append(Finding("picture_repeated", "warning", picture, message))
            pictures[picture] = None
    if not pictures:
        where = ", ".join(map(str, sources))
        missing = [finding for finding in findings if finding.code == "picture_missing"]
        reason = f": {missing[0]}" if missing else " (looked for jpg, png, bmp, tif, webp and others)"
        raise DataError(printable(f"{data.file}: split '{split}': no picture in {where}{reason}"))
    return Listing(tuple(pictures), tuple(sources), tuple(findings))


_LABEL_FOLDERS = {
    "images": ("labels",),
    "Images": ("Labels", "labels"),
    "IMAGES": ("LABELS", "labels"),
    "JPEGImages": ("labels",),
}


def label_places(picture: Path) -> tuple[Path, ...]:
    """Where the label file is looked for: the last ``images`` of the path as ``labels``, then beside the picture."""
    beside = picture.with_suffix(".txt")
    parts = beside.parts
    at = max((i for i, part in enumerate(parts[:-1]) if part in _LABEL_FOLDERS), default=None)
    if at is None:
        return (beside,)
    return (*(Path(*parts[:at], name, *parts[at + 1 :]) for name in _LABEL_FOLDERS[parts[at]]), beside)


def _of_source(data: DataYaml, source: Path) -> tuple[list[Path], list[Finding]]:
    if source.is_dir():
        return files_below(source, is_image_name), []
    if source.suffix.lower() == ".txt":
        return _of_list(data, source)
    if is_image_name(source):
        return [source], []
    raise DataError(printable(f"{data.file}: {source} is no folder, .txt list or picture"))


def files_below(folder: Path, wanted: Callable[[str], bool]) -> list[Path]:
    """Files below a folder whose names are wanted, sorted, hidden ones never. Links are followed, but not round in
    circles.

    Raises:
        DataError: a folder cannot be read.
    """
    try:
        return sorted(_walk(folder, wanted, set()), key=Path.as_posix)
    except OSError as fault:
        raise DataError(printable(f"{fault.filename}: cannot be read ({fault.strerror})")) from fault


def _walk(folder: Path, wanted: Callable[[str], bool], above: set[tuple[int, int]]) -> Iterator[Path]:
    status = os.stat(folder)
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            if _is_folder(entry):
                yield from _walk(folder / entry.name, wanted, above | {here})
            elif wanted(entry.name):
                yield folder / entry.name


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _of_list(data: DataYaml, file: Path) -> tuple[list[Path], list[Finding]]:
    pictures: list[Path] = []
    findings: list[Finding] = []
    cut = 0
    for number, line in enumerate(text_of(file).splitlines(), 1):
        text = line.strip()
        if not text:
            continue
        places = list(_places(data, file, text))
        found = next((place for place, _ in places if exists(place)), None)
        if found is None:
            tried = ", ".join(str(place) for place, _ in places)
            message = f"'{text}' was not found, correct or remove the line (tried: {tried})"
            findings.append(Finding("picture_missing", "error", file, message, number, printable(text)))
            continue
        cut += dict(places)[found]
        pictures.append(without_dots(found))
    if cut:
        lines = "1 line" if cut == 1 else f"{cut} lines"
        message = f"'data/' at the start of {lines} was left out: the pictures lie beside the list"
        findings.append(Finding("place", "note", file, message, value="data/"))
    return pictures, findings


def _places(data: DataYaml, file: Path, text: str) -> Iterator[tuple[Path, bool]]:
    """Where a line of a list may point, and whether ``data/`` was cut off, which CVAT writes before each line."""
    folders = dict.fromkeys((file.parent, *data.folders()))
    for spelling in spellings(text):
        yield from ((folder / spelling, False) for folder in folders)
    inner = spellings(text)[-1].removeprefix("./")
    if inner.startswith("data/"):
        yield file.parent / inner.removeprefix("data/"), True
