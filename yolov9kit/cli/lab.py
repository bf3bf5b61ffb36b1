"""``yolov9kit lab``: JupyterLab with the workbench notebook open. Nothing of it leaves the machine."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from yolov9kit.cli.parsing import Parser
from yolov9kit.errors import KitError

NOTEBOOK = "00_workbench.ipynb"

# JupyterLab asks its makers for news and newer versions, and offers extensions from PyPI: none of that here
OFFLINE = (
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.news_url=None",
    "--LabApp.extension_manager=readonly",
)


def lab(words: list[str], _script: bool) -> int:
    parser = Parser(
        prog="yolov9kit lab",
        description="Open the workbench in JupyterLab; what follows -- goes to JupyterLab as it is. "
        "Does what `make workbench` does where there is no make.",
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address instead of opening it")
    parser.add_argument("--port", type=int, default=8888, help="(default 8888, or the next free one)")
    parser.add_argument(
        "--folder", type=Path, help="where the notebook lies or is put (default: the project's)"
    )
    parser.add_argument("further", nargs="*", metavar="-- ARGUMENT", help="arguments of JupyterLab")
    args = parser.parse_args(words)
    notebook = workbench_notebook(args.folder)
    if os.environ.get("JUPYTERHUB_API_TOKEN"):
        print(f"A JupyterHub server runs already. Open {notebook} in it.")
        return 0
    return become(lab_command(notebook, args.port, args.no_browser, args.further), os.environ)


def become(command: list[str], environment: Mapping[str, str]) -> int:
    """Go on as another program, the exit code of which is returned where that takes a second process."""
    sys.stdout.flush()
    if sys.platform == "win32":  # there an exec would leave the terminal at once
        return subprocess.call(command, env=environment)
    os.execve(command[0], command, environment)


def lab_command(notebook: Path, port: int, no_browser: bool, further: list[str]) -> list[str]:
    """The command that serves the notebook's folder and opens the notebook in it."""
    root = notebook.parent.parent if notebook.parent.name == "notebooks" else notebook.parent
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={root}", f"--port={port}", *OFFLINE]
    command += [f"--LabApp.default_url=/lab/tree/{notebook.relative_to(root).as_posix()}"]
    if no_browser:
        command.append("--no-browser")
    if sys.platform != "win32" and os.geteuid() == 0:
        command.append("--allow-root")
    return command + further


def workbench_notebook(folder: Path | None) -> Path:
    """The project's notebook, or where only the package is installed a small one of the same cells.

    Raises:
        KitError: the folder cannot be written.
    """
    own = Path(__file__).parents[2] / "notebooks" / NOTEBOOK
    if folder is None and own.is_file():
        return own
    target = (folder or Path.cwd()).absolute() / NOTEBOOK
    if not target.exists():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(own.read_text(encoding="utf-8") if own.is_file() else _SMALL, encoding="utf-8")
        except OSError as error:
            raise KitError(f"{target}: cannot be written ({error.strerror})") from None
    return target


_SMALL = """{"cells": [{"cell_type": "code", "execution_count": null, "id": "workbench", "metadata": {}, "outputs": [],
 "source": ["from widgets import Workbench\\n", "\\n", "Workbench()"]}],
 "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
 "nbformat": 4, "nbformat_minor": 5}
"""
