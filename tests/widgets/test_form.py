"""Controls from config models: what they show is the default, what they say is what the model takes."""

import pytest

from widgets.form import knobs, settings_of, whole_number
from yolov9kit import DetectConfig, TrainConfig, UsageError

FIELDS = [field for field in TrainConfig.model_fields if field not in ("data", "weights")]


def test_untouched_controls_change_nothing() -> None:
    for model, fields in ((TrainConfig, FIELDS), (DetectConfig, ["batch_size", "min_score"])):
        controls = knobs(model, fields)
        assert settings_of(model, controls) == {}
        assert all(control.description and control.tooltip for control in controls.values())


@pytest.mark.parametrize(
    ("field", "typed", "value"),
    [
        ("lr0", "0.002", 0.002),
        ("lr0", " auto ", None),
        ("workers", "3", 3),
        ("freeze", "0, 1 2", (0, 1, 2)),
        ("cache", "none", "none"),
        ("mosaic", 0.5, 0.5),
        ("epochs", 7, 7),
        ("single_class", True, True),
        ("fixed_norms", False, False),
        ("fixed_norms", None, None),
        ("name", "mine", "mine"),
    ],
)
def test_what_is_typed_is_what_the_config_has(field: str, typed: object, value: object) -> None:
    controls = knobs(TrainConfig, FIELDS)
    controls[field].value = typed
    config = TrainConfig(data="data.yaml", **settings_of(TrainConfig, controls))
    assert config.model_dump()[field] == value
    others = {name: v for name, v in config.model_dump().items() if name != field}
    assert others == {n: v for n, v in TrainConfig(data="data.yaml").model_dump().items() if n != field}


@pytest.mark.parametrize(
    ("field", "typed"), [("lr0", "fast"), ("mosaic", 1.5), ("epochs", 0), ("freeze", "all")]
)
def test_a_wrong_value_is_refused_by_the_model_in_words(field: str, typed: object) -> None:
    controls = knobs(TrainConfig, FIELDS)
    controls[field].value = typed
    with pytest.raises(UsageError, match=field):
        TrainConfig(data="data.yaml", **settings_of(TrainConfig, controls))


def test_whole_numbers_have_the_models_range() -> None:
    control = whole_number("batch", "Batch", TrainConfig)
    assert (control.value, control.min, control.max) == (16, 1, 4096)
    assert whole_number("batch_size", "Batch size").value == DetectConfig().batch_size
