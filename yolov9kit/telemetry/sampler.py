"""The thread that samples."""

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import TracebackType

from yolov9kit.errors import DeviceError, UsageError
from yolov9kit.machine import usable_cores
from yolov9kit.telemetry.asking import Asker, in_words
from yolov9kit.telemetry.gpu import GpuReader, Nvml, nothing_of_a_gpu
from yolov9kit.telemetry.host import HostReader
from yolov9kit.telemetry.sample import UTILISATION, Facts, Ring, Sample
from yolov9kit.telemetry.visible import Card, Match, by_environment, by_uuid, gpu_number

SLOW_SECONDS = 0.5  # between two looks at all processes, the costly part
SLOW_SHARE = 0.02  # of the time at most, should there be very many processes
PATIENCE_SECONDS = 2.0  # for a driver that hangs when the thread shall end


class Sampler:
    """Samples the device that trains, the machine, and process ``pid`` with its descendants, ``hz`` times a second.

    The GPU is matched by UUID: the given ``uuid``, or that of ``device`` (torch's name: ``cuda:1``, ``cpu``) as
    process ``pid`` sees it through ``CUDA_VISIBLE_DEVICES``. CUDA is never started for it, so no GPU memory is taken.
    ``pid`` is this process where not given. The last ``keep`` samples are kept, also after ``stop``. What cannot be
    had, the whole GPU included, is None in the samples, with the reason in ``facts``; the thread never raises.

    Raises:
        UsageError: ``device`` is no device's name, or a number is out of range.
    """

    def __init__(
        self,
        device: str,
        pid: int | None = None,
        hz: int | float = 10,
        keep: int = 6000,
        *,
        uuid: str | None = None,
    ) -> None:
        self._number = gpu_number(device)
        if not 0 < hz <= 1000:
            raise UsageError(f"hz {hz}: give a number of samples a second above 0, up to 1000")
        if keep < 1:
            raise UsageError(f"keep {keep}: give a number of samples of 1 or more")
        if pid is not None and pid < 1:
            raise UsageError(f"pid {pid}: give the number of a process")
        if uuid is not None and not uuid.strip():
            raise UsageError("uuid: empty; give that of a GPU, or leave it out")
        if uuid is not None and self._number is None:
            raise UsageError(f"device {device!r} has no UUID, but {uuid!r} was given: leave one out")
        self._pid, self._uuid, self._period = pid or os.getpid(), uuid, 1.0 / hz
        self._ring = Ring(keep)
        self._facts = Facts(device)
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> "Sampler":
        """Begin to sample. Does nothing where it samples already."""
        if self._thread is None:
            self._end = threading.Event()
            self._thread = threading.Thread(
                target=self._work, args=(self._end,), name="yolov9kit telemetry", daemon=True
            )
            self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread and wait for it: for the sample that it is taking, or two seconds where the driver hangs."""
        thread, self._thread = self._thread, None
        self._end.set()
        if thread is not None:
            thread.join(self._period + PATIENCE_SECONDS)

    def __enter__(self) -> "Sampler":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def since(self, n: int) -> tuple[list[Sample], int]:
        """Samples from number ``n`` on, and the number to ask with next time; begin with 0. For any thread.

        ``after - n - len(samples)`` samples were dropped in between, because no more than ``keep`` are kept.

        Raises:
            UsageError: ``n`` is not a number that this sampler has given.
        """
        return self._ring.since(n)

    @property
    def latest(self) -> Sample | None:
        """The newest sample, None before the first."""
        return self._ring.latest

    @property
    def facts(self) -> Facts:
        """The device, and what is not available and why. Complete from the first sample on."""
        return self._facts

    def _work(self, end: threading.Event) -> None:
        asker, nvml = Asker(), None
        try:
            nvml, gpu = self._find_gpu(asker)
            host = HostReader(self._pid, asker)
            slow: dict[str, float | None] = {}
            slow_at = -math.inf
            for now in ticks(self._period, time.monotonic, end.wait):
                values = host.read() | (gpu.read() if gpu else {})
                if now >= slow_at:
                    slow = host.read_slowly(now) | (gpu.read_slowly(host.pids) if gpu else {})
                    slow_at = now + max(SLOW_SECONDS, (time.monotonic() - now) / SLOW_SHARE)
                if end.is_set():
                    return
                if asker.missing != self._facts.missing:
                    self._facts = replace(self._facts, missing=dict(asker.missing))
                self._ring.append(Sample(now, **values, **slow))
        finally:
            if nvml is not None:
                asker.ask("", nvml.close)

    def _find_gpu(self, asker: Asker) -> tuple[Nvml | None, GpuReader | None]:
        """The driver and the GPU in it; where there is none, the reason goes to ``asker``."""
        self._facts = Facts(self._facts.device, cores=usable_cores())
        nvml = None
        try:
            if self._number is None:
                raise DeviceError(no_nvidia_gpu(self._facts.device))
            nvml = Nvml()
            match = self._match(nvml.cards())
            if match.card.problem:
                raise DeviceError(match.card.problem)
        except Exception as error:  # whatever breaks in a driver, the processor is still sampled
            nothing_of_a_gpu(asker, in_words(error))
            return nvml, None
        reader = GpuReader(nvml, match, asker)
        what = match.instance or match.card
        notes = [f"GPU utilisation: {UTILISATION}"]
        if match.instance:
            notes = [
                f"MIG instance of {match.card.name}: power, temperature and clocks are of the whole card"
            ]
        self._facts = replace(
            self._facts,
            name=what.name,
            uuid=what.uuid,
            driver=asker.ask("driver", nvml.driver),
            memory_total_mib=reader.read()["gpu_memory_total_mib"],
            matched=match.how,
            notes=tuple(notes),
        )
        return nvml, reader

    def _match(self, cards: list[Card]) -> Match:
        if self._uuid is not None:
            return by_uuid(cards, self._uuid)
        number = self._number or 0
        known = uuid_in_torch(number) if self._pid == os.getpid() else None
        if known is not None:
            return replace(by_uuid(cards, known), how="UUID, as torch in this process says")
        return by_environment(cards, number, environment_of(self._pid))


def ticks(period: float, clock: Callable[[], float], wait: Callable[[float], bool | None]) -> Iterator[float]:
    """The times of samples, ``period`` apart by ``clock``, until ``wait`` returns True. The first comes at once.

    Does not drift. A time that has gone by, after a slow sample or a machine asleep, is left out and not made up for.
    """
    planned = clock()
    while not wait(min(period, max(0.0, planned - clock()))):
        yield clock()
        planned += period * max(1, math.ceil((clock() - planned) / period))


def no_nvidia_gpu(device: str) -> str:
    """Why there is nothing to ask the NVIDIA driver about."""
    if device.strip().lower() == "mps":
        return "an Apple GPU cannot be asked"
    return "the work is done on the CPU"


def uuid_in_torch(number: int) -> str | None:
    """The UUID of ``cuda:{number}`` where this process uses CUDA already; None elsewhere, and nothing is started."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    if number >= torch.cuda.device_count():
        raise DeviceError(f"cuda:{number} is not there: torch sees {torch.cuda.device_count()} GPUs")
    return str(torch.cuda.get_device_properties(number).uuid)


def environment_of(pid: int) -> Mapping[str, str]:
    """What process ``pid`` was started with; this process's own environment where that cannot be read."""
    if pid == os.getpid():
        return os.environ
    import psutil

    try:
        environment: dict[str, str] = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return os.environ
    return environment
