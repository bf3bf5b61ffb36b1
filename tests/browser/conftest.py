"""JupyterLab in headless Chromium, on a copy of the notebooks, cut off from everything but this machine."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import launched
from yolov9kit.cli.lab import OFFLINE

WIDGET = "window.jupyterapp?.shell?.currentWidget"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with launched() as chromium:
        yield chromium


@dataclass
class Lab:
    """A running JupyterLab: ``folder`` holds the notebooks it serves."""

    url: str
    token: str
    folder: Path

    def address(self, notebook: str, fresh: bool = True) -> str:
        return f"{self.url}/doc/tree/{notebook}?token={self.token}{'&reset' if fresh else ''}"


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Lab]:
    base = tmp_path_factory.mktemp("jupyter")
    served = base / "root"
    shutil.copytree(root / "notebooks", served / "notebooks")
    settings = base / "settings" / "@jupyterlab"
    for name, content in {
        "apputils-extension/notification": {
            "fetchNews": "false",
            "checkForUpdates": False,
            "doNotDisturbMode": True,
        },
        "notebook-extension/tracker": {"windowingMode": "none"},
    }.items():
        path = settings / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    names = [
        "JUPYTER_CONFIG_DIR",
        "JUPYTER_DATA_DIR",
        "JUPYTER_RUNTIME_DIR",
        "IPYTHONDIR",
        "JUPYTERLAB_WORKSPACES_DIR",
    ]
    environment = os.environ | {name: str(base / name.lower()) for name in names}
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(base / "settings")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [
        *(
            sys.executable,
            "-m",
            "jupyterlab",
            "--allow-root",
            "--no-browser",
            "--ip=127.0.0.1",
            f"--port={port}",
        ),
        *(
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={token}",
            f"--ServerApp.root_dir={served}",
        ),
        *(*OFFLINE, "--LabApp.expose_app_in_browser=True"),
    ]
    log = (base / "server.log").open("w")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=served)
    try:
        started = Lab(f"http://127.0.0.1:{port}", token, served)
        _wait_until_it_answers(started, server, base / "server.log")
        yield started
    finally:
        server.terminate()
        server.wait(30)
        log.close()


def _wait_until_it_answers(lab: Lab, server: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            urllib.request.urlopen(f"{lab.url}/api/status?token={lab.token}", timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"JupyterLab did not answer: {log.read_text()[-2000:]}")


@dataclass
class Visit:
    """A page that notes what must not happen: requests off the machine and errors of scripts."""

    page: Any
    lab: Lab
    outside: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    kernel_messages: list[str] = field(default_factory=list)

    def note(self, url: str) -> None:
        if not url.startswith((self.lab.url, "data:", "blob:")):
            self.outside.append(url)

    def open(self, notebook: str, fresh: bool = True) -> None:
        """Open a notebook; ``fresh`` forgets earlier tabs and choices."""
        if fresh:
            (self.lab.folder / "notebooks" / "panel_state.json").unlink(missing_ok=True)
        self.page.goto(self.lab.address(notebook, fresh))
        self.idle()

    def idle(self) -> None:
        self.page.wait_for_function(
            f"() => {WIDGET}?.sessionContext?.session?.kernel?.status === 'idle'", timeout=120_000
        )

    def evaluate(self, call: str) -> Any:
        """Call something of the notebook's own widget in the page."""
        return self.page.evaluate(f"() => {WIDGET}.{call}")

    def run_cell(self, index: int) -> None:
        """Run one cell of the notebook and wait until its prompt shows a number."""
        self.page.evaluate(
            f"() => {{ const w = {WIDGET}; w.content.activeCellIndex = {index};"
            " window.jupyterapp.commands.execute('notebook:run-cell'); }"
        )
        prompt = f"document.querySelectorAll('.jp-Cell')[{index}].querySelector('.jp-InputPrompt').innerText"
        self.page.wait_for_function(f"() => /\\[\\d+\\]/.test({prompt})", timeout=120_000)


@pytest.fixture
def visit(browser: Any, lab: Lab) -> Iterator[Callable[..., Visit]]:
    """Opens pages; afterwards none of them may have left the machine or raised."""
    visits: list[Visit] = []
    contexts = []

    def make(width: int = 1280, height: int = 900, dark: bool = False) -> Visit:
        scheme = "dark" if dark else "light"
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        made = Visit(page, lab)
        ours = (lab.url, lab.url.replace("http", "ws"), "data:", "blob:")
        page.on(
            "request", lambda r, ours=ours: None if r.url.startswith(ours) else made.outside.append(r.url)
        )
        page.on("pageerror", lambda error, made=made: made.errors.append(str(error)))

        def watch(socket: Any) -> None:
            def sent(frame: Any) -> None:
                text = frame if isinstance(frame, str) else bytes(frame).decode("utf-8", "replace")
                made.kernel_messages.extend(t for t in ("comm_msg", "execute_request") if t in text)

            socket.on("framesent", sent)

        page.on("websocket", watch)
        visits.append(made)
        return made

    yield make
    for made in visits:
        assert made.outside == [] and made.errors == []
    for context in contexts:
        context.close()
