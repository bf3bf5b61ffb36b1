"""Folders of pictures that no split names."""

from pathlib import Path

import pytest

from yolov9kit.data.checked import Checked
from yolov9kit.data.dataset import Dataset
from yolov9kit.doctor.unnamed import unnamed_folders


def dataset(split: str, folder: Path, *names: str) -> Dataset:
    """A split of one folder, with these pictures in it."""
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    checked = {folder / name: Checked((9, 9)) for name in names}
    return Dataset("set", split, ("nut",), (), checked=checked, sources=(folder,))


@pytest.mark.parametrize(("named", "other"), [("images/{}", "images/spare"), ("{}/images", "spare/images")])
def test_a_folder_beside_is_told_once_for_both_layouts(tmp_path: Path, named: str, other: str) -> None:
    sets = [dataset(split, tmp_path / named.format(split), "a.png", "b.JPG") for split in ("train", "val")]
    assert unnamed_folders(sets) == []
    (tmp_path / other).mkdir(parents=True)
    (tmp_path / other / "notes.txt").touch()
    assert unnamed_folders(sets) == []
    for name in ("d.jpg", "c.png"):
        (tmp_path / other / name).touch()
    (finding,) = unnamed_folders(sets)
    assert (finding.code, finding.path, finding.value) == ("picture_unnamed", tmp_path / other, "2")
    assert "c.png first" in finding.message


def test_pictures_on_a_list_are_named(tmp_path: Path) -> None:
    train = dataset("train", tmp_path / "images/train", "a.png")
    listed = tmp_path / "images/more/b.png"
    listed.parent.mkdir()
    listed.touch()
    val = Dataset(
        "set", "val", ("nut",), (), checked={listed: Checked((9, 9))}, sources=(tmp_path / "val.txt",)
    )
    assert unnamed_folders([train, val]) == []


def test_a_link_to_a_named_folder_is_that_folder(tmp_path: Path) -> None:
    train = dataset("train", tmp_path / "images/train", "a.png")
    (tmp_path / "images/again").symlink_to(tmp_path / "images/train")
    assert unnamed_folders([train]) == []
