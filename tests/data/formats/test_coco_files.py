"""Which COCO files of a folder are taken, and where their pictures are looked for."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.data.formats.coco_sets import (
    CLEAN,
    EXPORTS,
    coco_folder,
    codes,
    opened,
    picture,
    read_all,
    with_pictures,
    write,
)
from yolov9kit.data.formats.coco import open_coco
from yolov9kit.errors import DataError

exports = pytest.mark.skipif(not EXPORTS.is_dir(), reason="no ../shared/data/raw/formats_datumaro")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    return partial(coco_folder, tmp_path / "set")


# ---------------------------------------------------------------------------------------------- layouts


@pytest.mark.parametrize(
    ("train", "val", "pictures"),
    [
        (
            "annotations/instances_train.json",
            "annotations/instances_val.json",
            ("images/train", "images/val"),
        ),
        (
            "annotations/instances_train2017.json",
            "annotations/instances_val2017.json",
            ("train2017", "val2017"),
        ),
        ("annotations/instances_train.json", "annotations/instances_val.json", ("train", "val")),
        ("annotations/instances_train.json", "annotations/instances_val.json", ("images", "images")),
        ("train/_annotations.coco.json", "valid/_annotations.coco.json", ("train", "valid")),
        (
            "train/annotations/instances.json",
            "val/annotations/instances.json",
            ("train/images", "val/images"),
        ),
        ("train.json", "val.json", ("train", "val")),
        ("train/labels.json", "validation/labels.json", ("train/data", "validation/data")),
        ("my_parts-train_v2.json", "my_parts-val_v2.json", ("", "")),
    ],
)
def test_usual_layouts(tmp_path: Path, train: str, val: str, pictures: tuple[str, str]) -> None:
    for file, folder, name in ((train, pictures[0], "a.png"), (val, pictures[1], "b.png")):
        image = {"id": 7, "file_name": name}
        annotations = [{"id": 1, "image_id": 7, "category_id": 5, "bbox": [1, 2, 3, 4]}]
        write(tmp_path / file, CLEAN | {"images": [image], "annotations": annotations})
        picture(tmp_path / folder / name)
    layout = opened(tmp_path)
    assert layout.splits == ("train", "val") and layout.findings == ()
    for split, folder, name in (("train", pictures[0], "a.png"), ("valid", pictures[1], "b.png")):
        files = layout.open(split)
        assert files.pictures == (tmp_path / folder / name,) and files.findings == ()
        assert len(read_all(files)[0].boxes) == 1
    if train.startswith("annotations/"):
        assert opened(tmp_path / "annotations").open("val").pictures == layout.open("val").pictures
        assert opened(tmp_path / train).splits == ("train",)
        assert opened(tmp_path / train).open("train").pictures == layout.open("train").pictures


def test_of_several_kinds_the_instances_are_taken_and_the_others_named(tmp_path: Path) -> None:
    kinds = ("instances", "person_keypoints", "captions", "panoptic", "stuff", "labels", "image_info")
    for kind in kinds:
        write(tmp_path / f"annotations/{kind}_train.json", CLEAN)
    with_pictures(tmp_path / "images/train")
    layout = opened(tmp_path)
    [note] = layout.findings
    assert note.code == "place" and note.severity == "note" and note.path.name == "instances_train.json"
    assert all(f"{kind}_train.json" in note.message for kind in kinds[1:])
    assert sum(len(read.boxes) for read in read_all(layout.open("train"))) == 3


def test_test_dev_beside_test_is_a_split_of_its_own(tmp_path: Path) -> None:
    for name in ("instances_test2017", "instances_test-dev2017", "instances_minival"):
        write(tmp_path / f"annotations/{name}.json", CLEAN)
    with_pictures(tmp_path / "images")
    assert opened(tmp_path).splits == ("test", "minival", "test-dev2017")


def test_two_files_for_one_split_are_refused(tmp_path: Path) -> None:
    for name in ("train2014", "train2017"):
        write(tmp_path / f"annotations/instances_{name}.json", CLEAN)
    with pytest.raises(
        DataError, match=r"two files for split 'train': .*train2014\.json and .*train2017\.json"
    ):
        open_coco(tmp_path)


def test_two_files_that_name_no_split_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "cats.json", CLEAN), write(tmp_path / "dogs.json", CLEAN)
    with pytest.raises(DataError, match=r"whose names tell no split: .*cats\.json and .*dogs\.json"):
        open_coco(tmp_path)


def test_a_split_that_is_not_there(make: Callable[..., Path]) -> None:
    with pytest.raises(DataError, match=r"has no split 'val' \(splits: train\)"):
        opened(make()).open("val")


def test_pictures_alone_have_no_boxes(tmp_path: Path) -> None:
    content = {key: CLEAN[key] for key in ("images", "categories")}
    write(tmp_path / "annotations/image_info_test.json", content)
    with_pictures(tmp_path / "images/test")
    layout = opened(tmp_path)
    files = layout.open("test")
    assert layout.names == ("board", "screw") and files.label_paths == (None, None) and files.findings == ()


# ----------------------------------------------------------------------------------------- not this format


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", "3", "null", '{"images": 5}', '{"shapes": [], "imagePath": "a.png"}', '{"a": 1}',
        '[{"image": "a.png", "annotations": []}]', '{"version": "1", "shapes": [], "images": []}', "not json",
        '{"annotations": [{"label": "x"}]}', '{"images": [], "x": 1}',
    ],
)  # fmt: skip
def test_other_json_is_left_to_others(tmp_path: Path, content: str) -> None:
    file = write(tmp_path / "a.json", content)
    assert [open_coco(path) for path in (file, tmp_path)] == [None, None]


def test_a_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", '{"images": [\n')
    for path in (file, tmp_path):
        with pytest.raises(DataError, match=r"a\.json: not a JSON: line 2, column 1"):
            open_coco(path)


def test_nothing_there(tmp_path: Path) -> None:
    assert open_coco(tmp_path) is None and open_coco(tmp_path / "none.json") is None
    assert open_coco(picture(tmp_path / "a.png")) is None


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ({"caption": "a dog"}, "holds captions of pictures, no boxes: export the objects"),
        ({"segments_info": [], "file_name": "a.png"}, "holds panoptic segments"),
        ({"category_id": 5}, "holds classes of whole pictures, no boxes"),
    ],
)
def test_annotations_that_are_no_boxes_are_refused_by_name(
    make: Callable[..., Path], annotation: dict[str, Any], words: str
) -> None:
    folder = make(annotations=[{"id": 1, "image_id": 7} | annotation])
    with pytest.raises(DataError, match=words):
        open_coco(folder)


def test_a_split_of_captions_beside_one_of_boxes_is_left_out_with_a_note(make: Callable[..., Path]) -> None:
    folder = make()
    (folder / "annotations.json").rename(folder / "train.json")
    write(folder / "val.json", CLEAN | {"annotations": [{"id": 1, "image_id": 7, "caption": "a dog"}]})
    layout = opened(folder)
    assert layout.splits == ("train",) and codes(list(layout.findings)) == ["place"]
    assert "not taken: holds captions" in layout.findings[0].message


def test_results_of_a_detector_are_refused_by_name(tmp_path: Path) -> None:
    result = [{"image_id": 7, "category_id": 5, "bbox": [1, 2, 3, 4], "score": 0.5}]
    file = write(tmp_path / "results.json", result)
    with pytest.raises(DataError, match="holds detections of a network, no ground truth"):
        open_coco(file)
    assert open_coco(tmp_path) is None  # beside a data set they are of no interest


# ----------------------------------------------------------------------------------------------- exports


def counted_boxes(file: Path) -> dict[str, list[list[float]]]:
    """File name → [x, y, w, h] of each object that is no crowd, counted here by hand."""
    content = json.loads(file.read_text("utf-8"))
    names = {image["id"]: image["file_name"] for image in content["images"]}
    found: dict[str, list[list[float]]] = {name: [] for name in names.values()}
    for annotation in content["annotations"]:
        if not annotation.get("iscrowd"):
            found[names[annotation["image_id"]]].append(annotation["bbox"])
    return found


@exports
@pytest.mark.parametrize(
    ("folder", "file"),
    [
        ("coco_dataset/coco", "annotations/instances_{}.json"),
        ("coco_dataset/coco_instances", "annotations/instances_{}.json"),
        ("coco_dataset/mmdet_coco", "annotations/instances_{}.json"),
        ("coco_dataset/coco_person_keypoints", "annotations/person_keypoints_{}.json"),
        ("coco_dataset/coco_roboflow", "{}/_annotations.coco.json"),
        ("roboflow_dataset/coco", "{}/_annotations.coco.json"),
        ("kaggle_dataset/relaxed_coco", "annotations.json"),
    ],
)
def test_real_exports_are_read_without_loss(folder: str, file: str) -> None:
    layout = opened(EXPORTS / folder)
    assert layout.splits == (("train",) if "{}" not in file else ("train", "val"))
    for split in layout.splits:
        expected = counted_boxes(EXPORTS / folder / file.format(split))
        files = layout.open(split)
        assert sorted(path.name for path in files.pictures) == sorted(expected)
        for path, read in zip(files.pictures, read_all(files, (10, 10)), strict=True):
            corners = [[x, y, x + w, y + h] for x, y, w, h in expected[path.name]]
            np.testing.assert_allclose(read.boxes, np.reshape(corners, (-1, 4)))
        assert {f.code for f in files.findings} <= {"label_crowd", "label_points"}


@exports
def test_real_categories_with_a_gap_in_their_ids() -> None:
    layout = opened(EXPORTS / "coco_dataset/coco_instances")
    assert layout.names == ("a", "b", "c")
    assert [read.labels.tolist() for read in read_all(layout.open("train"), (10, 5))] == [[1]]


@exports
@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("coco_captions", "captions"),
        ("coco_panoptic", "panoptic"),
        ("coco_stuff", "stuff"),
        ("coco_labels", "classes"),
    ],
)
def test_real_exports_without_boxes_are_refused_by_name(folder: str, words: str) -> None:
    with pytest.raises(DataError, match=f"holds .*{words}.*: export the objects with their boxes"):
        open_coco(EXPORTS / "coco_dataset" / folder)


@exports
def test_real_pictures_alone() -> None:
    layout = opened(EXPORTS / "coco_dataset/coco_image_info")
    assert [layout.open(split).label_paths for split in ("train", "val")] == [(None,), (None,)]
