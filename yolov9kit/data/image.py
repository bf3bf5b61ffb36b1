"""File → picture: H x W x 3 uint8 RGB, upright. The one decoder of training, inspection, panels, detection.

What every picture goes through, and what is said about it in ``DecodedImage.notes``:

- EXIF and TIFF orientation is applied. Broken EXIF is ignored, with a note.
- Alpha is dropped, as OpenCV does: the colours stored under transparent pixels show. Models that were trained
  with OpenCV's reader saw the same.
- 16-bit gray is scaled by 1/257. 16-bit colour keeps its high 8 bits. Float and 32-bit integer pictures are
  refused, because nothing in them says which value is white.
- Of an animation or a file of several pages the first picture is taken.
- CMYK and Lab become RGB by formula; colour profiles (ICC) are not applied.
- A broken or cut-off picture is refused. Missing pixels are never filled in.

The size is known from the header and held against ``MAX_PIXELS`` (half of it for WebP and JPEG 2000) before
anything is decoded, which bounds the memory to 1 GiB. Pillow decodes; none of its process-wide settings is
changed here, so any number of threads may read at once. A TIFF or animated PNG with odd metadata can still
make Pillow itself issue a ``UserWarning``.
"""

import io
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops
from PIL.AvifImagePlugin import AvifImageFile as _Avif
from PIL.BmpImagePlugin import BmpImageFile as _Bmp
from PIL.GifImagePlugin import GifImageFile as _Gif
from PIL.ImageFile import ImageFile
from PIL.Jpeg2KImagePlugin import Jpeg2KImageFile as _Jpeg2K
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile as _Png
from PIL.PpmImagePlugin import PpmImageFile as _Ppm
from PIL.TiffImagePlugin import TiffImageFile as _Tiff
from PIL.WebPImagePlugin import WebPImageFile as _WebP

from yolov9kit.data.picture_faults import Stream, check_tiff_directory, is_cut_off, no_picture
from yolov9kit.errors import PictureError

Source = str | os.PathLike[str] | bytes

OnSize = Callable[[int, int], None]
"""Told width and height, as the file stores them, before anything is decoded. It may wait: for memory, say."""

# Above this size Pillow itself begins to warn. A picture of this size is decoded in less than 1 GiB: 4 bytes
# a pixel in Pillow and 3 in the result, and up to 6 more while a progressive JPEG is read. WebP and JPEG 2000
# hold more copies, so half the size is their limit.
MAX_PIXELS = 89_478_485
MAX_BYTES = 512 * 2**20
_STRIP_PIXELS = 2**22  # large pictures are converted in strips of this size: no second copy is needed

# HEIC is listed although it is not decoded: refusing it by name is better than a picture that goes missing.
_SUFFIXES = "jpg jpeg jpe jfif mpo png apng bmp dib gif webp avif tif tiff jp2 j2k ppm pgm pbm pnm heic heif"
IMAGE_SUFFIXES = frozenset(f".{suffix}" for suffix in _SUFFIXES.split())

_Note = tuple[str, str]
"""The code of a finding and its words; no words: nothing to say."""

_ORIENTATION_TAG, _PHOTOMETRIC_TAG, _DNG_TAG = 274, 262, 50706


@dataclass(frozen=True, eq=False)
class DecodedImage:
    """``pixels``: H x W x 3 uint8 RGB, contiguous, upright. ``notes``: what was converted, in words.

    For files: ``note_codes``, the code of the finding for each note; ``kind``, the format by content, as Pillow calls
    it ("JPEG"); ``mode``, how the colours are stored: Pillow's mode, with ";16" for 16 bits a channel; ``orientation``
    1 to 8, as EXIF counts; ``frames``, where 2 stands for two or more if counting means reading the whole file.
    """

    pixels: np.ndarray
    notes: tuple[str, ...]
    note_codes: tuple[str, ...] = ()
    kind: str = ""
    mode: str = ""
    orientation: int = 1
    frames: int = 1


class _Jpeg(JpegImageFile):
    """Always the first picture: Pillow's own choice between JPEG and MPO warns about odd MPO files."""

    def _read_dpi_from_exif(self) -> None:
        """The resolution is of no use here, and looking for it warns about broken EXIF."""


_READERS: tuple[tuple[type[ImageFile], tuple[bytes, ...]], ...] = (
    (_Jpeg, (b"\xff\xd8\xff",)),
    (_Png, (b"\x89PNG\r\n\x1a\n",)),
    (_Gif, (b"GIF87a", b"GIF89a")),
    (_Bmp, (b"BM",)),
    (_Tiff, (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    (_Jpeg2K, (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  \r\n\x87\n")),
    (_Ppm, (b"P1", b"P2", b"P3", b"P4", b"P5", b"P6")),
)


def is_image_name(path: str | os.PathLike[str]) -> bool:
    """Whether the suffix, in any case, is one of ``IMAGE_SUFFIXES``. The file is not opened."""
    return Path(path).suffix.lower() in IMAGE_SUFFIXES


def read_image(source: Source, *, name: str | None = None) -> np.ndarray:
    """The pixels of ``decode_image``: H x W x 3 uint8 RGB, contiguous, upright."""
    return decode_image(source, name=name).pixels


def decode_image(source: Source, *, name: str | None = None, on_size: OnSize | None = None) -> DecodedImage:
    """Decodes a file, or the bytes of one, by its content; the suffix plays no part.

    ``name`` stands for the picture in error messages; without it the path does. ``on_size`` is called with width and
    height of a picture of acceptable size.

    Raises PictureError, in one line that names the picture and the reason, for whatever is not a whole
    picture of a known format with at most ``MAX_PIXELS`` pixels.
    """
    with _opened(source, name) as image:
        if on_size is not None:
            on_size(*image.size)
        orientation, applied, turned = _orientation(image)
        frames, several = _frames(image)
        mode, reduced = _stored_mode(image)
        convert, converted = _converter(image)
        end = ""
        if isinstance(image, _Jpeg) and not _has_end_marker(image):
            image = _jpeg_without_end(image)
            end = "JPEG end marker missing, all pixels are there"
        image.load()
        colours = [("picture_mode", words) for words in (reduced, converted, _alpha_note(image))]
        image.info.pop("transparency", None)  # Pillow warns about transparent palettes when it converts them
        pixels = _upright(image, 1 if applied else orientation, convert)
        kind = image.format or ""
    notes = [
        note for note in (turned, ("picture_frames", several), ("picture_end", end), *colours) if note[1]
    ]
    codes, words = tuple(code for code, _ in notes), tuple(words for _, words in notes)
    return DecodedImage(pixels, words, codes, kind, mode, orientation, frames)


def image_size(source: Source, *, name: str | None = None) -> tuple[int, int]:
    """Width and height in pixels of what ``read_image`` returns, from the header alone.

    Raises PictureError as ``decode_image`` does, except for faults that only decoding can find.
    """
    with _opened(source, name) as image:
        width, height = image.size
        orientation, applied, _ = _orientation(image)
        return (height, width) if orientation >= 5 and not applied else (width, height)


@contextmanager
def _opened(source: Source, name: str | None) -> Iterator[ImageFile]:
    """The picture, header read and size accepted. Whatever goes wrong inside becomes a PictureError."""
    given = name or (f"picture of {len(source)} bytes" if isinstance(source, bytes) else os.fspath(source))
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in given)
    kind: str = ""
    image: ImageFile | None = None
    try:
        with _stream(source) as stream:
            reader = _reader(stream)
            kind = reader.format or ""
            image = reader(stream)
            _check_size(reader, *image.size)
            with image:
                yield image
    except PictureError as refusal:
        raise PictureError(f"{shown}: {refusal}", refusal.code) from refusal.__cause__
    except Image.DecompressionBombError as fault:
        too_many = f"{shown}: too many pixels, make it smaller first ({fault})"
        raise PictureError(too_many, "picture_too_large") from fault
    except MemoryError as fault:
        raise PictureError(f"{shown}: not enough memory to decode this {kind} picture") from fault
    except Exception as fault:  # a broken picture can raise anything in a decoder
        if isinstance(fault, OSError) and fault.strerror:  # from the system: Pillow's own carry no such text
            raise PictureError(f"{shown}: cannot be read ({fault.strerror})") from fault
        lines = str(fault).splitlines() or [type(fault).__name__]
        cut_off = _ends_early(source, kind, image)
        how, code = ("cut-off", "picture_truncated") if cut_off else ("broken", "picture_unreadable")
        what = f"{how} {kind} picture" if kind else f"{how} picture"
        raise PictureError(f"{shown}: {what} ({lines[0]})", code) from fault


def _ends_early(source: Source, kind: str, image: ImageFile | None) -> bool:
    try:
        with _stream(source) as stream:
            return is_cut_off(stream, kind, image)
    except (
        OSError,
        ValueError,
        PictureError,
    ):  # it is gone meanwhile, or there never was a file of that name
        return False


def _check_size(reader: type[ImageFile], width: int, height: int) -> None:
    limit = MAX_PIXELS // 2 if reader in (_WebP, _Jpeg2K) else MAX_PIXELS
    if width * height > limit:
        too_many = f"{width} x {height} is more than {limit:,} pixels, make it smaller first"
        raise PictureError(too_many, "picture_too_large")


@contextmanager
def _stream(source: Source) -> Iterator[Stream]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    status = os.stat(source)
    if not stat.S_ISREG(status.st_mode):  # a pipe would wait for ever, a device would never end
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, socket or device"
        raise PictureError(f"{what}, not a picture file", "picture_not_a_picture")
    if status.st_size > MAX_BYTES:
        too_large = f"{status.st_size:,} bytes are more than the allowed {MAX_BYTES:,}"
        raise PictureError(too_large, "picture_too_large")
    with open(source, "rb") as stream:
        yield stream


def _reader(stream: Stream) -> type[ImageFile]:
    head = stream.read(64)
    stream.seek(0)
    for reader, prefixes in _READERS:
        if head.startswith(prefixes):
            if reader is _Tiff:
                check_tiff_directory(stream, head)
            return reader
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return _WebP
    if head[4:8] == b"ftyp":
        if b"avif" in head or b"avis" in head:
            return _Avif
        heic = "HEIC, HEIF and video files are not supported: convert it to JPEG or PNG"
        raise PictureError(heic, "picture_unsupported")
    raise no_picture(head)


def _orientation(image: ImageFile) -> tuple[int, bool, _Note]:
    """The orientation, 1 to 8, whether Pillow applies it itself, and what to say about it."""
    if isinstance(image, _Tiff):
        value = image.tag_v2.get(_ORIENTATION_TAG, 1)
        value, how = value if value in range(1, 9) else 1, "TIFF"
    else:
        exif = image.info.get("exif") or (_late_exif(image) if image.format == "PNG" else b"")
        value, how = exif_orientation(exif.removeprefix(b"Exif\0\0")) if exif else 1, "EXIF"
    if value is None:
        return 1, False, ("picture_note", "broken EXIF ignored")
    said = f"{how} orientation {value} applied" if value != 1 else ""
    return value, how == "TIFF", ("picture_orientation", said)


def exif_orientation(exif: bytes) -> int | None:
    """Tag 274 of the first directory, 1 where there is none, None where the block cannot be read."""
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if order is None:
        return None
    try:
        (start,) = struct.unpack_from(f"{order}L", exif, 4)
        (count,) = struct.unpack_from(f"{order}H", exif, start)
        for entry in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(f"{order}HH", exif, entry)
            if tag == _ORIENTATION_TAG:
                (value,) = struct.unpack_from(order + ("L" if kind == 4 else "H"), exif, entry + 8)
                return value if 1 <= value <= 8 else None
    except struct.error:
        return None
    return 1


def _late_exif(image: ImageFile) -> bytes:
    """The EXIF chunk of a PNG, which may stand after the pixels, where Pillow does not look at first."""
    stream = image.fp
    assert stream is not None
    here = stream.tell()
    stream.seek(8)
    exif = b""
    while len(chunk := stream.read(8)) == 8:
        length, kind = struct.unpack(">L4s", chunk)
        if kind == b"eXIf":
            exif = stream.read(min(length, 2**20))
            break
        stream.seek(length + 4, io.SEEK_CUR)
    stream.seek(here)
    return exif


def _frames(image: ImageFile) -> tuple[int, str]:
    """How many pictures the file holds, 2 for two or more where they are not counted, and what to say about it."""
    if "mp" in image.info:
        return 2, "first picture of a multi-picture JPEG"
    if isinstance(image, _Gif | _Tiff):  # counting their frames means reading the whole file
        return (2, "first of several frames") if image.is_animated else (1, "")
    if isinstance(image, _Png | _WebP | _Avif) and image.n_frames > 1:
        return image.n_frames, f"frame 1 of {image.n_frames}"
    return 1, ""


def _stored_mode(image: ImageFile) -> tuple[str, str]:
    """Pillow's mode, and what to say of 16 bits a channel that Pillow reduces while it decodes."""
    if isinstance(image, _Ppm) and image.mode == "I":
        return "I;16", ""
    if isinstance(image, _Png | _Tiff) and not image.mode.startswith("I") and ";16" in _raw_mode(image):
        return f"{image.mode};16", "16-bit colour reduced to its high 8 bits"
    return image.mode, ""


def _raw_mode(image: ImageFile) -> str:
    args = image.tile[0].args if image.tile else ""
    return str(args[0] if isinstance(args, tuple) else args)


def _has_end_marker(image: _Jpeg) -> bool:
    """Whether the scan ends with its marker, two bytes that cannot occur inside it.

    Pillow does not always notice: a tail of zeros, the usual trace of a failed copy, decodes to flat gray.
    """
    assert image.fp is not None
    here = image.fp.tell()  # Pillow has read up to the scan: the thumbnail before it has an end of its own
    end = image.fp.seek(0, io.SEEK_END)
    image.fp.seek(max(here, end - 2))
    found = image.fp.read() == b"\xff\xd9"  # of nearly every file these are the last two bytes
    if not found:
        image.fp.seek(here)
        found = b"\xff\xd9" in image.fp.read()
    image.fp.seek(here)
    return found


def _jpeg_without_end(image: _Jpeg) -> _Jpeg:
    """The picture of a baseline JPEG that lacks its last two bytes and nothing else.

    It is decoded with three different endings. What follows the last pixel is skipped, so a whole picture
    comes out the same each time; where data is missing, the decoder takes the ending for pixels. That says
    nothing where the decoder may leave parts out: between scans, at restart markers and in a tail of zeros.
    """
    assert image.fp is not None
    image.fp.seek(0)
    data = image.fp.read().removesuffix(b"\xff")
    refusal = PictureError("cut-off JPEG picture (its end marker is missing)", "picture_truncated")
    if "progressive" in image.info or b"\xff\xdd\x00\x04" in data or data.endswith(bytes(8)):
        raise refusal
    whole = _Jpeg(io.BytesIO(data + b"\xff\xd9"))
    for filler in (b"\xb6\x5d" * 64, b"\x29\xe4" * 64):
        other = _Jpeg(io.BytesIO(data + filler + b"\xff\xd9"))
        pairs = zip(_strips(whole), _strips(other), strict=True)
        if any(ImageChops.difference(a, b).getbbox() for (_, a), (_, b) in pairs):
            raise refusal
    return whole


def _alpha_note(image: ImageFile) -> str:
    if image.getbands()[-1] == "A":
        opaque = image.getchannel("A").histogram()[255] / (image.width * image.height)
        share = "all of it opaque" if opaque == 1 else f"{1 - opaque:.1%} of the pixels are not opaque"
        return f"alpha dropped ({share})"
    return "transparent colour kept as it is stored" if "transparency" in image.info else ""


_Convert = Callable[[Image.Image], np.ndarray]
"""A strip of the picture as H x W x 3 uint8, or H x W where it is gray."""

_MODE_NOTES = {
    "RGB": "",
    "RGBA": "",
    "RGBX": "",
    "L": "gray repeated in three channels",
    "LA": "gray repeated in three channels",
    "1": "black and white as 0 and 255",
    "P": "palette colours looked up",
    "PA": "palette colours looked up",
    "CMYK": "CMYK converted",
    "YCbCr": "YCbCr converted",
}


def _converter(image: ImageFile) -> tuple[_Convert, str]:
    """How the picture's mode becomes uint8, and what to say about it."""
    mode = image.mode
    if isinstance(image, _Tiff) and _DNG_TAG in image.tag_v2:
        raw = "raw camera files (DNG) are not supported: develop it to JPEG or PNG first"
        raise PictureError(raw, "picture_unsupported")
    if mode.startswith("I;16") or (mode == "I" and isinstance(image, _Ppm)):
        return _gray16(image)
    if mode == "LAB":
        return _lab_to_rgb, "CIE Lab converted"
    if mode not in _MODE_NOTES:
        what = {"F": "float", "I": "32-bit integer"}.get(mode, mode)
        vague = f"{what} pixels have no agreed black and white: convert it to 8 or 16 bit"
        raise PictureError(vague, "picture_unsupported")
    return _to_rgb, _MODE_NOTES[mode]


def _gray16(image: ImageFile) -> tuple[_Convert, str]:
    white = 4095 if _raw_mode(image) == "I;12" else 65535
    scaled = "16-bit gray scaled by 1/257" if white == 65535 else "12-bit gray scaled by 255/4095"
    # "White is zero": Pillow turns 8-bit pictures of this kind round, but not these.
    inverted = isinstance(image, _Tiff) and image.tag_v2.get(_PHOTOMETRIC_TAG) == 0

    def convert(strip: Image.Image) -> np.ndarray:
        gray = np.minimum(np.asarray(strip), white).astype(np.uint32)
        gray = (gray * 255 + white // 2) // white
        return (255 - gray if inverted else gray).astype(np.uint8)

    return convert, scaled + (", white-is-zero turned round" if inverted else "")


def _to_rgb(strip: Image.Image) -> np.ndarray:
    return np.asarray(strip if strip.mode in ("RGB", "L") else strip.convert("RGB"))


def _lab_to_rgb(strip: Image.Image) -> np.ndarray:
    from PIL import ImageCms  # not part of every build of Pillow

    lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
    return np.asarray(ImageCms.profileToProfile(strip, lab, srgb, outputMode="RGB"))


def _strips(image: ImageFile) -> Iterator[tuple[slice, Image.Image]]:
    """Rows and picture of one strip after the other. A picture of usual size is one strip, itself."""
    width, height = image.size
    rows = max(1, _STRIP_PIXELS // width)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        yield slice(top, bottom), image if rows >= height else image.crop((0, top, width, bottom))


def _upright(image: ImageFile, orientation: int, convert: _Convert) -> np.ndarray:
    width, height = image.size
    shape = (width, height, 3) if orientation >= 5 else (height, width, 3)
    converted = ((rows, convert(strip)) for rows, strip in _strips(image))
    first = next(converted)  # before the result is allocated: the other order costs a third of the time
    pixels = np.empty(shape, np.uint8)
    stored = _stored_view(pixels, orientation)
    for rows, strip in chain([first], converted):
        if strip.ndim == 3:
            stored[rows] = strip
        else:  # one channel at a time: NumPy takes five times as long to repeat each value
            for channel in range(3):
                stored[rows, :, channel] = strip
    return pixels


def _stored_view(upright: np.ndarray, orientation: int) -> np.ndarray:
    """The upright picture as the file stores it: writing the file's rows into this view turns them."""
    turned = upright.swapaxes(0, 1)
    return {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: turned,
        6: turned[::-1],
        7: turned[::-1, ::-1],
        8: turned[:, ::-1],
    }[orientation]
