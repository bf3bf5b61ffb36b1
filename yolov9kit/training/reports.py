"""What a run says while it runs. Frozen values that turn into lines of the journal and back."""

import functools
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class LossValues:
    """Parts of a loss with their gains, and their sum, per picture."""

    total: float
    box: float
    cls: float
    dfl: float


@dataclass(frozen=True)
class StartReport:
    """What a run is about to do. Each choice made for the user stands with its reason.

    ``device_uuid``: of the NVIDIA GPU that trains, the first of several; None elsewhere.
    """

    folder: str
    config: Mapping[str, Any]
    size: str
    names: tuple[str, ...]
    parameters: int
    device: str
    precision: str
    optimizer: str
    mode: str
    workers: str
    cache: str
    train_data: str
    val_data: str
    batch: int
    accumulate: int
    steps_per_epoch: int
    total_steps: int
    first_step: int = 0
    average: str = ""
    augmentation: str = ""
    notes: tuple[str, ...] = ()
    device_uuid: str | None = None


@dataclass(frozen=True)
class Problem:
    """A step that was not applied: what was not finite, where it showed first, and on which pictures.

    ``tensor`` names a weight, the output of a layer, a part of the loss or the gradient of a weight.
    """

    tensor: str
    what: str
    pictures: tuple[str, ...] = ()

    def __str__(self) -> str:
        more = f" and {len(self.pictures) - 3} more" if len(self.pictures) > 3 else ""
        return f"{self.tensor}: {self.what} (pictures: {', '.join(self.pictures[:3])}{more})"


@dataclass(frozen=True)
class StepReport:
    """One update of the weights. ``step`` counts from 1 through the whole run, ``step_in_epoch`` from 1 in the epoch.

    Loss and norm are None where they were not finite; ``problem`` then says more, and the weights are as they were.
    ``waiting`` is the share of the step's time spent waiting for pictures, ``ready`` how many batches lay prepared when
    it asked for its first; None without workers, and where the system does not count them. ``memory_mib`` is the most
    that tensors have held on a GPU, elsewhere what the process holds.
    """

    epoch: int
    step: int
    step_in_epoch: int
    loss: LossValues | None
    learning_rate: float
    grad_norm: float | None
    pictures_per_s: float
    waiting: float
    memory_mib: float
    problem: Problem | None = None
    ready: int | None = None


@dataclass(frozen=True)
class EpochReport:
    """Means over an epoch's applied steps. Epochs count from 1. ``skipped``: steps that were not applied."""

    epoch: int
    steps: int
    skipped: int
    loss: LossValues | None
    learning_rate: float
    mosaic: bool
    seconds: float
    pictures_per_s: float
    waiting: float


@dataclass(frozen=True)
class EvaluationReport:
    """The averaged weights on the validation pictures, after ``epoch`` epochs.

    The loss is that of the main branch, the validation set taken as one batch: its value does not depend on how the set
    was cut into batches. ``ap`` is AP 50-95. A class without objects has None. ``settings`` says what the score means.
    """

    epoch: int
    loss: LossValues
    ap: float | None
    ap50: float | None
    ap75: float | None
    per_class: tuple[tuple[str, float | None, float | None], ...]
    pictures: int
    objects: int
    settings: str
    best: bool
    seconds: float


@dataclass(frozen=True)
class CheckpointReport:
    """Everything that an exact resumption needs is on the disk, as of ``step``; writing it took ``seconds``."""

    epoch: int
    step: int
    path: str
    seconds: float = 0.0


@dataclass(frozen=True)
class ResumedReport:
    """The run goes on after ``step``; what it had done beyond that is done again."""

    step: int
    lost_lines: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ControlReport:
    """What was asked of the run (pause, resume, checkpoint, stop), and after which step it was heard."""

    action: str
    step: int


@dataclass(frozen=True)
class EndReport:
    """Why a run ended, and its best. ``reason``: finished, no better AP for ... epochs, stopped, or what failed."""

    reason: str
    epochs: int
    best_epoch: int | None
    best_ap: float | None
    weights: str
    seconds: float


Report = (
    StartReport
    | StepReport
    | EpochReport
    | EvaluationReport
    | CheckpointReport
    | ResumedReport
    | ControlReport
    | EndReport
)

_KINDS: Mapping[str, type[Any]] = types.MappingProxyType(
    {
        "start": StartReport,
        "step": StepReport,
        "epoch": EpochReport,
        "evaluation": EvaluationReport,
        "checkpoint": CheckpointReport,
        "resumed": ResumedReport,
        "control": ControlReport,
        "end": EndReport,
    }
)
_NAMES = {kind: name for name, kind in _KINDS.items()}


def as_record(report: Report) -> dict[str, Any]:
    """Plain values for JSON, with the report's kind first."""
    return {"kind": _NAMES[type(report)], **asdict(report)}


def from_record(record: Mapping[str, Any]) -> Report:
    """The report that ``as_record`` was given.

    Raises:
        ValueError: an unknown kind, or values that are missing or too many.
    """
    kind = _KINDS.get(str(record.get("kind")))
    if kind is None:
        raise ValueError(f"{record.get('kind')!r} is no kind of report")
    values = {name: value for name, value in record.items() if name != "kind"}
    if isinstance(values.get("problem"), dict):
        values["problem"] = Problem(**values["problem"] | {"pictures": tuple(values["problem"]["pictures"])})
    if isinstance(values.get("loss"), dict):
        values["loss"] = LossValues(**values["loss"])
    for name in _tuples(_NAMES[kind]):
        if name in values:
            values[name] = _as_tuple(values[name])
    try:
        return typing.cast(Report, kind(**values))
    except TypeError as error:
        raise ValueError(str(error)) from None


@functools.cache
def _tuples(name: str) -> tuple[str, ...]:
    """The fields of a kind of report that JSON turns into lists."""
    kind = _KINDS[name]
    hints = typing.get_type_hints(kind)
    return tuple(field.name for field in fields(kind) if typing.get_origin(hints[field.name]) is tuple)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
