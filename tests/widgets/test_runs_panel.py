"""The panel of runs without a browser: the table, curves over each other, pictures side by side, going on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import yolov9kit
from tests.waiting import until
from widgets import RunsPanel, Workbench
from widgets.detect_panel import OTHER
from widgets.runs_panel import best_weights, table_html
from widgets.workbench import DETECT, RUNS, TRAIN
from yolov9kit import TrainConfig

LONG = 120.0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A panel's folder with two runs: a finished one, and one of another batch size that was stopped."""
    folder = tmp_path_factory.mktemp("workbench")
    data = yolov9kit.write_boards(folder / "boards", 4, 2, 3, (64, 64))
    config = TrainConfig(
        data=data, size="t", epochs=1, batch=2, image_size=64, workers=0, device="cpu", cache="none",
        project=folder / "runs" / "train", name="one",
    )  # fmt: skip
    list(yolov9kit.train(config))
    reports = yolov9kit.train(config.changed(batch=4, epochs=3, name="two <b>"))
    for report in reports:
        if isinstance(report, yolov9kit.EvaluationReport):
            break
    reports.close()  # type: ignore[attr-defined]
    return folder


@pytest.fixture
def panel(trained: Path) -> Iterator[RunsPanel]:
    made = RunsPanel(trained)
    yield made
    made.close()


def choose(panel: RunsPanel, *names: str) -> None:
    panel.list.value = tuple(path for _, path in panel.list.options if Path(path).name in names)
    assert len(panel.list.value) == len(names)


def test_no_runs_yet_is_said(tmp_path: Path) -> None:
    panel = RunsPanel(tmp_path)
    assert "No runs" in panel.status.text and panel.table.value == "" and panel.resume.disabled
    panel.close()


def test_the_table_tells_how_runs_stand_and_differ(panel: RunsPanel) -> None:
    text = panel.table.value
    assert {label.split(":")[0] for label, _ in panel.list.options} == {"one", "two <b>"}
    assert "<td>finished</td>" in text and "<td>stopped</td>" in text
    assert '<th scope="col">batch</th>' in text and "<td>2</td>" in text and "<td>4</td>" in text
    assert "image size" not in text  # it is the same in both
    assert "two &lt;b&gt;" in text and "two <b>" not in text


def test_what_can_be_done_follows_the_choice(panel: RunsPanel) -> None:
    def possible() -> set[str]:
        buttons = (panel.resume, panel.extend, panel.compare)
        return {button.description for button in buttons if not button.disabled}

    choose(panel, "one")
    assert possible() == {"Extend"}
    choose(panel, "two <b>")
    assert possible() == {"Resume"}
    choose(panel, "one", "two <b>")
    assert possible() == {"Compare pictures"}


def test_curves_lie_over_each_other(panel: RunsPanel) -> None:
    choose(panel, "one", "two <b>")
    (chart,) = panel.chart_box.children
    svg = chart.static_svg()
    assert "AP 50-95" in svg and "two &lt;b&gt;" in svg
    assert "<svg" in panel.copy.html
    panel.list.value = ()
    assert panel.chart_box.children == ()


def test_two_checkpoints_picture_by_picture(panel: RunsPanel) -> None:
    choose(panel, "one", "two <b>")
    panel.compare.click()
    until(lambda: panel.job is not None and not panel.job.running)
    assert panel.job is not None and panel.job.error is None, panel.status.text
    assert len(panel.canvas.pictures) == 2 and "2 validation pictures" in panel.status.text
    assert panel.canvas.pictures[0]["title"] == "board_000000.png"


def test_a_run_without_weights_is_said(tmp_path: Path) -> None:
    assert best_weights(tmp_path) is None
    assert table_html([]) == ""


def test_from_runs_to_detect_and_to_train(trained: Path) -> None:
    bench = Workbench(trained, None)
    choose(bench.runs, "one")
    bench.selected_index = RUNS
    bench.runs.open_button.click()
    assert bench.selected_index == DETECT and bench.detect.weights.value == OTHER
    assert bench.detect.weights_path.value.endswith("runs/train/one/weights/best.safetensors")
    choose(bench.runs, "two <b>")
    bench.runs.resume.click()
    assert bench.selected_index == TRAIN, bench.runs.status.text
    run = bench.train.view.run
    assert run.folder.name == "two <b>" and run.wait(LONG) == "finished"
    until(lambda: not bench.train.view.job.running)  # type: ignore[union-attr]
    bench.runs.refresh()
    choose(bench.runs, "one")
    bench.runs.epochs.value = 2
    bench.runs.extend.click()
    run = bench.train.view.run
    assert run.folder.name.startswith("one-extended") and run.wait(LONG) == "finished"
    until(lambda: bench.train.view.curves.epoch == 2)
    bench.close()
