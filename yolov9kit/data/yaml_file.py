"""data.yaml → class names, and where each split lies."""

import errno
import os
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from yolov9kit.errors import DataError
from yolov9kit.types import printable

_SPELLINGS = {"val": ("val", "valid", "validation")}
_NO_SPLITS = ("names", "nc", "kpt_shape", "flip_idx")
_NOTHING = ("", "~", "null", "Null", "NULL")


@dataclass(frozen=True)
class DataYaml:
    """``root``: the folder that ``path:`` names, as written (``""``: none). ``entries``: each other key's texts.
    ``point_columns``: so many columns of key points stand behind each box (``kpt_shape``)."""

    file: Path
    names: tuple[str, ...]
    root: str
    entries: dict[str, tuple[str, ...]]
    point_columns: int = 0

    def split(self, split: str) -> tuple[str, ...]:
        """Folders, lists and pictures of a split, as written; ``val`` is also called valid and validation.

        Raises:
            DataError: no such key, or nothing stands behind it.
        """
        for key in _SPELLINGS.get(split, (split,)):
            if key in self.entries:
                return self.entries[key]
        keys = ", ".join(self.entries) or "none"
        raise DataError(
            printable(f"{self.file}: has no key '{split}' with a folder or list of pictures (keys: {keys})")
        )

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that are named, by our names. Whether pictures of the usual ones exist is another question; a key
        of another name (``night``, but also ``license``) counts where something lies there.
        """
        ours = {key: split for split, keys in _SPELLINGS.items() for key in keys} | {
            key: key for key in ("train", "test")
        }
        return tuple(
            dict.fromkeys(
                ours.get(key, key)
                for key, entries in self.entries.items()
                if key in ours or all(self._lies_somewhere(entry) for entry in entries)
            )
        )

    def resolve(self, entry: str) -> tuple[Path, str]:
        """The file or folder that an entry means, and a note where it was not found at the first place.

        Tried in this order: under the yaml's ``path``, beside the yaml, beside the yaml without leading ``../``, which
        exports of labelling sites carry although the folders lie beside the yaml, and there with another spelling
        of ``val``. The working directory plays no part.

        Raises:
            DataError: it lies at none of these places; all are listed.
        """
        tried = list(dict.fromkeys(self._places(entry)))
        for place in tried:
            if exists(place):
                found = without_dots(place)
                first = spellings(str(place))[-1] == spellings(str(tried[0]))[-1]
                return found, "" if first else f"'{entry}' is not at {tried[0]}: {found} was taken"
        places = ", ".join(map(str, tried))
        raise DataError(printable(f"{self.file}: '{entry}' was not found, tried: {places}"))

    def folders(self) -> tuple[Path, ...]:
        """Where relative paths may start: the yaml's ``path``, then its own folder."""
        own = self.file.parent
        roots = [own / spelling for spelling in spellings(self.root)] if self.root else []
        return tuple(dict.fromkeys([*roots, own]))

    def _lies_somewhere(self, entry: str) -> bool:
        return any(exists(place) for place in self._places(entry))

    def _places(self, entry: str) -> Iterator[Path]:
        for spelling in spellings(entry):
            yield from (folder / spelling for folder in self.folders())
        inner = spellings(entry)[-1]
        while inner.startswith(("../", "./")):
            inner = inner.partition("/")[2]
        yield self.file.parent / inner
        parts = Path(inner).parts
        for i, part in enumerate(parts):
            if part in _SPELLINGS["val"]:
                others = [other for other in _SPELLINGS["val"] if other != part]
                yield from (self.file.parent.joinpath(*parts[:i], other, *parts[i + 1 :]) for other in others)


def spellings(text: str) -> tuple[str, ...]:
    """A path as written in a file, and with the separators of Windows replaced.

    The text goes through UTF-8 bytes, so that it finds files in a process whose locale is another.
    """
    native = os.fsdecode(text.encode("utf-8", "surrogateescape"))
    return tuple(dict.fromkeys((native, native.replace("\\", "/"))))


def exists(path: Path) -> bool:
    """Whether something is there. What may not be looked at counts: opening it will say why."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as fault:
        return fault.errno != errno.ENAMETOOLONG
    return True


def without_dots(path: Path) -> Path:
    """The path without ``..``, unless a symbolic link makes that another place."""
    if ".." not in path.parts:
        return path
    plain = Path(os.path.normpath(path))
    return plain if exists(plain) and os.path.samefile(plain, path) else path


def text_of(file: Path) -> str:
    """The text of a file in UTF-8, with or without a mark at its start.

    Raises:
        DataError: it cannot be read, or is no such text.
    """
    try:
        return file.read_bytes().decode("utf-8-sig")
    except OSError as fault:
        raise DataError(printable(f"{file}: cannot be read ({fault.strerror or fault})")) from fault
    except UnicodeDecodeError as fault:
        raise DataError(
            printable(f"{file}: byte {fault.start} is no UTF-8 text: save it as UTF-8")
        ) from fault


def read_data_yaml(data: str | os.PathLike[str]) -> DataYaml:
    """Reads a data.yaml, or that of a folder: data.yaml, dataset.yaml, or the only yaml there.

    Raises:
        DataError: no such file, not a yaml in UTF-8, or class names that are missing or contradict each other.
    """
    file = _find_yaml(Path(os.path.expanduser(data)).absolute())
    text = text_of(file)
    try:
        content = yaml.load(text, Loader=_Texts)
    except (yaml.YAMLError, RecursionError) as fault:
        raise DataError(printable(f"{file}: not a yaml: {_yaml_reason(fault)}")) from fault
    if not isinstance(content, dict):
        raise DataError(printable(f"{file}: expected keys such as train, val and names, found none"))
    names = _names(file, content)
    root = content.pop("path", "")
    if not isinstance(root, str):
        raise DataError(printable(f"{file}: path: {root} is not one folder"))
    entries = {str(key): _texts(value) for key, value in content.items() if key not in _NO_SPLITS}
    return DataYaml(
        file,
        names,
        "" if root in _NOTHING else root,
        {key: texts for key, texts in entries.items() if texts},
        _point_columns(file, content.get("kpt_shape", ["0", "0"])),
    )


class _Texts(yaml.BaseLoader):
    """Everything stays text as written, so that a class may be called ``no``; a repeated key is a fault."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep=deep)
        if len(mapping) < len(node.value):
            seen: set[Hashable] = set()
            for key_node, _ in node.value:
                key = self.construct_object(key_node, deep=True)
                if key in seen:
                    raise yaml.MarkedYAMLError(problem=f"key {key} twice", problem_mark=key_node.start_mark)
                seen.add(key)
        return mapping


def _yaml_reason(fault: Exception) -> str:
    if isinstance(fault, yaml.MarkedYAMLError) and fault.problem_mark is not None:
        return f"line {fault.problem_mark.line + 1}: {fault.problem or fault.context}"
    return (str(fault).splitlines() or [type(fault).__name__])[0]


def _find_yaml(given: Path) -> Path:
    given = without_dots(given)
    if not given.is_dir():
        if not exists(given):
            raise DataError(printable(f"{given}: no such file or folder: give a data.yaml or its folder"))
        return given
    for name in ("data.yaml", "dataset.yaml"):
        if (given / name).is_file():
            return given / name
    yamls = sorted(
        path for path in given.iterdir() if path.suffix in (".yaml", ".yml") and not path.name.startswith(".")
    )
    if len(yamls) == 1:
        return yamls[0]
    which = ", ".join(path.name for path in yamls)
    reason = f"several yaml files ({which}): name one of them" if yamls else "no data.yaml in this folder"
    raise DataError(printable(f"{given}: {reason}"))


def _names(file: Path, content: dict[Hashable, Any]) -> tuple[str, ...]:
    if "names" not in content:
        keys = ", ".join(map(str, content))
        raise DataError(printable(f"{file}: has no key 'names' with the name of each class (keys: {keys})"))
    names = content["names"]
    if isinstance(names, dict):
        numbers = list(map(str, names))
        if sorted(numbers) != sorted(map(str, range(len(numbers)))):
            raise DataError(
                printable(
                    f"{file}: names: the keys are {', '.join(numbers)}; expected 0 to {len(numbers) - 1}"
                )
            )
        names = [names[str(i)] for i in range(len(numbers))]
    if not isinstance(names, list) or not names:
        raise DataError(printable(f"{file}: names: expected a list of class names, found '{names}'"))
    for i, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise DataError(printable(f"{file}: names: class {i} is called '{name}': write one name"))
    count = content.get("nc", str(len(names)))
    if count != str(len(names)):
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        raise DataError(
            printable(f"{file}: nc is {count}, but names holds {len(names)} ({shown}): correct one of them")
        )
    return tuple(names)


def _point_columns(file: Path, shape: object) -> int:
    """Of ``kpt_shape: [number of key points, values of each]``."""
    match shape:
        case [str(points), str(values)] if (
            points.isdecimal() and values in ("0", "2", "3") and len(points) < 6
        ):
            return int(points) * int(values)
    shown = f"[{', '.join(map(str, shape))}]" if isinstance(shape, list) else shape
    reason = f"kpt_shape is {shown}; expected the number of key points and 2 or 3, such as [17, 3]"
    raise DataError(printable(f"{file}: {reason}"))


def _texts(value: object) -> tuple[str, ...]:
    """One path or several; none for a key of another kind, such as the origin that labelling sites write down."""
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        return ()
    return tuple(str(text) for text in texts if text not in _NOTHING)
