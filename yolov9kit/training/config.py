"""Every knob of a training run, with default, range and meaning. Panel, command line and run folder read it here."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from yolov9kit.infer.config import setting_error
from yolov9kit.model.variants import VARIANTS

Share = Annotated[float, Field(ge=0, le=1)]
Gain = Annotated[float, Field(ge=0, le=1000)]


class TrainConfig(BaseModel):
    """A training run. Frozen: to change settings, make another with ``changed``, which checks them.

    Where a value says "auto" or None, the choice and its reason stand in the run's first report.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    data: Path = Field(description="data.yaml of a YOLO data set, or the folder that holds it")
    weights: Path | None = Field(default=None, description="weights file to start from; none: from scratch")
    size: str | None = Field(
        default=None, description="t, s, m, c or e; none: that of the weights, or s from scratch"
    )
    epochs: int = Field(default=100, ge=1, le=100_000, description="times that every picture is seen")
    batch: int = Field(default=16, ge=1, le=4096, description="pictures that go through the network together")
    val_batch: int | None = Field(
        default=None, ge=1, le=4096, description="the same in validation; none: as batch"
    )
    image_size: int = Field(default=640, ge=32, le=4096, description="side of the square input, pixels")
    device: str = Field(
        default="auto", description="auto, cpu, 0, cuda:1; 0,1 for several GPUs, which share each batch"
    )
    precision: str = Field(
        default="auto", description="auto, fp32, tf32, fp16 or bf16; auto takes the fastest the hardware has"
    )
    mode: str = Field(
        default="auto",
        pattern="^(auto|eager|graph)$",
        description="graph records a step on a GPU and replays it; auto, eager or graph",
    )
    workers: int | None = Field(
        default=None, ge=0, le=256, description="processes that prepare pictures; none: chosen by measuring"
    )
    cache: str = Field(
        default="auto",
        pattern="^(auto|none|ram)$",
        description="ram keeps decoded pictures in memory; auto does so where they take a quarter of it at most",
    )
    seed: int = Field(default=0, ge=0, lt=2**63, description="everything random in a run follows from it")
    deterministic: bool = Field(
        default=False, description="same seed, same numbers, to the last bit on a processor; slower on a GPU"
    )

    optimizer: str = Field(
        default="auto",
        pattern="^(auto|sgd|adamw|adam)$",
        description="auto, sgd (the paper's recipe), adamw or adam; auto takes adamw for runs under 10,000 steps",
    )
    lr0: float | None = Field(
        default=None, gt=0, description="learning rate after warm-up; none: by optimizer"
    )
    lrf: float = Field(default=0.01, ge=0, le=1, description="last learning rate, as a share of the first")
    momentum: float | None = Field(
        default=None, ge=0, lt=1, description="momentum, or the first beta of adam; none: by optimizer"
    )
    weight_decay: float = Field(
        default=5e-4, ge=0, le=1, description="for a step of nominal_batch pictures; not on norms and biases"
    )
    nominal_batch: int = Field(
        default=64, ge=1, description="pictures a step that weight decay and accumulation are stated for"
    )
    accumulate: int | None = Field(
        default=None,
        ge=1,
        le=4096,
        description="batches a step; none: up to nominal_batch with sgd, else 1. The gradient equals that of one "
        "large batch, at the price of one more forward pass of each batch",
    )
    schedule: str = Field(
        default="linear",
        pattern="^(linear|cosine)$",
        description="fall of the learning rate: linear or cosine",
    )
    warmup_epochs: float = Field(
        default=3.0, ge=0, description="rise at the start, at least 100 steps, at most a quarter of the run"
    )
    warmup_momentum: float = Field(default=0.8, ge=0, lt=1, description="momentum at the start of warm-up")
    warmup_bias_lr: float | None = Field(
        default=None,
        ge=0,
        description="learning rate of biases at the start of warm-up; none: 0.1 with sgd, else 0",
    )
    clip_norm: float = Field(default=10.0, ge=0, description="largest norm of a gradient; 0: not held")
    ema_decay: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="decay of the weights' moving average; none: over a twentieth of the run, at most the paper's "
        "0.9999; 0: no average is kept",
    )
    ema_ramp: float | None = Field(
        default=None,
        gt=0,
        description="steps in which the decay rises; none: a twentieth of the run, at most the paper's 2,000",
    )
    box_gain: Gain = Field(default=7.5, description="weight of the box part of the loss")
    cls_gain: Gain = Field(default=0.5, description="weight of the class part of the loss")
    dfl_gain: Gain = Field(default=1.5, description="weight of the distribution part of the loss")
    aux_weight: Gain = Field(default=0.25, description="weight of the auxiliary branch's loss")

    mosaic: Share = Field(default=1.0, description="share of pictures made of four")
    close_mosaic: int = Field(
        default=15, ge=0, description="last epochs without mosaic and mixup; at most half of the run"
    )
    fixed_norms: bool | None = Field(
        default=None,
        description="in those last epochs BatchNorm keeps its running values and uses them, as detection does; "
        "none: in short runs",
    )
    mixup: Share | None = Field(
        default=None,
        description="share of mosaics blended with another; none: the paper's 0.15, in short runs 0",
    )
    degrees: float = Field(default=0.0, ge=0, le=180, description="largest rotation, degrees")
    translate: Share = Field(default=0.1, description="largest shift, as a share of the side")
    scale: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="largest enlargement or reduction, as a share; none: the paper's 0.9, in short runs 0.5",
    )
    close_scale: float | None = Field(
        default=None,
        ge=0,
        lt=1,
        description="scale in the last epochs, without mosaic; none: scale, in short runs 0.1 unless it is set",
    )
    shear: float = Field(default=0.0, ge=0, lt=90, description="largest shear, degrees")
    hsv_h: float = Field(
        default=0.015, ge=0, le=1, description="largest change of hue, as a share of the circle"
    )
    hsv_s: float = Field(default=0.7, ge=0, le=1, description="largest change of saturation, as a share")
    hsv_v: float = Field(default=0.4, ge=0, le=1, description="largest change of brightness, as a share")
    flip_lr: Share = Field(default=0.5, description="share of pictures mirrored left to right")
    flip_ud: Share = Field(default=0.0, description="share of pictures mirrored top to bottom")

    single_class: bool = Field(default=False, description="treat all classes as one")
    min_items: int = Field(default=0, ge=0, description="leave out training pictures with fewer boxes")
    skip_bad_rows: bool = Field(
        default=False, description="train without label rows that are wrong, instead of refusing"
    )
    new_auxiliary: bool = Field(
        default=False, description="let the auxiliary branch start at random where the weights have none"
    )
    freeze: tuple[int, ...] = Field(
        default=(),
        description="official layer numbers that do not learn; one number n means layers 0 to n - 1",
    )
    patience: int = Field(
        default=100, ge=0, description="epochs without a better AP after which a run ends; 0: never"
    )
    evaluate_every: int = Field(default=1, ge=1, description="epochs between evaluations; the last is always")
    checkpoint_minutes: float = Field(
        default=10.0, gt=0, description="longest time between checkpoints within an epoch"
    )
    checkpoint_share: float = Field(
        default=0.1,
        gt=0,
        le=1,
        description="largest share of the time that checkpoints take, where epochs are short; 1: one after every epoch",
    )
    max_bad_steps: int = Field(
        default=3,
        ge=1,
        description="steps in a row without a finite loss and gradient after which a run stops",
    )
    project: Path = Field(default=Path("runs/train"), description="folder of runs")
    name: str = Field(
        default="exp", min_length=1, description="folder of this run in it; numbered if it exists"
    )

    @field_validator("data", "weights", mode="before")
    @classmethod
    def _as_path(cls, value: Any) -> Any:
        return None if value == "" else value  # '' is how train_dual.py says "from scratch"

    @field_validator("size")
    @classmethod
    def _known_size(cls, size: str | None) -> str | None:
        if size is not None and size not in VARIANTS:
            raise ValueError(f"YOLOv9 has the sizes {', '.join(VARIANTS)}")
        return size

    @field_validator("image_size")
    @classmethod
    def _fits_the_strides(cls, size: int) -> int:
        if size % 32:
            raise ValueError(f"must be a multiple of 32, the nearest is {max(32, round(size / 32) * 32)}")
        return size

    @field_validator("name")
    @classmethod
    def _one_folder(cls, name: str) -> str:
        if Path(name).name != name:
            raise ValueError("the name of one folder is expected; the folder above it is `project`")
        return name

    @model_validator(mode="after")
    def _frozen_layers(self) -> "TrainConfig":
        if any(layer < 0 for layer in self.freeze):
            raise ValueError("freeze: layer numbers start at 0")
        return self

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise setting_error(
                error, TrainConfig, lambda name: nearest(name, TrainConfig.model_fields)
            ) from None

    def changed(self, **settings: Any) -> "TrainConfig":
        """Another config with these settings, checked.

        Raises:
            UsageError: an unknown name (the nearest known one is named) or a value out of range, in one line.
        """
        return TrainConfig(**{**self.model_dump(), **settings})


def nearest(name: str, known: Iterable[str]) -> str:
    """`` Did you mean ...?`` where a known name is near, else which there are."""
    import difflib

    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f" Did you mean {close[0]}?" if close else f" There are {', '.join(names)}."
