"""Processor and memory of this very machine, and of a family of processes on it."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from yolov9kit.telemetry.asking import Asker
from yolov9kit.telemetry.host import NOT_YET, HostReader
from yolov9kit.telemetry.sample import HOST_FIELDS

MIB = 2**20
BUSY_CHILD = "import sys\nprint(flush=True)\nwhile True: pass"
PARENT = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {BUSY_CHILD!r}])"


@pytest.fixture
def family() -> Iterator[subprocess.Popen]:
    """A process that waits for its child, which is busy."""
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        children = psutil.Process(parent.pid).children()
        yield parent
        parent.kill()
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):  # the test ended it
                child.kill()


def test_this_machine_has_every_value_from_the_second_reading_on() -> None:
    asker = Asker()
    host = HostReader(os.getpid(), asker, cgroup="/no such folder")
    first = host.read() | host.read_slowly(time.monotonic())
    assert first["cpu_percent"] is None and first["cpu_process_percent"] is None
    assert asker.missing == {"cpu_percent": NOT_YET, "cpu_process_percent": NOT_YET}
    deadline = time.monotonic() + 60
    while "cpu_percent" in asker.missing and time.monotonic() < deadline:
        time.sleep(0.05)
        second = host.read()
    second |= host.read_slowly(time.monotonic())
    assert asker.missing == {}
    assert set(second) == set(HOST_FIELDS)
    assert 0 <= second["cpu_percent"] <= 100
    assert second["ram_total_mib"] == psutil.virtual_memory().total / MIB
    assert 0 < second["ram_process_mib"] < second["ram_mib"] < second["ram_total_mib"]


def test_a_process_counts_with_its_descendants(family: subprocess.Popen) -> None:
    host = HostReader(family.pid, Asker())
    host.read_slowly(time.monotonic())
    (child,) = psutil.Process(family.pid).children()
    assert host.pids == {family.pid, child.pid}
    share, deadline = 0.0, time.monotonic() + 60
    while share == 0.0 and time.monotonic() < deadline:
        time.sleep(0.05)
        values = host.read_slowly(time.monotonic())
        share = values["cpu_process_percent"]
    assert share > 0, "the child's work counts; the parent only waits"
    alone = psutil.Process(family.pid).memory_info().rss / MIB
    assert values["ram_process_mib"] > alone


def test_a_process_that_ended_has_no_values(family: subprocess.Popen) -> None:
    asker = Asker()
    host = HostReader(family.pid, asker)
    assert host.read_slowly(1.0)["ram_process_mib"] > 0
    (child,) = psutil.Process(family.pid).children()
    child.kill()
    for ended in (lambda: os.waitid(os.P_PID, family.pid, os.WEXITED | os.WNOWAIT), family.wait):
        ended()  # first a zombie, then gone
        assert host.read_slowly(2.0) == {"cpu_process_percent": None, "ram_process_mib": None}
        reason = f"process {family.pid} has ended"
        assert asker.missing == {"cpu_process_percent": reason, "ram_process_mib": reason}
    assert host.read()["ram_mib"] > 0


def test_a_forbidden_process_is_said_to_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(process: psutil.Process, recursive: bool) -> None:
        raise psutil.AccessDenied(process.pid)

    asker = Asker()
    host = HostReader(os.getpid(), asker)
    monkeypatch.setattr(psutil.Process, "children", refuse)
    assert host.read_slowly(1.0)["ram_process_mib"] is None
    assert "belongs to somebody else" in asker.missing["ram_process_mib"]


def test_in_a_container_memory_is_that_of_the_container(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(f"{256 * MIB}\n")
    (tmp_path / "memory.current").write_text(f"{200 * MIB}\n")
    (tmp_path / "memory.stat").write_text(f"anon 5\ninactive_file {50 * MIB}\n")
    values = HostReader(os.getpid(), Asker(), cgroup=str(tmp_path)).read()
    assert (values["ram_mib"], values["ram_total_mib"]) == (150.0, 256.0)


@pytest.mark.parametrize("limit", ["max", "", str(2**62)])
def test_a_container_without_a_limit_has_the_machines_memory(tmp_path: Path, limit: str) -> None:
    (tmp_path / "memory.max").write_text(limit)
    values = HostReader(os.getpid(), Asker(), cgroup=str(tmp_path)).read()
    assert values["ram_total_mib"] == psutil.virtual_memory().total / MIB


def test_a_clock_that_stands_still_or_goes_back_gives_no_share() -> None:
    asker = Asker()
    host = HostReader(os.getpid(), asker)
    for now in (5.0, 5.0, 4.0):
        assert host.read_slowly(now)["cpu_process_percent"] is None
        assert asker.missing["cpu_process_percent"] == NOT_YET
    assert host.read_slowly(4.5)["cpu_process_percent"] is not None
