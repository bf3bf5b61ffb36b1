"""The settings of an evaluation. Panel, command line and JSON read them from here."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from yolov9kit.evaluation.selection import DEFAULT, Selection
from yolov9kit.infer.config import multiples_of_32, setting_error

Size = Annotated[int, Field(ge=32, le=4096)]


class EvalConfig(BaseModel):
    """What a score depends on, and how it is computed. Frozen: to change settings, make another with ``changed``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    image_size: tuple[Size, ...] = Field(
        default=(640,),
        min_length=1,
        description="side of the square input, pixels; of several, all are scored and the first is looked into",
    )
    batch: int = Field(default=16, ge=1, le=4096, description="pictures that go through the network together")
    device: str = Field(default="auto", description="auto, cpu, 0, cuda:1, mps")
    precision: str = Field(default="fp32", description="fp32, tf32, fp16, bf16 or auto")
    fused: bool = Field(
        default=False,
        description="score the fused network that detection runs, instead of the one that training scores",
    )
    workers: int = Field(default=0, ge=0, le=256, description="processes that prepare pictures")
    split: str = Field(default="val", min_length=1, description="split of the data set")
    min_score: float = Field(
        default=DEFAULT.min_score, ge=0, lt=1, description="keep boxes that score more than this"
    )
    max_iou: float = Field(
        default=DEFAULT.max_iou,
        ge=0,
        le=1,
        description="of two boxes of a class that overlap more, keep the better",
    )
    max_detections: int = Field(
        default=DEFAULT.max_detections, ge=1, description="most boxes of one picture, the best first"
    )
    multi_label: bool = Field(
        default=DEFAULT.multi_label, description="a location may count for several classes, else its best"
    )
    max_candidates: int = Field(
        default=DEFAULT.max_candidates,
        ge=1,
        description="most candidates of one picture before NMS, the best first",
    )
    single_class: bool = Field(
        default=False, description="treat all classes as one, in the data and in the weights"
    )
    min_items: int = Field(default=0, ge=0, description="leave out pictures with fewer boxes")
    skip_bad_rows: bool = Field(
        default=False, description="evaluate without label rows that are wrong, instead of refusing"
    )
    worst: int = Field(default=16, ge=0, le=1000, description="number of pictures with most faults to name")

    @field_validator("image_size", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, int) else value

    @field_validator("image_size")
    @classmethod
    def _fits_the_strides(cls, sizes: tuple[int, ...]) -> tuple[int, ...]:
        multiples_of_32(sizes)
        if len(set(sizes)) < len(sizes):
            raise ValueError("each size once")
        return sizes

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise setting_error(error, EvalConfig) from None

    @property
    def selection(self) -> Selection:
        return Selection(
            self.min_score, self.max_iou, self.max_detections, self.multi_label, self.max_candidates
        )

    def changed(self, **settings: Any) -> "EvalConfig":
        """Another config with these settings, checked.

        Raises:
            UsageError: an unknown name or a value out of range, in one line.
        """
        return EvalConfig(**{**self.model_dump(), **settings})
