"""Groups, rates and averages: numbers that can be worked out by hand."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from yolov9kit.model.transfer import new_model
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.optim import (
    SHORT_RUN_STEPS,
    WeightAverage,
    choose_average,
    choose_norm_momentum,
    choose_recipe,
    make_optimizer,
    make_schedule,
    parameter_groups,
)


def config(**settings: object) -> TrainConfig:
    return TrainConfig(data="data.yaml", **settings)


def test_every_parameter_is_in_one_group_and_only_weights_decay() -> None:
    model = new_model("t", 3, seed=0)
    weights, norms, biases = parameter_groups(model)
    assert len({id(p) for p in (*weights, *norms, *biases)}) == len(list(model.parameters()))
    assert all(p.ndim == 4 for p in weights)
    assert all(p.ndim == 1 for p in (*norms, *biases))
    optimizer = make_optimizer(model, choose_recipe(config(optimizer="sgd"), 64, 10))
    assert [group["weight_decay"] for group in optimizer.param_groups] == [5e-4, 0, 0]


@pytest.mark.parametrize(
    ("batch", "accumulate", "decay"), [(64, 1, 5e-4), (16, 4, 5e-4), (128, 1, 1e-3), (24, 3, 5e-4 * 72 / 64)]
)
def test_sgd_accumulates_to_the_nominal_batch_and_scales_the_decay(
    batch: int, accumulate: int, decay: float
) -> None:
    recipe = choose_recipe(config(optimizer="sgd"), batch, 10)
    assert recipe.accumulate == accumulate
    assert recipe.weight_decay == pytest.approx(decay)
    assert (recipe.lr0, recipe.momentum, recipe.warmup_bias_lr) == (0.01, 0.937, 0.1)


@pytest.mark.parametrize(
    ("epochs", "chosen"), [(SHORT_RUN_STEPS // 10 - 1, "adamw"), (SHORT_RUN_STEPS // 10, "sgd")]
)
def test_auto_takes_the_papers_recipe_for_long_runs_only_and_says_so(epochs: int, chosen: str) -> None:
    recipe = choose_recipe(config(epochs=epochs), 64, 10)
    assert recipe.optimizer == chosen
    assert f"{epochs * 10:,} steps" in recipe.reason


def test_the_rate_falls_in_a_line_or_along_a_cosine() -> None:
    for kind, middle in (("linear", 0.01 * (0.01 + 0.99 / 2)), ("cosine", 0.01 * (0.01 + 0.99 / 2))):
        settings = config(optimizer="sgd", epochs=100, warmup_epochs=0, schedule=kind)
        schedule = make_schedule(settings, choose_recipe(settings, 64, 10), 10)
        assert schedule.learning_rate(0) == pytest.approx(0.01)
        assert schedule.learning_rate(500) == pytest.approx(middle)
        assert schedule.learning_rate(1000) == pytest.approx(1e-4)
    assert schedule.learning_rate(250) == pytest.approx(
        0.01 * (0.01 + 0.99 * (1 + math.cos(math.pi / 4)) / 2)
    )


@pytest.mark.parametrize(
    ("epochs", "per_epoch", "steps"), [(100, 100, 300), (100, 10, 100), (8, 16, 32), (1, 4, 1), (1, 1, 0)]
)
def test_warm_up_never_outlasts_a_short_run(epochs: int, per_epoch: int, steps: int) -> None:
    settings = config(optimizer="sgd", epochs=epochs)
    assert make_schedule(settings, choose_recipe(settings, 64, per_epoch), per_epoch).warmup_steps == steps


def test_warm_up_lowers_the_rate_of_biases_and_raises_all_others() -> None:
    settings = config(optimizer="sgd", epochs=100)
    schedule = make_schedule(settings, choose_recipe(settings, 64, 100), 100)
    weights = [schedule.learning_rate(step) for step in range(301)]
    biases = [schedule.learning_rate(step, "biases") for step in range(301)]
    assert 0 < weights[0] < 1e-4
    assert biases[0] > 0.099
    assert weights[:299] == sorted(weights[:299])
    assert biases == sorted(biases, reverse=True)
    assert schedule.momentum(0) == pytest.approx(0.8, abs=1e-3)
    assert schedule.momentum(300) == 0.937


@pytest.mark.parametrize("name", ["sgd", "adamw", "adam"])
def test_rate_and_momentum_reach_the_optimizer(name: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
    settings = config(optimizer=name, epochs=100)
    recipe = choose_recipe(settings, 64, 10)
    optimizer, schedule = make_optimizer(model, recipe), make_schedule(settings, recipe, 10)
    schedule.apply(optimizer, 50)
    for group in optimizer.param_groups:
        assert group["lr"] == schedule.learning_rate(50, group["kind"])
        assert (group["betas"][0] if "betas" in group else group["momentum"]) == schedule.momentum(50)


def test_n10_the_average_follows_the_documented_formula() -> None:
    model = new_model("t", 2, seed=0)
    average = WeightAverage(model, 0.9999, 2000.0)
    expected = 0.0
    with torch.no_grad():
        for buffer in average.model.buffers():
            buffer.zero_()
        for parameter in average.model.parameters():
            parameter.zero_()
        for parameter in model.parameters():
            parameter.fill_(1)
        for buffer in model.buffers():
            buffer.fill_(1)
    for update in range(1, 11):
        average.update(model)
        decay = 0.9999 * (1 - math.exp(-update / 2000))
        expected = decay * expected + (1 - decay)
    for key, value in average.model.state_dict().items():
        if value.is_floating_point():  # weights and running statistics alike
            assert_close(value, torch.full_like(value, expected), rtol=1e-6, atol=0, msg=key)
        else:
            assert value.dtype == torch.int64
            assert value.item() == 1, key


@pytest.mark.parametrize(
    ("steps", "decay", "ramp"),
    [
        (8, 0.0, 1.0),
        (800, 0.975, 40.0),
        (10_000, 0.998, 500.0),
        (100_000, 0.9998, 2000.0),
        (10**7, 0.9999, 2000.0),
    ],
)
def test_the_average_spans_a_twentieth_of_a_short_run(steps: int, decay: float, ramp: float) -> None:
    assert choose_average(config(), steps) == pytest.approx((decay, ramp))


def test_an_average_that_was_asked_for_is_kept() -> None:
    assert choose_average(config(ema_decay=0.9999, ema_ramp=2000.0), 8) == (0.9999, 2000.0)
    assert choose_average(config(ema_decay=0.0), 8)[0] == 0.0


@pytest.mark.parametrize(
    ("batches", "momentum"), [(1, 0.1), (60, 0.1), (200, 0.1), (400, 0.05), (667, 0.03), (500_000, 0.03)]
)
def test_running_values_follow_faster_in_a_short_run(batches: int, momentum: float) -> None:
    assert choose_norm_momentum(batches) == pytest.approx(momentum, rel=1e-3)


def test_without_decay_the_average_is_the_model() -> None:
    model = new_model("t", 2, seed=0)
    average = WeightAverage(model, 0.0, 2000.0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    average.update(model)
    assert all(torch.equal(a, b) for a, b in zip(average.model.parameters(), model.parameters(), strict=True))
