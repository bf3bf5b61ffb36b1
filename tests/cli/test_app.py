"""The workbench as a page: what is served, with which template, and what is said where it cannot be."""

import json
import os
import sys
from pathlib import Path

import pytest

from yolov9kit.cli import app, main


def test_serves_one_cell_with_the_template_that_stays_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JUPYTER_PATH", "/elsewhere")
    calls: list[tuple[list[str], dict[str, str]]] = []
    monkeypatch.setattr("os.execve", lambda program, command, env: calls.append((command, env)))
    folder = tmp_path / "it's mine"
    folder.mkdir()
    main(["app", "--no-browser", "--port", "9001", "--folder", str(folder), "--", "--debug"])
    ((command, environment),) = calls
    assert command[:3] == [sys.executable, "-m", "voila"] and command[-1] == "--debug"
    assert {"--template=yolov9kit", "--port=9001", "--no-browser"} <= set(command)
    first, rest = environment["JUPYTER_PATH"].split(os.pathsep)
    assert (Path(first) / "voila/templates/yolov9kit/index.html.j2").is_file() and rest == "/elsewhere"
    (cell,) = json.loads(Path(command[3]).read_text())["cells"]
    made: list[tuple[str, ...]] = []
    code = cell["source"].replace("from widgets import Workbench", "")
    exec(code, {"Workbench": lambda *arguments: made.append(arguments)})
    assert made == [(str(folder), str(folder / "panel_state.json"))]


def test_the_template_names_no_address() -> None:
    for path in app.TEMPLATES.joinpath("voila").rglob("*"):
        if path.is_file():
            assert "http" not in path.read_text(encoding="utf-8"), path


def test_what_is_missing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["app", "--folder", str(tmp_path / "nowhere")]) == 1
    assert "no such folder" in capsys.readouterr().err
    monkeypatch.setattr(app, "find_spec", lambda name: None)
    assert main(["app"]) == 1
    assert "pip install voila" in capsys.readouterr().err
