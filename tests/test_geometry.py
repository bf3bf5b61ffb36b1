"""Boxes as pure functions: there and back, IoU, anchor points, and NMS against a slow loop."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from yolov9kit.geometry import anchor_points, area, cxcywh_to_xyxy, iou_matrix, nms, xyxy_to_cxcywh

# Quarter pixels up to 64: their products are exact in float32, so that the slow loop and the fast code divide
# the same two numbers and must come to the same decision on any machine.
QUARTERS = st.integers(0, 256).map(lambda n: n / 4)


@st.composite
def boxes(draw: st.DrawFn, max_size: int = 24) -> Tensor:
    """Boxes of any kind, empty ones and those turned inside out too."""
    rows = draw(st.lists(st.tuples(QUARTERS, QUARTERS, QUARTERS, QUARTERS), max_size=max_size))
    return torch.tensor(rows, dtype=torch.float32).reshape(-1, 4)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor]:
    """Boxes that overlap a lot, with scores of few values, so that there are ties, and labels."""
    rows = draw(st.lists(st.tuples(*[st.integers(0, 40)] * 2, *[st.integers(0, 40)] * 2), max_size=24))
    n = len(rows)
    corners = torch.tensor(rows, dtype=torch.float32).reshape(-1, 4)
    sizes = draw(st.sampled_from([0.25, 1.0]))
    found = torch.cat((corners[:, :2], corners[:, :2] + corners[:, 2:] * sizes), dim=1)
    scores = draw(st.lists(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.9]), min_size=n, max_size=n))
    labels = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return found, torch.tensor(scores, dtype=torch.float32), torch.tensor(labels, dtype=torch.int64)


def slow_iou(a: list[float], b: list[float]) -> np.float32:
    """One pair, in the order of operations of the definition, each result rounded to float32."""
    f = np.float32
    width = max(f(0), min(f(a[2]), f(b[2])) - max(f(a[0]), f(b[0])))
    height = max(f(0), min(f(a[3]), f(b[3])) - max(f(a[1]), f(b[1])))
    both = f(width * height)
    areas = [f(max(f(0), f(c[2]) - f(c[0])) * max(f(0), f(c[3]) - f(c[1]))) for c in (a, b)]
    union = f(areas[0] + areas[1]) - both
    return f(both / union) if union > 0 else f(0)


def slow_nms(found: Tensor, scores: Tensor, labels: Tensor, max_iou: float, agnostic: bool) -> list[int]:
    """The definition: take the best that is left, drop what overlaps it by more, again."""
    rows, values, classes = found.tolist(), scores.tolist(), labels.tolist()
    left = sorted(range(len(rows)), key=lambda i: (-values[i], i))
    kept = []
    while left:
        best = left.pop(0)
        kept.append(best)
        rivals = [i for i in left if agnostic or classes[i] == classes[best]]
        fallen = {i for i in rivals if slow_iou(rows[best], rows[i]) > np.float32(max_iou)}
        left = [i for i in left if i not in fallen]
    return kept


# --- formats


@settings(deadline=None)
@given(boxes())
def test_there_and_back(corners: Tensor) -> None:
    torch.testing.assert_close(cxcywh_to_xyxy(xyxy_to_cxcywh(corners)), corners, atol=0, rtol=0)
    torch.testing.assert_close(xyxy_to_cxcywh(cxcywh_to_xyxy(corners)), corners, atol=0, rtol=0)


def test_known_values_and_leading_dimensions() -> None:
    corners = torch.tensor([[[10.0, 20.0, 30.0, 60.0]]]).expand(2, 3, 4)
    assert xyxy_to_cxcywh(corners)[1, 2].tolist() == [20, 40, 20, 40]
    assert area(corners).shape == (2, 3) and area(corners)[0, 0] == 800


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_results_are_float32_whatever_comes(dtype: torch.dtype) -> None:
    corners = torch.tensor([[0.0, 0.0, 512.0, 512.0]], dtype=dtype)
    for result in (
        cxcywh_to_xyxy(corners),
        xyxy_to_cxcywh(corners),
        area(corners),
        iou_matrix(corners, corners),
    ):
        assert result.dtype == torch.float32
    assert area(corners).item() == 512 * 512  # more than float16 can hold


# --- IoU


@settings(deadline=None)
@given(boxes(), boxes())
def test_iou_is_symmetric_between_0_and_1_and_equal_to_the_definition(a: Tensor, b: Tensor) -> None:
    iou = iou_matrix(a, b)
    assert iou.shape == (len(a), len(b))
    assert torch.equal(iou, iou_matrix(b, a).T)
    assert ((iou >= 0) & (iou <= 1)).all()
    for i, first in enumerate(a.tolist()):
        for j, second in enumerate(b.tolist()):
            assert iou[i, j].item() == float(slow_iou(first, second))


@settings(deadline=None)
@given(boxes())
def test_iou_with_itself_is_1_and_of_an_empty_box_0(corners: Tensor) -> None:
    expected = (area(corners) > 0).float()
    assert torch.equal(iou_matrix(corners, corners).diagonal(), expected)


def test_iou_of_extremes_is_never_nan() -> None:
    extremes = torch.tensor(
        [
            [0, 0, 0, 0],
            [5, 5, 1, 1],
            [-1e20, -1e20, 1e20, 1e20],
            [0, 0, 1e-20, 1e-20],
            [7, 7, 7, 9],
            [0, 0, 1e-20, 1],
        ]
    )
    iou = iou_matrix(extremes, extremes)
    assert torch.isfinite(iou).all() and ((iou >= 0) & (iou <= 1)).all()
    assert iou[5, 5] == 1  # thin, but a box


# --- anchor points


def test_anchor_points_are_cell_centres_row_by_row_level_after_level() -> None:
    points, strides = anchor_points([(2, 3), (1, 2)], (8, 16))
    assert points.tolist() == [
        *([0.5, 0.5], [1.5, 0.5], [2.5, 0.5], [0.5, 1.5], [1.5, 1.5], [2.5, 1.5]),
        *([0.5, 0.5], [1.5, 0.5]),
    ]
    assert strides.squeeze(1).tolist() == [8] * 6 + [16] * 2
    assert points.dtype == strides.dtype == torch.float32


def test_anchor_points_of_640_are_8400() -> None:
    points, strides = anchor_points([(80, 80), (40, 40), (20, 20)], (8, 16, 32))
    assert points.shape == (8400, 2) and strides.shape == (8400, 1)
    pixels = points * strides
    assert pixels.min() == 4 and pixels.max() == 636
    with pytest.raises(ValueError, match="zip"):
        anchor_points([(2, 2)], (8, 16))


# --- NMS

THRESHOLDS = st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.45, 0.5, 0.7, 0.9, 1.0])


@settings(max_examples=200, deadline=None)
@given(scenes(), THRESHOLDS, st.booleans())
def test_nms_equals_the_slow_loop(
    scene: tuple[Tensor, Tensor, Tensor], max_iou: float, agnostic: bool
) -> None:
    assert nms(*scene, max_iou, agnostic).tolist() == slow_nms(*scene, max_iou, agnostic)


@settings(deadline=None)
@given(scenes(), THRESHOLDS, st.booleans(), st.randoms(use_true_random=False))
def test_nms_does_not_depend_on_the_order(
    scene: tuple[Tensor, Tensor, Tensor], max_iou: float, agnostic: bool, shuffler: object
) -> None:
    """With different scores: of boxes with equal ones the first stays, and the order decides."""
    corners, _, labels = scene
    scores = torch.linspace(0.9, 0.1, len(corners))
    order = torch.tensor(
        np.random.default_rng(shuffler.randrange(2**32)).permutation(len(corners)), dtype=torch.int64
    )  # type: ignore[attr-defined]
    kept = nms(corners, scores, labels, max_iou, agnostic)
    again = nms(corners[order], scores[order], labels[order], max_iou, agnostic)
    assert order[again].tolist() == kept.tolist()


@settings(deadline=None)
@given(scenes(), THRESHOLDS)
def test_one_class_is_the_same_as_agnostic(scene: tuple[Tensor, Tensor, Tensor], max_iou: float) -> None:
    corners, scores, labels = scene
    same = torch.zeros_like(labels)
    assert torch.equal(
        nms(corners, scores, same, max_iou), nms(corners, scores, labels, max_iou, agnostic=True)
    )


@settings(deadline=None)
@given(scenes(), THRESHOLDS)
def test_survivors_do_not_overlap_and_the_fallen_do(
    scene: tuple[Tensor, Tensor, Tensor], max_iou: float
) -> None:
    corners, scores, labels = scene
    kept = nms(corners, scores, labels, max_iou)
    assert (scores[kept].diff() <= 0).all()
    same_class = labels[:, None] == labels[None, :]
    overlap = (
        (iou_matrix(corners, corners) > max_iou) & same_class & ~torch.eye(len(corners), dtype=torch.bool)
    )
    assert not overlap[kept][:, kept].any()
    fallen = sorted(set(range(len(corners))) - set(kept.tolist()))
    better = scores[kept][None, :] >= scores[fallen][:, None]
    assert (overlap[fallen][:, kept] & better).any(dim=1).all()


@pytest.mark.parametrize("agnostic", [False, True])
def test_nothing_gives_nothing(agnostic: bool) -> None:
    kept = nms(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, dtype=torch.int64), 0.5, agnostic)
    assert kept.shape == (0,) and kept.dtype == torch.int64


@pytest.mark.parametrize("agnostic", [False, True])
def test_of_equal_boxes_with_equal_scores_the_first_stays(agnostic: bool) -> None:
    corners = torch.tensor([[0.0, 0.0, 10.0, 10.0]] * 50)
    labels = torch.arange(50) % 2
    kept = nms(corners, torch.full((50,), 0.5), labels, 0.5, agnostic)
    assert kept.tolist() == ([0] if agnostic else [0, 1])


@pytest.mark.parametrize("agnostic", [False, True])
def test_degenerate_boxes_suppress_nothing(agnostic: bool) -> None:
    corners = torch.tensor([[5.0, 5, 5, 5], [5, 5, 5, 5], [9, 9, 1, 1], [9, 9, 1, 1], [0, 3, 10, 3]])
    kept = nms(
        corners, torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5]), torch.zeros(5, dtype=torch.int64), 0.0, agnostic
    )
    assert kept.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("share", [(1, 2), (1, 3), (1, 10), (7, 10), (3, 5), (9, 20)])
@pytest.mark.parametrize("agnostic", [False, True])
def test_an_overlap_of_exactly_the_threshold_is_allowed(share: tuple[int, int], agnostic: bool) -> None:
    part, whole = share
    corners = torch.tensor([[0.0, 0, whole, 1], [0, 0, part, 1]])
    scores, labels = torch.tensor([0.9, 0.8]), torch.zeros(2, dtype=torch.int64)
    assert nms(corners, scores, labels, part / whole, agnostic).tolist() == [0, 1]
    assert nms(corners, scores, labels, part / whole - 1e-6, agnostic).tolist() == [0]


def test_far_away_classes_decide_as_near_ones() -> None:
    """Boxes shifted apart by class would be rounded: 80 classes x 7680 pixels leave 1/16 pixel of float32."""
    a, b = [1000.03, 1000.03, 1010.03, 1010.03], [1000.03, 1000.03, 1010.03, 1007.05]
    corners, scores = torch.tensor([a, b]), torch.tensor([0.9, 0.8])
    exact = iou_matrix(corners[:1], corners[1:]).item()
    for label in (0, 79):
        labels = torch.full((2,), label)
        assert nms(corners, scores, labels, exact + 1e-5).tolist() == [0, 1]
        assert nms(corners, scores, labels, exact - 1e-5).tolist() == [0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_input_is_computed_in_float32(dtype: torch.dtype) -> None:
    corners = torch.tensor(
        [[0.0, 0, 400, 400], [0, 0, 400, 300]], dtype=dtype
    )  # areas that float16 cannot hold
    scores, labels = torch.tensor([0.9, 0.8], dtype=dtype), torch.zeros(2, dtype=torch.int64)
    assert nms(corners, scores, labels, 0.76).tolist() == [0, 1]
    assert nms(corners, scores, labels, 0.74).tolist() == [0]
