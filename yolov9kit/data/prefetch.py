"""Pictures read ahead of whoever uses them: by threads, in order, with a bound on the memory they take.

Decoding releases Python's lock for most of its time, so threads share the work well. What they have read waits in
order for its turn; when nobody asks any more, they stop.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, TypeVar

from yolov9kit.data.sources import PictureFile, Sequential, Source, read_picture
from yolov9kit.types import Failed, Picture

T = TypeVar("T")

Reserve = Callable[[int], None]
"""Told how many bytes a picture takes from now on. To take more, it waits until they are free."""

Read = Callable[[Path, Reserve], T]
"""Reads a file in one of several threads. Never raises for a picture: it gives ``Failed``."""

MAX_AHEAD_BYTES = 2**30
"""Memory of pictures that are being decoded or wait for their turn: as much as the largest that is accepted needs."""

_MOST_THREADS = 16
_AHEAD = (
    4  # pictures for each thread: those who use them take a batch at a time, and the threads go on meanwhile
)
_FRAMES_AHEAD = 8
_DECODING_BYTES = 7  # a pixel, while it is decoded: 4 in Pillow, 3 in the result


@dataclass(frozen=True)
class ThreadChoice:
    """``threads``: 1 means that whoever asks for a picture decodes it. ``reason`` in words."""

    threads: int
    reason: str


def decode_threads(cores: float) -> ThreadChoice:
    """How many threads decode pictures on a machine with so many usable cores.

    Up to 16: what each picture needs of Python's lock, which only one thread can hold, leaves no work for more.
    """
    threads = max(1, min(int(cores), _MOST_THREADS))
    if threads == 1:
        return ThreadChoice(1, "one core: pictures are decoded when they are asked for")
    most = f", of {cores:g}: more would wait for each other" if cores >= _MOST_THREADS + 1 else ""
    return ThreadChoice(threads, f"one for each of {threads} cores{most}")


def prefetched(
    source: Source, threads: int, max_bytes: int = MAX_AHEAD_BYTES
) -> Generator[Picture | Failed, None, None]:
    """The pictures of a source as ``source.pictures()`` gives them, read ahead by ``threads`` threads.

    Files are decoded side by side and come in order, errors in their place. A video is decoded by one thread ahead of
    its user. Cameras and what lies in memory are read when they are asked for, as without threads. At most
    ``max_bytes`` are held, or one picture; whoever uses the pictures holds what was given out. One thread, or a single
    picture, means no thread at all.

    To stop, close the generator or let go of it: threads finish the picture they are at and end.
    """
    return prefetched_with(read_decoded, source, threads, max_bytes)


def prefetched_with(
    read: Read[T], source: Source, threads: int, max_bytes: int = MAX_AHEAD_BYTES
) -> Generator[T | Picture | Failed, None, None]:
    """As ``prefetched``, but every file is read by ``read(path, reserve)``."""
    if threads < 2 or source.total == 1:
        yield from _one_by_one(read, source)
        return
    with _Readers(read, threads, max_bytes) as readers:
        for part in source.parts():
            if isinstance(part, Sequential):
                # nothing behind it is started before it ends: it may take hours
                yield from readers.rest()
                frames = part.pictures()
                if part.ahead:
                    frames = ahead(frames, _FRAMES_AHEAD, max_bytes, _picture_bytes)
                yield from frames
            else:
                yield from readers.surplus()
                readers.start(part.path if isinstance(part, PictureFile) else part)
        yield from readers.rest()


def _one_by_one(read: Read[T], source: Source) -> Iterator[T | Picture | Failed]:
    for part in source.parts():
        if isinstance(part, PictureFile):
            yield read(part.path, _no_limit)
        elif isinstance(part, Failed):
            yield part
        else:
            yield from part.pictures()


def _no_limit(_count: int) -> None:
    """Without threads there is one picture at a time."""


def read_decoded(path: Path, reserve: Reserve) -> Picture | Failed:
    picture = read_picture(path, lambda width, height: reserve(_DECODING_BYTES * width * height))
    reserve(_picture_bytes(picture))
    return picture


def _picture_bytes(item: Picture | Failed) -> int:
    return item.pixels.nbytes if isinstance(item, Picture) else 0


# ---------------------------------------------------------------------------------------------- many threads


class _Stopped(BaseException):
    """Ends the work of a thread whose result nobody wants any more. No decoder takes it for a fault of a picture."""


class _Slot(Generic[T]):
    """The place of one picture in the order. ``ready`` is locked until the result is there."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.result: T | Failed | None = None
        self.error: BaseException | None = None
        self.reserved = 0
        self.ready = threading.Lock()
        self.ready.acquire()


class _Readers(Generic[T]):
    """Threads that read files side by side. All but the threads' own loop is for the one who asks for pictures.

    The first of the pictures that are not yet given out never waits for memory, and those before any other are begun
    before it: so there is always one that goes on.
    """

    def __init__(self, read: Read[T], threads: int, max_bytes: int) -> None:
        self._read, self._most, self._max_bytes = read, threads, max_bytes
        self._order: deque[_Slot[T]] = deque()
        self._work: SimpleQueue[_Slot[T] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._room = threading.Condition()  # guards what follows
        self._held = 0
        self._first: _Slot[T] | None = None
        self._stopped = False

    def start(self, item: Path | Failed) -> None:
        """One more at the end of the order."""
        slot: _Slot[T] = _Slot(item if isinstance(item, Path) else None)
        self._order.append(slot)
        if isinstance(item, Failed):
            slot.result = item
            slot.ready.release()
            return
        self._work.put(slot)
        if len(self._threads) < self._most:
            self._threads.append(_thread(self._loop))

    def surplus(self) -> Iterator[T | Failed]:
        """What has to be given out before another may be started."""
        while len(self._order) >= _AHEAD * self._most:
            yield self._take()

    def rest(self) -> Iterator[T | Failed]:
        """Everything that was started."""
        while self._order:
            yield self._take()

    def _take(self) -> T | Failed:
        slot = self._order.popleft()
        with self._room:
            self._first = slot
            self._room.notify_all()
        slot.ready.acquire()
        with self._room:
            self._held -= slot.reserved
            self._room.notify_all()
        if slot.error is not None:
            raise slot.error
        assert slot.result is not None
        return slot.result

    def _loop(self) -> None:
        while (slot := self._work.get()) is not None:
            try:
                assert slot.path is not None
                slot.result = self._read(slot.path, partial(self._reserve, slot))
            except BaseException as error:  # it is raised again where the picture is asked for
                slot.error = error
            slot.ready.release()
            del slot  # or the last picture would be held until there is another

    def _reserve(self, slot: _Slot[T], count: int) -> None:
        more = count - slot.reserved
        with self._room:
            while more > 0 and self._held + more > self._max_bytes and slot is not self._first:
                if self._stopped:
                    break
                self._room.wait()
            if self._stopped:
                raise _Stopped
            self._held += more
            slot.reserved = count
            if more < 0:
                self._room.notify_all()

    def __enter__(self) -> "_Readers[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._room:
            self._stopped = True
            self._room.notify_all()
        while not self._work.empty():
            self._work.get()
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            _join(thread)


# ---------------------------------------------------------------------------------------------- one thread


def ahead(
    items: Iterable[T], count: int, max_bytes: int, size: Callable[[T], int]
) -> Generator[T, None, None]:
    """The items, made by one thread before they are asked for: up to ``count``, and until they take ``max_bytes``.

    ``size(item)`` says what an item takes. If ``items`` is a generator it is closed, in its own thread, when this
    generator is.
    """
    line: deque[T] = deque()
    changed = threading.Condition()  # guards line, held, ended, stopped and fault
    held, ended, stopped = 0, False, False
    fault: list[BaseException] = []

    def room() -> bool:
        return stopped or not line or (len(line) < count and held < max_bytes)

    def produce() -> None:
        nonlocal held, ended
        try:
            for item in items:
                with changed:
                    line.append(item)
                    held += size(item)
                    del item
                    changed.notify_all()
                    changed.wait_for(room)
                    if stopped:
                        return
        except BaseException as error:  # it is raised again where the next item is asked for
            fault.append(error)
        finally:
            with changed:
                ended = True
                changed.notify_all()
            if isinstance(items, Generator):
                items.close()

    def take() -> list[T]:
        """The next item, alone; nothing at the end."""
        nonlocal held
        with changed:
            changed.wait_for(lambda: line or ended)
            if not line:
                return []
            held -= size(line[0])
            changed.notify_all()
            return [line.popleft()]

    thread = _thread(produce)
    try:
        while got := take():
            yield got.pop()  # no name keeps it while its user works
        if fault:
            raise fault[0]
    finally:
        with changed:
            stopped = True
            changed.notify_all()
        _join(thread)


def in_batches(
    items: Iterable[T], count: int, max_bytes: int, size: Callable[[T], int]
) -> Generator[list[T], None, None]:
    """Lists of up to ``count`` items. One that takes more than ``max_bytes`` goes on as it is: memory stays bounded."""
    batch: list[T] = []
    held = 0
    for item in items:
        batch.append(item)
        held += size(item)
        if len(batch) == count or held > max_bytes:
            yield batch
            batch, held = [], 0
        del item  # or the largest would be held while the next one is read
    if batch:
        yield batch


def _thread(work: Callable[[], Any]) -> threading.Thread:
    """A running thread in the context of the one who starts it. It keeps no process from ending."""
    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True, name="pictures ahead")
    thread.start()
    return thread


def _join(thread: threading.Thread) -> None:
    if (
        thread is not threading.current_thread()
    ):  # where the garbage collector closes a generator is up to chance
        thread.join()
