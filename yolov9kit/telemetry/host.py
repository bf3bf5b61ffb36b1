"""The machine's side of a sample: processor and memory, of everything and of one process with its descendants."""

from pathlib import Path
from typing import Any

from yolov9kit.errors import DeviceError
from yolov9kit.telemetry.asking import Asker

MIB = 2**20
LEAST_CPU_SECONDS = 0.1  # systems count in hundredths of a second: a share of less would be noise
NOT_YET = "known from the second reading on"


class HostReader:
    """Reads this machine and process ``pid``. A value that cannot be had is None, with its reason in ``asker``."""

    def __init__(self, pid: int, asker: Asker, cgroup: str = "/sys/fs/cgroup") -> None:
        import psutil

        self.pids: set[int] = {pid}
        self._psutil: Any = psutil
        self._pid, self._asker, self._cgroup = pid, asker, Path(cgroup)
        self._busy: tuple[float, float] | None = None  # busy and all seconds of all cores
        self._percent: float | None = None
        self._root: Any = None
        self._spent: dict[Any, float] = {}  # processor seconds by process
        self._walked: float | None = None

    def read(self) -> dict[str, float | None]:
        """Processor and memory of the machine."""
        used, total = self._asker.ask(("ram_mib", "ram_total_mib"), self._memory) or (None, None)
        percent = self._asker.ask("cpu_percent", self._processor)
        return {"cpu_percent": percent, "ram_mib": used, "ram_total_mib": total}

    def read_slowly(self, now: float) -> dict[str, float | None]:
        """Processor and memory of the process tree, found by a look at every process of the machine."""
        seconds = self._asker.ask(("cpu_process_percent", "ram_process_mib"), self._walk)
        if seconds is None:
            self._walked = None
            return {"cpu_process_percent": None, "ram_process_mib": None}
        spent, resident = seconds
        percent = self._asker.ask("cpu_process_percent", lambda: self._share(spent, now))
        self._spent, self._walked = spent, now
        return {"cpu_process_percent": percent, "ram_process_mib": resident / MIB}

    def _processor(self) -> float:
        times = self._psutil.cpu_times()._asdict()
        # a guest's time is in the user's already
        total = sum(times.values()) - times.get("guest", 0.0) - times.get("guest_nice", 0.0)
        busy = total - times["idle"] - times.get("iowait", 0.0)
        if self._busy is None:
            self._busy = busy, total
        elapsed = total - self._busy[1]
        if elapsed >= LEAST_CPU_SECONDS:
            self._percent = min(100.0, max(0.0, 100.0 * (busy - self._busy[0]) / elapsed))
            self._busy = busy, total
        if self._percent is None:
            raise DeviceError(NOT_YET)
        return self._percent

    def _memory(self) -> tuple[float, float]:
        """Used and total MiB; those of the container where it has a limit."""
        memory = self._psutil.virtual_memory()
        limit = self._cgroup / "memory.max"
        text = limit.read_text().strip() if limit.is_file() else ""
        if not text.isdigit() or int(text) >= memory.total:
            return (memory.total - memory.available) / MIB, memory.total / MIB
        rows = (line.split() for line in (self._cgroup / "memory.stat").read_text().splitlines())
        files = {row[0]: int(row[1]) for row in rows}.get("inactive_file", 0)  # given back when needed
        used = int((self._cgroup / "memory.current").read_text()) - files
        return used / MIB, int(text) / MIB

    def _walk(self) -> tuple[dict[Any, float], int]:
        """Processor seconds by process, and all resident bytes."""
        spent, resident, psutil = {}, 0, self._psutil
        try:
            if self._root is None:
                self._root = psutil.Process(self._pid)
            if self._root.status() == psutil.STATUS_ZOMBIE:
                raise psutil.NoSuchProcess(self._pid)
            for process in (self._root, *self._root.children(recursive=True)):
                try:
                    with process.oneshot():
                        times = process.cpu_times()
                        resident += process.memory_info().rss
                except psutil.NoSuchProcess:  # it ended meanwhile
                    continue
                spent[process] = float(times.user + times.system)
        except psutil.NoSuchProcess:
            raise DeviceError(f"process {self._pid} has ended") from None
        except psutil.AccessDenied:
            raise DeviceError(f"process {self._pid} belongs to somebody else") from None
        self.pids = {process.pid for process in spent}
        return spent, resident

    def _share(self, spent: dict[Any, float], now: float) -> float:
        if self._walked is None or now <= self._walked:
            raise DeviceError(NOT_YET)
        both = self._spent.keys() & spent.keys()
        seconds = sum(max(0.0, spent[process] - self._spent[process]) for process in both)
        return 100.0 * seconds / (now - self._walked)
