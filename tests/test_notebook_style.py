"""A notebook is a page: short, runnable, without stored output except text marked for comparison."""

import ast
import json
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells(path: Path, kind: str) -> list[dict]:
    return [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == kind]


def source(cell: dict) -> str:
    return "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_is_short(path: Path) -> None:
    code = cells(path, "code")
    lengths = [len(source(c).splitlines()) for c in code]
    assert len(code) + len(cells(path, "markdown")) <= 20
    assert statistics.median(lengths) <= 4 and max(lengths) <= 12
    for cell in code:
        tree = ast.parse(source(cell))
        assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.walk(tree))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_stores_only_what_is_compared(path: Path) -> None:
    """nbval passes a notebook without any stored output: at least one cell must have one to compare."""
    compared = 0
    for cell in cells(path, "code"):
        marked = source(cell).startswith("# NBVAL_CHECK_OUTPUT")
        assert bool(cell["outputs"]) is marked, source(cell)
        assert not marked or "keep_output" in cell["metadata"].get("tags", [])
        compared += marked
    assert compared >= 1
    assert path.stat().st_size < 200_000 and "widgets" not in json.loads(path.read_text())["metadata"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_leads_on(path: Path) -> None:
    """It opens with what you will be able to do and ends with where to go next."""
    text = [source(c) for c in cells(path, "markdown")]
    assert text[0].startswith("# ") and ".ipynb)" in text[-1]


def test_u08_a_saved_run_is_small(tmp_path: Path) -> None:
    """Outputs, static copies and widget state of a run stay under 2 MB."""
    import nbformat
    from nbclient import NotebookClient

    for path in NOTEBOOKS:
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
        target = tmp_path / path.name
        nbformat.write(notebook, target)
        assert target.stat().st_size < 2_000_000, f"{path.name}: {target.stat().st_size:,} bytes"
