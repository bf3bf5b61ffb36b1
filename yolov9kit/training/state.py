"""Everything that an exact resumption needs, in one file of tensors: written whole or not at all.

Random numbers have no state of their own: each follows from the seed, the epoch and the position in it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from yolov9kit.device import to_host
from yolov9kit.errors import CheckpointError, TrainingError
from yolov9kit.model.checkpoint import replace_file

STATE = "state.safetensors"
FORMAT = "yolov9kit run 1"


STEPS, REPORTED, EVALUATED = "steps", "reported", "evaluated"


@dataclass
class Progress:
    """How far a run is: ``epoch`` epochs are finished, and ``step_in_epoch`` steps of the next.

    ``stage`` says whether that next epoch is still in its steps, was reported, or was evaluated; ``loss_sums`` are
    over its applied steps so far.
    """

    epoch: int = 0
    step_in_epoch: int = 0
    step: int = 0
    stage: str = STEPS
    applied: int = 0
    skipped: int = 0
    loss_sums: tuple[float, ...] = (0.0,) * 4
    epoch_seconds: float = 0.0
    epoch_waited: float = 0.0
    bad_in_a_row: int = 0
    average_updates: int = 0
    scale: float = 1.0
    scale_good_steps: int = 0
    best_ap: float | None = None
    best_epoch: int | None = None
    seconds: float = 0.0
    ended: str = ""

    def begin_epoch(self, epoch: int) -> None:
        """After ``epoch`` whole epochs."""
        self.epoch, self.step_in_epoch, self.stage = epoch, 0, STEPS
        self.applied = self.skipped = 0
        self.loss_sums, self.epoch_seconds, self.epoch_waited = (0.0,) * 4, 0.0, 0.0


@dataclass(frozen=True)
class Saved:
    """A state file, read. ``facts``: what must be the same when the run goes on."""

    tensors: Mapping[str, Tensor]
    progress: Progress
    journal_bytes: int
    config: Mapping[str, Any]
    facts: Mapping[str, Any]
    groups: list[dict[str, Any]]

    def part(self, name: str) -> dict[str, Tensor]:
        """The tensors whose names begin with ``name`` and a dot, under the rest of their names."""
        start = f"{name}."
        return {key.removeprefix(start): t for key, t in self.tensors.items() if key.startswith(start)}


def write_state(
    folder: Path,
    tensors: Mapping[str, Tensor],
    progress: Progress,
    journal_bytes: int,
    config: Mapping[str, Any],
    facts: Mapping[str, Any],
    groups: list[dict[str, Any]],
) -> Path:
    """Write ``folder/state.safetensors``.

    Raises:
        CheckpointError: a value is not finite, or the disk refused; the file before it is still there.
    """
    from safetensors.torch import save

    path = folder / STATE
    on_host = to_host(tensors)
    for key, tensor in on_host.items():
        if not torch.isfinite(tensor).all():
            raise CheckpointError(f"{path}: not written, {key} has values that are not finite")
    metadata = {
        "format": FORMAT,
        "progress": json.dumps(asdict(progress)),
        "journal_bytes": str(journal_bytes),
        "config": json.dumps(config, default=str),
        "facts": json.dumps(facts),
        "groups": json.dumps(groups),
    }
    data = save(on_host, metadata)
    try:
        replace_file(path, data)
    except CheckpointError as error:
        raise CheckpointError(f"{error} The checkpoint before it is kept: make room and resume.") from None
    return path


def read_state(folder: Path) -> Saved:
    """Read ``folder/state.safetensors``.

    Raises:
        TrainingError: there is none, or it is not one of ours.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / STATE
    if not path.is_file():
        raise TrainingError(
            f"{folder}: holds no run to resume ({STATE} is missing). Name the folder of a run."
        )
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118  # it is no mapping
    except (OSError, SafetensorError) as error:
        raise TrainingError(f"{path}: cannot be read ({error})") from None
    if metadata.get("format") != FORMAT:
        raise TrainingError(f"{path}: is not the state of a run ({FORMAT} is expected)")
    progress: dict[str, Any] = json.loads(metadata["progress"])
    known = {field.name for field in fields(Progress)}
    progress["loss_sums"] = tuple(progress["loss_sums"])
    return Saved(
        tensors,
        Progress(**{key: value for key, value in progress.items() if key in known}),
        int(metadata["journal_bytes"]),
        json.loads(metadata["config"]),
        json.loads(metadata["facts"]),
        json.loads(metadata["groups"]),
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """An optimizer's state as named tensors, where they are, and its groups' plain values."""
    state = optimizer.state_dict()
    tensors = {
        f"optimizer.{index}.{name}": value
        for index, values in state["state"].items()
        for name, value in values.items()
        if isinstance(value, Tensor)
    }
    groups = [
        {k: v for k, v in group.items() if not isinstance(v, Tensor)} for group in state["param_groups"]
    ]
    return tensors, groups


def load_optimizer(optimizer: torch.optim.Optimizer, saved: Saved) -> None:
    """Put a saved state into an optimizer of the same groups.

    Raises:
        TrainingError: the groups differ.
    """
    own = optimizer.state_dict()["param_groups"]
    if [g["params"] for g in own] != [g["params"] for g in saved.groups]:
        raise TrainingError(
            "the optimizer's parameter groups are not those of the saved run: was the code changed?"
        )
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in saved.part("optimizer").items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = tensor
    groups = [group | values for group, values in zip(own, saved.groups, strict=True)]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
    for parameter, values in optimizer.state.items():
        for name, value in values.items():
            if value.shape == parameter.shape:  # in the parameter's own memory order, as in the run before
                values[name] = torch.empty_like(parameter).copy_(value)
