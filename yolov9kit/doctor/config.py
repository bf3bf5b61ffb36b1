"""The settings of a diagnosis. Command line, panel and JSON read them from here."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from yolov9kit.errors import UsageError


class DoctorConfig(BaseModel):
    """What is looked at, and for which input size. Frozen: to change settings, make another with ``changed``."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True)

    image_size: int = Field(
        default=640, ge=32, le=4096, description="side of the square input that training will use, pixels"
    )
    splits: tuple[str, ...] = Field(
        default=(), description="splits that are looked at; none: all that are named"
    )
    near_duplicates: bool = Field(
        default=True, description="look for pictures that differ in bytes but look alike"
    )
    cache: bool = Field(
        default=True, description="remember in the user's cache folder what decoding a picture told"
    )

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise _setting_error(error) from None

    def changed(self, **settings: Any) -> "DoctorConfig":
        """Another config with these settings, checked.

        Raises:
            UsageError: an unknown name or a value out of range, in one line.
        """
        return DoctorConfig(**{**self.model_dump(), **settings})


def _setting_error(error: ValidationError) -> UsageError:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"][:1]))
    if first["type"] == "extra_forbidden":
        return UsageError(f"{where}: no such setting. There are {', '.join(DoctorConfig.model_fields)}")
    return UsageError(f"{where} = {first['input']!r}: {first['msg']}")
