"""Pictures and YOLO rows that no file describes."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yolov9kit.data.formats.class_names import names_in_lines
from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.formats.loose import loose_places, open_loose_yolo
from yolov9kit.errors import DataError

ROW = "1 .5 .5 .2 .1\n"


def make(folder: Path, names: str, text: str = ROW) -> None:
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text if name.endswith((".txt", ".names")) else "", encoding="utf-8")


def opened(path: Path, as_boxes: bool = False) -> Layout:
    layout = open_loose_yolo(path, as_boxes)
    assert layout is not None
    return layout


def pairs(folder: Path, split: str = "train") -> dict[str, str | None]:
    files = opened(folder).open(split)
    return {
        picture.relative_to(folder).as_posix(): label and label.relative_to(folder).as_posix()
        for picture, label in zip(files.pictures, files.label_paths, strict=True)
    }


@pytest.mark.parametrize(
    ("picture", "label"),
    [
        ("a.jpg", "a.txt"),
        ("sub/мост 1.v2.JPG", "sub/мост 1.v2.txt"),
        ("images/a.jpg", "labels/a.txt"),
        ("images/sub/a #1.png", "labels/sub/a #1.txt"),
        ("Images/a.jpg", "Annotations/a.txt"),
        ("images/a.jpg", "Annotations/a.txt"),
        ("Images/a.jpg", "Labels/a.txt"),
        ("JPEGImages/a.jpg", "labels/a.txt"),
        ("images/a.jpg", "images/a.txt"),
        ("obj_train_data/a.jpg", "obj_train_data/a.txt"),
    ],
)
def test_labels_are_found(tmp_path: Path, picture: str, label: str) -> None:
    for name in (picture, label):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(ROW)
    assert pairs(tmp_path) == {picture: label}
    read = opened(tmp_path).open("train").read(0, (100, 100))
    assert read.boxes.tolist() == [[40, 45, 60, 55]] and read.labels.tolist() == [1]
    assert (tmp_path / label) in loose_places(tmp_path / picture)


def test_splits_are_folders_at_any_depth(tmp_path: Path) -> None:
    make(tmp_path, "train/images/a.jpg train/labels/a.txt images/valid/b.jpg labels/valid/b.txt")
    make(tmp_path, "obj_Test_data/c.jpg obj_Test_data/c.txt")
    layout = opened(tmp_path)
    assert layout.splits == ("train", "val", "test") and [f.code for f in layout.findings] == [
        "names_missing"
    ]
    assert pairs(tmp_path, "validation") == {"images/valid/b.jpg": "labels/valid/b.txt"}
    assert pairs(tmp_path, "test") == {"obj_Test_data/c.jpg": "obj_Test_data/c.txt"}


def test_pictures_outside_of_the_splits_are_counted(tmp_path: Path) -> None:
    make(tmp_path, "train/a.jpg train/a.txt preview.jpg extra/b.jpg")
    (finding,) = [finding for finding in opened(tmp_path).findings if finding.code == "place"]
    assert (finding.severity, finding.value, finding.path) == ("note", "2", tmp_path / "extra/b.jpg")
    assert "in no split" in finding.message and list(pairs(tmp_path)) == ["train/a.jpg"]


def test_pictures_beside_a_folder_of_val_are_train(tmp_path: Path) -> None:
    make(tmp_path, "val/a.jpg val/a.txt b.jpg b.txt")
    (finding,) = [finding for finding in opened(tmp_path).findings if finding.code == "place"]
    assert "1 picture lies outside the folders of val: taken as train" in finding.message
    assert list(pairs(tmp_path)) == ["b.jpg"] and list(pairs(tmp_path, "val")) == ["val/a.jpg"]


@pytest.mark.parametrize(
    "name", ["obj.names", "classes.txt", "names.txt", "predefined_classes.txt", "data/obj.names"]
)
def test_names_come_from_a_file(tmp_path: Path, name: str) -> None:
    make(tmp_path, "a.jpg a.txt")
    make(tmp_path, name, "\ufeffship\r\nbig plane\r\n\r\n")
    layout = opened(tmp_path)
    assert layout.names == ("ship", "big plane") and layout.findings == ()


def test_without_names_the_numbers_that_occur_are_taken(tmp_path: Path) -> None:
    make(tmp_path, "a.jpg a.txt b.jpg")
    make(
        tmp_path,
        "b.txt",
        "\ufeff4.0 .1 .1 .1 .1 # far\r\n99999999999 .1 .1 .1 .1\r\n7 .1\r\n3 .1 .1 .2 .2 .3 .4",
    )
    layout = opened(tmp_path)
    assert layout.names == ("0", "1", "2", "3", "4")
    (finding,) = layout.findings
    assert (finding.code, finding.severity, finding.value) == ("names_missing", "note", "5")


def test_files_of_names_must_agree(tmp_path: Path) -> None:
    make(tmp_path, "train/a.jpg train/a.txt val/b.jpg val/b.txt")
    make(tmp_path, "train/classes.txt val/classes.txt", "a\nb\n")
    make(tmp_path, "predefined_classes.txt", "dog\nperson\n")  # what the tool offered: not asked
    assert opened(tmp_path).names == ("a", "b")
    make(tmp_path, "val/classes.txt", "b\na\n")
    with pytest.raises(
        DataError, match=r"val/classes\.txt: names 2 classes and .*train/classes\.txt names 2"
    ):
        open_loose_yolo(tmp_path, False)


def test_orphans_and_shared_labels_are_named(tmp_path: Path) -> None:
    make(tmp_path, "images/a.jpg images/a.png Annotations/a.txt Annotations/z.txt")
    make(tmp_path, "README.txt", "Boards of 2026.")
    findings = opened(tmp_path).open("train").findings
    assert [(f.code, f.path.name) for f in findings] == [("label_shared", "a.png"), ("label_orphan", "z.txt")]


def test_pictures_without_a_label_file_are_backgrounds(tmp_path: Path) -> None:
    make(tmp_path, "a.jpg a.txt b.jpg")
    assert pairs(tmp_path) == {"a.jpg": "a.txt", "b.jpg": None}


def test_a_split_without_any_label_is_refused_with_the_places(tmp_path: Path) -> None:
    make(tmp_path, "train/a.jpg train/a.txt val/c.jpg")
    with pytest.raises(DataError, match=r"split 'val': no label file for any of 1 picture.*val/c\.txt"):
        opened(tmp_path).open("val")
    with pytest.raises(DataError, match=r"no folder of the split 'test' \(splits: train, val\)"):
        opened(tmp_path).open("test")


def test_key_points_of_the_split_are_known_as_boxes(tmp_path: Path) -> None:
    make(tmp_path, "a.jpg a.txt b.jpg")
    (tmp_path / "a.txt").write_text("0 .5 .5 .2 .1 .1 .2 1 .3 .4 1")
    (tmp_path / "b.txt").write_text("0 .5 .5 .2 .1 .1 .2 2 .3 .4 1")
    read = opened(tmp_path, as_boxes=True).open("train").read(0, (100, 100))
    assert read.boxes.tolist() == [[40, 45, 60, 55]] and read.points == (1,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Car 0.00 0 -1.58 587.01 173.33 614.12 200.12 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59",
        "0 0 0 2 2 2 2 0 ship 0",
        "377,117,463,117,465,130,378,130,Genaxis",
        "a board with 5 holes",
        "\x00\xff",
        "1 2",
    ],
)
def test_other_texts_are_no_rows(tmp_path: Path, text: str) -> None:
    make(tmp_path, "a.jpg")
    (tmp_path / "a.txt").write_text(text, encoding="latin-1")
    assert open_loose_yolo(tmp_path, False) is None


def test_files_and_folders_without_pairs_are_left_to_others(tmp_path: Path) -> None:
    make(tmp_path, "a.jpg b.txt c/classes.txt")
    assert open_loose_yolo(tmp_path, False) is None
    assert open_loose_yolo(tmp_path / "b.txt", False) is None
    assert open_loose_yolo(tmp_path / "away", False) is None


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.binary(max_size=60), names=st.binary(max_size=30))
def test_any_bytes_give_a_layout_or_a_named_error(tmp_path: Path, text: bytes, names: bytes) -> None:
    make(tmp_path, "a.jpg a.txt b.jpg")
    (tmp_path / "b.txt").write_bytes(text)
    (tmp_path / "classes.txt").write_bytes(names)
    try:
        names_in_lines(tmp_path / "classes.txt")
    except DataError as fault:
        with pytest.raises(DataError, match=re.escape(str(fault))):
            open_loose_yolo(tmp_path, False)
        return
    layout = open_loose_yolo(tmp_path, False)
    assert layout is not None and layout.names
    assert layout.open("train").read(1, (10, 10)).rows >= 0
