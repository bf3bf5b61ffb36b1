"""Data sets as their owners have them: each case is the drawn set with one thing changed."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from yolov9kit.data.checked import PictureFacts, facts_file
from yolov9kit.data.dataset import Dataset, Finding, has_split, open_dataset, refuse
from yolov9kit.errors import DataError

pytestmark = pytest.mark.usefixtures("private_cache")


def label(yolo_set: Path, i: int = 0, split: str = "train") -> Path:
    return yolo_set / "labels" / split / f"board {i}.txt"


def picture(yolo_set: Path, i: int = 0, split: str = "train") -> Path:
    return yolo_set / "images" / split / f"board {i}.jpg"


def of_code(dataset: Dataset, code: str) -> list[Finding]:
    return [finding for finding in dataset.findings if finding.code == code]


def boxes(dataset: Dataset) -> int:
    return sum(len(sample.labels) for sample in dataset.samples)


def state(folder: Path) -> dict[str, tuple[str, int]]:
    """Content and time of everything in a folder."""
    return {
        path.relative_to(folder).as_posix(): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns,
        )
        for path in [folder, *folder.rglob("*")]
    }


def decoded_again(yolo_set: Path, split: str) -> int:
    """How many pictures of a split are not served from the cache."""
    listed = open_dataset(yolo_set, split, cache=False)
    source = yolo_set / f"{split}.txt"
    facts = PictureFacts(facts_file(split, [source if source.exists() else yolo_set / "images" / split]))
    assert len(list(facts.check([sample.path for sample in listed.samples]))) == len(listed.samples)
    return facts.decoded


# ------------------------------------------------------------------------------------------- the plain set


def test_the_drawn_set(yolo_set: Path) -> None:
    train, val = open_dataset(yolo_set), open_dataset(yolo_set / "data.yaml", "val")
    assert (len(train.samples), len(val.samples)) == (6, 2)
    assert train.names == ("rectangle", "disc", "triangle") and train.name == "boards"
    assert train.findings == () and boxes(train) == 24
    assert [sample.path.name for sample in train.samples] == [f"board {i}.jpg" for i in range(6)]
    sample = train.samples[0]
    assert sample.size_wh == (640, 480) and sample.label_path == label(yolo_set)
    assert (sample.boxes == np.round(sample.boxes)).all()  # drawn on whole pixels
    assert train.summary() == (
        "boards train: 6 pictures, 24 boxes, 0 backgrounds with an empty label file, 0 without a label file"
    )
    refuse(train)


def test_samples_cannot_be_changed(yolo_set: Path) -> None:
    for single_class in (False, True):
        sample = open_dataset(yolo_set, single_class=single_class).samples[0]
        for array in (sample.boxes, sample.labels):
            with pytest.raises(ValueError, match="read-only"):
                array[:] = 0


def test_a_second_look_decodes_nothing_and_sees_the_same(yolo_set: Path) -> None:
    first = open_dataset(yolo_set)
    assert decoded_again(yolo_set, "train") == 0
    assert open_dataset(yolo_set).digest == first.digest == open_dataset(yolo_set, cache=False).digest


def test_progress_counts_the_pictures(yolo_set: Path) -> None:
    seen: list[tuple[int, int]] = []
    open_dataset(yolo_set, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, 6) for i in range(1, 7)]


def test_a_look_that_was_given_up_raises_and_keeps_what_it_learnt(yolo_set: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        open_dataset(yolo_set, progress=stop)
    assert decoded_again(yolo_set, "train") <= 3


def test_the_digest_tells_data_sets_apart_and_not_their_places(yolo_set: Path, tmp_path: Path) -> None:
    before = open_dataset(yolo_set).digest
    moved = shutil.copytree(yolo_set, tmp_path / "elsewhere" / "moved")
    assert open_dataset(moved).digest == before
    others = {before, open_dataset(yolo_set, "val").digest, open_dataset(yolo_set, single_class=True).digest}
    picture(moved, 2).rename(picture(moved, 9))
    label(moved, 2).rename(label(moved, 9))
    others.add(open_dataset(moved).digest)
    label(yolo_set, 3).write_text("0 0.5 0.5 0.2 0.1")
    others.add(open_dataset(yolo_set).digest)
    assert len(others) == 5


def test_has_split(yolo_set: Path) -> None:
    assert [has_split(yolo_set, split) for split in ("train", "val", "test")] == [True, True, False]
    with pytest.raises(DataError, match=r"no key 'test'.*keys: train, val"):
        open_dataset(yolo_set, "test")


# -------------------------------------------------------------------------------------------- label files


def test_d01_to_d03_rows_reach_the_samples(yolo_set: Path) -> None:
    label(yolo_set).write_text("0 0.5 0.5 0.2 0.1\n1 0.1 0.2 0.5 0.2 0.5 0.6 0.1 0.6\n")
    dataset = open_dataset(yolo_set)
    assert dataset.samples[0].boxes[0].tolist() == [256, 216, 384, 264]
    np.testing.assert_allclose(dataset.samples[0].boxes[1], [64, 96, 320, 288], rtol=1e-6)
    assert [finding.message for finding in of_code(dataset, "label_polygons")] == [
        "1 polygon row read as box"
    ]
    assert of_code(dataset, "label_mixed")[0].path == label(yolo_set)
    refuse(dataset)


def test_d04_a_class_without_a_name_is_refused(yolo_set: Path) -> None:
    (yolo_set / "data.yaml").write_text("train: images/train\nnames: [object]\n")
    for i in range(6):
        label(yolo_set, i).write_text("0 0.5 0.5 0.2 0.1\n")
    label(yolo_set, 4).write_text("0 0.5 0.5 0.2 0.1\n1 0.5 0.5 0.3 0.1\n")
    dataset = open_dataset(yolo_set)
    with pytest.raises(DataError, match=r"board 4\.txt:2: class 1, allowed 0-0") as caught:
        refuse(dataset)
    assert "start at 1" not in str(caught.value)
    assert boxes(dataset) == 6


@pytest.mark.parametrize("suffix", ["", ".0"])
def test_ids_that_start_at_1_are_recognised(yolo_set: Path, suffix: str) -> None:
    for i in range(6):
        label(yolo_set, i).write_text("".join(f"{c}{suffix} 0.5 0.5 0.2 0.{c}\n" for c in (1, 2, 3)))
    first, *errors = open_dataset(yolo_set).errors
    assert (first.code, first.path, first.value) == ("class_from_one", yolo_set / "data.yaml", "6")
    assert "subtract 1" in first.message
    assert len(errors) == 6
    assert all(error.message.endswith("ids seem to start at 1") for error in errors)
    assert [(error.code, error.line, error.value) for error in errors] == [("label_class_range", 3, "3")] * 6
    label(yolo_set, 5).write_text("4 0.5 0.5 0.1 0.1")
    assert not any("start at 1" in error.message for error in open_dataset(yolo_set).errors)


def test_refuse_shows_five_and_counts_the_others(yolo_set: Path) -> None:
    label(yolo_set).write_text("".join(f"0 0.5 0.5 0.{i} 7.{i}\n" for i in range(1, 9)))
    dataset = open_dataset(yolo_set)
    assert len(dataset.errors) == 8 and dataset.summary().endswith("8 errors")
    with pytest.raises(DataError) as caught:
        refuse(dataset)
    text = str(caught.value)
    assert all(f"{label(yolo_set)}:{i}: 7.{i} looks like pixels" in text for i in range(1, 6))
    assert "board 0.txt:6" not in text and "and 3 more" in text


def test_findings_come_by_weight(yolo_set: Path) -> None:
    label(yolo_set, 0).write_text("0 0.1 0.1 0.2 0.1 0.2 0.3")
    label(yolo_set, 1).write_text("0 0.5 0.5 0 0.1")
    label(yolo_set, 2).write_text("0.5 0.5 0.5 0.1 0.1")
    assert [finding.severity for finding in open_dataset(yolo_set).findings] == ["error", "warning", "note"]


def test_d09_and_d12_rows_left_out_do_not_stop_a_run(yolo_set: Path) -> None:
    label(yolo_set).write_text("0 0.5 0.5 0 0.1\n1 0.5 0.5 0.1 0\n2 0.5 0.5 0.1 0.1\n2 0.5 0.5 0.1 0.1\n")
    dataset = open_dataset(yolo_set)
    assert len(of_code(dataset, "label_no_area")) == 2 and len(of_code(dataset, "label_repeated")) == 1
    assert dataset.samples[0].labels.tolist() == [2]
    refuse(dataset)


def test_d13_the_two_kinds_of_background_are_counted_apart(yolo_set: Path) -> None:
    label(yolo_set, 1).write_text("\n\n")
    label(yolo_set, 2).unlink()
    label(yolo_set, 3).unlink()
    dataset = open_dataset(yolo_set)
    assert (dataset.empty_labels, dataset.missing_labels, dataset.left_out) == (1, 2, 0)
    assert len(dataset.samples) == 6 and dataset.samples[2].label_path is None
    assert dataset.samples[1].boxes.shape == dataset.samples[2].boxes.shape == (0, 4)
    assert dataset.findings == ()
    assert "1 background with an empty label file, 2 without a label file" in dataset.summary()


def test_a_file_whose_rows_are_all_wrong_is_no_empty_file(yolo_set: Path) -> None:
    label(yolo_set).write_text("9 0.5 0.5 0.1 0.1")
    dataset = open_dataset(yolo_set)
    assert dataset.empty_labels == 0 and len(dataset.errors) == 1


def test_d14_no_label_file_at_all_shows_where_one_was_looked_for(yolo_set: Path) -> None:
    (yolo_set / "labels").rename(yolo_set / "annotations")
    with pytest.raises(DataError, match="no label file for any of 6 pictures") as caught:
        open_dataset(yolo_set)
    assert str(label(yolo_set)) in str(caught.value)
    assert str(picture(yolo_set).with_suffix(".txt")) in str(caught.value)


def test_d15_the_last_images_is_replaced(yolo_set: Path) -> None:
    shutil.copytree(yolo_set / "images" / "train", yolo_set / "x" / "images" / "train" / "images")
    shutil.copytree(yolo_set / "labels" / "train", yolo_set / "x" / "images" / "train" / "labels")
    (yolo_set / "data.yaml").write_text("train: x/images/train\nnames: [a, b, c]\n")
    dataset = open_dataset(yolo_set)
    assert boxes(dataset) == 24 and dataset.missing_labels == 0


def test_samples_know_the_lines_of_their_boxes(yolo_set: Path) -> None:
    label(yolo_set).write_text("\n0 0.5 0.5 0.2 0.1\n9 .1 .1 .1 .1\n\n1 0.5 0.5 0.1 0.1\n")
    label(yolo_set, 1).unlink()
    samples = open_dataset(yolo_set).samples
    assert samples[0].lines is not None and samples[0].lines.tolist() == [2, 5]
    assert samples[1].lines is None


def test_a_label_without_a_picture_is_named(yolo_set: Path) -> None:
    picture(yolo_set, 3).unlink()
    (finding,) = open_dataset(yolo_set).findings
    assert (finding.code, finding.severity, finding.path) == ("label_orphan", "warning", label(yolo_set, 3))


OBLIQUE = "1 0.146731 0.151795 0.319936 0.301795 0.186603 0.648205 0.013397 0.498205\n"


def test_oriented_boxes_are_refused_unless_their_boxes_are_asked_for(yolo_set: Path) -> None:
    Image.new("RGB", (300, 200)).save(picture(yolo_set, 4))
    Image.new("RGB", (300, 200)).save(picture(yolo_set, 5))
    label(yolo_set, 4).write_text(f"0 .5 .5 .1 .1\n{OBLIQUE}")
    label(yolo_set, 5).write_text(OBLIQUE)
    refused, taken = open_dataset(yolo_set), open_dataset(yolo_set, as_boxes=True)
    for dataset, severity in ((refused, "error"), (taken, "note")):
        (finding,) = dataset.findings
        assert (finding.code, finding.severity, finding.value) == ("label_oriented", severity, "2")
        assert (finding.path, finding.line) == (label(yolo_set, 4), 2)
    with pytest.raises(DataError, match=r"board 4\.txt:2: .*yolov9kit data convert DATA OUT --as-boxes"):
        refuse(refused)
    np.testing.assert_allclose(taken.samples[5].boxes, [[4.0191, 30.359, 95.9808, 129.641]], rtol=1e-5)
    label(yolo_set, 0).write_text("0 .1 .1 .3 .1 .2 .4")
    dataset = open_dataset(yolo_set)
    assert dataset.errors == () and len(of_code(dataset, "label_polygons")) == 3


def test_key_points_are_refused_unless_their_boxes_are_asked_for(yolo_set: Path) -> None:
    for i in range(6):
        label(yolo_set, i).write_text(f"1 .5 .5 .2 .1 .4 .4 {i % 2} .5 .5 1 .6 .6 1\n")
    label(yolo_set, 5).write_text(
        "1 .5 .5 .2 .1 .4 .4 2 .5 .5 2 0 0 0\n0 .5 .5 .2 .1 .4 .4 2 .5 .5 2 0 0 0\n"
    )
    (error,) = open_dataset(yolo_set).errors
    assert (error.code, error.line) == ("label_points", 1) and "--as-boxes" in error.message
    taken = open_dataset(yolo_set, as_boxes=True)
    (note,) = taken.findings
    assert (note.code, note.severity, note.value) == ("label_points", "note", "7")
    assert all(sample.boxes[0].tolist() == [256, 216, 384, 264] for sample in taken.samples)


def test_two_pictures_with_one_label_file_are_named(yolo_set: Path) -> None:
    Image.new("RGB", (640, 480)).save(picture(yolo_set).with_suffix(".png"))
    (finding,) = open_dataset(yolo_set).findings
    assert (finding.code, finding.severity) == ("label_shared", "warning")
    assert "board 0.png" in str(finding.path) and "board 0.jpg" in finding.message


def test_d28_a_changed_label_is_seen_whatever_its_time(yolo_set: Path) -> None:
    first = open_dataset(yolo_set)
    path, before = label(yolo_set), label(yolo_set).stat()
    text = path.read_text()
    old = int(text[0])
    path.write_text(str((old + 1) % 3) + text[1:])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    second = open_dataset(yolo_set)
    assert (first.samples[0].labels[0], second.samples[0].labels[0]) == (old, (old + 1) % 3)
    assert first.digest != second.digest


def test_d36_single_class(yolo_set: Path) -> None:
    plain, single = open_dataset(yolo_set), open_dataset(yolo_set, single_class=True)
    assert single.names == ("object",)
    assert {int(c) for sample in plain.samples for c in sample.labels} == {0, 1, 2}
    assert {int(c) for sample in single.samples for c in sample.labels} == {0}
    assert boxes(single) == boxes(plain)


def test_pictures_with_too_few_boxes_are_left_out_and_counted(yolo_set: Path) -> None:
    label(yolo_set, 0).write_text("")
    label(yolo_set, 1).write_text("0 0.5 0.5 0.2 0.1")
    label(yolo_set, 2).unlink()
    dataset = open_dataset(yolo_set, min_items=2)
    assert (len(dataset.samples), dataset.below_min_items) == (3, 3)
    assert (dataset.empty_labels, dataset.missing_labels) == (0, 0)
    assert "3 pictures with too few boxes left out" in dataset.summary()
    with pytest.raises(DataError, match=r"no picture has 9 boxes or more \(6 have fewer\)"):
        open_dataset(yolo_set, min_items=9)


# ----------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("orientation", range(1, 9))
def test_d17_size_and_boxes_are_those_of_the_upright_picture(yolo_set: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[274] = orientation
    Image.new("RGB", (100, 40)).save(picture(yolo_set), exif=exif)
    label(yolo_set).write_text("0 0.5 0.25 1.0 0.5")
    sample = open_dataset(yolo_set).samples[0]
    width, height = sample.size_wh
    assert sample.size_wh == ((40, 100) if orientation >= 5 else (100, 40))
    assert sample.boxes.tolist() == [[0, 0, width, height / 2]]


def test_d18_nothing_in_the_data_set_changes(yolo_set: Path) -> None:
    path = picture(yolo_set)
    path.write_bytes(path.read_bytes()[:-2])
    before = state(yolo_set)
    for split in ("train", "val"):
        dataset = open_dataset(yolo_set, split)
        open_dataset(yolo_set, split)
        assert len(dataset.samples) == {"train": 6, "val": 2}[split]
    assert state(yolo_set) == before
    (finding,) = open_dataset(yolo_set).findings
    assert (finding.code, finding.severity, finding.path) == ("picture_end", "warning", path)
    assert "JPEG end marker missing" in finding.message


def test_d19_unreadable_pictures_are_named_counted_and_left_out(yolo_set: Path) -> None:
    half = picture(yolo_set, 1)
    half.write_bytes(half.read_bytes()[: half.stat().st_size // 2])
    empty = picture(yolo_set).with_name("empty.png")
    empty.touch()
    text = picture(yolo_set).with_name("text.jpg")
    text.write_text("no picture")
    for _ in range(2):  # the second time from the cache
        dataset = open_dataset(yolo_set)
        found = list(dataset.findings)
        assert [(finding.code, finding.path) for finding in found] == [
            ("picture_truncated", half),
            ("picture_empty", empty),
            ("picture_not_a_picture", text),
        ]
        assert all(finding.severity == "warning" and "left out: " in finding.message for finding in found)
        assert "the file is empty" in found[1].message and "cut-off" in found[0].message
        assert (dataset.left_out, len(dataset.samples)) == (3, 5)
        assert "3 unreadable pictures left out" in dataset.summary()
        refuse(dataset)


def test_d19_no_readable_picture_is_an_error(yolo_set: Path) -> None:
    for i in range(6):
        picture(yolo_set, i).write_bytes(b"")
    with pytest.raises(DataError, match=r"none of 6 pictures can be read: .*board 0\.jpg: the file is empty"):
        open_dataset(yolo_set)


def test_d20_conversions_are_stated(yolo_set: Path) -> None:
    with Image.open(picture(yolo_set)) as image:
        image.convert("L").save(picture(yolo_set))
    dataset = open_dataset(yolo_set)
    assert len(dataset.samples) == 6
    assert [f.path for f in of_code(dataset, "picture_mode") if "gray" in f.message] == [picture(yolo_set)]


@pytest.mark.parametrize(
    "name", ["мост 1.JPG", "a.b.c.Jpeg", "été.jpg", "電路板 2.JPEG", "-rf.jpg", "a#1.jpg"]
)
def test_d23_names_of_every_kind_are_found(yolo_set: Path, name: str) -> None:
    (yolo_set / "images").rename(yolo_set / "Bilder für 訓練.v1")
    moved = yolo_set / "Bilder für 訓練.v1" / "images" / "train"
    shutil.copytree(yolo_set / "Bilder für 訓練.v1" / "train", moved)
    (moved / "board 0.jpg").rename(moved / name)
    shutil.copytree(yolo_set / "labels", yolo_set / "Bilder für 訓練.v1" / "labels")
    labels = yolo_set / "Bilder für 訓練.v1" / "labels" / "train"
    (labels / "board 0.txt").rename((labels / name).with_suffix(".txt"))
    content = "train: Bilder für 訓練.v1/images/train\nnames: [a, b, c]\n"
    (yolo_set / "data.yaml").write_text(content, encoding="utf-8")
    dataset = open_dataset(yolo_set)
    assert name in [sample.path.name for sample in dataset.samples]
    assert boxes(dataset) == 24 and dataset.missing_labels == 0 and dataset.findings == ()


def test_d22_the_locale_plays_no_part(yolo_set: Path, root: Path) -> None:
    folder = yolo_set / "images" / "訓練"
    picture(yolo_set).parent.rename(folder)
    (yolo_set / "labels" / "train").rename(yolo_set / "labels" / "訓練")
    (yolo_set / "list.txt").write_text(f"images/訓練/{picture(yolo_set).name}", encoding="utf-8")
    text = "names: [Schraube, 螺母, гайка] # \N{HAMMER AND WRENCH}\r\ntrain: images/訓練\r\nval: list.txt\r\n"
    (yolo_set / "data.yaml").write_text("\ufeff" + text, encoding="utf-8", newline="")
    script = (
        "import sys; from yolov9kit.data.dataset import open_dataset\n"
        "for split in ('train', 'val'):\n"
        "    d = open_dataset(sys.argv[1], split); print(ascii(d.names), d.digest, d.findings)\n"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script, yolo_set], env=environment, cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    here = [open_dataset(yolo_set, split) for split in ("train", "val")]
    assert done.stdout.splitlines() == [f"{d.names!a} {d.digest} ()" for d in here]
    assert here[0].names == ("Schraube", "螺母", "гайка")


# -------------------------------------------------------------------------------------- places and cache


def test_d25_and_d26_the_yaml_is_wrong(yolo_set: Path) -> None:
    (yolo_set / "data.yaml").write_text("train: images/train\nnc: 4\nnames: [a, b, c]\n")
    with pytest.raises(DataError, match=r"nc is 4, but names holds 3"):
        open_dataset(yolo_set)
    (yolo_set / "data.yaml").write_text("train: ../images/train\nval: ../away\nnames: [a, b, c]\n")
    dataset = open_dataset(yolo_set)
    assert len(dataset.samples) == 6 and [finding.code for finding in dataset.findings] == ["place"]
    with pytest.raises(DataError, match="tried: ") as caught:
        open_dataset(yolo_set, "val")
    assert str(yolo_set / "away") in str(caught.value)


def test_d30_flat_layout_both_splits_are_served_from_the_cache(yolo_set: Path) -> None:
    flat = yolo_set / "flat"
    flat.mkdir()
    for folder in ("images/train", "images/val", "labels/train", "labels/val"):
        for path in (yolo_set / folder).iterdir():
            shutil.copy(path, flat)
    (yolo_set / "train.txt").write_text("".join(f"flat/board {i}.jpg\n" for i in range(6)))
    (yolo_set / "val.txt").write_text("".join(f"./flat/board {i}.jpg\n" for i in (6, 7)))
    (yolo_set / "data.yaml").write_text("train: train.txt\nval: val.txt\nnames: [a, b, c]\n")
    before = state(yolo_set)
    counts = {split: boxes(open_dataset(yolo_set, split)) for split in ("train", "val")}
    assert counts == {"train": 24, "val": 8}
    for split, count in counts.items():
        assert decoded_again(yolo_set, split) == 0
        assert boxes(open_dataset(yolo_set, split)) == count
    assert state(yolo_set) == before


def test_a_list_is_the_label_file_of_no_picture(yolo_set: Path) -> None:
    for path in (*(yolo_set / "images" / "train").iterdir(), *(yolo_set / "labels" / "train").iterdir()):
        shutil.copy(path, yolo_set)
    shutil.copy(picture(yolo_set), yolo_set / "train.jpg")
    (yolo_set / "train.txt").write_text("board 0.jpg\ntrain.jpg\n")
    (yolo_set / "data.yaml").write_text("train: train.txt\nnames: [a, b, c]\n")
    dataset = open_dataset(yolo_set)
    assert dataset.missing_labels == 1
    assert [(f.code, f.severity, f.value) for f in dataset.findings] == [("label_beside", "note", "1")]


def test_d31_without_a_place_for_the_cache_one_line_says_so(
    yolo_set: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a file"))
    before = state(yolo_set)
    dataset = open_dataset(yolo_set)
    (finding,) = dataset.findings
    assert (finding.code, finding.severity) == (
        "cache",
        "note",
    ) and "not kept for next time" in finding.message
    assert len(dataset.samples) == 6 and state(yolo_set) == before


def test_without_cache_nothing_is_written_anywhere(yolo_set: Path, private_cache: Path) -> None:
    open_dataset(yolo_set, cache=False)
    assert not private_cache.exists()
    open_dataset(yolo_set)
    assert len(list(private_cache.rglob("*.json"))) == 1
