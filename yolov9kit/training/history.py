"""Runs of a folder side by side, each read from the head and the tail of its journal. Imports no torch."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yolov9kit.errors import KitError
from yolov9kit.training.journal import JOURNAL, kind_of, lines_backwards
from yolov9kit.training.run import Run, State, is_run


@dataclass(frozen=True)
class RunInfo:
    """A run in short. ``epochs`` of ``planned_epochs`` are done; ``best_ap`` is AP 50-95.

    ``seconds``: what the run took as it says itself; before its end, the time since it was begun. ``started``: seconds
    since 1970. ``words``: why it ended, or what is wrong with its files.
    """

    folder: Path
    state: State
    best_ap: float | None
    best_epoch: int | None
    epochs: int
    planned_epochs: int | None
    seconds: float
    device: str
    precision: str
    started: float
    words: str


@dataclass(frozen=True)
class Outline:
    """How far a journal goes. ``seconds`` are those of its epochs and evaluations."""

    epochs: int
    best_ap: float | None
    best_epoch: int | None
    seconds: float


def runs(folder: str | Path = "runs/train") -> list[RunInfo]:
    """The runs in ``folder``, the one begun last first. A folder that is not there has none."""
    folder = Path(folder).absolute()
    if not folder.is_dir():
        return []
    found = [info(path) for path in folder.iterdir() if is_run(path)]
    return sorted(found, key=lambda one: (one.started, str(one.folder)), reverse=True)


def info(folder: Path) -> RunInfo:
    """One run in short; files that cannot be read are said in ``words``."""
    run = Run(folder)
    first: dict[str, Any] = {}
    config: dict[str, Any] = {}
    best_ap, best_epoch, epochs, seconds = None, None, 0, None
    try:
        state, words = run.state, run.last_words
        config = read_config(folder)
        first = _start(folder, config)
        best_ap, best_epoch, epochs, seconds = _newest(folder)
    except (KitError, OSError, ValueError, KeyError) as error:
        state, words = "lost", f"its files cannot be read: {error}"
    started = _time_of(folder / "config.json") or folder.stat().st_mtime
    return RunInfo(
        folder,
        state,
        best_ap,
        best_epoch,
        epochs,
        config.get("epochs"),
        seconds if seconds is not None else max(_time_of(folder / JOURNAL) - started, 0.0),
        str(first.get("device", "")),
        str(first.get("precision", "")),
        started,
        words,
    )


def outline(folder: Path) -> Outline:
    """What the whole journal says of epochs and scores."""
    best_ap, best_epoch, epochs, _ = _newest(folder)
    seconds = sum(
        float(json.loads(line)["seconds"])
        for line in lines_backwards(folder)
        if kind_of(line) in ("epoch", "evaluation")
    )
    return Outline(epochs, best_ap, best_epoch, seconds)


def _newest(folder: Path) -> tuple[float | None, int | None, int, float | None]:
    """Best AP and its epoch, epochs done, and seconds if the run has ended; reads back no further than they need."""
    epochs: int | None = None
    for number, line in enumerate(lines_backwards(folder)):
        kind = kind_of(line)
        if kind == "end" and number == 0:
            end = json.loads(line)
            if end["epochs"] or end["best_epoch"]:  # else it ended before its loop, and does not know
                return end["best_ap"], end["best_epoch"], end["epochs"], end["seconds"]
        elif kind == "epoch" and epochs is None:
            epochs = json.loads(line)["epoch"]
        elif kind == "evaluation" and b'"best": true' in line:
            best = json.loads(line)
            return best["ap"], best["epoch"], epochs or best["epoch"], None
    return None, None, epochs or 0, None


def _start(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """The start report: the first line, but in a run that extends another one it stands further down."""
    with (folder / JOURNAL).open("rb") as file:
        line = file.readline()
    if not line.endswith(b"\n") or kind_of(line) != "start":
        return {}
    first: dict[str, Any] = json.loads(line)
    if first["config"] == config:
        return first
    return next((json.loads(line) for line in lines_backwards(folder) if kind_of(line) == "start"), first)


def read_config(folder: Path) -> dict[str, Any]:
    """The settings of a run by name; none before it has begun.

    Raises:
        OSError, ValueError: they cannot be read.
    """
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:  # it has not begun
        return {}
    if not isinstance(config, dict):
        raise ValueError(f"{path}: is no list of settings")
    return config


def _time_of(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
