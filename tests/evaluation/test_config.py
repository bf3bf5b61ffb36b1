"""Settings of an evaluation: their ranges, and one line for what is out of them."""

import subprocess
import sys
from typing import Any

import pytest

from yolov9kit.errors import UsageError
from yolov9kit.evaluation.config import EvalConfig
from yolov9kit.evaluation.selection import Selection


def test_the_defaults_are_those_of_the_field() -> None:
    config = EvalConfig()
    assert config.selection == Selection(0.001, 0.7, 300, True, 30_000)
    assert (config.image_size, config.precision, config.split) == ((640,), "fp32", "val")


def test_one_size_or_several() -> None:
    assert EvalConfig(image_size=320).image_size == (320,)
    assert EvalConfig(image_size=[320, 640]).image_size == (320, 640)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_size": 100}, "image_size = 100: 100 is no multiple of 32, the nearest is 96"),
        ({"image_size": (64, 64)}, "each size once"),
        ({"image_size": ()}, "image_size = ()"),
        ({"batch": 0}, "batch = 0: Input should be greater than or equal to 1"),
        ({"max_iou": 1.5}, "max_iou = 1.5"),
        ({"min_score": float("nan")}, "min_score = nan"),
        ({"conf": 0.1}, "conf: no such setting. There are image_size, batch"),
    ],
)
def test_what_is_out_of_range_is_refused_in_one_line(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        EvalConfig(**settings)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_changed_checks_too() -> None:
    assert EvalConfig().changed(batch=3).batch == 3
    with pytest.raises(UsageError, match="workers = -1"):
        EvalConfig().changed(workers=-1)


def test_the_config_needs_no_torch() -> None:
    code = "import sys, yolov9kit.evaluation.config; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
