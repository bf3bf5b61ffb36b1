"""The thread: it finds the GPU that trains, never raises, keeps time and ends when told."""

import itertools
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import psutil
import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.telemetry.fake_nvml import FakeGpu, FakeNvml, lost
from yolov9kit.errors import UsageError
from yolov9kit.telemetry import Facts, Sample, Sampler, sampler
from yolov9kit.telemetry.sample import GPU_FIELDS, HOST_FIELDS
from yolov9kit.telemetry.sampler import ticks

FAST = 200


def wait_for(fact: Callable[[], bool]) -> None:
    """Waits as long as it takes, within a minute."""
    deadline = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < deadline, "did not happen"
        time.sleep(0.002)


def observe(device: str, **settings: object) -> tuple[Facts, Sample]:
    """Facts and a sample that has a share of the processor already, after which the sampler is stopped."""
    with Sampler(device, hz=FAST, **settings) as running:
        wait_for(lambda: running.latest is not None and running.latest.cpu_process_percent is not None)
        wait_for(lambda: running.latest.cpu_percent is not None)
    assert not threads()
    return running.facts, running.latest


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "yolov9kit telemetry"]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    """Two GPUs, the second one busy, in a process that has not loaded torch and hides nothing."""
    fake = FakeNvml(FakeGpu("GPU-aa-0", percent=1), FakeGpu("GPU-bb-1", percent=97))
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)
    return fake


def check_only_the_host_is_known(facts: Facts, seen: Sample, reason: str) -> None:
    assert facts.name is None and facts.uuid is None
    assert set(facts.missing) == set(GPU_FIELDS)
    assert all(reason in why for why in facts.missing.values()), facts.missing
    values = {name: vars_of(seen)[name] for name in (*GPU_FIELDS, *HOST_FIELDS)}
    assert all(values[name] is None for name in GPU_FIELDS)
    assert all(values[name] is not None for name in HOST_FIELDS)


def vars_of(seen: Sample) -> dict[str, float | None]:
    return {name: getattr(seen, name) for name in Sample.__slots__}


def test_u13_the_second_gpu_made_the_only_visible_one(
    fake: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    fake.gpus[1].processes = {os.getpid(): 640}
    facts, seen = observe("cuda:0")
    assert (facts.uuid, facts.name, facts.driver) == ("GPU-bb-1", "NVIDIA H200", "595.10")
    assert facts.matched == "CUDA_VISIBLE_DEVICES='1'" and facts.memory_total_mib == 144000
    assert any("1/6 to 1 s" in note for note in facts.notes)
    assert seen.gpu_percent == 97 and seen.gpu_memory_process_mib == 640
    assert facts.missing == {}
    assert None not in vars_of(seen).values()
    assert fake.opened == 0, "the driver's library is closed at the end"


def test_u13_the_settings_of_the_process_that_trains_count(
    fake: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "1,0"}
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as training:
        facts, seen = observe("cuda:0", pid=training.pid)
        training.kill()
    assert facts.uuid == "GPU-bb-1" and seen.gpu_percent == 97
    assert set(facts.missing) == {"gpu_memory_process_mib"}


def test_u13_a_given_uuid_needs_no_settings(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    facts, _ = observe("cuda:0", uuid="bb-1")
    assert facts.uuid == "GPU-bb-1" and facts.matched == "UUID"


@pytest.mark.parametrize("initialised", [True, False])
def test_u13_torch_is_believed_where_it_runs_and_never_started(
    fake: FakeNvml, monkeypatch: pytest.MonkeyPatch, initialised: bool
) -> None:
    def properties(number: int) -> SimpleNamespace:
        assert initialised, "this would start CUDA"
        return SimpleNamespace(uuid=["bb-1", "aa-0"][number])

    cuda = SimpleNamespace(
        is_initialized=lambda: initialised, device_count=lambda: 2, get_device_properties=properties
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    facts, _ = observe("cuda:0")
    assert facts.uuid == ("GPU-bb-1" if initialised else "GPU-aa-0")


@pytest.mark.parametrize(
    ("visible", "device", "reason"),
    [
        ("", "cuda:0", "torch sees 0"),
        ("-1", "cuda", "torch sees 0"),
        ("1", "cuda:1", "torch sees 1 with CUDA_VISIBLE_DEVICES='1'"),
        ("GPU-zz", "cuda:0", "torch sees 0"),
        ("0", "cpu", "done on the CPU"),
        ("0", "mps", "an Apple GPU cannot be asked"),
    ],
)
def test_u13_no_gpu_to_show_is_said_and_the_machine_is_sampled(
    fake: FakeNvml, monkeypatch: pytest.MonkeyPatch, visible: str, device: str, reason: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    check_only_the_host_is_known(*observe(device), reason)
    assert fake.opened == 0


@pytest.mark.parametrize(
    "call", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetUUID"]
)
def test_u13_a_driver_that_fails_at_the_start(fake: FakeNvml, call: str) -> None:
    fake.broken[call] = lost()
    check_only_the_host_is_known(*observe("cuda:0"), "GPU is lost")
    assert fake.opened == 0


def test_u13_no_nvml_package(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    check_only_the_host_is_known(*observe("cuda:0"), "pip install nvidia-ml-py")


def test_u13_this_machine_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        check_only_the_host_is_known(*observe("cuda:0"), "no NVIDIA driver on this machine")
    else:
        pynvml.nvmlShutdown()
        pytest.skip(
            "needs a machine without an NVIDIA driver; test_u13_this_machine_with_a_gpu covers this one"
        )


@pytest.mark.gpu
def test_u13_this_machine_with_a_gpu() -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    torch.zeros(1, device="cuda:0")
    expected = str(torch.cuda.get_device_properties(0).uuid)
    facts, seen = observe("cuda:0")
    assert facts.uuid is not None and facts.uuid.partition("-")[2] == expected, str(facts)
    assert 0 < seen.gpu_memory_mib <= seen.gpu_memory_total_mib
    program = (  # where CUDA is not running, its settings tell the same
        "import time\nfrom yolov9kit.telemetry import Sampler\n"
        "with Sampler('cuda:0') as s:\n"
        "    while s.latest is None: time.sleep(0.01)\n"
        "print(s.facts.uuid)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == facts.uuid


def test_a_split_gpu_is_said_to_be_one(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [FakeGpu(f"MIG-{i}", "H200 MIG 1g", used_mib=i, place=(1 + i, 0)) for i in range(2)]
    fake.gpus = [FakeGpu("GPU-aa-0", mig=True, parts=parts)]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-GPU-aa-0/2/0")
    facts, seen = observe("cuda:0")
    assert (facts.uuid, facts.name, seen.gpu_memory_mib) == ("MIG-1", "H200 MIG 1g", 1)
    assert "MIG" in facts.missing["gpu_percent"] and seen.gpu_percent is None
    assert any("whole card" in note for note in facts.notes)


def test_a_gpu_lost_and_found_while_it_runs(fake: FakeNvml) -> None:
    with Sampler("cuda:0", hz=FAST) as running:
        wait_for(lambda: running.latest is not None and running.latest.power_w == 321.5)
        fake.broken["nvmlDeviceGetPowerUsage"] = lost()
        wait_for(lambda: running.latest.power_w is None)
        assert running.facts.missing["power_w"] == "the driver says: GPU is lost"
        assert running.latest.gpu_percent == 1
        fake.broken.clear()
        wait_for(lambda: running.latest.power_w == 321.5)
        assert "power_w" not in running.facts.missing
        assert len(threads()) == 1


def test_two_samplers_at_once_and_one_that_starts_again(fake: FakeNvml) -> None:
    first, second = Sampler("cuda:0", hz=FAST, keep=5), Sampler("cuda:1", hz=FAST)
    with first, second:
        assert first.start() is first
        assert len(threads()) == 2, "a second start is none"
        wait_for(lambda: first.since(0)[1] > 10 and second.since(0)[1] > 0)
        assert fake.opened == 2
    assert not threads() and fake.opened == 0
    assert (first.latest.gpu_percent, second.latest.gpu_percent) == (1, 97)
    samples, n = first.since(0)
    assert len(samples) == 5, "what was kept stays after the end"
    first.stop()
    with first:
        wait_for(lambda: first.since(n)[1] > n)
    times = [sample.time for sample in first.since(0)[0]]
    assert times == sorted(times)


def test_a_driver_that_hangs_does_not_hold_the_caller(
    fake: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "PATIENCE_SECONDS", 0.01)
    hangs, freed = threading.Event(), threading.Event()
    running = Sampler("cuda:0", hz=FAST).start()
    wait_for(lambda: running.latest is not None)
    fake.before["nvmlDeviceGetPowerUsage"] = lambda: (hangs.set(), freed.wait(60))
    assert hangs.wait(60)
    count = running.since(0)[1]
    running.stop()
    assert len(threads()) == 1
    freed.set()
    wait_for(lambda: not threads())
    assert running.since(0)[1] == count, "nothing is added after stop"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"device": "tpu"}, "name one as torch does"),
        ({"hz": 0}, "hz 0"),
        ({"hz": -1.0}, "hz -1"),
        ({"hz": math.nan}, "hz nan"),
        ({"hz": math.inf}, "hz inf"),
        ({"keep": 0}, "keep 0"),
        ({"pid": 0}, "pid 0"),
        ({"device": "cpu", "uuid": "GPU-a"}, "no UUID"),
        ({"uuid": " "}, "uuid: empty"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        Sampler(**{"device": "cuda:0"} | settings)


def test_before_the_start_nothing_is_known() -> None:
    idle = Sampler("cpu")
    assert (idle.latest, idle.since(0), idle.facts) == (None, ([], 0), Facts("cpu"))
    idle.stop()
    assert not threads()


class FakeTime:
    """A clock that moves only while somebody waits or works."""

    def __init__(self, waits: int) -> None:
        self.now, self.waits, self.longest = 1000.0, waits, 0.0

    def clock(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.waits -= 1
        self.now += seconds
        self.longest = max(self.longest, seconds)
        return self.waits < 0


@given(work=st.lists(st.floats(0, 20), max_size=40), period=st.floats(0.001, 10))
def test_samples_stay_on_the_beat_without_drift_or_burst(work: list[float], period: float) -> None:
    fake, beats = FakeTime(len(work)), []
    for now, seconds in zip(ticks(period, fake.clock, fake.wait), work, strict=True):
        beats.append((now - 1000.0) / period)
        fake.now += seconds * period  # a slow sample, or a machine asleep
    assert all(beat == pytest.approx(round(beat), abs=1e-3) for beat in beats), "no drift"
    whole = [round(beat) for beat in beats]
    assert whole == sorted(set(whole)), "at most one in a period"
    for earlier, later, seconds in zip(whole, whole[1:], work, strict=False):
        assert later - earlier <= max(1, math.ceil(seconds + 1e-3)), "the next beat is taken"


def test_a_clock_that_jumps_makes_no_burst_and_no_pause() -> None:
    fake, times = FakeTime(waits=12), []
    for number, now in enumerate(ticks(0.1, fake.clock, fake.wait)):
        times.append(now)
        fake.now += {3: 3600.05, 7: -5000.0}.get(number, 0.0)
    assert len(times) == 12
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert steps[3] == pytest.approx(3600.1)
    assert all(step == pytest.approx(0.1) for step in steps[:3] + steps[4:7] + steps[8:])
    assert fake.longest == pytest.approx(0.1)


def test_import_is_light() -> None:
    program = (
        "import sys, threading, yolov9kit.telemetry\n"
        "print([m for m in ('torch', 'numpy', 'psutil', 'pynvml') if m in sys.modules], threading.active_count())"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[] 1"


def test_the_costly_look_at_all_processes_is_not_part_of_each_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    children = psutil.Process.children

    def counted(process: psutil.Process, recursive: bool) -> list[psutil.Process]:
        looks.append(process.pid)
        return children(process, recursive)

    monkeypatch.setattr(psutil.Process, "children", counted)
    monkeypatch.setattr(sampler, "SLOW_SECONDS", 3600.0)
    with Sampler("cpu", hz=FAST) as running:
        wait_for(lambda: running.since(0)[1] >= 20)
    assert looks == [os.getpid()]
    assert len({sample.ram_process_mib for sample in running.since(0)[0]}) == 1, "repeated in between"
