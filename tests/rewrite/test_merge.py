"""Several sets in one: classes by name, pictures in their splits, names that collide told."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.rewrite.small_sets import MakeSet
from yolov9kit.data.dataset import open_dataset
from yolov9kit.errors import DataError, KitError, UsageError
from yolov9kit.rewrite.merge import merge_data


def test_classes_are_joined_by_name(make_set: MakeSet, tmp_path: Path, untouched: Callable) -> None:
    one = make_set(
        {"train": [["0 .5 .5 .2 .2", "1 .2 .2 .1 .1"]], "val": [["1 .5 .5 .3 .3"]]}, ["a", "b"], "one"
    )
    two = make_set({"train": [["0 .5 .5 .4 .4", "1 .2 .2 .1 .1"]], "test": [[]]}, ["b", "B"], "two", seed=50)
    untouched(one)
    untouched(two)
    written = merge_data([one, two], tmp_path / "out")
    assert written.names == ("a", "b", "B") and [s.split for s in written.splits] == ["train", "val", "test"]
    assert written.notes[:2] == (
        f"classes of {one}/data.yaml: 0 a is 0, 1 b is 1",
        f"classes of {two}/data.yaml: 0 b is 1, 1 B is 2",
    )
    found = {sample.path.name: sample for sample in open_dataset(tmp_path / "out").samples}
    assert {name: sample.labels.tolist() for name, sample in found.items()} == {
        "one_images_train_train 0.png": [0, 1],
        "two_images_train_train 0.png": [1, 2],
    }
    assert [new for _, new in written.renamed] == list(found)
    np.testing.assert_allclose(
        found["two_images_train_train 0.png"].boxes[0], [19.2, 14.4, 44.8, 33.6], atol=1e-3
    )
    assert (tmp_path / "out/labels/train/two_images_train_train 0.txt").read_text() == (
        "1 .5 .5 .4 .4\n2 .2 .2 .1 .1\n"
    )
    assert open_dataset(tmp_path / "out", "test").empty_labels == 1


def test_a_set_merged_with_itself_counts_once(make_set: MakeSet, tmp_path: Path) -> None:
    one = make_set({"train": [["0 .5 .5 .2 .2"]]})
    written = merge_data([one, one], tmp_path / "out")
    assert written.splits[0].pictures == 1
    assert "1 picture named by several of the data sets, taken from the first" in written.notes


def test_two_names_that_become_one_class_lose_the_repeated_box(make_set: MakeSet, tmp_path: Path) -> None:
    one = make_set({"train": [["0 .5 .5 .2 .2", "1 .5 .5 .2 .2"]]}, ["a", "a"], "one")
    two = make_set({"train": [["0 .5 .5 .2 .2"]]}, ["a"], "two", seed=9)
    written = merge_data([one, two], tmp_path / "out")
    assert written.names == ("a",) and written.splits[0].boxes == 2
    assert [finding.code for finding in written.left_out] == ["label_repeated"]


def test_what_cannot_be_is_refused(make_set: MakeSet, tmp_path: Path) -> None:
    one = make_set({"train": [["0 .5 .5 .2 .2"]]}, folder="one")
    two = make_set({"train": [["5 .5 .5 .2 .2"]]}, folder="two")
    with pytest.raises(UsageError, match="1 data set to merge"):
        merge_data([one], tmp_path / "out")
    with pytest.raises(DataError, match="class 5, allowed 0-2"):
        merge_data([one, two], tmp_path / "out")
    with pytest.raises(KitError, match="lies inside the source"):
        merge_data([one, two], two / "out", skip_bad_rows=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]


def test_two_real_sets(shared: Path, tmp_path: Path) -> None:
    bolts = shared / "data/raw/bolt_yolo_val_and_valid/dataset"
    parking = shared / "data/raw/parking_yolo/Parking-Space-1"
    written = merge_data([bolts, parking], tmp_path / "out")
    assert written.names == (*open_dataset(bolts).names, *open_dataset(parking).names)
    for split in ("train", "val", "test"):
        sources = [open_dataset(place, split) for place in (bolts, parking)]
        out = open_dataset(tmp_path / "out", split)
        assert len(out.samples) == sum(len(one.samples) for one in sources)
        for first, one in zip((0, 1), sources, strict=True):
            for c in range(len(one.names)):
                before = sum(int((sample.labels == c).sum()) for sample in one.samples)
                assert sum(int((sample.labels == first + c).sum()) for sample in out.samples) == before
