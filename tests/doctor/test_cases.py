"""Acceptance cases of data files through the doctor, named after their ids: a clean set with one thing changed."""

import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.doctor.drawn_set import Drawn, DrawnSet, Row, clean_set, drawing, drawn, encoded
from yolov9kit.cli import main
from yolov9kit.data.dataset import open_dataset
from yolov9kit.data.findings import Finding
from yolov9kit.doctor.config import DoctorConfig
from yolov9kit.doctor.diagnose import diagnose
from yolov9kit.doctor.diagnosis import Diagnosis
from yolov9kit.doctor.gate import gate

RECTANGLE = "0 0.5 0.5 0.2 0.1"
POLYGON = "1 0.1 0.2 0.5 0.2 0.5 0.6 0.1 0.6"


def photo(stem: str, rows: list[str] | None, size_wh: tuple[int, int] = (640, 480)) -> Drawn:
    """A picture to train on with these rows."""
    made = drawn("train", 777, stem, ".png", size_wh)
    made.rows = None if rows is None else [Row(text) for text in rows]
    return made


def with_photo(rows: list[str] | None, size_wh: tuple[int, int] = (640, 480)) -> DrawnSet:
    """A clean set and one picture more, called photo."""
    whole = clean_set()
    whole.add(photo("photo", rows, size_wh))
    return whole


def of_code(diagnosis: Diagnosis, code: str) -> list[Finding]:
    return [finding for finding in diagnosis.findings if finding.code == code]


def only(diagnosis: Diagnosis, code: str) -> Finding:
    """The one finding of this code, with nothing beside it but notes."""
    loud = [finding for finding in diagnosis.findings if finding.severity != "note" or finding.code == code]
    assert [finding.code for finding in loud] == [code], [str(finding) for finding in loud]
    return loud[0]


def boxes_of(yaml: Path, stem: str = "photo") -> np.ndarray:
    (sample,) = [one for one in open_dataset(yaml, "train").samples if one.path.stem == stem]
    return sample.boxes


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_d01_a_box_is_where_its_row_says(tmp_path: Path) -> None:
    whole = clean_set((), range(100, 112))
    whole.add(photo("photo", [RECTANGLE]))
    yaml = whole.write(tmp_path)
    train, _ = diagnose(yaml).splits
    assert boxes_of(yaml).tolist() == [[256, 216, 384, 264]]
    assert train.boxes == 1 and train.largest_wh == (640, 480)
    assert set(train.box_sides_px) == {48.0}  # at 640 the picture keeps its size


def test_d02_four_points_become_the_box_around_them(tmp_path: Path) -> None:
    yaml = with_photo([POLYGON]).write(tmp_path)
    finding = only(diagnose(yaml), "label_polygons")
    assert finding.message == "1 polygon row read as box"
    assert finding.path.name == "photo.txt"
    assert boxes_of(yaml).round(3).tolist() == [[64, 96, 320, 288]]


def test_d03_boxes_and_polygons_in_one_file(tmp_path: Path) -> None:
    yaml = with_photo([RECTANGLE, POLYGON]).write(tmp_path)
    diagnosis = diagnose(yaml)
    finding = only(diagnosis, "label_mixed")
    assert finding.path.name == "photo.txt" and "mixed file" in finding.message
    assert of_code(diagnosis, "label_polygons")[0].message == "1 polygon row read as box"
    assert boxes_of(yaml).round(3).tolist() == [[256, 216, 384, 264], [64, 96, 320, 288]]


def test_d04_a_class_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = clean_set()
    whole.names = ["thing"]
    for one in whole.pictures:
        one.rows = [Row(f"0 {row.text[2:]}") for row in one.rows or []]
    whole.add(photo("photo", [RECTANGLE, "1 0.3 0.3 0.1 0.1"]))
    yaml = whole.write(tmp_path)
    finding = only(diagnose(yaml), "label_class_range")
    assert finding.severity == "error" and finding.line == 2 and finding.path.name == "photo.txt"
    assert "class 1, allowed 0-0" in finding.message
    assert main(["doctor", str(yaml)]) == 1
    shown = capsys.readouterr().out
    assert f"{finding.path}:2: class 1, allowed 0-0" in shown


def test_d06_a_class_with_a_decimal_point(tmp_path: Path) -> None:
    whole = with_photo(["0.0 0.5 0.5 0.2 0.1"])
    whole.add(photo("half", ["0.5 0.5 0.5 0.2 0.1"])).data = encoded(drawing(1)[0][::-1].copy())
    yaml = whole.write(tmp_path)
    finding = only(diagnose(yaml), "label_class")
    assert finding.path.name == "half.txt" and finding.line == 1 and finding.value == "0.5"
    assert len(boxes_of(yaml)) == 1 and len(boxes_of(yaml, "half")) == 0


def test_d07_values_outside(tmp_path: Path) -> None:
    rows = ["0 0.5 0.5 1.0000001 0.2", "0 1.07 0.5 0.2 0.2", "1 0.3 0.3 0.1 0.1"]
    whole = with_photo(rows)
    pixels = photo("pixels", ["0 320 240 128 48", "1 100 100 50 40"])
    pixels.data = encoded(drawing(2)[0][::-1].copy())
    whole.add(pixels)
    yaml = whole.write(tmp_path)
    diagnosis = diagnose(yaml)
    assert [(f.path.name, f.line, f.value) for f in of_code(diagnosis, "label_outside")] == [
        ("photo.txt", 2, "1.07")
    ]
    in_pixels = of_code(diagnosis, "label_pixels")
    assert [(f.path.name, f.line) for f in in_pixels] == [("pixels.txt", 1), ("pixels.txt", 2)]
    assert all("looks like pixels" in finding.message for finding in in_pixels)
    assert len(diagnosis.errors) == 3
    assert len(boxes_of(yaml)) == 2  # the other rows are kept


def test_d09_boxes_without_area(tmp_path: Path) -> None:
    rows = ["0 0.5 0.5 0 0.2", "0 0.5 0.5 0.2 0", "1 0.3 0.3 0.1 0.1"]
    yaml = with_photo(rows).write(tmp_path)
    found = of_code(diagnose(yaml), "label_no_area")
    assert [(finding.severity, finding.line) for finding in found] == [("warning", 1), ("warning", 2)]
    assert len(boxes_of(yaml)) == 1


def test_d12_the_same_row_twice(tmp_path: Path) -> None:
    yaml = with_photo([RECTANGLE, "1 0.3 0.3 0.1 0.1", RECTANGLE]).write(tmp_path)
    diagnosis = diagnose(yaml)
    finding = only(diagnosis, "label_repeated")
    assert finding.line == 3 and "line 1" in finding.message
    assert diagnosis.splits[0].boxes == 30 * 5 + 2


def test_d13_backgrounds_are_no_fault(tmp_path: Path) -> None:
    whole = with_photo([])
    bare = whole.add(photo("bare", None))
    bare.data = encoded(drawing(3)[0][::-1].copy())
    diagnosis = diagnose(whole.write(tmp_path))
    assert diagnosis.ok and not diagnosis.warnings
    facts = diagnosis.splits[0]
    assert (facts.pictures, facts.empty_labels, facts.missing_labels) == (32, 1, 1)
    assert of_code(diagnosis, "label_missing")[0].path.name == "bare.png"
    assert of_code(diagnosis, "label_empty")[0].path.name == "photo.txt"


def test_d14_no_label_file_at_all(tmp_path: Path) -> None:
    whole = clean_set()
    for one in whole.of("train"):
        one.rows = None
    diagnosis = diagnose(whole.write(tmp_path))
    (error,) = diagnosis.errors
    assert error.code == "split_missing" and error.path == tmp_path / "data.yaml"
    assert str(tmp_path / "labels/train/board 000.txt") in error.message
    assert [facts.split for facts in diagnosis.splits] == ["val"]  # the rest is looked at


def test_d15_the_last_images_of_a_path_becomes_labels(tmp_path: Path) -> None:
    whole = clean_set()
    whole.entries["train"] = "x/images/train/images"
    for one in whole.of("train"):
        whole.pictures.remove(one)
        whole.files[f"x/images/train/images/{one.stem}{one.suffix}"] = one.data
        text = "".join(f"{row.text}\n" for row in one.rows or [])
        whole.files[f"x/images/train/labels/{one.stem}.txt"] = text.encode()
    diagnosis = diagnose(whole.write(tmp_path))
    assert diagnosis.findings == ()
    assert diagnosis.splits[0].boxes == 30 * 5


@pytest.mark.parametrize("orientation", range(2, 9))
def test_d17_stored_turned(orientation: int, tmp_path: Path) -> None:
    turned = orientation >= 5
    whole = clean_set((), range(100, 112))
    one = photo("photo", ["0 0.5 0.25 1.0 0.5"], (100, 40))
    exif = Image.Exif()
    exif[274] = orientation
    one.suffix, one.data = ".jpg", encoded(one.pixels, "JPEG", exif=exif)
    whole.add(one)
    yaml = whole.write(tmp_path)
    diagnosis = diagnose(yaml)
    width, height = (40, 100) if turned else (100, 40)
    assert diagnosis.splits[0].largest_wh == (width, height)
    assert boxes_of(yaml).tolist() == [[0, 0, width, height // 2]]
    assert diagnosis.ok
    (note,) = of_code(diagnosis, "picture_orientation")
    assert note.path.name == "photo.jpg" and note.severity == "note"


def test_d18_a_jpeg_without_its_end(tmp_path: Path) -> None:
    whole = with_photo([RECTANGLE])
    one = next(one for one in whole.pictures if one.stem == "photo")
    one.suffix, one.data = ".jpg", encoded(one.pixels, "JPEG")[:-2]
    yaml = whole.write(tmp_path)
    before = digests(tmp_path)
    finding = only(diagnose(yaml), "picture_end")
    assert finding.severity == "warning" and finding.path.name == "photo.jpg"
    assert digests(tmp_path) == before


def test_d19_pictures_that_are_none(tmp_path: Path) -> None:
    whole = clean_set()
    half = encoded(drawing(50)[0], "JPEG")
    broken = {"half.jpg": half[: len(half) // 2], "nothing.png": b"", "text.jpg": b"hello, no picture here\n"}
    for name, data in broken.items():
        stem, _, suffix = name.partition(".")
        whole.add(Drawn("train", stem, f".{suffix}", drawing(50)[0], data, [Row(RECTANGLE)]))
    diagnosis = diagnose(whole.write(tmp_path))
    codes = {finding.path.name: finding.code for finding in diagnosis.warnings}
    assert codes == {
        "half.jpg": "picture_truncated",
        "nothing.png": "picture_empty",
        "text.jpg": "picture_not_a_picture",
    }
    assert diagnosis.splits[0].left_out == 3 and diagnosis.splits[0].pictures == 30
    assert diagnosis.ok  # training leaves them out


def stored(image: Image.Image, kind: str) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind)
    return stream.getvalue()


def test_d20_odd_modes_are_stated_and_usable(tmp_path: Path) -> None:
    whole = clean_set()
    kinds = {
        "rgba.png": ("RGBA", "PNG"),
        "palette.png": ("P", "PNG"),
        "gray.png": ("L", "PNG"),
        "cmyk.jpg": ("CMYK", "JPEG"),
        "gray.tif": ("L", "TIFF"),
    }
    for seed, (name, (mode, kind)) in enumerate(kinds.items(), 300):
        stem, _, suffix = name.rpartition(".")
        image = Image.fromarray(drawing(seed)[0]).convert(mode)
        whole.add(
            Drawn(
                "train", stem + suffix, f".{suffix}", drawing(seed)[0], stored(image, kind), [Row(RECTANGLE)]
            )
        )
    diagnosis = diagnose(whole.write(tmp_path))
    assert diagnosis.ok and not diagnosis.warnings
    assert diagnosis.splits[0].pictures == 35
    named = {finding.path.name: finding.value for finding in of_code(diagnosis, "picture_mode")}
    assert set(named) == {"rgbapng.png", "palettepng.png", "graypng.png", "cmykjpg.jpg", "graytif.tif"}
    assert all(named.values())


def test_d22_texts_of_other_systems(tmp_path: Path) -> None:
    whole = clean_set()
    whole.names = ["螺母", "écrou", "гайка"]
    plain = diagnose(whole.write(tmp_path / "plain"))
    odd = tmp_path / "odd"
    whole.write(odd)
    for path in [odd / "data.yaml", *(odd / "labels").rglob("*.txt")]:
        text = path.read_text(encoding="utf-8") + "# 🔩\n\n\n"
        path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    call = [sys.executable, "-m", "yolov9kit", "doctor", str(odd), "--json", str(tmp_path / "report.json")]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(call, env=environment, capture_output=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr.decode()
    other = Diagnosis.from_json((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert other.findings == plain.findings == ()
    assert other.names == plain.names
    assert [without_time(facts) for facts in other.splits] == [without_time(facts) for facts in plain.splits]


def without_time(facts: object) -> str:
    return str(facts).partition("decode_ms")[0]


def test_d23_names_of_all_kinds(tmp_path: Path) -> None:
    whole = clean_set()
    folder = tmp_path / "Bilder für 训练 v1.2"
    stems = ["a b c", "naïve café", "电路板", "one.two.three", "#7 100%"]
    for seed, stem in enumerate(stems, 400):
        whole.add(drawn("train", seed, stem, [".JPG", ".Jpeg"][seed % 2]))
    diagnosis = diagnose(whole.write(folder))
    assert diagnosis.findings == ()
    assert (diagnosis.splits[0].pictures, diagnosis.splits[0].boxes) == (35, 35 * 5)


def test_d25_a_count_that_contradicts_the_names(tmp_path: Path) -> None:
    whole = clean_set()
    yaml = whole.write(tmp_path)
    yaml.write_text("nc: 4\n" + yaml.read_text(encoding="utf-8"), encoding="utf-8")
    finding = only(diagnose(tmp_path), "description")
    assert finding.path == yaml and "nc is 4" in finding.message and "names holds 3" in finding.message


def test_d26_paths_are_those_of_the_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = clean_set()
    whole.entries["train"] = "../train/images"
    for one in whole.of("train"):
        whole.pictures.remove(one)
        whole.files[f"train/images/{one.stem}{one.suffix}"] = one.data
        text = "".join(f"{row.text}\n" for row in one.rows or [])
        whole.files[f"train/labels/{one.stem}.txt"] = text.encode()
    yaml = whole.write(tmp_path / "set")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    diagnosis = diagnose(yaml)
    assert only(diagnosis, "place").path == yaml
    assert diagnosis.splits[0].boxes == 30 * 5
    yaml.write_text(yaml.read_text(encoding="utf-8").replace("../train", "../gone"), encoding="utf-8")
    error = only(diagnose(yaml), "split_missing")
    for place in (tmp_path / "gone/images", tmp_path / "set/gone/images"):
        assert str(place) in error.message.replace("set/../", "")


def test_d28_a_digit_of_the_same_length_at_the_same_time(tmp_path: Path) -> None:
    yaml = with_photo([RECTANGLE]).write(tmp_path)
    before = diagnose(yaml).splits[0].boxes_per_class
    label = tmp_path / "labels/train/photo.txt"
    times = label.stat()
    label.write_text(RECTANGLE.replace("0", "1", 1) + "\n", encoding="utf-8")
    os.utime(label, ns=(times.st_atime_ns, times.st_mtime_ns))
    after = diagnose(yaml).splits[0].boxes_per_class
    assert after == (before[0] - 1, before[1] + 1, before[2])


def test_d30_two_lists_of_one_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = clean_set((), ())
    lists: dict[str, list[str]] = {"train": [], "val": []}
    for split, seeds in (("train", range(30)), ("val", range(100, 112))):
        for seed in seeds:
            one = drawn(split, seed)
            name = f"{one.stem}{one.suffix}"
            lists[split].append(name)
            whole.files[name] = one.data
            whole.files[f"{one.stem}.txt"] = "".join(f"{row.text}\n" for row in one.rows or []).encode()
        whole.files[f"{split}.txt"] = "".join(f"{name}\n" for name in lists[split]).encode()
    whole.entries = {"train": "train.txt", "val": "./val.txt"}
    yaml = whole.write(tmp_path / "flat")
    (tmp_path / "flat/val.txt").write_bytes(whole.files["val.txt"])
    first = diagnose(yaml)
    decoded: list[Path] = []
    module = sys.modules["yolov9kit.data.checked"]
    check = module.check_picture
    monkeypatch.setattr(module, "check_picture", lambda path: decoded.append(path) or check(path))
    assert diagnose(yaml) == first
    assert decoded == []
    assert (first.splits[0].pictures, first.splits[1].pictures) == (30, 12)
    assert [finding.code for finding in first.findings] == ["label_beside", "label_beside"]


def test_d31_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    yaml = clean_set().write(tmp_path)
    before = digests(tmp_path)
    places = [tmp_path, *tmp_path.rglob("*")]
    for path in places:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        diagnosis = diagnose(yaml)
    finally:
        for path in places:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert diagnosis.findings == ()
    assert digests(tmp_path) == before


def test_d32_copies_under_new_names(tmp_path: Path) -> None:
    whole = clean_set()
    originals = whole.of("train")[3:5]
    for number, one in enumerate(originals):
        copy = drawn("val", 0, f"new {number}", one.suffix)
        copy.data, copy.rows = one.data, one.rows
        whole.add(copy)
    diagnosis = diagnose(whole.write(tmp_path))
    assert {finding.code for finding in diagnosis.findings} == {"duplicate_across"}
    assert {(finding.path, finding.value) for finding in diagnosis.findings} == {
        (tmp_path / f"images/val/new {number}{one.suffix}", str(tmp_path / one.picture))
        for number, one in enumerate(originals)
    }


def test_d34_seventeen_pictures_are_no_fault(tmp_path: Path) -> None:
    diagnosis = diagnose(clean_set(range(17)).write(tmp_path))
    assert diagnosis.findings == () and diagnosis.splits[0].pictures == 17


def test_d36_a_single_class_of_three(tmp_path: Path) -> None:
    """What is asked for single classes, the gate says of the one class."""
    whole = clean_set()
    whole.names.append("never")
    yaml = whole.write(tmp_path)
    assert [finding.code for finding in diagnose(yaml).findings] == ["class_absent"]
    train, val = (open_dataset(yaml, split, single_class=True) for split in ("train", "val"))
    assert gate(train, val) == ()
    assert [finding.code for finding in gate(open_dataset(yaml, "train"), open_dataset(yaml, "val"))] == [
        "class_absent"
    ]


@pytest.mark.parametrize("near", [True, False])
def test_nothing_is_changed_by_looking(near: bool, tmp_path: Path) -> None:
    yaml = with_photo([RECTANGLE, "nonsense", "9 0.5 0.5 0.1 0.1"]).write(tmp_path)
    before = digests(tmp_path)
    assert not diagnose(yaml, DoctorConfig(near_duplicates=near)).ok
    assert digests(tmp_path) == before
