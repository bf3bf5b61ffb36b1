"""The numbers of classes that label files call by name."""

from collections.abc import Mapping
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.class_names import NAME_FILES
from yolov9kit.data.yaml_file import text_of
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_ORDER_FILES = ("labelmap.txt", "labels.txt", *NAME_FILES)
_FOLDERS = ("", "Annotations", "annotations")
_FOR_MASKS = ("background", "ignored", "__ignore__", "_background_", "__background__")
"""Values of masks that stand in such files, and are no objects."""


def ordered_names(root: Path, used: Mapping[str, int]) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """The class names, sorted, or in the order of a labelmap.txt, classes.txt or the like in the data set's folder.

    ``used``: how often each name occurs in the label files.

    Raises:
        DataError: that file cannot be read, or holds a name twice.
    """
    places = (root / folder / name for name in _ORDER_FILES for folder in _FOLDERS)
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        return tuple(sorted(used)), ()
    listed = _listed(file)
    if used and not used.keys() & set(listed):
        message = f"holds none of the classes that occur ({_some(sorted(used))}): not taken, they are sorted by name"
        return tuple(sorted(used)), (Finding("place", "note", file, printable(message), value=file.name),)
    findings = []
    for_masks = [name for name in listed if name in _FOR_MASKS and name not in used]
    if for_masks:
        message = f"{_some(for_masks)}: for masks alone, no class of objects: left out"
        findings.append(Finding("place", "note", file, printable(message), value=", ".join(for_masks)))
    others = sorted(set(used) - set(listed))
    if others:
        message = f"does not name {_some(others)}, which the label files use: put behind the others"
        findings.append(
            Finding("place", "note", file, printable(message), value=printable(", ".join(others)))
        )
    return (*(name for name in listed if name not in for_masks), *others), tuple(findings)


def _listed(file: Path) -> tuple[str, ...]:
    """One name in each line, before the first colon where ``name:colour:parts:actions`` stands there."""
    names: dict[str, int] = {}
    for number, line in enumerate(text_of(file).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name = text.split(":")[0].strip() if text.count(":") == 3 else text
        if name in names:
            raise DataError(
                printable(f"{file}:{number}: '{name}' stands in line {names[name]} too: remove one")
            )
        names[name] = number
    return tuple(names)


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
