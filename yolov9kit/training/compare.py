"""Runs beside each other: in which settings they differ."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from yolov9kit.training.history import read_config

_NOT_SETTINGS = ("project", "name")


def setting_differences(folders: Sequence[str | Path]) -> dict[str, tuple[str, ...]]:
    """The settings that are not the same in all of these runs, by name, with each run's value as text.

    A run whose config cannot be read, or that an older version wrote without a setting, has "?" there.
    """
    configs = [_config(Path(folder)) for folder in folders]
    names = dict.fromkeys(name for config in configs for name in config if name not in _NOT_SETTINGS)
    rows = {name: tuple(_text(config, name) for config in configs) for name in names}
    return {name: values for name, values in rows.items() if len(set(values)) > 1}


def _config(folder: Path) -> dict[str, Any]:
    try:
        return read_config(folder)
    except (OSError, ValueError):
        return {}


def _text(config: dict[str, Any], name: str) -> str:
    if name not in config:
        return "?"
    value = config[name]
    if value is None or value == []:
        return "auto" if value is None else "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
