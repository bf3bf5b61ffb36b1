"""labelTxt folders: tilted boxes in pixels."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yolov9kit.data.formats.dota import open_dota
from yolov9kit.data.formats.layout import Layout
from yolov9kit.errors import DataError

ROWS = "imagesource:GoogleEarth\ngsd:0.146\n10 20 30 10 40 30 20 40 ship 0\n1 1 5 1 5 9 1 9 plane 1\n"


def make(folder: Path, names: str, text: str = ROWS) -> None:
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode() if name.endswith((".txt", ".yaml")) else b"")


def opened(path: Path) -> Layout:
    layout = open_dota(path, False)
    assert layout is not None
    return layout


def labels(folder: Path, split: str = "train") -> list[str | None]:
    paths = opened(folder).open(split).label_paths
    return [path and path.relative_to(folder).as_posix() for path in paths]


def test_rows_become_the_upright_boxes_around_them(tmp_path: Path) -> None:
    make(tmp_path, "images/a.png labelTxt/a.txt")
    layout = opened(tmp_path)
    assert (layout.kind, layout.names, layout.splits) == ("DOTA", ("plane", "ship"), ("train",))
    read = layout.open("train").read(0, (100, 100))
    assert read.boxes.tolist() == [[10, 10, 40, 40], [1, 1, 5, 9]] and read.labels.tolist() == [1, 0]
    assert read.lines is not None and read.lines.tolist() == [3, 4] and read.oriented == (3, 4)
    assert read.rows == 2 and read.findings == () and layout.findings == ()


@pytest.mark.parametrize(
    ("picture", "label"),
    [
        ("train/images/a.png", "train/labelTxt/a.txt"),
        ("images/train/a.png", "labelTxt/train/a.txt"),
        ("images/a.png", "labelTxt-v1.0/a.txt"),
        ("train/images/a.v1.png", "train/labelTxt-v1.5/labelTxt/a.v1.txt"),
        ("a.png", "labelTxt/a.txt"),
    ],
)
def test_labels_are_found(tmp_path: Path, picture: str, label: str) -> None:
    make(tmp_path, f"{picture} {label}")
    assert labels(tmp_path) == [label]


def test_splits_by_folders(tmp_path: Path) -> None:
    make(tmp_path, "train/images/a.png train/labelTxt/a.txt valid/images/a.png valid/labelTxt/a.txt")
    assert opened(tmp_path).splits == ("train", "val") and labels(tmp_path, "valid") == [
        "valid/labelTxt/a.txt"
    ]
    with pytest.raises(DataError, match="no folder of the split 'test'"):
        opened(tmp_path).open("test")


@pytest.mark.parametrize("given", ["", "data.yaml"])
def test_a_yaml_tells_names_and_splits(tmp_path: Path, given: str) -> None:
    make(tmp_path, "train/images/a.png train/labelTxt/a.txt val/images/b.png val/labelTxt/b.txt")
    make(tmp_path, "data.yaml", "names: [ship, car, plane]\ntrain: ../train/images\nval: ../valid/images")
    layout = opened(tmp_path / given)
    assert layout.names == ("ship", "car", "plane") and layout.file == tmp_path / "data.yaml"
    assert layout.splits == ("train", "val") and labels(tmp_path, "val") == ["val/labelTxt/b.txt"]
    assert layout.open("train").read(0, (100, 100)).labels.tolist() == [0, 2]
    assert [finding.code for finding in layout.open("val").findings] == ["place"]


def test_orphans_are_named(tmp_path: Path) -> None:
    make(tmp_path, "images/a.png labelTxt/a.txt labelTxt/z.txt")
    assert [(f.code, f.path.name) for f in opened(tmp_path).findings] == [("label_orphan", "z.txt")]


def test_two_label_files_for_a_picture_are_refused(tmp_path: Path) -> None:
    make(tmp_path, "images/a.png labelTxt-v1.0/a.txt labelTxt-v1.5/a.txt")
    with pytest.raises(DataError, match=r"a\.png: has two label files, .*v1\.0/a\.txt and .*v1\.5/a\.txt"):
        open_dota(tmp_path, False)


@pytest.mark.parametrize(
    ("row", "code", "value"),
    [
        ("1 2 3 4 5 6 7 8", "label_columns", "1 2 3 4 5 6 7 8"),
        ("1", "label_columns", "1"),
        ("1 2 3 4 5 6 7 8 small ship 0", "label_columns", "1 2 3 4 5 6 7 8 small ship 0"),
        ("1 2 3 4 5 6 7 8 boat 0", "label_class_range", "boat"),
        ("1 2 nan 4 5 6 7 8 ship 0", "label_number", "nan"),
        ("1 2 x 4 5 6 7 8 ship 0", "label_number", "x"),
        ("201 2 205 2 205 9 201 9 ship 0", "label_outside", None),
        ("1 2 1 2 1 2 1 2 ship 0", "label_no_area", None),
        ("10 20 30 10 40 30 20 40 ship 0", "label_repeated", None),
    ],
)
def test_a_wrong_row_is_named_by_its_line(tmp_path: Path, row: str, code: str, value: str | None) -> None:
    make(tmp_path, "images/a.png data.yaml", "names: [ship, plane]\ntrain: images")
    make(tmp_path, "labelTxt/a.txt", f"{ROWS}{row}\r\n")
    read = opened(tmp_path).open("train").read(0, (100, 100))
    (finding,) = read.findings
    assert (finding.code, finding.line) == (code, 5) and (value is None or finding.value == value)
    assert read.lines is not None and read.lines.tolist() == [3, 4] and read.rows == 3


def test_others_are_left_to_others(tmp_path: Path) -> None:
    make(tmp_path, "images/a.png labels/a.txt labelTxt/a.txt")  # converted already
    assert open_dota(tmp_path, False) is None
    assert open_dota(tmp_path / "labels", False) is None
    assert open_dota(tmp_path / "labels" / "a.txt", False) is None
    assert open_dota(tmp_path / "away", False) is None
    make(tmp_path, "b/labelTxt/a.txt")
    assert open_dota(tmp_path / "b", False) is None  # no picture


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=st.one_of(
        st.binary(max_size=80),
        st.lists(
            st.sampled_from(["1", "2.5", "1e400", "-3", "nan", "ship", "\n", "gsd:1", "é", "\r"]), max_size=60
        )
        .map(" ".join)
        .map(str.encode),
    )
)
def test_any_bytes_give_boxes_or_a_finding_for_each_row(tmp_path: Path, text: bytes) -> None:
    make(tmp_path, "images/a.png")
    (tmp_path / "labelTxt").mkdir(exist_ok=True)
    (tmp_path / "labelTxt" / "a.txt").write_bytes(text)
    read = opened(tmp_path).open("train").read(0, (100, 100))
    left_out = [finding for finding in read.findings if finding.severity != "note"]
    assert read.rows == len(read.labels) + len(left_out) and all(
        f.code.startswith("label_") for f in left_out
    )
    assert all(finding.line or finding.code == "label_file" for finding in left_out)
    assert read.lines is None or len(read.lines) == len(read.labels) == len(read.oriented)
