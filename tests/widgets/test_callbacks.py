"""U12: an error planted in a callback, of a button or of a job's thread, fails the test suite."""

import subprocess
import sys
from pathlib import Path

import pytest

PLANTED = {
    "click": "panel.start.on_click(lambda _: 1 / 0)\n    panel.stop.on_click(lambda _: 1 / 0)\n    panel.stop.click()",
    "observer": "panel.image_size.observe(lambda _: 1 / 0, 'value')\n    panel.image_size.value = 96",
    "thread": "job = Job((i for i in range(3)), lambda _: None, lambda error: 1 / 0)\n    job.wait()",
    "nothing": "panel.image_size.value = 96",
}


@pytest.mark.parametrize("place", PLANTED)
def test_u12_an_error_in_a_callback_fails_the_suite(place: str, root: Path, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((root / "tests/widgets/conftest.py").read_text(encoding="utf-8"))
    (tmp_path / "test_planted.py").write_text(
        "from widgets import DetectPanel\nfrom widgets.job import Job\n\n\n"
        f"def test_planted(tmp_path):\n    panel = DetectPanel(tmp_path, None)\n    {PLANTED[place]}\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(root / "pyproject.toml"), str(tmp_path)]
    done = subprocess.run([*command, f"--rootdir={tmp_path}"], cwd=root, capture_output=True, text=True)
    assert done.returncode == (0 if place == "nothing" else 1), done.stdout[-3000:]
    assert "ZeroDivisionError" in done.stdout or place == "nothing"
