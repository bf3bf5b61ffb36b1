"""Data sets and exports of others, as they are: no row is lost, and what is odd is named."""

import json
from pathlib import Path

import pytest

from yolov9kit.data.dataset import open_dataset
from yolov9kit.errors import DataError

pytestmark = pytest.mark.usefixtures("private_cache")


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
        ("coco128", {"picture_note"}),
        ("chess", set()),
        ("raw/parking_yolo/Parking-Space-1", {"place"}),
        ("raw/bolt_yolo_val_and_valid/dataset", {"place", "label_polygons", "label_mixed"}),
        ("raw/formats_datumaro/tests/assets/roboflow_dataset/yolo", {"place"}),
        ("raw/formats_cvat_datumaro/tests/assets/yolo_dataset/yolov8_detection_with_list_of_imgs", set()),
        ("raw/formats_cvat_datumaro/tests/assets/yolo_dataset/yolov8_detection_with_subset_txt", {"place"}),
        ("raw/formats_cvat_datumaro/tests/assets/yolo_dataset/yolov8_segmentation", {"label_polygons"}),
    ],
)
def test_real_exports_lose_no_row(shared: Path, name: str, codes: set[str]) -> None:
    dataset = open_dataset(shared / "data" / name)
    files = [sample.label_path for sample in dataset.samples if sample.label_path is not None]
    assert len(files) == len(dataset.samples) and dataset.left_out == 0
    rows = [row for file in files for row in file.read_text(encoding="utf-8").splitlines() if row]
    assert len(rows) == sum(len(sample.labels) for sample in dataset.samples)
    assert {finding.code for finding in dataset.findings} == codes


def test_real_key_points_are_refused(shared: Path) -> None:
    folder = shared / "data/raw/formats_cvat_datumaro/tests/assets/yolo_dataset"
    for name in ("yolov8_pose", "yolov8_pose_two_values_per_point"):
        with pytest.raises(DataError, match="key points"):
            open_dataset(folder / name)
