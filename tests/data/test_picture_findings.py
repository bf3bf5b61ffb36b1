"""What is said of each picture: one finding a fact, with its value and what to do."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from yolov9kit.data.checked import Checked, PictureFacts, check_picture
from yolov9kit.data.findings import Finding
from yolov9kit.data.image import IMAGE_SUFFIXES
from yolov9kit.data.picture_findings import findings_of


def scene(width: int = 100, height: int = 40) -> Image.Image:
    y, x = np.mgrid[0:height, 0:width]
    return Image.fromarray(np.stack([255 * x / width, 255 * y / height, x * 0], axis=-1).astype(np.uint8))


def told(path: Path) -> list[tuple[str, str, str]]:
    """Code, severity and value of each finding of a picture."""
    found = findings_of(path, check_picture(path))
    assert all(finding.path == path and finding.line is None for finding in found)
    return [(finding.code, finding.severity, finding.value) for finding in found]


def facts(width: int = 640, height: int = 480, kind: str = "JPEG") -> Checked:
    return Checked((width, height), kind=kind, mode="RGB")


# --- pictures that cannot be used


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "picture_empty", "the file is empty; copy it again"),
        (bytes(4096), "picture_empty", "zero bytes only"),
        (b"text", "picture_not_a_picture", "not a picture of a known format"),
        (b"<html></html>", "picture_not_a_picture", "text (HTML, SVG or XML)"),
        (b"\0\0\0\x18ftypheic", "picture_unreadable", "convert it to JPEG or PNG"),
        (b"P6 20000 20000 255\n", "picture_unreadable", "make it smaller first"),
    ],
)
def test_d19_why_a_picture_is_left_out(tmp_path: Path, data: bytes, code: str, words: str) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(data)
    (finding,) = findings_of(path, check_picture(path))
    assert (finding.code, finding.severity) == (code, "warning")
    assert finding.message.startswith(f"left out: {finding.value}") and words in finding.message


def test_d19_cut_off_and_broken_pictures_are_told_apart(tmp_path: Path) -> None:
    scene().save(tmp_path / "a.jpg")
    data = (tmp_path / "a.jpg").read_bytes()
    (tmp_path / "a.jpg").write_bytes(data[: len(data) // 2])
    scene().save(tmp_path / "a.png")
    data = (tmp_path / "a.png").read_bytes()
    (tmp_path / "a.png").write_bytes(data[:60] + bytes(8) + data[68:])
    assert [told(tmp_path / name)[0][0] for name in ("a.jpg", "a.png")] == [
        "picture_truncated",
        "picture_unreadable",
    ]
    assert [code for code, *_ in told(tmp_path / "absent.png")] == ["picture_unreadable"]


# --- conversions


def test_a_plain_picture_needs_no_words(tmp_path: Path) -> None:
    for suffix in ("jpg", "jpeg", "JPG", "png", "bmp", "tif", "TIFF", "webp", "ppm", "jp2", "avif"):
        scene().save(tmp_path / f"a.{suffix}")
        assert told(tmp_path / f"a.{suffix}") == []


@pytest.mark.parametrize("orientation", range(1, 9))
def test_d17_an_orientation_that_was_applied(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    scene().save(tmp_path / "a.jpg", exif=exif)
    scene().save(tmp_path / "a.tif", tiffinfo={274: orientation})
    said = [] if orientation == 1 else [("picture_orientation", "note", str(orientation))]
    assert told(tmp_path / "a.jpg") == said and told(tmp_path / "a.tif") == said


def test_d18_a_jpeg_without_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    scene().save(path)
    path.write_bytes(path.read_bytes()[:-2])
    (finding,) = findings_of(path, check_picture(path))
    assert (finding.code, finding.severity) == ("picture_end", "warning")
    assert "all pixels are there: copy it again" in finding.message


@pytest.mark.parametrize(
    ("name", "mode", "words"),
    [
        ("a.png", "RGBA", ["alpha dropped"]),
        ("a.png", "P", ["palette colours looked up"]),
        ("a.png", "L", ["gray repeated"]),
        ("a.png", "LA", ["gray repeated", "; alpha dropped"]),
        ("a.png", "I;16", ["16-bit gray scaled"]),
        ("a.jpg", "CMYK", ["CMYK converted"]),
        ("a.tif", "L", ["gray repeated"]),
    ],
)
def test_d20_a_conversion_is_one_note(tmp_path: Path, name: str, mode: str, words: list[str]) -> None:
    path = tmp_path / name
    (scene().convert("L") if mode == "I;16" else scene()).convert(mode).save(path)
    (finding,) = findings_of(path, check_picture(path))
    assert (finding.code, finding.severity, finding.value) == ("picture_mode", "note", mode)
    assert all(word in finding.message for word in words)


def test_several_frames(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (64, 48), colour) for colour in ("red", "lime", "blue")]
    frames[0].save(tmp_path / "a.webp", save_all=True, append_images=frames[1:])
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert told(tmp_path / "a.webp") == [("picture_frames", "note", "3")]
    assert told(tmp_path / "a.gif")[0] == ("picture_frames", "note", "2 or more")


def test_other_words_of_the_decoder(tmp_path: Path) -> None:
    scene().save(tmp_path / "a.jpg", exif=b"Exif\0\0garbage")
    assert told(tmp_path / "a.jpg") == [("picture_note", "note", "")]


# --- names and sizes


def test_content_of_another_format_than_the_name_says(tmp_path: Path) -> None:
    scene().save(tmp_path / "a.jpg", "PNG")
    (finding,) = findings_of(tmp_path / "a.jpg", check_picture(tmp_path / "a.jpg"))
    assert (finding.code, finding.severity, finding.value) == ("picture_suffix", "warning", "PNG")
    assert "rename it to .png" in finding.message


def test_every_suffix_promises_a_format() -> None:
    for suffix in IMAGE_SUFFIXES:
        assert [f.code for f in findings_of(Path(f"a{suffix}"), facts(kind="GIF"))] == (
            [] if suffix == ".gif" else ["picture_suffix"]
        )
    assert findings_of(Path("a"), facts()) == findings_of(Path("a.bin"), facts()) == []


@pytest.mark.parametrize(
    ("size_wh", "codes"),
    [
        ((32, 32), []),
        ((31, 32), ["picture_tiny"]),
        ((32, 31), ["picture_tiny"]),
        ((1, 1), ["picture_tiny"]),
        ((5000, 5000), []),
        ((5000, 5001), ["picture_huge"]),
        ((500, 100), []),
        ((501, 100), ["picture_aspect"]),
        ((100, 501), ["picture_aspect"]),
        ((1, 1000), ["picture_tiny", "picture_aspect"]),
    ],
)
def test_sizes_that_training_does_not_like(size_wh: tuple[int, int], codes: list[str]) -> None:
    found = findings_of(Path("a.jpg"), facts(*size_wh))
    assert [finding.code for finding in found] == codes
    assert all(f.severity == "warning" and f.value == f"{size_wh[0]} x {size_wh[1]}" for f in found)


# --- the reference set


@pytest.mark.filterwarnings("ignore:Tag data larger than file")
def test_the_verdict_on_each_hostile_file_is_the_stated_one(shared: Path) -> None:
    rows = json.loads((shared / "data/hostile/index.json").read_text(encoding="utf-8"))
    paths = [shared / "data/hostile" / row["file"] for row in rows]
    found = [findings_of(*pair) for pair in zip(paths, PictureFacts(None).check(paths), strict=True)]
    assert len(found) == 111
    for row, findings in zip(rows, found, strict=True):
        left_out = [finding for finding in findings if finding.message.startswith("left out: ")]
        assert len(left_out) == (row["verdict"] == "error") or row["verdict"] in ("either", "optional"), row[
            "file"
        ]
        assert not left_out or findings == left_out
        assert len({finding.code for finding in findings}) == len(findings)
        assert all(str(finding).isprintable() for finding in findings)
    by_file = dict(zip((row["file"] for row in rows), found, strict=True))
    check_hostile(by_file)


def check_hostile(by_file: dict[str, list[Finding]]) -> None:
    """What the names of some of these files promise."""
    expected = {
        "broken/truncated.png": {"picture_truncated"},
        "broken/truncated.jpg": {"picture_truncated"},
        "broken/ultrahdr.jpg": {"picture_truncated"},
        "broken/badpalettesize.bmp": {"picture_unreadable"},
        "broken/zero_byte.jpg": {"picture_empty"},
        "broken/only_zeros.jpg": {"picture_empty"},
        "broken/html_error_page.jpg": {"picture_not_a_picture"},
        "other/circle.svg": {"picture_not_a_picture"},
        "tiny_huge/Bad_width.bmp": {"picture_unreadable"},
        "orientation_small/small_landscape_6.jpg": {"picture_orientation"},
        "orientation_small/small_landscape_1.jpg": set(),
        "naming/jpeg_named.png": {"picture_suffix"},
        "naming/no_suffix": set(),
        "colour/pil_sample_cmyk.jpg": {"picture_mode"},
        "jpeg/sugarshack.mpo": {"picture_frames"},
        "tiny_huge/grayscale_long.jpg": {"picture_mode", "picture_tiny", "picture_aspect"},
    }
    assert {name: {finding.code for finding in by_file[name]} for name in expected} == expected
