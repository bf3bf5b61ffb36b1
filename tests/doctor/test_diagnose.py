"""The whole doctor: stopped and continued, one split or all, real and clean sets, descriptions that cannot be used."""

import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.doctor.drawn_set import clean_set
from tests.doctor.injector import PLANTERS
from yolov9kit.doctor.config import DoctorConfig
from yolov9kit.doctor.diagnose import diagnose


@pytest.fixture
def private_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The pictures that are decoded."""
    paths: list[Path] = []
    module = sys.modules["yolov9kit.data.checked"]
    check = module.check_picture
    monkeypatch.setattr(module, "check_picture", lambda path: paths.append(path) or check(path))
    return paths


def test_the_sample_boards_are_healthy(root: Path) -> None:
    diagnosis = diagnose(root / "sample_data/pcb")
    assert [str(finding) for finding in diagnosis.findings] == []
    train, val = diagnosis.splits
    assert (train.pictures, val.pictures) == (96, 32)
    assert train.smallest_wh == train.middle_wh == train.largest_wh == (320, 320)
    assert sum(train.boxes_per_class) == train.boxes and len(train.boxes_per_class) == 6


class Enough(Exception):  # noqa: N818 - not an error
    """Raised where a person would press Ctrl-C."""


@pytest.mark.parametrize("stop", [Enough, KeyboardInterrupt])
def test_what_was_learnt_before_a_stop_is_not_done_again(
    stop: type[BaseException], tmp_path: Path, private_cache: Path, decoded: list[Path]
) -> None:
    yaml = clean_set().write(tmp_path)

    def show(what: str, done: int, _total: int) -> None:
        if what == "checking val pictures" and done == 5:
            raise stop

    with pytest.raises(stop):
        diagnose(yaml, on_progress=show)
    diagnosis = diagnose(yaml)
    times = Counter(path.name for path in decoded)
    told = [*(f"board {seed:03}" for seed in range(30)), *(f"board {seed}" for seed in range(100, 105))]
    assert {Path(name).stem for name, count in times.items() if count == 1} >= set(
        told
    )  # in both calls together
    assert len(times) == 42
    assert diagnosis == diagnose(yaml)


def test_without_a_cache_nothing_is_kept(tmp_path: Path, private_cache: Path) -> None:
    diagnose(clean_set().write(tmp_path), DoctorConfig(cache=False))
    assert list(private_cache.rglob("*")) == []


def test_progress_counts_the_pictures_of_each_split(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    diagnose(clean_set().write(tmp_path), on_progress=lambda *step: told.append(step))
    steps = Counter(what for what, _, _ in told)
    assert (steps["checking train pictures"], steps["checking val pictures"]) == (30, 12)
    assert all(done <= total for _, done, total in told)


def test_one_split_alone(tmp_path: Path) -> None:
    whole = clean_set()
    whole.names.append("never")
    yaml = whole.write(tmp_path)
    diagnosis = diagnose(yaml, DoctorConfig(splits=("val",)))
    assert [facts.split for facts in diagnosis.splits] == ["val"]
    assert diagnosis.findings == ()  # what compares splits, and asks for train, was not asked for


def test_a_split_that_is_not_there(tmp_path: Path) -> None:
    diagnosis = diagnose(clean_set().write(tmp_path), DoctorConfig(splits=("train", "night")))
    (error,) = diagnosis.errors
    assert error.code == "split_missing" and "night" in error.message
    assert [facts.split for facts in diagnosis.splits] == ["train"]


def test_a_test_split_that_is_missing_keeps_nobody_from_training(tmp_path: Path) -> None:
    whole = clean_set()
    whole.entries["test"] = "images/test"
    (finding,) = diagnose(whole.write(tmp_path)).findings
    assert (finding.code, finding.severity) == ("split_missing", "warning")
    assert str(tmp_path / "images/test") in finding.message
    assert not diagnose(tmp_path, DoctorConfig(splits=("test",))).ok  # it was asked for


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("nc: 4\nnames: [a, b, c]\ntrain: images\n", None, "nc is 4, but names holds 3"),
        ("train: images\nnames: [a\n", 3, "not a yaml"),
        ("names: [a]\nnames: [b]\n", 2, "twice"),
        ("", None, "expected keys"),
    ],
)
def test_a_description_that_cannot_be_used(text: str, line: int | None, said: str, tmp_path: Path) -> None:
    yaml = tmp_path / "data.yaml"
    yaml.write_text(text, encoding="utf-8")
    for data in (yaml, tmp_path, str(tmp_path)):
        diagnosis = diagnose(data)
        (error,) = diagnosis.findings
        assert (error.code, error.path, error.line) == ("description", yaml, line)
        assert said in error.message and str(yaml) not in error.message
        assert not diagnosis.ok and diagnosis.splits == ()


def test_nothing_there_at_all(tmp_path: Path) -> None:
    (error,) = diagnose(tmp_path / "gone.yaml").findings
    assert error.code == "description" and "no such file" in error.message


def test_a_split_of_which_nothing_can_be_read_names_every_picture(tmp_path: Path) -> None:
    whole = clean_set(val=())
    for seed in range(100, 103):
        broken = clean_set((), (seed,)).pictures[0]
        broken.data = b""
        whole.add(broken, len(whole.listed))
    diagnosis = diagnose(whole.write(tmp_path))
    assert diagnosis.counts == {"split_missing": 1, "picture_empty": 3}
    assert {finding.path.name for finding in diagnosis.warnings} == {
        f"board {seed}.png" for seed in (100, 101)
    } | {"board 102.jpg"}


def test_findings_are_in_order(tmp_path: Path) -> None:
    whole, dice = clean_set(), random.Random(1)
    for code in (
        "label_empty",
        "label_columns",
        "box_tiny",
        "label_number",
        "label_columns",
        "picture_empty",
    ):
        assert PLANTERS[code](whole, dice)
    findings = diagnose(whole.write(tmp_path)).findings
    rank = {"error": 0, "warning": 1, "note": 2}
    keys = [
        (rank[finding.severity], finding.code, str(finding.path), finding.line or 0) for finding in findings
    ]
    assert keys == sorted(keys)
    assert len(set(findings)) == len(findings)
