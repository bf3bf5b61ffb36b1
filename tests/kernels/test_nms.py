"""Decisions equal ``geometry.nms``; the kernel equals its reference, without a GPU in Triton's interpreter."""

import re
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.kernels.interpreter import checked_in_the_interpreter
from yolov9kit import geometry
from yolov9kit.cuda_graph import capture
from yolov9kit.kernels.bias_silu import available
from yolov9kit.kernels.nms import _kernels, nms, nms_reference

MAX_IOUS = [0.0, 0.25, 1 / 3, 0.45, 0.5, 0.7, 1.0]

Scene = tuple[Tensor, Tensor, Tensor]
"""Boxes B x K x 4, labels B x K, valid B x K."""


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """One or three pictures of boxes that overlap a lot, empty ones and overlaps of simple fractions among them."""
    pictures, slots = draw(st.sampled_from([1, 3])), draw(st.integers(0, 24))
    whole = st.lists(st.integers(0, draw(st.sampled_from([3, 12]))), min_size=4, max_size=4)
    rows = draw(st.lists(whole, min_size=pictures * slots, max_size=pictures * slots))
    corners = torch.tensor(rows, dtype=torch.float32).reshape(pictures, slots, 4)
    corners[..., 2:] += corners[..., :2]
    labels = draw(st.lists(st.integers(0, 2), min_size=pictures * slots, max_size=pictures * slots))
    valid = draw(st.lists(st.booleans(), min_size=pictures * slots, max_size=pictures * slots))
    shape = (pictures, slots)
    return (
        corners * draw(st.sampled_from([1.0, 0.25, 0.1])),
        torch.tensor(labels, dtype=torch.int64).reshape(shape),
        torch.tensor(valid, dtype=torch.bool).reshape(shape),
    )


def crowd(pictures: int, slots: int, seed: int) -> Scene:
    """Boxes at any place, of which about half overlap; every slot but the last third may hold one."""
    random = torch.Generator().manual_seed(seed)
    corners = torch.rand(pictures, slots, 2, generator=random) * 3 * slots**0.5
    corners = torch.cat((corners, corners + torch.rand(pictures, slots, 2, generator=random) * 20), dim=2)
    valid = torch.rand(pictures, slots, generator=random) < 0.9
    valid[:, slots - slots // 3 :] = False
    return corners, torch.randint(0, 3, (pictures, slots), generator=random), valid


def chain(slots: int) -> Scene:
    """Each box fells the next if it stays: every other one stays, and the last decision hangs on all before."""
    left = torch.arange(slots, dtype=torch.float32)
    corners = torch.stack((left, torch.zeros(slots), left + 2, torch.ones(slots)), dim=1)
    return corners[None], torch.zeros(1, slots, dtype=torch.int64), torch.ones(1, slots, dtype=torch.bool)


def by_geometry(scene: Scene, max_iou: float, agnostic: bool) -> Tensor:
    """``geometry.nms``, picture by picture, as a mask."""
    keep = torch.zeros_like(scene[2])
    for boxes, labels, valid, kept in zip(*scene, keep, strict=True):
        present = valid.nonzero().squeeze(1)
        falling = torch.linspace(1, 0, len(present))
        kept[present[geometry.nms(boxes[present], falling, labels[present], max_iou, agnostic)]] = True
    return keep


# --- decisions


@settings(deadline=None, max_examples=200)
@given(scenes(), st.sampled_from(MAX_IOUS), st.booleans())
def test_reference_is_geometry_nms(scene: Scene, max_iou: float, agnostic: bool) -> None:
    found = nms_reference(*scene, torch.tensor(max_iou), torch.tensor(agnostic))
    assert torch.equal(found, by_geometry(scene, max_iou, agnostic))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("agnostic", [False, True])
def test_reference_is_geometry_nms_in_a_crowd(seed: int, agnostic: bool) -> None:
    """The threshold is an overlap that occurs, so that one wrong rounding would be seen."""
    scene = crowd(3, 200, seed)
    overlaps = geometry.iou_matrix(scene[0][0], scene[0][0]).triu(1)
    limits = overlaps[overlaps > 0.05][seed::97].tolist()
    assert len(limits) > 5
    for max_iou in limits:
        found = nms_reference(*scene, torch.tensor(max_iou), torch.tensor(agnostic))
        assert torch.equal(found, by_geometry(scene, max_iou, agnostic))


@pytest.mark.parametrize(
    ("other", "overlap"), [((1, 0, 3, 1), 1 / 3), ((0, 0, 1, 1), 0.5), ((0, 0, 2, 1), 1.0)]
)
def test_exactly_at_the_threshold_both_stay(other: tuple[int, ...], overlap: float) -> None:
    boxes = torch.tensor([[[0, 0, 2, 1], other]], dtype=torch.float32)
    scene = (boxes, torch.zeros(1, 2, dtype=torch.int64), torch.ones(1, 2, dtype=torch.bool))
    limit = torch.tensor(overlap)
    assert nms_reference(*scene, limit, torch.tensor(False)).tolist() == [[True, True]]
    below = torch.nextafter(limit, torch.tensor(0.0))
    assert nms_reference(*scene, below, torch.tensor(False)).tolist() == [[True, False]]


def test_scores_do_not_count_but_empty_slots_fell_nobody() -> None:
    boxes = torch.tensor([[[0.0, 0, 4, 4]] * 3])
    labels = torch.zeros(1, 3, dtype=torch.int64)
    keep = nms_reference(
        boxes, labels, torch.tensor([[False, True, True]]), torch.tensor(0.5), torch.tensor(False)
    )
    assert keep.tolist() == [[False, True, False]]


def test_of_a_chain_every_other_box_stays() -> None:
    keep = nms_reference(*chain(70), torch.tensor(0.3), torch.tensor(False))
    assert keep[0].tolist() == [i % 2 == 0 for i in range(70)]


# --- kernel


def kernel_scenes() -> list[Scene]:
    """Sizes around one word and one block, nothing at all, and a chain through several words."""
    sizes = [(1, 1), (3, 31), (1, 32), (3, 33), (2, 100)]
    scenes = [crowd(pictures, slots, seed) for seed, (pictures, slots) in enumerate(sizes)]
    empty = crowd(2, 40, 0)
    empty[2].zero_()
    mixed = crowd(3, 70, 9)
    mixed[2][1].zero_()
    return [*scenes, empty, mixed, chain(75), crowd(1, 0, 0), crowd(0, 8, 0)]


def check(device: str) -> int:
    """Every scene with two thresholds, by class and not; returns how many were compared."""
    compared = 0
    for scene in kernel_scenes():
        scene = tuple(part.to(device) for part in scene)
        for max_iou, agnostic in ((0.3, False), (0.0, True)):
            settings = (torch.tensor(max_iou, device=device), torch.tensor(agnostic, device=device))
            assert torch.equal(nms(*scene, *settings), nms_reference(*scene, *settings))
            compared += 1
    return compared


@pytest.mark.skipif(not available(), reason="Triton is not installed")
def test_kernel_equals_reference_in_the_interpreter() -> None:
    assert checked_in_the_interpreter("test_nms") == 20


@pytest.mark.skipif(not available(), reason="Triton is not installed")
def test_what_is_compiled_for_a_gpu_rounds_as_a_processor_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen in the code itself: the interpreter fuses nothing and divides exactly, whatever the compiler would do."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    compare, walk = compiled()
    assert re.search(r"mul\.rn\.f32", compare) and re.search(r"sub\.rn\.f32", compare)
    assert "fma." not in compare
    assert set(re.findall(r"div\.\w+\.f32", compare)) == {"div.rn.f32"}
    assert "f32" not in walk


def compiled() -> tuple[str, str]:
    """Both kernels as assembly for an H100 or H200; needs no GPU."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    sizes = {"slots": "i32", "words": "i32"}
    inputs = {"boxes_ptr": "*fp32", "labels_ptr": "*i64", "valid_ptr": "*i1", "max_iou_ptr": "*fp32"}
    compare_types = {**inputs, "agnostic_ptr": "*i1", "beaten_ptr": "*i32", **sizes, "span": "constexpr"}
    walk_types = {"beaten_ptr": "*i32", "valid_ptr": "*i1", "keep_ptr": "*i1", **sizes, "padded": "constexpr"}
    compare, walk = _kernels()
    sources = (ASTSource(compare, compare_types, {"span": 2}), ASTSource(walk, walk_types, {"padded": 32}))
    options = {"enable_fp_fusion": False}
    first, second = (
        triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]
        for source in sources
    )
    return first, second


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_kernel_equals_reference_on_the_gpu() -> None:
    assert check("cuda") == 20


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_on_the_gpu_one_recording_serves_all_thresholds() -> None:
    """Against ``geometry.nms`` on the processor, at full size."""
    slots = 1024
    first = tuple(part.cuda() for part in crowd(8, slots, 0))
    recorded = capture(nms, (*first, torch.tensor(0.5, device="cuda"), torch.tensor(False, device="cuda")))
    for seed, max_iou, agnostic in ((1, 0.45, False), (2, 0.7, False), (3, 0.1, True), (4, 1 / 3, True)):
        scene = crowd(8, slots, seed)
        limits = torch.tensor(max_iou), torch.tensor(agnostic)
        keep = recorded(*(part.cuda() for part in (*scene, *limits)))
        assert torch.equal(keep.cpu(), by_geometry(scene, max_iou, agnostic))
