"""One update: equal to a larger batch when accumulated, never applied when not finite, faults named."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from yolov9kit.device import Device, Precision, choose_device, choose_precision
from yolov9kit.loss.criterion import DetectionLoss
from yolov9kit.model.transfer import new_model
from yolov9kit.model.yolov9 import YOLOv9
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.optim import WeightAverage, choose_recipe, make_optimizer
from yolov9kit.training.step import LossScale, MicroBatch, TrainStep, computing
from yolov9kit.types import Targets

SIDE = 64


def some_batch(pictures: int, seed: int = 0, objects: int = 2) -> MicroBatch:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (pictures, 3, SIDE, SIDE), generator=generator, dtype=torch.uint8)
    first = torch.rand(pictures, objects, 2, generator=generator) * 30
    boxes = torch.cat((first, first + 10 + torch.rand(pictures, objects, 2, generator=generator) * 20), 2)
    return images, Targets(boxes, torch.randint(0, 3, (pictures, objects), generator=generator))


def part(batch: MicroBatch, start: int, end: int) -> MicroBatch:
    images, targets = batch
    return images[start:end], Targets(targets.boxes[start:end], targets.labels[start:end])


@pytest.fixture(scope="module")
def start() -> YOLOv9:
    return new_model("t", 3, seed=0)


@pytest.fixture
def make(start: YOLOv9) -> Callable[..., TrainStep]:
    def build(
        precision: str = "fp32", optimizer: str = "sgd", frozen: bool = False, **settings: float
    ) -> TrainStep:
        model = copy.deepcopy(start)
        config = TrainConfig(data="data.yaml", optimizer=optimizer, **settings)
        device = choose_device("cpu")
        norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)] if frozen else []
        return TrainStep(
            model,
            WeightAverage(model, 0.9999, 2000.0),
            make_optimizer(model, choose_recipe(config, 4, 10)),
            DetectionLoss(3),
            device,
            choose_precision(precision, device),
            config.clip_norm,
            frozen_norms=norms,
        )

    return build


def gradients(model: nn.Module) -> list[torch.Tensor]:
    return [p.grad.clone() for p in model.parameters() if p.grad is not None]


def test_n09_batches_of_4_accumulated_equal_one_of_16(make: Callable[..., TrainStep]) -> None:
    batch = some_batch(16)
    # pictures with different numbers of objects: each batch divided by its own sum would give another gradient
    batch[1].labels[4:8] = -1
    batch[1].labels[9, 1] = -1
    one, four = make(frozen=True, clip_norm=0.0), make(frozen=True, clip_norm=0.0)
    whole = one([batch])
    parts = four([part(batch, i, i + 4) for i in range(0, 16, 4)])
    assert parts.loss.total == pytest.approx(whole.loss.total, rel=1e-5)
    largest = max(g.abs().max() for g in gradients(one.model))
    for a, b in zip(gradients(one.model), gradients(four.model), strict=True):
        assert (a - b).norm() <= 1e-5 * a.norm() + 1e-7 * largest


def test_accumulation_looks_ahead_without_a_trace_in_batch_norm(make: Callable[..., TrainStep]) -> None:
    halves = [part(some_batch(4), 0, 2), part(some_batch(4), 2, 4)]
    step = make()
    step(halves)
    counters = [m.num_batches_tracked.item() for m in step.model.modules() if isinstance(m, nn.BatchNorm2d)]
    assert set(counters) == {2}


def test_a_step_moves_weights_and_average(make: Callable[..., TrainStep]) -> None:
    step = make()
    before = copy.deepcopy(step.model.state_dict())
    result = step([some_batch(2)])
    assert result.fault is None
    assert result.loss.total == pytest.approx(result.loss.box + result.loss.cls + result.loss.dfl, rel=1e-5)
    moved = [key for key, value in step.model.state_dict().items() if not torch.equal(value, before[key])]
    assert len(moved) > 0.95 * len(before)  # a gradient may be too small to change its weight
    assert step.average.updates == 1


def test_gradients_are_clipped(make: Callable[..., TrainStep]) -> None:
    step = make(clip_norm=0.5)
    result = step([some_batch(2)])
    assert result.grad_norm > 0.5
    total = torch.stack([g.norm() for g in gradients(step.model)]).norm()
    assert total.item() == pytest.approx(0.5, rel=1e-4)


def unchanged(step: TrainStep, state: dict[str, torch.Tensor], average: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(v, state[k]) for k, v in step.model.state_dict().items()) and all(
        torch.equal(v, average[k]) for k, v in step.average.model.state_dict().items()
    )


def test_w14_a_poisoned_weight_is_named_and_nothing_moves(make: Callable[..., TrainStep]) -> None:
    step = make()
    step([some_batch(2)])
    weight = step.model.backbone.conv1.conv.weight
    good = weight.detach().clone()
    state, average = (copy.deepcopy(m.state_dict()) for m in (step.model, step.average.model))
    with torch.no_grad():
        weight[0, 0, 0, 0] = float("nan")
    result = step([some_batch(2)])
    assert result.fault == (
        "weight backbone.conv1.conv.weight",
        "has values that are not finite before the step",
    )
    with torch.no_grad():
        weight.copy_(good)
    assert unchanged(step, state, average)
    assert step([some_batch(2)]).fault is None  # and training goes on


def test_the_first_layer_that_overflows_is_named(make: Callable[..., TrainStep]) -> None:
    step = make()
    with torch.no_grad():
        step.model.backbone.conv2.bn.weight.fill_(3e38)
    state, average = (copy.deepcopy(m.state_dict()) for m in (step.model, step.average.model))
    result = step([some_batch(2)])
    assert result.fault == ("output of layer backbone.conv2.bn", "is not finite in fp32")
    assert unchanged(step, state, average)


def test_an_exploded_loss_is_not_applied_and_hopeless(make: Callable[..., TrainStep]) -> None:
    step = make()
    with torch.no_grad():
        for tower in step.model.head.cls:
            tower[-1].bias.fill_(1e9)
    result = step([some_batch(2)])
    assert result.fault is not None
    assert result.fault[0] == "loss"
    assert "exploded" in result.fault[1]
    assert result.hopeless


def test_a_gradient_that_is_not_finite_is_named(make: Callable[..., TrainStep]) -> None:
    step = make()
    handle = step.model.backbone.conv1.conv.weight.register_hook(lambda g: g * float("inf"))
    result = step([some_batch(2)])
    handle.remove()
    assert result.fault == ("gradient of backbone.conv1.conv.weight", "is not finite in fp32")


def test_fp16_overflow_lowers_the_scale_and_is_not_a_fault_of_the_run(make: Callable[..., TrainStep]) -> None:
    step = make("fp16")
    step.scale.value = 2.0**40
    before = copy.deepcopy(step.model.state_dict())
    result = step([some_batch(2)])
    assert result.overflow
    assert step.scale.value == 2.0**39
    assert all(torch.equal(v, before[k]) for k, v in step.model.state_dict().items())


def test_the_loss_scale_grows_after_2000_good_steps() -> None:
    scale = LossScale(4.0)
    for _ in range(1999):
        scale.after(finite=True)
    assert scale.value == 4
    scale.after(finite=True)
    assert (scale.value, scale.good_steps) == (8, 0)
    scale.after(finite=False)
    assert (scale.value, scale.good_steps) == (4, 0)


def test_bf16_first_loss_is_within_2_percent_of_fp32(make: Callable[..., TrainStep]) -> None:
    batch = some_batch(4)
    exact, half = make()([batch]).loss, make("bf16")([batch]).loss
    for kind in ("box", "cls", "dfl"):
        assert vars(half)[kind] == pytest.approx(vars(exact)[kind], rel=0.02)


def test_weights_stay_float32_in_every_precision(make: Callable[..., TrainStep]) -> None:
    for precision in ("bf16", "fp16"):
        step = make(precision)
        step([some_batch(2)])
        assert {p.dtype for p in step.model.parameters()} == {torch.float32}


def test_the_switches_of_the_process_are_put_back(make: Callable[..., TrainStep]) -> None:
    step = make()
    step.deterministic = True
    before = torch.are_deterministic_algorithms_enabled()
    step([some_batch(2)])
    assert torch.are_deterministic_algorithms_enabled() == before


def test_cudnn_stays_on_while_a_gpu_computes() -> None:
    cudnn = torch.backends.cudnn
    before = (cudnn.enabled, cudnn.benchmark, cudnn.deterministic)
    gpu = Device("cuda:0", "a GPU", "for this test")
    half = Precision("fp16", torch.float16, True, "for this test")
    with computing(gpu, half, deterministic=False):
        assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == (before[0], False, False)
    assert (cudnn.enabled, cudnn.benchmark, cudnn.deterministic) == before


def test_fixed_norms_train_with_their_running_values_and_keep_them(make: Callable[..., TrainStep]) -> None:
    """The loss of such a step is that of the network that detects."""
    batch = some_batch(4)
    step, first = make(), make()
    first([batch])  # running values that differ from those of this batch
    step.model.load_state_dict(first.model.state_dict())
    kept = {name: buffer.clone() for name, buffer in step.model.named_buffers()}
    weights = [parameter.detach().clone() for parameter in step.model.parameters()]
    with torch.no_grad():
        parts = step.loss(step.model.eval()(batch[0].float() / 255), batch[1])
    step.fix_norms(True)
    result = step([batch])
    assert result.loss.total == pytest.approx(parts.total.item() / 4, rel=1e-5)
    assert all(torch.equal(buffer, kept[name]) for name, buffer in step.model.named_buffers())
    assert any(not torch.equal(a, b) for a, b in zip(weights, step.model.parameters(), strict=True))
    step.fix_norms(False)
    step([batch])
    assert any(not torch.equal(buffer, kept[name]) for name, buffer in step.model.named_buffers())
