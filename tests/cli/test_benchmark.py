"""Command lines of ``benchmark``: the settings that they mean, what is printed and written, and how Ctrl-C ends it."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark.made_report import TOO_LARGE, full_row, made_report, plain_row
from yolov9kit.benchmark import benchmark as module
from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.benchmark.report import Report
from yolov9kit.cli import main

LINE = "benchmark -w w.pt"


class Made:
    """Stands for the benchmark: notes what it was asked for and gives reports made by hand, or is stopped."""

    def __init__(self, *reports: Report | BaseException) -> None:
        self.reports, self.configs = reports, list[BenchmarkConfig]()
        self.closed = False

    def __call__(self, weights: Any, config: BenchmarkConfig, **_: Any) -> Iterator[Report]:
        self.configs.append(config)
        return self._give()

    def _give(self) -> Iterator[Report]:
        try:
            for report in self.reports:
                if isinstance(report, BaseException):
                    raise report
                yield report
        finally:
            self.closed = True


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(monkeypatch: pytest.MonkeyPatch, *reports: Report | BaseException) -> Made:
    one = Made(*reports)
    monkeypatch.setattr(module, "run_benchmark", one)
    return one


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Made:
    report = made_report((plain_row(), full_row(), plain_row()))
    return made(monkeypatch, report.plan, *report.rows, report)


def config(words: str, done: Made) -> BenchmarkConfig:
    main(shlex.split(words))
    return done.configs[-1]


def test_the_articles_line_means_its_settings(done: Made) -> None:
    words = "python benchmark.py --weights ./yolov9-s.pt --img 640 --batch 16 --device 0 --half"
    assert config(words, done) == BenchmarkConfig(
        image_sizes=640, batch_sizes=16, device="0", precisions="fp16"
    )


def test_the_issues_line_means_its_settings(done: Made) -> None:
    words = (
        "benchmark --weights w.pt --img 320,640,1280 --batch 1,16,64 --precision fp32,tf32,fp16,bf16 "
        "--mode eager,graph,compiled --data D --seconds 5 --profile"
    )
    assert config(words, done) == BenchmarkConfig(
        image_sizes=(320, 640, 1280),
        batch_sizes=(1, 16, 64),
        precisions=("fp32", "tf32", "fp16", "bf16"),
        modes=("eager", "graph", "compiled"),
        data="D",
        seconds=5,
        profile=True,
    )


@pytest.mark.parametrize("before", ["benchmark", "benchmark.py", "benchmarks.py", "benchmark ./benchmark.py"])
def test_every_name_of_the_script_is_this_command(before: str, done: Made) -> None:
    assert config(f"{before} --weights w.pt", done) == BenchmarkConfig()


def test_spaces_and_commas_and_old_spellings_are_the_same(done: Made) -> None:
    old = f"{LINE} --imgsz 320 640 --batch-size 1, 16 --precision fp32 bf16 --warmup 3"
    new = f"{LINE} --img 320,640 --batch 1,16 --precision fp32,bf16 --warm-up 3"
    assert config(old, done) == config(new, done)
    assert config(f"{LINE} --bf16", done) == config(f"{LINE} --bf16 --precision bf16", done)


def test_own_options(done: Made) -> None:
    words = f"{LINE} --runs 20 --source boards --pictures 4 --timed-pictures 9 --split test --profile-runs 7 --no-floor"
    assert config(words, done) == BenchmarkConfig(
        runs=20, source="boards", pictures=4, timed_pictures=9, split="test", profile_runs=7, floor=False
    )


def test_a_scripts_odd_size_is_rounded_up(done: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert config("benchmark.py --weights w --img 100", done).image_sizes == (128,)
    assert "[100] rounded up to [128]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--img 100", "image_sizes = (100,): 100 is no multiple of 32"),
        ("--img 3x20", "--img 3x20: give whole numbers, with commas or spaces between them"),
        ("--batch 1,x", "--batch x: give whole numbers"),
        ("--batch 0", "batch_sizes = 0"),
        ("--half --bf16", "--half and --bf16: contradict each other"),
        ("--half --precision fp32,fp16", "--half and --precision fp32,fp16: contradict each other"),
        ("--runs 2", "runs = 2"),
        ("--json .", "--json .: is a folder"),
        ("-w a b", "--weights names 2 files"),
        ("--loops 3", "unrecognized arguments"),
    ],
)
def test_a_wrong_line_is_one_line_of_error(
    words: str, message: str, done: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(f"{LINE} {words}")) == 2
    err = capsys.readouterr().err
    assert message in err and err.count("\n") == 1
    assert done.configs == []


def test_the_plan_comes_before_and_the_table_goes_to_standard_output(
    done: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(f"{LINE} --json a/b.json --html a/b.html")) == 0
    out, err = capsys.readouterr()
    assert out.startswith("network alone") and "from file to detections" in out
    assert "3 rows, 100 warm-up and 500 timed runs each" in err and "about 2.0 hours" in err
    assert "written: a/b.json" in err and "written: a/b.html" in err
    record = json.loads(Path("a/b.json").read_text())
    assert record["complete"] and len(record["rows"]) == 3
    assert Path("a/b.html").read_text().startswith("<!doctype html>")


def test_quiet_prints_the_table_alone(done: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(f"{LINE} --quiet")) == 0
    out, err = capsys.readouterr()
    assert out.startswith("network alone") and err == ""


def test_a_row_that_failed_is_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = made_report()
    made(monkeypatch, report.plan, *report.rows, report)
    assert main(shlex.split(LINE)) == 1
    assert f"not enough memory for {TOO_LARGE}" in capsys.readouterr().out


def test_ctrl_c_keeps_the_rows_that_are_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = made(monkeypatch, made_report().plan, plain_row(), KeyboardInterrupt())
    assert main(shlex.split(f"{LINE} --json a.json --html a.html")) == 130
    out, err = capsys.readouterr()
    assert "stopped after 1 of 3 rows" in out and "stopped; 1 of 3 rows were done and kept" in err
    record = json.loads(Path("a.json").read_text())
    assert not record["complete"] and len(record["rows"]) == 1 and record["planned_rows"] == 3
    assert Path("a.html").is_file() and one.closed


def test_ctrl_c_before_the_plan_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made(monkeypatch, KeyboardInterrupt())
    assert main(shlex.split(f"{LINE} --json a.json")) == 130
    assert "stopped" in capsys.readouterr().err and not Path("a.json").exists()


@pytest.mark.usefixtures("one_thread")
def test_a_real_line_from_start_to_end(lively_weights: Path, photos: Path) -> None:
    words = [
        "benchmark",
        "--weights",
        str(lively_weights),
        "--img",
        "64",
        "--device",
        "cpu",
        "--mode",
        "eager,graph",
    ]
    words += ["--runs", "3", "--warm-up", "0", "--source", str(photos), "--timed-pictures", "3", "--no-floor"]
    assert main([*words, "--json", "a.json"]) == 0
    record = json.loads(Path("a.json").read_text())
    assert [row["mode"] for row in record["rows"]] == ["eager"]
    assert [one["mode"] for one in record["refused"]] == ["graph"]
    assert record["rows"][0]["difference"]["lost"] == 0


def test_one_impossible_combination_is_an_error(
    lively_weights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benchmark", "--weights", str(lively_weights), "--device", "cpu", "--mode", "graph"]) == 1
    assert "mode graph: records work of an NVIDIA GPU" in capsys.readouterr().err
