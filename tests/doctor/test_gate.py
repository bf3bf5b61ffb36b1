"""What every training looks at before it starts: the cheap part of the doctor, and how it is told."""

import random
from pathlib import Path

import pytest

from tests.doctor.drawn_set import Row, clean_set
from tests.doctor.injector import PLANTERS
from yolov9kit.data.dataset import open_dataset
from yolov9kit.doctor.diagnose import diagnose
from yolov9kit.doctor.gate import gate
from yolov9kit.errors import DataError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.prepare import prepare


@pytest.mark.parametrize("code", ["duplicate_across", "class_absent", "class_absent_val"])
def test_the_gate_says_the_cheap_part_of_it(code: str, tmp_path: Path) -> None:
    whole = clean_set()
    assert PLANTERS[code](whole, random.Random(2))
    yaml = whole.write(tmp_path)
    said = gate(open_dataset(yaml, "train"), open_dataset(yaml, "val"))
    expected = diagnose(yaml).findings
    assert [(one.code, one.severity, one.message) for one in said] == [
        (one.code, one.severity, one.message) for one in expected
    ]


def test_the_gate_sees_one_split_under_two_names(tmp_path: Path) -> None:
    whole = clean_set()
    whole.entries["val"] = "images/train"
    yaml = whole.write(tmp_path)
    said = gate(open_dataset(yaml, "train"), open_dataset(yaml, "val"))
    assert [one.code for one in said] == ["split_same"]


def test_the_gate_is_silent_about_a_clean_set(tmp_path: Path) -> None:
    yaml = clean_set().write(tmp_path)
    assert gate(open_dataset(yaml, "train"), open_dataset(yaml, "val")) == ()


def training(yaml: Path, **settings: object) -> TrainConfig:
    return TrainConfig(
        data=yaml, size="t", image_size=32, batch=4, workers=0, device="cpu", cache="none", **settings
    )


@pytest.mark.usefixtures("one_thread")
def test_training_tells_warnings_once_a_line_for_each_code(tmp_path: Path) -> None:
    whole, dice = clean_set(range(12), range(100, 106)), random.Random(3)
    for code in ("duplicate_across", "picture_mode", "label_repeated", "label_repeated", "label_repeated"):
        assert PLANTERS[code](whole, dice)
    prepared = prepare(training(whole.write(tmp_path)))
    told = [note for note in prepared.notes if note.startswith(("error: ", "warning: ", "note: "))]
    assert len(told) == 3
    repeated = next(note for note in told if "row written twice, 3 of them, the first: " in note)
    mode = next(note for note in told if note.startswith("note: "))
    across = next(note for note in told if "of train: remove it from one of them" in note)
    assert repeated.startswith("warning: ") and "labels/" in repeated and across.startswith("warning: ")
    assert "images/" in mode
    again = prepare(training(whole.write(tmp_path)), model=prepared.model)
    assert [note for note in again.notes if note in told] == []  # a run that goes on has been told


@pytest.mark.usefixtures("one_thread")
def test_training_refuses_errors_and_says_what_it_leaves_out_where_that_is_asked_for(tmp_path: Path) -> None:
    whole = clean_set(range(12), range(100, 106))
    one = whole.pictures[2]
    one.insert(Row("0 0.5 0.5 0.1"), 1)
    yaml = whole.write(tmp_path)
    with pytest.raises(DataError, match=r"board 002\.txt:2: 4 columns"):
        prepare(training(yaml))
    prepared = prepare(training(yaml, skip_bad_rows=True))
    assert any(note.startswith("error: ") and "board 002.txt:2: 4 columns" in note for note in prepared.notes)
