"""The data set panel as a person meets it: open a set with faults, press a finding, look, turn pages, reload."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

NOTEBOOK = "notebooks/data.ipynb"
CODE = "from widgets import DatasetPanel\n\npanel = DatasetPanel('../sets', None)\npanel"
PANEL = ".jp-OutputArea .yk-data"


@pytest.fixture
def sets(lab: Any, root: Path) -> None:
    """The set with faults, and a notebook that looks at it."""
    shutil.copytree(root / "sample_data" / "broken", lab.folder / "sets" / "broken", dirs_exist_ok=True)
    cell = {
        "cell_type": "code",
        "id": "a",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": CODE,
    }
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = {"cells": [cell], "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    (lab.folder / NOTEBOOK).write_text(json.dumps(notebook))


def ready(page: Any, number: int = 0) -> None:
    """The grid shows all pictures of a page."""
    page.wait_for_selector(f'{PANEL} .yk-grid[data-page="{number}"][data-state="ready"]', timeout=60_000)


def names(page: Any) -> list[str]:
    return [name.strip() for name in page.locator(f"{PANEL} .yk-tile .yk-name").all_inner_texts()]


def test_a_finding_leads_to_its_row_and_the_panel_outlives_a_reload(
    visit: Callable[..., Any], sets: None, root: Path
) -> None:
    visitor = visit(height=1200)
    visitor.open(NOTEBOOK)
    visitor.run_cell(0)
    page = visitor.page
    panel = page.locator(PANEL)
    panel.get_by_label("Data set", exact=True).select_option(label="broken")
    panel.get_by_role("button", name="Open", exact=True).click()
    ready(page)
    assert "training refuses" in panel.locator(".yk-status").inner_text()
    expected = json.loads((root / "sample_data" / "broken" / "expected.json").read_text())
    listed = {line.get_attribute("data-key") for line in panel.locator("[data-key=codes] .yk-line").all()}
    assert listed == {one["code"] for one in expected} - {"label_orphan"}  # which is about no picture

    # pages by keyboard: the second one is there before it is asked for
    first = names(page)
    assert len(first) == 24
    panel.locator(".yk-tile").nth(2).focus()
    page.keyboard.press("PageDown")
    ready(page, 1)
    assert names(page) and not set(names(page)) & set(first)
    page.keyboard.press("PageUp")
    ready(page, 0)
    assert names(page) == first

    # a finding, by keyboard, and the row that it means
    panel.locator(".yk-line[data-key=label_class_range]").press("Enter")
    page.wait_for_selector(f"{PANEL} .yk-chip")
    ready(page)
    assert names(page) == ["label_class_range.jpg"]
    assert panel.locator(".yk-total").inner_text() == "1 of 28 pictures"
    assert panel.locator(".yk-tile .yk-badge.yk-error").inner_text() == "1"  # its number in the picture
    panel.locator(".yk-tile").press("Enter")
    page.wait_for_selector(f'{PANEL} .yk-grid[data-open="0"]')
    line = next(one["line"] for one in expected if one["code"] == "label_class_range")
    side = panel.locator(".yk-side").inner_text()
    assert f"labels/train/label_class_range.txt:{line}" in side and "99 0.4" in side
    panel.get_by_role("button", name="Show box").click()
    page.keyboard.press("Escape")
    panel.locator(".yk-tile").wait_for()

    # what training sees is refused with the reason, as training itself would
    panel.get_by_role("button", name="What training sees").click()
    panel.get_by_role("button", name="Show", exact=True).click()
    page.wait_for_selector(f"{PANEL} .yk-status.yk-error", timeout=60_000)
    panel.get_by_role("button", name="Pictures and labels").click()
    ready(page)

    visitor.evaluate("context.save()")
    page.wait_for_timeout(500)
    visitor.open(NOTEBOOK, fresh=False)  # reload with a live kernel
    ready(page)
    assert names(page) == ["label_class_range.jpg"]
    assert panel.locator(".yk-line[data-key=label_class_range]").get_attribute("aria-pressed") == "true"
    panel.locator(".yk-chip").first.click()
    page.wait_for_function(f"() => document.querySelectorAll('{PANEL} .yk-tile').length === 24")
    ready(page)
    copy = page.locator(".jp-OutputArea details summary", has_text="Static copy")
    assert copy.count() == 1 and "broken" in copy.inner_text()
    visitor.evaluate("sessionContext.shutdown()")
