"""Why a file is no picture, or no whole one: told from its bytes, not from the words of a decoder."""

import io
import struct

from PIL.ImageFile import ImageFile
from PIL.TiffImagePlugin import TiffImageFile

from yolov9kit.errors import PictureError

Stream = io.BytesIO | io.BufferedReader

_TAIL = 4096
_TIFF_PLACES = ((273, 279), (324, 325))  # offsets and byte counts, of strips or of tiles

_NOT_PICTURES = (
    (b"version https://git-lfs", "a Git LFS pointer, not the picture itself: run `git lfs pull`"),
    (b"\0\x05\x16\x07", "a macOS resource file, not the picture itself"),
    (b"%PDF", "a PDF document: convert its pages to PNG first"),
    (b"<", "text (HTML, SVG or XML), not a raster picture"),
)
_UNKNOWN = "not a picture of a known format (JPEG, PNG, GIF, BMP, TIFF, WebP, AVIF, JPEG 2000, PPM)"


def no_picture(head: bytes) -> PictureError:
    """What to say of a file that begins with ``head`` and is of no format that is read."""
    if not head:
        return PictureError("the file is empty", "picture_empty")
    if not any(head):
        return PictureError("zero bytes only, perhaps a failed copy", "picture_empty")
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    reason = next((reason for prefix, reason in _NOT_PICTURES if text.startswith(prefix)), _UNKNOWN)
    return PictureError(reason, "picture_not_a_picture")


def check_tiff_directory(stream: Stream, head: bytes) -> None:
    """Pillow would only warn about a directory that lies past the end, the usual sign of a cut-off file."""
    if head[2:4] in (b"+\0", b"\0+"):
        return  # BigTIFF has another layout
    order = "<" if head.startswith(b"II") else ">"
    end = stream.seek(0, io.SEEK_END)
    (start,) = struct.unpack_from(f"{order}L", head, 4)
    stream.seek(start)
    count = stream.read(2)
    stream.seek(0)
    if len(count) < 2 or start + 2 + 12 * struct.unpack(f"{order}H", count)[0] > end:
        raise PictureError("cut-off TIFF picture (its directory lies past the end)", "picture_truncated")


def is_cut_off(stream: Stream, kind: str, image: ImageFile | None) -> bool:
    """Whether a file that could not be decoded ends before the picture in it does.

    ``kind``: Pillow's name of the format. ``image``: the picture, where at least its header could be read. False also
    where the format does not tell.
    """
    size = stream.seek(0, io.SEEK_END)
    stream.seek(0)
    match kind:
        case "PNG":
            return not _png_has_end(stream)
        case "JPEG" | "GIF":
            stream.seek(max(0, size - _TAIL))
            return not stream.read().rstrip(b"\0").endswith(b"\xff\xd9" if kind == "JPEG" else b";")
        case "BMP" | "WEBP":
            head = stream.read(8).ljust(8, b"\0")
            said = struct.unpack_from("<L", head, 2 if kind == "BMP" else 4)[0]
            return bool(said + (8 if kind == "WEBP" else 0) > size)
        case "AVIF" | "JPEG2000":
            return _boxes_reach_past(stream, size)
        case "TIFF":
            return isinstance(image, TiffImageFile) and _tiff_reaches_past(image, size)
        case "PPM":  # raw pixels cannot be broken, only too few; those written as text can
            return image is not None and stream.read(2) in (b"P4", b"P5", b"P6")
    return False


def _png_has_end(stream: Stream) -> bool:
    stream.seek(8)
    while len(chunk := stream.read(8)) == 8:
        length, name = struct.unpack(">L4s", chunk)
        if name == b"IEND":
            return True
        stream.seek(length + 4, io.SEEK_CUR)
    return False


def _boxes_reach_past(stream: Stream, size: int) -> bool:
    """For the formats made of boxes, each with its length before it. A bare JPEG 2000 stream ends with a marker."""
    if stream.read(2) == b"\xff\x4f":
        stream.seek(-2, io.SEEK_END)
        return stream.read() != b"\xff\xd9"
    start = 0
    while start + 8 <= size:
        stream.seek(start)
        length, _, long = struct.unpack(">L4sQ", stream.read(16).ljust(16, b"\0"))
        length = {0: size - start, 1: long}.get(length, length)  # 0: up to the end
        if length < 8:
            return False
        start += length
    return start != size


def _tiff_reaches_past(image: TiffImageFile, size: int) -> bool:
    tags = image.tag_v2
    ends = (
        (start + count for start, count in zip(tags.get(offsets, ()), tags.get(counts, ()), strict=False))
        for offsets, counts in _TIFF_PLACES
    )
    return max((end for places in ends for end in places), default=0) > size
