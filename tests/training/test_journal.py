"""Reports become lines and come back; a torn line is survived, a damaged one is not passed over."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.errors import TrainingError
from yolov9kit.training.journal import Journal, cut_back, read_journal
from yolov9kit.training.reports import (
    CheckpointReport,
    EndReport,
    EpochReport,
    EvaluationReport,
    LossValues,
    Problem,
    Report,
    ResumedReport,
    StartReport,
    StepReport,
    as_record,
    from_record,
)

LOSS = LossValues(3.5, 1.0, 2.0, 0.5)


def step(number: int, problem: Problem | None = None) -> StepReport:
    return StepReport(1, number, number, None if problem else LOSS, 0.01, 3.0, 100.0, 0.1, 512.0, problem)


REPORTS: list[Report] = [
    StartReport(
        *("runs/exp", {"epochs": 2, "freeze": []}, "t", ("a", "ü"), 10, "cpu", "fp32", "sgd", "eager", "0", "ram"),
        *("8", "8", 4, 1, 2, 4),
    ),
    step(1),
    step(2, Problem("gradient of x", "is not finite in bf16", ("a.png", "b\ud800.png"))),
    EpochReport(1, 1, 1, LOSS, 0.01, True, 2.0, 8.0, 0.1),
    EvaluationReport(1, LOSS, 0.5, 0.8, None, (("a", 0.5, 0.8), ("ü", None, None)), 8, 20, "score", True, 1.0),
    CheckpointReport(1, 2, "state.safetensors"),
    ResumedReport(2, 3, ("note",)),
    EndReport("finished", 1, 1, 0.5, "weights/best.safetensors", 5.0),
]  # fmt: skip


@pytest.mark.parametrize("report", REPORTS, ids=lambda r: type(r).__name__)
def test_a_report_comes_back_from_json(report: Report) -> None:
    assert from_record(json.loads(json.dumps(as_record(report)))) == report


@pytest.mark.parametrize(
    "record", [{}, {"kind": "dance"}, {"kind": "checkpoint", "epoch": 1}, {"kind": "end", "x": 1}]
)
def test_a_record_that_is_no_report_is_refused(record: dict) -> None:
    with pytest.raises(ValueError, match=r"no kind|argument"):
        from_record(record)


def written(folder: Path, reports: list[Report]) -> Path:
    journal = Journal(folder)
    for report in reports:
        journal.append(report)
    journal.close()
    return folder / "journal.jsonl"


def test_all_reports_are_read_again(tmp_path: Path) -> None:
    reports = [r for r in REPORTS if "\ud800" not in repr(r)]
    written(tmp_path, reports)
    assert read_journal(tmp_path) == reports


def test_undecodable_names_do_not_break_a_line(tmp_path: Path) -> None:
    written(tmp_path, [REPORTS[2]])
    assert len(read_journal(tmp_path)) == 1


@given(cut=st.integers(1, 60))
def test_a_torn_last_line_is_survived(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = written(tmp_path_factory.mktemp("torn"), [step(1), step(2)])
    path.write_bytes(path.read_bytes()[:-cut])
    assert read_journal(path.parent) == [step(1)]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, [step(1), step(2), step(3)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{oops\n" + lines[2])
    with pytest.raises(TrainingError, match="line 2"):
        read_journal(tmp_path)


def test_no_journal_is_said(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match=r"journal\.jsonl"):
        read_journal(tmp_path)


def test_a_value_that_is_not_finite_never_reaches_the_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        written(tmp_path, [EndReport("finished", 1, 1, float("nan"), "w", 5.0)])
    assert (tmp_path / "journal.jsonl").read_bytes() == b""


def test_cutting_back_keeps_what_was_lost_and_lines_that_add_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.append(step(1))
    committed = journal.committed()
    for report in (
        CheckpointReport(0, 1, "s"),
        EndReport("stopped", 0, None, None, "w", 1.0),
        step(2),
        step(3),
    ):
        journal.append(report)
    journal.close()
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"kind": "st')
    assert cut_back(tmp_path, committed) == 3
    assert [type(r) for r in read_journal(tmp_path)] == [StepReport, CheckpointReport, EndReport]
    lost = (tmp_path / "journal-lost-1.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["step"] for line in lost[:2]] == [2, 3]
    assert cut_back(tmp_path, committed) == 0


def test_a_journal_shorter_than_its_checkpoint_is_refused(tmp_path: Path) -> None:
    written(tmp_path, [step(1)])
    with pytest.raises(TrainingError, match="was changed"):
        cut_back(tmp_path, 10_000)
