"""Where numbers were measured: without it they mean nothing elsewhere."""

import importlib.metadata
import platform
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import torch

from yolov9kit.device import Device
from yolov9kit.machine import usable_cores


@dataclass(frozen=True)
class Environment:
    """Device, software and moment. ``None``: there is none here, or it cannot be told."""

    date: str
    device: str
    device_name: str
    driver: str | None
    torch: str
    torchvision: str | None
    cuda: str | None
    cudnn: int | None
    onnxruntime: str | None
    python: str
    yolov9kit: str | None
    system: str
    cpu: str
    cores: float
    threads: int


def environment(device: Device, driver: str | None) -> Environment:
    """``driver``: of the NVIDIA GPU, as telemetry knows it."""
    on_gpu = device.kind == "cuda"
    return Environment(
        date=datetime.now().astimezone().isoformat(timespec="seconds"),
        device=device.torch_name,
        device_name=device.label,
        driver=driver if on_gpu else None,
        torch=str(torch.__version__),
        torchvision=_version("torchvision"),
        cuda=torch.version.cuda if on_gpu else None,
        cudnn=torch.backends.cudnn.version() if on_gpu else None,
        onnxruntime=_version("onnxruntime"),
        python=platform.python_version(),
        yolov9kit=_version("yolov9kit"),
        system=platform.platform(),
        cpu=_processor(),
        cores=usable_cores(),
        threads=torch.get_num_threads(),
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:  # Linux tells the model nowhere else
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()
