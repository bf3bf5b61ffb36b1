"""Pixels equal OpenCV's bit for bit; the kernel equals its reference, without a GPU in Triton's interpreter."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.kernels.interpreter import checked_in_the_interpreter
from yolov9kit.cuda_graph import capture
from yolov9kit.data.letterbox import Letterbox, clip, letterbox
from yolov9kit.kernels.bias_silu import available
from yolov9kit.kernels.letterbox import (
    Placement,
    _kernel,
    interleaved,
    letterbox_,
    letterbox_reference,
    letterbox_table,
    planar,
    undo,
)

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
SIDES = st.one_of(st.integers(1, 12), st.integers(1, 260))


def noise(picture_hw: tuple[int, int], seed: int = 0) -> np.ndarray:
    """Any bytes; of odd seeds only black and white, where roundings show most."""
    pixels = np.random.default_rng(seed).integers(0, 256, (*picture_hw, 3), dtype=np.uint8)
    return np.where(pixels > 127, 255, 0).astype(np.uint8) if seed % 2 else pixels


def placed(
    pictures: list[np.ndarray], places: list[Letterbox], planes: bool = False
) -> tuple[Tensor, Tensor]:
    """The pictures' bytes one after the other, and the table."""
    placements, offset = [], 0
    for picture, place in zip(pictures, places, strict=True):
        strides = (planar if planes else interleaved)(place.picture_hw)
        placements.append(Placement(offset, strides, place.picture_hw, place.inner_hw, place.pad_xy))
        offset += picture.size
    stored = [np.moveaxis(picture, 2, 0) if planes else picture for picture in pictures]
    pixels = torch.from_numpy(np.concatenate([np.ascontiguousarray(picture).ravel() for picture in stored]))
    return pixels, letterbox_table(placements, len(pixels))


def gray_levels(images: Tensor) -> np.ndarray:
    """B x 3 x H x W, 0..1 float32, back to B x H x W x 3 uint8."""
    return (images * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()


def assert_equal_to_opencv(picture_hw: tuple[int, int], inner_hw: tuple[int, int], seed: int) -> None:
    picture = noise(picture_hw, seed)
    place = Letterbox(picture_hw, (inner_hw[0] + 3, inner_hw[1] + 2), inner_hw, (1, 2))
    pixels, table = placed([picture], [place], planes=seed % 3 == 0)
    found = gray_levels(letterbox_reference(pixels, table, place.input_hw, torch.float32))[0]
    np.testing.assert_array_equal(found, place.apply(picture))


# --- pixels


@settings(deadline=None, max_examples=150)
@given(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES), st.integers(0, 5))
@example((1, 1), (64, 64), 0)  # one pixel
@example((1, 7), (20, 3), 1)
@example((53, 75), (53, 75), 0)  # a copy
@example((48, 37), (48, 90), 1)  # one side stays
def test_any_size_to_any_size_is_opencv(
    picture_hw: tuple[int, int], inner_hw: tuple[int, int], seed: int
) -> None:
    assert_equal_to_opencv(picture_hw, inner_hw, seed)


@settings(deadline=None)
@given(
    st.tuples(st.integers(1, 90), st.integers(1, 90)),
    st.sampled_from([(2, 2), (2, 1), (1, 2), (2, 3), (3, 3), (4, 4)]),
    st.integers(0, 5),
)
def test_whole_ratios_are_opencv(inner_hw: tuple[int, int], ratio: tuple[int, int], seed: int) -> None:
    """Halving both sides is a mean of areas in OpenCV, which the general rule must come to as well."""
    picture_hw = (inner_hw[0] * ratio[0], inner_hw[1] * ratio[1])
    assert_equal_to_opencv(picture_hw, inner_hw, seed)
    assert_equal_to_opencv(inner_hw, picture_hw, seed)


@pytest.mark.parametrize(
    "picture_hw", [(1080, 1920), (427, 640), (1279, 853), (768, 1024), (3000, 4000), (640, 640), (1280, 1280)]
)
def test_pictures_as_they_come_are_opencv(picture_hw: tuple[int, int]) -> None:
    place = letterbox(picture_hw, (640, 640))
    picture = noise(picture_hw)
    found = gray_levels(letterbox_reference(*placed([picture], [place]), (640, 640), torch.float32))[0]
    np.testing.assert_array_equal(found, place.apply(picture))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_batch_of_any_sizes_divided_in_float32_and_rounded_once(dtype: torch.dtype) -> None:
    sizes = [(30, 50), (200, 90), (1, 1), (64, 96), (128, 192)]
    places = [letterbox(size, (64, 96)) for size in sizes]
    pictures = [noise(size, seed) for seed, size in enumerate(sizes)]
    wanted = torch.from_numpy(np.stack([p.apply(image) for p, image in zip(places, pictures, strict=True)]))
    for planes in (False, True):
        images = letterbox_reference(*placed(pictures, places, planes), (64, 96), dtype, channels=8)
        assert images.shape == (5, 8, 64, 96) and images.dtype == dtype
        assert torch.equal(images[:, :3], (wanted.permute(0, 3, 1, 2).float() / 255).to(dtype))
        assert not images[:, 3:].any()


def test_a_slot_without_a_picture_is_gray() -> None:
    table = letterbox_table([], 0, slots=2)
    images = letterbox_reference(torch.zeros(1, dtype=torch.uint8), table, (4, 5), torch.float32)
    assert torch.equal(images, torch.full((2, 3, 4, 5), 114 / 255))


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
@pytest.mark.parametrize("mirrored", [False, True])
def test_a_picture_is_turned_while_it_is_read(turns: int, mirrored: bool) -> None:
    stored = noise((40, 70))
    upright = np.rot90(stored[:, ::-1] if mirrored else stored, turns)
    offset = upright.__array_interface__["data"][0] - stored.__array_interface__["data"][0]
    place = letterbox(upright.shape[:2], (32, 32))
    placement = Placement(offset, upright.strides, place.picture_hw, place.inner_hw, place.pad_xy)
    table = letterbox_table([placement], stored.size)
    images = letterbox_reference(torch.from_numpy(stored).flatten(), table, (32, 32), torch.float32)
    np.testing.assert_array_equal(gray_levels(images)[0], place.apply(np.ascontiguousarray(upright)))


# --- table


def test_a_table_that_would_reach_beyond_the_pixels_is_refused() -> None:
    whole = Placement(0, interleaved((4, 5)), (4, 5), (4, 5), (0, 0))
    letterbox_table([whole], 60)
    with pytest.raises(ValueError, match="pixels 0 to 59 of 59"):
        letterbox_table([whole], 59)
    with pytest.raises(ValueError, match="pixels -5 to 59 of 60"):
        letterbox_table([whole, Placement(0, (-5, 1, 2), (2, 2), (4, 5), (0, 0))], 60)


def test_a_table_without_room_or_without_pixels_is_refused() -> None:
    whole = Placement(0, interleaved((4, 5)), (4, 5), (4, 5), (0, 0))
    with pytest.raises(ValueError, match="2 pictures for 1 slots"):
        letterbox_table([whole, whole], 60, slots=1)
    with pytest.raises(ValueError, match="a side without pixels"):
        letterbox_table([Placement(0, (0, 3, 1), (0, 5), (1, 5), (0, 0))], 60)


# --- and back


@settings(deadline=None)
@given(
    st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=3),
    st.tuples(SIDES, SIDES),
    st.lists(st.tuples(*[st.floats(-50, 300, width=32)] * 4), min_size=1, max_size=5),
)
def test_boxes_go_back_as_on_the_host(
    sizes: list[tuple[int, int]], input_hw: tuple[int, int], rows: list[tuple[float, ...]]
) -> None:
    places = [letterbox(size, input_hw) for size in sizes]
    _, table = placed([noise(size) for size in sizes], places)
    boxes = torch.tensor(rows)
    moved, held, seen = undo(boxes.expand(len(sizes), -1, -1), table)
    for i, place in enumerate(places):
        wanted = place.undo(boxes.numpy())
        inside = clip(wanted, place.picture_hw)
        np.testing.assert_array_equal(moved[i].numpy(), wanted)
        np.testing.assert_array_equal(held[i].numpy(), inside)
        wanted_seen = (inside[:, 2] > inside[:, 0]) & (inside[:, 3] > inside[:, 1])
        np.testing.assert_array_equal(seen[i].numpy(), wanted_seen)


def test_nothing_is_seen_in_a_slot_without_a_picture() -> None:
    _, held, seen = undo(torch.tensor([[[0.0, 0.0, 9.0, 9.0]]]), letterbox_table([], 0, slots=1))
    assert not seen.any() and not held.any()


# --- kernel


def scene(device: str, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Four pictures and an empty slot, for an input of 7 x 100."""
    sizes = [(4, 70), (30, 91), (18, 200), (1, 1)]
    places = [letterbox(size, (7, 100)) for size in sizes]
    pictures = [noise(size, seed + i) for i, size in enumerate(sizes)]
    pixels, table = placed(pictures, places, planes=seed % 2 == 1)
    return pixels.to(device), torch.cat((table, letterbox_table([], 0, slots=1))).to(device)


def check(device: str) -> int:
    """Every type, number of channels and layout; returns how many were compared."""
    compared = 0
    for dtype in FLOATS:
        for channels in (3, 4):
            pixels, table = scene(device, seed=channels)
            wanted = letterbox_reference(pixels, table, (7, 100), dtype, channels)
            for layout in (torch.contiguous_format, torch.channels_last):
                out = torch.full_like(wanted, torch.nan, memory_format=layout)
                assert letterbox_(pixels, table, out) is out
                # the interpreter cuts bfloat16 off instead of rounding it
                cut = 2**-8 if dtype == torch.bfloat16 and device == "cpu" else 0
                torch.testing.assert_close(out, wanted, atol=cut, rtol=0)
                compared += 1
    return compared


@pytest.mark.skipif(not available(), reason="Triton is not installed")
def test_kernel_equals_reference_in_the_interpreter() -> None:
    assert checked_in_the_interpreter("test_letterbox") == 12


@pytest.mark.skipif(not available(), reason="Triton is not installed")
def test_what_is_compiled_for_a_gpu_rounds_as_opencv_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen in the code itself: the interpreter fuses nothing and divides exactly, whatever the compiler would do."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    code = compiled()
    assert re.search(r"mul\.rn\.f64", code) and re.search(r"add\.rn\.f64", code)
    assert "fma.rn.f64" not in code
    assert re.findall(r"div\.\w+\.f32", code) and set(re.findall(r"div\.\w+\.f32", code)) == {"div.rn.f32"}


def compiled() -> str:
    """The kernel as assembly for an H100 or H200; needs no GPU."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    types = {"pixels_ptr": "*u8", "table_ptr": "*i64", "out_ptr": "*fp16", "height": "i32", "width": "i32"}
    constants = {
        "channels": 3,
        "planes": False,
        "pad_value": 114,
        "table_columns": 12,
        "rows": 4,
        "block": 256,
    }
    source = ASTSource(_kernel(), types | dict.fromkeys(constants, "constexpr"), constants)
    options = {"enable_fp_fusion": False}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).asm["ptx"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_kernel_equals_reference_on_the_gpu() -> None:
    assert check("cuda") == 12


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_on_the_gpu_one_recording_serves_all_sizes() -> None:
    """The kernel and its reference, both of which can be recorded, against OpenCV on the processor."""
    sizes = [(480, 640), (427, 640), (640, 427), (1080, 1920), (1, 1), (1280, 1280), (640, 640), (333, 500)]
    batches = [sizes[:4], sizes[4:]]
    held = torch.zeros(sum(3 * h * w for h, w in sizes), dtype=torch.uint8, device="cuda")
    out = torch.zeros(4, 3, 640, 640, device="cuda").to(memory_format=torch.channels_last)

    def both(pixels: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        return letterbox_(pixels, table, out), letterbox_reference(pixels, table, (640, 640), torch.float32)

    recorded = capture(both, (held, letterbox_table([], 0, slots=4).cuda()))
    for batch in batches:
        places = [letterbox(size, (640, 640)) for size in batch]
        pictures = [noise(size, seed) for seed, size in enumerate(batch)]
        pixels, table = placed(pictures, places)
        held[: len(pixels)] = pixels.cuda()
        wanted = np.stack([place.apply(image) for place, image in zip(places, pictures, strict=True)])
        for images in recorded(held, table.cuda()):
            np.testing.assert_array_equal(gray_levels(images.cpu()), wanted)


def test_what_the_kernel_cannot_write_or_read_is_refused() -> None:
    pixels, table, out = (
        torch.zeros(12, dtype=torch.uint8),
        letterbox_table([], 0, slots=1),
        torch.zeros(1, 3, 4, 8),
    )
    with pytest.raises(ValueError, match="neither NCHW nor channels-last"):
        letterbox_(pixels, table, out[..., ::2])
    with pytest.raises(ValueError, match=r"float32 .* are no dense uint8"):
        letterbox_(pixels.float(), table, out)
    with pytest.raises(ValueError, match="for 1 pictures"):
        letterbox_(pixels, table.int(), out)
