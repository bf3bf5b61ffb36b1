"""What only a GPU can show: halves beside float32, the loss beside the processor's, determinism."""

import copy
from pathlib import Path

import pytest
import torch

from yolov9kit.data.augment import NO_AUGMENTATION
from yolov9kit.data.batches import TrainBatches
from yolov9kit.data.dataset import Sample
from yolov9kit.data.pixels import PreparedPictures
from yolov9kit.data.synthetic import draw_shapes
from yolov9kit.device import choose_device, choose_devices, choose_precision
from yolov9kit.loss.criterion import DetectionLoss
from yolov9kit.model.transfer import new_model
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.devices import OtherDevices
from yolov9kit.training.optim import WeightAverage, choose_recipe, make_optimizer, make_schedule
from yolov9kit.training.reports import LossValues
from yolov9kit.training.step import MicroBatch, TrainStep
from yolov9kit.types import Outputs, Targets

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
SIDE = 320


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> list[MicroBatch]:
    from PIL import Image

    folder = tmp_path_factory.mktemp("shapes")
    samples = []
    for seed in range(32):
        drawing = draw_shapes(seed, (SIDE, SIDE))
        Image.fromarray(drawing.pixels).save(folder / f"{seed}.png")
        samples.append(Sample(Path(folder, f"{seed}.png"), (SIDE, SIDE), drawing.boxes, drawing.labels))
    source = TrainBatches(samples, SIDE, 8, NO_AUGMENTATION, 0, pictures=PreparedPictures(samples, SIDE))
    return [
        (batch.images.cuda(), batch.targets.to("cuda"))
        for epoch in range(5)
        for batch in source.epoch(epoch, mosaic=False)
    ]


def run(
    batches: list[MicroBatch], precision: str, steps: int, rate: float | None = None, **options: bool
) -> tuple[list[LossValues], TrainStep]:
    """Steps with the rates of a schedule, or at ``rate`` until the fifth and at 0 after it."""
    device = choose_device("cuda")
    config = TrainConfig(data="x", optimizer="sgd", epochs=100, weight_decay=5e-4 if rate is None else 0.0)
    model = new_model("t", 3, 0).cuda()
    if precision != "fp32":
        model = model.to(memory_format=torch.channels_last)
    recipe = choose_recipe(config, 64, 4)
    schedule = make_schedule(config, recipe, 4)
    step = TrainStep(
        model,
        WeightAverage(model, 0.9999, 2000.0),
        make_optimizer(model, recipe),
        DetectionLoss(3),
        device,
        choose_precision(precision, device),
        10.0,
        **options,
    )
    if precision == "fp16":
        step.scale.value = 2.0**8
    losses = []
    for number in range(steps):
        schedule.apply(step.optimizer, number)
        if rate is not None:
            for group in step.optimizer.param_groups:
                group["lr"] = rate if number < 5 else 0.0
        result = step([batches[number % len(batches)]])
        assert result.fault is None or result.overflow
        losses.append(result.loss)
    return losses, step


@pytest.mark.parametrize(("precision", "within"), [("fp32", 1e-4), ("bf16", 0.02), ("fp16", 0.02)])
def test_m07_m09_a_replayed_step_equals_an_eager_one(
    batches: list[MicroBatch], precision: str, within: float
) -> None:
    # else two eager runs would part as well: sums of gradients come in any order
    eager, one = run(batches, precision, 10, deterministic=True)
    replayed, other = run(batches, precision, 10, deterministic=True, graph=True)
    for number, (a, b) in enumerate(zip(eager, replayed, strict=True)):
        assert b.total == pytest.approx(a.total, rel=within * (1 + number))  # roundings part the ways, slowly
    assert len({loss.total for loss in replayed}) == 10  # no step repeats an older one's casts or inputs
    for (key, a), b in zip(one.model.state_dict().items(), other.model.state_dict().values(), strict=True):
        if key.endswith("num_batches_tracked"):
            assert a.item() == b.item() == 10, key
        else:
            assert (a - b).norm() <= 10 * within * a.norm() + 1e-4, key


def test_fixed_norms_reach_the_replayed_step(batches: list[MicroBatch]) -> None:
    _, eager = run(batches, "fp32", 3, deterministic=True)
    _, graph = run(batches, "fp32", 3, deterministic=True, graph=True)
    graph.model.load_state_dict(eager.model.state_dict())
    kept = {name: buffer.clone() for name, buffer in graph.model.named_buffers()}
    for step in (eager, graph):
        step.fix_norms(True)
        for group in step.optimizer.param_groups:
            group["lr"] = 0.0
    for batch in batches[:2]:
        assert graph([batch]).loss.total == pytest.approx(eager([batch]).loss.total, rel=1e-4)
    assert all(torch.equal(buffer, kept[name]) for name, buffer in graph.model.named_buffers())


def test_two_gpus_equal_one(batches: list[MicroBatch]) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two NVIDIA GPUs")
    _, one = run(batches, "fp32", 1, deterministic=True)
    _, two = run(batches, "fp32", 1, deterministic=True)
    devices = choose_devices("0,1")
    two.others = OtherDevices(two.model, two.loss, devices[1:], two.precision, True)
    try:
        pairs = [step([batches[0], batches[1]]) for step in (one, two)]
    finally:
        two.others.close()
    assert pairs[1].loss.total == pytest.approx(pairs[0].loss.total, rel=1e-4)
    for (key, a), b in zip(one.model.state_dict().items(), two.model.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-5, msg=key)


def test_m08_a_rate_of_0_reaches_the_replayed_step(batches: list[MicroBatch]) -> None:
    _, five = run(batches, "bf16", 5, rate=0.01, graph=True)
    _, ten = run(batches, "bf16", 10, rate=0.01, graph=True)
    for a, b in zip(five.model.parameters(), ten.model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-3)
    _, more = run(batches, "bf16", 5, rate=0.01, graph=True)
    weights = [p.detach().clone() for p in more.model.parameters()]
    for group in more.optimizer.param_groups:
        group["lr"] = 0.0
    more([batches[0]])
    assert all(torch.equal(a, b) for a, b in zip(weights, more.model.parameters(), strict=True))


def test_other_numbers_of_targets_are_recorded_apart(batches: list[MicroBatch]) -> None:
    _, step = run(batches, "fp32", 2, graph=True)
    images, targets = batches[0]
    wider = Targets(
        torch.cat((targets.boxes, torch.zeros_like(targets.boxes)), 1),
        torch.cat((targets.labels, torch.full_like(targets.labels, -1)), 1),
    )
    for group in step.optimizer.param_groups:
        group["lr"] = 0.0
    a, b, c = (step([(images, t)]) for t in (targets, wider, targets))
    assert a.loss.total == pytest.approx(b.loss.total, rel=1e-5)
    assert a.grad_norm == pytest.approx(b.grad_norm, rel=1e-3)
    assert a.loss.total == pytest.approx(c.loss.total, rel=1e-5)


def test_w14_a_replayed_step_with_a_poisoned_weight_moves_nothing(batches: list[MicroBatch]) -> None:
    _, step = run(batches, "bf16", 3, graph=True)
    weight = step.model.backbone.conv1.conv.weight
    good = weight.detach().clone()
    state = copy.deepcopy(step.model.state_dict())
    with torch.no_grad():
        weight[0] = float("nan")
    result = step([batches[0]])
    assert result.fault == (
        "weight backbone.conv1.conv.weight",
        "has values that are not finite before the step",
    )
    with torch.no_grad():
        weight.copy_(good)
    assert all(torch.equal(v, state[k]) for k, v in step.model.state_dict().items())
    assert step([batches[0]]).fault is None


@pytest.mark.parametrize("precision", ["bf16", "fp16", "tf32"])
def test_n12_twenty_steps_in_half_precision_stay_beside_float32(
    batches: list[MicroBatch], precision: str
) -> None:
    exact, _ = run(batches, "fp32", 20)
    half, step = run(batches, precision, 20)
    assert {p.dtype for p in step.model.parameters()} == {torch.float32}
    for number, within in ((0, 0.02), (19, 0.10)):
        for kind in ("box", "cls", "dfl"):
            assert vars(half[number])[kind] == pytest.approx(vars(exact[number])[kind], rel=within)


def test_the_loss_on_a_gpu_is_that_of_the_processor() -> None:
    generator = torch.Generator().manual_seed(0)
    maps = tuple(torch.randn(4, 67, SIDE // s, SIDE // s, generator=generator) for s in (8, 16, 32))
    first = torch.rand(4, 20, 2, generator=generator) * 200
    targets = Targets(
        torch.cat((first, first + 10 + torch.rand(4, 20, 2, generator=generator) * 100), 2),
        torch.randint(-1, 3, (4, 20), generator=generator),
    )
    here = DetectionLoss(3)(Outputs(maps, None), targets)
    there = DetectionLoss(3)(Outputs(tuple(m.cuda() for m in maps), None), targets.to("cuda"))
    for a, b in zip(here, there, strict=True):
        assert b.item() == pytest.approx(a.item(), rel=1e-4)


def test_the_loss_never_waits_for_the_host(batches: list[MicroBatch]) -> None:
    images, targets = batches[0]
    model = new_model("t", 3, 0).cuda()
    loss = DetectionLoss(3)
    loss(model(images.float() / 255), targets).total.backward()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss(model(images.float() / 255), targets).total.backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_deterministic_runs_give_the_same_bits(batches: list[MicroBatch]) -> None:
    (_, one), (_, other) = (run(batches, "bf16", 6, deterministic=True, graph=True) for _ in range(2))
    assert all(
        torch.equal(a, b)
        for a, b in zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True)
    )
    assert torch.backends.cudnn.enabled
    assert not torch.backends.cudnn.deterministic
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_model_copied_to_the_processor_scores_alike(batches: list[MicroBatch]) -> None:
    _, step = run(batches, "fp32", 3)
    images, _ = batches[0]
    model = copy.deepcopy(step.model).eval()
    with torch.no_grad():
        there = model(images.float() / 255).main
        here = model.cpu()(images.cpu().float() / 255).main
    for a, b in zip(here, there, strict=True):
        torch.testing.assert_close(b.cpu(), a, rtol=1e-3, atol=1e-3)
