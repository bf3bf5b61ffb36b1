"""What the driver says, in the right units; what it does not say, in words. The driver is a stand-in here."""

import sys
from collections.abc import Iterator

import pynvml
import pytest

from tests.telemetry.fake_nvml import FakeGpu, FakeNvml, lost, no_permission, not_supported
from yolov9kit.errors import DeviceError
from yolov9kit.telemetry.asking import Asker
from yolov9kit.telemetry.gpu import NO_MIG_UTILISATION, GpuReader, Nvml
from yolov9kit.telemetry.sample import GPU_FIELDS
from yolov9kit.telemetry.visible import Match

HEALTHY = {
    "gpu_percent": 50.0,
    "gpu_memory_mib": 1000.0,
    "gpu_memory_reserved_mib": 500.0,
    "gpu_memory_total_mib": 144000.0,
    "gpu_memory_process_mib": 800.0,
    "power_w": 321.5,
    "power_limit_w": 700.0,
    "temperature_c": 61.0,
    "sm_mhz": 1980.0,
    "memory_mhz": 3201.0,
}
CALLS = [
    ("nvmlDeviceGetUtilizationRates", {"gpu_percent"}),
    ("nvmlDeviceGetMemoryInfo", {"gpu_memory_mib", "gpu_memory_reserved_mib", "gpu_memory_total_mib"}),
    ("nvmlDeviceGetComputeRunningProcesses", {"gpu_memory_process_mib"}),
    ("nvmlDeviceGetPowerUsage", {"power_w"}),
    ("nvmlDeviceGetEnforcedPowerLimit", {"power_limit_w"}),
    ("nvmlDeviceGetTemperature", {"temperature_c"}),
    ("nvmlDeviceGetClockInfo", {"sm_mhz", "memory_mhz"}),
]
ERRORS = [
    lost(),
    not_supported(),
    no_permission(),
    OSError("broken pipe"),
    UnicodeDecodeError("utf8", b"", 0, 1, "x"),
]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeNvml]:
    fake = FakeNvml(FakeGpu("GPU-a", processes={10: 300, 11: 500, 99: 200}))
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    yield fake
    assert fake.opened == 0, "closed as often as opened"


@pytest.fixture
def nvml(fake: FakeNvml) -> Iterator[Nvml]:
    nvml = Nvml()
    yield nvml
    nvml.close()


def reader(nvml: Nvml, asker: Asker) -> GpuReader:
    card = nvml.cards()[0]
    return GpuReader(nvml, Match(card, card.instances[0] if card.instances else None, ""), asker)


def read(reader: GpuReader) -> dict[str, float | None]:
    return reader.read() | reader.read_slowly({10, 11, 12})


def test_the_stand_in_has_only_names_of_the_real_library() -> None:
    names = {name for name in dir(FakeNvml) if name.lower().startswith("nvml")}
    assert len(names) > 20
    assert names <= set(dir(pynvml))


def test_every_value_in_its_unit(nvml: Nvml) -> None:
    asker = Asker()
    assert read(reader(nvml, asker)) == HEALTHY
    assert set(HEALTHY) == set(GPU_FIELDS)
    assert asker.missing == {}
    assert nvml.driver() == "595.10"


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("call", "fields"), CALLS, ids=[call for call, _ in CALLS])
def test_a_failing_call_is_one_none_with_a_reason(
    fake: FakeNvml, nvml: Nvml, call: str, fields: set[str], error: Exception
) -> None:
    asker = Asker()
    gpu = reader(nvml, asker)
    fake.broken[call] = error
    for _ in range(3):
        assert read(gpu) == {name: None if name in fields else value for name, value in HEALTHY.items()}
        assert set(asker.missing) == fields
    assert all(str(error)[:20] in reason for reason in asker.missing.values())
    fake.broken.clear()
    assert read(gpu) == HEALTHY
    assert asker.missing == {}


def test_a_lost_gpu_fails_in_every_call(fake: FakeNvml, nvml: Nvml) -> None:
    asker = Asker()
    gpu = reader(nvml, asker)
    fake.broken |= {call: lost() for call, _ in CALLS}
    assert set(read(gpu).values()) == {None}
    assert asker.missing == dict.fromkeys(GPU_FIELDS, "the driver says: GPU is lost")


def test_a_driver_too_old_for_a_call_says_so(fake: FakeNvml, nvml: Nvml) -> None:
    asker = Asker()
    fake.broken["nvmlDeviceGetComputeRunningProcesses"] = pynvml.NVMLError(
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND
    )
    assert read(reader(nvml, asker))["gpu_memory_process_mib"] is None
    assert asker.missing == {"gpu_memory_process_mib": "the driver is too old to tell"}


@pytest.mark.parametrize(
    "code", [pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH]
)
def test_an_older_driver_counts_the_reserved_memory_as_used(fake: FakeNvml, nvml: Nvml, code: int) -> None:
    asker = Asker()
    fake.broken["nvmlDeviceGetMemoryInfo_v2"] = pynvml.NVMLError(code)
    values = read(reader(nvml, asker))
    assert values == HEALTHY | {"gpu_memory_mib": 1500.0, "gpu_memory_reserved_mib": None}
    assert asker.missing == {"gpu_memory_reserved_mib": "this driver counts it as used"}


@pytest.mark.parametrize(
    ("processes", "reason"),
    [({}, "container"), ({99: 200}, "container"), ({10: None, 11: 5}, "does not tell")],
)
def test_memory_of_a_process_that_the_driver_does_not_tell(
    fake: FakeNvml, nvml: Nvml, processes: dict[int, int | None], reason: str
) -> None:
    asker = Asker()
    fake.gpus[0].processes = processes
    assert read(reader(nvml, asker))["gpu_memory_process_mib"] is None
    assert reason in asker.missing["gpu_memory_process_mib"]


def test_of_an_instance_the_memory_is_its_own_and_the_rest_the_cards(fake: FakeNvml, nvml: Nvml) -> None:
    part = FakeGpu("MIG-1", "H200 MIG 1g", used_mib=77, processes={11: 70}, place=(3, 0))
    fake.gpus[0] = FakeGpu("GPU-a", mig=True, parts=[None, part])
    asker = Asker()
    (card,) = nvml.cards()
    assert card.mig and [(i.uuid, i.name, i.gpu_instance) for i in card.instances] == [
        ("MIG-1", "H200 MIG 1g", 3)
    ]
    expected = {"gpu_percent": None, "gpu_memory_mib": 77.0, "gpu_memory_process_mib": 70.0}
    assert read(reader(nvml, asker)) == HEALTHY | expected
    assert asker.missing == {"gpu_percent": NO_MIG_UTILISATION}


def test_cards_in_the_drivers_order_and_a_broken_one_in_its_place(fake: FakeNvml, nvml: Nvml) -> None:
    fake.gpus = [FakeGpu("GPU-a"), FakeGpu("GPU-b"), FakeGpu("GPU-c", mig=False)]
    fake.broken["nvmlDeviceGetHandleByIndex 1"] = lost()
    cards = nvml.cards()
    assert [card.uuid for card in cards] == ["GPU-a", "", "GPU-c"]
    assert [card.problem for card in cards] == ["", "the driver says: GPU is lost", ""]
    assert not any(card.mig for card in cards)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND), "no NVIDIA driver"),
        (pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED), "does not answer: Driver Not Loaded"),
        (no_permission(), "does not answer: Insufficient Permissions"),
    ],
)
def test_u13_a_driver_that_cannot_be_opened(fake: FakeNvml, error: Exception, reason: str) -> None:
    fake.broken["nvmlInit"] = error
    with pytest.raises(DeviceError, match=reason):
        Nvml()


def test_u13_no_nvml_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(DeviceError, match="pip install nvidia-ml-py"):
        Nvml()
