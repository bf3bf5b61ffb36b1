"""Drawn pictures to train on, and a cache that is not the user's."""

from pathlib import Path

import pytest

from tests.shapes import write_shapes


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data.yaml of a few pictures of shapes; tests only read them."""
    return write_shapes(tmp_path_factory.mktemp("shapes"))


@pytest.fixture(autouse=True)
def cache_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
