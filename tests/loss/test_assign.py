"""The assigner: who answers for whom, and how strongly. Held against a plain double loop in float64."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from yolov9kit.geometry import ciou
from yolov9kit.loss.assign import ALPHA, BETA, TOP_K, assign
from yolov9kit.types import Targets

POINTS = torch.tensor([(x + 4.0, y + 4.0) for y in range(0, 64, 8) for x in range(0, 64, 8)])


def plain(logits: torch.Tensor, boxes: torch.Tensor, targets: Targets) -> tuple[list[int], list[float]]:
    """One picture, said in the words of the rule."""
    real = [j for j, label in enumerate(targets.labels[0].tolist()) if label >= 0]
    overlap = {
        (j, a): max(0.0, ciou(targets.boxes[0, j], boxes[0, a]).item())
        for j in real
        for a in range(len(POINTS))
    }
    metric = {
        (j, a): (1 / (1 + math.exp(-logits[0, targets.labels[0, j], a].item()))) ** ALPHA * o**BETA
        for (j, a), o in overlap.items()
    }
    chosen: dict[int, set[int]] = {j: set() for j in real}
    for j in real:
        x1, y1, x2, y2 = targets.boxes[0, j].tolist()
        inside = [a for a, (x, y) in enumerate(POINTS.tolist()) if min(x - x1, y - y1, x2 - x, y2 - y) > 1e-9]
        best = sorted(inside, key=lambda a: -metric[j, a])[:TOP_K]
        chosen[j] = {a for a in best if metric[j, a] > 0}
    owner = {}
    for a in range(len(POINTS)):
        claims = [j for j in real if a in chosen[j]]
        if claims:
            owner[a] = claims[0] if len(claims) == 1 else max(real, key=lambda j: (overlap[j, a], -j))
    weights = [0.0] * len(POINTS)
    for a, j in owner.items():
        mine = [b for b, k in owner.items() if k == j]
        largest_metric, largest_overlap = (max(t[j, b] for b in mine) for t in (metric, overlap))
        weights[a] = metric[j, a] * largest_overlap / (largest_metric + 1e-9)
    return [owner.get(a, 0) for a in range(len(POINTS))], weights


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 6))
def test_equals_the_rule_said_in_words(seed: int, objects: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(1, 3, len(POINTS), generator=generator)
    size = torch.rand(len(POINTS), 2, generator=generator) * 24 + 2
    boxes = torch.cat((POINTS - size, POINTS + size), 1)[None]
    first = torch.rand(1, objects, 2, generator=generator) * 40
    targets = Targets(
        torch.cat((first, first + 4 + torch.rand(1, objects, 2, generator=generator) * 24), 2),
        torch.randint(-1, 3, (1, objects), generator=generator),
    )
    owner, weight = plain(logits, boxes, targets)
    found = assign(logits, boxes, POINTS, targets)
    assert found.weight[0].tolist() == pytest.approx(weight, rel=1e-3, abs=1e-7)
    assert [t for t, w in zip(found.target[0].tolist(), weight, strict=True) if w] == [
        t for t, w in zip(owner, weight, strict=True) if w
    ]


def test_no_point_answers_for_an_empty_slot() -> None:
    boxes = torch.cat((POINTS - 8, POINTS + 8), 1)[None]
    targets = Targets(torch.tensor([[[8.0, 8, 40, 40], [8, 8, 40, 40]]]), torch.tensor([[-1, -1]]))
    assert assign(torch.zeros(1, 2, len(POINTS)), boxes, POINTS, targets).weight.sum() == 0


def test_a_perfect_prediction_has_strength_1() -> None:
    target = torch.tensor([16.0, 16, 48, 48])
    boxes = target.expand(1, len(POINTS), 4)
    found = assign(
        torch.full((1, 1, len(POINTS)), 50.0),
        boxes,
        POINTS,
        Targets(target[None, None], torch.zeros(1, 1, dtype=torch.int64)),
    )
    assert found.weight.max().item() == pytest.approx(1, abs=1e-5)
    assert (found.weight > 0).sum() == TOP_K
