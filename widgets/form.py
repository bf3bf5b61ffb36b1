"""Config models to controls: range, default and help of a field stand in the model and nowhere else."""

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import ipywidgets as w

import yolov9kit

LABEL = {"description_width": "92px"}
WIDE = {"width": "auto"}
AUTO = "auto"
"""What an empty field shows where the library chooses."""


def schema_of(model: Any, field: str) -> dict[str, Any]:
    """The JSON schema of a field of a config model; of one that may be None, the other half, with ``optional``."""
    schema: dict[str, Any] = dict(_properties(model)[field])
    for kind in schema.pop("anyOf", ()):
        schema |= {"optional": True} if kind == {"type": "null"} else kind
    return schema


@cache
def _properties(model: Any) -> dict[str, Any]:
    properties: dict[str, Any] = model.model_json_schema()["properties"]
    return properties


def bounds(model: Any, field: str) -> dict[str, Any]:
    """Value, range and help of a whole number."""
    schema = schema_of(model, field)
    return {
        "value": schema["default"],
        "min": schema.get("minimum", 1),
        "max": schema.get("maximum", 2**31 - 1),
        "tooltip": schema.get("description", ""),
    }


def whole_number(field: str, description: str, model: Any = None, **more: Any) -> w.BoundedIntText:
    """An editable whole number for a field, of ``DetectConfig`` where no model is named."""
    settings = bounds(yolov9kit.DetectConfig if model is None else model, field) | more
    return w.BoundedIntText(description=description, style=LABEL, layout=w.Layout(**WIDE), **settings)


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


def knobs(model: Any, fields: Iterable[str]) -> dict[str, w.Widget]:
    """A control for each field, named after it, with its help as tooltip. Values are checked by the model alone."""
    return {field: _knob(schema_of(model, field), field.replace("_", " ")) for field in fields}


def settings_of(model: Any, controls: Mapping[str, w.Widget]) -> dict[str, Any]:
    """What the controls of ``knobs`` say, where that is not the default."""
    settings = {}
    for field, control in controls.items():
        schema = schema_of(model, field)
        value = control.value
        if isinstance(value, str):
            value = value.strip()
            if schema.get("type") == "array":
                value = value.replace(",", " ").split()
            elif schema.get("optional") and value in ("", AUTO):
                value = None
        if value != schema.get("default"):
            settings[field] = value
    return settings


def _knob(schema: dict[str, Any], description: str) -> w.Widget:
    help_text, kind, default = schema.get("description", ""), schema.get("type"), schema.get("default")
    style = {"description_width": "128px"}
    common: dict[str, Any] = {
        "description": description,
        "tooltip": help_text,
        "style": style,
        "layout": w.Layout(**WIDE),
    }
    if kind == "boolean" and schema.get("optional"):
        return w.Dropdown(options=[(AUTO, None), ("yes", True), ("no", False)], value=default, **common)
    if kind == "boolean":
        return w.Checkbox(value=default, indent=False, **common | {"style": {}})
    if "pattern" in schema:
        options = schema["pattern"].strip("^()$").split("|")
        return w.Dropdown(options=options, value=default, **common)
    if schema.get("optional") or kind in ("string", "array"):
        shown = "" if default in (None, []) else str(default)
        hint = AUTO if schema.get("optional") else help_text
        return w.Text(value=shown, placeholder=hint, continuous_update=False, **common)
    if kind == "integer":
        return w.IntText(value=default, continuous_update=False, **common)
    return w.FloatText(value=default, continuous_update=False, **common)
