"""One decoder: every odd picture comes out as stated or is refused by name, and nothing else is raised."""

import hashlib
import io
import json
import os
import random
import struct
import subprocess
import sys
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile, ImageOps

from yolov9kit.data.image import (
    IMAGE_SUFFIXES,
    MAX_BYTES,
    MAX_PIXELS,
    decode_image,
    image_size,
    is_image_name,
    read_image,
)
from yolov9kit.errors import PictureError

HOSTILE = Path(__file__).parents[2].parent / "shared" / "data" / "hostile"
INDEX = HOSTILE / "index.json"
ROWS = json.loads(INDEX.read_text(encoding="utf-8")) if INDEX.is_file() else []
needs_hostile = pytest.mark.skipif(not ROWS, reason="../shared/data/hostile is not here")


# --- pictures to read


def scene(width: int = 100, height: int = 40) -> Image.Image:
    """Smooth, without symmetry: every rotation and reflection of it is another picture."""
    y, x = np.mgrid[0:height, 0:width]
    rgb = np.stack([255 * x / width, 255 * y / height, 255 * (x < width / 4) * (y < height / 3)], axis=-1)
    return Image.fromarray(rgb.astype(np.uint8))


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def exif_block(orientation: int, order: str = "<", kind: int = 3) -> bytes:
    value = struct.pack(
        order + ("HH" if kind == 3 else "L"), *((orientation, 0) if kind == 3 else (orientation,))
    )
    mark = b"II" if order == "<" else b"MM"
    entry = struct.pack(f"{order}HHL", 274, kind, 1) + value
    return b"Exif\0\0" + mark + struct.pack(f"{order}HLH", 42, 8, 1) + entry + struct.pack(f"{order}L", 0)


def png(width: int, height: int, depth: int, colour: int, rows: bytes, *late: tuple[bytes, bytes]) -> bytes:
    """A PNG chunk by chunk; ``late`` chunks stand behind the pixels."""
    header = struct.pack(">LLBBBBB", width, height, depth, colour, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), *late, (b"IEND", b"")]
    body = b"".join(
        struct.pack(">L", len(data)) + name + data + struct.pack(">L", zlib.crc32(name + data))
        for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def tiff(width: int, height: int, bits: int, photometric: int, data: bytes) -> bytes:
    """An uncompressed gray TIFF of one strip, little-endian."""
    tags = [(256, width), (257, height), (258, bits), (259, 1), (262, photometric), (273, 8), (277, 1)]
    tags += [(278, height), (279, len(data))]
    entries = b"".join(struct.pack("<HHLL", tag, 4 if tag == 279 else 3, 1, value) for tag, value in tags)
    pad = data + b"\0" * (len(data) % 2)
    return (
        b"II*\0" + struct.pack("<L", 8 + len(pad)) + pad + struct.pack("<H", len(tags)) + entries + bytes(4)
    )


def refusal(source: str | os.PathLike[str] | bytes, name: str | None = None) -> str:
    with pytest.raises(PictureError) as caught:
        read_image(source, name=name)
    message = str(caught.value)
    assert "\n" not in message and "0x" not in message
    return message


VALID = {
    "jpeg": encoded(scene(), "JPEG"),
    "progressive": encoded(scene(), "JPEG", progressive=True),
    "cmyk": encoded(scene().convert("CMYK"), "JPEG"),
    "png": encoded(scene(), "PNG"),
    "palette": encoded(scene().convert("P"), "PNG"),
    "gif": encoded(scene(), "GIF"),
    "bmp": encoded(scene(), "BMP"),
    "tiff": encoded(scene(), "TIFF"),
    "tiff_lzw": encoded(scene(), "TIFF", compression="tiff_lzw"),
    "webp": encoded(scene(), "WEBP"),
    "avif": encoded(scene(), "AVIF"),
    "jp2": encoded(scene(), "JPEG2000"),
    "ppm": encoded(scene(), "PPM"),
}


# --- the reference set


def quadrants(pixels: np.ndarray) -> list[float]:
    gray, (h, w) = pixels.mean(axis=2), pixels.shape[:2]
    halves = (gray[: h // 2], gray[h // 2 :])
    return [float(part.mean()) for half in halves for part in (half[:, : w // 2], half[:, w // 2 :])]


def check_stated(pixels: np.ndarray, stated: dict) -> None:
    """Size, mean colour (alpha dropped) and the brightness of the quadrants, as the index gives them."""
    tolerance = 4 if stated["format"] in ("JPEG", "MPO", "WEBP", "AVIF", "HEIF") else 2
    assert [pixels.shape[1], pixels.shape[0]] == stated["size"]
    assert np.abs(pixels.mean(axis=(0, 1)) - stated["mean"]).max() <= tolerance
    if "quadrants" in stated:
        assert np.abs(np.subtract(quadrants(pixels), stated["quadrants"])).max() <= tolerance


@needs_hostile
@pytest.mark.filterwarnings("ignore:Tag data larger than file")
@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_hostile_file_behaves_as_stated(row: dict) -> None:
    path, verdict, stated = HOSTILE / row["file"], row["verdict"], row["pillow"]
    try:
        decoded = decode_image(path)
    except PictureError as error:
        message = str(error)
        assert message.startswith(f"{path}: ") and "\n" not in message and "0x" not in message
        assert verdict in ("error", "either") or (verdict == "optional" and "not supported" in message), (
            message
        )
        return
    pixels = decoded.pixels
    assert verdict != "error"
    assert pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3
    assert pixels.flags.c_contiguous and pixels.flags.writeable
    assert image_size(path) == (pixels.shape[1], pixels.shape[0])
    if "mean" in stated:
        check_stated(pixels, stated)


@needs_hostile
def test_hostile_set_stays_below_one_and_a_half_gib() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells the peak memory of one process, without that of its parent")
    script = (
        "import json, re, sys; from pathlib import Path\n"
        "from yolov9kit.data.image import read_image; from yolov9kit.errors import PictureError\n"
        "root = Path(sys.argv[1])\n"
        "for row in json.loads((root / 'index.json').read_text(encoding='utf-8')):\n"
        "    try: read_image(root / row['file'])\n"
        "    except PictureError: pass\n"
        "print(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(HOSTILE)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) * 1024 < 1.5 * 2**30


@needs_hostile
def test_hostile_set_warns_only_about_tiff_metadata() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for row in ROWS:
            try:
                read_image(HOSTILE / row["file"])
            except PictureError:
                pass
    assert [w for w in caught if not w.filename.endswith("TiffImagePlugin.py")] == []


# --- orientation


@pytest.mark.parametrize("order", ["<", ">"], ids=["little-endian", "big-endian"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_d17_picture_is_upright(orientation: int, order: str) -> None:
    upright = scene(40, 100)
    # Storing it turned the other way round and saying so in EXIF must give it back.
    back = {5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE}
    back |= {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
    }
    back |= {8: Image.Transpose.ROTATE_270}
    stored = upright.transpose(back[orientation]) if orientation in back else upright
    data = encoded(stored, "JPEG", quality=100, subsampling=0, exif=exif_block(orientation, order))
    decoded = decode_image(data)
    assert decoded.pixels.shape == (100, 40, 3)
    assert np.abs(decoded.pixels.astype(int) - np.asarray(upright)).max() <= 8
    assert image_size(data) == (40, 100)
    assert decoded.notes == (() if orientation == 1 else (f"EXIF orientation {orientation} applied",))
    reference = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    assert np.array_equal(decoded.pixels, np.asarray(reference))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_d17_png_webp_and_tiff_too(orientation: int) -> None:
    image, exif = scene(), Image.Exif()
    exif[274] = orientation
    expected = np.asarray(ImageOps.exif_transpose(with_exif(image, exif)))
    late = png(
        100, 40, 8, 2, b"".join(b"\0" + row.tobytes() for row in np.asarray(image)),
        (b"eXIf", exif_block(orientation)[6:]),
    )  # fmt: skip
    for data in (
        encoded(image, "PNG", exif=exif),
        late,
        encoded(image, "WEBP", lossless=True, exif=exif),
        encoded(image, "TIFF", tiffinfo={274: orientation}),
        encoded(image, "TIFF", tiffinfo={274: orientation}, compression="tiff_lzw"),
    ):
        decoded = decode_image(data)
        assert np.array_equal(decoded.pixels, expected)
        assert image_size(data) == (expected.shape[1], expected.shape[0])
        assert any("orientation" in note for note in decoded.notes) == (orientation != 1)
        assert ("picture_orientation" in decoded.note_codes) == (orientation != 1)
        assert decoded.orientation == orientation


def with_exif(image: Image.Image, exif: Image.Exif) -> Image.Image:
    return Image.open(io.BytesIO(encoded(image, "PNG", exif=exif)))


@pytest.mark.parametrize(
    "exif",
    [
        b"Exif\0\0",
        b"Exif\0\0garbage",
        exif_block(6)[:-8],
        exif_block(0),
        exif_block(9),
        exif_block(6).replace(b"\x08\0\0\0", b"\xff\xff\xff\x7f"),
    ],
)
def test_broken_exif_is_ignored_and_said(exif: bytes) -> None:
    decoded = decode_image(encoded(scene(), "JPEG", exif=exif))
    assert decoded.pixels.shape == (40, 100, 3)
    assert decoded.notes == ("broken EXIF ignored",)


def test_orientation_written_as_a_long_integer() -> None:
    for order in "<>":
        assert read_image(encoded(scene(), "JPEG", exif=exif_block(6, order, kind=4))).shape == (100, 40, 3)


def test_strips_of_a_large_picture_are_one_picture() -> None:
    image = scene(2300, 2100)  # more pixels than one strip
    data = encoded(image, "PNG", exif=exif_block(6)[6:], compress_level=1)
    assert np.array_equal(read_image(data), np.rot90(np.asarray(image), -1))


# --- cut off and broken


def test_d18_jpeg_without_its_last_two_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(VALID["jpeg"][:-2])
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    decoded = decode_image(path)
    assert decoded.notes == ("JPEG end marker missing, all pixels are there",)
    assert np.array_equal(decoded.pixels, read_image(VALID["jpeg"]))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


@pytest.mark.parametrize(
    "options", [{}, {"optimize": True}, {"progressive": True}, {"restart_marker_blocks": 4}], ids=str
)
def test_d18_a_cut_jpeg_is_whole_or_refused(options: dict) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 100, 3), dtype=np.uint8))
    for image in (noise, scene(), Image.new("RGB", (200, 200), (90, 90, 90))):
        data = encoded(image, "JPEG", **options)
        whole = read_image(data)
        for cut in [*range(1, 60), len(data) // 4, len(data) // 2]:
            for tail in (b"", bytes(100), bytes(3000)):  # zeros: the rest of a block that was never written
                try:
                    pixels = read_image(data[:-cut] + tail)
                except PictureError:
                    continue
                assert np.array_equal(pixels, whole), (cut, len(tail))


def test_d19_broken_files_are_named(tmp_path: Path) -> None:
    files = {
        "half.jpg": VALID["jpeg"][: len(VALID["jpeg"]) // 2],
        "empty.png": b"",
        "text.jpg": b"this is a text file\n",
        "page.jpg": b"\xef\xbb\xbf\n<!DOCTYPE html><html></html>",
        "pointer.jpg": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n",
        "zeros.jpg": bytes(4096),
    }
    reasons = ["cut-off", "empty", "known format", "HTML", "git lfs pull", "zero bytes"]
    for (name, data), reason in zip(files.items(), reasons, strict=True):
        path = tmp_path / name
        path.write_bytes(data)
        message = refusal(path)
        assert message.startswith(f"{path}: ") and reason in message


@pytest.mark.parametrize("kind", sorted(VALID))
def test_d19_nothing_that_was_cut_off_is_filled_in(kind: str) -> None:
    data = VALID[kind]
    whole = read_image(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refusal(data[: len(data) // 2])
        for length in range(0, len(data), 1 + len(data) // 60):
            pixels = attempt(data[:length])
            assert pixels is None or np.array_equal(pixels, whole), length


def code(source: str | os.PathLike[str] | bytes) -> str:
    with pytest.raises(PictureError) as caught:
        decode_image(source)
    return caught.value.code


@pytest.mark.parametrize("kind", sorted(VALID))
def test_d19_a_picture_that_ends_early_is_told_from_a_broken_one(kind: str) -> None:
    data = VALID[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for share in (0.3, 0.6, 0.9):
            assert code(data[: int(share * len(data))]) == "picture_truncated"


def test_d19_a_failed_copy_ends_early_too() -> None:
    for kind in ("jpeg", "png"):
        half = VALID[kind][: len(VALID[kind]) // 2]
        assert code(half + bytes(len(half))) == "picture_truncated"


def test_d19_a_broken_picture_of_full_length() -> None:
    data = VALID["png"]
    middle = len(data) // 2
    assert code(data[:middle] + bytes(8) + data[middle + 8 :]) == "picture_unreadable"
    assert "broken PNG picture" in refusal(data[:middle] + bytes(8) + data[middle + 8 :])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "picture_empty"),
        (bytes(4096), "picture_empty"),
        (b"some text", "picture_not_a_picture"),
        (b"<svg/>", "picture_not_a_picture"),
        (b"version https://git-lfs.github.com/spec/v1", "picture_not_a_picture"),
        (png(9460, 9460, 8, 2, b""), "picture_too_large"),
        (b"\0\0\0\x18ftypheic", "picture_unsupported"),
        (encoded(Image.new("F", (8, 8)), "TIFF"), "picture_unsupported"),
    ],
)
def test_kinds_of_faults_are_told_apart(data: bytes, expected: str) -> None:
    assert code(data) == expected


def test_kinds_of_faults_of_files(tmp_path: Path) -> None:
    assert code(tmp_path) == "picture_not_a_picture"
    assert code(tmp_path / "absent.jpg") == "picture_unreadable"
    with (tmp_path / "sparse.bmp").open("wb") as stream:
        stream.truncate(MAX_BYTES + 1)
    assert code(tmp_path / "sparse.bmp") == "picture_too_large"


@pytest.mark.parametrize("name", ["neu\nzeile.jpg", "tab\t.jpg", "\udcff.jpg"])
def test_a_strange_name_stays_on_one_printable_line(name: str) -> None:
    message = refusal(b"", name=name)
    assert message.isprintable()


def test_what_is_no_file_is_refused_by_name(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jpg"
    os.mkfifo(pipe)
    assert "pipe" in refusal(pipe)  # and does not wait for a writer
    assert "a folder" in refusal(tmp_path)
    assert "No such file" in refusal(tmp_path / "absent.jpg")
    assert str(tmp_path / "absent.jpg") in refusal(tmp_path / "absent.jpg")
    assert "null byte" in refusal("a\0.jpg")


def test_a_file_without_permission_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(VALID["png"])
    path.chmod(0)
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[2])\n"
        "from yolov9kit.data.image import read_image; from yolov9kit.errors import PictureError\n"
        "descriptor = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY); os.fchdir(descriptor)\n"
        "if os.geteuid() == 0: os.seteuid(65534)\n"  # root may read everything
        "try: read_image('a.png')\n"
        "except PictureError as error: print(error)\n"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script, str(path), root], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "a.png: cannot be read (Permission denied)"


# --- bombs


def test_size_is_refused_before_anything_is_decoded() -> None:
    assert 9460 * 9460 > MAX_PIXELS
    bomb = png(9460, 9460, 8, 2, b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        message = refusal(bomb)
        with pytest.raises(PictureError):
            image_size(bomb)
    assert "9460 x 9460" in message and f"{MAX_PIXELS:,}" in message


def test_file_size_is_limited(tmp_path: Path) -> None:
    path = tmp_path / "sparse.bmp"
    with path.open("wb") as stream:
        stream.write(VALID["bmp"])
        stream.truncate(MAX_BYTES + 1)
    assert f"{MAX_BYTES:,}" in refusal(path)


def test_no_setting_of_pillow_or_warnings_changes() -> None:
    before = (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters))
    files = [data for data in VALID.values() for _ in range(4)]
    expected = [read_image(data) for data in files]
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(read_image, files))
    assert all(np.array_equal(a, b) for a, b in zip(got, expected, strict=True))
    assert (Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES, list(warnings.filters)) == before


# --- modes


def test_d20_rgba() -> None:
    rgba = scene().copy()
    rgba.putalpha(0)
    decoded = decode_image(encoded(rgba, "PNG"))
    assert np.array_equal(decoded.pixels, np.asarray(scene()))  # alpha dropped
    assert decoded.notes == ("alpha dropped (100.0% of the pixels are not opaque)",)
    rgba.putalpha(255)
    assert decode_image(encoded(rgba, "PNG")).notes == ("alpha dropped (all of it opaque)",)


def test_d20_palette() -> None:
    palette = scene().quantize(64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = decode_image(encoded(palette, "PNG"))
        clear = decode_image(encoded(palette, "PNG", transparency=b"\x00\x80\xff"))
    assert np.array_equal(plain.pixels, np.asarray(palette.convert("RGB")))
    assert plain.notes == ("palette colours looked up",)
    assert np.array_equal(clear.pixels, plain.pixels)
    assert clear.notes == ("palette colours looked up", "transparent colour kept as it is stored")


def test_d20_gray_and_black_and_white() -> None:
    gray = scene().convert("L")
    for data in (encoded(gray, "PNG"), encoded(gray, "TIFF")):
        decoded = decode_image(data)
        assert np.array_equal(decoded.pixels, np.repeat(np.asarray(gray)[..., None], 3, axis=2))
        assert decoded.notes == ("gray repeated in three channels",)
    bits = scene().convert("1")
    decoded = decode_image(encoded(bits, "PNG"))
    assert np.array_equal(decoded.pixels[..., 1], np.asarray(bits).astype(np.uint8) * 255)
    assert decoded.notes == ("black and white as 0 and 255",)


def test_d20_cmyk() -> None:
    decoded = decode_image(encoded(scene().convert("CMYK"), "JPEG", quality=100))
    assert np.abs(decoded.pixels.astype(int) - np.asarray(scene())).mean() < 4
    assert decoded.notes == ("CMYK converted",)


def test_lab() -> None:
    from PIL import ImageCms

    lab = ImageCms.profileToProfile(
        scene(), ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    decoded = decode_image(encoded(lab, "TIFF"))
    assert np.abs(decoded.pixels.astype(int) - np.asarray(scene())).mean() < 4
    assert decoded.notes == ("CIE Lab converted",)


GRAY16 = np.arange(0, 65536, 257, dtype=np.uint16).reshape(16, 16)  # exactly the levels 0, 1 ... 255


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM", "JPEG2000"])
def test_sixteen_bit_gray_is_scaled(kind: str) -> None:
    decoded = decode_image(encoded(Image.fromarray(GRAY16), kind))
    assert np.array_equal(decoded.pixels[..., 0].ravel(), np.arange(256))
    assert decoded.notes == ("16-bit gray scaled by 1/257",)


def test_sixteen_bit_gray_with_white_as_zero() -> None:
    decoded = decode_image(tiff(16, 16, 16, photometric=0, data=GRAY16.tobytes()))
    assert np.array_equal(decoded.pixels[..., 0].ravel(), np.arange(256)[::-1])
    assert "white-is-zero" in decoded.notes[0]


def test_twelve_bit_gray_is_scaled() -> None:
    decoded = decode_image(tiff(2, 1, 12, photometric=1, data=bytes([0xFF, 0xF8, 0x00])))  # 4095, 2048
    assert decoded.pixels[0, :, 0].tolist() == [255, 128]
    assert decoded.notes == ("12-bit gray scaled by 255/4095",)


@pytest.mark.parametrize("channels", [3, 4])
def test_sixteen_bit_colour_is_reduced_and_said(channels: int) -> None:
    values = np.arange(2 * channels).reshape(2, channels) * 8000
    row = b"\0" + values.astype(">u2").tobytes()
    decoded = decode_image(png(2, 1, 16, 2 if channels == 3 else 6, row))
    assert np.abs(decoded.pixels[0].astype(int) - values[:, :3] / 257).max() <= 1
    assert "16-bit colour reduced to its high 8 bits" in decoded.notes


def test_float_and_32_bit_pictures_are_refused() -> None:
    values = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    assert "float pixels" in refusal(encoded(Image.fromarray(values), "TIFF"))
    assert "32-bit integer pixels" in refusal(encoded(Image.fromarray(values.astype(np.int32)), "TIFF"))


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "TIFF"])
def test_the_first_of_several_frames(kind: str) -> None:
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "lime", "blue")]
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:])
    decoded = decode_image(data)
    assert np.abs(decoded.pixels.mean(axis=(0, 1)) - (255, 0, 0)).max() <= 3
    counted = kind not in ("GIF", "TIFF")
    assert ("frame 1 of 3" if counted else "first of several frames") in decoded.notes
    assert decoded.frames == (3 if counted else 2) and "picture_frames" in decoded.note_codes


@pytest.mark.parametrize(
    ("data", "kind", "mode", "codes"),
    [
        (VALID["jpeg"], "JPEG", "RGB", ()),
        (VALID["jp2"], "JPEG2000", "RGB", ()),
        (VALID["webp"], "WEBP", "RGB", ()),
        (VALID["cmyk"], "JPEG", "CMYK", ("picture_mode",)),
        (VALID["palette"], "PNG", "P", ("picture_mode",)),
        (encoded(Image.new("LA", (8, 8)), "PNG"), "PNG", "LA", ("picture_mode", "picture_mode")),
        (encoded(Image.fromarray(GRAY16), "PNG"), "PNG", "I;16", ("picture_mode",)),
        (encoded(Image.fromarray(GRAY16), "PPM"), "PPM", "I;16", ("picture_mode",)),
        (png(2, 1, 16, 2, bytes(13)), "PNG", "RGB;16", ("picture_mode",)),
        (VALID["jpeg"][:-2], "JPEG", "RGB", ("picture_end",)),
        (encoded(scene(), "JPEG", exif=b"Exif\0\0garbage"), "JPEG", "RGB", ("picture_note",)),
    ],
)
def test_facts_beside_the_pixels(data: bytes, kind: str, mode: str, codes: tuple[str, ...]) -> None:
    decoded = decode_image(data)
    assert (decoded.kind, decoded.mode, decoded.note_codes) == (kind, mode, codes)
    assert (decoded.orientation, decoded.frames) == (1, 1)
    assert len(decoded.notes) == len(codes)


def test_bytes_file_and_string_give_the_same(tmp_path: Path) -> None:
    for kind, data in VALID.items():
        path = tmp_path / f"{kind}.wrong_suffix"
        path.write_bytes(data)
        assert np.array_equal(read_image(data), read_image(path))
        assert np.array_equal(read_image(data), read_image(str(path)))
        assert image_size(path) == (100, 40)


def test_names() -> None:
    for name in ("a.jpg", "b.JPG", "c.Jpeg", "d.e.PNG", "..jpg", "-rf.jpg", "鳥 é.tiff", "issue#1.webp"):
        assert is_image_name(name) and is_image_name(Path("folder") / name)
    for name in ("a.txt", "jpg", ".jpg", "a.jpg.txt", "data.yaml", ""):
        assert not is_image_name(name)
    assert {
        ".jpg",
        ".png",
        ".bmp",
        ".webp",
        ".tif",
        ".gif",
        ".jfif",
        ".jp2",
        ".avif",
        ".heic",
    } <= IMAGE_SUFFIXES


# --- whatever the bytes are


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", *(data[:20] for data in VALID.values())]))
def test_random_bytes_raise_nothing_but_picture_errors(tail: bytes, head: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attempt(head + tail)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(VALID)), st.integers(0, 2**32), st.integers(1, 8))
def test_damaged_files_raise_nothing_but_picture_errors(kind: str, seed: int, changes: int) -> None:
    dice, data = random.Random(seed), bytearray(VALID[kind])
    for _ in range(changes):
        data[dice.randrange(min(len(data), dice.choice((64, len(data)))))] = dice.randrange(256)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        attempt(bytes(data))


def attempt(data: bytes) -> np.ndarray | None:
    """The pixels, or None where they are refused; anything else that is raised fails the test."""
    try:
        pixels = decode_image(data).pixels
    except PictureError:
        return None
    assert pixels.shape == (*image_size(data)[::-1], 3)
    return pixels
