"""A diagnosis as a value: its counts, its summary, JSON there and back."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.data.findings import Finding
from yolov9kit.doctor.config import DoctorConfig
from yolov9kit.doctor.diagnosis import FORMAT, Diagnosis, SplitFacts
from yolov9kit.errors import DataError, UsageError

words = st.text(st.characters(exclude_characters="\0"), max_size=12)
some = st.integers(0, 10**6)
size = st.tuples(some, some)
findings = st.fixed_dictionaries(
    {
        "code": words,
        "severity": st.sampled_from(("error", "warning", "note")),
        "file": words,
        "line": st.none() | st.integers(1, 10**9),
        "value": words,
        "message": words,
        "picture": st.none() | words,
    }
)
splits = st.fixed_dictionaries(
    {
        "split": words,
        "pictures": some,
        "boxes_per_class": st.lists(some, max_size=4),
        "smallest_wh": size,
        "box_sides_px": st.lists(st.floats(0, 1e4), max_size=7),
        "decode_ms": st.floats(0, 1e4),
    }
)
settings = st.fixed_dictionaries({"image_size": st.integers(32, 4096), "splits": st.lists(words, max_size=2)})
records = st.fixed_dictionaries(
    {
        "format": st.just(FORMAT),
        "data": words,
        "kind": words,
        "names": st.lists(words, max_size=3),
        "settings": settings,
        "splits": st.lists(splits, max_size=3),
        "findings": st.lists(findings, max_size=5),
    }
)


@given(records)
def test_json_is_read_back_equal(record: dict[str, Any]) -> None:
    diagnosis = Diagnosis.from_json(json.dumps(record))
    text = diagnosis.to_json()
    assert Diagnosis.from_json(text) == diagnosis
    assert text.encode().decode() == text  # a file in UTF-8 holds it
    assert [finding.message for finding in diagnosis.findings] == [
        one["message"] for one in record["findings"]
    ]
    pictures = [None if one["picture"] is None else Path(one["picture"]) for one in record["findings"]]
    assert [finding.picture for finding in Diagnosis.from_json(text).findings] == pictures


@given(records)
def test_counts_agree(record: dict[str, Any]) -> None:
    diagnosis = Diagnosis.from_json(json.dumps(record))
    found = (*diagnosis.errors, *diagnosis.warnings, *diagnosis.notes)
    assert len(found) == len(diagnosis.findings) == sum(diagnosis.counts.values())
    assert diagnosis.ok == (not diagnosis.errors)


def test_a_file_name_that_is_no_utf8_comes_back() -> None:
    path = Path("a\udcff.txt")
    diagnosis = Diagnosis(path, findings=(Finding("place", "note", path, "m"),))
    assert '"a\\udcff.txt"' in diagnosis.to_json()
    assert Diagnosis.from_json(diagnosis.to_json()) == diagnosis


def test_what_json_holds() -> None:
    finding = Finding("label_class", "error", Path("a.txt"), "class 0.5 is no whole number", 3, "0.5")
    record = json.loads(Diagnosis(Path("data.yaml"), "YOLO", ("nut",), (), (finding,)).to_json())
    assert record["format"] == "yolov9kit diagnosis 1"
    assert record["settings"] == DoctorConfig().model_dump(mode="json")
    assert record["findings"] == [
        {
            "code": "label_class",
            "severity": "error",
            "file": "a.txt",
            "line": 3,
            "value": "0.5",
            "message": "class 0.5 is no whole number",
            "picture": None,
        }
    ]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", '{"format": "other"}', '{"format": "yolov9kit diagnosis 1"}']
)
def test_other_json_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(DataError, match=r"not a diagnosis as the doctor writes it: .+") as caught:
        Diagnosis.from_json(text)
    assert "\n" not in str(caught.value)


def test_the_summary_counts() -> None:
    one = Finding("place", "note", Path("a"), "m")
    many = tuple(Finding("label_class", "error", Path("a"), "m", line) for line in range(1, 13))
    facts = tuple(SplitFacts(name) for name in ("train", "val", "test"))
    assert Diagnosis(Path("d"), splits=facts, findings=(*many, one)).summary() == (
        "12 errors, 0 warnings, 1 note in 3 splits"
    )


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"image_size": 31}, "image_size = 31: "),
        ({"image_size": "large"}, "image_size = 'large': "),
        ({"size": 640}, "size: no such setting. There are image_size, splits, near_duplicates, cache"),
    ],
)
def test_a_wrong_setting_is_named(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=f"^{said}"):
        DoctorConfig(**settings)
    with pytest.raises(UsageError):
        DoctorConfig().changed(**settings)


def test_the_verdict_says_what_training_would() -> None:
    absent = Finding(
        "split_absent", "warning", Path("data.yaml"), "names no validation pictures", value="val"
    )
    wrong = Finding("label_class", "error", Path("a.txt"), "class 0.5", 3, "0.5")
    data = Path("data.yaml")
    assert Diagnosis(data).verdict == "nothing keeps it from training"
    assert "needs both train and val" in Diagnosis(data, findings=(absent,)).verdict
    assert "refuses" in Diagnosis(data, findings=(wrong, absent)).verdict
