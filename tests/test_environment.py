"""One truth for dependencies: pyproject.toml. environment.yml repeats it and constraints.txt pins it."""

import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

# What every user of environment.yml must find there, whatever else the project comes to need.
PROMISED = ["torch", "torchvision", "jupyterlab", "ipywidgets", "opencv-python", "plotly", "pillow", "nbval"]


def parse(lines: list[str]) -> dict[str, Requirement]:
    requirements = [Requirement(line) for line in lines]
    by_name = {canonicalize_name(requirement.name): requirement for requirement in requirements}
    assert len(by_name) == len(requirements), "a package is listed twice"
    return by_name


@pytest.fixture(scope="module")
def project(root: Path) -> dict:
    return tomllib.loads((root / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def environment(root: Path) -> list:
    return yaml.safe_load((root / "environment.yml").read_text())["dependencies"]


@pytest.fixture(scope="module")
def pins(root: Path) -> dict[str, Version]:
    rows = (root / "constraints.txt").read_text().splitlines()
    pairs = [row.split("==") for row in rows if not row.startswith("#")]
    assert all(len(pair) == 2 for pair in pairs), "a row that is not NAME==VERSION"
    return {canonicalize_name(name): Version(version) for name, version in pairs}


def test_environment_yml_equals_pyproject(project: dict, environment: list) -> None:
    rows = environment[-1]["pip"]
    options = [row for row in rows if row.startswith("-")]
    assert options == ["-c constraints.txt", "-e ."]
    listed = parse([row for row in rows if row not in options])
    assert listed == parse(project["dependencies"] + project["optional-dependencies"]["dev"])
    assert set(PROMISED) <= set(listed)


def test_environment_yml_has_a_python_that_the_project_takes(project: dict, environment: list) -> None:
    python = next(row for row in environment if isinstance(row, str) and row.startswith("python"))
    assert Version(python.split("=")[-1]) in Requirement(f"python{project['requires-python']}").specifier


def test_constraints_pin_every_direct_dependency(project: dict, pins: dict[str, Version]) -> None:
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    direct = parse([row for group in groups for row in group])
    assert set(direct) - set(pins) == set(), "run `make constraints`"
    assert {name for name, wanted in direct.items() if pins[name] not in wanted.specifier} == set()


def test_constraints_leave_the_project_itself_out(project: dict, pins: dict[str, Version]) -> None:
    assert canonicalize_name(project["name"]) not in pins


def test_what_was_decided_against_is_not_pulled_in(pins: dict[str, Version]) -> None:
    """AGPL and GPL packages, and wheels that overwrite each other's files."""
    unwanted = {"ultralytics", "albumentationsx", "opencv-python-headless", "onnxruntime-gpu", "pynvml"}
    assert unwanted & set(pins) == set()
