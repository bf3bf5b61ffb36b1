"""Pictures given in memory (PIL, numpy, torch) → H x W x 3 uint8 RGB, by the rules of the file decoder."""

import io
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from yolov9kit.data.image import DecodedImage, decode_image
from yolov9kit.errors import PictureError, UsageError

Decode = Callable[[str], DecodedImage]
"""Converts one picture, which the argument names in messages. Raises PictureError."""

_ORIENTATION_TAG = 274
_NOT_IN_TIFF = {"YCbCr": "RGB", "HSV": "RGB", "PA": "RGBA", "La": "LA", "RGBa": "RGBA"}


def unpack(source: Any, bgr: bool = False) -> list[Decode]:
    """The pictures of a PIL picture, an array or a tensor: checked now, converted when they are wanted.

    Raises:
        UsageError: something else, or an array or tensor of a shape, type or range that is no picture.
    """
    if isinstance(source, Image.Image):
        return [partial(_from_pil, source)]
    if isinstance(source, Tensor):
        _check_tensor(source, bgr)
        batch = source[None] if source.ndim == 3 else source
        return [partial(_from_tensor, picture) for picture in batch]
    if isinstance(source, np.ndarray):
        _check_array(source)
        return [partial(_from_array, source, bgr)]
    hint = " (of this one, give list(...))" if isinstance(source, Iterable) else ""
    raise UsageError(
        f"source of type {type(source).__name__}: expected a path, a camera number, a PIL picture, a numpy array, "
        f"a tensor, or a list of such{hint}"
    )


# ---------------------------------------------------------------------------------------------- PIL


def _from_pil(image: Image.Image, name: str) -> DecodedImage:
    """Through the one decoder, as an uncompressed TIFF: the same rules for modes, alpha, 16 bit and orientation."""
    buffer, notes = io.BytesIO(), []
    try:
        image.load()
        mode, orientation = image.mode, _orientation(image)
        bare = image.copy()  # without the file's metadata, some of which would steer or break the writer
        bare.info = {}
        if mode in _NOT_IN_TIFF:
            bare = bare.convert(_NOT_IN_TIFF[mode])
            notes.append(f"{mode} converted")
        bare.save(buffer, "TIFF", tiffinfo={_ORIENTATION_TAG: orientation or 1})
    except Exception as error:  # a picture is decoded as late as here, and a broken one can raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PictureError(f"{name}: broken PIL picture of mode {image.mode} ({reason})") from error
    if orientation is None:
        notes.append("broken EXIF ignored")
    decoded = decode_image(buffer.getvalue(), name=name)
    # the decoder says where it found the orientation: in the TIFF made above
    found = (note.replace("TIFF orientation", "EXIF orientation") for note in decoded.notes)
    return DecodedImage(decoded.pixels, (*notes, *found))


def _orientation(image: Image.Image) -> int | None:
    """1 to 8; None where it cannot be read."""
    try:
        value = image.getexif().get(_ORIENTATION_TAG, 1)
    except Exception:  # Pillow's parser raises nearly anything on a broken block
        return None
    return value if value in range(1, 9) else None


# ---------------------------------------------------------------------------------------------- numpy


def _check_array(array: np.ndarray) -> None:
    depth_is_known = array.dtype == np.uint8 or (array.dtype.kind == "u" and array.dtype.itemsize == 2)
    if not depth_is_known:
        raise UsageError(
            f"array of {array.dtype}: expected uint8 0..255 (or uint16 0..65535); convert it to one"
        )
    if array.ndim in (2, 3) and array.size and (array.ndim == 2 or array.shape[2] in (1, 3, 4)):
        return
    hint = ""
    if array.ndim == 4:
        hint = ". A batch is given as list(array)"
    elif array.ndim == 3 and array.shape[0] in (1, 3, 4):
        hint = ". Channels stand last: array.transpose(1, 2, 0)"
    raise UsageError(f"array of shape {list(array.shape)}: expected H x W, H x W x 3 or H x W x 4{hint}")


def _from_array(array: np.ndarray, bgr: bool, _name: str) -> DecodedImage:
    notes = []
    if array.dtype.itemsize == 2:
        array = np.round(array / 257).astype(np.uint8)
        notes.append("16-bit array scaled by 1/257")
    if array.ndim == 2 or array.shape[2] == 1:
        array = np.repeat(array.reshape(*array.shape[:2], 1), 3, axis=2)
        notes.append("gray array repeated to three channels")
    if array.shape[2] == 4:
        array = array[..., :3]
        notes.append("alpha dropped")
    if bgr:
        array = array[..., ::-1]
    return DecodedImage(np.ascontiguousarray(array), tuple(notes))


# ---------------------------------------------------------------------------------------------- torch


def _check_tensor(tensor: Tensor, bgr: bool) -> None:
    if bgr:
        raise UsageError("bgr=True is for numpy arrays: tensors are RGB, give tensor.flip(-3)")
    if tensor.ndim not in (3, 4) or tensor.shape[-3] != 3 or tensor.numel() == 0:
        raise UsageError(f"tensor of shape {list(tensor.shape)}: expected 3 x H x W or B x 3 x H x W")
    if tensor.is_floating_point():
        low, high = (float(v) for v in tensor.detach().float().aminmax())
        if not (low >= 0 and high <= 1):  # NaN fails too
            raise UsageError(
                f"tensor values from {low:.3g} to {high:.3g}: float pictures are 0..1; give 0..255 as uint8"
            )
    elif tensor.dtype != torch.uint8:
        raise UsageError(f"tensor of {tensor.dtype}: expected float 0..1 or uint8 0..255")


def _from_tensor(picture: Tensor, _name: str) -> DecodedImage:
    picture = picture.detach().cpu()
    if picture.is_floating_point():
        picture = (picture.float() * 255).round().to(torch.uint8)
    return DecodedImage(np.ascontiguousarray(picture.permute(1, 2, 0).numpy()), ())
