"""About how long: grows with what is asked for, and a cap in seconds holds it."""

import pytest

from tests.benchmark.made_report import FP32
from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.benchmark.estimate import READY_SECONDS, estimate
from yolov9kit.benchmark.report import Combination
from yolov9kit.infer.mode import MODES, Mode

RUN_MS = {(320, 1): 10.0, (320, 16): 160.0, (640, 1): 40.0}


def runs(*names: str, batch: int = 1) -> list[Combination]:
    return [Combination(320, batch, FP32, Mode(name, "as asked")) for name in names]


def seconds(*names: str, batch: int = 1, pictures: int = 1, scored: int = 0, **settings: object) -> float:
    config = BenchmarkConfig(**({"timed_pictures": 1, "floor": False} | settings))
    return estimate(RUN_MS, runs(*names, batch=batch), config, pictures, scored, True)


def test_the_runs_of_a_row_are_counted() -> None:
    # 601 runs of 10 ms, and 3 + 1 pictures end to end of 15 ms
    assert seconds("eager") == pytest.approx(6.01 + 0.06 + READY_SECONDS["eager"])


def test_each_more_takes_longer() -> None:
    plain = seconds("eager")
    assert seconds("eager", "graph") > 1.9 * plain
    assert seconds("eager", runs=1000) > plain
    assert seconds("eager", profile=True) > plain
    assert seconds("eager", floor=True) > plain
    assert seconds("eager", scored=1000) == pytest.approx(plain + 15)


def test_seconds_hold_it() -> None:
    capped = seconds("eager", batch=16, seconds=2)
    assert capped < seconds("eager", batch=16)
    assert 2 + READY_SECONDS["eager"] <= capped < 5


def test_what_could_not_be_probed_is_left_out() -> None:
    assert seconds("eager", batch=4096) > 0


def test_every_mode_has_a_time_to_get_ready() -> None:
    assert set(READY_SECONDS) == set(MODES) - {"auto"}
