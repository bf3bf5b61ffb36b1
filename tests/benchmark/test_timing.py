"""Spreads of times; the first run apart, warm-up, runs that count, and a cap in seconds."""

import statistics
import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.benchmark.config import LEAST_RUNS
from yolov9kit.benchmark.timing import BY_EVENTS, BY_HOST, BY_WAITING, WARM_UP_SHARE, spread, time_runs

TIMES = st.lists(st.floats(0, 1e6), min_size=1, max_size=40)


class Clock:
    """Time that goes on only when somebody works: ``work`` takes the seconds that it is given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        self.calls = 0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def work(self, first: float = 0.0, each: float = 0.0) -> None:
        self.now += first if not self.calls else each
        self.calls += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@given(TIMES)
def test_a_spread_is_that_of_the_standard_library(times: list[float]) -> None:
    one = spread(times)
    assert one.count == len(times) and one.minimum == min(times)
    assert one.mean == pytest.approx(statistics.fmean(times), rel=1e-9, abs=1e-9)
    assert one.median == pytest.approx(statistics.median(times), rel=1e-9, abs=1e-9)
    assert one.std == pytest.approx(statistics.pstdev(times), rel=1e-6, abs=1e-6)


@given(TIMES)
def test_the_numbers_of_a_spread_stand_in_order(times: list[float]) -> None:
    one = spread(times)
    assert one.minimum <= one.median <= one.p99 <= max(times)


@given(TIMES, st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(times: list[float], random: object) -> None:
    shuffled = times[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert spread(shuffled).median == spread(times).median and spread(shuffled).p99 == spread(times).p99


@pytest.mark.parametrize("times", [[], [1.0, float("nan")], [float("inf")]])
def test_what_is_no_time_gives_no_spread(times: list[float]) -> None:
    with pytest.raises(ValueError, match="at least one time, and finite ones"):
        spread(times)


def test_the_first_run_is_in_no_other_number(clock: Clock) -> None:
    timed = time_runs(lambda: clock.work(first=9.0, each=0.5), "cpu", warm_up=4, runs=10)
    assert timed.first_ms == 9000 and clock.calls == 1 + 4 + 10
    assert timed.runs == spread([500.0] * 10)
    assert not timed.capped and timed.how == BY_HOST


def test_seconds_end_the_runs_but_not_the_first_and_the_least(clock: Clock) -> None:
    timed = time_runs(lambda: clock.work(first=100.0, each=1.0), "cpu", warm_up=100, runs=500, seconds=10.0)
    assert timed.first_ms == 100_000  # what compiles is not held against the others
    assert timed.capped and timed.runs == spread([1000.0] * round(10 * (1 - WARM_UP_SHARE)))


def test_however_short_the_seconds_a_spread_is_left(clock: Clock) -> None:
    timed = time_runs(lambda: clock.work(each=60.0), "cpu", warm_up=0, runs=500, seconds=1.0)
    assert timed.capped and timed.runs.count == LEAST_RUNS


def test_seconds_that_are_not_needed_change_nothing(clock: Clock) -> None:
    timed = time_runs(lambda: clock.work(each=0.001), "cpu", warm_up=3, runs=7, seconds=60.0)
    assert not timed.capped and timed.runs.count == 7 and clock.calls == 11


def test_m15_a_planted_delay_shows_in_the_network_time() -> None:
    def run(delay: float) -> float:
        # the shortest of some: on a busy machine single ones are late
        return time_runs(lambda: time.sleep(delay), "cpu", warm_up=1, runs=20).runs.minimum

    assert run(0.025) - run(0.005) == pytest.approx(20, rel=0.1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("wait_each", [False, True])
def test_m15_a_planted_delay_on_the_gpu_shows_in_the_network_time(wait_each: bool) -> None:
    cycles = 10_000_000

    def run(count: int) -> float:
        planted = time_runs(
            lambda: torch.cuda._sleep(count), "cuda:0", warm_up=3, runs=20, wait_each=wait_each
        )
        assert planted.how == (BY_WAITING if wait_each else BY_EVENTS)
        return planted.runs.median

    cycles_a_ms = cycles / run(cycles)
    assert run(round(25 * cycles_a_ms)) - run(round(5 * cycles_a_ms)) == pytest.approx(20, rel=0.1)


def test_times_are_plain_numbers() -> None:
    assert all(type(value) in (float, int) for value in vars(spread(list(np.arange(3.0)))).values())
