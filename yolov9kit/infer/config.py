"""The settings of detection. Panel, command line and JSON read them from here."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from yolov9kit.errors import UsageError

ImageSize = Annotated[
    int | tuple[int, int], Field(description="input size in pixels: one number, or height and width")
]

MODES = ("auto", "eager", "graph", "compiled", "onnx")
"""How a network may be run; see ``choose_mode``."""


class DetectConfig(BaseModel):
    """How boxes are chosen. Frozen: to change settings, make another with ``changed``, which checks them."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    image_size: ImageSize = 640
    min_score: float = Field(default=0.25, ge=0, le=1, description="keep boxes that score more than this")
    max_iou: float = Field(
        default=0.7, ge=0, le=1, description="of two boxes of a class that overlap more, keep the better"
    )
    max_detections: int = Field(default=300, ge=1, description="most boxes of one picture, the best first")
    classes: tuple[int, ...] | None = Field(
        default=None, min_length=1, description="keep these classes only, by number; None keeps all"
    )
    agnostic: bool = Field(default=False, description="let boxes of different classes suppress each other")
    batch_size: int = Field(
        default=8, ge=1, le=4096, description="pictures that go through the network together"
    )
    keep_candidates: bool = Field(
        default=False, description="keep boxes from before NMS, so that thresholds can move later"
    )
    candidate_score: float = Field(default=0.01, ge=0, le=1, description="floor of the candidates' scores")
    max_candidates: int = Field(
        default=3000, ge=1, description="most candidates of one picture, the best first"
    )

    @property
    def floor(self) -> float:
        """The score under which nothing is looked at."""
        return min(self.min_score, self.candidate_score) if self.keep_candidates else self.min_score

    @field_validator("image_size")
    @classmethod
    def _fits_the_strides(cls, size: int | tuple[int, int]) -> int | tuple[int, int]:
        from yolov9kit.data.letterbox import (
            input_size,
        )  # imported here: `--help` needs the defaults, but no numpy

        input_size(size)
        return size

    def changed(self, **settings: Any) -> "DetectConfig":
        """Another config with these settings, checked.

        Raises:
            UsageError: an unknown name or a value out of range, in one line.
        """
        try:
            return self.model_validate({**self.model_dump(), **settings})
        except ValidationError as error:
            raise setting_error(error, type(self)) from None


def multiples_of_32(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The sides of inputs, as they are.

    Raises:
        ValueError: one does not fit the network's largest stride; the message names the nearest that does.
    """
    for size in sizes:
        if size % 32:
            nearest = max(32, round(size / 32) * 32)
            raise ValueError(f"{size} is no multiple of 32, the nearest is {nearest}")
    return sizes


def setting_error(
    error: ValidationError, config: type[BaseModel], hint: Callable[[str], str] | None = None
) -> UsageError:
    """The first fault of a configuration in one line: which setting, its value, and what would do.

    ``hint`` says more about a name that does not exist than which names do.
    """
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"][:1]))
    fields = config.model_fields
    if first["type"] == "extra_forbidden":
        more = f" There are {', '.join(fields)}" if hint is None else hint(where)
        return UsageError(f"{where}: no such setting.{more}")
    if first["type"] == "missing":
        return UsageError(f"{where}: is needed: {fields[where].description}")
    message = str(first["msg"]).removeprefix("Value error, ")
    return UsageError(f"{where} = {first['input']!r}: {message}" if where else message)
