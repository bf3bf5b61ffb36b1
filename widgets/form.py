"""Config model to controls: range, default and help of a field stand in the model and nowhere else."""

from typing import Any

import ipywidgets as w

import yolov9kit

LABEL = {"description_width": "92px"}
WIDE = {"width": "auto"}


def bounds(field: str) -> dict[str, Any]:
    """Range and help of a field of ``DetectConfig``."""
    schema = yolov9kit.DetectConfig.model_json_schema()["properties"][field]
    return {
        "value": schema["default"],
        "min": schema.get("minimum", 1),
        "max": schema.get("maximum", 100_000),
        "tooltip": schema.get("description", ""),
    }


def whole_number(field: str, description: str) -> w.BoundedIntText:
    """An editable whole number for a field."""
    return w.BoundedIntText(description=description, style=LABEL, layout=WIDE, **bounds(field))


def choice(description: str, options: Any, **more: Any) -> w.Dropdown:
    """A list to choose from."""
    return w.Dropdown(description=description, options=options, style=LABEL, layout=w.Layout(**WIDE), **more)


def text(description: str, placeholder: str = "", **more: Any) -> w.Text:
    """A line to type into; the value changes when it is finished, not at every key."""
    return w.Text(
        description=description,
        placeholder=placeholder,
        continuous_update=False,
        style=LABEL,
        layout=w.Layout(**WIDE),
        **more,
    )
