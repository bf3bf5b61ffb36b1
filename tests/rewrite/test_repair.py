"""A repaired copy: what was wrong is right, everything else is what it was, and the original is proved untouched."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.rewrite.small_sets import MakeSet, digests, noise, save
from yolov9kit.data.dataset import Sample, open_dataset
from yolov9kit.data.image import decode_image, read_image
from yolov9kit.doctor.diagnose import diagnose
from yolov9kit.errors import DataError, KitError
from yolov9kit.rewrite import repair as module
from yolov9kit.rewrite.repair import repair

GOOD = ["0 .5 .5 .2 .2", "2 .25 .3 .1 .123456"]
MENDED = {
    *("picture_orientation", "picture_suffix", "picture_frames", "picture_end", "picture_unreadable"),
    *("picture_empty", "picture_truncated", "picture_not_a_picture", "label_clipped", "label_repeated"),
    *("label_no_area", "place"),
}


def sample_of(folder: Path, stem: str, split: str = "train") -> Sample:
    return next(sample for sample in open_dataset(folder, split).samples if sample.path.stem == stem)


def test_a_set_without_faults_stays_byte_for_byte(
    make_set: MakeSet, tmp_path: Path, untouched: Callable
) -> None:
    source = make_set({"train": [GOOD, [], None, ["# none"]], "val": [["0 .1 .1 .5 .2 .5 .6 .1 .6"]]})
    untouched(source)
    done = repair(source, tmp_path / "out")
    assert digests(tmp_path / "out") | {"data.yaml": ""} == digests(source) | {"data.yaml": ""}
    assert done.mended == {} and done.written.left_out == ()
    assert dict(done.originals) == {
        path: hashlib.sha256(path.read_bytes()).hexdigest() for path in source.rglob("*") if path.is_file()
    }
    assert done.summary().endswith("originals untouched: 10 files, SHA-256 equal before and after")


BAD = [
    *("0 .5 .5 .2 .2", "5 .5 .5 .1 .1", "0 .5 .5 .2", "1 .3 .3 0 .1", "0 .5 .5 .2 .2", "1 .95 .5 .2 .2"),
    *("2 320 240 50 50", "0.5 .5 .5 .1 .1", "1 x .5 .1 .1", "2 .1 .1 .5 .2 .5 .6 .1 .6"),
]


def test_bad_rows_are_left_out_and_listed(make_set: MakeSet, tmp_path: Path, untouched: Callable) -> None:
    source = make_set({"train": [BAD, GOOD], "val": [GOOD]})
    untouched(source)
    done = repair(source, tmp_path / "out")
    rows = (tmp_path / "out/labels/train/train 0.txt").read_text().splitlines()
    assert [rows[0], rows[2]] == [BAD[0], BAD[9]]
    np.testing.assert_allclose(list(map(float, rows[1].split())), [1, 0.925, 0.5, 0.15, 0.2], atol=1e-6)
    listed = (tmp_path / "out/left_out.txt").read_text().splitlines()
    file = re.escape(f"{source}/labels/train/train 0.txt")
    assert [int(re.match(rf"{file}:(\d+): ", line)[1]) for line in sorted(listed)] == [2, 3, 4, 5, 7, 8, 9]
    assert done.mended == {"boxes clipped to the picture": 1}
    before, after = (sample_of(folder, "train 0") for folder in (source, tmp_path / "out"))
    np.testing.assert_allclose(after.boxes, before.boxes, rtol=0, atol=1e-3)
    assert (after.labels == before.labels).all()


def test_classes_counted_from_1_are_moved_down(
    make_set: MakeSet, tmp_path: Path, untouched: Callable
) -> None:
    source = make_set(
        {"train": [["1 .5 .5 .2 .2", "3 .3 .3 .1 .1"], ["2 .5 .5 .2 .2"]], "val": [["1 .5 .5 .1 .1"]]}
    )
    untouched(source)
    done = repair(source, tmp_path / "out")
    assert (tmp_path / "out/labels/train/train 0.txt").read_text() == "0 .5 .5 .2 .2\n2 .3 .3 .1 .1\n"
    assert (tmp_path / "out/labels/val/val 0.txt").read_text() == "0 .5 .5 .1 .1\n"
    assert done.mended == {"label files with classes counted from 0 instead of 1": 3}
    assert done.written.left_out == ()


def test_one_slip_moves_no_class(make_set: MakeSet, tmp_path: Path) -> None:
    """Class 3 of 3 in train, but val uses class 0: these numbers start at 0."""
    source = make_set({"train": [["1 .5 .5 .2 .2", "3 .3 .3 .1 .1"]], "val": [["0 .5 .5 .1 .1"]]})
    repair(source, tmp_path / "out")
    assert (tmp_path / "out/labels/train/train 0.txt").read_text() == "1 .5 .5 .2 .2\n"


ORIENTATIONS = range(2, 9)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif"])
def test_d17_orientation_is_applied(
    make_set: MakeSet, tmp_path: Path, untouched: Callable, suffix: str
) -> None:
    source = make_set({"train": [GOOD], "val": [GOOD]})
    for orientation in ORIENTATIONS:
        exif = Image.Exif()
        exif[274] = orientation
        path = source / f"images/train/turned {orientation}{suffix}"
        noise(orientation, (50, 30)).save(path, exif=exif, quality=95)
        (source / f"labels/train/turned {orientation}.txt").write_text("0 .5 .25 1.0 .5\n")
    untouched(source)
    done = repair(source, tmp_path / "out")
    assert done.mended["orientation applied"] == len(ORIENTATIONS)
    for orientation in ORIENTATIONS:
        before, after = (sample_of(folder, f"turned {orientation}") for folder in (source, tmp_path / "out"))
        assert after.size_wh == before.size_wh and (after.boxes == before.boxes).all()
        was, image = read_image(before.path), decode_image(after.path)
        assert image.notes == () and after.path.suffix == (".jpg" if suffix == ".jpg" else ".png")
        # of JPEG a little is lost
        assert np.abs(image.pixels.astype(int) - was).mean() <= (2.5 if suffix == ".jpg" else 0)


PICTURES = {
    "bitmap.bmp": ({}, ".png"),
    "tagged.tif": ({}, ".png"),
    "sharp.webp": ({"lossless": True}, ".png"),
    "soft.webp": ({"quality": 80}, ".jpg"),
    "wavelet.jp2": ({}, ".png"),
    "drawn.gif": ({}, ".png"),
    "portable.ppm": ({}, ".png"),
}


def test_formats_that_not_every_program_reads_become_png_or_jpeg(
    make_set: MakeSet, tmp_path: Path, untouched: Callable
) -> None:
    source = make_set({"train": [GOOD], "val": [GOOD]})
    for i, (name, (options, _)) in enumerate(PICTURES.items()):
        noise(30 + i).save(source / "images/train" / name, **options)
        (source / "labels/train" / name).with_suffix(".txt").write_text("0 .5 .5 .2 .2\n")
    untouched(source)
    repair(source, tmp_path / "out")
    for name, (_, suffix) in PICTURES.items():
        new = (tmp_path / "out/images/train" / name).with_suffix(suffix)
        image, was = decode_image(new), read_image(source / "images/train" / name)
        assert image.notes == ()
        assert np.abs(image.pixels.astype(int) - was).mean() <= (2.5 if suffix == ".jpg" else 0)
    assert len(list((tmp_path / "out/images/train").iterdir())) == len(PICTURES) + 1


def test_odd_colours_and_several_pictures(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [GOOD], "val": [GOOD]})
    folder = source / "images/train"
    deep = (np.arange(48 * 64, dtype=np.uint16).reshape(48, 64) * 21).astype(np.uint16)
    Image.fromarray(deep).save(folder / "deep.png")
    noise(40).convert("CMYK").save(folder / "ink.jpg", quality=95)
    frames = [noise(41), noise(42)]
    frames[0].save(folder / "moving.png", save_all=True, append_images=frames[1:])
    frames[0].convert("P").save(folder / "moving.gif.gif", save_all=True, append_images=frames[1:])
    noise(43).convert("L").save(folder / "gray.png")
    noise(44).convert("RGBA").save(folder / "glass.png")
    for path in folder.iterdir():
        (source / "labels/train" / f"{path.stem}.txt").touch()
    done = repair(source, tmp_path / "out")
    out = tmp_path / "out/images/train"
    for name, new in (
        *(("deep.png", "deep.png"), ("ink.jpg", "ink.jpg"), ("moving.png", "moving.png")),
        ("moving.gif.gif", "moving.gif.png"),
    ):
        was, image = read_image(folder / name), decode_image(out / new)
        assert np.abs(image.pixels.astype(int) - was).mean() <= (2.5 if new == "ink.jpg" else 0)
    assert Image.open(out / "deep.png").mode == "L" and Image.open(out / "ink.jpg").mode == "RGB"
    assert Image.open(out / "moving.png").n_frames == 1
    for name in ("gray.png", "glass.png", "train 0.png"):  # every program reads these
        assert (out / name).read_bytes() == (folder / name).read_bytes()
    assert done.mended["colours converted to 8 bit RGB or gray"] == 2
    assert done.mended["first of several pictures taken"] == 2


def test_wrong_suffixes_and_cut_off_ends(make_set: MakeSet, tmp_path: Path, untouched: Callable) -> None:
    source = make_set({"train": [GOOD], "val": [GOOD]})
    folder = source / "images/train"
    noise(50).save(folder / "really png.jpg", "PNG")
    noise(51).save(folder / "really jpg.png", "JPEG")
    noise(52).save(folder / "whole.JPG", "JPEG")
    whole = (folder / "whole.JPG").read_bytes()
    (folder / "without end.jpg").write_bytes(whole[:-2])
    (folder / "half an end.jpg").write_bytes(whole[:-1])
    for path in folder.iterdir():
        (source / "labels/train" / f"{path.stem}.txt").touch()
    untouched(source)
    done = repair(source, tmp_path / "out")
    out = tmp_path / "out/images/train"
    assert (out / "really png.png").read_bytes() == (folder / "really png.jpg").read_bytes()
    assert (out / "really jpg.jpg").read_bytes() == (folder / "really jpg.png").read_bytes()
    for name in ("without end.jpg", "half an end.jpg", "whole.JPG"):
        assert (out / name).read_bytes() == whole
    assert done.mended == {
        "suffix .jpg to .png": 1,
        "suffix .png to .jpg": 1,
        "JPEG end marker added": 2,
    }


def test_pictures_that_cannot_be_read_are_left_out(
    make_set: MakeSet, tmp_path: Path, untouched: Callable
) -> None:
    source = make_set({"train": [GOOD, GOOD, GOOD, GOOD], "val": [GOOD]})
    folder = source / "images/train"
    (folder / "train 1.png").write_bytes(b"")
    (folder / "train 2.png").write_bytes((folder / "train 2.png").read_bytes()[:300])
    (folder / "train 3.png").write_text("no picture")
    untouched(source)
    done = repair(source, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out/images/train").iterdir()] == ["train 0.png"]
    assert [finding.path.name for finding in done.written.left_out] == [f"train {i}.png" for i in (1, 2, 3)]


def test_the_doctor_finds_nothing_of_it_any_more(
    make_set: MakeSet, tmp_path: Path, untouched: Callable
) -> None:
    source = make_set({"train": [BAD, GOOD, GOOD], "val": [GOOD, GOOD]})
    folder = source / "images/train"
    exif = Image.Exif()
    exif[274] = 6
    noise(60).save(folder / "turned.jpg", exif=exif)
    noise(61).save(folder / "really png.jpg", "PNG")
    noise(62).save(folder / "whole.jpg")
    (folder / "short.jpg").write_bytes((folder / "whole.jpg").read_bytes()[:-2])
    (folder / "whole.jpg").unlink()
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    noise(63).save(folder / "scan.tif")
    for name in ("turned", "really png", "short", "broken", "scan"):
        (source / f"labels/train/{name}.txt").write_text("0 .5 .5 .4 .4\n1 .2 .2 .2 .2\n")
    (source / "data.yaml").write_text(
        "path: D:\\work\\set\ntrain: ../images/train\nval: ../images/val\nnames: [nut, bolt, wing nut]\n"
    )
    untouched(source)
    sick = diagnose(source)
    repair(source, tmp_path / "out")
    healthy = diagnose(tmp_path / "out")
    assert healthy.ok and not set(healthy.counts) & MENDED
    assert not sick.ok and len(set(sick.counts) & MENDED) >= 7


def test_validation_on_the_training_pictures_stays_that(make_set: MakeSet, tmp_path: Path) -> None:
    """Two copies would hide it from the doctor."""
    source = make_set({"train": [GOOD, GOOD]})
    text = (source / "data.yaml").read_text()
    (source / "data.yaml").write_text(f"{text}val: images/train\n")
    done = repair(source, tmp_path / "out")
    assert [split.pictures for split in done.written.splits] == [2, 2]
    assert (tmp_path / "out/data.yaml").read_text().startswith("train: images/train\nval: images/train\n")
    assert [path.name for path in (tmp_path / "out/images").iterdir()] == ["train"]


def test_a_split_that_is_not_there_is_listed(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [GOOD], "val": [GOOD]})
    text = (source / "data.yaml").read_text()
    (source / "data.yaml").write_text(f"{text}test: nowhere\n")
    done = repair(source, tmp_path / "out")
    assert [finding.code for finding in done.written.left_out] == ["split_missing"]
    assert "test" not in (tmp_path / "out/data.yaml").read_text()


def test_oriented_boxes_are_for_convert(make_set: MakeSet, tmp_path: Path) -> None:
    tilted = "0 .30 .40 .40 .5333333 .30 .6666667 .20 .5333333"
    source = make_set({"train": [[tilted], [tilted]], "val": [[tilted]]})
    with pytest.raises(DataError, match="--as-boxes"):
        repair(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_source_that_changes_meanwhile_gives_no_copy(
    make_set: MakeSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = make_set({"train": [GOOD], "val": [GOOD]})
    write = module.write_plan

    def write_while_another_works(*args: object, **options: object) -> object:
        (source / "labels/train/train 0.txt").write_text("0 .5 .5 .3 .3\n")
        return write(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "write_plan", write_while_another_works)
    with pytest.raises(KitError, match=r"train 0\.txt: changed while the copy was written"):
        repair(source, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_lists_and_pictures_elsewhere_are_hashed_too(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [GOOD]})
    save(tmp_path / "elsewhere/images/b.png", noise(70))
    (tmp_path / "elsewhere/labels").mkdir()
    (tmp_path / "elsewhere/labels/b.txt").write_text("1 .5 .5 .2 .2\n")
    (source / "train.txt").write_text(f"images/train/train 0.png\n{tmp_path}/elsewhere/images/b.png\n")
    (source / "data.yaml").write_text("train: train.txt\nnames: [nut, bolt, wing nut]\n")
    done = repair(source, tmp_path / "out")
    assert {path.name for path in done.originals} == {
        *("data.yaml", "train.txt", "train 0.png", "train 0.txt", "b.png", "b.txt"),
    }
    with pytest.raises(KitError, match="lies inside the source"):
        repair(source, tmp_path / "elsewhere/images/out")
