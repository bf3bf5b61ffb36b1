"""Start a run in a process of its own: it lives on when the kernel, the notebook or the terminal is gone."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from yolov9kit.errors import CheckpointError, DataError, TrainingError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.lock import claim_folder
from yolov9kit.training.run import JOB, LOG, Run, attach

_PACKAGES = Path(__file__).parents[2]
_STATE = "state.safetensors"


def launch(config: TrainConfig) -> Run:
    """Start a run and return at once. What cannot go well is said here as far as a look at the files shows it.

    The folder is the run's own, new, and known from now on. What the processes print goes to its ``log.txt``.

    Raises:
        KitError: the data or the weights are not there, or no process can be started.
    """
    from yolov9kit.data.dataset import has_split  # brings torch, which nothing else here needs

    config = _absolute(config)
    if not has_split(config.data, "val"):
        raise DataError(
            f"{config.data}: names no validation pictures (val: ...): name a set that is not trained on"
        )
    if config.weights is not None and not config.weights.is_file():
        raise CheckpointError(f"{config.weights}: no such file")
    folder = claim_folder(config.project, config.name)
    return _start(folder, {"do": "train", "config": config.model_dump(mode="json")})


def launch_resume(folder: str | Path, *, device: str | None = None, workers: int | None = None) -> Run:
    """``resume`` in a process of its own. Requests that the run never heard are forgotten.

    Raises:
        TrainingError: no run, one that is alive, or a finished one.
    """
    run = attach(folder)
    if run.is_alive:
        raise TrainingError(
            f"{run.folder}: a run is alive there, in process {run.pid}. Stop it first, or attach to it."
        )
    if run.state == "finished":
        raise TrainingError(
            f"{run.folder}: this run has ended ({run.last_words}). To train longer, extend it: "
            "launch_extend(folder, epochs)"
        )
    _has_state(run.folder)
    return _start(run.folder, {"do": "resume", "device": device, "workers": workers})


def launch_extend(folder: str | Path, epochs: int) -> Run:
    """``extend`` in a process of its own: a finished run goes on to ``epochs`` epochs in all, in a new folder.

    Raises:
        TrainingError: no run to extend.
    """
    source = attach(folder).folder
    _has_state(source)
    try:
        config = TrainConfig(**json.loads((source / "config.json").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise TrainingError(f"{source / 'config.json'}: cannot be read ({error})") from None
    target = claim_folder(config.project.absolute(), f"{source.name}-extended")
    return _start(target, {"do": "extend", "folder": str(source), "epochs": epochs})


def _absolute(config: TrainConfig) -> TrainConfig:
    paths = {"data": config.data.absolute(), "project": config.project.absolute()}
    if config.weights is not None:
        paths["weights"] = config.weights.absolute()
    return config.changed(**paths)


def _has_state(folder: Path) -> None:
    if not (folder / _STATE).is_file():
        raise TrainingError(f"{folder}: nothing was saved ({_STATE} is missing), start the run anew")


def _start(folder: Path, job: dict[str, Any]) -> Run:
    """A supervisor for the folder, in a session of its own: no signal to the caller's reaches it."""
    if sys.platform == "win32":
        raise TrainingError("a run of its own needs Linux or macOS; train(config) works here")
    new = folder / f".{JOB}.{os.getpid()}"
    new.write_text(json.dumps(job), encoding="utf-8")
    new.replace(folder / JOB)
    found = os.environ.get("PYTHONPATH")
    paths = str(_PACKAGES) + (os.pathsep + found if found else "")
    started = subprocess.run(
        [sys.executable, "-P", "-m", "yolov9kit.training.supervisor", str(folder)],
        env=os.environ | {"PYTHONPATH": paths},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    if started.returncode:
        lines = started.stderr.strip().split("\n")
        raise TrainingError(lines[-1] or f"{folder}: the run cannot be started, {LOG} may say why")
    return Run(folder)
