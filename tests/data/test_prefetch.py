"""Reading ahead: the same pictures in the same order, never more held than allowed, and no thread left behind."""

import contextvars
import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.waiting import until
from yolov9kit.data import sources
from yolov9kit.data.prefetch import (
    Reserve,
    ahead,
    decode_threads,
    prefetched,
    prefetched_with,
)
from yolov9kit.data.sources import Part, PictureFile, Sequential, Source, open_source, read_picture
from yolov9kit.types import Failed, Picture

MakePicture = Callable[..., Path]
MakeVideo = Callable[..., Path]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    until(lambda: not running(), "threads are left behind")


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pictures ahead"]


def files(count: int | None, total: int | None = None) -> Source:
    """A source of that many files that nobody opens, without end for None."""
    numbers = itertools.count() if count is None else range(count)
    parts: Callable[[], Iterator[Part]] = lambda: (PictureFile(Path(str(i))) for i in numbers)  # noqa: E731
    return Source("files", count if total is None else total, parts)


def same(a: Picture | Failed, b: Picture | Failed) -> bool:
    if isinstance(a, Failed) or isinstance(b, Failed):
        return a == b
    facts = [(p.path, p.frame, p.notes, p.video_fps) for p in (a, b)]
    return facts[0] == facts[1] and np.array_equal(a.pixels, b.pixels)


# --- the same pictures in the same order


@pytest.mark.parametrize("max_bytes", [1, 2000, 2**30])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_comes_is_what_the_source_gives(
    threads: int, max_bytes: int, make_picture: MakePicture, make_video: MakeVideo, tmp_path: Path
) -> None:
    for i in range(12):
        make_picture(f"set/{i:02}.png", level=20 * i, size=(8 + 7 * i, 6))
    (tmp_path / "set" / "05.png").write_bytes(b"no picture")
    make_video("set/06.avi")
    make_video("set/07.avi", frames=20)
    (tmp_path / "set" / "08.avi").write_bytes(b"no video")
    array = np.zeros((4, 5, 3), np.uint8)
    source = open_source([tmp_path / "set", array, [array, array + 1], "nowhere.png", tmp_path / "set/*.png"])
    expected = list(source)
    found = list(prefetched(source, threads, max_bytes))
    assert len(found) == len(expected) == 12 + 12 + 20 + 1 + 3 + 1 + 12
    assert all(map(same, found, expected))


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), max_size=60),
    max_bytes=st.integers(1, 100),
    threads=st.integers(1, 6),
    grow=st.booleans(),
)
def test_any_sizes_come_in_order_within_the_bound(
    sizes: list[int], max_bytes: int, threads: int, grow: bool
) -> None:
    guard, held, most = threading.Lock(), 0, 0

    def read(path: Path, reserve: Reserve) -> int:
        nonlocal held, most
        number = int(str(path))
        for size in (sizes[number] // 2 + 1, sizes[number]) if grow else (sizes[number],):
            reserve(size)
        with guard:
            held += sizes[number]
            most = max(most, held)
        return number

    given_out = []
    for number in prefetched_with(read, files(len(sizes)), threads, max_bytes):
        with guard:
            held -= sizes[number]
        given_out.append(number)
    assert given_out == list(range(len(sizes)))
    # the one that is waited for may go beyond, and one more lies between the count here and the count there
    assert most <= max_bytes + 2 * max(sizes, default=0)


def test_a_picture_that_needs_less_in_the_end_lets_others_begin() -> None:
    decoding: list[str] = []

    def read(path: Path, reserve: Reserve) -> str:
        reserve(100)
        decoding.append(str(path))
        reserve(10)
        return str(path)

    pictures = prefetched_with(read, files(8), 2, max_bytes=130)
    assert next(pictures) == "0"
    until(lambda: len(decoding) >= 4, "those that were decoded hold 10 each, and 100 are free")
    assert list(pictures) == list("1234567")


def test_time_spent_waiting_for_memory_is_not_decoding(
    make_picture: MakePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count()
    now = 0.0

    def tick() -> float:
        nonlocal now
        now += 0.001 * (next(clock) >= 0)
        return now

    def wait(_width: int, _height: int) -> None:
        nonlocal now
        now += 1000

    path = make_picture()
    monkeypatch.setattr(sources.time, "perf_counter", tick)
    waited, straight = read_picture(path, wait), read_picture(path, lambda _width, _height: None)
    assert isinstance(waited, Picture) and isinstance(straight, Picture)
    assert waited.decode_ms == pytest.approx(straight.decode_ms) and straight.decode_ms < 10


def test_a_size_beyond_the_limit_is_refused_before_memory_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "huge.ppm").write_bytes(b"P6 100000 100000 255\n")
    asked: list[int] = []
    failed = read_picture(tmp_path / "huge.ppm", lambda width, height: asked.append(width * height))
    assert isinstance(failed, Failed) and "make it smaller first" in failed.error and not asked


# --- how far ahead


@pytest.mark.parametrize("threads", [2, 4])
def test_a_million_files_are_looked_at_as_they_are_needed(threads: int) -> None:
    looked_at, given_out, lead = 0, 0, 0

    def parts() -> Iterator[Part]:
        nonlocal looked_at, lead
        for i in range(1_000_000):
            looked_at += 1
            lead = max(lead, looked_at - given_out)
            yield PictureFile(Path(str(i)))

    pictures = prefetched_with(lambda path, _reserve: path, Source("many", 1_000_000, parts), threads)
    for _ in range(500):
        next(pictures)
        given_out += 1
    pictures.close()
    assert looked_at < 600 and threads < lead <= 4 * threads + 1


def test_all_threads_work_at_once() -> None:
    together = threading.Barrier(3)

    def read(path: Path, _reserve: Reserve) -> str:
        together.wait(120)  # raises where fewer than three ever meet
        return str(path)

    assert list(prefetched_with(read, files(9), 3)) == list("012345678")


@pytest.mark.parametrize(("count", "threads"), [(1, 8), (5, 1), (5, 0)])
def test_one_picture_or_one_thread_takes_no_thread(count: int, threads: int) -> None:
    used = set(prefetched_with(lambda _path, _reserve: threading.current_thread(), files(count), threads))
    assert used == {threading.main_thread()}


def test_no_more_threads_than_pictures() -> None:
    counts = [len(running()) for _ in prefetched_with(lambda path, _reserve: path, files(3), 16)]
    assert max(counts) <= 3


def test_the_number_of_threads_comes_with_its_reason() -> None:
    assert [decode_threads(cores).threads for cores in (0.5, 1.0, 1.9, 2.0, 6.5, 16.0, 17.0, 256.0)] == [
        *(1, 1, 1, 2, 6, 16, 16, 16)
    ]
    assert "when they are asked for" in decode_threads(1.5).reason
    assert decode_threads(4.0).reason == "one for each of 4 cores"
    assert "of 64" in decode_threads(64.0).reason


# --- what can only be read in sequence


def frames(seen: list[Any], count: int) -> Iterator[Picture]:
    """``seen`` hears the thread of each frame, and of the end."""
    try:
        for i in range(count):
            seen.append(threading.current_thread())
            yield Picture(np.zeros((1, 1, 3), np.uint8), "v", frame=i)
    finally:
        seen.append(("closed by", threading.current_thread()))


def sequential(seen: list[Any], count: int, ahead: bool, beside: int = 3) -> Source:
    """``beside`` files, the frames, and as many files again."""

    def parts() -> Iterator[Part]:
        around = [PictureFile(Path(str(i))) for i in range(2 * beside)]
        yield from around[:beside]
        yield Sequential(lambda: frames(seen, count), ahead)
        yield from around[beside:]

    return Source("mixed", None, parts)


@pytest.mark.parametrize("is_video", [True, False])
def test_a_video_has_one_thread_and_what_is_live_has_none(is_video: bool) -> None:
    seen: list[Any] = []
    found = list(prefetched_with(lambda path, _reserve: path, sequential(seen, 40, is_video), 3))
    assert [item.frame if isinstance(item, Picture) else int(str(item)) for item in found] == [
        *(0, 1, 2),
        *range(40),
        *(3, 4, 5),
    ]
    worker, *others = set(seen[:-1])
    assert not others and (worker is not threading.main_thread()) == is_video
    assert seen[-1] == ("closed by", worker)


def test_a_video_is_read_ahead_but_not_far() -> None:
    seen: list[Any] = []
    pictures = prefetched_with(lambda path, _reserve: path, sequential(seen, 500, True, beside=0), 2)
    next(pictures)
    until(lambda: len(seen) >= 8, "nothing was read ahead")
    for _ in range(100):
        next(pictures)
    assert 100 < len(seen) <= 101 + 9
    pictures.close()
    assert seen[-1][0] == "closed by" and seen[-1][1] is seen[0]


def test_frames_ahead_fit_into_the_memory() -> None:
    lead, made, given_out = 0, 0, 0

    def make() -> Iterator[int]:
        nonlocal made, lead
        for _ in range(200):
            made += 1
            lead = max(lead, made - given_out)
            yield 10

    for _ in ahead(make(), count=50, max_bytes=25, size=lambda item: item):
        given_out += 1
    assert made == given_out == 200 and lead <= 5  # three wait, one is being made, one is being given out


def test_nothing_behind_a_video_is_begun_before_it_ends() -> None:
    seen: list[Any] = []
    begun: list[str] = []

    def read(path: Path, _reserve: Reserve) -> Path:
        begun.append(str(path))
        return path

    for item in prefetched_with(read, sequential(seen, 5, True), 4):
        if isinstance(item, Picture):
            assert sorted(begun) == ["0", "1", "2"]
    assert len(begun) == 6


def test_a_fault_in_a_video_comes_behind_its_frames() -> None:
    def broken() -> Iterator[int]:
        yield from range(20)
        raise ZeroDivisionError("the fault")

    taken = ahead(broken(), 4, 100, lambda _item: 1)
    assert [next(taken) for _ in range(20)] == list(range(20))
    with pytest.raises(ZeroDivisionError, match="the fault"):
        next(taken)


# --- faults and stopping


def test_a_fault_of_ours_is_raised_in_its_place() -> None:
    def read(path: Path, _reserve: Reserve) -> int:
        if str(path) == "7":
            raise ZeroDivisionError("the fault")
        return int(str(path))

    pictures = prefetched_with(read, files(None, total=99), 3)
    assert [next(pictures) for _ in range(7)] == list(range(7))
    with pytest.raises(ZeroDivisionError, match="the fault"):
        next(pictures)
    assert not running() and next(pictures, None) is None


def waiting_for_memory(begun: list[str]) -> Iterator[str]:
    """Pictures of which every one fills the memory: all threads but one wait."""

    def read(path: Path, reserve: Reserve) -> str:
        begun.append(str(path))
        reserve(100)
        return str(path)

    return prefetched_with(read, files(None, total=99), 4, max_bytes=100)


@pytest.mark.parametrize("way", ["close", "let go", "error", "interrupt"])
def test_threads_end_when_nobody_asks_any_more(way: str) -> None:
    begun: list[str] = []
    pictures: Any = waiting_for_memory(begun)
    assert next(pictures) == "0"
    until(lambda: len(begun) >= 5, "four wait for memory")
    if way == "close":
        pictures.close()
    elif way == "let go":
        del pictures
    else:
        error = ZeroDivisionError if way == "error" else KeyboardInterrupt
        with pytest.raises(error):
            pictures.throw(error())
    assert not running() and len(begun) <= 6


def test_no_work_is_begun_after_the_end() -> None:
    go, begun = threading.Event(), []

    def read(path: Path, _reserve: Reserve) -> str:
        begun.append(str(path))
        if str(path) != "0":
            go.wait(120)
        return str(path)

    pictures = prefetched_with(read, files(None, total=99), 2)
    assert next(pictures) == "0"
    until(lambda: len(begun) >= 3)
    closing = threading.Thread(target=pictures.close)
    closing.start()
    closing.join(0.05)  # it waits for the two that are at work
    go.set()
    closing.join(120)
    assert not closing.is_alive() and sorted(begun) == ["0", "1", "2"]


@pytest.mark.skipif(sys.platform == "win32", reason="signals to a thread are POSIX")
def test_an_interrupt_reaches_the_one_who_waits() -> None:
    def read(path: Path, _reserve: Reserve) -> Path:
        if str(path) == "20":
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return path

    with pytest.raises(KeyboardInterrupt):
        for _ in prefetched_with(read, files(None, total=99), 3):
            pass


def test_a_process_ends_with_pictures_still_waiting(root: Path) -> None:
    code = """
from pathlib import Path
from yolov9kit.data.prefetch import prefetched_with
from yolov9kit.data.sources import PictureFile, Source
source = Source("files", 99, lambda: (PictureFile(Path(str(i))) for i in range(99)))
def read(path, reserve):
    reserve(100)
    return path
kept = prefetched_with(read, source, 4, 100)
print(next(kept))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_threads_know_the_context_of_the_one_who_asks() -> None:
    cell: contextvars.ContextVar[str] = contextvars.ContextVar("cell", default="none")

    def read(_path: Path, _reserve: Reserve) -> str:
        return cell.get()

    def ask() -> list[str]:
        cell.set("mine")
        made = ahead((cell.get() for _ in range(3)), 2, 100, lambda _item: 1)
        return [*prefetched_with(read, files(6), 2), *made]

    assert set(contextvars.copy_context().run(ask)) == {"mine"} and cell.get() == "none"
