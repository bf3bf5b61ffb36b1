"""Who writes a run's folder: the processes in charge stand in a file of it, so that two runs never share one."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from yolov9kit.errors import TrainingError
from yolov9kit.training.journal import Position, end_of_journal

LOCK = "lock"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Process:
    """A process that is never taken for another one: numbers come again, moments of birth do not."""

    pid: int
    born: str
    host: str

    @property
    def is_here(self) -> bool:
        """Whether it belongs to this machine, or this container: those of others cannot be seen."""
        return self.host == socket.gethostname()

    @property
    def is_alive(self) -> bool:
        """Whether it runs on this machine now. One that only waits to be buried does not."""
        return self.is_here and born(self.pid) == self.born


def process(pid: int) -> Process:
    """The process with that number, alive or not."""
    return Process(pid, born(pid) or "", socket.gethostname())


def born(pid: int) -> str | None:
    """When a living process began, in a form that no change of the clock alters; None for one that is gone."""
    if sys.platform == "linux":
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
            boot = _BOOT.read_text().strip()
        except OSError:
            return None
        state, *rest = stat.rpartition(")")[2].split()  # the name before it may hold anything
        return None if state in "ZX" else f"{boot} {rest[18]}"
    else:
        try:
            found = psutil.Process(pid)
            return None if found.status() == psutil.STATUS_ZOMBIE else repr(found.create_time())
        except psutil.Error:
            return None


@dataclass(frozen=True)
class Lock:
    """The processes in charge of a folder: of a launched run the supervisor, then the trainer.

    ``since``: the end of the journal when they took charge. ``obeys``: whether the run takes requests.
    """

    processes: tuple[Process, ...]
    since: Position
    obeys: bool

    @property
    def is_held(self) -> bool:
        return any(one.is_alive for one in self.processes)

    @property
    def trainer(self) -> Process:
        return self.processes[-1]


def read_lock(folder: Path) -> Lock | None:
    """What the folder's lock says, also when those who held it are gone; None where there is none."""
    try:
        text = (folder / LOCK).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrainingError(f"{folder / LOCK}: cannot be read ({error.strerror})") from None
    if not text:  # made a moment ago, not yet written
        return None
    try:
        record = json.loads(text)
        processes = tuple(Process(**one) for one in record["processes"])
        return Lock(processes, Position(**record["since"]), record["obeys"])
    except (ValueError, TypeError, KeyError) as error:
        raise TrainingError(
            f"{folder / LOCK}: is no lock of a run ({error}); delete it if no run is alive"
        ) from None


@contextmanager
def locked(folder: Path, obeys: bool = False) -> Iterator[Path]:
    """This process is in charge of ``folder`` as long as the block lasts. The lock of a dead process is taken over.

    Raises:
        TrainingError: another run is alive there; its process is named.
    """
    owner = os.getpid()
    with _alone(folder):
        held = read_lock(folder)
        if held is not None:
            _refuse_if_held(folder, held)
        _write(folder, Lock((process(owner),), end_of_journal(folder), obeys))
    try:
        yield folder
    finally:
        if os.getpid() == owner:  # not in a copy of it, forked to prepare pictures
            with suppress(OSError, TrainingError), _alone(folder):
                (folder / LOCK).unlink()


def add_process(folder: Path, pid: int) -> None:
    """Put another process in charge, beside this one that holds the lock."""
    with _alone(folder):
        held = read_lock(folder)
        assert held is not None
        _write(folder, Lock((*held.processes, process(pid)), held.since, held.obeys))


def claim_folder(project: Path, name: str) -> Path:
    """Make ``project/name``, or with a number behind it if that is taken. No other run can get the same.

    Raises:
        TrainingError: the folder cannot be made.
    """
    folder, n = project / name, 1
    try:
        project.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                folder.mkdir()
                break
            except FileExistsError:
                n += 1
                folder = project / f"{name}{n}"
        (folder / "weights").mkdir()
    except OSError as error:
        raise TrainingError(f"{folder}: the folder of the run cannot be made ({error.strerror})") from None
    return folder


def _refuse_if_held(folder: Path, held: Lock) -> None:
    for one in held.processes:
        if one.is_alive:
            raise TrainingError(
                f"{folder}: a run is alive there, in process {one.pid}. Stop it first, or attach to it."
            )
        if not one.is_here:
            raise TrainingError(
                f"{folder}: process {one.pid} of another machine or container, {one.host}, was in charge and cannot "
                f"be seen from here. If it is gone, delete {folder / LOCK}."
            )


def _write(folder: Path, lock: Lock) -> None:
    new = folder / f".{LOCK}.{os.getpid()}"
    new.write_text(json.dumps(asdict(lock)), encoding="utf-8")
    new.replace(folder / LOCK)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Between looking at the lock and writing it, nobody else does. The system ends this with the process."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    path = folder / LOCK
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise TrainingError(f"{path}: cannot be written ({error.strerror})") from None
        try:
            with suppress(OSError):  # some network drives have no such locks
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                same = os.fstat(file).st_ino == path.stat().st_ino
            except FileNotFoundError:
                same = False
            if same:  # else it was replaced while this one waited
                yield
                return
        finally:
            os.close(file)
