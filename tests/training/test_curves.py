"""What a view of a run draws: smoothing that tells the truth, thinning that loses no spike, a guess of the rest."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.training.curves import EPOCH_SERIES, STEP_SERIES, Curves, thinned

finite = st.floats(-1e6, 1e6, allow_nan=False, width=32)


def start(**more: Any) -> dict[str, Any]:
    values = {"total_steps": 100, "steps_per_epoch": 10, "batch": 8, "accumulate": 1, "config": {}}
    return {"kind": "start", **values, **more}


def step(number: int, total: float | None = 1.0, **more: Any) -> dict[str, Any]:
    loss = None if total is None else {"total": total, "box": total / 2, "cls": total / 4, "dfl": total / 4}
    values = {
        "epoch": (number - 1) // 10 + 1, "step": number, "step_in_epoch": (number - 1) % 10 + 1, "loss": loss,
        "learning_rate": 0.01, "grad_norm": 3.0, "pictures_per_s": 16.0, "waiting": 0.1, "memory_mib": 100.0,
        "problem": None,
    }  # fmt: skip
    return {"kind": "step", **values, **more}


def evaluation(epoch: int, ap: float | None, best: bool = False) -> dict[str, Any]:
    loss = {"total": 4.0, "box": 1.0, "cls": 2.0, "dfl": 1.0}
    scores = {"ap": ap, "ap50": ap, "ap75": None}
    return {"kind": "evaluation", "epoch": epoch, "loss": loss, **scores, "best": best, "seconds": 2.0}


def of(values: list[float | None]) -> Curves:
    curves = Curves()
    curves.add([start(), *(step(i, value) for i, value in enumerate(values, 1))])
    return curves


# ---------------------------------------------------------------------------------------------- smoothing


@given(finite, st.integers(1, 300), st.floats(0, 0.999))
def test_a_constant_stays_that_constant(value: float, count: int, weight: float) -> None:
    line = of([value] * count).line("total", weight)
    np.testing.assert_allclose(line.y, value, rtol=1e-9, atol=1e-12)


@given(st.lists(finite, min_size=1, max_size=80), st.floats(0.01, 0.99))
def test_smoothing_is_the_weighted_mean_of_what_came_before(values: list[float], weight: float) -> None:
    line = of(list(values)).line("total", weight)
    for i in range(len(values)):
        weights = np.array([weight ** (i - j) for j in range(i + 1)])
        expected = (weights * values[: i + 1]).sum() / weights.sum()
        assert line.y[i] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    np.testing.assert_array_equal(line.raw, values)


@given(st.lists(st.one_of(st.none(), finite), min_size=1, max_size=60), st.floats(0, 0.99), st.data())
def test_smoothing_bit_by_bit_equals_smoothing_at_once(
    values: list[float | None], weight: float, data: st.DataObject
) -> None:
    curves, cut = Curves(), data.draw(st.integers(0, len(values)))
    records = [start(), *(step(i, value) for i, value in enumerate(values, 1))]
    curves.add(records[: cut + 1])
    curves.line("total", weight)
    curves.add(records[cut + 1 :])
    np.testing.assert_array_equal(curves.line("total", weight).y, of(values).line("total", weight).y)


def test_a_step_that_was_not_applied_is_a_gap_and_a_problem() -> None:
    curves = of([1.0, 1.0])
    problem = {"tensor": "box part of the loss", "what": "is not finite", "pictures": ["a.png"]}
    curves.add([step(3, None, grad_norm=None, problem=problem), step(4, 1.0)])
    line = curves.line("total", 0.9)
    assert np.isnan(line.y).tolist() == np.isnan(line.raw).tolist() == [False, False, True, False]
    assert line.y[3] == pytest.approx(1)
    assert curves.problems == [(3, "box part of the loss: is not finite")]


def test_smoothing_does_not_depend_on_thinning() -> None:
    curves = of(np.random.default_rng(0).normal(size=5000).tolist())
    whole, thin = curves.line("total", 0.95, points=10_000), curves.line("total", 0.95, points=100)
    assert len(whole.x) == 5000 and len(thin.x) <= 100
    np.testing.assert_array_equal(thin.y, whole.y[thin.x.astype(int) - 1])


# ---------------------------------------------------------------------------------------------- thinning


@given(st.lists(st.one_of(st.just(math.nan), finite), min_size=0, max_size=400), st.integers(4, 60))
def test_thinning_keeps_the_ends_and_every_extreme(values: list[float], points: int) -> None:
    array = np.array(values, np.float64)
    kept = thinned(array, points)
    assert len(kept) <= max(points, 4) and (np.diff(kept) > 0).all()
    if len(array):
        assert kept[0] == 0 and kept[-1] == len(array) - 1
        if not np.isnan(array).all():
            assert np.nanmax(array[kept]) == np.nanmax(array)
            assert np.nanmin(array[kept]) == np.nanmin(array)


@given(st.lists(st.one_of(st.just(math.nan), finite), min_size=60, max_size=400), st.integers(5, 40))
def test_thinning_keeps_a_gap_where_there_was_one(values: list[float], points: int) -> None:
    array = np.array(values, np.float64)
    assert np.isnan(array[thinned(array, points)]).any() == np.isnan(array).any()


def test_few_values_are_all_kept() -> None:
    assert thinned(np.arange(7.0), 7).tolist() == list(range(7))


# ---------------------------------------------------------------------------------------------- the run


def test_a_run_is_gathered() -> None:
    curves = Curves()
    assert curves.total_steps is None and curves.best is None and curves.seconds_left() is None
    assert all(len(curves.line(name).x) == 0 for name in (*STEP_SERIES, *EPOCH_SERIES))
    curves.add([start()])
    curves.add(step(i, 2.0) for i in range(1, 11))
    curves.add([evaluation(1, 0.1, best=True), evaluation(2, None), {"kind": "checkpoint"}])
    assert (curves.step, curves.epoch, curves.total_steps, curves.best) == (10, 1, 100, (0.1, 1))
    assert curves.line("learning_rate").x.tolist() == list(range(1, 11))
    assert curves.line("ap").x.tolist() == [1, 2] and math.isnan(curves.line("ap").y[1])
    assert curves.line("val_cls").y.tolist() == [2.0, 2.0]
    curves.add([{"kind": "end", "reason": "stopped"}])
    assert curves.end is not None
    curves.add([{"kind": "resumed", "step": 10}, step(11)])
    assert curves.end is None and curves.resumed == [10] and curves.step == 11
    curves.clear()
    assert (curves.step, len(curves.line("total").x)) == (0, 0)


def test_batches_that_lay_ready_are_those_of_the_newest_step() -> None:
    curves = of([1.0])
    assert curves.ready is None  # a journal of an earlier release
    curves.add([step(2, ready=6), step(3, ready=None), step(4, ready=0)])
    assert curves.ready == 0
    np.testing.assert_array_equal(curves.line("ready").y, [np.nan, 6, np.nan, 0])


def test_the_rest_is_guessed_from_what_was() -> None:
    curves = Curves()
    curves.add([start(), step(1, pictures_per_s=4.0)])  # two seconds a step, 99 to go
    assert curves.seconds_left() == pytest.approx(198)
    curves.add(step(i) for i in range(2, 11))
    curves.add(
        [{"kind": "epoch", "seconds": 30.0}, evaluation(1, 0.1)]
    )  # then 9 epochs of 30 s, and 9 looks of 2 s
    assert curves.seconds_left() == pytest.approx(9 * 32)
    curves.add([{"kind": "end", "reason": "finished"}])
    assert curves.seconds_left() is None
