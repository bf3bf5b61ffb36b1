"""The values of telemetry: one sample, what is known beside it, and the ring that keeps the last ones."""

import operator
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from yolov9kit.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

UTILISATION = "driver's average over 1/6 to 1 s"


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment. None is "not known"; ``Facts.missing`` has the reason.

    ``time`` is monotonic seconds. Memory is in MiB of 2**20 bytes, clocks in MHz, power in W, temperature in degrees
    Celsius. ``gpu_percent`` is the share of time in which some kernel ran, as the driver's average over 1/6 to 1 s: it
    repeats when asked more often, and says nothing about how full the GPU was.

    ``cpu_percent`` is of all cores of the machine; ``cpu_process_percent`` of one core, so that it may pass 100. Values
    named ``process`` are of the watched process and all its descendants; they and ``power_limit_w`` are read twice a
    second at most and repeated in between. ``ram_process_mib`` adds up resident sizes: pages that loader workers share
    count in each of them.
    """

    time: float
    gpu_percent: float | None = None
    gpu_memory_mib: float | None = None
    gpu_memory_process_mib: float | None = None
    gpu_memory_reserved_mib: float | None = None
    gpu_memory_total_mib: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: float | None = None
    sm_mhz: float | None = None
    memory_mhz: float | None = None
    cpu_percent: float | None = None
    cpu_process_percent: float | None = None
    ram_mib: float | None = None
    ram_total_mib: float | None = None
    ram_process_mib: float | None = None


FIELDS = tuple(column.name for column in fields(Sample) if column.name != "time")
HOST_FIELDS = ("cpu_percent", "cpu_process_percent", "ram_mib", "ram_total_mib", "ram_process_mib")
GPU_FIELDS = tuple(name for name in FIELDS if name not in HOST_FIELDS)


@dataclass(frozen=True)
class Facts:
    """What does not change from sample to sample.

    ``name``, ``uuid``, ``driver`` and ``memory_total_mib`` are those of the GPU, None without one; ``matched`` says how
    it was told from the others. ``cores`` is how many processor cores this process may use. ``missing`` gives, for each
    field of ``Sample`` (and for ``driver``) that is not available now, the reason in words.
    """

    device: str
    name: str | None = None
    uuid: str | None = None
    driver: str | None = None
    memory_total_mib: float | None = None
    matched: str = ""
    cores: float | None = None
    notes: tuple[str, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{self.device}: {self.name}, {self.uuid}" if self.name else f"{self.device}"]
        lines += [f"matched by {self.matched}"] if self.matched else []
        lines += self.notes
        for reason in dict.fromkeys(self.missing.values()):
            names = [name for name, why in self.missing.items() if why == reason]
            lines.append(f"not available: {', '.join(names)} ({reason})")
        return "\n".join(lines)


class Ring:
    """The last ``keep`` samples, numbered from 0 through the whole life of the ring. For any number of threads."""

    def __init__(self, keep: int) -> None:
        self._slots: list[Sample | None] = [None] * keep
        self._count = 0
        self._lock = threading.Lock()

    def append(self, sample: Sample) -> None:
        """Keep one more, and drop the oldest when full."""
        with self._lock:
            self._slots[self._count % len(self._slots)] = sample
            self._count += 1

    def since(self, n: int) -> tuple[list[Sample], int]:
        """Samples from number ``n`` on that are still kept, and the number of the next one to come.

        Raises:
            UsageError: there has been no such number yet.
        """
        with self._lock:
            if not 0 <= n <= self._count:
                raise UsageError(f"since({n}): not a number that since has given; it is at {self._count} now")
            first = max(n, self._count - len(self._slots))
            kept = (self._slots[number % len(self._slots)] for number in range(first, self._count))
            return [sample for sample in kept if sample is not None], self._count

    @property
    def latest(self) -> Sample | None:
        """The newest sample, None before the first."""
        with self._lock:
            return self._slots[(self._count - 1) % len(self._slots)] if self._count else None


def telemetry_series(samples: Sequence[Sample], name: str) -> "tuple[np.ndarray, np.ndarray]":
    """Times and values of one field, both float64, NaN where the value is not known.

    Raises:
        UsageError: a sample has no such field.
    """
    import numpy as np

    if name not in FIELDS:
        raise UsageError(f"{name!r} is no field of a sample; there are {', '.join(FIELDS)}")
    values = map(operator.attrgetter(name), samples)
    times = np.array([sample.time for sample in samples], dtype=np.float64)
    return times, np.array([float("nan") if value is None else value for value in values], dtype=np.float64)
