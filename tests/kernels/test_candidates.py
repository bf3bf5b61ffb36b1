"""The best locations, against a sort of all of them."""

from math import prod

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from yolov9kit.cuda_graph import capture
from yolov9kit.kernels.candidates import Chosen, best_locations

Found = list[tuple[list[float], float, int]]
"""Box, score and label of each location found, the best first."""


@st.composite
def maps(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Boxes and scores of one or three pictures, with many equal scores."""
    shape = draw(st.sampled_from([1, 3])), draw(st.integers(1, 12)), draw(st.integers(1, 4))
    values = draw(st.sampled_from([[0.0, 0.25, 0.5, 1.0], [0.1, 0.1000001, 1e-30, 1e-45, 0.9999999]]))
    flat = draw(st.lists(st.sampled_from(values), min_size=prod(shape), max_size=prod(shape)))
    scores = torch.tensor(flat, dtype=torch.float32).reshape(shape)
    return torch.arange(shape[0] * shape[1] * 4.0).reshape(*shape[:2], 4) - 9, scores


def sorted_by_hand(boxes: Tensor, scores: Tensor, min_score: float, classes: list[bool]) -> list[Found]:
    """Best class first, then the floor and the classes wanted, then a stable sort; per picture."""
    found: list[Found] = []
    for rows, values in zip(boxes.tolist(), scores.numpy(), strict=True):
        labels = values.argmax(axis=1)
        best = values[np.arange(len(values)), labels]
        kept = [i for i in range(len(best)) if best[i] > np.float32(min_score) and classes[labels[i]]]
        kept.sort(key=lambda i: -best[i])
        found.append([(rows[i], float(best[i]), int(labels[i])) for i in kept])
    return found


def as_lists(chosen: Chosen) -> list[Found]:
    rows = zip(chosen.boxes, chosen.scores, chosen.labels, chosen.valid, strict=True)
    return [
        list(zip(boxes[valid].tolist(), scores[valid].tolist(), labels[valid].tolist(), strict=True))
        for boxes, scores, labels, valid in rows
    ]


@settings(deadline=None, max_examples=200)
@given(maps(), st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), st.integers(1, 15), st.data())
def test_the_best_are_those_of_a_stable_sort(
    given_maps: tuple[Tensor, Tensor], min_score: float, slots: int, data: st.DataObject
) -> None:
    boxes, scores = given_maps
    classes = data.draw(st.lists(st.booleans(), min_size=scores.shape[2], max_size=scores.shape[2]))
    chosen = best_locations(boxes, scores, torch.tensor(min_score), slots, torch.tensor(classes))
    wanted = sorted_by_hand(boxes, scores, min_score, classes)
    assert as_lists(chosen) == [found[:slots] for found in wanted]
    assert chosen.found.tolist() == [len(found) for found in wanted]
    assert chosen.finite.all()
    assert chosen.valid.shape[1] == min(slots, scores.shape[1])
    for rest in (chosen.boxes, chosen.scores, chosen.labels):
        assert not rest[~chosen.valid].any()
    assert (chosen.valid.long().diff(dim=1) <= 0).all()  # those that hold something come first
    if all(classes):
        everything = best_locations(boxes, scores, torch.tensor(min_score), slots)
        assert all(torch.equal(a, b) for a, b in zip(chosen, everything, strict=True))


def test_a_second_best_class_does_not_count() -> None:
    scores = torch.tensor([[[0.9, 0.8], [0.2, 0.6]]])
    chosen = best_locations(torch.ones(1, 2, 4), scores, torch.tensor(0.1), 2, torch.tensor([False, True]))
    assert chosen.valid.tolist() == [[True, False]] and chosen.scores[0, 0] == scores[0, 1, 1]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_picture_with_numbers_that_are_not_finite_is_named(bad: float) -> None:
    boxes, scores = torch.ones(3, 5, 4), torch.full((3, 5, 2), 0.5)
    boxes[0, 4, 3] = bad
    scores[2, 1] = bad
    chosen = best_locations(boxes, scores, torch.tensor(0.1), 2)
    assert chosen.finite.tolist() == [False, True, False]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_on_the_gpu_one_recording_serves_all_thresholds() -> None:
    """With 2,100 locations, 80 classes and scores of few values, as on a processor."""

    def choose(boxes: Tensor, scores: Tensor, min_score: Tensor, classes: Tensor) -> Chosen:
        return best_locations(boxes, scores, min_score, 300, classes)

    boxes = torch.rand(4, 2100, 4) * 640
    rounds = [((torch.rand(4, 2100, 80) ** 8 * 50).round() / 50, floor) for floor in (0.1, 0.5, 0.96)]
    classes = torch.arange(80) % 3 != 0
    examples = (boxes, torch.rand(4, 2100, 80), torch.tensor(0.2), torch.ones(80, dtype=torch.bool))
    recorded = capture(choose, tuple(example.cuda() for example in examples))
    for scores, floor in rounds:
        inputs = (boxes, scores, torch.tensor(floor), classes)
        wanted = choose(*inputs)
        chosen = recorded(*(part.cuda() for part in inputs))
        assert wanted.valid.any()
        assert all(torch.equal(a.cpu(), b) for a, b in zip(chosen, wanted, strict=True))
