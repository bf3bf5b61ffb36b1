"""Command lines of ``doctor``: exit codes, what is printed where, files that are written."""

import io
import json
import sys
from pathlib import Path

import pytest

from tests.doctor.drawn_set import Row, clean_set
from yolov9kit.cli import main
from yolov9kit.doctor import diagnose as module
from yolov9kit.doctor.diagnosis import Diagnosis


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    return clean_set().write(tmp_path / "healthy")


@pytest.fixture
def ill(tmp_path: Path) -> Path:
    """Seven rows of too few columns in one file."""
    whole = clean_set()
    one = whole.pictures[0]
    one.rows = [*(Row(f"0 0.{i} 0.5") for i in range(1, 8)), *(one.rows or [])]
    return whole.write(tmp_path / "ill")


def test_a_healthy_set_is_0(healthy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(healthy)]) == 0
    out, err = capsys.readouterr()
    assert out.endswith("0 errors, 0 warnings, 0 notes in 2 splits: nothing keeps it from training\n")
    assert err == ""


def test_an_ill_set_is_1(ill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(ill.parent)]) == 1
    out, err = capsys.readouterr()
    label = ill.parent / "labels/train/board 000.txt"
    assert f"  {label}:1: 3 columns" in out and f"{label}:6" not in out and "and 2 more (--all)" in out
    assert err == ""


def test_all_places_on_request(ill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(ill), "--all"]) == 1
    assert "board 000.txt:7: 3 columns" in capsys.readouterr().out


def test_quiet_is_one_line(ill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(ill), "-q"]) == 1
    assert capsys.readouterr().out == "7 errors, 0 warnings, 0 notes in 2 splits\n"


def test_json_into_a_file(ill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "deep/report.json"
    assert main(["doctor", str(ill), "--json", str(target)]) == 1
    diagnosis = Diagnosis.from_json(target.read_text(encoding="utf-8"))
    assert diagnosis.counts == {"label_columns": 7}
    out, err = capsys.readouterr()
    assert "label_columns" in out and err == f"written: {target}\n"


def test_json_to_standard_output_is_all_of_it(ill: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(ill), "--json", "-"]) == 1
    out, err = capsys.readouterr()
    assert len(json.loads(out)["findings"]) == 7 and err == ""


def test_options_are_settings(healthy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--img", "320", "--split", "val", "test", "--no-near", "--json", "-"]
    assert main(["doctor", str(healthy), *words]) == 1  # there is no split test
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert settings == {"image_size": 320, "splits": ["val", "test"], "near_duplicates": False, "cache": True}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "the following arguments are required: DATA"),
        (["{}", "--img", "5"], "image_size = 5"),
        (["{}", "--img", "x"], "invalid int value"),
        (["{}", "--json", "{}/.."], "is a folder"),
        (["{}", "--colour"], "unrecognized arguments"),
    ],
)
def test_a_wrong_command_line_is_2(
    words: list[str], said: str, healthy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", *(word.format(healthy.parent) for word in words)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and said in err and err.count("\n") == 1


def test_ctrl_c_says_that_the_next_call_goes_on(
    healthy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "diagnose", stop)
    assert main(["doctor", str(healthy)]) == 130
    assert "the next call goes on from here" in capsys.readouterr().err


def test_a_repaired_copy_is_written_and_looked_at(
    ill: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "repaired"
    assert main(["doctor", str(ill), "--fix", str(out)]) == 0  # that of the copy
    said, err = capsys.readouterr()
    assert "7 errors" in said  # of the original
    assert "originals untouched" in err and f"{out}: 0 errors, 0 warnings" in err
    assert main(["doctor", str(out)]) == 0
    assert main(["doctor", str(ill)]) == 1


def test_a_folder_that_exists_is_not_written_into(
    healthy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(module, "diagnose")  # said before the work
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/a").touch()
    assert main(["doctor", str(healthy), "--fix", str(tmp_path / "taken")]) in (1, 2)
    assert "taken" in capsys.readouterr().err


def shown_in_ascii(words: list[str], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What reaches a standard output that takes nothing but ASCII."""
    content = io.BytesIO()
    stream = io.TextIOWrapper(content, encoding="ascii")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        assert main(words) == 0
    stream.flush()
    return content.getvalue()


def test_names_that_the_terminal_cannot_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = clean_set()
    whole.names[:2] = ["螺母", "🔩"]
    words = ["doctor", str(whole.write(tmp_path))]
    assert b"(\\u87ba\\u6bcd, \\U0001f529, triangle)" in shown_in_ascii(words, monkeypatch)
    as_json = shown_in_ascii([*words, "--json", "-"], monkeypatch)  # which is UTF-8 everywhere
    assert json.loads(as_json.decode("utf-8"))["names"] == whole.names


def test_a_description_that_cannot_be_used_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(tmp_path / "gone.yaml")]) == 1
    assert "[description]" in capsys.readouterr().out
