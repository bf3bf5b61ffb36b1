"""The odd and broken pictures through the command line and the panel: the run goes on and lists what failed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from widgets import DetectPanel
from yolov9kit import KitError, read_image


@pytest.fixture(scope="module")
def hostile(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str], int]:
    """A list file of all of them, those that the reader refuses, and how many there are."""
    folder = shared / "data" / "hostile"
    known = {"index.json", "README.md"}
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in known)
    refused = set()
    for path in files:
        try:
            read_image(path)
        except KitError:
            refused.add(str(path))
    listing = tmp_path_factory.mktemp("hostile") / "all.txt"
    listing.write_text("".join(f"{path}\n" for path in files), encoding="utf-8")
    assert len(files) == 111 and len(refused) == 29
    return listing, refused, len(files)


def test_command_line(hostile: tuple[Path, set[str], int], lively_weights: Path, tmp_path: Path) -> None:
    """Peak memory of the whole process, torch included, stays under 1.5 GiB."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux tells the peak memory of one process, without that of its parent")
    listing, refused, total = hostile
    words = ["detect", "--weights", lively_weights, "--source", listing, "--img", "64", "--device", "cpu"]
    words += ["--nosave", "--quiet", "--json", tmp_path / "found.json"]
    program = (
        "import re, sys\nfrom yolov9kit.cli import main\ncode = main(sys.argv[1:])\n"
        "print(code, re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])"
    )
    command = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    code, peak_kib = map(int, done.stdout.split())
    content = json.loads((tmp_path / "found.json").read_text())
    assert {f["path"] for f in content["failed"]} == refused and code == 1
    assert len(content["images"]) == total - len(refused)
    assert all(Path(f["path"]).name in f["error"] and "\n" not in f["error"] for f in content["failed"])
    assert "Traceback" not in done.stderr and peak_kib < 1.5 * 2**20


def test_panel(hostile: tuple[Path, set[str], int], lively_weights: Path, tmp_path: Path) -> None:
    listing, refused, total = hostile
    panel = DetectPanel(tmp_path, None)
    panel.weights.value, panel.weights_path.value = "another file", str(lively_weights)
    panel.pictures.value, panel.pictures_path.value = "folder or file", str(listing)
    panel.image_size.value, panel.device.value = 64, "cpu"
    panel.run()
    assert panel.job is not None and panel.job.wait(300) and panel.job.error is None, panel.status.text
    assert len(panel.canvas.pictures) == total - len(refused)
    assert panel.progress.value == total and f"{len(refused)} pictures could not be read" in panel.status.text
    assert not panel.status.is_error
