"""Opening the workbench where there is no make."""

import json
import sys
from pathlib import Path

import pytest

from yolov9kit.cli import lab, main


def test_opens_the_projects_notebook_offline(root: Path) -> None:
    notebook = lab.workbench_notebook(None)
    assert notebook == root / "notebooks" / "00_workbench.ipynb"
    command = lab.lab_command(notebook, 9000, True, ["--debug"])
    assert command[:3] == [sys.executable, "-m", "jupyterlab"]
    assert f"--ServerApp.root_dir={root}" in command
    assert "--LabApp.default_url=/lab/tree/notebooks/00_workbench.ipynb" in command
    assert {*lab.OFFLINE, "--no-browser", "--port=9000", "--debug"} <= set(command)


def test_puts_a_notebook_where_only_the_package_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = lab.workbench_notebook(tmp_path / "new")
    json.loads(notebook.read_text())
    json.loads(lab._SMALL)
    notebook.write_text("mine")
    assert lab.workbench_notebook(tmp_path / "new").read_text() == "mine"  # never written over


def test_inside_jupyterhub_no_second_server_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "x")
    assert main(["lab"]) == 0 and "Open" in capsys.readouterr().out


def test_passes_itself_to_jupyterlab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
    calls: list[list[str]] = []
    monkeypatch.setattr("os.execve", lambda program, command, environment: calls.append(command))
    main(["lab", "--no-browser", "--port", "9001", "--", "--ServerApp.open_browser=False"])
    assert calls and calls[0][-1] == "--ServerApp.open_browser=False"
