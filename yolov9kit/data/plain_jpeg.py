"""Which JPEG files are plain: those that every decoder takes for the same picture, told by their markers alone.

Plain is what nearly every camera and program writes: baseline, 8 bits, Huffman coded, gray or YCbCr with the usual
chroma sampling, in one scan. Progressive files are not: GPUs decode them one by one, slower than a few threads do.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from yolov9kit.data.image import MAX_PIXELS, exif_orientation

_DHT, _DQT, _DRI, _SOF0, _SOS = 0xC4, 0xDB, 0xDD, 0xC0, 0xDA
_APP0, _APP1, _APP2, _APP13, _APP14, _APP15, _COM = 0xE0, 0xE1, 0xE2, 0xED, 0xEE, 0xEF, 0xFE
_KEPT = {_DHT, _DQT, _DRI, _SOF0, _SOS}

# SOI, and an APP0 that says "JFIF 1.1": the colours are YCbCr, whatever the components are called
_START = b"\xff\xd8\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"
_EOI = b"\xff\xd9"
_RESTART = re.compile(rb"\xff([\xd0-\xd7])")

_LONGEST_SIDE = 65_500  # of libjpeg
_LUMA_SAMPLING = {0x11, 0x21, 0x12, 0x22}
_YCBCR = 1  # "transform" in Adobe's segment


@dataclass(frozen=True, eq=False)
class PlainJpeg:
    """A plain JPEG: ``stream`` is the whole of it without metadata and without what follows its end.

    Width and height are those of the stored picture; ``orientation`` 1 to 8 has still to be applied. ``notes`` as
    ``decode_image`` gives them.
    """

    stream: bytearray
    width: int
    height: int
    orientation: int
    notes: tuple[str, ...]


def is_plain_jpeg(data: bytes) -> bool:
    """Whether a file's content is a plain JPEG (see above), complete up to its end marker."""
    return plain_jpeg(data) is not None


def plain_jpeg(data: bytes) -> PlainJpeg | None:
    """The plain JPEG in a file's content; None for everything else, broken files included."""
    try:
        header = _read_header(data)
        return _finished(data, header)
    except (_NotPlainError, IndexError):
        return None


class _NotPlainError(Exception):
    """Some other decoder might see something else in this file."""


def _check(plain: bool) -> None:
    if not plain:
        raise _NotPlainError


@dataclass(eq=False)
class _Header:
    """What the markers before the scan say. ``components``: identifier, sampling and quantisation table of each."""

    kept: list[bytes] = field(default_factory=list)
    width: int = 0
    height: int = 0
    components: list[tuple[int, int, int]] = field(default_factory=list)
    quantisation: set[int] = field(default_factory=set)
    huffman: set[int] = field(default_factory=set)
    interval: int = 0
    exif: bytes = b""
    adobe_transform: int | None = None
    several_pictures: bool = False
    scan: int = 0


def _read_header(data: bytes) -> _Header:
    header = _Header()
    for marker, start, end in _segments(data):
        body = data[start + 4 : end]
        if marker == _DQT:
            _quantisation_tables(header, body)
        elif marker == _DHT:
            _huffman_tables(header, body)
        elif marker == _SOF0:
            _frame(header, body)
        elif marker == _DRI:
            _check(len(body) == 2)
            header.interval = int.from_bytes(body, "big")
        elif marker == _SOS:
            _scan_header(header, body)
        else:
            _metadata(header, marker, body)
        if marker in _KEPT:
            header.kept.append(data[start:end])
        header.scan = end
    return header


def _segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker, start and end of each segment up to the start of the scan."""
    _check(data.startswith(b"\xff\xd8\xff"))
    start, marker = 2, 0
    while marker != _SOS:
        _check(data[start] == 0xFF)
        marker = data[start + 1]
        _check(marker in _KEPT or _APP0 <= marker <= _APP15 or marker == _COM)
        end = start + 2 + int.from_bytes(data[start + 2 : start + 4], "big")
        _check(start + 4 <= end <= len(data))
        yield marker, start, end
        start = end


def _quantisation_tables(header: _Header, body: bytes) -> None:
    _check(len(body) % 65 == 0)
    for table in range(0, len(body), 65):
        _check(body[table] <= 3)  # 8 bits, one of four
        header.quantisation.add(body[table])


def _huffman_tables(header: _Header, body: bytes) -> None:
    start = 0
    while start < len(body):
        name = body[start]
        _check(name in (0x00, 0x01, 0x10, 0x11))  # DC or AC, one of two
        counts = body[start + 1 : start + 17]
        end = start + 17 + sum(counts)
        _check(sum(counts) > 0 and end <= len(body))
        code = 0
        for length, count in enumerate(counts, 1):
            code += count
            _check(not count or code < 1 << length)  # there are codes left, and none of ones alone
            code <<= 1
        _check(name >= 0x10 or max(body[start + 17 : end]) <= 15)
        header.huffman.add(name)
        start = end


def _frame(header: _Header, body: bytes) -> None:
    count = body[5]
    _check(not header.components and body[0] == 8 and count in (1, 3) and len(body) == 6 + 3 * count)
    height, width = int.from_bytes(body[1:3], "big"), int.from_bytes(body[3:5], "big")
    _check(0 < width <= _LONGEST_SIDE and 0 < height <= _LONGEST_SIDE and width * height <= MAX_PIXELS)
    header.width, header.height = width, height
    header.components = [(body[i], body[i + 1], body[i + 2]) for i in range(6, len(body), 3)]
    names, samplings, _ = zip(*header.components, strict=True)
    _check(len(set(names)) == count and bytes(names) != b"RGB")
    _check(samplings[0] in (_LUMA_SAMPLING if count == 3 else {0x11}) and set(samplings[1:]) <= {0x11})


def _scan_header(header: _Header, body: bytes) -> None:
    count = len(header.components)
    _check(count > 0 and len(body) == 4 + 2 * count and body[0] == count and body[-3:] == b"\0\x3f\0")
    for (name, _, quantisation), i in zip(header.components, range(1, len(body) - 3, 2), strict=True):
        dc, ac = body[i + 1] >> 4, body[i + 1] & 15
        _check(body[i] == name and quantisation in header.quantisation)
        _check(dc in header.huffman and 0x10 + ac in header.huffman)


def _metadata(header: _Header, marker: int, body: bytes) -> None:
    """What changes the picture or what is said of it, and what Pillow stumbles over."""
    if marker == _APP0 and body.startswith(b"JFIF"):
        _check(len(body) >= 7)
    elif marker == _APP1 and body.startswith(b"Exif\0\0"):
        _check(not header.exif)
        header.exif = body
    elif marker == _APP2 and body.startswith(b"ICC_PROFILE\0"):
        _check(len(body) >= 14)
    elif marker == _APP2 and body.startswith(b"MPF\0"):
        header.several_pictures = True
    elif marker == _APP13:
        _check(not body.startswith(b"Photoshop 3.0\0"))  # a broken one is refused by Pillow
    elif marker == _APP14 and body.startswith(b"Adobe"):
        _check(header.adobe_transform is None and len(body) >= 12)
        header.adobe_transform = body[11]


def _finished(data: bytes, header: _Header) -> PlainJpeg:
    gray = len(header.components) == 1
    _check(gray or header.adobe_transform in (None, _YCBCR))
    end = data.find(_EOI, header.scan)
    _check(end >= 0)
    _check_scan(data, header, end)
    orientation, notes = 1, []
    if header.exif:
        found = exif_orientation(header.exif.removeprefix(b"Exif\0\0"))
        if found is None:
            raise _NotPlainError
        orientation = found
        notes += [f"EXIF orientation {orientation} applied"] if orientation != 1 else []
    notes += ["first picture of a multi-picture JPEG"] if header.several_pictures else []
    notes += ["gray repeated in three channels"] if gray else []
    stream = bytearray(_START)
    for segment in header.kept:
        stream += segment
    stream += memoryview(data)[header.scan : end + 2]
    return PlainJpeg(stream, header.width, header.height, orientation, tuple(notes))


def _check_scan(data: bytes, header: _Header, end: int) -> None:
    """No marker inside the scan but those for a restart, all of them and in their order."""
    restarts = 0
    if header.interval:
        sampling = header.components[0][1]
        across = -(-header.width // (8 * (sampling >> 4)))
        down = -(-header.height // (8 * (sampling & 15)))
        restarts = (across * down - 1) // header.interval
        found = _RESTART.findall(data, header.scan, end)
        _check(len(found) == restarts and all(mark[0] == 0xD0 + i % 8 for i, mark in enumerate(found)))
    stuffed = data.count(b"\xff\0", header.scan, end)
    _check(data.count(b"\xff", header.scan, end) == stuffed + restarts)
