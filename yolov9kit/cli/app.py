"""``yolov9kit app``: the workbench as a page without code, served by Voila. Nothing of it leaves the machine."""

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from yolov9kit.cache import cache_folder
from yolov9kit.cli.lab import become
from yolov9kit.cli.parsing import Parser
from yolov9kit.errors import KitError

TEMPLATES = Path(__file__).parent
"""Holds ``voila/templates/yolov9kit``: Voila's page without what it would load from the network."""


def app(words: list[str], _script: bool) -> int:
    parser = Parser(
        prog="yolov9kit app",
        description="Open the workbench as a page without code, for people who do not program; what follows -- goes to "
        "Voila as it is. Needs the package voila.",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address instead of opening it")
    parser.add_argument("--port", type=int, default=8866, help="(default 8866)")
    parser.add_argument(
        "--folder", type=Path, default=Path(), help="where weights, pictures and runs lie (default: here)"
    )
    parser.add_argument("further", nargs="*", metavar="-- ARGUMENT", help="arguments of Voila")
    args = parser.parse_args(words)
    if find_spec("voila") is None:
        raise KitError("the package voila is missing: pip install voila")
    if not args.folder.is_dir():
        raise KitError(f"{args.folder}: no such folder")
    command, environment = app_command(
        app_notebook(args.folder.absolute()), args.port, args.no_browser, args.further
    )
    return become(command, environment)


def app_command(
    notebook: Path, port: int, no_browser: bool, further: list[str]
) -> tuple[list[str], dict[str, str]]:
    """The command that serves the notebook, and the environment in which Voila finds our template."""
    command = [sys.executable, "-m", "voila", str(notebook), f"--port={port}", "--template=yolov9kit"]
    command += ["--no-browser"] if no_browser else []
    before = os.environ.get("JUPYTER_PATH")
    path = os.pathsep.join([str(TEMPLATES), before] if before else [str(TEMPLATES)])
    return command + further, os.environ | {"JUPYTER_PATH": path}


def app_notebook(folder: Path) -> Path:
    """A notebook of one cell, the workbench of ``folder``, in the user's cache folder.

    Raises:
        KitError: it cannot be written.
    """
    target = cache_folder() / "app" / "workbench.ipynb"
    state = folder / "panel_state.json"
    source = f"from widgets import Workbench\n\nWorkbench({str(folder)!r}, {str(state)!r})"
    cell: dict[str, object] = {
        "cell_type": "code",
        "execution_count": None,
        "id": "workbench",
        "metadata": {},
        "outputs": [],
    }
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    record = {
        "cells": [{**cell, "source": source}],
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(record), encoding="utf-8")
    except OSError as error:
        raise KitError(f"{target}: cannot be written ({error.strerror})") from None
    return target
