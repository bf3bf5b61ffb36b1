"""Label files whose picture is gone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from yolov9kit.data.findings import Finding
from yolov9kit.data.orphans import find_orphans

Files = Callable[..., None]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    def make(names: str, text: str = "0 .5 .5 .1 .1\n") -> None:
        for name in names.split():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text if name.endswith(".txt") else "", encoding="utf-8")

    return make


def orphans(tmp_path: Path, pictures: str) -> list[tuple[str, str]]:
    found = find_orphans(tmp_path / name for name in pictures.split())
    assert all((finding.code, finding.severity) == ("label_orphan", "warning") for finding in found)
    return [(finding.path.relative_to(tmp_path).as_posix(), finding.value) for finding in found]


def test_a_label_without_a_picture_is_named(tmp_path: Path, files: Files) -> None:
    files(
        "images/train/a.jpg images/train/b.c.png labels/train/a.txt labels/train/b.c.txt labels/train/z.txt"
    )
    files("labels/train/y.txt", "")
    assert orphans(tmp_path, "images/train/a.jpg") == [("labels/train/y.txt", ""), ("labels/train/z.txt", "")]
    (first, _) = find_orphans([tmp_path / "images/train/a.jpg"])
    assert f"without a picture in {tmp_path / 'images/train'}" in first.message


def test_pictures_of_another_split_count_too(tmp_path: Path, files: Files) -> None:
    files("flat/a.jpg flat/b.jpg flat/a.txt flat/b.txt images/a.jpg images/b.jpg labels/a.txt labels/b.txt")
    assert orphans(tmp_path, "flat/a.jpg images/a.jpg") == []


@pytest.mark.parametrize(
    "name", ["classes.txt", "names.txt", "train.txt", ".a.txt", "__MACOSX/b.txt", "b.json", "b.cache"]
)
def test_other_files_are_no_labels(tmp_path: Path, files: Files, name: str) -> None:
    files(f"images/a.jpg labels/a.txt labels/{name} images/{name}")
    assert orphans(tmp_path, "images/a.jpg") == []


@pytest.mark.parametrize("text", ["images/a.jpg\n", "Read me: 3 boards", "\ufeff# classes", "é"])
def test_a_text_that_begins_with_no_number_is_none(tmp_path: Path, files: Files, text: str) -> None:
    files("a.jpg a.txt")
    files("notes.txt", text)
    assert orphans(tmp_path, "a.jpg") == []


def test_a_folder_below_is_looked_at_as_well(tmp_path: Path, files: Files) -> None:
    files("images/a.jpg images/sub/b.jpg labels/a.txt labels/sub/b.txt labels/sub/c.txt")
    assert orphans(tmp_path, "images/a.jpg") == [("labels/sub/c.txt", "")]
    assert orphans(tmp_path, "images/a.jpg images/sub/b.jpg") == [("labels/sub/c.txt", "")]


def test_a_folder_whose_pictures_are_gone_is_one_finding(tmp_path: Path, files: Files) -> None:
    files("images/a.jpg labels/a.txt labels/sub/b.txt labels/sub/c.txt")
    assert orphans(tmp_path, "images/a.jpg") == [("labels/sub", "2")]
    (finding,) = find_orphans([tmp_path / "images/a.jpg"])
    assert isinstance(finding, Finding) and str(tmp_path / "images/sub") in finding.message


def test_links_in_circles_end(tmp_path: Path, files: Files) -> None:
    files("images/a.jpg labels/a.txt labels/b.txt")
    (tmp_path / "labels" / "round").symlink_to(tmp_path / "labels")
    (tmp_path / "labels" / "self.txt").symlink_to("self.txt")
    assert orphans(tmp_path, "images/a.jpg") == [("labels/b.txt", "")]
