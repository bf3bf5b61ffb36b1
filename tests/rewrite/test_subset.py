"""A part of a set: classes numbered anew, pictures drawn by the seed, backgrounds as asked for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rewrite.small_sets import MakeSet, digests
from yolov9kit.data.dataset import open_dataset
from yolov9kit.errors import DataError, UsageError
from yolov9kit.rewrite.subset import subset_data

NUT, BOLT, WING = "0 .5 .5 .2 .2", "1 .2 .2 .1 .1", "2 .7 .7 .1 .2"
SPLITS = {
    "train": [[NUT, BOLT], [BOLT], [WING, NUT], [], [WING], None, [BOLT, WING]],
    "val": [[NUT], [WING]],
}


def labels_of(folder: Path, split: str = "train") -> dict[str, list[int]]:
    return {sample.path.stem: sample.labels.tolist() for sample in open_dataset(folder, split).samples}


def test_classes_are_numbered_anew_and_others_left_out(
    make_set: MakeSet, tmp_path: Path, untouched: Callable
) -> None:
    source = make_set(SPLITS)
    untouched(source)
    written = subset_data(source, tmp_path / "out", classes=["wing nut", "nut"])
    assert written.names == ("nut", "wing nut")
    assert labels_of(tmp_path / "out") == {"train 0": [0], "train 2": [1, 0], "train 4": [1], "train 6": [1]}
    assert (tmp_path / "out/labels/train/train 2.txt").read_text() == f"1{WING[1:]}\n{NUT}\n"
    assert written.notes[0] == "classes: 0 nut is 0, 2 wing nut is 1; 1 class left out"
    assert written.notes[1] == "train: 4 of 7 pictures stay; without a box of these classes 0 of 3"


def test_pictures_without_a_kept_box_can_be_backgrounds(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set(SPLITS)
    subset_data(source, tmp_path / "out", classes=["nut"], empty_share=0.5, splits=["train"])
    found = labels_of(tmp_path / "out")
    assert len(found) == 4 and sum(not labels for labels in found.values()) == 2
    assert not (tmp_path / "out/images/val").exists()


def test_a_count_of_each_split_by_the_seed(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set(SPLITS)
    for name, seed in (("a", 0), ("b", 0), ("c", 1), ("d", 2)):
        subset_data(source, tmp_path / name, count=3, seed=seed)
        assert len(labels_of(tmp_path / name)) == 3 and len(labels_of(tmp_path / name, "val")) == 2
    assert digests(tmp_path / "a") == digests(tmp_path / "b")
    assert len({tuple(labels_of(tmp_path / name)) for name in "acd"}) > 1


@pytest.mark.parametrize(
    ("count", "share", "pictures", "empty"),
    [(4, 0.25, 4, 1), (4, 0.0, 4, 0), (None, 0.3, 7, 2), (2, 0.9, 2, 1)],
)
def test_the_share_of_backgrounds_is_that_of_the_result(
    make_set: MakeSet, tmp_path: Path, count: int | None, share: float, pictures: int, empty: int
) -> None:
    source = make_set(SPLITS)
    written = subset_data(source, tmp_path / "out", count=count, empty_share=share, splits=["train"])
    assert (written.splits[0].pictures, written.splits[0].backgrounds) == (pictures, empty)


def test_without_wishes_everything_stays(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set(SPLITS)
    subset_data(source, tmp_path / "out")
    assert digests(tmp_path / "out") | {"data.yaml": ""} == digests(source) | {"data.yaml": ""}


def test_what_cannot_be_is_refused(make_set: MakeSet, tmp_path: Path) -> None:
    source = make_set({"train": [[NUT]], "val": [[BOLT]]})
    for wish, reason in (
        ({"classes": ["Nut"]}, "classes: Nut: there are nut, bolt, wing nut"),
        ({"classes": []}, "none named"),
        ({"splits": ["night"]}, "splits: night: there are train, val"),
        ({"count": 0}, "count 0: give 1 or more"),
        ({"empty_share": 1.0}, "empty_share 1"),
    ):
        with pytest.raises(UsageError, match=reason):
            subset_data(source, tmp_path / "out", **wish)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="split 'val': no picture with a box of nut"):
        subset_data(source, tmp_path / "out", classes=["nut"])
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
