"""Settings: one value or several, checked, with errors of one line."""

from typing import Any

import pytest

from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.errors import UsageError


def test_one_value_is_a_list_of_one() -> None:
    one = BenchmarkConfig(image_sizes=320, batch_sizes=4, precisions="fp16", modes="eager")
    assert one == BenchmarkConfig(image_sizes=[320], batch_sizes=(4,), precisions=("fp16",), modes=["eager"])


def test_defaults_are_a_hundred_and_five_hundred_runs() -> None:
    config = BenchmarkConfig()
    assert (config.warm_up, config.runs, config.seconds) == (100, 500, None)
    assert config.changed(seconds=5).seconds == 5 and config.seconds is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_sizes": 100}, "100 is no multiple of 32, the nearest is 96"),
        ({"image_sizes": (320, 320)}, "320 stands there twice"),
        ({"image_sizes": ()}, "image_sizes"),
        ({"batch_sizes": 0}, "batch_sizes = 0"),
        ({"modes": ("eager", "eager")}, "eager stands there twice"),
        ({"runs": 2}, "runs = 2"),
        ({"seconds": 0}, "seconds = 0"),
        ({"seconds": float("nan")}, "seconds = nan"),
        ({"warmup": 3}, "warmup: no such setting. There are image_sizes"),
    ],
)
def test_a_wrong_setting_is_one_line(settings: dict[str, Any], message: str) -> None:
    for make in (BenchmarkConfig, BenchmarkConfig().changed):
        with pytest.raises(UsageError) as caught:
            make(**settings)
        assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("name", BenchmarkConfig.model_fields)
def test_every_setting_is_described(name: str) -> None:
    assert BenchmarkConfig.model_fields[name].description
