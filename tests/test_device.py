"""Devices and precisions: honoured or refused in words, and torch's switches left as they were.

Machines that are not here are made of torch's own functions, replaced for the time of a test. The TF32 switches
need no GPU: torch keeps them on any machine.
"""

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from yolov9kit.device import (
    PRECISIONS,
    Device,
    Precision,
    available_devices,
    choose_device,
    choose_devices,
    choose_precision,
    float32_math,
    to_host,
)
from yolov9kit.errors import DeviceError, KitError, UsageError

CPU = Device("cpu", "CPU", "")
GPU = Device("cuda:0", "a GPU", "")
MPS = Device("mps", "Apple GPU", "")
FP32 = Precision("fp32", torch.float32, True, "")
TF32 = Precision("tf32", torch.float32, True, "")

Machine = Callable[..., None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Makes torch report these GPUs, by name and compute capability, and an Apple GPU or not."""

    def make(*gpus: tuple[str, tuple[int, int]], mps: bool = False) -> None:
        def index(device: Any) -> int:
            return int(str(device).rpartition(":")[2])

        monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(gpus))
        monkeypatch.setattr(torch.cuda, "device_count", lambda: len(gpus))
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: gpus[index(device)][0])
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: gpus[index(device)][1])
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: True)  # as torch says of a T4
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return make


T4, V100, A100, H200, P100, K80 = (
    *(("Tesla T4", (7, 5)), ("Tesla V100", (7, 0)), ("NVIDIA A100", (8, 0)), ("NVIDIA H200", (9, 0))),
    *(("Tesla P100", (6, 0)), ("Tesla K80", (3, 7))),
)


# --- devices


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        *[
            (text, "cuda:0")
            for text in ("auto", "", " AUTO ", "0", 0, "00", "cuda", "CUDA", "gpu", "cuda:0", " cuda:0")
        ],
        *[(text, "cuda:1") for text in ("1", 1, "cuda:1", torch.device("cuda:1"))],
        *[(text, "cpu") for text in ("cpu", "CPU", "cpu:0", torch.device("cpu"))],
        *[(text, "mps") for text in ("mps", "mps:0")],
    ],
)
def test_every_name(machine: Machine, wanted: Any, name: str) -> None:
    machine(T4, A100, mps=True)
    chosen = choose_device(wanted)
    assert chosen.torch_name == name and chosen.kind == name.partition(":")[0]
    assert (
        chosen.label
        == {"cuda:0": "Tesla T4", "cuda:1": "NVIDIA A100", "cpu": "CPU", "mps": "Apple GPU"}[name]
    )
    assert torch.device(chosen.torch_name).type == chosen.kind


def test_auto_says_why(machine: Machine) -> None:
    machine(T4)
    assert choose_device().reason == "chosen: the first GPU"
    machine(mps=True)
    assert (choose_device().torch_name, choose_device().reason) == ("mps", "chosen: the first GPU")
    machine()
    assert (choose_device().torch_name, choose_device().reason) == (
        "cpu",
        "chosen: there is no GPU that torch can use",
    )
    assert choose_device("cpu").reason == "as asked"


@pytest.mark.parametrize("wanted", ["cuda:2", "2", 7, "cuda:99999999999999999999", "mps", "cpu:1"])
def test_a_device_that_is_not_here_is_refused_with_those_that_are(machine: Machine, wanted: Any) -> None:
    machine(T4, A100)
    with pytest.raises(DeviceError) as caught:
        choose_device(wanted)
    assert str(caught.value) == (
        f"device {wanted!r}: not on this machine, which has cpu (CPU), cuda:0 (Tesla T4), cuda:1 (NVIDIA A100)."
    )


@pytest.mark.parametrize(
    "wanted", ["cuda:x", "cuda0", "-1", -1, "tpu", "cuda:", "none", True, "cuda:-1", "1.0", "²"]
)
def test_a_name_of_no_device_is_a_usage_error_with_those_that_are(machine: Machine, wanted: Any) -> None:
    machine(T4)
    with pytest.raises(
        UsageError, match=r"not a device. This machine has cpu \(CPU\), cuda:0 \(Tesla T4\)$"
    ) as caught:
        choose_device(wanted)
    assert repr(wanted) in str(caught.value)


@pytest.mark.parametrize("wanted", ["0,1", "cuda:0,cuda:1", "cpu,0"])
def test_several_devices_are_refused(machine: Machine, wanted: str) -> None:
    machine(T4, A100)
    with pytest.raises(UsageError, match=r"runs on one device; name one of cpu \(CPU\), cuda:0"):
        choose_device(wanted)


def test_training_takes_several_devices_of_one_kind(machine: Machine) -> None:
    machine(T4, A100)
    assert [d.torch_name for d in choose_devices("0,1")] == ["cuda:0", "cuda:1"]
    assert [d.torch_name for d in choose_devices("auto")] == ["cuda:0"]
    assert [d.torch_name for d in choose_devices("cpu,cpu")] == ["cpu", "cpu"]
    for wanted, why in (("0,cpu", "of one kind"), ("0,0", "cuda:0 is named twice"), ("0,2", "not on this")):
        with pytest.raises(KitError, match=why):
            choose_devices(wanted)


@pytest.mark.parametrize(
    ("version", "why"), [(None, "built without CUDA"), ("13.0", "CUDA_VISIBLE_DEVICES hides it")]
)
def test_without_a_gpu_the_reason_is_told(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, version: str | None, why: str
) -> None:
    machine()
    monkeypatch.setattr(torch.version, "cuda", version)
    with pytest.raises(DeviceError, match=why) as caught:
        choose_device("0")
    assert "cpu (CPU)" in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_a_card_whose_driver_torch_cannot_use_is_no_device(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVML counts it, CUDA does not start: asking for its name would raise from inside torch."""
    machine()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert [device.torch_name for device in available_devices()] == ["cpu"]
    assert choose_device("auto").torch_name == "cpu"


def test_this_machine_has_a_processor() -> None:
    assert available_devices()[0].torch_name == "cpu" == choose_device("cpu").torch_name


# --- precisions


@pytest.mark.parametrize(
    ("gpu", "auto", "native", "emulated", "refused"),
    [
        (H200, "bf16", {"fp32", "tf32", "fp16", "bf16"}, set(), set()),
        (A100, "bf16", {"fp32", "tf32", "fp16", "bf16"}, set(), set()),
        (T4, "fp16", {"fp32", "fp16"}, {"bf16"}, {"tf32"}),
        (V100, "fp16", {"fp32", "fp16"}, {"bf16"}, {"tf32"}),
        (P100, "fp32", {"fp32", "fp16"}, {"bf16"}, {"tf32"}),
        (K80, "fp32", {"fp32"}, {"bf16", "fp16"}, {"tf32"}),
    ],
)
def test_gpus_by_generation(
    machine: Machine, gpu: Any, auto: str, native: set[str], emulated: set[str], refused: set[str]
) -> None:
    machine(gpu)
    device = choose_device("cuda")
    chosen = choose_precision("auto", device)
    assert chosen.name == auto and chosen.native and "chosen" in chosen.reason and gpu[0] in chosen.reason
    for name in native | emulated:
        precision = choose_precision(name, device)
        assert precision.name == name and precision.native is (name in native)
        assert precision.label == name if name in native else precision.label.startswith(f"{name} (emulated")
    for name in refused:
        with pytest.raises(
            DeviceError, match=rf"precision {name}: needs compute capability 8.0, {gpu[0]} has"
        ):
            choose_precision(name, device)
    assert native | emulated | refused | {"auto"} == set(PRECISIONS)


def test_the_second_gpu_is_asked_about_itself(machine: Machine) -> None:
    machine(H200, T4)
    assert choose_precision("auto", choose_device("1")).name == "fp16"


@pytest.mark.parametrize(
    ("features", "native"),
    [
        ({}, set()),
        ({"avx512_bf16": True, "avx512_fp16": False}, {"bf16"}),
        ({"amx_bf16": True}, {"bf16"}),
        ({"avx512_fp16": True}, {"fp16"}),
        ({"bf16": True, "fp16": True}, {"bf16", "fp16"}),
    ],
)
def test_processors_by_their_instructions(
    monkeypatch: pytest.MonkeyPatch, features: dict[str, bool], native: set[str]
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: features)
    for name in ("fp16", "bf16"):
        precision = choose_precision(name, CPU)
        assert precision.native is (name in native)
        assert ("emulated" in precision.label) is (name not in native)
        assert ("emulates" in precision.reason) is (name not in native)
    assert choose_precision("auto", CPU).name == "fp32"


@pytest.mark.parametrize(("device", "shown"), [(CPU, "cpu"), (MPS, "mps")])
def test_tf32_is_refused_where_there_are_no_tensor_cores(device: Device, shown: str) -> None:
    with pytest.raises(
        DeviceError, match=f"precision tf32: a mode of NVIDIA tensor cores, the device is {shown}. Take fp32"
    ):
        choose_precision("tf32", device)


def test_apple_gpus() -> None:
    assert choose_precision("auto", MPS).name == "fp32"
    assert choose_precision("fp16", MPS).dtype == torch.float16
    with pytest.raises(DeviceError, match="precision bf16: not offered on Apple GPUs"):
        choose_precision("bf16", MPS)


@pytest.mark.parametrize("wanted", ["int8", "", "half", "fp64", "float32"])
@pytest.mark.parametrize("device", [CPU, GPU, MPS])
def test_an_unknown_precision_is_refused_with_those_there_are(wanted: str, device: Device) -> None:
    with pytest.raises(UsageError, match="choose one of auto, fp32, tf32, fp16, bf16"):
        choose_precision(wanted, device)


@pytest.mark.parametrize("wanted", ["FP32", " fp32 "])
def test_spelling_of_a_precision_is_forgiven(wanted: str) -> None:
    assert choose_precision(wanted, CPU) == choose_precision("fp32", CPU)


def test_every_precision_has_the_type_it_is_called_after(machine: Machine) -> None:
    machine(H200)
    types = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    for name, dtype in types.items():
        assert choose_precision(name, GPU).dtype == dtype
    for name in ("fp32", "fp16", "bf16"):
        assert choose_precision(name, CPU).dtype == types[name]


# --- TF32

everything: Any = torch.backends
cudnn: Any = torch.backends.cudnn


def read(what: Callable[[], Any]) -> Any:
    """A switch. Torch refuses to read an older one that the newer ones contradict."""
    try:
        return what()
    except RuntimeError:
        return "contradicted"


def switches() -> list[Any]:
    """All that torch says about TF32."""
    return [
        read(lambda: cudnn.allow_tf32),
        read(lambda: torch.backends.cuda.matmul.allow_tf32),
        read(torch.get_float32_matmul_precision),
        cudnn.enabled,
        everything.fp32_precision,
        cudnn.fp32_precision,
        cudnn.conv.fp32_precision,
        cudnn.rnn.fp32_precision,
        torch.backends.cuda.matmul.fp32_precision,
        everything.mkldnn.matmul.fp32_precision,
    ]


def switches_and_what_they_follow() -> list[Any]:
    """The same, and again after the switches above were changed: one that follows them is told from one that does not.

    Leaves them changed.
    """
    found = [switches()]
    for mode in ("ieee", "tf32"):
        everything.fp32_precision = mode
        found.append(switches())
    for mode in ("ieee", "tf32", "none"):
        cudnn.fp32_precision = mode
        found.append(switches())
    return found


def reset() -> None:
    """As torch has the switches at its start."""
    everything.fp32_precision = cudnn.fp32_precision = "none"
    torch.set_float32_matmul_precision("highest")
    cudnn.allow_tf32 = cudnn.enabled = True
    torch.backends.cuda.matmul.fp32_precision = everything.mkldnn.matmul.fp32_precision = "none"


@pytest.fixture(autouse=True)
def _fresh_switches() -> Iterator[None]:
    reset()
    yield
    reset()


def set_(owner: Any, name: str, value: object) -> Callable[[], None]:
    def do() -> None:
        owner.__setattr__(name, value)

    return do


CHOICES: dict[str, Callable[[], None]] = {
    "allow_tf32 off": set_(cudnn, "allow_tf32", False),
    "allow_tf32 on": set_(cudnn, "allow_tf32", True),
    "matmul.allow_tf32 on": set_(torch.backends.cuda.matmul, "allow_tf32", True),
    "matmul high": lambda: torch.set_float32_matmul_precision("high"),
    "matmul medium": lambda: torch.set_float32_matmul_precision("medium"),
    "conv ieee": set_(cudnn.conv, "fp32_precision", "ieee"),
    "conv tf32": set_(cudnn.conv, "fp32_precision", "tf32"),
    "conv follows": set_(cudnn.conv, "fp32_precision", "none"),
    "rnn ieee": set_(cudnn.rnn, "fp32_precision", "ieee"),
    "matmul ieee": set_(torch.backends.cuda.matmul, "fp32_precision", "ieee"),
    "CUDA tf32": set_(cudnn, "fp32_precision", "tf32"),
    "CUDA ieee": set_(cudnn, "fp32_precision", "ieee"),
    "everything tf32": set_(everything, "fp32_precision", "tf32"),
    "everything ieee": set_(everything, "fp32_precision", "ieee"),
    "no cuDNN": set_(cudnn, "enabled", False),
}


@pytest.mark.parametrize("precision", [FP32, TF32], ids=lambda p: p.name)
@pytest.mark.parametrize(
    "choices", [*((c,) for c in CHOICES), *itertools.permutations(CHOICES, 2), ()], ids=" + ".join
)
def test_switches_hold_during_the_call_and_are_restored(
    precision: Precision, choices: tuple[str, ...]
) -> None:
    for choice in choices:
        CHOICES[choice]()
    untouched = switches_and_what_they_follow()
    reset()
    for choice in choices:
        CHOICES[choice]()
    mode = {"fp32": "ieee", "tf32": "tf32"}[precision.name]
    with float32_math(precision, GPU):
        assert cudnn.conv.fp32_precision == mode
        assert cudnn.allow_tf32 is (precision is TF32), "readable, for whoever reads it in another thread"
        if "no cuDNN" in choices:
            assert torch.backends.cuda.matmul.fp32_precision == mode
    assert switches_and_what_they_follow() == untouched


@pytest.mark.parametrize("choice", CHOICES)
def test_switches_are_restored_after_an_exception(choice: str) -> None:
    CHOICES[choice]()
    before = switches()
    with pytest.raises(ZeroDivisionError), float32_math(FP32, GPU):
        _ = 1 / 0
    assert switches() == before
    with pytest.raises(KeyboardInterrupt), float32_math(TF32, GPU):
        raise KeyboardInterrupt
    assert switches() == before


@pytest.mark.parametrize(
    ("precision", "device"),
    [
        (FP32, CPU),
        (FP32, MPS),
        (Precision("fp16", torch.float16, True, ""), GPU),
        (Precision("bf16", torch.bfloat16, False, ""), GPU),
    ],
)
def test_other_work_touches_no_switch(precision: Precision, device: Device) -> None:
    before = switches()
    with float32_math(precision, device):
        assert switches() == before
    assert switches() == before


def test_calls_may_lie_inside_each_other() -> None:
    before = switches()
    with float32_math(FP32, GPU):
        with float32_math(TF32, GPU):
            assert cudnn.conv.fp32_precision == "tf32"
        assert cudnn.conv.fp32_precision == "ieee"
    assert switches() == before


def test_two_threads_of_different_precision_do_not_change_each_other() -> None:
    before = switches()
    inside, changed, seen = threading.Event(), threading.Event(), []

    def exact() -> None:
        with float32_math(FP32, GPU):
            inside.set()
            changed.wait(0.3)  # nobody can: the other waits outside
            seen.append((cudnn.conv.fp32_precision, changed.is_set()))

    def fast() -> None:
        inside.wait()
        with float32_math(TF32, GPU):
            changed.set()
            seen.append((cudnn.conv.fp32_precision, changed.is_set()))

    threads = [threading.Thread(target=work) for work in (exact, fast)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [("ieee", False), ("tf32", True)]
    assert switches() == before


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize(
    "choices", [(), ("matmul high",), ("everything tf32", "conv follows"), ("matmul high", "no cuDNN")]
)
def test_fp32_on_a_gpu_is_exact_whatever_the_user_set(choices: tuple[str, ...]) -> None:
    for choice in choices:
        CHOICES[choice]()
    layer = torch.nn.Conv2d(128, 128, 3).cuda()
    images = torch.randn(2, 128, 32, 32, device="cuda")
    with torch.inference_mode():
        exact = torch.nn.functional.conv2d(images.double(), layer.weight.double(), layer.bias.double())  # type: ignore[union-attr]
        with float32_math(FP32, choose_device("cuda")):
            error = (layer(images).double() - exact).abs().max().item()
    assert error < 2e-5  # TF32 is off by some 1e-3


def test_every_refusal_is_one_a_user_can_read(machine: Machine) -> None:
    machine(T4)
    for refused in (
        lambda: choose_device("7"),
        lambda: choose_device("x"),
        lambda: choose_precision("tf32", choose_device("0")),
    ):
        with pytest.raises(KitError) as caught:
            refused()
        assert len(str(caught.value).splitlines()) == 1


def test_copies_in_main_memory_are_equal_contiguous_and_independent() -> None:
    plain = torch.arange(6.0).reshape(2, 3)
    tensors = {
        "turned": plain.t(),
        "channels_last": torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
        "count": torch.tensor(7),
        "nothing": torch.zeros(0, 4),
        "weight": torch.nn.Parameter(plain.clone()),
        "half": plain.half(),
    }
    copies = to_host(tensors)
    assert list(copies) == list(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(copies[name], tensor) and copies[name].dtype == tensor.dtype
        assert copies[name].is_contiguous() and not copies[name].requires_grad
    copies["weight"].zero_()
    assert torch.equal(tensors["weight"].detach(), plain)
    assert torch.equal(copies["turned"], plain.t())


def test_many_and_large_tensors_come_to_main_memory_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yolov9kit.device._CHUNK", 10)
    tensors = {str(i): torch.arange(float(i)) for i in (3, 25, 0, 7, 4, 1)}
    copies = to_host(tensors)
    assert all(torch.equal(copies[name], tensor) for name, tensor in tensors.items())
