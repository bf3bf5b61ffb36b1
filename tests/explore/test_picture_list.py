"""Lists of pictures go where they cannot spoil anything."""

from pathlib import Path

import pytest

from yolov9kit.errors import DataError
from yolov9kit.explore.picture_list import write_picture_list


def test_each_line_is_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pictures = [Path("bilder/été 1.png"), tmp_path / "b.png"]
    written = write_picture_list(pictures, Path("new/list.txt"), [])
    assert written == tmp_path / "new/list.txt"
    assert written.read_text("utf-8").splitlines() == [
        str(tmp_path / "bilder/été 1.png"),
        str(tmp_path / "b.png"),
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("list.csv", r"list\.csv: .* called \.txt"),
        ("there.txt", "exists already"),
        ("there.txt/a.txt", "cannot be"),
    ],
)
def test_a_target_that_cannot_be_is_refused(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("mine")
    with pytest.raises(DataError, match=reason):
        write_picture_list([Path("a.png")], tmp_path / name, [])
    assert (tmp_path / "there.txt").read_text() == "mine"


def test_an_empty_selection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no picture is selected"):
        write_picture_list([], tmp_path / "list.txt", [])
    assert not (tmp_path / "list.txt").exists()
