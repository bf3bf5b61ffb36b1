"""Groups dealt to sides: whole groups, shares near the wish, no class forgotten, the same every time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolov9kit.rewrite.stratify import stratify


@st.composite
def dealt(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    groups, classes = draw(st.integers(1, 40)), draw(st.integers(1, 5))
    sizes = np.array(draw(st.lists(st.integers(1, 4), min_size=groups, max_size=groups)))
    share = st.integers(0, 4)
    presence = np.array(
        draw(st.lists(st.lists(share, min_size=classes, max_size=classes), min_size=groups, max_size=groups))
    )
    shares = draw(st.sampled_from([(0.8, 0.2, 0.0), (0.7, 0.2, 0.1), (0.5, 0.5, 0.0), (0.9, 0.0, 0.1)]))
    return np.minimum(presence, sizes[:, None]), sizes, np.array(shares), draw(st.integers(0, 9))


@settings(max_examples=60, deadline=None)
@given(dealt())
def test_every_group_gets_one_of_the_sides_and_the_same_each_time(
    case: tuple[np.ndarray, np.ndarray, np.ndarray, int],
) -> None:
    presence, sizes, shares, seed = case
    sides = stratify(presence, sizes, shares, seed)
    assert set(sides.tolist()) <= set(np.flatnonzero(shares).tolist())
    assert (stratify(presence, sizes, shares, seed) == sides).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 60), st.floats(0.05, 0.5))
def test_a_class_of_two_or_more_groups_is_on_both_sides(seed: int, groups: int, val: float) -> None:
    """Where classes do not share pictures nothing stands in the way."""
    random = np.random.default_rng(seed)
    label = random.integers(0, 4, groups)
    presence = np.eye(4, dtype=np.int64)[label]
    sides = stratify(presence, np.ones(groups, np.int64), np.array((1 - val, val, 0)), seed)
    for c in range(4):
        if (label == c).sum() > 1:
            assert set(sides[label == c].tolist()) == {0, 1}


def test_two_groups_of_a_class_go_to_train_and_val_before_test() -> None:
    presence = np.array([[1]] * 2)
    sides = stratify(presence, np.ones(2, np.int64), np.array((0.6, 0.2, 0.2)), 0)
    assert sorted(sides.tolist()) == [0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_shares_are_near_the_wish(seed: int) -> None:
    random = np.random.default_rng(seed)
    presence = (random.random((400, 5)) < (0.9, 0.5, 0.2, 0.05, 0.02)).astype(np.int64)
    shares = np.array((0.7, 0.2, 0.1))
    sides = stratify(presence, np.ones(400, np.int64), shares, seed)
    for side, share in enumerate(shares):
        there = sides == side
        assert abs(there.mean() - share) < 0.02
        wanted = presence.sum(0) * share
        assert (np.abs(presence[there].sum(0) - wanted) <= np.maximum(2, 0.1 * wanted)).all()


def test_another_seed_deals_otherwise() -> None:
    presence = np.ones((50, 1), np.int64)
    dealt = {tuple(stratify(presence, np.ones(50, np.int64), np.array((0.8, 0.2, 0)), s)) for s in range(5)}
    assert len(dealt) == 5


def test_a_class_that_only_large_groups_could_carry_is_not_forgotten() -> None:
    """Both classes are in the same two groups: dealing the rarer one out first settles the other."""
    presence = np.array([[1, 1], [1, 1], [0, 1], [0, 1], [0, 1]])
    sides = stratify(presence, np.ones(5, np.int64), np.array((0.8, 0.2, 0)), 0)
    assert {side for side, row in zip(sides.tolist(), presence, strict=True) if row[0]} == {0, 1}
