"""JSON of a foreign program → Python values, and what cannot be read named by line."""

import json
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from yolov9kit.data.yaml_file import text_of
from yolov9kit.errors import DataError
from yolov9kit.types import printable

_HEAD_BYTES = 65_536


def head_of(file: Path) -> str:
    """The beginning of a file as text, to see what it may be; empty where it cannot be read."""
    try:
        with file.open("rb") as stream:
            return stream.read(_HEAD_BYTES).decode("utf-8-sig", "replace")
    except (OSError, ValueError):
        return ""


def read_json(file: Path, slim: Callable[[dict[str, Any]], dict[str, Any]] | None = None) -> Any:
    """The value of a JSON file in UTF-8. ``slim`` may make each object smaller while the file is read.

    Raises:
        DataError: the file cannot be read, is no JSON, nests too deep, or an object has a key twice.
    """

    def as_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            raise _KeyTwiceError(Counter(key for key, _ in pairs).most_common(1)[0][0])
        return value if slim is None else slim(value)

    text = text_of(file)
    try:
        return json.loads(text, object_pairs_hook=as_dict)
    except _KeyTwiceError as fault:
        raise DataError(
            printable(f"{file}: an object has the key '{fault}' twice: remove one of them")
        ) from None
    except json.JSONDecodeError as fault:
        raise DataError(
            printable(f"{file}: not a JSON: line {fault.lineno}, column {fault.colno}: {fault.msg}")
        ) from fault
    except RecursionError as fault:
        raise DataError(printable(f"{file}: not such a JSON: its values nest too deep")) from fault
    except ValueError as fault:  # an integer of thousands of digits
        raise DataError(printable(f"{file}: not a JSON: {fault}")) from fault


class _KeyTwiceError(Exception):
    """Not a ValueError: the decoder lets it through."""


def number_in(value: object) -> float | None:
    """A JSON number as float, infinite where it is too large for one; None for anything else, ``true`` among them."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


def shown(value: object) -> str:
    """A JSON value as it stands in the file, shortened."""
    if type(value) is int:  # of the ids in a large file
        return str(value)
    try:
        text = printable(json.dumps(value, ensure_ascii=False))
    except RecursionError:
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
