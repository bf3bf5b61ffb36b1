"""The loss against the reference values, and its properties: padding, halves, empty batches, parts of a batch."""

import json
import zlib
from pathlib import Path

import pytest
import torch
from torch import Tensor

from yolov9kit.geometry import ciou
from yolov9kit.loss.criterion import DetectionLoss, Normaliser
from yolov9kit.types import LossParts, Outputs, Targets

REFERENCE = Path(__file__).parents[3] / "shared" / "parity" / "loss.json"
HEIGHT, WIDTH, CLASSES = 128, 160, 5
CASES = ("plain", "one-empty", "all-empty", "crowded")


def random_maps(name: str, pictures: int, classes: int = CLASSES) -> tuple[Tensor, Tensor, Tensor]:
    """Maps from a seed that each level's name gives."""
    maps = []
    for stride in (8, 16, 32):
        generator = torch.Generator().manual_seed(zlib.crc32(f"{name}/{stride}".encode()))
        level = torch.randn(pictures, 64 + classes, HEIGHT // stride, WIDTH // stride, generator=generator)
        level[:, 64:] -= 2
        maps.append(level.requires_grad_())
    return maps[0], maps[1], maps[2]


def targets_of(rows: list[list[float]], pictures: int, padding: int = 0) -> Targets:
    """Rows of picture, class, cx, cy, w, h (normalised) as padded targets, in the order of the rows."""
    of_picture: list[list[list[float]]] = [[row for row in rows if row[0] == i] for i in range(pictures)]
    slots = max(map(len, of_picture), default=0) + padding
    boxes, labels = torch.zeros(pictures, slots, 4), torch.full((pictures, slots), -1)
    scale = torch.tensor([WIDTH, HEIGHT, WIDTH, HEIGHT])
    for picture, its_rows in enumerate(of_picture):
        for slot, row in enumerate(its_rows):
            centre, size = (torch.tensor(row[2:]) * scale).split(2)
            boxes[picture, slot] = torch.cat((centre - size / 2, centre + size / 2))
            labels[picture, slot] = int(row[1])
    return Targets(boxes, labels)


def some_targets(pictures: int = 3) -> Targets:
    rows = [[i % pictures, i % CLASSES, 0.2 + 0.05 * i, 0.3 + 0.04 * i, 0.3, 0.4] for i in range(9)]
    return targets_of(rows, pictures)


def gradients(parts: LossParts, maps: tuple[Tensor, ...]) -> list[Tensor]:
    return list(torch.autograd.grad(parts.total, maps))


@pytest.fixture(scope="module")
def reference() -> dict:
    if not REFERENCE.is_file():
        pytest.skip(f"{REFERENCE} is not here")
    return json.loads(REFERENCE.read_text())["cases"]


@pytest.mark.parametrize("padding", [0, 5])
@pytest.mark.parametrize("form", ["single", "dual"])
@pytest.mark.parametrize("name", CASES)
def test_equals_the_reference(reference: dict, name: str, form: str, padding: int) -> None:
    case, wanted = reference[name], reference[name][form]
    main = random_maps(f"{name}/main", case["batch"])
    aux = random_maps(f"{name}/aux", case["batch"]) if form == "dual" else None
    parts = DetectionLoss(CLASSES)(Outputs(main, aux), targets_of(case["targets"], case["batch"], padding))
    # where a target has too few points that overlap it, the reference lets the platform's sort order decide; here
    # points without overlap are never chosen, which is the same on every device
    tolerance = 2e-3 if name == "crowded" else 1e-6
    assert parts.total.item() == pytest.approx(wanted["total"], rel=tolerance)
    assert [part.item() for part in parts[1:]] == pytest.approx(wanted["box_cls_dfl"], rel=tolerance)
    norms = [g.double().norm().item() for g in gradients(parts, main if aux is None else (*main, *aux))]
    expected = wanted["grad_norm"] if aux is None else wanted["grad_norm_main"] + wanted["grad_norm_aux"]
    assert norms == pytest.approx(expected, rel=tolerance)


def test_padding_changes_no_bit() -> None:
    maps = random_maps("padding", 3)
    targets = some_targets()
    results = []
    for extra in (0, 1, 40):
        padded = Targets(
            torch.cat((targets.boxes, torch.zeros(3, extra, 4)), 1),
            torch.cat((targets.labels, torch.full((3, extra), -1)), 1),
        )
        parts = DetectionLoss(CLASSES)(Outputs(maps, None), padded)
        results.append([*parts, *gradients(parts, maps)])
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_what_stands_in_an_empty_slot_does_not_matter() -> None:
    maps, targets = random_maps("slots", 3), some_targets()
    empty = targets.labels < 0
    assert not empty.any()
    extended = Targets(
        torch.cat((targets.boxes, torch.tensor([10.0, 10.0, 90.0, 90.0]).expand(3, 2, 4)), 1),
        torch.cat((targets.labels, torch.full((3, 2), -1)), 1),
    )
    one, other = (DetectionLoss(CLASSES)(Outputs(maps, None), t) for t in (targets, extended))
    assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("slots", [0, 4])
def test_n03_a_batch_without_objects(slots: int) -> None:
    main, aux = random_maps("none/main", 2), random_maps("none/aux", 2)
    targets = Targets(torch.zeros(2, slots, 4), torch.full((2, slots), -1))
    parts = DetectionLoss(CLASSES)(Outputs(main, aux), targets)
    assert parts.box.item() == 0
    assert parts.dfl.item() == 0
    assert parts.cls.item() > 0
    found = gradients(parts, (*main, *aux))
    assert all(torch.isfinite(g).all() for g in found)
    assert all(g[:, 64:].abs().sum() > 0 for g in found)


def test_d09_a_box_without_size_leaves_everything_finite() -> None:
    maps = random_maps("flat", 1)
    flat = Targets(
        torch.tensor([[[40.0, 40, 40, 80], [20, 30, 60, 30], [50, 50, 50, 50], [8, 8, 60, 70]]]),
        torch.tensor([[0, 1, 2, 3]]),
    )
    parts = DetectionLoss(CLASSES)(Outputs(maps, None), flat)
    assert all(torch.isfinite(part) for part in parts)
    assert all(torch.isfinite(g).all() for g in gradients(parts, maps))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_maps_are_scored_in_float32(dtype: torch.dtype) -> None:
    maps = tuple(level.detach().to(dtype).requires_grad_() for level in random_maps("half", 3))
    parts = DetectionLoss(CLASSES)(Outputs(maps, None), some_targets())
    assert all(part.dtype == torch.float32 for part in parts)
    exact = DetectionLoss(CLASSES)(Outputs(tuple(m.float() for m in maps), None), some_targets())
    assert all(torch.equal(a, b) for a, b in zip(parts, exact, strict=True))
    assert all(torch.isfinite(g).all() for g in gradients(parts, maps))


def test_autocast_around_it_changes_nothing() -> None:
    maps, targets = random_maps("autocast", 3), some_targets()
    plain = DetectionLoss(CLASSES)(Outputs(maps, None), targets)
    with torch.autocast("cpu", torch.bfloat16):
        inside = DetectionLoss(CLASSES)(Outputs(maps, None), targets)
    assert all(torch.equal(a, b) for a, b in zip(plain, inside, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_n01_a_box_has_ciou_1_with_itself(dtype: torch.dtype) -> None:
    boxes = torch.tensor([[10.0, 20, 110, 220], [0, 0, 640, 640], [3, 3, 4, 4]], dtype=dtype)
    own = boxes.clone().requires_grad_()
    value = ciou(own, boxes)
    assert value.tolist() == pytest.approx([1, 1, 1], abs=1e-3)
    (gradient,) = torch.autograd.grad(value.sum(), own)
    assert torch.isfinite(gradient).all()


def test_parts_of_a_batch_add_up_to_it() -> None:
    main, aux = random_maps("parts/main", 4), random_maps("parts/aux", 4)
    targets, loss = some_targets(4), DetectionLoss(CLASSES)
    whole = loss(Outputs(main, aux), targets)
    cuts = [slice(0, 1), slice(1, 4)]
    pieces = [
        (Outputs(tuple(m[c] for m in main), tuple(m[c] for m in aux)), Targets(*(t[c] for t in targets)))
        for c in cuts
    ]
    each = [loss.strengths(*piece) for piece in pieces]
    normaliser = Normaliser(
        sum(e.main for e in each), sum(e.aux for e in each), sum(e.pictures for e in each)
    )
    parts = [loss(*piece, normaliser) for piece in pieces]
    for kind, value in enumerate(whole):
        assert sum(part[kind].item() for part in parts) == pytest.approx(value.item(), rel=1e-5)
    grown = torch.autograd.grad(sum(part.total for part in parts), (*main, *aux))
    for one, other in zip(gradients(whole, (*main, *aux)), grown, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-7)


def test_crowded_batches_are_taken_in_parts_without_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    maps, targets = random_maps("chunks", 3), some_targets()
    whole = DetectionLoss(CLASSES)(Outputs(maps, None), targets)
    monkeypatch.setattr("yolov9kit.loss.assign._MOST_PAIRS", 1)
    one_by_one = DetectionLoss(CLASSES)(Outputs(maps, None), targets)
    assert all(torch.equal(a, b) for a, b in zip(whole, one_by_one, strict=True))


def test_gains_and_the_auxiliary_weight_are_factors() -> None:
    main, aux, targets = random_maps("gains/main", 3), random_maps("gains/aux", 3), some_targets()
    plain = DetectionLoss(CLASSES, 1.0, 1.0, 1.0, aux_weight=0.0)(Outputs(main, aux), targets)
    single = DetectionLoss(CLASSES, 1.0, 1.0, 1.0)(Outputs(main, None), targets)
    assert [p.item() for p in plain] == pytest.approx([p.item() for p in single])
    other = DetectionLoss(CLASSES, 2.0, 3.0, 4.0, aux_weight=0.0)(Outputs(main, aux), targets)
    assert [o.item() / p.item() for o, p in zip(other[1:], plain[1:], strict=True)] == pytest.approx(
        [2, 3, 4]
    )


@pytest.mark.parametrize(
    ("classes", "boxes", "labels", "complaint"),
    [
        (4, (3, 2, 4), (3, 2), "5 classes, this loss is for 4"),
        (5, (2, 2, 4), (2, 2), "do not fit a batch of 3"),
        (5, (3, 1, 4), (3, 2), "do not fit a batch of 3"),
    ],
)
def test_shapes_that_do_not_fit_are_named(
    classes: int, boxes: tuple[int, ...], labels: tuple[int, ...], complaint: str
) -> None:
    targets = Targets(torch.zeros(boxes), torch.zeros(labels, dtype=torch.int64))
    with pytest.raises(ValueError, match=complaint):
        DetectionLoss(classes)(Outputs(random_maps("wrong", 3), None), targets)
