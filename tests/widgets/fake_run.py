"""A run without a process, and lines of its journal."""

from pathlib import Path
from typing import Any


class FakeRun:
    """A run whose journal a test writes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state, self.pid, self.last_words = folder, "running", None, ""


def start_line(total: int) -> dict[str, Any]:
    return {
        "kind": "start", "folder": "", "config": {"epochs": 1}, "size": "t", "names": ["a"], "parameters": 1,
        "device": "cpu (CPU)", "precision": "fp32", "optimizer": "adamw", "mode": "eager", "workers": "0",
        "cache": "none", "train_data": "", "val_data": "", "batch": 1, "accumulate": 1,
        "steps_per_epoch": total, "total_steps": total, "first_step": 0, "average": "", "notes": [],
    }  # fmt: skip


def step_line(step: int) -> dict[str, Any]:
    loss = {"total": 1 / step, "box": 0.1, "cls": 0.1, "dfl": 0.1}
    return {
        "kind": "step", "epoch": 1, "step": step, "step_in_epoch": step, "loss": loss, "learning_rate": 0.01,
        "grad_norm": 1.0, "pictures_per_s": 100.0, "waiting": 0.0, "memory_mib": 1.0, "problem": None,
    }  # fmt: skip
