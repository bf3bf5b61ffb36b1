"""Long work beside the kernel: one thread drains an iterator and can be stopped between two items."""

import contextvars
import threading
from collections.abc import Callable, Generator
from typing import Any


class Job:
    """Drains ``items`` in a thread. ``stop`` ends it between two items; ``error`` keeps what it raised.

    ``on_item`` is called with each item and ``on_end`` with the error or None, both from the thread. Nothing is
    printed. The iterator is closed on every way out, so that its ``finally`` gives back what it holds.
    """

    def __init__(
        self,
        items: Generator[Any, None, None],
        on_item: Callable[[Any], object],
        on_end: Callable[[BaseException | None], object] = lambda error: None,
    ) -> None:
        self._stop = threading.Event()
        self.error: BaseException | None = None
        self.stopped = False

        def work() -> None:
            try:
                for item in items:
                    on_item(item)
                    if self._stop.is_set():
                        self.stopped = True
                        break
            except Exception as error:
                self.error = error
            finally:
                items.close()
                on_end(self.error)

        self._thread = started(work, "yolov9kit job")

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """End between two items; returns at once."""
        self._stop.set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until the thread has ended; False if it has not within ``timeout_s``."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()


def started(work: Callable[[], object], name: str) -> threading.Thread:
    """A thread that works, in the context of whoever starts it.

    ipykernel 7.0 looks there for the cell that a widget's message belongs to, and in an empty context, which is what
    a thread begins with, it raises LookupError for each message.
    """
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), daemon=True, name=name)
    thread.start()
    return thread
