"""The NVIDIA driver's side of a sample. ``Nvml`` is the only place that talks to the driver's library."""

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from yolov9kit.errors import DeviceError
from yolov9kit.telemetry.asking import Asker, in_words
from yolov9kit.telemetry.sample import GPU_FIELDS
from yolov9kit.telemetry.visible import Card, Instance, Match

MIB = 2**20
NO_MIG_UTILISATION = "the driver does not tell the utilisation of a MIG instance"

Answer = TypeVar("Answer")


class Nvml:
    """The driver's library, open from construction to ``close``. Every method may raise DeviceError, in words."""

    def __init__(self) -> None:
        try:
            import pynvml
        except ImportError:
            raise DeviceError("the driver cannot be asked: pip install nvidia-ml-py") from None
        self._library: Any = pynvml
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError_LibraryNotFound:
            raise DeviceError("there is no NVIDIA driver on this machine") from None
        except pynvml.NVMLError as error:
            raise DeviceError(f"the NVIDIA driver does not answer: {error}; look at nvidia-smi") from None

    def close(self) -> None:
        self._ask(lambda: self._library.nvmlShutdown())

    def driver(self) -> str:
        return str(self._ask(lambda: self._library.nvmlSystemGetDriverVersion()))

    def cards(self) -> list[Card]:
        """All GPUs by slot. One that does not answer keeps its place, with the reason."""
        count = int(self._ask(lambda: self._library.nvmlDeviceGetCount()))
        return [self._card(index) for index in range(count)]

    def utilisation_percent(self, handle: Any) -> float:
        return float(self._ask(lambda: self._library.nvmlDeviceGetUtilizationRates(handle).gpu))

    def memory_mib(self, handle: Any) -> tuple[float, float | None, float]:
        """Used, reserved by the driver, total. An older driver counts the reserved part as used: None then."""
        library = self._library
        try:
            info = library.nvmlDeviceGetMemoryInfo(handle, version=library.nvmlMemory_v2)
            return info.used / MIB, info.reserved / MIB, info.total / MIB
        except (library.NVMLError_FunctionNotFound, library.NVMLError_ArgumentVersionMismatch):
            info = self._ask(lambda: library.nvmlDeviceGetMemoryInfo(handle))
            return info.used / MIB, None, info.total / MIB
        except library.NVMLError as error:
            raise self._in_words(error) from None

    def power_w(self, handle: Any) -> float:
        return float(self._ask(lambda: self._library.nvmlDeviceGetPowerUsage(handle)) / 1000)

    def power_limit_w(self, handle: Any) -> float:
        return float(self._ask(lambda: self._library.nvmlDeviceGetEnforcedPowerLimit(handle)) / 1000)

    def temperature_c(self, handle: Any) -> float:
        library = self._library
        return float(
            self._ask(lambda: library.nvmlDeviceGetTemperature(handle, library.NVML_TEMPERATURE_GPU))
        )

    def sm_mhz(self, handle: Any) -> float:
        library = self._library
        return float(self._ask(lambda: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_SM)))

    def memory_mhz(self, handle: Any) -> float:
        library = self._library
        return float(self._ask(lambda: library.nvmlDeviceGetClockInfo(handle, library.NVML_CLOCK_MEM)))

    def process_memory_mib(self, handle: Any) -> dict[int, float | None]:
        """By process id, in the host's numbers; None where the driver does not tell how much."""
        rows = self._ask(lambda: self._library.nvmlDeviceGetComputeRunningProcesses(handle))
        return {int(row.pid): None if row.usedGpuMemory is None else row.usedGpuMemory / MIB for row in rows}

    def _card(self, index: int) -> Card:
        library = self._library
        try:
            handle = self._ask(lambda: library.nvmlDeviceGetHandleByIndex(index))
            uuid, name = self._identity(handle)
        except DeviceError as error:
            return Card(None, "", "", problem=in_words(error))
        try:
            mig = library.nvmlDeviceGetMigMode(handle)[0] == library.NVML_DEVICE_MIG_ENABLE
        except library.NVMLError:  # a model that cannot be split
            return Card(handle, uuid, name)
        return Card(handle, uuid, name, mig, self._instances(handle) if mig else ())

    def _instances(self, handle: Any) -> tuple[Instance, ...]:
        library, found = self._library, []
        for index in range(int(self._ask(lambda: library.nvmlDeviceGetMaxMigDeviceCount(handle)))):
            try:
                part = library.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
                place = (
                    library.nvmlDeviceGetGpuInstanceId(part),
                    library.nvmlDeviceGetComputeInstanceId(part),
                )
            except library.NVMLError:  # an empty place
                continue
            found.append(Instance(part, *self._identity(part), *map(int, place)))
        return tuple(found)

    def _identity(self, handle: Any) -> tuple[str, str]:
        uuid = self._ask(lambda: self._library.nvmlDeviceGetUUID(handle))
        return str(uuid), str(self._ask(lambda: self._library.nvmlDeviceGetName(handle)))

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except self._library.NVMLError as error:
            raise self._in_words(error) from None

    def _in_words(self, error: Exception) -> DeviceError:
        if isinstance(error, self._library.NVMLError_FunctionNotFound):
            return DeviceError("the driver is too old to tell")
        return DeviceError(f"the driver says: {error}")


class GpuReader:
    """Reads one GPU, or one instance of it. A value that cannot be had is None, with its reason in ``asker``."""

    def __init__(self, nvml: Nvml, match: Match, asker: Asker) -> None:
        self._nvml, self._asker = nvml, asker
        self._card = match.card.handle
        self._split = match.instance is not None
        self._part = match.card.handle if match.instance is None else match.instance.handle

    def read(self) -> dict[str, float | None]:
        """What changes all the time. Of a MIG instance only the memory is its own."""
        nvml, card, ask = self._nvml, self._card, self._asker.ask
        memory = ask(
            ("gpu_memory_mib", "gpu_memory_reserved_mib", "gpu_memory_total_mib"),
            lambda: nvml.memory_mib(self._part),
        )
        used, reserved, total = memory or (None, None, None)
        if memory and reserved is None:
            self._asker.missing["gpu_memory_reserved_mib"] = "this driver counts it as used"
        return {
            "gpu_percent": ask("gpu_percent", self._utilisation),
            "gpu_memory_mib": used,
            "gpu_memory_reserved_mib": reserved,
            "gpu_memory_total_mib": total,
            "power_w": ask("power_w", lambda: nvml.power_w(card)),
            "temperature_c": ask("temperature_c", lambda: nvml.temperature_c(card)),
            "sm_mhz": ask("sm_mhz", lambda: nvml.sm_mhz(card)),
            "memory_mhz": ask("memory_mhz", lambda: nvml.memory_mhz(card)),
        }

    def read_slowly(self, pids: Collection[int]) -> dict[str, float | None]:
        """What takes the driver longer, or hardly changes. ``pids``: the processes whose memory is added up."""
        nvml, ask = self._nvml, self._asker.ask
        return {
            "power_limit_w": ask("power_limit_w", lambda: nvml.power_limit_w(self._card)),
            "gpu_memory_process_mib": ask("gpu_memory_process_mib", lambda: self._memory_of(pids)),
        }

    def _utilisation(self) -> float:
        if self._split:
            raise DeviceError(NO_MIG_UTILISATION)
        return self._nvml.utilisation_percent(self._card)

    def _memory_of(self, pids: Collection[int]) -> float:
        rows = self._nvml.process_memory_mib(self._part)
        sizes = [size for pid, size in rows.items() if pid in pids]
        known = [size for size in sizes if size is not None]
        if not sizes:
            raise DeviceError(
                "the driver does not list the process: it holds nothing on this GPU, or it runs in a container, "
                "where the driver counts processes by the host's numbers"
            )
        if len(known) < len(sizes):
            raise DeviceError("this driver does not tell memory by process")
        return sum(known)


def nothing_of_a_gpu(asker: Asker, reason: str) -> None:
    """Say for every value of a GPU why there is none."""
    asker.missing.update(dict.fromkeys(GPU_FIELDS, reason))
