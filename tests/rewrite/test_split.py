"""Pictures dealt out anew: together what belongs together, each class on each side, the same every time."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.rewrite.small_sets import MakeSet, digests, noise, save
from yolov9kit.data.dataset import open_dataset
from yolov9kit.errors import DataError, KitError, UsageError
from yolov9kit.rewrite.split import split_data


def rows(*classes: int) -> list[str]:
    return [f"{c} .{i + 3} .5 .2 .2" for i, c in enumerate(classes)]


def names_of(folder: Path, split: str) -> set[str]:
    return {path.name for path in (folder / "images" / split).iterdir()}


def test_every_picture_is_on_one_side(make_set: MakeSet, tmp_path: Path, untouched: Callable) -> None:
    source = make_set({"train": [rows(i % 2, *([2] * (i % 7 == 0))) for i in range(30)]})
    untouched(source)
    written = split_data(source, tmp_path / "out", val=0.2, test=0.1, seed=3)
    sides = [names_of(tmp_path / "out", split) for split in ("train", "val", "test")]
    assert sorted(map(len, sides)) == [3, 6, 21] and len(set.union(*sides)) == 30
    assert [split.pictures for split in written.splits] == [21, 6, 3]
    assert all(min(split.class_pictures) > 0 for split in written.splits)
    assert "pictures with nut: train 11 (73%), val 3 (20%), test 1 (7%)" in written.notes or any(
        note.startswith("pictures with nut: train 1") for note in written.notes
    )
    assert written.notes[-1] == "all pictures: train 21 (70%), val 6 (20%), test 3 (10%)"
    before = digests(source)
    for split in ("train", "val", "test"):
        for name in names_of(tmp_path / "out", split):
            stem = Path(name).stem
            new = digests(tmp_path / "out")
            assert new[f"labels/{split}/{stem}.txt"] == before[f"labels/train/{stem}.txt"]


def test_the_same_seed_gives_the_same_split(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [rows(i % 3) for i in range(24)]})
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        split_data(source, tmp_path / name, seed=seed)
    assert digests(tmp_path / "a") == digests(tmp_path / "b") != digests(tmp_path / "c")


def test_splits_are_dealt_out_together_and_each_picture_counts_once(
    make_set: MakeSet, tmp_path: Path
) -> None:
    source = make_set({"train": [rows(0) for _ in range(6)], "test": [rows(0) for _ in range(4)]})
    text = (source / "data.yaml").read_text()
    (source / "data.yaml").write_text(f"{text}val: images/test\n")
    written = split_data(source, tmp_path / "out", val=0.5)
    assert [split.pictures for split in written.splits] == [5, 5]
    assert "pictures of train, val, test dealt out together" in written.notes
    assert "4 pictures named by several splits, counted once" in written.notes


@pytest.mark.parametrize("seed", range(4))
def test_what_belongs_together_stays_together(make_set: MakeSet, tmp_path: Path, seed: int) -> None:
    source = make_set({"train": [rows(i % 2) for i in range(12)]})
    folder = source / "images/train"
    together: list[set[str]] = []
    for i in (1, 4):  # the same bytes under another name
        (folder / f"copy {i}.png").write_bytes((folder / f"train {i}.png").read_bytes())
        together.append({f"train {i}.png", f"copy {i}.png"})
    for i in (4, 7):  # the same picture, saved anew: with the copy above these are three
        Image.open(folder / f"train {i}.png").save(folder / f"near {i}.jpg", quality=90)
        together.append({f"train {i}.png", f"near {i}.jpg"})
    for i in range(3):  # three copies that a Roboflow export made of one picture
        save(folder / f"b_jpg.rf.{i}ab{i}.jpg", noise(90 + i))
    together.append({f"b_jpg.rf.{i}ab{i}.jpg" for i in range(3)})
    for path in folder.iterdir():
        label = source / "labels/train" / f"{path.stem}.txt"
        label.write_text(label.read_text() if label.exists() else "1 .5 .5 .2 .2\n")
    written = split_data(source, tmp_path / "out", val=0.3, seed=seed)
    sides = [names_of(tmp_path / "out", split) for split in ("train", "val")]
    assert len(sides[0] | sides[1]) == 19
    for group in together:
        assert group <= sides[0] or group <= sides[1]
    assert any(
        "stay together: the same bytes (4), look alike (4), one source by name (3)" in n
        for n in written.notes
    )


def test_names_can_tell_what_belongs_together(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [rows(0) for _ in range(20)]})
    for path in list((source / "images/train").iterdir()) + list((source / "labels/train").iterdir()):
        number = int(path.stem.split()[1])
        path.rename(path.with_name(f"board{number // 4}_view{number % 4}{path.suffix}"))
    split_data(source, tmp_path / "out", val=0.4, group_by=r"^(board\d+)_")
    boards = [{name[:6] for name in names_of(tmp_path / "out", split)} for split in ("train", "val")]
    assert len(boards[0]) == 3 and len(boards[1]) == 2 and not boards[0] & boards[1]
    with pytest.raises(UsageError, match=r"group_by '\(': not a regular expression"):
        split_data(source, tmp_path / "other", group_by="(")


def test_pictures_without_a_label_file_stay_without(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [rows(0), None, rows(0), None, [], rows(1), rows(1), []]})
    split_data(source, tmp_path / "out", val=0.5)
    labels = {path.stem for path in (tmp_path / "out/labels").rglob("*.txt")}
    assert labels == {f"train {i}" for i in (0, 2, 4, 5, 6, 7)}


@pytest.mark.parametrize(("val", "test"), [(0.0, 0.0), (1.0, 0.0), (0.6, 0.4), (-0.1, 0.2), (math.nan, 0.0)])
def test_shares_that_leave_nothing_are_refused(tmp_path: Path, val: float, test: float) -> None:
    with pytest.raises(UsageError, match="leave something for train"):
        split_data(tmp_path, tmp_path / "out", val=val, test=test)


def test_too_few_pictures_are_refused(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [rows(0)]})
    with pytest.raises(DataError, match="1 picture in 1 group that stay together: none is left for"):
        split_data(source, tmp_path / "out")
    with pytest.raises(KitError, match="lies inside the source"):
        split_data(make_set({"train": [rows(0), rows(0)]}, folder="two"), tmp_path / "two/out")


def test_a_real_set_keeps_its_shares(blood_cells: Path, tmp_path: Path) -> None:
    written = split_data(blood_cells, tmp_path / "out", val=0.25, test=0.15)
    pictures = np.array([split.class_pictures for split in written.splits])
    shares = pictures / pictures.sum(axis=0)
    np.testing.assert_allclose(shares.T, [[0.6, 0.25, 0.15]] * 3, atol=0.03)
    found = {split: open_dataset(tmp_path / "out", split) for split in ("train", "val", "test")}
    boxes = {s.path.name: s.boxes for s in open_dataset(blood_cells, "test").samples}
    after = {s.path.name: s.boxes for one in found.values() for s in one.samples}
    assert set(after) == set(boxes) and all((after[name] == boxes[name]).all() for name in boxes)
