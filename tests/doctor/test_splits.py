"""Pictures that repeat: which of a group is told, beside which, in which words."""

from pathlib import Path

import pytest

from yolov9kit.data.checked import Checked
from yolov9kit.data.dataset import Dataset
from yolov9kit.doctor.duplicates import exact_groups
from yolov9kit.doctor.splits import absent_splits, exact_findings, near_findings, same_split

FILE = Path("data.yaml")
Told = list[tuple[str, str, str]]


def dataset(split: str, **digests: str) -> Dataset:
    """Pictures of these names, told by the digest of their bytes."""
    checked = {
        Path(f"set/{split}/{name}.png"): Checked((9, 9), digest=digest) for name, digest in digests.items()
    }
    return Dataset("set", split, ("nut",), (), checked=checked)


def told(*datasets: Dataset) -> Told:
    checked = {path: facts for one in datasets for path, facts in one.checked.items()}
    found = exact_findings(datasets, exact_groups(checked))
    return [(one.code, one.path.stem, Path(one.value).stem) for one in found]


def test_a_repeat_inside_is_told_beside_the_first() -> None:
    train = dataset("train", a="1", b="2", c="1", d="1")
    assert told(train) == [("duplicate_inside", "c", "a"), ("duplicate_inside", "d", "a")]


def test_every_picture_of_another_split_is_told_as_such() -> None:
    sets = (dataset("train", a="1"), dataset("val", b="1", c="1", d="2"), dataset("test", e="1", f="2"))
    assert told(*sets) == [
        ("duplicate_across", "b", "a"),
        ("duplicate_across", "c", "a"),
        ("duplicate_across", "e", "a"),
        ("duplicate_across", "f", "d"),
    ]


def test_unreadable_pictures_are_the_same_as_nothing() -> None:
    assert told(dataset("train", a="", b=""), dataset("val", c="")) == []


def test_a_file_that_two_splits_name() -> None:
    train, val = dataset("train", a="1", b="2"), dataset("train", b="2", c="3")
    val = Dataset("set", "val", val.names, (), checked=val.checked)
    assert told(train, val) == [("duplicate_across", "b", "b")]
    (finding,) = exact_findings((train, val), [])
    assert finding.message.startswith("is named by train and val: ")


def test_one_split_under_two_names_is_told_once() -> None:
    train = dataset("train", a="1", b="2")
    val = Dataset("set", "val", train.names, (), checked=train.checked)
    assert told(train, val) == []
    (finding,) = same_split(FILE, train, val)
    assert finding.code == "split_same" and "the 2 pictures of train" in finding.message
    assert same_split(FILE, train, dataset("val", a="1", b="2")) == []


def test_the_other_is_named_from_the_folder_they_share() -> None:
    sets = (dataset("train", a="1", b="1"), dataset("val", c="1"))
    inside, across = exact_findings(sets, exact_groups({**sets[0].checked, **sets[1].checked}))
    assert inside.message.startswith("the same picture as a.png: ")
    assert across.message.startswith("the same picture as train/a.png of train: ")
    assert across.value == str(Path("set/train/a.png"))


def test_pictures_that_look_alike() -> None:
    sets = (dataset("train", a="1", b="2", c="1"), dataset("val", d="3"))
    checked = {**sets[0].checked, **sets[1].checked}
    found = near_findings(sets, [tuple(checked)], checked)
    assert [(one.code, one.severity, one.path.stem) for one in found] == [
        ("near_inside", "note", "b"),  # not c, which has the bytes of a
        ("near_across", "warning", "d"),
    ]


@pytest.mark.parametrize(
    ("splits", "absent"),
    [(("train", "val"), []), (("train", "test"), ["val"]), (("val",), ["train"]), ((), ["train", "val"])],
)
def test_splits_that_are_not_named(splits: tuple[str, ...], absent: list[str]) -> None:
    found = absent_splits(FILE, splits)
    assert [(one.code, one.value) for one in found] == [("split_absent", split) for split in absent]
