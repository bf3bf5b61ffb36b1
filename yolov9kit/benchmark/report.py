"""What a benchmark says: the plan, a row for each combination, the report of all."""

from dataclasses import dataclass

from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.benchmark.difference import Difference
from yolov9kit.benchmark.environment import Environment
from yolov9kit.benchmark.floor import Floor
from yolov9kit.benchmark.profile import Profile
from yolov9kit.benchmark.timing import Spread, Timed
from yolov9kit.benchmark.usage import Memory, Usage
from yolov9kit.device import Device, Precision
from yolov9kit.infer.mode import Mode


@dataclass(frozen=True)
class Combination:
    """What a row is about. Precision and mode carry the reason for which they were taken."""

    image_size: int
    batch_size: int
    precision: Precision
    mode: Mode

    def __str__(self) -> str:
        return f"{self.image_size} px, batch {self.batch_size}, {self.precision.name}, {self.mode.name}"


@dataclass(frozen=True)
class Refused:
    """A combination that cannot be had here, for every size and batch, and why."""

    precision: str
    mode: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """What comes first: the rows that will be done, those that cannot be, and about how many ``seconds`` it takes.

    ``source``: the pictures for times end to end and the difference to fp32, ``pictures`` of them. ``seconds`` takes
    every precision and mode to be as slow as fp32 eager.
    """

    weights: str
    config: BenchmarkConfig
    device: Device
    environment: Environment
    combinations: tuple[Combination, ...]
    refused: tuple[Refused, ...]
    model: str
    source: str
    pictures: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class EndToEnd:
    """From files to detections, milliseconds a picture by stage.

    In a batch preprocess, network and NMS are a picture's even share. Stages may overlap: pictures are read ahead.
    ``pictures_per_s``: by the host's clock over all ``pictures``, which were read once before, so that the disk is not
    what is measured.
    """

    decode: Spread
    preprocess: Spread
    network: Spread
    nms: Spread
    total: Spread
    pictures: int
    pictures_per_s: float
    capped: bool


@dataclass(frozen=True)
class Accuracy:
    """AP on the data set. ``of`` says what was scored: another way to run the same network gives other last digits."""

    ap: float | None
    ap50: float | None
    ap75: float | None
    of: str


@dataclass(frozen=True)
class Row:
    """One combination. A row that could not be measured has its reason in ``error``, and None for what is missing.

    Attributes:
        ready_ms: to make the network ready: fused, on its device, exported where the mode needs that.
        network: runs of the network alone, pictures on the device already (uint8), without decoding of boxes and NMS.
        latency: single runs, each waited for by the host; None on a processor, where ``network`` is that.
        end_to_end: with everything from file to detections.
        memory, usage: while the network alone ran.
        difference: to fp32 eager on the same device.
    """

    combination: Combination
    ready_ms: float | None = None
    network: Timed | None = None
    latency: Timed | None = None
    end_to_end: EndToEnd | None = None
    memory: Memory | None = None
    usage: Usage | None = None
    difference: Difference | None = None
    accuracy: Accuracy | None = None
    floor: Floor | None = None
    profile: Profile | None = None
    error: str = ""
    notes: tuple[str, ...] = ()

    @property
    def pictures_per_s(self) -> float | None:
        """Of the network alone, by the mean."""
        if self.network is None:
            return None
        return 1000 * self.combination.batch_size / self.network.runs.mean


@dataclass(frozen=True)
class BenchmarkReport:
    """Everything. ``complete`` is False where it was stopped before all the rows of the plan were done."""

    plan: Plan
    rows: tuple[Row, ...]
    seconds: float

    @property
    def complete(self) -> bool:
        return len(self.rows) == len(self.plan.combinations)

    @property
    def failed(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.error)


Report = Plan | Row | BenchmarkReport
