"""Live training as a person meets it: start, watch, stop beside a busy cell, come back when the kernel is dead."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until
from yolov9kit import StepReport, attach, read_journal, runs

pytestmark = pytest.mark.browser

NOTEBOOK = "notebooks/05_live_training.ipynb"
PANEL, BUSY = 2, 4
LONG = 120.0


@pytest.fixture
def project(lab: Any) -> Iterator[Path]:
    """The folder of runs that the panel uses. What still trains when a test ends is ended."""
    folder = lab.folder / "runs" / "train"
    yield folder
    for one in runs(folder):
        run = attach(one.folder)
        if run.is_alive:
            run.kill()
            run.wait(30)


@pytest.fixture
def sample_boards(lab: Any, root: Path) -> None:
    """The notebooks look for their data beside them; in the copy that is served it is the project's."""
    target = lab.folder / "sample_data"
    if not target.exists():
        target.symlink_to(root / "sample_data")


def opened(visitor: Any) -> Any:
    """The notebook's panel with a small endless run in its controls; returns the output of its cell."""
    visitor.open(NOTEBOOK)
    visitor.run_cell(PANEL)
    panel = visitor.page.locator(".jp-Cell").nth(PANEL)
    for label, value in (("Image size", "64"), ("Batch", "8"), ("Epochs", "500")):
        field = panel.get_by_label(label, exact=True)
        field.fill(value)
        field.press("Enter")
    panel.get_by_label("Size", exact=True).select_option(label="t")
    return panel


def start(visitor: Any, project: Path) -> Any:
    before = {one.folder for one in runs(project)}
    visitor.page.locator(".jp-Cell").nth(PANEL).get_by_role("button", name="Start", exact=True).click()
    found = until(lambda: [r for r in runs(project) if r.folder not in before], "no run was started")
    run = attach(found[0].folder)
    until(lambda: steps(run.folder) >= 3, "the run makes no steps")
    return run


def steps(folder: Path) -> int:
    return sum(isinstance(report, StepReport) for report in read_journal(folder))


def test_start_watch_and_stop_beside_a_busy_cell(
    visit: Callable[..., Any], project: Path, sample_boards: None
) -> None:
    visitor = visit()
    panel = opened(visitor)
    run = start(visitor, project)
    chart = panel.locator(".yk-chart").first
    chart.wait_for()
    drawn = int(chart.get_attribute("data-rendered"))
    until(lambda: int(chart.get_attribute("data-rendered")) > drawn + 3, "the curves do not move")
    until(lambda: run.folder.name in panel.locator(".yk-run-words").inner_text(), "the run is not named")

    # another cell keeps the kernel busy: the button must not wait for it
    visitor.page.evaluate(
        f"""() => {{ const w = window.jupyterapp.shell.currentWidget;
        w.content.widgets[{BUSY}].model.sharedModel.setSource('import time\\ntime.sleep(600)');
        w.content.activeCellIndex = {BUSY}; window.jupyterapp.commands.execute('notebook:run-cell'); }}"""
    )
    visitor.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'"
    )
    panel.get_by_role("button", name="Stop", exact=True).click()
    assert run.wait(LONG) == "stopped"
    assert (run.folder / "state.safetensors").is_file() and (
        run.folder / "weights/last.safetensors"
    ).is_file()
    panel.locator(".yk-run-words", has_text="stopped").wait_for(timeout=30_000)
    visitor.evaluate("sessionContext.session.kernel.interrupt()")
    visitor.idle()
    visitor.evaluate("sessionContext.shutdown()")


def test_a_killed_kernel_ends_no_run_and_a_new_one_finds_it(
    visit: Callable[..., Any], project: Path, sample_boards: None
) -> None:
    visitor = visit()
    panel = opened(visitor)
    run = start(visitor, project)
    visitor.evaluate("context.save()")
    visitor.open(NOTEBOOK, fresh=False)  # a reload with a live kernel shows the same run, from its first step
    panel.locator(".yk-run-words", has_text=run.folder.name).wait_for(timeout=60_000)

    kernel = _process_of(visitor.evaluate("sessionContext.session.kernel.id"))
    os.kill(kernel, signal.SIGKILL)
    before = steps(run.folder)
    until(lambda: steps(run.folder) > before + 2, "the run ended with the kernel")
    visitor.open(NOTEBOOK, fresh=False)
    visitor.evaluate("sessionContext.restartKernel()")
    visitor.idle()
    visitor.run_cell(PANEL)  # the panel finds what is alive by itself
    panel.locator(".yk-run-words", has_text=run.folder.name).wait_for(timeout=60_000)
    panel.get_by_role("button", name="Stop", exact=True).click()
    assert run.wait(LONG) == "stopped"
    found = [report.step for report in read_journal(run.folder) if isinstance(report, StepReport)]
    assert found == list(range(1, len(found) + 1)) and len(found) > before
    visitor.evaluate("sessionContext.shutdown()")


def _process_of(kernel_id: str) -> int:
    """The process of a kernel: its connection file, named after the kernel, is one of its arguments."""
    import psutil

    (found,) = [
        p.pid
        for p in psutil.Process(os.getpid()).children(recursive=True)
        if f"kernel-{kernel_id}.json" in " ".join(p.cmdline())
    ]
    return found
