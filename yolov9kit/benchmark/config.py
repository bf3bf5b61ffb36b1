"""The settings of a benchmark. Command line, panel and JSON read them from here."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from yolov9kit.infer.config import multiples_of_32, setting_error

Size = Annotated[int, Field(ge=32, le=4096)]
Batch = Annotated[int, Field(ge=1, le=4096)]

LEAST_RUNS = 3
"""Timed runs that a cap in seconds leaves: of fewer no spread could be told."""


class BenchmarkConfig(BaseModel):
    """What is timed, and how often. Frozen: to change settings, make another with ``changed``.

    Every combination of sizes, batches, precisions and modes is a row.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    image_sizes: tuple[Size, ...] = Field(
        default=(640,), min_length=1, description="sides of the square input, pixels"
    )
    batch_sizes: tuple[Batch, ...] = Field(
        default=(1,), min_length=1, description="pictures that go through the network together"
    )
    precisions: tuple[str, ...] = Field(
        default=("fp32",), min_length=1, description="fp32, tf32, fp16, bf16 or auto"
    )
    modes: tuple[str, ...] = Field(
        default=("auto",), min_length=1, description="eager, graph, compiled, onnx or auto"
    )
    device: str = Field(default="auto", description="auto, cpu, 0, cuda:1, mps")
    warm_up: int = Field(
        default=100,
        ge=0,
        le=1_000_000,
        description="runs before the timed ones; the very first is not among them",
    )
    runs: int = Field(default=500, ge=LEAST_RUNS, le=1_000_000, description="timed runs of the network")
    seconds: float | None = Field(
        default=None,
        gt=0,
        le=86_400,
        description="longest that runs of one row may take, warm-up and pictures end to end included; getting ready "
        "and scoring come on top. None: no limit",
    )
    source: str | None = Field(
        default=None,
        min_length=1,
        description="pictures for the times end to end and the difference to fp32: a file, folder or video. None: "
        "those of data, and without data the sample boards",
    )
    pictures: int = Field(
        default=32, ge=1, le=100_000, description="pictures of the source that are used, the first ones"
    )
    timed_pictures: int = Field(
        default=128,
        ge=1,
        le=1_000_000,
        description="pictures timed end to end in each row, the same ones again where there are fewer; at least all "
        "pictures once, in whole batches",
    )
    data: str | None = Field(
        default=None, min_length=1, description="data.yaml to score on, at each size in each precision"
    )
    split: str = Field(default="val", min_length=1, description="split of the data set")
    profile: bool = Field(default=False, description="tell time by kind of operation")
    profile_runs: int = Field(default=50, ge=1, le=10_000, description="calls that are profiled")
    floor: bool = Field(
        default=True, description="measure what the device can do at most, and each row's share of it"
    )

    @field_validator("image_sizes", "batch_sizes", "precisions", "modes", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, int | str) else value

    @field_validator("image_sizes")
    @classmethod
    def _fits_the_strides(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return multiples_of_32(sizes)

    @field_validator("image_sizes", "batch_sizes", "precisions", "modes")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            raise ValueError(f"{twice} stands there twice: name each once")
        return values

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise setting_error(error, BenchmarkConfig) from None

    def changed(self, **settings: Any) -> "BenchmarkConfig":
        """Another config with these settings, checked.

        Raises:
            UsageError: an unknown name or a value out of range, in one line.
        """
        return BenchmarkConfig(**{**self.model_dump(), **settings})
