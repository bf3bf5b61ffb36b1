"""The cache folder: the user's own, wherever the system says it is."""

import os
from pathlib import Path

import pytest

from yolov9kit.cache import cache_folder, keep


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


def test_a_file_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "a.bin"
    keep(target, lambda file: file.write_bytes(b"first"), most=2)
    assert target.read_bytes() == b"first"

    def breaks(file: Path) -> None:
        file.write_bytes(b"half")
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        keep(target, breaks, most=2)
    assert target.read_bytes() == b"first" and len(list(target.parent.iterdir())) == 1


def test_the_newest_files_of_a_kind_stay(tmp_path: Path) -> None:
    (tmp_path / "other.txt").touch()
    for number in range(4):
        path = tmp_path / f"{number}.bin"
        keep(path, lambda file: file.write_bytes(b"x"), most=2)
        os.utime(path, (number, number))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["2.bin", "3.bin", "other.txt"]


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    keep(tmp_path / "file" / "a.bin", lambda file: file.write_bytes(b"x"), most=2)
    assert (tmp_path / "file").is_file()
