"""A job ends in exactly one way, gives back what it holds, and keeps what went wrong."""

import contextvars
import threading
from collections.abc import Generator

from widgets.job import Job


def counting(log: list[str], n: int = 3, gate: threading.Event | None = None) -> Generator[int, None, None]:
    try:
        for i in range(n):
            if gate is not None:
                assert gate.wait(10)
            yield i
    finally:
        log.append("closed")


def test_drains_everything_off_the_main_thread() -> None:
    log: list[str] = []
    seen: list[tuple[int, str]] = []
    ends: list[BaseException | None] = []
    job = Job(counting(log), lambda i: seen.append((i, threading.current_thread().name)), ends.append)
    assert job.wait(10) and not job.running
    assert [i for i, _ in seen] == [0, 1, 2] and {name for _, name in seen} == {"yolov9kit job"}
    assert log == ["closed"] and ends == [None] and not job.stopped


def test_u01_a_job_works_in_the_context_that_started_it() -> None:
    """ipykernel 7.0 asks the context for the cell of each widget message, and raises where nothing is there."""
    cell: contextvars.ContextVar[str] = contextvars.ContextVar("cell")
    cell.set("the one that shows the panel")
    seen: list[str] = []
    job = Job(counting([]), lambda _: seen.append(cell.get()))
    assert job.wait(10) and job.error is None
    assert seen == ["the one that shows the panel"] * 3


def test_stop_ends_between_two_items() -> None:
    log: list[str] = []
    seen: list[int] = []
    gate = threading.Event()
    job = Job(counting(log, 1000, gate), seen.append)
    job.stop()
    gate.set()
    assert job.wait(10) and job.stopped and job.error is None
    assert seen == [0] and log == ["closed"]


def test_what_the_work_raises_is_kept_and_told() -> None:
    def broken() -> Generator[int, None, None]:
        yield 1
        raise ValueError("the disk is full")

    ends: list[BaseException | None] = []
    job = Job(broken(), lambda _: None, ends.append)
    assert job.wait(10) and isinstance(job.error, ValueError) and ends == [job.error]
