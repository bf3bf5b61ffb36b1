"""Random weights whose scores spread."""

import torch

from yolov9kit import untrained


def test_seeded_and_spread() -> None:
    a, b, other = untrained(["x", "y"], seed=1), untrained(["x", "y"], seed=1), untrained(["x", "y"], seed=2)
    assert all(torch.equal(p, q) for p, q in zip(a.model.parameters(), b.model.parameters(), strict=True))
    assert not torch.equal(a.model.backbone.conv1.conv.weight, other.model.backbone.conv1.conv.weight)
    with torch.inference_mode():
        logits = a.model(torch.rand(1, 3, 128, 128)).main[0][:, 64:]
    assert torch.isfinite(logits).all() and logits.std() > 0.1
    assert "random weights: the boxes mean nothing" in a.report.notes


def test_leaves_the_random_state_alone() -> None:
    before = torch.random.get_rng_state()
    untrained(["x"])
    assert torch.equal(before, torch.random.get_rng_state())
