"""Darknet: an obj.data that names picture lists and a file of class names, and a label file for each picture."""

import re
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.class_names import names_in_lines
from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.formats.yolo import YoloLayout
from yolov9kit.data.yaml_file import DataYaml, exists, spellings, text_of, without_dots
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_SETTING = re.compile(r"\s*([A-Za-z_]+)\s*=\s*(.*?)\s*")
_ASKED = ("train", "valid", "names", "classes")
_SPLITS = {"train": "train", "valid": "val", "val": "val", "test": "test"}
_MOST_CLASSES = 100_000


def open_darknet(path: Path, as_boxes: bool) -> Layout | None:
    """The data set of an obj.data, or of the folder that holds one; None where there is none.

    Raises:
        DataError: the file or that of the names cannot be read, or they contradict each other.
    """
    file = _data_file(path)
    if file is None:
        return None
    settings = _settings(file)
    findings: list[Finding] = []
    entries: dict[str, tuple[str, ...]] = {}
    for key, split in _SPLITS.items():
        if value := settings.get(key):
            place, note = _resolve(file, value)
            entries[split] = (str(place or value),)
            findings += [Finding("place", "note", file, note, value=printable(value))] if note else []
    names = _names(file, settings, findings)
    data = DataYaml(file, names, "", entries)
    return YoloLayout(data, "Darknet YOLO", tuple(findings), as_boxes=as_boxes, beside=True)


def _data_file(path: Path) -> Path | None:
    if path.suffix.lower() == ".data" and path.is_file():
        return path
    if not path.is_dir():
        return None
    if (path / "obj.data").is_file():
        return path / "obj.data"
    candidates = sorted(file for file in path.glob("*.data") if file.is_file() and _is_description(file))
    if len(candidates) > 1:
        which = ", ".join(file.name for file in candidates)
        raise DataError(printable(f"{path}: several Darknet files ({which}): name one of them"))
    return candidates[0] if candidates else None


def _is_description(file: Path) -> bool:
    try:
        settings = _settings(file)
    except DataError:
        return False
    return any(key in settings for key in _ASKED)


def _settings(file: Path) -> dict[str, str]:
    settings: dict[str, str] = {}
    for number, line in enumerate(text_of(file).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith(("#", ";")):
            continue
        match = _SETTING.fullmatch(line)
        if match is None:
            shown = printable(line.strip())[:60]
            raise DataError(printable(f"{file}:{number}: expected key = value, found '{shown}'"))
        key, value = match.groups()
        if key in settings:
            raise DataError(printable(f"{file}:{number}: key {key} twice: remove one of them"))
        settings[key] = value
    if not any(key in settings for key in _ASKED):
        keys = ", ".join(settings) or "none"
        raise DataError(printable(f"{file}: expected keys such as train, valid and names (keys: {keys})"))
    return settings


def _beside(file: Path, value: str) -> list[Path]:
    """As written, and without the ``data/`` of the folder that Darknet is started in."""
    written = [file.parent / spelling for spelling in spellings(value)]
    return [*written, file.parent / spellings(value)[-1].removeprefix("./").removeprefix("data/")]


def _places(file: Path, value: str) -> tuple[Path, ...]:
    above = (file.parent.parent / spelling for spelling in spellings(value))
    return tuple(dict.fromkeys((*_beside(file, value), *above)))


def _resolve(file: Path, value: str) -> tuple[Path | None, str]:
    """Where a file lies, and a note where that is not beside ``file``."""
    found = next((place for place in _places(file, value) if exists(place)), None)
    if found is None:
        return None, ""
    where = without_dots(found)
    note = f"'{value}' is not in {file.parent}: {where} was taken"
    return where, "" if found in _beside(file, value) else note


def _names(file: Path, settings: dict[str, str], findings: list[Finding]) -> tuple[str, ...]:
    written = settings.get("classes", "")
    count = (
        int(written) if re.fullmatch(r"[0-9]{1,9}", written) and 0 < int(written) <= _MOST_CLASSES else None
    )
    if written and count is None:
        raise DataError(printable(f"{file}: classes is '{written}': expected the number of classes"))
    value = settings.get("names")
    if not value:
        if count is None:
            raise DataError(printable(f"{file}: has neither names nor classes: name the file of class names"))
        message = f"has no key names: the classes are called by their numbers 0 to {count - 1}"
        findings.append(Finding("names_missing", "note", file, message, value=written))
        return tuple(map(str, range(count)))
    place, note = _resolve(file, value)
    if place is None:
        tried = ", ".join(map(str, _places(file, value)))
        raise DataError(printable(f"{file}: names '{value}' was not found, tried: {tried}"))
    findings += [Finding("place", "note", file, note, value=printable(value))] if note else []
    names = names_in_lines(place)
    if count is not None and count != len(names):
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise DataError(
            printable(
                f"{file}: classes is {count}, but {place} holds {len(names)} names ({shown}): correct one of them"
            )
        )
    return names
