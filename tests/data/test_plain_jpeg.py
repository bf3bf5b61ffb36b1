"""Plain JPEG: what is called plain is the same picture for every decoder, and nothing broken is called so."""

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from yolov9kit.data.image import decode_image
from yolov9kit.data.plain_jpeg import PlainJpeg, is_plain_jpeg, plain_jpeg

HOSTILE = Path(__file__).parents[2].parent / "shared" / "data" / "hostile"


def scene(width: int = 40, height: int = 24) -> Image.Image:
    """Smooth, without symmetry."""
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack((220 * x / width, 230 * y / height, 255 - 90 * x / width - 90 * y / height), axis=-1)
    return Image.fromarray(rgb.astype(np.uint8))


def jpeg(image: Image.Image | None = None, **options: Any) -> bytes:
    stream = io.BytesIO()
    (image or scene()).save(stream, "JPEG", **options)
    return stream.getvalue()


def turned_by(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[274] = orientation
    return exif


def segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + (len(body) + 2).to_bytes(2, "big") + body


def with_segment(marker: int, body: bytes, data: bytes | None = None) -> bytes:
    """The file with one more segment behind its first marker."""
    data = data or jpeg()
    return data[:2] + segment(marker, body) + data[2:]


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    return data.replace(old, new)


RGB_ADOBE, YCBCR_ADOBE = (b"Adobe\0\x64\0\0\0\0" + bytes((transform,)) for transform in (0, 1))
MPF = b"MPF\0II*\0\x08\0\0\0\0\0\0\0\0\0"

PLAIN = {
    "as Pillow writes it": jpeg(),
    "full colour": jpeg(subsampling=0),
    "half colour": jpeg(subsampling=1),
    "quarter colour": jpeg(subsampling=2),
    "gray": jpeg(scene().convert("L")),
    "own Huffman tables": jpeg(optimize=True),
    "restarts": jpeg(restart_marker_blocks=1),
    "restarts in rows": jpeg(scene(200, 90), restart_marker_rows=1, subsampling=0),
    "more than eight restarts": jpeg(scene(200, 90), restart_marker_blocks=3),
    "low quality": jpeg(quality=1),
    "high quality": jpeg(quality=100),
    "turned": jpeg(exif=turned_by(6)),
    "mirrored": jpeg(exif=turned_by(2)),
    "upright by EXIF": jpeg(exif=turned_by(1)),
    "comment and colour profile": jpeg(comment=b"\xff\xd9 \xff\xda", icc_profile=bytes(range(200)) * 600),
    "colour transform of Adobe": with_segment(0xEE, YCBCR_ADOBE),
    "gray of Adobe": with_segment(0xEE, RGB_ADOBE, jpeg(scene().convert("L"))),
    "several pictures": with_segment(0xE2, MPF) + jpeg(scene(8, 8)),
    "something behind it": jpeg() + b"\xff\xd8 and more \xff\xd9",
    "one pixel": jpeg(scene(1, 1)),
    "odd sizes": jpeg(scene(17, 33)),
}

NOT_PLAIN = {
    "nothing": b"",
    "its beginning": b"\xff\xd8\xff",
    "a PNG": b"\x89PNG\r\n\x1a\n" + jpeg(),
    "progressive": jpeg(progressive=True),
    "CMYK": jpeg(scene().convert("CMYK")),
    "RGB kept": jpeg(keep_rgb=True),
    "RGB by Adobe": with_segment(0xEE, RGB_ADOBE),
    "RGB by its names": changed(
        changed(jpeg(), b"\x03\x01\x22\0\x02\x11\x01\x03\x11\x01", b"\x03R\x22\0G\x11\x01B\x11\x01"),
        b"\x03\x01\0\x02\x11\x03\x11\0\x3f",
        b"\x03R\0G\x11B\x11\0\x3f",
    ),
    "arithmetic": changed(jpeg(), b"\xff\xc0\0\x11", b"\xff\xc9\0\x11"),
    "lossless": changed(jpeg(), b"\xff\xc0\0\x11", b"\xff\xc3\0\x11"),
    "12 bits": changed(jpeg(), b"\xff\xc0\0\x11\x08", b"\xff\xc0\0\x11\x0c"),
    "no width": changed(jpeg(), b"\0\x18\0\x28\x03", b"\0\x18\0\0\x03"),
    "too many pixels": changed(jpeg(), b"\0\x18\0\x28\x03", b"\xff\0\xff\0\x03"),
    "a side too long": changed(jpeg(), b"\0\x18\0\x28\x03", b"\0\x18\xff\xff\x03"),
    "odd sampling": changed(jpeg(), b"\x01\x22\0\x02\x11\x01", b"\x01\x41\0\x02\x11\x01"),
    "sampled gray": changed(jpeg(scene().convert("L")), b"\x01\x01\x11\0", b"\x01\x01\x22\0"),
    "broken EXIF": with_segment(0xE1, b"Exif\0\0no EXIF"),
    "two EXIF blocks": with_segment(0xE1, b"Exif\0\0", jpeg(exif=turned_by(3))),
    "Photoshop's block": with_segment(0xED, b"Photoshop 3.0\0"),
    "short JFIF": with_segment(0xE0, b"JFIF\0"),
    "junk between segments": jpeg()[:2] + b"\0\0" + jpeg()[2:],
    "filled marker": jpeg()[:2] + b"\xff" + jpeg()[2:],
    "no end": jpeg()[:-2],
    "a cut-off scan": jpeg()[:-40],
    "a cut-off header": jpeg()[:300],
    "a stray marker in the scan": jpeg()[:-20] + b"\xff\xc4" + jpeg()[-18:],
    "a restart that nobody stated": jpeg()[:-20] + b"\xff\xd0" + jpeg()[-18:],
    "a restart missing": jpeg(restart_marker_blocks=1).replace(b"\xff\xd1", b"\0\0"),
    "restarts in disorder": jpeg(restart_marker_blocks=1).replace(b"\xff\xd1", b"\xff\xd2"),
}


def same_picture(data: bytes, plain: PlainJpeg) -> None:
    """The stream is the picture as the file stores it; size, orientation and notes are the decoder's."""
    whole, stored = decode_image(data), decode_image(bytes(plain.stream)).pixels
    assert stored.shape == (plain.height, plain.width, 3) and whole.notes == plain.notes
    turned = {1: lambda p: p, 2: lambda p: p[:, ::-1], 6: lambda p: np.rot90(p, 3)}
    if plain.orientation in turned:
        assert np.array_equal(turned[plain.orientation](stored), whole.pixels)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_is_the_same_picture_without_metadata(name: str) -> None:
    plain = plain_jpeg(PLAIN[name])
    assert plain is not None and is_plain_jpeg(PLAIN[name])
    same_picture(PLAIN[name], plain)
    again = plain_jpeg(bytes(plain.stream))
    assert again is not None and again.stream == plain.stream and again.orientation == 1
    for metadata in (b"Exif", b"ICC_PROFILE", b"Adobe", b"MPF", b"and more"):
        assert metadata not in plain.stream


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_everything_else_is_not_plain(name: str) -> None:
    assert plain_jpeg(NOT_PLAIN[name]) is None and not is_plain_jpeg(NOT_PLAIN[name])


def test_orientation_and_notes() -> None:
    found = {name: plain_jpeg(data) for name, data in PLAIN.items()}
    facts = {name: (plain.orientation, plain.notes) for name, plain in found.items() if plain}
    assert facts["turned"] == (6, ("EXIF orientation 6 applied",))
    assert facts["upright by EXIF"] == (1, ())
    assert facts["gray"] == (1, ("gray repeated in three channels",))
    assert facts["several pictures"] == (1, ("first picture of a multi-picture JPEG",))


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(PLAIN)))
def test_no_damage_makes_a_plain_picture_that_the_decoder_refuses(seed: int, name: str) -> None:
    chance, data = random.Random(seed), bytearray(PLAIN[name])
    scan = data.index(b"\xff\xda")
    for _ in range(chance.choice((1, 1, 2, 3))):
        at = chance.randrange(len(data) if chance.random() < 0.3 else min(scan + 14, len(data)))
        what = chance.random()
        if what < 0.7:
            data[at] = chance.choice((chance.randrange(256), 0, 0xFF, 0xD9, 1, 0x11, 0x22))
        elif what < 0.85:
            del data[at : at + chance.choice((1, 2, 20))]
        else:
            data[at:at] = chance.randbytes(chance.choice((1, 2, 5)))
    plain = plain_jpeg(bytes(data))
    if plain is not None:
        same_picture(bytes(data), plain)


@pytest.mark.skipif(not HOSTILE.is_dir(), reason="../shared/data/hostile is not here")
def test_hostile_files_that_are_plain_are_the_same_picture_and_the_others_are_told_apart() -> None:
    rows = json.loads((HOSTILE / "index.json").read_text(encoding="utf-8"))
    plain_files = []
    for row in rows:
        content = (HOSTILE / row["file"]).read_bytes()
        plain = plain_jpeg(content)
        if plain is not None:
            assert row["verdict"] != "error", row["file"]
            same_picture(content, plain)
            plain_files.append(row["file"])
    assert len(plain_files) >= 15 and not [name for name in plain_files if "cmyk" in name.lower()]
