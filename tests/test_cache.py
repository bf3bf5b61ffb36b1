"""The cache folder: the user's own, wherever the system says it is."""

from pathlib import Path

import pytest

from yolov9kit.cache import cache_folder


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        ("/some where", "/some where/yolov9kit"),
        ("relative", "/home/me/.cache/yolov9kit"),
        ("", "/home/me/.cache/yolov9kit"),
    ],
)
def test_the_variable_counts_where_it_is_absolute(
    variable: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", variable)
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path(expected)


def test_without_the_variable_it_lies_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder() == Path("/home/me/.cache/yolov9kit")
