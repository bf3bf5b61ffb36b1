"""The report for a terminal: a block for each code, a few places each, everything on request."""

from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.doctor.diagnosis import Diagnosis, SplitFacts
from yolov9kit.doctor.text import SHOWN, by_code, in_lines, report

ROWS = tuple(Finding("label_class", "error", Path("labels/a.txt"), "class 0.5", line) for line in range(1, 9))
NOTE = Finding("label_empty", "note", Path("labels/b.txt"), "2 pictures of train have no rows")
FACTS = SplitFacts(
    "train",
    10,
    40,
    (30, 10),
    2,
    1,
    3,
    (64, 48),
    (640, 480),
    (4000, 3000),
    (2.0, 5.0, 9.0, 24.4, 50.0, 80.0, 300.0),
)
DIAGNOSIS = Diagnosis(Path("set/data.yaml"), "YOLO", ("nut", "bolt"), (FACTS,), (*ROWS, NOTE))


def test_what_a_report_says() -> None:
    lines = report(DIAGNOSIS).splitlines()
    assert lines[:2] == [
        "set/data.yaml, YOLO, 2 classes (nut, bolt)",
        "  train: 10 pictures of 64 x 48 to 4000 x 3000, 40 boxes, half of them narrower than 24 px at 640, "
        "backgrounds: 2 with an empty label file, 1 without one, 3 left out",
    ]
    assert lines[3].startswith("ERROR Class that is no whole number [label_class]: 8. ")
    assert lines[4:10] == [
        *(f"  labels/a.txt:{line}: class 0.5" for line in range(1, 6)),
        "  and 3 more (--all)",
    ]
    assert lines[-1] == "8 errors, 0 warnings, 1 note in 1 split: training refuses until the errors are gone"


def test_everything_is_shown_on_request() -> None:
    short, whole = report(DIAGNOSIS), report(DIAGNOSIS, everything=True)
    assert short.count("class 0.5") == SHOWN and whole.count("class 0.5") == len(ROWS)
    assert "more (--all)" not in whole


def test_a_set_without_errors_may_be_trained_on() -> None:
    said = report(Diagnosis(Path("set"), "YOLO", ("nut",), (FACTS,), (NOTE,)))
    assert said.endswith("0 errors, 0 warnings, 1 note in 1 split: nothing keeps it from training")


def test_one_code_with_two_severities_is_two_blocks() -> None:
    findings = [Finding("label_points", severity, Path("a"), "m") for severity in ("error", "note", "error")]
    assert [len(group) for group in by_code(findings)] == [2, 1]


def test_a_line_for_each_code() -> None:
    assert in_lines([*ROWS, NOTE]) == [
        "error: class that is no whole number, 8 of them, the first: labels/a.txt:1: class 0.5",
        "note: labels/b.txt: 2 pictures of train have no rows",
    ]


def test_control_characters_of_names_are_escaped() -> None:
    odd = Finding("place", "note", Path("a\x1b[31m"), "m\x07")
    said = report(Diagnosis(Path("x\x1b[2J"), "YOLO", ("a\nb",), (), (odd,)), everything=True)
    assert "\x1b" not in said and "\x07" not in said and "a\\nb" in said
