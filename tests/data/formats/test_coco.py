"""COCO JSON: which pictures and boxes are read, and what is said about the rest."""

import json
import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.formats.coco_sets import (
    CLEAN,
    WH,
    coco_folder,
    codes,
    every_finding,
    opened,
    picture,
    read_all,
    with_pictures,
    write,
)
from yolov9kit.data.dataset import open_dataset
from yolov9kit.data.formats.coco import open_coco
from yolov9kit.errors import DataError


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    return partial(coco_folder, tmp_path / "set")


# --------------------------------------------------------------------------------------------- what is read


def test_boxes_classes_and_pictures_of_a_clean_file(make: Callable[..., Path]) -> None:
    layout = opened(make())
    assert layout.kind == "COCO JSON" and layout.splits == ("train",) and layout.names == ("board", "screw")
    files = layout.open("train")
    assert [path.name for path in files.pictures] == ["a.png", "b.png"]
    a, b = read_all(files)
    np.testing.assert_array_equal(a.boxes, [[1, 2, 31, 42], [0, 0, 64, 48]])
    assert a.labels.tolist() == [1, 0] and a.rows == 2 and a.lines is None
    np.testing.assert_array_equal(b.boxes, [[0.5, 0.25, 10.5, 5.75]])
    assert every_finding(layout) == []


def test_open_dataset_reads_it(make: Callable[..., Path], private_cache: Path) -> None:
    dataset = open_dataset(make())
    assert [len(sample.labels) for sample in dataset.samples] == [2, 1] and dataset.findings == ()
    assert dataset.names == ("board", "screw")


def test_a_picture_without_annotations_is_an_empty_background(
    make: Callable[..., Path], private_cache: Path
) -> None:
    dataset = open_dataset(make(lambda coco: coco["annotations"].pop(1)))
    assert dataset.empty_labels == 1 and dataset.missing_labels == 0 and dataset.findings == ()


def test_d22_bom_crlf_and_names_in_any_script(make: Callable[..., Path]) -> None:
    folder = make(categories=[{"id": 2, "name": "板"}, {"id": 5, "name": "шуруп 🔩"}])
    file = folder / "annotations.json"
    plain = json.dumps(json.loads(file.read_text("utf-8")), indent=1, ensure_ascii=False)
    file.write_bytes(b"\xef\xbb\xbf" + plain.replace("\n", "\r\n").encode())
    layout = opened(folder)
    assert layout.names == ("板", "шуруп 🔩") and every_finding(layout) == []
    assert sum(len(read.boxes) for read in read_all(layout.open("train"))) == 3


@pytest.mark.parametrize(
    ("written", "lies"),
    [
        ("sub\\deep\\a.png", "images/sub/deep/a.png"),
        ("images/train/a.png", "images/train/a.png"),
        ("./train/a.png", "images/train/a.png"),
        ("https://example.org/pictures/a.png", "images/a.png"),
        ("C:\\Users\\me\\a.png", "train/a.png"),
        ("/home/me/dataset/a.png", "a.png"),
        ("图 片 #1.v2.PNG", "images/图 片 #1.v2.PNG"),
        ("é.png", "images/" + unicodedata.normalize("NFD", "é.png")),
    ],
)  # fmt: skip
def test_d23_names_of_pictures_in_every_spelling(tmp_path: Path, written: str, lies: str) -> None:
    content = CLEAN | {"images": [{"id": 7, "file_name": written}, {"id": 9, "file_name": "b.png"}]}
    write(tmp_path / "annotations.json", content)
    picture(tmp_path / lies), picture(tmp_path / "b.png")
    files = opened(tmp_path).open("train")
    assert files.pictures == (tmp_path / lies, tmp_path / "b.png") and files.findings == ()


def test_the_last_part_alone_is_not_trusted_where_two_share_it(tmp_path: Path) -> None:
    names = [
        {"id": 7, "file_name": "night/a.png"},
        {"id": 9, "file_name": "day/a.png"},
        {"id": 1, "file_name": "b.png"},
    ]
    write(tmp_path / "annotations.json", CLEAN | {"images": names})
    with_pictures(tmp_path)
    files = opened(tmp_path).open("train")
    assert [path.name for path in files.pictures] == ["b.png"]
    assert codes(list(files.findings)) == ["picture_missing", "picture_missing"]


# ---------------------------------------------------------------------------------------------- categories


def test_a_category_that_only_groups_others_is_left_out(make: Callable[..., Path]) -> None:
    dummy = [{"id": 0, "name": "part", "supercategory": "none"}, *CLEAN["categories"]]
    layout = opened(make(categories=dummy))
    assert layout.names == ("board", "screw")
    assert codes(list(layout.findings)) == ["category_left_out"] and layout.findings[0].value == "part"
    used = CLEAN["annotations"] + [{"id": 14, "image_id": 9, "category_id": 0, "bbox": [1, 1, 5, 5]}]
    assert opened(make(categories=dummy, annotations=used)).names == ("part", "board", "screw")
    own = [{"id": 1, "name": "person", "supercategory": "person"}, *CLEAN["categories"]]
    assert opened(make(categories=own)).names == ("person", "board", "screw")


def test_splits_whose_ids_differ_are_matched_by_name(tmp_path: Path) -> None:
    write(tmp_path / "train.json", CLEAN)
    other = [{"id": 2, "name": "screw"}, {"id": 5, "name": "board"}, {"id": 6, "name": "nut"}]
    write(tmp_path / "val.json", CLEAN | {"categories": other})
    with_pictures(tmp_path)
    layout = opened(tmp_path)
    assert layout.names == ("board", "screw", "nut") and codes(list(layout.findings)) == ["category_ids"]
    assert read_all(layout.open("train"))[0].labels.tolist() == [1, 0]
    assert read_all(layout.open("val"))[0].labels.tolist() == [0, 1]


def test_a_category_that_one_split_lacks_keeps_its_number(tmp_path: Path) -> None:
    write(tmp_path / "train.json", CLEAN)
    few = {"categories": CLEAN["categories"][:1], "annotations": CLEAN["annotations"][:1]}
    write(tmp_path / "val.json", CLEAN | few)
    with_pictures(tmp_path)
    layout = opened(tmp_path)
    assert layout.names == ("board", "screw") and layout.findings == ()
    assert read_all(layout.open("val"))[0].labels.tolist() == [1]


# --------------------------------------------------------------------------------------------- annotations


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"category_id": 3}, "label_class", "category_id 3 is the id of no category"),
        ({"category_id": "5"}, "label_class", 'category_id "5" is the id of no category'),
        ({"category_id": None}, "label_class", "category_id null"),
        ({"bbox": [1, 2, 3]}, "label_columns", "no list [x, y, width, height] of four values"),
        ({"bbox": {"x": 1}}, "label_columns", "no list [x, y, width, height]"),
        ({"bbox": None}, "label_columns", "no bbox and no polygon"),
        ({"bbox": [], "segmentation": {"counts": "abc", "size": [48, 64]}}, "label_columns", "no bbox and no polygon"),
        ({"bbox": ["1", "2", "3", "4"]}, "label_number", "no finite number"),
        ({"bbox": [1, 2, float("nan"), 4]}, "label_number", "no finite number"),
        ({"bbox": [1, 2, True, 4]}, "label_number", "no finite number"),
        ({"bbox": [1, 2, 10**400, 4]}, "label_number", "no finite number"),
        ({"bbox": None, "segmentation": [[1, 2, 3, "4", 5, 6]]}, "label_number", "no finite number"),
        ({"iscrowd": "yes"}, "label_number", 'iscrowd is "yes"'),
        ({"bbox": [1, 2, -3, 4]}, "label_no_area", "a box of -3 x 4 pixels"),
        ({"bbox": [1, 2, 0, 4]}, "label_no_area", "a box of 0 x 4 pixels"),
        ({"bbox": [100, 2, 3, 4]}, "label_outside", "lies outside the picture of 64 x 48 pixels"),
    ],
)  # fmt: skip
def test_an_annotation_that_cannot_be_used_is_named(
    make: Callable[..., Path], change: dict[str, Any], code: str, words: str
) -> None:
    folder = make(lambda coco: coco["annotations"][0].update(change))
    [finding] = every_finding(opened(folder))
    assert finding.code == code and finding.severity == ("warning" if code == "label_no_area" else "error")
    assert finding.message.startswith("annotations[0] (id 11) of a.png: ") and words in finding.message
    assert finding.path == folder / "annotations.json" and finding.line is None
    assert sum(len(read.boxes) for read in read_all(opened(folder).open("train"))) == 2


@pytest.mark.parametrize("image_id", [99, "7", None, 7.5, [7]])
def test_an_annotation_of_no_picture_is_named(make: Callable[..., Path], image_id: object) -> None:
    folder = make(lambda coco: coco["annotations"][0].update(image_id=image_id))
    [finding] = every_finding(opened(folder))
    assert finding.code == "label_orphan" and "annotations[0] (id 11): image_id" in finding.message


def test_an_entry_that_is_no_annotation_is_named(make: Callable[..., Path]) -> None:
    [finding] = every_finding(opened(make(lambda coco: coco["annotations"].append("x"))))
    assert finding.code == "label_columns" and 'annotations[3] is "x"' in finding.message


def test_a_box_twice_counts_once(make: Callable[..., Path]) -> None:
    folder = make(lambda coco: coco["annotations"].append(CLEAN["annotations"][0] | {"id": 14}))
    [finding] = every_finding(opened(folder))
    assert finding.code == "label_repeated"
    assert "annotations[3] (id 14) of a.png: the same row as in annotations[0] (id 11)" in finding.message


def test_crowds_are_left_out_with_a_count(make: Callable[..., Path]) -> None:
    crowd = {
        "id": 14,
        "image_id": 9,
        "category_id": 5,
        "bbox": [1, 1, 9, 9],
        "iscrowd": 1,
        "segmentation": {},
    }
    folder = make(lambda coco: coco["annotations"].extend([crowd, crowd | {"id": 15}]))
    [finding] = every_finding(opened(folder))
    assert (finding.code, finding.severity, finding.value) == ("label_crowd", "note", "2")
    assert sum(read.rows for read in read_all(opened(folder).open("train"))) == 3


def test_a_polygon_without_box_gives_the_box_around_it(make: Callable[..., Path]) -> None:
    outline = [[1, 2, 20, 2, 20, 9], [3, 1, 4, 1, 4, 30.5]]
    folder = make(annotations=[{"id": 1, "image_id": 7, "category_id": 5, "segmentation": outline}])
    layout = opened(folder)
    np.testing.assert_array_equal(read_all(layout.open("train"))[0].boxes, [[1, 1, 20, 30.5]])
    assert codes(every_finding(layout)) == ["label_polygons"]


def test_key_points_are_left_with_a_note(make: Callable[..., Path]) -> None:
    layout = opened(make(lambda coco: coco["annotations"][0].update(keypoints=[1, 2, 2])))
    [finding] = every_finding(layout)
    assert (finding.code, finding.severity, finding.value) == ("label_points", "note", "1")


def test_ids_may_be_texts_or_whole_floats(make: Callable[..., Path]) -> None:
    def change(coco: dict[str, Any]) -> None:
        coco["images"][0]["id"] = "seven"
        for annotation in coco["annotations"]:
            annotation["category_id"] = float(annotation["category_id"])
            if annotation["image_id"] == 7:
                annotation["image_id"] = "seven"

    layout = opened(make(change))
    assert every_finding(layout) == [] and len(read_all(layout.open("train"))[0].boxes) == 2


# ------------------------------------------------------------------------------------------------ pictures


def test_a_picture_that_is_missing_is_an_error_with_its_name_and_its_boxes(make: Callable[..., Path]) -> None:
    folder = make()
    (folder / "a.png").unlink()
    files = opened(folder).open("train")
    [finding] = files.findings
    assert (finding.code, finding.severity, finding.value) == ("picture_missing", "error", "a.png")
    assert "image id 7, 2 annotations" in finding.message and str(folder / "a.png") not in finding.value
    assert [path.name for path in files.pictures] == ["b.png"] and len(read_all(files)[0].boxes) == 1


def test_pictures_that_the_file_does_not_name_are_counted(make: Callable[..., Path]) -> None:
    folder = make()
    picture(folder / "x.png"), picture(folder / "y.png"), write(folder / "notes.txt", "no picture")
    [finding] = opened(folder).open("train").findings
    assert (finding.code, finding.severity, finding.value) == ("picture_unnamed", "warning", "2")
    assert str(folder / "x.png") in finding.message


def test_pictures_of_another_split_in_the_same_folder_are_named(tmp_path: Path) -> None:
    for i, name in enumerate(("train", "val")):
        write(tmp_path / f"{name}.json", CLEAN | {"images": CLEAN["images"][i : i + 1], "annotations": []})
    with_pictures(tmp_path / "images")
    layout = opened(tmp_path)
    assert [layout.open(split).findings for split in layout.splits] == [(), ()]


def test_the_same_picture_under_two_ids_keeps_the_boxes_of_both(make: Callable[..., Path]) -> None:
    files = opened(make(lambda coco: coco["images"][1].update(file_name="./a.png"))).open("train")
    assert [path.name for path in files.pictures] == ["a.png"] and len(read_all(files)[0].boxes) == 3
    assert "picture_repeated" in codes(list(files.findings))


@pytest.mark.parametrize("other", [0, 1])
def test_of_two_sizes_told_the_wrong_one_is_named(make: Callable[..., Path], other: int) -> None:
    def change(coco: dict[str, Any]) -> None:
        coco["images"][1].update(file_name="./a.png")
        coco["images"][other].update(width=99)

    [read] = read_all(opened(make(change)).open("train"))
    assert [(finding.code, finding.value) for finding in read.findings] == [("size_differs", "99 x 48")]


def test_another_size_than_the_file_says_is_a_warning_that_names_both(make: Callable[..., Path]) -> None:
    folder = make(lambda coco: coco["images"][0].update(width=48, height=64))
    [finding] = every_finding(opened(folder))
    assert (finding.code, finding.severity, finding.value) == ("size_differs", "warning", "48 x 64")
    assert "'a.png' has 48 x 64 pixels here, and 64 x 48 as a file" in finding.message
    unknown = make(lambda coco: coco["images"][0].update(width="64", height=None))
    assert every_finding(opened(unknown)) == []


# -------------------------------------------------------------------------------------------- any content

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 70)
    | st.floats()
    | st.sampled_from(["a.png", "b.png", "x", ""]),
    lambda inner: st.lists(inner, max_size=5),
    max_leaves=6,
)
ids = st.integers(0, 4) | values
boxes = st.lists(st.integers(-5, 70) | st.floats(-5, 70) | values, min_size=3, max_size=5) | values
annotations = st.fixed_dictionaries(
    {"image_id": ids, "category_id": ids},
    optional={
        "id": ids,
        "bbox": boxes,
        "iscrowd": st.sampled_from([0, 1, 2, None, "x"]),
        "segmentation": values,
    },
)
images = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 4),
            "file_name": st.sampled_from(["a.png", "b.png", "sub/a.png", "none.png", "a\0"]),
        },
        optional={"width": values, "height": st.integers(-1, 70)},
    ),
    max_size=4,
    unique_by=lambda image: image["id"],
)
categories = st.lists(st.integers(0, 4), min_size=1, max_size=3, unique=True).map(
    lambda keys: [{"id": key, "name": f"class {key}", "supercategory": "class 0"} for key in keys]
)
contents = st.fixed_dictionaries(
    {"images": images, "categories": categories, "annotations": st.lists(annotations | values, max_size=8)}
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=contents)
def test_every_annotation_becomes_a_box_or_a_finding(tmp_path: Path, content: dict[str, Any]) -> None:
    with_pictures(tmp_path) if not (tmp_path / "a.png").exists() else None
    write(tmp_path / "annotations.json", content)
    found = any(image["file_name"] in ("a.png", "b.png", "sub/a.png") for image in content["images"])
    boxes_named = any(isinstance(a, dict) and "bbox" in a for a in content["annotations"])
    try:
        layout = opened(tmp_path)
        files = layout.open("train")
        refused = ""
    except DataError as fault:
        refused = str(fault)
    if refused:
        assert str(tmp_path / "annotations.json") in refused and not (found and boxes_named)
        return
    reads = read_all(files)
    counted = sum(read.rows for read in reads)
    for read in reads:
        left_out = [f for f in read.findings if f.severity != "note" and f.code != "size_differs"]
        assert len(read.boxes) + len(left_out) == read.rows
        assert (read.boxes >= 0).all() and (read.boxes <= np.array([*WH, *WH])).all()
        assert ((read.labels >= 0) & (read.labels < len(layout.names))).all()
    for finding in files.findings:
        if finding.code in ("label_orphan", "label_columns"):
            counted += 1
        elif finding.code == "label_crowd":
            counted += int(finding.value)
        elif finding.code == "picture_missing":
            counted += int(finding.message.partition(" annotations)")[0].split()[-1])
    assert counted == len(content["annotations"])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    content=st.binary(max_size=60)
    | st.binary(max_size=40).map(lambda tail: b'{"images": [' + tail)
    | st.fixed_dictionaries({"images": values, "annotations": values, "categories": values}).map(
        lambda content: json.dumps(content).encode()
    )
)
def test_arbitrary_bytes_give_nothing_or_a_sentence(tmp_path: Path, content: bytes) -> None:
    with_pictures(tmp_path) if not (tmp_path / "a.png").exists() else None
    (tmp_path / "a.json").write_bytes(content)
    said = ""
    try:
        layout = open_coco(tmp_path / "a.json")
        if layout is not None:
            read_all(layout.open("train"))
    except DataError as fault:
        said = str(fault)
    assert "\n" not in said
