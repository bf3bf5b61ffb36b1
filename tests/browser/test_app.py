"""The workbench as a page of Voila: the same panels, no code, and nothing that leaves the machine."""

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from yolov9kit import attach, runs

pytestmark = pytest.mark.browser


@pytest.fixture
def app(tmp_path: Path, root: Path) -> Iterator[tuple[str, Path]]:
    """Address and folder of a page that is being served."""
    folder = tmp_path / "mine"
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "XDG_CACHE_HOME")
    environment = os.environ | {name: str(tmp_path / name.lower()) for name in names}
    environment |= {"PYTHONPATH": str(root)}
    command = [
        sys.executable,
        "-m",
        "yolov9kit",
        "app",
        "--no-browser",
        f"--port={port}",
        f"--folder={folder}",
    ]
    if os.geteuid() == 0:
        command += ["--", "--Voila.ip=127.0.0.1"]
    log = (tmp_path / "voila.log").open("w")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            assert server.poll() is None and time.monotonic() < deadline, (tmp_path / "voila.log").read_text()
            try:
                urllib.request.urlopen(f"{url}/voila/static/", timeout=2).close()
            except urllib.error.HTTPError:
                break  # it answers, if only with a 404
            except OSError:
                time.sleep(0.2)
            else:
                break
        yield url, folder
    finally:
        server.terminate()
        server.wait(30)
        log.close()
        for one in runs(folder / "runs" / "train"):
            if (run := attach(one.folder)).is_alive:
                run.kill()


def test_the_panels_train_without_code_and_without_the_network(browser: Any, app: tuple[str, Path]) -> None:
    url, folder = app
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    outside: list[str] = []
    errors: list[str] = []
    ours = re.compile(rf"({re.escape(url)}|ws://127\.0\.0\.1|data:|blob:)")
    page.on("request", lambda request: None if ours.match(request.url) else outside.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url)
    page.get_by_role("button", name="Detect", exact=True).wait_for(timeout=90_000)
    page.get_by_text("Train", exact=True).first.click()
    panel = page.locator(".yk-train")
    for label, value in (("Image size", "64"), ("Batch", "8"), ("Epochs", "500")):
        field = panel.get_by_label(label, exact=True)
        field.fill(value)
        field.press("Enter")
    panel.get_by_label("Size", exact=True).select_option(label="t")
    panel.get_by_role("button", name="Start", exact=True).click()
    panel.locator(".yk-run-words", has_text="step 3").wait_for(timeout=90_000)
    panel.locator(".yk-chart").first.wait_for()
    panel.get_by_role("button", name="Stop", exact=True).click()
    panel.locator(".yk-run-words", has_text="stopped").wait_for(timeout=60_000)
    (one,) = runs(folder / "runs" / "train")
    assert one.state == "stopped" and one.planned_epochs == 500
    assert page.locator(".jp-InputArea-editor, .CodeMirror").count() == 0  # no code
    assert outside == [] and errors == []
    context.close()
