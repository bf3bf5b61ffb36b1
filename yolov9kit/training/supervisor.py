"""The light process beside a launched run: starts the trainer, waits, and says why it died if it could not itself.

``python -m yolov9kit.training.supervisor FOLDER`` ends as soon as the run has a supervisor, which goes on alone. Its
exit code and the line on stderr say whether there is one. Imports no torch.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from yolov9kit.errors import KitError
from yolov9kit.training.control import KILL, forget_requests, pending
from yolov9kit.training.history import outline
from yolov9kit.training.journal import JOURNAL, Journal
from yolov9kit.training.lock import add_process, locked, read_lock
from yolov9kit.training.reports import EndReport
from yolov9kit.training.run import LOG, has_ended, last_lines

_STARTED = "started"
_GRACE = 15.0
"""Seconds for the dead trainer's own children to notice; torch's loaders look every five."""


def main(folder: Path) -> int:
    """Start a supervisor and leave it alone: a process whose parent has gone needs nobody to bury it."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        supervise(folder, writing)
        return 0
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        message = pipe.read()
    if message == _STARTED:
        return 0
    sys.stderr.write(message or f"the supervisor did not start; {folder / LOG} may say why\n")
    return 1


def supervise(folder: Path, pipe: int) -> None:
    """The run from beginning to end; ``pipe`` is told that it has begun, or why not."""
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(number, target)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the run's end is the supervisor's
        signal.signal(number, lambda number, frame: None)
    with os.fdopen(pipe, "w", encoding="utf-8") as answer, ExitStack() as lock:
        try:
            lock.enter_context(locked(folder, obeys=True))
            (folder / JOURNAL).touch()  # from now on the folder is a run's
            forget_requests(folder)
            trainer = subprocess.Popen(
                [sys.executable, "-P", "-m", "yolov9kit.training.trainer_process", str(folder)],
                start_new_session=True,
            )
            add_process(folder, trainer.pid)
        except (KitError, OSError) as error:
            answer.write(f"{error}\n")
            return
        answer.write(_STARTED)
        answer.close()
        code = trainer.wait()
        if not has_ended(folder, read_lock(folder)):
            _say(folder, f"failed: {last_words(folder, code)}")
    _end_children(trainer.pid)


def last_words(folder: Path, code: int) -> str:
    """What is known of a trainer that ended with this code and did not say why."""
    if code >= 0:
        lines = last_lines(folder / LOG, 1)
        return f"the process ended with code {code}" + (f": {lines}" if lines else "")
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if any(action == KILL for _, action, _ in pending(folder)):
        return f"killed by {name}, as was asked"
    return f"killed by {name}{_ADVICE.get(name, '')}"


_ADVICE = {
    "SIGKILL": "; often the system's out-of-memory killer: fewer workers, a smaller batch or cache none need less",
    "SIGBUS": "; often /dev/shm is full: take fewer workers, or give the container more shared memory",
    "SIGSEGV": f"; a library crashed: {LOG} may say which",
    "SIGABRT": f"; a library gave up: {LOG} may say which",
}


def _say(folder: Path, reason: str) -> None:
    so_far = outline(folder)
    kind = "last" if so_far.best_epoch is None else "best"
    journal = Journal(folder)
    journal.append(
        EndReport(
            reason,
            so_far.epochs,
            so_far.best_epoch,
            so_far.best_ap,
            str(folder / f"weights/{kind}.safetensors"),
            so_far.seconds,
        )
    )
    journal.close()


def _end_children(group: int) -> None:
    """Processes that the trainer left behind hold memory: they get time to end, then no more."""
    end = time.monotonic() + _GRACE
    try:
        while time.monotonic() < end:
            os.killpg(group, 0)
            time.sleep(0.2)
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
