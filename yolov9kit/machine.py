"""What this machine offers and what it lacks, as a report of facts, each with advice where there is some.

Nothing is changed, compiled or decoded. A probe that fails becomes a fact with the reason; nothing raises.
"""

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import sys
import sysconfig
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from yolov9kit.cache import cache_folder

GIB = 2**30
OLDEST_PYTHON = (3, 11)
SMALLEST_DISK_GIB = 1.0  # a run folder and two checkpoints of size e
SMALLEST_SHM_GIB = 1.0  # what a few loader workers hand over at a time
NATIVE_BF16 = (8, 0)  # compute capability: Ampere
OPENCV_LIBRARIES = ("libxcb.so", "libGL.so", "libgthread-2.0.so", "libglib-2.0.so")
OPENCV_PACKAGES = "libxcb1 libgl1 libglib2.0-0"  # Debian's and Ubuntu's names for them


@dataclass(frozen=True)
class Fact:
    """One thing found out. ``ok``: True, fine; None, the kit works without it; False, the kit cannot work."""

    name: str
    value: str
    ok: bool | None = True
    advice: str = ""


@dataclass(frozen=True)
class MachineReport:
    """All facts, in the order of the table that ``str`` gives."""

    facts: tuple[Fact, ...]

    @property
    def exit_code(self) -> int:
        """0 when everything needed to work is there, else 1."""
        return int(bool(self.missing))

    @property
    def missing(self) -> tuple[Fact, ...]:
        """The facts that keep the kit from working."""
        return tuple(fact for fact in self.facts if fact.ok is False)

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {"exit_code": self.exit_code, "facts": [asdict(fact) for fact in self.facts]}

    def __str__(self) -> str:
        width = max((len(fact.name) for fact in self.facts), default=0)
        marks = {True: "ok", None: "--", False: "!!"}
        indent, lines = " " * (width + 6), []
        for fact in self.facts:
            lines.append(f"{marks[fact.ok]}  {fact.name:<{width}}  {fact.value}")
            lines += [indent + line for line in textwrap.wrap(fact.advice, 84, break_on_hyphens=False)]
        missing = ", ".join(fact.name for fact in self.missing)
        lines += ["", f"Not ready, see: {missing}" if missing else "Ready to work."]
        return "\n".join(lines)


def inspect_machine() -> MachineReport:
    """Look at this machine and say what was found. Takes the time of importing torch; never raises."""
    return MachineReport(tuple(fact for name, probe in _PROBES for fact in _guarded(name, probe)))


def _guarded(name: str, probe: Callable[[], Fact | Sequence[Fact]]) -> Sequence[Fact]:
    try:
        found = probe()
    except Exception as error:  # whatever breaks in a driver or a broken install, the other facts still count
        return (Fact(name, f"could not be found out: {_one_line(error)}", None),)
    return (found,) if isinstance(found, Fact) else found


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()) or "no reason given"
    return f"{type(error).__name__}: {text[:200]}"


# --- the system ---------------------------------------------------------------------------------------------


def python_version() -> Fact:
    """The interpreter, and whether it is new enough."""
    old = sys.version_info < OLDEST_PYTHON
    advice = f"Install Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer." if old else ""
    return Fact("python", platform.python_version(), not old, advice)


def _system() -> Fact:
    return Fact("system", platform.platform())


def _cpu_cores() -> Fact:
    import psutil

    return Fact("cpu cores", f"{usable_cores():g} usable of {psutil.cpu_count() or 1}")


def usable_cores() -> float:
    """Processor cores that this process may use: those it is bound to, and what a container grants of them."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux can tell
        allowed = os.cpu_count() or 1
    quota = cpu_quota(_read("/sys/fs/cgroup/cpu.max"))
    return float(allowed if quota is None else min(allowed, quota))


def cpu_quota(cpu_max: str) -> float | None:
    """Cores granted by a container, from the text of cgroup's ``cpu.max``; None where there is no limit."""
    match = re.match(r"(\d+) (\d+)", cpu_max)
    return int(match[1]) / int(match[2]) if match else None


def _cpu_half_precision() -> Fact:
    text = _read("/proc/cpuinfo")
    if not text:
        return Fact("cpu half precision", "this system does not tell", None)
    formats = cpu_formats(text)
    if not formats:
        advice = "Keep float32 on the CPU: anything less is emulated."
        return Fact("cpu half precision", "none native", None, advice)
    return Fact("cpu half precision", "native: " + ", ".join(formats))


def cpu_formats(cpuinfo: str) -> list[str]:
    """Instruction sets for bf16 and fp16 arithmetic named in the text of ``/proc/cpuinfo``."""
    flags = set()
    for line in cpuinfo.splitlines():
        key, _, words = line.partition(":")
        if key.strip() in ("flags", "Features"):  # x86 and ARM
            flags.update(words.split())
    known = ("avx512_bf16", "amx_bf16", "avx512_fp16", "amx_fp16", "bf16", "asimdhp")
    return [name for name in known if name in flags]


def _memory() -> Fact:
    import psutil

    memory = psutil.virtual_memory()
    limit = _read("/sys/fs/cgroup/memory.max").strip()
    total = min(memory.total, int(limit)) if limit.isdigit() else memory.total
    return Fact("memory", f"{total / GIB:.1f} GiB, {min(memory.available, total) / GIB:.1f} GiB free")


def _shared_memory() -> Fact:
    folder = Path("/dev/shm")
    if not folder.is_dir():
        return Fact("shared memory", "none on this system", None)
    return shared_memory(shutil.disk_usage(folder).total)


def shared_memory(size: int) -> Fact:
    """Whether ``size`` bytes of ``/dev/shm`` do for loader workers, which hand their batches over there."""
    enough = size >= SMALLEST_SHM_GIB * GIB
    advice = "Loader workers may die of it: start the container with --shm-size=8g, or train with workers=0."
    return Fact("shared memory", f"{size / GIB:.2f} GiB", enough or None, "" if enough else advice)


def _disk() -> Sequence[Fact]:
    return disk_space("disk, here", Path.cwd()), disk_space("disk, cache", cache_folder())


def disk_space(name: str, folder: Path) -> Fact:
    """Free space where ``folder`` is or would be made."""
    present = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    free = shutil.disk_usage(present).free / GIB
    value = f"{free:.1f} GiB free in {folder}"
    if free < SMALLEST_DISK_GIB:
        return Fact(name, value, False, f"Free at least {SMALLEST_DISK_GIB:g} GiB: runs and weights need it.")
    if not os.access(present, os.W_OK):
        return Fact(name, value, None, f"{present} cannot be written to: results need another folder.")
    return Fact(name, value)


def _read(path: str) -> str:
    """The text of a file of the system, empty where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


# --- PyTorch and the GPU ------------------------------------------------------------------------------------


def _torch() -> Fact:
    try:
        import torch
    except Exception as error:  # a broken build raises OSError or worse
        advice = "Install it again: pip install --force-reinstall torch torchvision"
        return Fact("torch", f"cannot be imported: {_one_line(error)}", False, advice)
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    return Fact("torch", f"{torch.__version__} (built for {build})")


def _torchvision() -> Fact:
    advice = "Install the pair again: pip install --force-reinstall torch torchvision"
    try:
        import torch
        import torchvision

        _ = torch.ops.torchvision.nms  # absent when its compiled half was built for another torch
    except Exception as error:
        return Fact("torchvision", f"does not work with this torch: {_one_line(error)}", None, advice)
    return Fact("torchvision", f"{torchvision.__version__}, fits this torch")


def _gpu_driver() -> Fact:
    try:
        import pynvml
    except ImportError:
        return Fact("gpu driver", "cannot be asked", None, "pip install nvidia-ml-py")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return Fact("gpu driver", "no NVIDIA driver: everything runs on the CPU", None)
    except pynvml.NVMLError as error:
        return Fact(
            "gpu driver", f"does not answer: {error}", None, "Look at nvidia-smi; a restart may help."
        )
    try:
        version, count = pynvml.nvmlSystemGetDriverVersion(), pynvml.nvmlDeviceGetCount()
    finally:
        pynvml.nvmlShutdown()
    return gpu_driver(str(version), int(count), _cuda_device_count())


def gpu_driver(version: str, present: int, usable: int) -> Fact:
    """The driver, and why torch sees fewer GPUs than it has, if so."""
    value = f"{version}, GPUs: {present} present, {usable} usable by torch"
    if usable:
        return Fact("gpu driver", value)
    advice = "torch was built for the CPU or for a newer driver, or CUDA_VISIBLE_DEVICES hides the GPU."
    return Fact("gpu driver", value, None, advice)


def _cuda_device_count() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def _gpus() -> Sequence[Fact]:
    import torch

    if not _cuda_device_count():
        return (Fact("gpu", "none", None, "Detection works on the CPU; training is slow there."),)
    facts = []
    for index in range(_cuda_device_count()):
        gpu = torch.cuda.get_device_properties(index)
        size, capability = f"{gpu.total_memory / GIB:.1f} GiB", f"compute capability {gpu.major}.{gpu.minor}"
        facts.append(Fact(f"gpu {index}", f"{gpu.name}, {size}, {capability}, GPU-{gpu.uuid}"))
    return facts


def _gpu_bf16() -> Fact:
    import torch

    return gpu_bf16([torch.cuda.get_device_capability(index) for index in range(_cuda_device_count())])


def gpu_bf16(capabilities: Sequence[tuple[int, int]]) -> Fact:
    """bf16 by hardware generation: torch's own answer counts emulation in."""
    if not capabilities:
        return Fact("gpu bf16", "no GPU", None)
    old = [f"gpu {index}" for index, capability in enumerate(capabilities) if capability < NATIVE_BF16]
    if not old:
        return Fact("gpu bf16", "native")
    advice = "Use float32 or fp16 there: bf16 would be emulated and slower."
    return Fact("gpu bf16", f"not native on {', '.join(old)} (compute capability below 8.0)", None, advice)


def _torch_compile() -> Fact:
    header = Path(sysconfig.get_path("include")) / "Python.h"
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX") or "g++", "clang++"))), None)
    triton = importlib.util.find_spec("triton") is not None
    return torch_compile(compiler, header.is_file(), triton, _cuda_device_count() > 0)


def torch_compile(compiler: str | None, header: bool, triton: bool, gpu: bool) -> Fact:
    """Whether ``torch.compile`` finds what it builds with: a C++ compiler, Python.h, and triton for a GPU."""
    wanted = [] if compiler else ["a C++ compiler (apt-get install g++)"]
    wanted += [] if header else ["Python.h (apt-get install python3-dev)"]
    wanted += [] if triton or not gpu else ["triton (pip install triton)"]
    if wanted:
        advice = f"It needs {' and '.join(wanted)}. Everything else works without."
        return Fact("torch.compile", "not usable", None, advice)
    return Fact("torch.compile", f"usable on {'GPU and CPU' if gpu else 'CPU'}, with {compiler}")


def _gpu_jpeg() -> Fact:
    if not _cuda_device_count():
        return Fact("gpu jpeg decoding", "no GPU: pictures are decoded on the CPU", None)
    libraries = (("torchcodec", "libtorchcodec_image*.so"), ("torchvision", "image*.so"))
    found = [
        f"{package} {_version(package)}" for package, pattern in libraries if has_nvjpeg(package, pattern)
    ]
    if not found:
        return Fact("gpu jpeg decoding", "none: the CPU decodes", None, "pip install 'torchcodec>=0.16'")
    return Fact("gpu jpeg decoding", " and ".join(found))


def has_nvjpeg(package: str, pattern: str) -> bool:
    """Whether a library of the package was linked with nvJPEG, told without loading or decoding anything."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return False
    return any(b"nvjpegCreate" in library.read_bytes() for library in Path(spec.origin).parent.glob(pattern))


# --- the Python packages ------------------------------------------------------------------------------------


def opencv() -> Fact:
    """OpenCV, or in words what keeps it from loading."""
    try:
        import cv2
    except Exception as error:
        return Fact("opencv", f"cannot be imported: {_one_line(error)}", False, opencv_advice(str(error)))
    if _version("opencv-python") and _version("opencv-python-headless"):
        advice = "They overwrite each other: pip uninstall both, then install the one you want."
        return Fact("opencv", "both opencv-python and opencv-python-headless", None, advice)
    return Fact("opencv", cv2.__version__)


def opencv_advice(message: str) -> str:
    """What to install, from the text of the error that ``import cv2`` raised."""
    library = re.search(r"lib[\w+.-]+\.so[.\d]*", message)
    if not library:
        return "pip install --force-reinstall opencv-python"
    if not library[0].startswith(OPENCV_LIBRARIES):
        return f"The system library {library[0]} is missing: install the package that has it."
    # The loader names the first missing library only, so all three packages are named.
    return (
        f"The system library {library[0]} is missing. On Debian and Ubuntu: "
        f"apt-get install -y --no-install-recommends {OPENCV_PACKAGES}. Or, on a server without a screen: "
        "pip uninstall opencv-python, then pip install opencv-python-headless."
    )


def _notebook_packages() -> Sequence[Fact]:
    facts = []
    for name in ("jupyterlab", "ipywidgets", "anywidget", "ipykernel"):
        version = _version(name)
        missing = Fact(name, "not installed", None, f"The notebooks need it: pip install {name}")
        facts.append(Fact(name, version) if version else missing)
    return facts


def _version(distribution: str) -> str:
    """The installed version, empty where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


_PROBES: tuple[tuple[str, Callable[[], Fact | Sequence[Fact]]], ...] = (
    ("python", python_version),
    ("system", _system),
    ("cpu cores", _cpu_cores),
    ("cpu half precision", _cpu_half_precision),
    ("memory", _memory),
    ("shared memory", _shared_memory),
    ("disk", _disk),
    ("torch", _torch),
    ("torchvision", _torchvision),
    ("gpu driver", _gpu_driver),
    ("gpu", _gpus),
    ("gpu bf16", _gpu_bf16),
    ("torch.compile", _torch_compile),
    ("gpu jpeg decoding", _gpu_jpeg),
    ("opencv", opencv),
    ("jupyter", _notebook_packages),
)
