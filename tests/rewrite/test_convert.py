"""One format to the other and back: the same pictures, the same boxes, and a source that nobody touched."""

import contextlib
import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.rewrite.small_sets import MakeSet, digests, noise, save
from yolov9kit.data.dataset import Dataset, Sample, open_dataset
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.errors import DataError, KitError, UsageError
from yolov9kit.rewrite import pictures
from yolov9kit.rewrite.convert import convert_data
from yolov9kit.rewrite.item import Item, Plan
from yolov9kit.rewrite.write import check_target, write_plan

TWO = ["0 .5 .5 .2 .2", "2 .25 .3 .1 .123456"]


def same(one: Dataset, other: Dataset, within: float = 1e-3) -> None:
    """Both hold the same pictures, byte for byte, with the same boxes."""
    by_name = {sample.path.name: sample for sample in other.samples}
    assert len(by_name) == len(one.samples) == len(other.samples) and one.names == other.names
    for sample in one.samples:
        again = by_name[sample.path.name]
        assert again.path.read_bytes() == sample.path.read_bytes() and again.size_wh == sample.size_wh
        assert (again.labels == sample.labels).all()
        np.testing.assert_allclose(again.boxes, sample.boxes, rtol=0, atol=within)


def test_yolo_to_yolo_keeps_every_byte(make_set: MakeSet, tmp_path: Path, untouched: Callable) -> None:
    source = make_set({"train": [TWO, [], None], "val": [["1.0 .5 .5 .9 .9"]]})
    untouched(source)
    written = convert_data(source, tmp_path / "out")
    assert digests(tmp_path / "out") | {"data.yaml": ""} == digests(source) | {"data.yaml": ""}
    assert (tmp_path / "out/data.yaml").read_text() == (
        "train: images/train\nval: images/val\nnc: 3\nnames:\n  0: nut\n  1: bolt\n  2: wing nut\n"
    )
    train, val = written.splits
    assert (train.pictures, train.boxes, train.backgrounds) == (3, 2, 2) and val.class_pictures == (0, 1, 0)
    assert written.summary() == "\n".join(
        [
            f"{tmp_path}/out/data.yaml: YOLO, 3 classes",
            "train: 3 pictures, 2 boxes, 2 backgrounds",
            "val: 1 picture, 1 box",
            "1 picture without a label file: backgrounds, or forgotten",
        ]
    )
    opened = open_dataset(tmp_path / "out")
    assert (opened.empty_labels, opened.missing_labels) == (1, 1)


def test_to_coco_and_back(make_set: MakeSet, tmp_path: Path, untouched: Callable) -> None:
    source = make_set({"train": [TWO, [], ["1 .1 .1 .1 .1"]], "val": [TWO]})
    untouched(source)
    written = convert_data(source, tmp_path / "coco", format="coco")
    assert (written.file, written.kind) == (tmp_path / "coco", "COCO JSON")
    convert_data(tmp_path / "coco", tmp_path / "yolo")
    for split in ("train", "val"):
        one = open_dataset(source, split)
        same(one, open_dataset(tmp_path / "coco", split), within=0)
        same(one, open_dataset(tmp_path / "yolo", split))


def test_coco_files_are_those_of_the_field(make_set: MakeSet, tmp_path: Path) -> None:
    from pycocotools.coco import COCO

    source = make_set({"train": [TWO, []], "val": [["1 .5 .5 .25 .5"]]})
    convert_data(source, tmp_path / "out", format="coco")
    assert sorted(
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")
    ) == [
        "annotations/instances_train.json",
        "annotations/instances_val.json",
        *("images/train/train 0.png", "images/train/train 1.png", "images/val/val 0.png"),
    ]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        coco = COCO(str(tmp_path / "out/annotations/instances_train.json"))
        val = COCO(str(tmp_path / "out/annotations/instances_val.json"))
    assert [(c["id"], c["name"]) for c in coco.loadCats(coco.getCatIds())] == [
        *((1, "nut"), (2, "bolt"), (3, "wing nut")),
    ]
    assert coco.getImgIds() == [1, 2] and coco.getAnnIds() == [1, 2] and coco.getAnnIds(imgIds=[2]) == []
    assert [a["category_id"] for a in coco.loadAnns([1, 2])] == [1, 3]
    (annotation,) = val.loadAnns(val.getAnnIds())
    assert annotation["bbox"] == [24.0, 12.0, 16.0, 24.0] and annotation["area"] == 384.0
    assert type(annotation["iscrowd"]) is int and annotation["image_id"] == 1
    assert val.loadImgs([1]) == [{"id": 1, "file_name": "val 0.png", "width": 64, "height": 48}]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    boxes=st.lists(
        st.tuples(
            *[st.floats(0, 30, allow_subnormal=False)] * 2, *[st.floats(0.01, 18)] * 2, st.integers(0, 1)
        ),
        max_size=5,
        unique=True,
    ),
    names=st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=2, unique_by=str.strip),
)
def test_any_boxes_and_names_there_and_back(
    tmp_path: Path, boxes: list[tuple[float, float, float, float, int]], names: list[str]
) -> None:
    picture = save(tmp_path / "p" / "a.png", Image.new("RGB", (48, 48)))
    corners = np.array([(x, y, x + w, y + h) for x, y, w, h, _ in boxes], np.float32).reshape(-1, 4)
    labels = np.array([c for *_, c in boxes], np.int64)
    sample = Sample(picture, (48, 48), corners, labels, picture)
    plan = Plan("set", tuple(names), {"train": [Item(sample, labels)]}, ())
    for form in ("yolo", "coco"):
        shutil.rmtree(tmp_path / form, ignore_errors=True)
        write_plan(plan, tmp_path / form, form)  # type: ignore[arg-type]
        (again,) = open_dataset(tmp_path / form, cache=False).samples
        assert (again.labels == labels).all()
        np.testing.assert_allclose(again.boxes, corners, rtol=0, atol=1e-3 if form == "yolo" else 1e-5)
    assert open_dataset(tmp_path / "yolo", cache=False).names == tuple(names)


def test_a_split_without_labels_is_written_but_not_named(tmp_path: Path) -> None:
    picture = save(tmp_path / "p/a.png", noise(0))
    boxes, label = np.array([[1, 1, 9, 9]], np.float32), np.array([0])
    labelled = Item(Sample(picture, (64, 48), boxes, label, picture), label)
    bare = Item(Sample(picture, (64, 48), boxes[:0], label[:0]), label[:0])
    written = write_plan(
        Plan("set", ("nut",), {"train": [labelled], "test": [bare]}, ()), tmp_path / "out", "yolo"
    )
    assert written.notes == ("test: no label file for any of 1 picture: written, but not named in data.yaml",)
    assert (
        open_layout(tmp_path / "out").splits == ("train",) and (tmp_path / "out/images/test/a.png").is_file()
    )
    for names, splits, reason in (
        (("nut",), {"train": [bare]}, "no picture has a label file"),
        ((), {"train": [bare]}, "no class has a name"),
    ):
        with pytest.raises(DataError, match=f"^set: {reason}, and YOLO needs some"):
            write_plan(Plan("set", names, splits, ()), tmp_path / "other", "yolo")
        assert not (tmp_path / "other").exists()
        shutil.rmtree(tmp_path / "coco", ignore_errors=True)
        assert write_plan(Plan("set", names, splits, ()), tmp_path / "coco", "coco").splits[0].pictures == 1


def test_two_classes_of_one_name_are_no_coco(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [TWO]}, ["nut", "bolt", "nut "])
    with pytest.raises(DataError, match="several classes are called 'nut'"):
        convert_data(source, tmp_path / "out", format="coco")
    assert convert_data(source, tmp_path / "out").names == ("nut", "bolt", "nut ")


def test_names_that_collide_get_one_from_their_path(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [TWO]})
    for folder, seed in (("a", 7), ("b", 8)):
        save(source / f"images/train/{folder}/1.png", noise(seed))
        (source / f"labels/train/{folder}").mkdir()
        (source / f"labels/train/{folder}/1.txt").write_text(f"{seed - 7} .5 .5 .{seed} .5\n")
    (source / "data.yaml").write_text(
        "train: [images/train/train 0.png, images/train/a, images/train/b]\nnames: [nut, bolt, wing nut]\n"
    )
    written = convert_data(source, tmp_path / "out")
    assert written.renamed == (
        (source / "images/train/a/1.png", "a_1.png"),
        (source / "images/train/b/1.png", "b_1.png"),
    )
    assert "2 pictures under a new name, that no two share one" in written.summary()
    found = {sample.path.name: sample for sample in open_dataset(tmp_path / "out").samples}
    assert set(found) == {"train 0.png", "a_1.png", "b_1.png"}
    for folder, label in (("a", 0), ("b", 1)):
        again = found[f"{folder}_1.png"]
        assert again.labels.tolist() == [label]
        assert again.path.read_bytes() == (source / f"images/train/{folder}/1.png").read_bytes()


BAD = ["0 .5 .5 .2 .2", "9 .5 .5 .1 .1", "0 .5 .5 .2", "1 .3 .3 0 .1", "0 .5 .5 .2 .2", "1 .3 .3 .1 .1"]


def test_errors_are_refused_or_left_out_and_listed(
    make_set: MakeSet, tmp_path: Path, untouched: Callable
) -> None:
    source = make_set({"train": [BAD, TWO], "val": [TWO]})
    (source / "images/train/broken.png").write_bytes(b"no picture")
    untouched(source)
    with pytest.raises(DataError, match=r"train 0\.txt:2: class 9, allowed 0-2"):
        convert_data(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    written = convert_data(source, tmp_path / "out", skip_bad_rows=True)
    assert (tmp_path / "out/labels/train/train 0.txt").read_text() == f"{BAD[0]}\n{BAD[5]}\n"
    listed = (tmp_path / "out/left_out.txt").read_text().splitlines()
    assert listed == [str(finding) for finding in written.left_out]
    places = {line.removeprefix(str(source)).partition(": ")[0] for line in listed}
    assert places == {f"/labels/train/train 0.txt:{i}" for i in (2, 3, 4, 5)} | {"/images/train/broken.png"}
    assert "left out: 5 things, listed in" in written.summary()
    again = open_dataset(tmp_path / "out")
    assert again.findings == () and not (tmp_path / "out/images/train/broken.png").exists()


def test_a_picture_whose_label_file_cannot_be_read_is_left_out(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [TWO, TWO], "val": [TWO]})
    (source / "labels/train/train 1.txt").write_bytes(b"\xff\xfe0")
    written = convert_data(source, tmp_path / "out", skip_bad_rows=True)
    assert [path.name for path in (tmp_path / "out/images/train").iterdir()] == ["train 0.png"]
    assert [finding.code for finding in written.left_out] == ["label_file"]


def test_a_split_that_is_not_there_is_refused_or_listed(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [TWO], "val": [TWO]})
    shutil.rmtree(source / "images/val")
    with pytest.raises(DataError, match="'images/val' was not found"):
        convert_data(source, tmp_path / "out")
    written = convert_data(source, tmp_path / "out", skip_bad_rows=True)
    assert [split.split for split in written.splits] == ["train"]
    assert "split 'val' left out" in (tmp_path / "out/left_out.txt").read_text()


def test_polygons_stay_in_yolo_and_are_boxes_in_coco(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [["0 .1 .1 .5 .2 .5 .6 .1 .6 .05 .3"]]})
    kept = convert_data(source, tmp_path / "yolo")
    assert "1 polygon row: kept as written, the box around each counts" in kept.notes
    boxes = convert_data(source, tmp_path / "coco", format="coco")
    assert "1 polygon row: written as boxes" in boxes.notes
    same(open_dataset(source), open_dataset(tmp_path / "yolo"), within=0)
    same(open_dataset(source), open_dataset(tmp_path / "coco"), within=0)


def test_oriented_boxes_are_refused_or_become_boxes(make_set: MakeSet, tmp_path: Path) -> None:
    tilted = "0 .30 .40 .40 .5333333 .30 .6666667 .20 .5333333"
    source = make_set({"train": [[tilted], [tilted]], "val": [[tilted]]})
    for skip in (False, True):
        with pytest.raises(DataError, match="--as-boxes"):
            convert_data(source, tmp_path / "out", skip_bad_rows=skip)
    written = convert_data(source, tmp_path / "out", as_boxes=True)
    assert any("upright box" in note for note in written.notes)
    again = open_dataset(tmp_path / "out")
    assert again.findings == ()
    np.testing.assert_allclose(again.samples[0].boxes, [[12.8, 19.2, 25.6, 32]], atol=1e-3)


def test_an_orientation_in_the_file_is_told(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [TWO]})
    exif = Image.Exif()
    exif[274] = 6
    noise(5, (40, 30)).save(source / "images/train/train 0.jpg", exif=exif)
    (source / "images/train/train 0.png").unlink()
    written = convert_data(source, tmp_path / "out", format="coco")
    assert any("orientation" in note for note in written.notes)
    record = json.loads((tmp_path / "out/annotations/instances_train.json").read_text())
    assert (record["images"][0]["width"], record["images"][0]["height"]) == (30, 40)
    same(open_dataset(source), open_dataset(tmp_path / "out"), within=0)


def test_a_read_only_source_is_enough(make_set: MakeSet, tmp_path: Path, untouched: Callable) -> None:
    source = make_set({"train": [TWO, []], "val": [TWO]})
    untouched(source)
    for path in [source, *source.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        convert_data(source, tmp_path / "out")
    finally:
        for path in [source, *source.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert os.access(tmp_path / "out/images/train/train 0.png", os.W_OK)
    assert (tmp_path / "out/images/train/train 0.png").stat().st_nlink == 1


def test_links_are_copied_as_files(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [TWO]})
    picture = source / "images/train/train 0.png"
    shutil.move(picture, tmp_path / "elsewhere.png")
    picture.symlink_to(tmp_path / "elsewhere.png")
    convert_data(source, tmp_path / "out")
    copy = tmp_path / "out/images/train/train 0.png"
    assert not copy.is_symlink() and copy.read_bytes() == (tmp_path / "elsewhere.png").read_bytes()


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_stop_in_the_middle_leaves_nothing(
    make_set: MakeSet,
    tmp_path: Path,
    untouched: Callable,
    monkeypatch: pytest.MonkeyPatch,
    fault: BaseException,
) -> None:
    source = make_set({"train": [TWO] * 3, "val": [TWO]})
    untouched(source)
    copies = []

    def copy(source: Path, target: Path) -> None:
        copies.append(target)
        if len(copies) == 3:
            raise fault
        target.write_bytes(source.read_bytes())

    monkeypatch.setattr(pictures.shutil, "copyfile", copy)
    expected = KitError if isinstance(fault, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="No space left" if isinstance(fault, OSError) else None):
        convert_data(source, tmp_path / "new/out")
    assert len(copies) >= 3 and [path.name for path in tmp_path.iterdir()] == ["source"]


def test_what_cannot_be_is_refused(make_set: MakeSet, tmp_path: Path, untouched: Callable) -> None:
    source = make_set({"train": [TWO]})
    untouched(source)
    with pytest.raises(UsageError, match="'voc': data sets are written as yolo or coco"):
        check_target(tmp_path / "out", "voc")
    with pytest.raises(KitError, match="source: holds files already"):
        convert_data(source, source)
    for out in (source / "out", source / "images/train/out", source / "labels/new"):
        with pytest.raises(KitError, match=f"{re.escape(str(out))}: lies inside the source"):
            convert_data(source, out)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_progress_is_told_of_reading_and_writing(make_set: MakeSet, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    source = make_set({"train": [TWO, TWO], "val": [TWO]})
    convert_data(source, tmp_path / "out", on_progress=lambda *now: told.append(now))
    assert told == [
        *(("reading train", 1, 2), ("reading train", 2, 2), ("reading val", 1, 1)),
        *(("writing train", 2, 2), ("writing val", 1, 1)),
    ]


def test_a_real_set_to_coco_and_back(
    blood_cells: Path, shared: Path, tmp_path: Path, untouched: Callable
) -> None:
    untouched(shared / "data/bccd")
    convert_data(blood_cells, tmp_path / "coco", format="coco")
    convert_data(tmp_path / "coco", tmp_path / "yolo")
    counts = json.loads((shared / "data/bccd/SOURCE.json").read_text(encoding="utf-8"))
    places = (blood_cells, tmp_path / "coco", tmp_path / "yolo")
    one, coco, yolo = (open_dataset(place, "test") for place in places)
    same(one, coco, within=0)
    same(one, yolo)
    found = [name for sample in yolo.samples for name in np.array(yolo.names)[sample.labels]]
    assert Counter(found) == counts["boxes"]["test"] and len(yolo.samples) == counts["images"]["test"]
