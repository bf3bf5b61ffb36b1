"""Faults are planted at random places: each is found with file and line, and nothing else is."""

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.doctor.drawn_set import DrawnSet, Expected, clean_set
from tests.doctor.injector import ELSEWHERE, PLANTERS, WHOLE
from yolov9kit.doctor.codes import CODES
from yolov9kit.doctor.config import DoctorConfig
from yolov9kit.doctor.diagnose import diagnose

SEEDS = 200
CHUNKS = 8
OFTEN = 0.1
"""How often a set has one fault of the whole set, and no other."""
HOW_MANY = (0, 0, 0, 1, 1, 2)
DEAR = 0.1
"""How often a set may have a picture of 25 megapixels, which takes as long as all others."""


def found(folder: Path, yaml: Path) -> list[Expected]:
    """What the doctor says, as the injector notes it."""
    diagnosis = diagnose(yaml, DoctorConfig(cache=False))
    return sorted(
        (
            (finding.code, finding.path.relative_to(folder).as_posix(), finding.line)
            for finding in diagnosis.findings
        ),
        key=str,
    )


def planted(seed: int) -> tuple[DrawnSet, Counter[str]]:
    """A clean set with up to two faults of every code, and how many of each."""
    dice = random.Random(seed)
    whole, counts = clean_set(), Counter[str]()
    if dice.random() < OFTEN:
        code = dice.choice(list(WHOLE))
        counts[code] += WHOLE[code](whole, dice)
        return whole, counts
    wanted = [code for code in PLANTERS for _ in range(dice.choice(HOW_MANY))]
    if dice.random() > DEAR:
        wanted = [code for code in wanted if code != "picture_huge"]
    dice.shuffle(wanted)
    for code in wanted:
        counts[code] += PLANTERS[code](whole, dice)
    return whole, counts


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_planted_fault_is_found_and_none_else(chunk: int, tmp_path: Path) -> None:
    for seed in range(chunk, SEEDS, CHUNKS):
        whole, _ = planted(seed)
        folder = tmp_path / str(seed)
        assert found(folder, whole.write(folder)) == whole.all_expected(), f"seed {seed}"


def test_each_code_is_planted_often_enough() -> None:
    counts: Counter[str] = sum((planted(seed)[1] for seed in range(SEEDS)), Counter())
    assert {code for code in CODES if counts[code] < 2} == set(ELSEWHERE)


def test_a_code_is_planted_or_told_why_not() -> None:
    assert {*PLANTERS, *WHOLE, *ELSEWHERE} == set(CODES)


def test_nothing_planted_nothing_found(tmp_path: Path) -> None:
    assert found(tmp_path, clean_set().write(tmp_path)) == []


def test_the_injector_sees_a_fault_that_is_not_found(tmp_path: Path) -> None:
    whole = clean_set()
    whole.expect("label_columns", "labels/train/board 000.txt", lambda: 1)
    assert found(tmp_path, whole.write(tmp_path)) != whole.all_expected()
