"""The process of a launched run: ``python -m yolov9kit.training.trainer_process FOLDER``. The supervisor starts it."""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from yolov9kit.errors import KitError, TrainingError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.control import Requests, StopAsked, ask
from yolov9kit.training.journal import Journal
from yolov9kit.training.lock import read_lock
from yolov9kit.training.prepare import prepare
from yolov9kit.training.reports import EndReport, Report
from yolov9kit.training.run import JOB, has_ended
from yolov9kit.training.trainer import begin, begin_extension, go_on, prepare_extension


def main(folder: Path) -> int:
    """Do the job that stands in the folder; the exit code is 1 if it failed."""
    _wait_until_in_charge(folder)
    signal.signal(signal.SIGTERM, lambda number, frame: ask(folder, "stop"))
    try:
        for _ in reports(folder, json.loads((folder / JOB).read_text(encoding="utf-8"))):
            pass
    except StopAsked:
        _end(folder, "stopped before the first step")
    except KitError as error:
        _end(folder, f"failed: {error}")
        return 1
    except Exception as error:
        traceback.print_exc()
        _end(folder, f"failed: {type(error).__name__}: {error}")
        return 1
    return 0


def reports(folder: Path, job: dict[str, Any]) -> Iterator[Report]:
    """The run that the job describes."""
    requests = Requests(folder)

    def watch(what: str, done: int, total: int) -> None:
        requests.stop_if_asked()

    if job["do"] == "train":
        yield from begin(folder, prepare(TrainConfig(**job["config"]), watch), requests)
    elif job["do"] == "resume":
        yield from go_on(
            folder, device=job["device"], workers=job["workers"], on_progress=watch, requests=requests
        )
    else:
        source = Path(job["folder"])
        yield from begin_extension(source, folder, *prepare_extension(source, job["epochs"], watch), requests)


def _wait_until_in_charge(folder: Path) -> None:
    """Two runs must not write one folder: the supervisor has the lock, and puts this process into it."""
    supervisor = os.getppid()
    while (lock := read_lock(folder)) is None or lock.trainer.pid != os.getpid():
        if os.getppid() != supervisor:
            raise TrainingError(f"{folder}: the supervisor has gone")
        time.sleep(0.01)


def _end(folder: Path, reason: str) -> None:
    """The loop says itself why it ended; this is for what comes before it."""
    if has_ended(folder, read_lock(folder)):
        return
    with suppress(KitError):
        journal = Journal(folder)
        journal.append(EndReport(reason, 0, None, None, str(folder / "weights/last.safetensors"), 0.0))
        journal.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
