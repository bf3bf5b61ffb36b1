"""Raw maps to boxes and scores."""

import pytest
import torch

from yolov9kit.model.decode import decode


def maps_with(
    side_bins: tuple[int, int, int, int], size: int = 64, classes: int = 2
) -> tuple[torch.Tensor, ...]:
    """Maps whose distributions have all their weight in one bin per side (left, top, right, bottom)."""
    maps = []
    for stride in (8, 16, 32):
        raw = torch.zeros(1, 64 + classes, size // stride, size // stride)
        for side, bin_ in enumerate(side_bins):
            raw[:, side * 16 + bin_] = 100.0
        maps.append(raw)
    return tuple(maps)


def test_known_answer() -> None:
    boxes, scores = decode(maps_with((1, 2, 3, 4)))
    assert boxes.shape == (1, 64 + 16 + 4, 4) and scores.shape == (1, 84, 2)
    # the second cell of the first row at stride 8: centre (1.5, 0.5)
    assert boxes[0, 1].tolist() == pytest.approx([(1.5 - 1) * 8, (0.5 - 2) * 8, (1.5 + 3) * 8, (0.5 + 4) * 8])
    # the last cell at stride 32: centre (1.5, 1.5)
    assert boxes[0, -1].tolist() == pytest.approx([0.5 * 32, -0.5 * 32, 4.5 * 32, 5.5 * 32])
    assert scores.unique().tolist() == [0.5]


def test_expectation_lies_between_bins() -> None:
    maps = maps_with((0, 0, 0, 0))
    maps[0][:, 5] = 100.0  # left: half in bin 0, half in bin 5
    assert decode(maps)[0][0, 0, 0].item() == pytest.approx((0.5 - 2.5) * 8)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_boxes_and_scores_are_fp32_whatever_the_maps_are(dtype: torch.dtype) -> None:
    maps = tuple(torch.randn(2, 66, s, s) for s in (8, 4, 2))
    boxes, scores = decode([m.to(dtype) for m in maps])
    exact_boxes, exact_scores = decode([m.to(dtype).float() for m in maps])
    assert boxes.dtype == scores.dtype == torch.float32
    assert torch.equal(boxes, exact_boxes) and torch.equal(scores, exact_scores)


def test_other_sizes_than_square() -> None:
    boxes, _ = decode([torch.randn(1, 65, h, w) for h, w in ((12, 4), (6, 2), (3, 1))])
    assert boxes.shape == (1, 48 + 12 + 3, 4)
