"""The training panel without a browser: the code it shows, runs that it starts, watches, stops and finds again."""

import json
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import yolov9kit
from tests.waiting import until
from tests.widgets.fake_run import FakeRun, start_line, step_line
from widgets import RunView, TrainPanel
from widgets.detect_panel import OTHER
from widgets.train_panel import SAMPLE
from widgets.watch import about_strips, run_html
from yolov9kit import StepReport, TrainConfig
from yolov9kit.cli.train import _config, _given
from yolov9kit.telemetry import Facts

LONG = 120.0


@pytest.fixture(scope="module")
def boards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return yolov9kit.write_boards(tmp_path_factory.mktemp("boards") / "own", 4, 2, 3, (64, 64))


@pytest.fixture
def panel(tmp_path: Path, boards: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainPanel]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = new_panel(tmp_path, boards)
    yield made
    made.close()
    for one in yolov9kit.runs(made.project):
        run = yolov9kit.attach(one.folder)
        if run.is_alive:
            run.kill()
            run.wait(LONG)


def new_panel(folder: Path, boards: Path) -> TrainPanel:
    made = TrainPanel(folder, None)
    made.data.value, made.data_path.value = OTHER, str(boards)
    made.size.value, made.device.value, made.image_size.value = "t", "cpu", 64
    made.batch.value, made.epochs.value, made.more["workers"].value = 2, 2, "0"
    return made


def followed(view: RunView, steps: int) -> None:
    """Wait until the view has drawn so many steps; a view that gave up says why."""
    until(lambda: view.curves.step >= steps or (view.job and view.job.error))
    assert view.job is not None and view.job.error is None, view.words.value


def started(panel: TrainPanel) -> Any:
    """Press Start; the run that is watched then."""
    before = panel.view.run
    panel.start.click()
    return until(lambda: panel.view.run if panel.view.run is not before else panel.status.is_error)


# ---------------------------------------------------------------------------------------------- what is asked for


def test_the_code_and_the_command_ask_for_the_same_run(panel: TrainPanel, tmp_path: Path) -> None:
    panel.more["lr0"].value, panel.more["freeze"].value = "0.002", "0 1"
    panel.more["single_class"].value, panel.precision.value, panel.optimizer.value = True, "bf16", "sgd"
    panel.more["name"].value = "two words"
    wanted = TrainConfig(**panel.settings())
    assert (wanted.lr0, wanted.freeze, wanted.single_class, wanted.precision) == (0.002, (0, 1), True, "bf16")
    seen: list[TrainConfig] = []
    code = panel.code.python.replace("import TrainConfig, launch", "import TrainConfig")
    code = code.replace("print(run.folder)", "run")
    exec(code, {"launch": seen.append})
    words = shlex.split(panel.code.command)
    assert words[:2] == ["yolov9kit", "train"]
    assert seen == [wanted] and _config(_given(words[2:]))[0] == wanted


def test_sample_boards_need_no_path(tmp_path: Path) -> None:
    panel = TrainPanel(tmp_path, None)
    assert panel.data.value == SAMPLE and panel.data_path.layout.display == "none"
    assert TrainConfig(**panel.settings()).data == yolov9kit.sample_data()
    panel.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p: setattr(p.data_path, "value", ""), "data.yaml"),
        (lambda p: setattr(p.data_path, "value", "/nowhere/data.yaml"), "/nowhere/data.yaml"),
        (lambda p: setattr(p.more["lr0"], "value", "fast"), "lr0"),
        (lambda p: setattr(p.weights, "value", OTHER), "weights file"),
        (lambda p: setattr(p.more["momentum"], "value", "1.5"), "momentum"),
    ],
)
def test_what_cannot_start_is_said_in_words(
    panel: TrainPanel, change: Callable[[TrainPanel], object], words: str
) -> None:
    change(panel)
    panel.start.click()
    until(lambda: panel.status.is_error)
    assert words in panel.status.text and not panel.start.disabled
    assert yolov9kit.runs(panel.project) == []


def test_choices_come_back(tmp_path: Path, boards: Path) -> None:
    first = TrainPanel(tmp_path, tmp_path / "state.json")
    first.batch.value, first.more["mosaic"].value = 3, 0.25
    second = TrainPanel(tmp_path, tmp_path / "state.json")
    assert (second.batch.value, second.more["mosaic"].value) == (3, 0.25)
    for made in (first, second):
        made.close()


# ---------------------------------------------------------------------------------------------- a run


def test_u02_a_run_is_watched_to_its_end_and_nothing_is_printed(
    panel: TrainPanel, capfd: pytest.CaptureFixture[str]
) -> None:
    run = started(panel)
    assert run.wait(LONG) == "finished"
    until(lambda: not panel.view.job.running)  # type: ignore[union-attr]
    view = panel.view
    assert view.job is not None and view.job.error is None
    assert view.curves.step == 4 and view.progress.value == 1
    assert "finished" in view.words.value and "epoch 2 of 2" in view.words.value
    assert len(view.canvas.pictures) == 2 and "epoch 2" in view.canvas_title.value
    assert "<svg" in view.copy.html and "Training loss" in view.copy.html
    assert not panel.start.disabled and panel.stop.disabled and panel.pause.disabled
    assert panel.runs.value == str(run.folder) and "finished" in panel.runs.label
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_u03_pause_checkpoint_and_stop_then_start_again(panel: TrainPanel) -> None:
    panel.epochs.value = 100_000
    run = started(panel)
    followed(panel.view, 2)
    panel.pause.click()
    until(lambda: run.state == "paused" and panel.pause.description == "Resume")
    held = panel.view.curves.step
    panel.checkpoint.click()
    panel.pause.click()
    until(lambda: panel.view.curves.step > held and panel.pause.description == "Pause")
    panel.stop.click()
    assert run.wait(LONG) == "stopped"
    until(lambda: not panel.start.disabled)
    steps = [r.step for r in yolov9kit.read_journal(run.folder) if isinstance(r, StepReport)]
    assert steps == list(range(1, len(steps) + 1))
    panel.epochs.value = 1
    assert started(panel).wait(LONG) == "finished"


def test_a_panel_of_a_new_kernel_finds_the_run_and_both_agree(
    panel: TrainPanel, tmp_path: Path, boards: Path
) -> None:
    panel.epochs.value = 100_000
    run = started(panel)
    followed(panel.view, 2)
    other = TrainPanel(tmp_path, None)
    assert other.view.run == run and "going on" in other.status.text
    followed(other.view, 3)
    assert other.view.curves.line("total").x[0] == 1  # from its first step on
    until(lambda: not other.stop.disabled)
    other.stop.click()
    for made in (panel, other):
        until(lambda made=made: not made.view.job.running)
        assert "stopped" in made.view.words.value and made.stop.disabled
    assert panel.view.curves.line("total").y.tolist() == other.view.curves.line("total").y.tolist()
    other.close()


# ---------------------------------------------------------------------------------------------- the view


def test_u04_five_hundred_steps_a_second_are_few_messages(tmp_path: Path) -> None:
    """U04 without a browser: what is sent to the page is bounded by the clock, not by the steps."""
    view = RunView()
    sent: list[float] = []
    for widget in (view.chart, view.words, view.progress, view.canvas, view.canvas_title, view.strips_note):
        widget.comm.send = lambda *_, **__: sent.append(time.monotonic())  # type: ignore[method-assign,union-attr]
    view.copy.update = lambda text: sent.append(time.monotonic())  # type: ignore[method-assign]
    total = 2000
    with (tmp_path / "journal.jsonl").open("a") as journal:

        def write(*records: dict[str, Any]) -> None:
            journal.write("".join(json.dumps(record) + "\n" for record in records))
            journal.flush()

        write(start_line(total))
        run = FakeRun(tmp_path)
        began = time.monotonic()
        view.show(run)
        for first in range(1, total + 1, 50):
            write(*(step_line(step) for step in range(first, first + 50)))
            time.sleep(0.1)
    until(lambda: view.curves.step == total)
    spent = time.monotonic() - began
    run.state = "finished"
    until(lambda: not view.job.running)  # type: ignore[union-attr]
    assert view.job is not None and view.job.error is None
    assert 0 < len(sent) < 50 * spent
    view.close()


def test_nothing_is_left_behind_by_a_view(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("")
    before = set(threading.enumerate())
    view = RunView(FakeRun(tmp_path))
    view.close()
    assert set(threading.enumerate()) == before


def test_a_damaged_journal_is_a_problem_in_words(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text("not json\n{}\n")
    view = RunView(FakeRun(tmp_path))
    until(lambda: "Problem" in view.words.value)
    assert "damaged" in view.words.value
    view.close()


def test_a_run_that_went_on_is_marked_and_says_what_the_loader_has(tmp_path: Path) -> None:
    records = [
        start_line(9),
        step_line(1) | {"ready": 3},
        {"kind": "resumed", "step": 1, "lost_lines": 0, "notes": []},
    ]
    journal = tmp_path / "journal.jsonl"
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))
    view = RunView(FakeRun(tmp_path))
    until(lambda: "3 batches ready" in view.words.value)
    with journal.open("a") as file:
        file.write(json.dumps(step_line(2) | {"ready": None}) + "\n")
    until(lambda: "step 2 of" in view.words.value)
    assert "batches ready" not in view.words.value
    assert view.chart._whole()["plots"]["loss"]["marks"] == [[1.0, "resumed"]]
    view.close()


def test_names_and_problems_are_text_and_not_markup(tmp_path: Path) -> None:
    curves = yolov9kit.Curves()
    problem = {"tensor": "<b>x</b>", "what": "is not finite", "pictures": []}
    curves.add([start_line(9), step_line(1) | {"loss": None, "problem": problem}])
    run = FakeRun(tmp_path / "<i>")
    assert "<b>x" not in run_html(run, "running", curves) and "<i>" not in run_html(run, "running", curves)


def test_u13_what_cannot_be_shown_is_said_once() -> None:
    keys = ("gpu_percent", "gpu_memory_mib", "power_w", "temperature_c")
    words = about_strips(Facts("cpu", missing=dict.fromkeys(keys, "the work is done on the CPU")))
    assert words.count("the work is done on the CPU") == 1 and "GPU power" in words
    words = about_strips(Facts("cuda:0", name="NVIDIA H200", missing={"power_w": "not supported"}))
    assert "NVIDIA H200" in words and "GPU power: not shown, not supported" in words and "average" in words
