"""Numbers of workers: what shared memory carries, and what a measurement suggests."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from yolov9kit.data.workers import batch_bytes, check_workers, shared_memory_room, suggest_workers

GIB = 2**30


@pytest.fixture
def shared_memory_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Path]:
    def make(gib: float) -> Path:
        free = int(gib * GIB)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(free, 0, free))
        return tmp_path

    return make


def test_u15_few_workers_fit_into_64_mb(shared_memory_of: Callable[[float], Path]) -> None:
    folder, one = shared_memory_of(0.0625), batch_bytes(8, 640)
    assert one == 8 * 3 * 640 * 640
    workers, reason = check_workers(8, one, prefetch=2, folder=folder)
    assert workers == 2 and (2 * 2 + 2) * one <= GIB / 16 < (3 * 2 + 2) * one
    assert reason == f"{folder} has 0.06 GiB free: 8 workers need 0.16 GiB; using 2"
    assert shared_memory_room(one, 8, 2, folder) == 2


def test_u15_none_fit(shared_memory_of: Callable[[float], Path]) -> None:
    workers, reason = check_workers(1, batch_bytes(64, 640), folder=shared_memory_of(0.0625))
    assert workers == 0 and reason.endswith("1 worker needs 0.29 GiB; using 0")


def test_where_there_is_room_nothing_is_said(shared_memory_of: Callable[[float], Path]) -> None:
    assert check_workers(8, batch_bytes(16, 640), folder=shared_memory_of(8)) == (8, "")
    assert check_workers(0, batch_bytes(16, 640), folder=shared_memory_of(0)) == (0, "")


def test_systems_without_shared_memory_have_no_limit(tmp_path: Path) -> None:
    assert shared_memory_room(1, 8, 2, tmp_path / "none") is None
    assert check_workers(8, GIB, folder=tmp_path / "none") == (8, "")


@pytest.mark.parametrize(
    ("rate", "cores", "device", "workers", "reason"),
    [
        (100, 8, "cpu", 0, "slower than that: no workers"),
        (5, 8, "cpu", 2, "2 of 8"),
        (5, 2, "cpu", 1, "1 of 2"),
        (100, 1, "cuda", 0, "no second core"),
        (100, 8, "cuda", 7, "8 cores allow 7"),
        (110, 64, "cuda", 10, "10 reach"),
        (10, 64, "cuda", 16, "64 cores allow 16"),
        (5000, 64, "cuda", 1, "1 reach"),
    ],
)
def test_suggestions(
    rate: float, cores: int, device: str, workers: int, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]  # a clock that only preparing moves
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    prepared = []

    def prepare(position: int) -> None:
        prepared.append(position)
        now[0] += 1 / rate

    suggestion = suggest_workers(prepare, cores, device)
    assert suggestion.pictures_per_second == pytest.approx(rate, rel=0.01)
    assert suggestion.workers == workers and reason in suggestion.reason
    assert prepared == list(range(len(prepared)))


def test_the_help_of_other_threads_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(time, "process_time", lambda: 4 * now[0])  # four threads at work

    def prepare(_: int) -> None:
        now[0] += 0.01

    assert suggest_workers(prepare, 8, "cuda").pictures_per_second == pytest.approx(25, rel=0.01)
