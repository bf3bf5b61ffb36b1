"""Data sets and exports of others, as they are: no row is lost, and what is odd is named."""

import json
from pathlib import Path

import pytest

from yolov9kit.data.dataset import Dataset, open_dataset

pytestmark = pytest.mark.usefixtures("private_cache")


def about_files(dataset: Dataset) -> set[str]:
    """The codes of what is found, but for what concerns the pictures alone: many exports hold tiny ones."""
    return {finding.code for finding in dataset.findings if not finding.code.startswith("picture_")}


@pytest.mark.parametrize("name", ["bccd", "rubik"])
def test_real_sets_have_the_boxes_their_source_names(shared: Path, name: str) -> None:
    source = json.loads((shared / "data" / name / "SOURCE.json").read_text(encoding="utf-8"))
    for split, count in source["images"].items():
        dataset = open_dataset(shared / "data" / name, split)
        found = dict.fromkeys(dataset.names, 0)
        for sample in dataset.samples:
            for c in sample.labels:
                found[dataset.names[c]] += 1
        assert len(dataset.samples) == count and found == source["boxes"][split]
        assert dataset.findings == ()


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("cards", set()),
        ("coco128", set()),
        ("chess", set()),
        ("raw/parking_yolo/Parking-Space-1", {"place"}),
        ("raw/bolt_yolo_val_and_valid/dataset", {"place", "label_polygons", "label_mixed"}),
        ("raw/formats_datumaro/tests/assets/roboflow_dataset/yolo", {"place"}),
        ("raw/formats_cvat_datumaro/tests/assets/yolo_dataset/yolov8_detection_with_list_of_imgs", set()),
        ("raw/formats_cvat_datumaro/tests/assets/yolo_dataset/yolov8_detection_with_subset_txt", {"place"}),
        ("raw/formats_cvat_datumaro/tests/assets/yolo_dataset/yolov8_segmentation", {"label_polygons"}),
        ("raw/formats_cvat_datumaro/tests/assets/yolo_dataset/yolo", {"place"}),
        ("raw/formats_datumaro/tests/assets/yolo_dataset/strict", {"place"}),
        ("raw/formats_datumaro/tests/assets/yolo_dataset/labels", set()),
        ("raw/formats_datumaro/tests/assets/yolo_dataset/annotations", set()),
    ],
)
def test_real_exports_lose_no_row(shared: Path, name: str, codes: set[str]) -> None:
    dataset = open_dataset(shared / "data" / name)
    files = [sample.label_path for sample in dataset.samples if sample.label_path is not None]
    assert len(files) == len(dataset.samples) and dataset.left_out == 0
    rows = [row for file in files for row in file.read_text(encoding="utf-8").splitlines() if row]
    assert len(rows) == sum(len(sample.labels) for sample in dataset.samples)
    assert about_files(dataset) == codes


@pytest.mark.parametrize("split", ["train", "val"])
def test_a_val_folder_of_another_spelling_is_found(shared: Path, split: str) -> None:
    dataset = open_dataset(shared / "data/raw/formats_datumaro/tests/assets/roboflow_dataset/yolo", split)
    assert len(dataset.samples) > 0 and about_files(dataset) == {"place"}


@pytest.mark.parametrize(
    ("name", "code", "rows", "boxes"),
    [
        ("yolov8_pose", "label_points", "1", 1),
        ("yolov8_pose_two_values_per_point", "label_points", "1", 1),
        ("yolov8_oriented_boxes", "label_oriented", "2", 2),
    ],
)
def test_real_key_points_and_oriented_boxes_are_refused_or_converted(
    shared: Path, name: str, code: str, rows: str, boxes: int
) -> None:
    folder = shared / "data/raw/formats_cvat_datumaro/tests/assets/yolo_dataset" / name
    (error,) = open_dataset(folder).errors
    assert (error.code, error.value, error.line) == (code, rows, 1) and error.path.name == "1.txt"
    converted = open_dataset(folder, as_boxes=True)
    assert converted.errors == () and code in {finding.code for finding in converted.findings}
    assert sum(len(sample.labels) for sample in converted.samples) == boxes


@pytest.mark.parametrize(("split", "boxes"), [("train", 2), ("val", 2)])
def test_a_real_dota_export_is_refused_or_converted(shared: Path, split: str, boxes: int) -> None:
    folder = shared / "data/raw/formats_datumaro/tests/assets/roboflow_dataset/yolo_obb"
    (error,) = open_dataset(folder, split).errors
    assert (error.code, error.value) == ("label_oriented", str(boxes))
    converted = open_dataset(folder, split, as_boxes=True)
    assert converted.errors == () and converted.names == ("label_0", "label_1")
    assert sum(len(sample.labels) for sample in converted.samples) == boxes
