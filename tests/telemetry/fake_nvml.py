"""A stand-in for the module ``pynvml``: GPUs as many as wanted, whole or split, healthy or not."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml

MIB = 2**20


@dataclass(eq=False)
class FakeGpu:
    uuid: str
    name: str = "NVIDIA H200"
    percent: int = 50
    used_mib: int = 1000
    processes: dict[int, int | None] = field(default_factory=dict)  # MiB by process id
    mig: bool | None = None  # None: a model that cannot be split
    parts: list["FakeGpu | None"] = field(default_factory=list)  # None: an empty place
    place: tuple[int, int] = (0, 0)


class FakeNvml:
    """``broken[name]`` is the error that the function of that name raises; ``before[name]`` is called first."""

    NVMLError = pynvml.NVMLError
    NVMLError_LibraryNotFound = pynvml.NVMLError_LibraryNotFound
    NVMLError_FunctionNotFound = pynvml.NVMLError_FunctionNotFound
    NVMLError_ArgumentVersionMismatch = pynvml.NVMLError_ArgumentVersionMismatch
    NVML_TEMPERATURE_GPU = pynvml.NVML_TEMPERATURE_GPU
    NVML_CLOCK_SM = pynvml.NVML_CLOCK_SM
    NVML_CLOCK_MEM = pynvml.NVML_CLOCK_MEM
    NVML_DEVICE_MIG_ENABLE = pynvml.NVML_DEVICE_MIG_ENABLE
    nvmlMemory_v2 = pynvml.nvmlMemory_v2  # noqa: N815 - the library's own name

    def __init__(self, *gpus: FakeGpu) -> None:
        self.gpus = list(gpus)
        self.broken: dict[str, Exception] = {}
        self.before: dict[str, Callable[[], object]] = {}
        self.opened = 0
        self._lock = threading.Lock()

    def _called(self, name: str) -> None:
        self.before.get(name, lambda: None)()
        if name in self.broken:
            raise self.broken[name]

    def nvmlInit(self) -> None:  # noqa: N802
        self._called("nvmlInit")
        with self._lock:
            self.opened += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self._called("nvmlShutdown")
        with self._lock:
            self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        self._called("nvmlSystemGetDriverVersion")
        return "595.10"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        self._called("nvmlDeviceGetCount")
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        self._called("nvmlDeviceGetHandleByIndex")
        self._called(f"nvmlDeviceGetHandleByIndex {index}")
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, gpu: FakeGpu) -> str:  # noqa: N802
        self._called("nvmlDeviceGetUUID")
        return gpu.uuid

    def nvmlDeviceGetName(self, gpu: FakeGpu) -> str:  # noqa: N802
        self._called("nvmlDeviceGetName")
        return gpu.name

    def nvmlDeviceGetMigMode(self, gpu: FakeGpu) -> list[int]:  # noqa: N802
        self._called("nvmlDeviceGetMigMode")
        if gpu.mig is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return [int(gpu.mig), int(gpu.mig)]

    def nvmlDeviceGetMaxMigDeviceCount(self, gpu: FakeGpu) -> int:  # noqa: N802
        self._called("nvmlDeviceGetMaxMigDeviceCount")
        return len(gpu.parts)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, gpu: FakeGpu, index: int) -> FakeGpu:  # noqa: N802
        self._called("nvmlDeviceGetMigDeviceHandleByIndex")
        part = gpu.parts[index]
        if part is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return part

    def nvmlDeviceGetGpuInstanceId(self, part: FakeGpu) -> int:  # noqa: N802
        return part.place[0]

    def nvmlDeviceGetComputeInstanceId(self, part: FakeGpu) -> int:  # noqa: N802
        return part.place[1]

    def nvmlDeviceGetUtilizationRates(self, gpu: FakeGpu) -> Any:  # noqa: N802
        self._called("nvmlDeviceGetUtilizationRates")
        return SimpleNamespace(gpu=gpu.percent, memory=7)

    def nvmlDeviceGetMemoryInfo(self, gpu: FakeGpu, version: int | None = None) -> Any:  # noqa: N802
        self._called("nvmlDeviceGetMemoryInfo")
        if version:
            self._called("nvmlDeviceGetMemoryInfo_v2")
            return SimpleNamespace(used=gpu.used_mib * MIB, reserved=500 * MIB, total=144000 * MIB)
        return SimpleNamespace(used=(gpu.used_mib + 500) * MIB, total=144000 * MIB)

    def nvmlDeviceGetPowerUsage(self, gpu: FakeGpu) -> int:  # noqa: N802
        self._called("nvmlDeviceGetPowerUsage")
        return 321500

    def nvmlDeviceGetEnforcedPowerLimit(self, gpu: FakeGpu) -> int:  # noqa: N802
        self._called("nvmlDeviceGetEnforcedPowerLimit")
        return 700000

    def nvmlDeviceGetTemperature(self, gpu: FakeGpu, sensor: int) -> int:  # noqa: N802
        self._called("nvmlDeviceGetTemperature")
        return 61

    def nvmlDeviceGetClockInfo(self, gpu: FakeGpu, kind: int) -> int:  # noqa: N802
        self._called("nvmlDeviceGetClockInfo")
        return {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}[kind]

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: FakeGpu) -> list[Any]:  # noqa: N802
        self._called("nvmlDeviceGetComputeRunningProcesses")
        return [
            SimpleNamespace(pid=pid, usedGpuMemory=None if size is None else size * MIB)
            for pid, size in gpu.processes.items()
        ]


def lost() -> Exception:
    return pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)


def not_supported() -> Exception:
    return pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def no_permission() -> Exception:
    return pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
