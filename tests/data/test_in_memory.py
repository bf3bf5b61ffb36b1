"""Pictures in memory: every mode, type and shape comes out as stated or is refused by name."""

import io
import struct
import warnings
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageCms

from yolov9kit.data.image import DecodedImage, decode_image
from yolov9kit.data.in_memory import unpack
from yolov9kit.errors import KitError, PictureError, UsageError

SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 9), st.just(3))


def rgb(height: int = 7, width: int = 5) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def only(source: Any, bgr: bool = False) -> DecodedImage:
    (decode,) = unpack(source, bgr)
    decoded = decode("picture 0")
    assert decoded.pixels.dtype == np.uint8 and decoded.pixels.flags.c_contiguous
    assert decoded.pixels.ndim == 3 and decoded.pixels.shape[2] == 3
    return decoded


def in_file(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


# --- PIL


def of_mode(mode: str) -> Image.Image:
    image = Image.fromarray(rgb())
    if mode == "LAB":
        srgb, lab = ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB")
        return ImageCms.profileToProfile(image, srgb, lab, outputMode="LAB")  # type: ignore[return-value]
    ways = {"PA": "P", "La": "LA", "RGBa": "RGBA"}
    return image.convert(ways[mode]).convert(mode) if mode in ways else image.convert(mode)


@pytest.mark.parametrize(
    "mode", ["1", "L", "P", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LA", "PA", "RGBa"]
)
def test_every_mode_equals_pillows_own_conversion(mode: str) -> None:
    image = of_mode(mode)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decoded = only(image)
    np.testing.assert_array_equal(decoded.pixels, np.asarray(image.convert("RGB")))
    assert bool(decoded.notes) is (mode not in ("RGB", "RGBX")), "what was converted is said"
    assert image.mode == mode


def test_lab_and_premultiplied_gray() -> None:
    assert np.abs(only(of_mode("LAB")).pixels.astype(int) - rgb()).mean() < 12
    np.testing.assert_array_equal(only(of_mode("La")).pixels, np.asarray(of_mode("L").convert("RGB")))


@pytest.mark.parametrize("kind", ["<u2", ">u2"])
def test_16_bit_gray_is_scaled_as_from_a_file(kind: str) -> None:
    values = np.array([[0, 128, 129], [257, 40_000, 65535]], kind)
    image = Image.fromarray(values.astype("<u2"))
    if kind == ">u2":
        image = Image.frombytes("I;16B", (3, 2), values.tobytes())
    assert only(image).pixels[..., 0].tolist() == [[0, 0, 1], [1, 156, 255]]
    np.testing.assert_array_equal(only(values).pixels, only(image).pixels)
    from_file = decode_image(in_file(Image.fromarray(values.astype("<u2")), "PNG"))
    np.testing.assert_array_equal(only(image).pixels, from_file.pixels)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_modes_without_a_white_are_refused(mode: str) -> None:
    with pytest.raises(PictureError, match=r"^picture 0: .* have no agreed black and white"):
        only(of_mode(mode))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_d17_the_orientation_is_applied_as_from_a_file(orientation: int, kind: str) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    data = in_file(Image.fromarray(rgb(16, 24)), kind, exif=exif)
    expected = decode_image(data)
    decoded = only(Image.open(io.BytesIO(data)))
    np.testing.assert_array_equal(decoded.pixels, expected.pixels)
    assert decoded.pixels.shape == ((16, 24, 3) if orientation < 5 else (24, 16, 3))
    if kind != "TIFF":  # there Pillow has turned it, and forgotten that it had to
        assert decoded.notes == (() if orientation == 1 else (f"EXIF orientation {orientation} applied",))


def test_an_orientation_set_by_hand_counts() -> None:
    image = Image.fromarray(rgb())
    image.getexif()[274] = 6
    np.testing.assert_array_equal(only(image).pixels, np.rot90(rgb(), -1))


@pytest.mark.parametrize("value", [0, 9, 77])
def test_a_nonsense_orientation_is_ignored_with_a_note(value: int) -> None:
    image = Image.fromarray(rgb())
    image.getexif()[274] = value
    decoded = only(image)
    np.testing.assert_array_equal(decoded.pixels, rgb())
    assert decoded.notes == ("broken EXIF ignored",)


def test_broken_exif_and_odd_metadata_stop_nothing() -> None:
    image = Image.fromarray(rgb())
    image.info = {
        "exif": b"Exif\0\0II*\0" + struct.pack("<L", 10**9),
        "dpi": ("x", None),
        "icc_profile": "no bytes",
    }
    np.testing.assert_array_equal(only(image).pixels, rgb())


def test_metadata_of_the_file_does_not_steer_the_pixels() -> None:
    """Pillow writes a TIFF with the compression that the picture had, JPEG too, if it is not told otherwise."""
    data = in_file(Image.fromarray(rgb(64, 64)), "TIFF", compression="jpeg")
    np.testing.assert_array_equal(only(Image.open(io.BytesIO(data))).pixels, decode_image(data).pixels)


def test_a_cut_off_file_opened_with_pil_is_refused() -> None:
    image = Image.open(io.BytesIO(in_file(Image.fromarray(rgb(64, 64)), "PNG")[:500]))
    with pytest.raises(PictureError, match=r"^picture 0: broken PIL picture") as caught:
        only(image)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("size", [(0, 0), (0, 5), (5, 0)])
def test_a_picture_without_pixels_is_refused(size: tuple[int, int]) -> None:
    with pytest.raises(PictureError, match="picture 0: "):
        only(Image.new("RGB", size))


def test_the_frame_that_a_user_chose_is_taken() -> None:
    frames = [Image.new("RGB", (4, 4), (level, 0, 0)) for level in (10, 200)]
    image = Image.open(io.BytesIO(in_file(frames[0], "PNG", save_all=True, append_images=frames[1:])))
    image.seek(1)
    assert only(image).pixels[0, 0].tolist() == [200, 0, 0]


def test_the_users_picture_is_not_changed() -> None:
    image = Image.fromarray(rgb())
    image.info["note"] = "mine"
    only(image)
    assert image.info == {"note": "mine"} and np.array_equal(np.asarray(image), rgb())


# --- numpy


@settings(deadline=None)
@given(arrays(np.uint8, SHAPES))
def test_rgb_and_bgr_of_the_same_picture_are_the_same(pixels: np.ndarray) -> None:
    np.testing.assert_array_equal(only(pixels).pixels, pixels)
    np.testing.assert_array_equal(only(pixels[..., ::-1], bgr=True).pixels, pixels)
    np.testing.assert_array_equal(only(np.ascontiguousarray(pixels[..., ::-1]), bgr=True).pixels, pixels)


@settings(deadline=None)
@given(arrays(np.uint16, st.tuples(st.integers(1, 9), st.integers(1, 9))))
def test_16_bit_is_the_nearest_of_8_bits(values: np.ndarray) -> None:
    decoded = only(values)
    assert decoded.notes == ("16-bit array scaled by 1/257", "gray array repeated to three channels")
    assert np.abs(decoded.pixels[..., 0] * 257.0 - values).max() <= 128
    eight = (values >> 8).astype(np.uint8)
    np.testing.assert_array_equal(only(eight.astype(np.uint16) * 257).pixels, only(eight).pixels)


@pytest.mark.parametrize("bgr", [False, True])
def test_gray_and_alpha(bgr: bool) -> None:
    gray = rgb()[..., 0]
    for one_channel in (gray, gray[..., None]):
        decoded = only(one_channel, bgr)
        np.testing.assert_array_equal(decoded.pixels, np.stack([gray] * 3, axis=2))
        assert decoded.notes == ("gray array repeated to three channels",)
    with_alpha = np.dstack((rgb()[..., ::-1] if bgr else rgb(), gray))
    decoded = only(with_alpha, bgr)
    np.testing.assert_array_equal(decoded.pixels, rgb())
    assert decoded.notes == ("alpha dropped",)


def test_views_and_read_only_arrays() -> None:
    picture = rgb(20, 20)
    for view in (picture[::2, ::-1], picture.transpose(1, 0, 2), np.asfortranarray(picture)):
        view.flags.writeable = False
        np.testing.assert_array_equal(only(view).pixels, view)


@pytest.mark.parametrize(
    "dtype",
    ["float32", "float64", "float16", "int64", "int8", "int16", "uint32", "bool", "complex64", "O", "U1"],
)
def test_other_types_are_refused(dtype: str) -> None:
    with pytest.raises(UsageError, match=r"^array of .*: expected uint8 0..255 \(or uint16 0..65535\)"):
        unpack(np.zeros((4, 4, 3), dtype))


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((4,), ""),
        ((), ""),
        ((6, 4, 2), ""),
        ((6, 4, 5), ""),
        ((0, 4, 3), ""),
        ((4, 0), ""),
        ((3, 40, 40), "Channels stand last: array.transpose(1, 2, 0)"),
        ((2, 4, 4, 3), "A batch is given as list(array)"),
    ],
)
def test_other_shapes_are_refused(shape: tuple[int, ...], hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        unpack(np.zeros(shape, np.uint8))
    message = f"array of shape {list(shape)}: expected H x W, H x W x 3 or H x W x 4"
    assert str(caught.value) == message + (f". {hint}" if hint else "")


# --- torch


@settings(deadline=None)
@given(arrays(np.uint8, SHAPES))
def test_uint8_and_float_tensors_are_the_array(pixels: np.ndarray) -> None:
    tensor = torch.from_numpy(pixels.copy()).permute(2, 0, 1)
    floats = tensor.float() / 255
    for form in (tensor, floats, tensor.double() / 255, tensor[None], floats[None]):
        np.testing.assert_array_equal(only(form).pixels, pixels)


def test_a_batch_is_its_pictures_in_order() -> None:
    batch = torch.arange(4 * 3 * 2 * 2, dtype=torch.uint8).reshape(4, 3, 2, 2)
    decodes = unpack(batch)
    assert len(decodes) == 4
    for decode, picture in zip(decodes, batch, strict=True):
        np.testing.assert_array_equal(decode("x").pixels, picture.permute(1, 2, 0).numpy())


def test_gradients_half_precision_and_subclasses() -> None:
    level = torch.nn.Parameter(torch.full((3, 2, 2), 0.5))
    assert only(level).pixels.max() == 128 and level.grad is None
    for dtype in (torch.float16, torch.bfloat16):
        assert only(torch.full((3, 2, 2), 1.0, dtype=dtype)).pixels.min() == 255


@pytest.mark.parametrize(
    ("tensor", "complaint"),
    [
        (torch.full((3, 4, 4), 255.0), "tensor values from 255 to 255: float pictures are 0..1"),
        (torch.full((3, 4, 4), -0.1), "tensor values from -0.1 to -0.1"),
        (torch.full((3, 4, 4), float("nan")), "tensor values from nan to nan"),
        (torch.tensor([0.5, float("nan"), 0.2]).reshape(3, 1, 1), "tensor values from nan to nan"),
        (torch.full((3, 4, 4), float("inf")), "tensor values from inf to inf"),
        (
            torch.zeros(3, 4, 4, dtype=torch.int64),
            "tensor of torch.int64: expected float 0..1 or uint8 0..255",
        ),
        (torch.zeros(3, 4, 4, dtype=torch.bool), "tensor of torch.bool"),
        (torch.zeros(3, 4, 4, dtype=torch.complex64), "tensor of torch.complex64"),
        (torch.zeros(4, 4, 3), r"tensor of shape \[4, 4, 3\]: expected 3 x H x W or B x 3 x H x W"),
        (torch.zeros(1, 4, 4), r"tensor of shape \[1, 4, 4\]"),
        (torch.zeros(4, 4), r"tensor of shape \[4, 4\]"),
        (torch.zeros(0, 3, 4, 4), r"tensor of shape \[0, 3, 4, 4\]"),
        (torch.zeros(3, 0, 4), r"tensor of shape \[3, 0, 4\]"),
        (torch.zeros(1, 2, 3, 4, 4), r"tensor of shape \[1, 2, 3, 4, 4\]"),
    ],
)
def test_tensors_that_are_no_pictures_are_refused(tensor: torch.Tensor, complaint: str) -> None:
    with pytest.raises(UsageError, match=f"^{complaint}"):
        unpack(tensor)


def test_one_bad_value_anywhere_in_a_batch_is_found() -> None:
    batch = torch.zeros(3, 3, 8, 8)
    batch[2, 1, 5, 5] = float("nan")
    with pytest.raises(UsageError, match="nan"):
        unpack(batch)


def test_bgr_says_nothing_about_tensors() -> None:
    with pytest.raises(UsageError, match="bgr=True is for numpy arrays"):
        unpack(torch.zeros(3, 4, 4), bgr=True)


# --- everything else


@pytest.mark.parametrize("value", [{"a": 1}, 1.5, object(), b"bytes", io.BytesIO(), np.float32(1), {1, 2}])
def test_anything_else_is_refused_by_its_type(value: object) -> None:
    with pytest.raises(
        UsageError, match=f"source of type {type(value).__name__}: expected a path, a camera number"
    ):
        unpack(value)


def test_a_generator_gets_advice() -> None:
    with pytest.raises(
        UsageError, match=r"source of type generator: .* \(of this one, give list\(\.\.\.\)\)$"
    ):
        unpack(image for image in [])


def test_lookalikes_are_not_taken_for_pictures() -> None:
    lookalike = namedtuple("Image", "mode size")("RGB", (4, 4))
    with pytest.raises(KitError, match="source of type Image"):
        unpack(lookalike)


@pytest.mark.parametrize("name", ["a.png", "b.tif"])
def test_e08_a_pure_red_picture_is_red_from_wherever_it_comes(tmp_path: Path, name: str) -> None:
    """The same pixels, and the same input tensor, with red in channel 0."""
    from yolov9kit.data.letterbox import letterbox
    from yolov9kit.data.sources import Picture, open_source

    red = np.zeros((30, 40, 3), np.uint8)
    red[..., 0] = 255
    path = tmp_path / name
    Image.fromarray(red).save(path)
    forms: list[tuple[Any, bool]] = [
        (path, False),
        (str(path), False),
        (tmp_path, False),
        (Image.open(path), False),
        (Image.fromarray(red).convert("RGBA"), False),
        (Image.fromarray(red).convert("CMYK"), False),
        (red, False),
        (red[..., ::-1], True),
        (np.ascontiguousarray(red[..., ::-1]), True),
        (np.dstack((red[..., ::-1], red[..., 1])), True),
        (red.astype(np.uint16) * 257, False),
        (torch.from_numpy(red).permute(2, 0, 1), False),
        (torch.from_numpy(red).permute(2, 0, 1)[None] / 255, False),
    ]
    for source, bgr in forms:
        (picture,) = open_source(source, bgr=bgr)
        assert isinstance(picture, Picture)
        np.testing.assert_array_equal(picture.pixels, red)
        tensor = torch.from_numpy(letterbox((30, 40), (64, 64)).apply(picture.pixels)).permute(2, 0, 1)
        assert tensor[:, 32, 32].tolist() == [255, 0, 0]
