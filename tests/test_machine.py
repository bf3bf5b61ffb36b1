"""The machine report: complete, printable, and unbreakable, on machines that we do not have as well."""

import json
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from yolov9kit import machine
from yolov9kit.machine import Fact, MachineReport

GIB = 2**30
BARE_SYSTEM = ["libxcb.so.1", "libGL.so.1", "libgthread-2.0.so.0"]


@pytest.fixture(scope="module")
def report() -> MachineReport:
    return machine.inspect_machine()


def fact(report: MachineReport, name: str) -> Fact:
    return next(fact for fact in report.facts if fact.name == name)


def test_a_machine_that_runs_the_tests_is_ready(report: MachineReport) -> None:
    assert report.exit_code == 0, str(report)
    assert str(report).endswith("Ready to work.")


def test_every_probe_found_something_out(report: MachineReport) -> None:
    names = [fact.name for fact in report.facts]
    assert len(names) == len(set(names)) >= 20
    assert not [fact for fact in report.facts if "could not be found out" in fact.value]
    assert all(fact.value and "\n" not in fact.value for fact in report.facts)


def test_versions_are_those_of_the_installed_packages(report: MachineReport) -> None:
    import cv2
    import torch

    assert fact(report, "python").value == ".".join(map(str, sys.version_info[:3]))
    assert torch.__version__ in fact(report, "torch").value
    assert fact(report, "opencv").value == cv2.__version__


def test_the_dictionary_survives_json(report: MachineReport) -> None:
    there_and_back = json.loads(json.dumps(report.as_dict()))
    assert there_and_back["exit_code"] == 0
    assert [Fact(**row) for row in there_and_back["facts"]] == list(report.facts)


def test_facts_and_report_are_frozen(report: MachineReport) -> None:
    with pytest.raises(FrozenInstanceError):
        report.facts[0].ok = False  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        report.facts = ()  # type: ignore[misc]


@pytest.mark.parametrize(("ok", "exit_code"), [(True, 0), (None, 0), (False, 1)])
def test_only_a_false_fact_fails(ok: bool | None, exit_code: int) -> None:
    report = MachineReport((Fact("python", "3.13"), Fact("disk", "x", ok, "Free some.")))
    assert report.exit_code == exit_code
    assert ("Not ready, see: disk" in str(report)) == (exit_code == 1)
    assert "Free some." in str(report)


def test_the_table_of_an_empty_report_prints() -> None:
    assert str(MachineReport(())).strip() == "Ready to work."


def test_a_broken_probe_becomes_a_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Fact:
        raise OSError("driver\nfell over")

    monkeypatch.setattr(machine, "_PROBES", (("gpu", broken), ("python", machine.python_version)))
    report = machine.inspect_machine()
    assert report.facts[0].value == "could not be found out: OSError: driver fell over"
    assert report.facts[0].ok is None
    assert report.facts[1].name == "python"


def test_python_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    assert machine.python_version().ok is False
    assert "3.11" in machine.python_version().advice


@pytest.mark.parametrize(("package", "ok"), [("torch", False), ("cv2", False), ("torchvision", None)])
def test_a_package_that_cannot_be_imported(
    package: str, ok: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    report = machine.inspect_machine()
    found = fact(report, "opencv" if package == "cv2" else package)
    assert found.ok is ok
    assert "pip install" in found.advice
    assert report.exit_code == (1 if ok is False else 0)


@pytest.mark.parametrize("library", BARE_SYSTEM)
def test_opencv_without_its_system_libraries(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "cv2"
    package.mkdir()
    message = f"{library}: cannot open shared object file: No such file or directory"
    (package / "__init__.py").write_text(f"raise ImportError({message!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cv2", raising=False)
    found = machine.opencv()
    assert found.ok is False
    assert library in found.value
    for word in ("apt-get install", "libxcb1", "libgl1", "libglib2.0-0", "opencv-python-headless"):
        assert word in found.advice


def test_opencv_advice_for_an_unknown_library_names_it() -> None:
    assert "libQt5Core.so.5 is missing" in machine.opencv_advice("libQt5Core.so.5: cannot open shared object")


def test_both_opencv_wheels_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_version", lambda distribution: "5.0.0.93")
    assert machine.opencv().ok is None
    assert "uninstall both" in machine.opencv().advice


def test_cpu_formats_of_x86_and_arm() -> None:
    x86 = (
        "processor\t: 0\nflags\t\t: fpu avx512_bf16 amx_bf16\n\nprocessor\t: 1\nflags\t\t: fpu avx512_bf16\n"
    )
    assert machine.cpu_formats(x86) == ["avx512_bf16", "amx_bf16"]
    assert machine.cpu_formats("Features\t: fp asimd asimdhp bf16\n") == ["bf16", "asimdhp"]
    assert machine.cpu_formats("model name\t: bf16 fan\n") == []


@pytest.mark.parametrize(
    ("text", "cores"), [("max 100000", None), ("150000 100000", 1.5), ("400000 100000\n", 4), ("", None)]
)
def test_cpu_quota(text: str, cores: float | None) -> None:
    assert machine.cpu_quota(text) == cores


def test_docker_default_shared_memory_is_advised_on() -> None:
    assert machine.shared_memory(64 * 2**20).ok is None
    assert "--shm-size" in machine.shared_memory(64 * 2**20).advice
    assert machine.shared_memory(8 * GIB) == Fact("shared memory", "8.00 GiB")


def test_a_full_disk_fails_and_a_folder_to_be_made_counts_as_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert machine.disk_space("disk", tmp_path / "not" / "yet").ok is True
    usage = type("Usage", (), {"free": GIB // 10})
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda folder: usage)
    assert machine.disk_space("disk", tmp_path).ok is False
    assert "0.1 GiB free" in machine.disk_space("disk", tmp_path).value


@pytest.mark.parametrize(
    ("capabilities", "ok"), [([(9, 0)], True), ([(8, 0), (8, 6)], True), ([(7, 5)], None), ([], None)]
)
def test_bf16_goes_by_hardware_generation(capabilities: list[tuple[int, int]], ok: bool | None) -> None:
    assert machine.gpu_bf16(capabilities).ok is ok


def test_bf16_names_the_old_gpu_of_two() -> None:
    assert "gpu 1" in machine.gpu_bf16([(9, 0), (7, 5)]).value
    assert "gpu 0" not in machine.gpu_bf16([(9, 0), (7, 5)]).value


def test_a_gpu_that_torch_cannot_use_is_told_apart_from_none() -> None:
    assert machine.gpu_driver("580.1", 2, 2) == Fact(
        "gpu driver", "580.1, GPUs: 2 present, 2 usable by torch"
    )
    assert "CUDA_VISIBLE_DEVICES" in machine.gpu_driver("580.1", 2, 0).advice


def test_torch_compile_says_what_is_lacking() -> None:
    lacking = machine.torch_compile(compiler=None, header=False, triton=False, gpu=True)
    assert lacking.ok is None
    for word in ("g++", "python3-dev", "triton"):
        assert word in lacking.advice
    assert machine.torch_compile("/usr/bin/g++", header=True, triton=False, gpu=False).ok is True
    assert machine.torch_compile("/usr/bin/g++", header=True, triton=True, gpu=True).ok is True


def test_nvjpeg_is_found_by_its_symbol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, symbol in (("with_nvjpeg", b"\0nvjpegCreateSimple\0"), ("without", b"\0jpeg_read_header\0")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        (tmp_path / name / "image.so").write_bytes(symbol)
    monkeypatch.syspath_prepend(tmp_path)
    assert machine.has_nvjpeg("with_nvjpeg", "image*.so")
    assert not machine.has_nvjpeg("without", "image*.so")
    assert not machine.has_nvjpeg("no_such_package", "*.so")
