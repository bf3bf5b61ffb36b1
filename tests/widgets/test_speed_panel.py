"""The speed panel without a browser: choices, bars, the star, stop, problems in words, the code it shows."""

import re
import runpy
import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import yolov9kit
from tests.benchmark.made_report import made_report, plain_row
from tests.chromium import Guarded, launched
from tests.waiting import until
from widgets import SpeedPanel, Workbench
from widgets.detect_panel import OTHER, UNTRAINED
from widgets.offers import MODES, PRECISIONS, offers_of
from widgets.speed_table import MEASURES, RULE, speed_html, times_faster, winners
from yolov9kit.benchmark.report import BenchmarkReport, Row
from yolov9kit.benchmark.text import benchmark_remarks
from yolov9kit.benchmark.timing import spread
from yolov9kit.cli import main

NETWORK = MEASURES["network"]


def row(precision: str, mode: str, run_ms: float, lost: int = 0, batch: int = 1, **more: Any) -> Row:
    """A row that took ``run_ms`` a run and lost boxes."""
    plain = plain_row()
    assert plain.network is not None and plain.difference is not None
    combination = replace(
        plain.combination,
        batch_size=batch,
        precision=replace(plain.combination.precision, name=precision, native=precision != "fp16"),
        mode=replace(plain.combination.mode, name=mode),
    )
    difference = replace(plain.difference, reference=60, found=60, matched=60 - lost, max_score_change=0.01)
    timed = replace(plain.network, runs=spread([float(run_ms)]))
    return replace(plain, combination=combination, network=timed, difference=difference, **more)


ROWS = (
    row("fp32", "eager", 20),
    row("bf16", "graph", 5),
    row("fp16", "graph", 4, lost=2),
    row("bf16", "graph", 16, batch=8, error="not enough memory"),
)


class Fake:
    """A benchmark of made rows, which waits before the row of number ``hold`` until it is let go."""

    def __init__(self, hold: int = -1, error: Exception | None = None) -> None:
        self.hold, self.error = hold, error
        self.held, self.go = threading.Event(), threading.Event()
        self.given: tuple[Any, ...] = ()
        self.ended = False

    def __call__(self, weights: Any, config: Any, on_progress: Callable[..., None]) -> Iterator[Any]:
        self.given = (weights, config)
        plan = replace(made_report().plan, config=config, combinations=tuple(r.combination for r in ROWS))
        try:
            yield plan
            for number, one in enumerate(ROWS):
                on_progress(f"{one.combination}: getting ready", number, len(ROWS))
                if number == self.hold:
                    self.held.set()
                    assert self.go.wait(60)
                    if self.error is not None:
                        raise self.error
                on_progress(f"{one.combination}: timing the network", number, len(ROWS))
                yield one
            yield BenchmarkReport(plan, ROWS, 4.0)
        finally:
            self.ended = True


def made(folder: Path, fake: Fake | None = None, state: Path | None = None) -> SpeedPanel:
    return SpeedPanel(folder, state, Fake() if fake is None else fake)


def finish(panel: SpeedPanel) -> None:
    panel.start.click()
    assert panel.job is not None and panel.job.wait(120)


def lines_of(text: str) -> list[str]:
    """The words of each line of a table."""
    return [re.sub(r"<[^>]+>", " ", line) for line in re.findall(r"<tr.*?</tr>", text)]


# ---------------------------------------------------------------------------------------------- choices


def test_what_is_chosen_is_what_is_measured(tmp_path: Path) -> None:
    fake = Fake()
    panel = made(tmp_path, fake)
    panel.weights.value, panel.weights_path.value = OTHER, "some.safetensors"
    panel.sizes.value, panel.batches.value = "320, 640", "1 8"
    panel.precisions["fp16"].value, panel.modes["eager"].value = True, False
    panel.seconds.value, panel.more["runs"].value = 5, 50
    finish(panel)
    weights, config = fake.given
    assert weights == "some.safetensors"
    assert (config.image_sizes, config.batch_sizes) == ((320, 640), (1, 8))
    assert (config.precisions, config.modes) == (("fp32", "fp16", "bf16"), ("auto",))
    assert (config.seconds, config.runs, config.floor) == (5, 50, False)


def test_random_weights_can_be_timed(tmp_path: Path) -> None:
    fake = Fake()
    panel = made(tmp_path, fake)
    panel.weights.value = UNTRAINED
    finish(panel)
    assert isinstance(fake.given[0], yolov9kit.Checkpoint)
    assert "untrained(" in panel.code.python and panel.code.command.startswith("#")


def test_the_panel_offers_what_the_library_knows() -> None:
    from yolov9kit import device
    from yolov9kit.infer import mode

    assert {*PRECISIONS, "auto"} == set(device.PRECISIONS) and set(MODES) == set(mode.MODES)


def test_what_a_processor_cannot_do_is_offered_with_the_reason() -> None:
    offers = offers_of("cpu")
    assert set(offers.labels) == {*PRECISIONS, *MODES}
    assert offers.labels["tf32"] == "tf32 (not here)" and offers.labels["graph"] == "graph (not here)"
    assert any("tensor cores" in reason for reason in offers.reasons)
    assert any("records work of an NVIDIA GPU" in reason for reason in offers.reasons)
    assert offers.labels["onnx"] == "onnx (fp32 only)" and offers.labels["auto"] == "auto (onnx or eager)"


def test_the_labels_and_the_reasons_stand_in_the_panel(tmp_path: Path) -> None:
    panel = made(tmp_path)
    panel.device.value = "cpu"
    assert panel.precisions["tf32"].description == "tf32 (not here)" and not panel.precisions["tf32"].disabled
    assert "tensor cores" in panel.reasons.value


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weights_path": ""}, "Name a weights file."),
        ({"image_sizes": ""}, "Choose at least one image size."),
        ({"batch_sizes": " "}, "Choose at least one batch size."),
        ({"image_sizes": "100"}, "100 is no multiple of 32, the nearest is 96"),
        ({"image_sizes": "many"}, "image_sizes"),
        ({"fp32": False, "bf16": False}, "Choose at least one precision."),
        ({"eager": False, "auto": False}, "Choose at least one mode."),
        ({"runs": 1}, "runs = 1"),
    ],
)
def test_what_cannot_be_measured_is_said_in_words(tmp_path: Path, change: dict, says: str) -> None:
    panel = made(tmp_path)
    panel.weights.value, panel.weights_path.value = OTHER, "some.pt"
    for name, value in change.items():
        panel.controls[name].value = value
    panel.start.click()
    assert panel.job is None and panel.status.is_error and says in panel.status.text
    assert panel.code.python.startswith("#")


def test_choices_survive_a_kernel_restart(tmp_path: Path) -> None:
    state = tmp_path / "speed.json"
    first = made(tmp_path, state=state)
    first.sizes.value, first.precisions["tf32"].value, first.measure.value = "64", True, "run"
    again = made(tmp_path, state=state)
    assert (again.sizes.value, again.precisions["tf32"].value, again.measure.value) == ("64", True, "run")


def test_every_control_has_text(tmp_path: Path) -> None:
    panel = made(tmp_path)
    buttons = [panel.start, panel.stop, panel.code.button]
    assert all(control.description for control in [*panel.controls.values(), *buttons])
    assert Workbench(tmp_path, None).titles[-1] == "Speed"


# ---------------------------------------------------------------------------------------------- the course


def test_rows_come_one_by_one_after_the_plan(tmp_path: Path) -> None:
    fake = Fake(hold=1)
    panel = made(tmp_path, fake)
    panel.start.click()
    assert fake.held.wait(60)
    assert panel.progress.max == 4 and panel.progress.value == 1
    assert panel.status.text.startswith("row 2 of 4") and "about 2 h 00 min" in panel.status.text
    assert "getting ready" in panel.status.text and panel.start.disabled and not panel.stop.disabled
    lines = lines_of(panel.view.value)
    assert "now: getting ready" in lines[3] and "waiting" in lines[4]
    fake.go.set()
    assert panel.job is not None and panel.job.wait(60)
    assert panel.progress.value == 4 and not panel.start.disabled and panel.stop.disabled
    assert panel.status.text.startswith("done: 4 rows") and "1 row could not be measured" in panel.status.text
    assert panel.report.complete and panel.report.rows == ROWS


def test_stop_keeps_what_is_done_and_waits_for_no_row(tmp_path: Path) -> None:
    fake = Fake(hold=2)
    panel = made(tmp_path, fake)
    panel.start.click()
    assert fake.held.wait(60)
    panel.stop.click()
    assert "Stopping" in panel.status.text
    fake.go.set()
    assert panel.job is not None and panel.job.wait(60) and panel.job.error is None
    assert fake.ended and panel.report.rows == ROWS[:2] and not panel.report.complete
    assert panel.status.text.startswith("stopped after 2 of 4 rows") and not panel.status.is_error
    assert "not done" in panel.view.value and "stopped after 2 of 4 rows" in panel.copy.html
    panel.stop.click()  # nothing goes on any more
    assert panel.status.text.startswith("stopped after")


def test_a_problem_on_the_way_keeps_the_rows(tmp_path: Path) -> None:
    fake = Fake(hold=1, error=yolov9kit.KitError("the device is gone"))
    fake.go.set()
    panel = made(tmp_path, fake)
    finish(panel)
    assert panel.status.is_error and panel.status.text == "the device is gone"
    assert panel.report.rows == ROWS[:1] and "20.00" in panel.copy.html and not panel.start.disabled


def test_close_ends_a_benchmark(tmp_path: Path) -> None:
    fake = Fake(hold=0)
    panel = made(tmp_path, fake)
    panel.start.click()
    assert fake.held.wait(60)
    panel.close()
    fake.go.set()
    until(lambda: fake.ended)


def test_another_measure_is_drawn_without_measuring_again(tmp_path: Path) -> None:
    fake = Fake()
    panel = made(tmp_path, fake)
    finish(panel)
    fake.given = ()
    panel.measure.value = "run"
    assert "ms a run (network alone, median)" in panel.view.value and fake.given == ()


# ---------------------------------------------------------------------------------------------- bars and table


def test_the_star_is_for_the_fastest_that_lost_no_box() -> None:
    assert winners(ROWS, NETWORK) == {1}  # row 2 is faster and lost two, row 3 failed
    other = row("fp32", "eager", 30, batch=8)
    assert winners((*ROWS, other), NETWORK) == {1, 4}  # each size and batch has its own
    assert winners(ROWS[2:], NETWORK) == set()
    assert winners((replace(ROWS[0], difference=None),), NETWORK) == set()  # it is not known


def test_the_least_time_is_the_best_where_time_is_shown() -> None:
    assert winners(ROWS[:2], MEASURES["run"]) == {1}
    assert times_faster(ROWS[1], ROWS, MEASURES["run"]) == times_faster(ROWS[1], ROWS, NETWORK) == 4
    assert times_faster(ROWS[0], ROWS, NETWORK) == 1
    assert (
        times_faster(row("bf16", "eager", 5, batch=8), ROWS, NETWORK) is None
    )  # nothing plain of that batch


def test_the_cost_stands_beside_each_bar() -> None:
    plan = replace(made_report().plan, combinations=tuple(r.combination for r in ROWS))
    head, group, plain, best, lossy, second_group, failed, *refused = lines_of(
        speed_html(plan, ROWS, NETWORK)
    )
    assert "boxes lost" in head and "largest score change" in head and "AP" not in head
    assert "640 px, batch 1" in group and "640 px, batch 8" in second_group
    assert "★" in best and "200" in best and "4.00" in best and "0 of 60" in best and "0.0100" in best
    assert "2 of 60" in lossy and "emulated" in lossy and "★" not in lossy + plain
    assert "failed: not enough memory" in failed
    assert "not on this machine" in refused[0] and "mode onnx: is for a processor in fp32" in refused[1]
    assert RULE in speed_html(plan, ROWS, NETWORK) and RULE not in speed_html(plan, ROWS[2:3], NETWORK)


def test_the_longest_bar_of_a_size_and_batch_fills_its_place() -> None:
    rows = (*ROWS[:2], row("fp32", "eager", 800, batch=8))
    plan = replace(made_report().plan, combinations=tuple(r.combination for r in rows))
    bars = re.findall(r"width:([\d.]+)%;background", speed_html(plan, rows, NETWORK))
    assert bars == ["25.0", "100.0", "100.0"]


def test_what_is_unsteady_is_marked_as_in_the_librarys_table() -> None:
    assert ROWS[0].network is not None
    shaky = replace(ROWS[0], network=replace(ROWS[0].network, runs=spread([5.0, 50.0])))
    plan = replace(made_report().plan, combinations=(shaky.combination,))
    assert "~" in lines_of(speed_html(plan, (shaky,), NETWORK))[2]
    for rows, said in (((shaky,), True), (ROWS[:1], False)):
        assert ("unsteady" in speed_html(plan, rows, NETWORK)) == said
        assert any("unsteady" in line for line in benchmark_remarks(BenchmarkReport(plan, rows, 1.0))) == said


def test_the_tables_styles_are_its_own(root: Path) -> None:
    """The canvas and the charts of other tabs bring style sheets for the whole page."""
    plan = replace(made_report().plan, combinations=tuple(r.combination for r in ROWS))
    found = re.findall(r'class="([\w-]+)"', speed_html(plan, ROWS, NETWORK))
    sheets = "".join((root / "widgets" / f"{name}.css").read_text() for name in ("canvas", "chart"))
    assert found and not [name for name in found if re.search(rf"\.{name}\b(?!-)", sheets)]


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 1200])
def test_bars_are_as_long_as_they_say_and_no_page_is_too_narrow(width: int) -> None:
    plan = replace(made_report().plan, combinations=tuple(r.combination for r in ROWS))
    with launched() as chromium:
        tab = chromium.new_page(viewport={"width": width, "height": 600})
        page = Guarded(tab, "http://speed.test/")
        page.show(f"<!doctype html><meta charset=utf-8>{speed_html(plan, ROWS, NETWORK)}")
        whole, inside = tab.evaluate("[document.body.scrollWidth, document.documentElement.clientWidth]")
        bars = tab.evaluate(
            "[...document.querySelectorAll('td > span > span')].map((bar) => bar.offsetWidth)"
        )
        tab.keyboard.press("Tab")
        focused = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert page.errors == [] and whole <= inside
    assert bars[0] / bars[2] == pytest.approx(0.2, abs=0.02) and bars[1] / bars[2] == pytest.approx(
        0.8, abs=0.02
    )
    assert focused == "speed by precision and mode"  # what is too wide can be scrolled without a mouse


def test_columns_of_what_was_asked_for_alone() -> None:
    report = made_report()
    head = lines_of(speed_html(report.plan, report.rows, NETWORK))[0]
    assert "AP" in head and "of the floor" in head


def test_words_are_text_and_not_markup() -> None:
    failed = replace(ROWS[3], error="<b>no</b>")
    plan = replace(made_report().plan, combinations=(failed.combination,))
    assert "<b>no" not in speed_html(plan, (failed,), NETWORK)


def test_static_copy_needs_no_kernel(tmp_path: Path) -> None:
    panel = made(tmp_path)
    finish(panel)
    text = panel.copy.html
    assert "done: 4 rows" in text and "0 of 60" in text and "★" in text and "torch 2.14.1" in text
    assert "<script" not in text and "http" not in text and len(text) < 100_000


def test_the_code_shown_measures_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = made(tmp_path)
    panel.weights.value, panel.weights_path.value = OTHER, "some file.pt"
    panel.sizes.value, panel.device.value, panel.precisions["fp16"].value = "320, 640", "cpu", True
    panel.more["source"].value, panel.more["pictures"].value = "my pictures", 5
    wanted = yolov9kit.BenchmarkConfig(**panel.settings())
    program, fake = tmp_path / "shown.py", Fake()
    monkeypatch.setattr(
        "yolov9kit.benchmark.benchmark.run_benchmark", lambda *given, **_: fake(*given, lambda *_: None)
    )
    program.write_text(panel.code.python, encoding="utf-8")
    assert runpy.run_path(str(program))["report"].rows == ROWS and fake.given == ("some file.pt", wanted)
    fake.given = ()
    words = shlex.split(panel.code.command)
    assert words[0] == "yolov9kit" and main(words[1:]) == 1  # one of the made rows has failed
    assert fake.given == ("some file.pt", wanted)


# ---------------------------------------------------------------------------------------------- for real


def test_a_real_benchmark(tmp_path: Path, lively_weights: Path) -> None:
    panel = SpeedPanel(tmp_path, None)
    panel.weights.value, panel.weights_path.value = OTHER, str(lively_weights)
    panel.device.value, panel.sizes.value, panel.modes["auto"].value = "cpu", "64", False
    panel.precisions["bf16"].value, panel.precisions["tf32"].value = False, True
    for name, value in {"warm_up": 0, "runs": 3, "pictures": 2, "timed_pictures": 2}.items():
        panel.more[name].value = value
    finish(panel)
    assert panel.job is not None and panel.job.error is None
    (done,) = panel.report.rows
    assert str(done.combination) == "64 px, batch 1, fp32, eager" and done.network.runs.count == 3
    assert "★" in panel.view.value and "tensor cores" in panel.view.value
