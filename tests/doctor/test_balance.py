"""Classes and sizes: what is said at which number of boxes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.data.dataset import Dataset, Sample
from yolov9kit.doctor.balance import absent_findings, balance_findings, boxes_per_class, size_findings
from yolov9kit.doctor.flat_boxes import flatten

FILE = Path("data.yaml")
NAMES = ("nut", "bolt", "wing\nnut")


def dataset(counts: Sequence[int], split: str = "train") -> Dataset:
    """So many boxes of each class, in one picture."""
    labels = np.repeat(np.arange(len(counts)), counts)
    boxes = np.tile(np.array([[10, 10, 50, 50]], np.float32), (len(labels), 1))
    return Dataset("set", split, NAMES, (Sample(Path("a.png"), (100, 100), boxes, labels, Path("a.txt")),))


@given(st.lists(st.integers(0, 300), min_size=3, max_size=3))
def test_classes_are_counted(counts: list[int]) -> None:
    train = dataset(counts)
    assert boxes_per_class(train).tolist() == counts
    codes = [finding.code for finding in absent_findings(FILE, train, None)]
    assert codes == ["class_absent"] * counts.count(0)
    rare = [finding.code for finding in balance_findings(FILE, train)].count("class_rare")
    assert rare == sum(0 < count < 10 for count in counts)


@pytest.mark.parametrize(
    ("counts", "said"),
    [([1000, 10, 10], []), ([1001, 10, 10], ["class_balance"]), ([1001, 0, 0], []), ([0, 0, 0], [])],
)
def test_balance_is_that_of_the_classes_that_are_there(counts: list[int], said: list[str]) -> None:
    found = balance_findings(FILE, dataset(counts))
    assert [finding.code for finding in found] == said
    if said:
        assert "'nut' has 1001 boxes in train, 'bolt' 10" in found[0].message and found[0].value == "100"


def test_a_class_that_val_lacks_is_told_once() -> None:
    found = absent_findings(FILE, dataset([20, 20, 0]), dataset([5, 0, 0], "val"))
    assert [(finding.code, finding.value) for finding in found] == [
        ("class_absent_val", "bolt"),
        ("class_absent", "wing\\nnut"),
    ]


@pytest.mark.parametrize(
    ("small", "large", "said"), [(5, 5, True), (4, 5, False), (0, 0, False), (1, 0, True)]
)
def test_small_objects_are_half_of_all(small: int, large: int, said: bool) -> None:
    sides = [10] * small + [40] * large
    boxes = np.array([(0, 0, side, 50) for side in sides], np.float32).reshape(-1, 4)
    samples = [Sample(Path("a.png"), (1000, 500), boxes, np.zeros(len(sides), np.int64), Path("a.txt"))]
    found = size_findings(FILE, "train", flatten(samples, 640), 640)
    assert [finding.code for finding in found] == ["objects_small"] * said


def test_the_size_that_is_named_helps() -> None:
    sides = [5, 6, 7, 9, 300]
    boxes = np.array([(0, 0, side, 400) for side in sides], np.float32)
    samples = [Sample(Path("a.png"), (1000, 500), boxes, np.zeros(5, np.int64), Path("a.txt"))]
    (finding,) = size_findings(FILE, "train", flatten(samples, 640), 640)
    assert "4 of 5 boxes of train have a side below 8 pixels at the input size 640" in finding.message
    helping = int(finding.message.partition("640: ")[2].split()[0])
    assert helping % 32 == 0
    assert size_findings(FILE, "train", flatten(samples, helping), helping) == []
    less = helping - 32
    assert size_findings(FILE, "train", flatten(samples, less), less) != []
