"""obj.data and what it names."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yolov9kit.data.formats.darknet import open_darknet
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.errors import DataError

OBJ_DATA = (
    "classes = 2\ntrain = data/train.txt\nvalid = data/valid.txt\nnames = data/obj.names\nbackup = backup/\n"
)
ROW = "1 .5 .5 .2 .1\n"


def write(folder: Path, name: str, text: str = "") -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


@pytest.fixture
def cvat(tmp_path: Path) -> Path:
    """As CVAT writes it: everything beside obj.data, and every path begins with data/."""
    write(tmp_path, "obj.data", OBJ_DATA)
    write(tmp_path, "obj.names", "ship\nbig plane\n\n")
    for name, pictures in (("train", "ab"), ("valid", "c")):
        folder = f"obj_{name}_data"
        write(tmp_path, f"{name}.txt", "".join(f"data/{folder}/{picture}.JPG\n" for picture in pictures))
        for picture in pictures:
            write(tmp_path, f"{folder}/{picture}.JPG")
            write(tmp_path, f"{folder}/{picture}.txt", ROW)
    return tmp_path


def opened(path: Path) -> Layout:
    layout = open_darknet(path, False)
    assert layout is not None
    return layout


def shown(files: SplitFiles) -> list[tuple[str, str | None]]:
    return [
        (picture.name, label and label.name)
        for picture, label in zip(files.pictures, files.label_paths, strict=True)
    ]


@pytest.mark.parametrize("name", ["", "obj.data"])
def test_a_cvat_export_is_read(cvat: Path, name: str) -> None:
    layout = opened(cvat / name)
    assert (layout.kind, layout.file, layout.names) == (
        "Darknet YOLO",
        cvat / "obj.data",
        ("ship", "big plane"),
    )
    assert layout.splits == ("train", "val") and layout.findings == ()
    train, val = layout.open("train"), layout.open("val")
    assert shown(train) == [("a.JPG", "a.txt"), ("b.JPG", "b.txt")] and shown(val) == [("c.JPG", "c.txt")]
    assert [finding.code for finding in train.findings] == ["place"]  # data/ was cut off
    read = train.read(0, (100, 100))
    assert read.labels.tolist() == [1] and read.boxes.tolist() == [[40, 45, 60, 55]]


def test_the_folder_that_darknet_is_started_in_is_tried(cvat: Path, tmp_path: Path) -> None:
    (cvat / "cfg").mkdir()
    (cvat / "obj.data").rename(cvat / "cfg" / "boards.data")
    (cvat / "data").mkdir()
    for name in ("obj.names", "train.txt", "valid.txt"):
        (cvat / name).rename(cvat / "data" / name)
    for name in ("obj_train_data", "obj_valid_data"):
        (cvat / name).rename(cvat / "data" / name)
    layout = opened(cvat / "cfg")
    assert layout.file.name == "boards.data" and layout.names == ("ship", "big plane")
    assert [finding.code for finding in layout.findings] == ["place"] * 3
    assert len(layout.open("train").pictures) == 2
    (cvat / "cfg" / "boards.data").rename(cvat / "data" / "boards.data")
    assert opened(cvat / "data").findings == ()


@pytest.mark.parametrize(
    "text",
    [
        OBJ_DATA.replace("\n", "\r\n"),
        "\ufeff" + OBJ_DATA,
        OBJ_DATA.replace("data/", "data\\"),
        OBJ_DATA.replace(" = ", "="),
        f"# boards\n\n; more\n{OBJ_DATA}eval = coco\n",
        OBJ_DATA.replace("data/", ""),
        OBJ_DATA.replace("data/", "./data/"),
    ],
)
def test_other_ways_to_write_it_change_nothing(cvat: Path, text: str) -> None:
    write(cvat, "obj.data", text)
    layout = opened(cvat)
    assert layout.names == ("ship", "big plane") and layout.findings == ()
    assert [len(layout.open(split).pictures) for split in ("train", "val")] == [2, 1]


def test_lists_with_windows_paths_and_odd_names(cvat: Path) -> None:
    write(cvat, "obj_train_data/мост #1 b.JPG")
    write(cvat, "obj_train_data/мост #1 b.txt", ROW)
    write(cvat, "train.txt", "data\\obj_train_data\\a.JPG\r\ndata\\obj_train_data\\мост #1 b.JPG\r\n")
    assert shown(opened(cvat).open("train")) == [("a.JPG", "a.txt"), ("мост #1 b.JPG", "мост #1 b.txt")]


def test_without_names_numbers_are_taken_and_a_note_says_so(cvat: Path) -> None:
    write(cvat, "obj.data", OBJ_DATA.replace("names = data/obj.names", ""))
    layout = opened(cvat)
    assert layout.names == ("0", "1")
    assert [(f.code, f.severity, f.value) for f in layout.findings] == [("names_missing", "note", "2")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OBJ_DATA.replace("2", "3"), r"classes is 3, but .*obj\.names holds 2 names \(ship, big plane\)"),
        (OBJ_DATA.replace("2", "two"), r"classes is 'two': expected the number"),
        (OBJ_DATA.replace("2", "0"), r"classes is '0'"),
        (OBJ_DATA.replace("2", "9" * 9), r"classes is '999999999'"),
        ("train = a\nnames", r"obj\.data:2: expected key = value, found 'names'"),
        ("train = a\ntrain = b", r"obj\.data:2: key train twice"),
        ("train = a", "has neither names nor classes"),
        ("backup = a", r"expected keys such as train, valid and names \(keys: backup\)"),
        ("", "expected keys"),
        ("names = away.names", r"names 'away\.names' was not found, tried: .*away\.names"),
    ],
)
def test_a_wrong_file_is_refused_by_name(cvat: Path, text: str, said: str) -> None:
    write(cvat, "obj.data", text)
    with pytest.raises(DataError, match=rf"obj\.data.*{said}|{said}") as caught:
        open_darknet(cvat, False)
    assert "obj.data" in str(caught.value) and "\n" not in str(caught.value)


def test_a_blank_name_is_refused_by_its_line(cvat: Path) -> None:
    write(cvat, "obj.names", "ship\n\nplane\n")
    with pytest.raises(DataError, match=r"obj\.names:2: the line is blank"):
        open_darknet(cvat, False)
    write(cvat, "obj.names", "\n")
    with pytest.raises(DataError, match=r"obj\.names: holds no class name"):
        open_darknet(cvat, False)


def test_a_list_that_is_gone_is_an_error_of_its_split_alone(cvat: Path) -> None:
    (cvat / "valid.txt").unlink()
    layout = opened(cvat)
    assert len(layout.open("train").pictures) == 2
    with pytest.raises(DataError, match=r"obj\.data: 'data/valid\.txt' was not found, tried: ") as caught:
        layout.open("val")
    assert str(cvat / "valid.txt") in str(caught.value) or str(cvat / "data/valid.txt") in str(caught.value)
    with pytest.raises(DataError, match=r"has no key 'test'"):
        layout.open("test")


def test_others_are_left_to_others(tmp_path: Path) -> None:
    write(tmp_path, "model.data", "\0\1\2")
    for file in (tmp_path, write(tmp_path, "data.yaml"), tmp_path / "away.data"):
        assert open_darknet(file, False) is None
    for name in ("a.data", "b.data"):
        write(tmp_path, name, OBJ_DATA)
    with pytest.raises(DataError, match=r"several Darknet files \(a\.data, b\.data\)"):
        open_darknet(tmp_path, False)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=st.one_of(
        st.binary(max_size=80),
        st.lists(
            st.sampled_from(["train", "valid", "names", "classes", "=", "a", "2", "\n", "\r", "\0", "é"])
        )
        .map(" ".join)
        .map(str.encode),
    )
)
def test_any_bytes_give_a_named_error(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "obj.data").write_bytes(text)
    (tmp_path / "a").write_bytes(text)
    with pytest.raises(DataError) as caught:
        opened(tmp_path / "obj.data").open("train")
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)
