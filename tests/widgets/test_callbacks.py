"""U12: an error planted in a callback, of a button or of a job's thread, fails the test suite."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

PLANTED = {
    "click": "panel.start.on_click(lambda _: 1 / 0)\n    panel.stop.on_click(lambda _: 1 / 0)\n    panel.stop.click()",
    "observer": "panel.image_size.observe(lambda _: 1 / 0, 'value')\n    panel.image_size.value = 96",
    "thread": "job = Job((i for i in range(3)), lambda _: None, lambda error: 1 / 0)\n    job.wait()",
    "nothing": "panel.image_size.value = 96",
}


@pytest.fixture(scope="module")
def suite(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A suite with one test for each place has run: why each test failed, empty where it passed."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "conftest.py").write_text((root / "tests/widgets/conftest.py").read_text(encoding="utf-8"))
    (folder / "test_planted.py").write_text(
        "from widgets import DetectPanel\nfrom widgets.job import Job\n"
        + "".join(
            f"\n\ndef test_{place}(tmp_path):\n    panel = DetectPanel(tmp_path, None)\n    {code}\n"
            for place, code in PLANTED.items()
        )
    )
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(root / "pyproject.toml"), str(folder)]
    command += [f"--rootdir={folder}", f"--junitxml={folder / 'report.xml'}"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout[-3000:]
    cases = ElementTree.parse(folder / "report.xml").iter("testcase")
    return {
        case.get("name", "").removeprefix("test_"): "\n".join(part.text or "" for part in case)
        for case in cases
    }


@pytest.mark.parametrize("place", PLANTED)
def test_u12_an_error_in_a_callback_fails_the_suite(place: str, suite: dict[str, str]) -> None:
    assert suite.keys() == PLANTED.keys()
    if place == "nothing":
        assert suite[place] == ""
    else:
        assert "ZeroDivisionError" in suite[place]
