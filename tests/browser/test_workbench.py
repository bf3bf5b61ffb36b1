"""The workbench as a person meets it: run, look, move, page, compare, reload, restart."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.browser

NOTEBOOK = "notebooks/00_workbench.ipynb"
CELL = 1
DETECT = ".jp-OutputArea .yk-detect"


def ready(page: Any, timeout_ms: int = 60_000) -> Any:
    """The canvas, once it shows a picture."""
    canvas = page.locator(f"{DETECT} .yk-canvas").first
    canvas.wait_for(timeout=timeout_ms)
    page.wait_for_selector(f"{DETECT} .yk-canvas[data-state=ready]", timeout=timeout_ms)
    return canvas


def detect(visit: Any, timeout_ms: int = 180_000) -> Any:
    """Press Detect and wait for the end."""
    visit.page.locator(DETECT).get_by_role("button", name="Detect", exact=True).click()
    visit.page.wait_for_selector(f"{DETECT} .yk-status:has-text('done:')", timeout=timeout_ms)
    return ready(visit.page)


def shown(canvas: Any) -> list[int]:
    """How many boxes each side shows."""
    return [int(n) for n in canvas.get_attribute("data-shown").split()]


def after(canvas: Any, act: Callable[[], object]) -> None:
    """Do something and wait until the canvas has drawn again: the event it causes, then one look."""
    before = int(canvas.get_attribute("data-rendered"))
    act()
    deadline = time.monotonic() + 10
    while int(canvas.get_attribute("data-rendered")) == before:
        assert time.monotonic() < deadline, "the canvas was not drawn again"
        time.sleep(0.02)


def set_number(canvas: Any, label: str, value: str) -> None:
    field = canvas.get_by_label(label, exact=True)

    def type_it() -> None:
        field.fill(value)
        field.press("Enter")

    after(canvas, type_it)


def test_first_minute(visit: Callable[..., Any]) -> None:
    """The sample weights find defects on the sample pictures, without a choice made or a file fetched."""
    visitor = visit()
    visitor.open(NOTEBOOK)
    visitor.run_cell(CELL)
    canvas = detect(visitor)
    assert canvas.get_attribute("data-page") == "0"
    before = shown(canvas)[0]
    assert before >= 6  # of the eight defects on the first board
    visitor.kernel_messages.clear()
    set_number(canvas, "Confidence, number", "0.8")
    fewer = shown(canvas)[0]
    set_number(canvas, "NMS IoU, number", "0.3")
    assert shown(canvas)[0] <= fewer < before
    slider = canvas.get_by_label("Confidence", exact=True)
    after(canvas, lambda: slider.press("ArrowLeft"))
    assert shown(canvas)[0] >= 0 and visitor.kernel_messages == []  # all of it happened in the page
    canvas.get_by_role("button", name="Next", exact=True).click()
    visitor.page.wait_for_selector(".yk-canvas[data-page='1'][data-state=ready]")
    assert "comm_msg" in visitor.kernel_messages  # paging asks the kernel for the next picture

    visitor.page.locator(DETECT).get_by_role("button", name="Show code").click()
    code = visitor.page.locator(f"{DETECT} .yk-code pre").first
    code.wait_for()
    assert "yolov9-t-pcb.safetensors" in code.inner_text()


def test_reload_and_restart(visit: Callable[..., Any]) -> None:
    visitor = visit()
    visitor.open(NOTEBOOK)
    visitor.run_cell(CELL)
    page = visitor.page
    page.locator(DETECT).get_by_label("Image size").fill("320")
    page.locator(DETECT).get_by_label("Image size").press("Enter")
    canvas = detect(visitor)
    set_number(canvas, "Confidence, number", "0.55")
    visitor.evaluate("context.save()")
    page.wait_for_timeout(500)
    visitor.open(NOTEBOOK, fresh=False)  # reload with a live kernel
    canvas = ready(page)
    assert canvas.get_by_label("Confidence, number", exact=True).input_value() == "0.55"
    assert page.locator(DETECT).get_by_label("Image size").input_value() == "320"
    assert page.locator(".jp-OutputArea details summary", has_text="Static copy").count() == 1

    visitor.evaluate("sessionContext.session.kernel.restart()")
    visitor.idle()
    visitor.run_cell(CELL)
    page.locator(DETECT).get_by_label("Image size").wait_for()
    assert page.locator(DETECT).get_by_label("Image size").input_value() == "320"  # from panel_state.json
    visitor.evaluate("sessionContext.shutdown()")


def test_real_weights_on_real_boards(visit: Callable[..., Any], shared: Path) -> None:
    folder = shared / "checkpoints"
    visitor = visit()
    visitor.open(NOTEBOOK)
    visitor.run_cell(CELL)
    page = visitor.page
    page.locator(DETECT).get_by_label("Weights").select_option(label="another file")
    page.locator(DETECT).get_by_label("File", exact=True).fill(str(folder / "official-yolov9-t-deeppcb.pt"))
    page.locator(DETECT).get_by_role("combobox", name="Pictures").select_option(label="folder or file")
    page.locator(DETECT).get_by_label("Path", exact=True).fill(str(folder / "images"))
    page.locator(DETECT).get_by_label("Image size").fill("640")
    page.locator(DETECT).get_by_label("Compare with").select_option(label="bf16")
    canvas = detect(visitor)
    set_number(canvas, "Confidence, number", "0.05")
    wanted = json.loads((folder / "detections.json").read_text())["detections"][
        "official-yolov9-t-deeppcb.pt"
    ]
    names = sorted(wanted)
    wrong = total = 0
    for i, name in enumerate(names):
        if i:
            canvas.locator("canvas").first.press("ArrowRight")
            page.wait_for_selector(f".yk-canvas[data-page='{i}'][data-state=ready]")
            page.wait_for_timeout(500)  # the counts follow with the next drawn frame
        total += len(wanted[name])
        wrong += abs(shown(canvas)[0] - len(wanted[name]))
    assert len(names) == 16 and wrong <= 1 and total == 213  # one pair overlaps by 0.70001
    with page.expect_download() as download:
        canvas.get_by_role("button", name="Save JSON").click()
    record = json.loads(Path(download.value.path()).read_text())
    boxes = np.array([d["box"] for d in _detections(record)])
    expected = np.array(wanted[names[-1]])[:, :4].clip(0, 640)
    np.testing.assert_allclose(boxes[: len(expected)], expected, atol=0.5)
    assert re.search(r"matched \d+", canvas.inner_text())


def _detections(record: Any) -> list[dict]:
    """The first list called ``detections`` in a saved file."""
    if isinstance(record, dict):
        if isinstance(record.get("detections"), list):
            return record["detections"]
        record = list(record.values())
    for item in record if isinstance(record, list) else []:
        if found := _detections(item):
            return found
    return []


@pytest.mark.parametrize(("width", "dark"), [(800, True)])
def test_narrow_and_dark_pages_show_every_control(visit: Callable[..., Any], width: int, dark: bool) -> None:
    visitor = visit(width=width, dark=dark)
    visitor.open(NOTEBOOK)
    if dark:
        visitor.page.evaluate(
            "() => window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})"
        )
    visitor.run_cell(CELL)
    canvas = detect(visitor)
    output = visitor.page.locator(".jp-Cell").nth(CELL).bounding_box()
    for name in ("Previous", "Next", "Save picture", "Save JSON"):
        box = canvas.get_by_role("button", name=name, exact=True).bounding_box()
        assert output["x"] <= box["x"] and box["x"] + box["width"] <= output["x"] + output["width"]
