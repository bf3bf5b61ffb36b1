"""Waiting for what another thread or process does."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def until(is_so: Callable[[], Any], what: str = "", seconds: float = 120.0) -> Any:
    """The first true value of ``is_so``; a failure with ``what`` when there is none for so long."""
    end = time.monotonic() + seconds
    while not (found := is_so()):
        assert time.monotonic() < end, what or f"waited for {seconds:g} s"
        time.sleep(0.02)
    return found


def in_threads(count: int, work: Callable[[int], Any]) -> list[Any]:
    """What ``work(0)`` to ``work(count - 1)`` return, each called in a thread of its own."""
    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(work, range(count)))
