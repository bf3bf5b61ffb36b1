"""Exports of other tools, as they are: each is read without loss, or refused by name.

What must come out is counted here by other means than the readers use, as short as these exports allow.
"""

import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from PIL import Image

from yolov9kit.data.dataset import open_dataset
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.errors import DataError

pytestmark = pytest.mark.usefixtures("private_cache")

Object = tuple[str, str, tuple[float, ...]]
"""Stem of a picture, name of a class, corners in pixels."""
Count = Callable[[Path, str], Iterator[Object]]

D = "formats_datumaro/tests/assets"
CVAT = "formats_cvat_datumaro/tests/assets/yolo_dataset"


@cache
def picture_in(root: Path, split: str, stem: str) -> Path:
    """The one picture of a stem, in a folder called like the split where there are several."""
    found = [
        path
        for path in root.rglob(f"{stem}.*")
        if path.suffix in (".jpg", ".png") and "_mask" not in path.name
    ]
    found = [path for path in found if not {"Masks", "Scribbles", "masks"} & set(path.parts)]
    named = [path for path in found if re.search(rf"/{split}[a-z]*/", str(path), re.IGNORECASE)]
    return (named or found)[0]


# --------------------------------------------------------------------------------------- the counting


def coco(root: Path, split: str) -> Iterator[Object]:
    files = [*root.rglob(f"*instances_{split}.json"), *root.rglob(f"person_keypoints_{split}.json")]
    files += [*root.rglob(f"*/{split}/_annotations.coco.json"), *root.glob(f"{split}/_annotations.coco.json")]
    content = json.loads((files or sorted(root.glob("annotations.json")))[0].read_text())
    names = {category["id"]: category["name"] for category in content["categories"]}
    pictures = {image["id"]: Path(image["file_name"]).stem for image in content["images"]}
    for annotation in content["annotations"]:
        if not annotation.get("iscrowd"):
            x, y, w, h = annotation["bbox"]
            yield pictures[annotation["image_id"]], names[annotation["category_id"]], (x, y, x + w, y + h)


def voc(root: Path, split: str) -> Iterator[Object]:
    lists = list(root.rglob(f"ImageSets/Main/{split}.txt"))
    stems = {line.strip() for file in lists for line in file.read_text().splitlines()}
    for file in root.rglob("*.xml"):
        if file.stem in stems or (not lists and file.stem.startswith("val") == (split == "val")):
            for node in ElementTree.parse(file).findall("object"):
                corners = (
                    float(node.findtext(f"bndbox/{key}", "")) for key in ("xmin", "ymin", "xmax", "ymax")
                )
                yield file.stem, node.findtext("name", ""), tuple(corners)


def labelme_xml(root: Path, split: str) -> Iterator[Object]:
    for file in root.rglob("*.xml"):
        for text in re.findall(r"<object>.*?</object>", file.read_text(), re.DOTALL):
            drawn = re.sub(r"<scribbles>.*?</scribbles>", "", text)
            xs, ys = ([float(n) for n in re.findall(rf"<{a}(?:min|max)?>([\d.]+)<", drawn)] for a in "xy")
            yield file.stem, re.search("<name>(.*?)<", text)[1], (min(xs), min(ys), max(xs), max(ys))  # type: ignore[index]


def cvat_xml(root: Path, split: str) -> Iterator[Object]:
    (file,) = root.glob("*.xml")
    for image in ElementTree.parse(file).findall("image"):
        if image.get("subset", "Train")[:3].lower() == split[:3]:
            stem = Path(image.get("name", "")).stem
            for node in image.findall("box"):
                corners = (float(node.get(key, "")) for key in ("xtl", "ytl", "xbr", "ybr"))
                yield stem, node.get("label", ""), tuple(corners)
            for node in image.findall("polygon"):
                numbers = [float(n) for n in re.split("[,;]", node.get("points", ""))]
                xs, ys = numbers[::2], numbers[1::2]
                yield stem, node.get("label", ""), (min(xs), min(ys), max(xs), max(ys))


def create_ml(root: Path, split: str) -> Iterator[Object]:
    for entry in json.loads((root / split / "_annotations.createml.json").read_text()):
        for box in entry["annotations"]:
            x, y, w, h = (box["coordinates"][key] for key in ("x", "y", "width", "height"))
            yield Path(entry["image"]).stem, box["label"], (x - w / 2, y - h / 2, x + w / 2, y + h / 2)


def table(root: Path, split: str) -> Iterator[Object]:
    """Of these tables the last four numbers of a row are the box; some hold its size."""
    text = root.read_text().splitlines()
    with_sizes, alone = text[0].endswith("w,h"), root.stem.endswith("single_obj")
    for line in text[text[0].startswith("image") :]:
        picture, *rest = re.findall(r"[^,\s\[\]\"]+", line)
        a, b, c, d = map(float, rest[-4:])
        corners = (a, b, a + c, b + d) if with_sizes or alone else (a, b, c, d)
        yield Path(picture).stem, "object" if alone else rest[0], corners


def open_images(root: Path, split: str) -> Iterator[Object]:
    (file,) = root.glob(f"annotations/*{split}-annotations-bbox.csv")
    names = dict(csv.reader((root / "annotations" / "oidv6-class-descriptions.csv").open()))
    for row in csv.DictReader(file.open()):
        if row["IsGroupOf"] != "1":
            w, h = Image.open(picture_in(root, split, row["ImageID"])).size
            shares = (float(row[key]) for key in ("XMin", "YMin", "XMax", "YMax"))
            yield (
                row["ImageID"],
                names[row["LabelName"]],
                tuple(n * side for n, side in zip(shares, (w, h) * 2, strict=True)),
            )


def yolo_names(root: Path) -> list[str]:
    files = [*root.rglob("data.yaml"), *root.rglob("obj.names")]
    if not files:
        return [str(i) for i in range(100)]
    text = files[0].read_text()
    if files[0].suffix == ".names":
        return text.split()
    block = text[text.index("names:") + 6 :]
    listed = re.search(r"\[(.*?)\]", block, re.DOTALL)
    if listed:
        return [name.strip(" '\"\n") for name in listed[1].split(",")]
    return [match.strip(" '\"") for match in re.findall(r"^\s*(?:\d+\s*:|-)(.+)$", block, re.MULTILINE)]


def yolo(root: Path, split: str) -> Iterator[Object]:
    """Rows of five columns are boxes, those with key points begin with one, all others are polygons."""
    names = yolo_names(root)
    splits = {"train": "train", "val": "val", "test": "test"}
    if not any(path.name == "val" for path in root.rglob("val")):
        splits["valid"] = "val"
    for file in root.rglob("*.txt"):
        words = re.split("[/_]", str(file.relative_to(root).parent))
        own = next(
            (splits[word] for word in words if word in splits), "none" if "valid" in words else "train"
        )
        if own != split or file.name == "train.txt" or "README" in file.name:
            continue
        w, h = Image.open(picture_in(root, split, file.stem)).size
        for line in file.read_text().splitlines():
            c, *numbers = map(float, line.split())
            if len(numbers) == 4 or "pose" in root.name:
                x, y, bw, bh = numbers[:4]
                xs, ys = [x - bw / 2, x + bw / 2], [y - bh / 2, y + bh / 2]
            else:
                xs, ys = numbers[::2], numbers[1::2]
            yield file.stem, names[int(c)], (min(xs) * w, min(ys) * h, max(xs) * w, max(ys) * h)


def dota(root: Path, split: str) -> Iterator[Object]:
    for file in (root / split / "labelTxt").glob("*.txt"):
        for line in file.read_text().splitlines():
            *numbers, name, _ = line.split()
            xs, ys = [float(n) for n in numbers[::2]], [float(n) for n in numbers[1::2]]
            yield file.stem, name, (min(xs), min(ys), max(xs), max(ys))


# ------------------------------------------------------------------------------------------- the roots

READ: dict[str, tuple[str, Count, dict[str, int]]] = {
    # root: kind, how to count, pictures of each split
    f"{D}/coco_dataset/coco": ("COCO JSON", coco, {"train": 1, "val": 1}),
    f"{D}/coco_dataset/coco_instances": ("COCO JSON", coco, {"train": 1, "val": 1}),
    f"{D}/coco_dataset/coco_person_keypoints": ("COCO JSON", coco, {"train": 1, "val": 1}),
    f"{D}/coco_dataset/coco_roboflow": ("COCO JSON", coco, {"train": 1, "val": 1}),
    f"{D}/coco_dataset/mmdet_coco": ("COCO JSON", coco, {"train": 1, "val": 1}),
    f"{D}/kaggle_dataset/relaxed_coco": ("COCO JSON", coco, {"train": 2}),
    f"{D}/roboflow_dataset/coco": ("COCO JSON", coco, {"train": 2, "val": 1}),
    f"{D}/kaggle_dataset/relaxed_voc1": ("Pascal VOC", voc, {"train": 2}),
    f"{D}/kaggle_dataset/relaxed_voc2": ("Pascal VOC", voc, {"train": 2}),
    f"{D}/roboflow_dataset/voc": ("Pascal VOC", voc, {"train": 2, "val": 1}),
    f"{D}/voc_dataset/voc_dataset1": ("Pascal VOC", voc, {"train": 1, "test": 1}),
    f"{D}/voc_dataset/voc_dataset3": ("Pascal VOC", voc, {"train": 1}),
    f"{D}/labelme_dataset": ("LabelMe XML", labelme_xml, {"train": 1}),
    f"{D}/cvat_dataset/for_images/export_project": (
        "CVAT for images",
        cvat_xml,
        {"train": 2, "val": 2, "test": 2},
    ),
    f"{D}/cvat_dataset/for_images/export_task": ("CVAT for images", cvat_xml, {"train": 2}),
    f"{D}/roboflow_dataset/createml": ("Create ML JSON", create_ml, {"train": 2, "val": 1}),
    f"{D}/kaggle_dataset/image_csv_det/ann.csv": ("table of boxes", table, {"train": 3}),
    f"{D}/kaggle_dataset/image_csv_det/ann2.csv": ("table of boxes", table, {"train": 3}),
    f"{D}/kaggle_dataset/image_csv_det/ann3.csv": ("table of boxes", table, {"train": 3}),
    f"{D}/kaggle_dataset/image_txt_det/ann.txt": ("table of boxes", table, {"train": 3}),
    f"{D}/kaggle_dataset/image_txt_det/ann_single_obj.txt": ("table of boxes", table, {"train": 3}),
    f"{D}/open_images_dataset/v6": ("table of boxes", open_images, {"train": 1, "test": 1}),
    f"{D}/roboflow_dataset/yolo": ("YOLO", yolo, {"train": 2, "val": 1}),
    f"{D}/roboflow_dataset/yolo_obb": ("DOTA", dota, {"train": 2, "val": 1}),
    f"{D}/kaggle_dataset/relaxed_yolo": ("YOLO without a yaml", yolo, {"train": 2}),
    f"{D}/yolo_dataset/annotations": ("YOLO without a yaml", yolo, {"train": 1}),
    f"{D}/yolo_dataset/labels": ("YOLO without a yaml", yolo, {"train": 1, "val": 1}),
    f"{D}/yolo_dataset/strict": ("Darknet YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolo": ("Darknet YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolov8_detection": ("YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolov8_detection_with_list_of_imgs": ("YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolov8_detection_with_list_of_names": ("YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolov8_detection_with_subset_txt": ("YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolov8_segmentation": ("YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolov8_oriented_boxes": ("YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolov8_pose": ("YOLO", yolo, {"train": 1}),
    f"{CVAT}/yolov8_pose_two_values_per_point": ("YOLO", yolo, {"train": 1}),
    "bolt_yolo_val_and_valid": ("YOLO", yolo, {"train": 51, "val": 5, "test": 2}),
    "parking_yolo": ("YOLO", yolo, {"train": 34, "val": 10, "test": 3}),
}

UNLABELLED = {
    f"{D}/open_images_dataset/v5": {"train": 1, "test": 1},
    f"{D}/coco_dataset/coco_image_info": {"train": 1, "val": 1},
}

REFUSED = {
    f"{D}/coco_dataset": "two files for split 'train'",
    f"{D}/coco_dataset/coco_captions": "holds captions",
    f"{D}/coco_dataset/coco_labels": "holds classes of whole pictures",
    f"{D}/coco_dataset/coco_panoptic": "holds panoptic segments",
    f"{D}/coco_dataset/coco_stuff": "holds regions of stuff",
    f"{D}/cvat_dataset": "annotations.xml looks like CVAT for images",
    f"{D}/kaggle_dataset/image_csv": "names classes of whole pictures",
    f"{D}/kaggle_dataset/image_csv_multi_label": "names classes of whole pictures",
    f"{D}/kaggle_dataset/image_csv_det": "two files",
    f"{D}/kaggle_dataset/image_txt": "the class of whole pictures",
    f"{D}/kaggle_dataset/image_txt_det": "two files",
    f"{D}/kaggle_dataset/image_mask": "pictures with masks",
    f"{D}/kaggle_dataset/image_mask_with_labelmap": "pictures with masks",
    f"{D}/kitti_dataset": "KITTI",
    f"{D}/kitti_dataset/kitti_detection": "KITTI",
    f"{D}/roboflow_dataset/multiclass": "names classes of whole pictures",
    f"{D}/roboflow_dataset/tfrecord": "TFRecord",
    f"{D}/voc_dataset/voc_dataset2": "trainval.txt:1: '@' has no picture",
    f"{D}/widerface_dataset": "WIDER FACE",
    f"{CVAT}/yolov8_classification": "folders named after their class",
    "voc_metrics_samples": "compute metrics",
}


def rounded(number: float) -> float:
    """To a tenth, and not just where corners in halves and quarters of pixels lie."""
    return round(number + 0.013, 1)


def objects_in(root: Path, split: str) -> tuple[Counter[Object], int, int]:
    """What the reader gives; how many rows it left out and named, and how many pictures there are."""
    dataset = open_dataset(root, split, as_boxes=True)
    found = Counter(
        (sample.path.stem, dataset.names[label], tuple(map(rounded, box)))
        for sample in dataset.samples
        for label, box in zip(sample.labels.tolist(), sample.boxes.tolist(), strict=True)
    )
    named = [f for f in dataset.findings if f.code.startswith("label_") and f.severity != "note"]
    return found, len(named), len(dataset.samples)


@pytest.mark.parametrize("name", READ)
def test_real_exports_are_read_without_loss(shared: Path, name: str) -> None:
    root = shared / "data" / "raw" / name
    kind, count, pictures = READ[name]
    layout = open_layout(root, as_boxes=True)
    assert layout.kind == kind and set(layout.splits) == set(pictures)
    for split, number in pictures.items():
        expected: Counter[Object] = Counter()
        for stem, label, corners in count(root, split):
            folder = root if root.is_dir() else root.parent
            w, h = Image.open(picture_in(folder, split, stem)).size
            inside = (rounded(min(max(n, 0.0), side)) for n, side in zip(corners, (w, h, w, h), strict=True))
            expected[stem, label, tuple(inside)] += 1
        found, named, samples = objects_in(root, split)
        assert samples == number
        assert expected - found == Counter() if not named else (expected - found).total() == named
        assert found - expected == Counter()


@pytest.mark.parametrize("name", UNLABELLED)
def test_real_exports_without_boxes_have_none(shared: Path, name: str) -> None:
    root = shared / "data" / "raw" / name
    for split, number in UNLABELLED[name].items():
        found, _, samples = objects_in(root, split)
        assert samples == number and not found


@pytest.mark.parametrize("name", REFUSED)
def test_real_exports_that_are_not_read_are_refused_by_name(shared: Path, name: str) -> None:
    root = shared / "data" / "raw" / name
    with pytest.raises(DataError, match=re.escape(REFUSED[name])) as caught:
        open_dataset(root)
    assert str(root) in str(caught.value) and "\n" not in str(caught.value)


def test_every_real_export_is_in_one_of_these_lists(shared: Path) -> None:
    raw = shared / "data" / "raw"
    roots = [raw / name for name in (*READ, *UNLABELLED, *REFUSED)]
    assert all(root.exists() for root in roots)
    files = [path for path in raw.rglob("*") if path.is_file() and path.name != "_RAW_SOURCE.json"]
    assert len(files) > 500
    assert [path for path in files if not any(path.is_relative_to(root) for root in roots)] == []
