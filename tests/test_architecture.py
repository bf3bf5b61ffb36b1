"""Who may know whom: imports flow one way, and the library keeps its manners. Reads source only."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FRONT_DOOR = "__init__"
ABOVE = {"cli", "cluster", "__main__"}  # thin, on top of everything

# A room is a module or a folder of yolov9kit. A new one is added here, with its reason in CONTRIBUTING.md.
BELOW = {
    "errors": set(),
    "cache": set(),
    "types": {"errors"},
    "geometry": {"errors"},
    "device": {"errors", "types"},
    "machine": {"errors", "cache", "device"},
    "cuda_graph": {"errors"},
    "kernels": {"errors", "geometry"},
    "telemetry": {"errors", "machine"},
    "download": {"errors"},
    "model": {"errors", "types", "geometry", "device"},
    "data": {"errors", "types", "geometry", "cache"},
    "doctor": {"errors", "types", "cache", "data"},
    "rewrite": {"errors", "types", "cache", "data", "doctor"},
    "draw": {"errors", "types"},
    "output": {"errors", "types", "draw", "data"},
    "samples": {"errors", "cache", "data"},
    "loss": {"errors", "types", "geometry", "model"},
    "infer": {
        *("errors", "types", "geometry", "cache", "device", "machine"),
        *("cuda_graph", "kernels", "model", "data"),
    },
    "evaluation": {
        "errors",
        "types",
        "geometry",
        "device",
        "model",
        "data",
        "draw",
        "output",
        "loss",
        "infer",
    },
    "benchmark": {
        *("errors", "types", "device", "machine", "telemetry", "samples"),
        *("model", "data", "infer", "evaluation", "output", "draw"),
    },
    "export": {"errors", "types", "device", "model", "infer"},
    "explore": {"errors", "types", "data", "doctor", "draw"},
    "training": {
        *("errors", "types", "device", "machine", "cuda_graph", "kernels", "doctor"),
        *("data", "model", "loss", "infer", "output", "evaluation", "telemetry"),
    },
}
ROOMS: dict[str, set[str]] = (
    BELOW
    | {"cluster": set(BELOW), "cli": {*BELOW, "cluster", FRONT_DOOR}, "__main__": {"cli"}}
    | {FRONT_DOOR: set(BELOW)}
)

NOT_IN_THE_LIBRARY = {"IPython", "ipywidgets", "anywidget", "traitlets", "widgets", "jupyterlab", "notebook"}
# IPython for its display alone: a static copy beside a live view is an output of the cell, not a widget
IN_WIDGETS = {"yolov9kit", "widgets", "ipywidgets", "anywidget", "traitlets", "plotly", "numpy", "IPython"}
GUESSING = {"hasattr", "getattr", "setattr", "globals", "eval", "exec"}

LIBRARY = sorted((ROOT / "yolov9kit").rglob("*.py"))
PANELS = sorted((ROOT / "widgets").rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "yolov9kit").parts[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of each import, those inside functions too. ``from a import b`` gives ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{start}.{alias.name}") for alias in node.names)


def room_imported(full_name: str) -> str | None:
    """The room of ours that an import reaches; the front door where it names no room."""
    package, _, rest = full_name.partition(".")
    if package != "yolov9kit":
        return None
    room = rest.partition(".")[0]
    return room if room in ROOMS else FRONT_DOOR


def trespasses(room: str, source: str) -> list[str]:
    """What the source text of a file in ``room`` does that it must not."""
    tree, found = ast.parse(source), []
    for line, full_name in imports(tree):
        reached = room_imported(full_name)
        if full_name.startswith("."):
            found.append(f"line {line}: relative import of {full_name}")
        elif full_name.startswith("__future__."):
            found.append(f"line {line}: {full_name}, which hides shapes from the checks")
        elif full_name.partition(".")[0] in NOT_IN_THE_LIBRARY:
            found.append(f"line {line}: the library knows no notebook, but imports {full_name}")
        elif reached is not None and reached != room and reached not in ROOMS[room]:
            found.append(f"line {line}: {room} must not know {reached} ({full_name})")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in GUESSING:
            found.append(f"line {node.lineno}: {node.func.id}() guesses; say what is meant")
    return found


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_every_room_is_in_the_table(path: Path) -> None:
    room = room_of(path)
    assert room in ROOMS, (
        f"{name_of(path)}: '{room}' is a new room. Add it to ROOMS in {__file__}, with a reason"
    )


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_a_room_knows_only_those_below_it(path: Path) -> None:
    assert trespasses(room_of(path), path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", PANELS, ids=name_of)
def test_a_panel_knows_only_the_front_door(path: Path) -> None:
    for line, full_name in imports(ast.parse(path.read_text(encoding="utf-8"))):
        package, _, rest = full_name.partition(".")
        place = f"{name_of(path)}:{line}: {full_name}"
        assert package in IN_WIDGETS or package in sys.stdlib_module_names, f"{place} is not for panels"
        assert package != "yolov9kit" or "." not in rest, f"{place}: panels use the front door"


def test_the_table_has_no_cycle() -> None:
    done: set[str] = set()
    while ready := {room for room, known in ROOMS.items() if room not in done and known <= done}:
        done |= ready
    assert done == set(ROOMS)


@pytest.mark.parametrize(
    ("room", "source", "complaint"),
    [
        ("model", "from yolov9kit.infer.runner import Runner", "must not know infer"),
        ("model", "from yolov9kit import infer", "must not know infer"),
        ("model", "def f():\n    import yolov9kit.data.image", "must not know data"),
        ("data", "import yolov9kit", "must not know __init__"),
        ("data", "from yolov9kit import detect", "must not know __init__"),
        ("draw", "from .types import Detections", "relative import"),
        ("draw", "from . import types", "relative import"),
        ("infer", "if True:\n    import ipywidgets as w", "knows no notebook"),
        ("infer", "from widgets.canvas import Canvas", "knows no notebook"),
        ("geometry", "from __future__ import annotations", "hides shapes"),
        ("device", "x = getattr(torch, 'xpu', None)", "guesses"),
    ],
)
def test_a_trespass_is_seen(room: str, source: str, complaint: str) -> None:
    assert [complaint in found for found in trespasses(room, source)] == [True]


@pytest.mark.parametrize(
    ("room", "source"),
    [
        ("infer", "from yolov9kit.model import decode\nfrom yolov9kit.infer.predict import detect"),
        ("cli", "import yolov9kit\nfrom yolov9kit.machine import inspect_machine"),
        ("model", "model.eval()\nimport torch"),
    ],
)
def test_what_is_allowed_passes(room: str, source: str) -> None:
    assert trespasses(room, source) == []
