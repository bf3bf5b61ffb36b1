"""Importing does nothing: it loads no heavy package, starts no thread, reads no environment, sets nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"torch", "torchvision", "numpy", "cv2", "PIL", "plotly", "pydantic", "IPython", "ipywidgets", "onnx"}

PROBE = """
import json, logging, os, sys, threading, warnings

class Watched(type(os.environ)):
    '''Notes each variable read by a module in this folder, itself or through a function that it calls.'''
    read = []
    def __getitem__(self, key):
        frame = sys._getframe(1)
        while frame and "importlib" not in frame.f_code.co_filename:
            file = frame.f_code.co_filename
            if file.startswith(os.getcwd()) and "site-packages" not in file:
                Watched.read.append(key)
                break
            frame = frame.f_back
        return super().__getitem__(key)

os.environ.__class__ = Watched
before = dict(os.environ.copy()), list(warnings.filters), list(logging.root.handlers), os.getcwd()
import MODULE
after = dict(os.environ.copy()), list(warnings.filters), list(logging.root.handlers), os.getcwd()
print(json.dumps({
    "loaded": sorted(sys.modules),
    "threads": [thread.name for thread in threading.enumerate()],
    "read": Watched.read,
    "unchanged": before == after,
}))
"""


def observe(module: str, root: Path) -> dict[str, object]:
    """Import ``module`` in a fresh interpreter and tell what that did."""
    program = PROBE.replace("MODULE", module)
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("module", ["yolov9kit", "yolov9kit.cli", "yolov9kit.machine", "yolov9kit.errors"])
def test_import_loads_nothing_heavy_and_touches_nothing(module: str, root: Path) -> None:
    seen = observe(module, root)
    assert HEAVY & set(seen["loaded"]) == set()
    assert seen["threads"] == ["MainThread"]
    assert seen["read"] == []
    assert seen["unchanged"]


def test_the_probe_sees_what_it_looks_for(tmp_path: Path) -> None:
    loud = """
import pathlib, threading, warnings
import numpy
pathlib.Path.home()
warnings.simplefilter("error")
threading.Thread(target=threading.Event().wait, daemon=True, name="worker").start()
"""
    (tmp_path / "loud.py").write_text(loud)
    seen = observe("loud", tmp_path)
    assert "numpy" in seen["loaded"]
    assert "worker" in seen["threads"]
    assert "HOME" in seen["read"]
    assert not seen["unchanged"]
