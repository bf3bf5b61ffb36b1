"""Folders of pictures without labels: they can be looked at, and training refuses them by name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from yolov9kit.data.dataset import open_dataset, refuse
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.data.formats.pictures import open_pictures
from yolov9kit.errors import DataError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.prepare import prepare

MakePicture = Callable[..., Path]


def touch(folder: Path, names: str) -> None:
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_every_picture_is_there_once_and_none_has_labels(tmp_path: Path) -> None:
    touch(tmp_path, "b.jpg a.PNG deep/er/c.webp notes.md .hidden.jpg")
    layout = open_pictures(tmp_path)
    assert layout is not None and layout.names == () and layout.splits == ("train",)
    files = layout.open("train")
    assert [path.relative_to(tmp_path).as_posix() for path in files.pictures] == [
        "a.PNG",
        "b.jpg",
        "deep/er/c.webp",
    ]
    assert files.label_paths == (None, None, None)
    (finding,) = layout.findings
    assert (finding.code, finding.severity, finding.path) == ("labels_absent", "error", tmp_path)
    assert "3 pictures" in finding.message and str(tmp_path / "a.txt") in finding.message


def test_folders_named_after_splits_are_splits(tmp_path: Path) -> None:
    touch(tmp_path, "train/a.jpg Valid/b.jpg images/test/c.jpg d.jpg")
    layout = open_pictures(tmp_path)
    assert layout is not None and layout.splits == ("train", "val", "test")
    assert [path.name for path in layout.open("valid").pictures] == ["b.jpg"]
    assert [f.code for f in layout.findings] == ["labels_absent", "place"]


def test_what_may_be_labels_is_told(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg README.txt readings.xml license.txt")
    layout = open_pictures(tmp_path)
    assert layout is not None
    assert [f.path.name for f in layout.findings if f.code == "place"] == ["readings.xml"]


def test_labels_outside_of_the_folder_are_pointed_at(tmp_path: Path) -> None:
    touch(tmp_path, "set/images/a.jpg set/labels/a.txt")
    (tmp_path / "set" / "labels" / "a.txt").write_text("0 .5 .5 .1 .1\n")
    layout = open_layout(tmp_path / "set" / "images")
    assert layout.kind == "pictures without labels"
    assert str(tmp_path / "set" / "labels" / "a.txt") in layout.findings[0].message
    assert open_layout(tmp_path / "set").kind == "YOLO without a yaml"


def test_without_pictures_it_is_nothing(tmp_path: Path) -> None:
    touch(tmp_path, "a.txt b.md")
    assert open_pictures(tmp_path) is None and open_pictures(tmp_path / "a.txt") is None


def test_all_are_backgrounds_and_the_error_names_the_folder(
    tmp_path: Path, make_picture: MakePicture, private_cache: Path
) -> None:
    for name in ("a.png", "b.jpg"):
        make_picture(f"set/{name}", size=(40, 32))
    data = open_dataset(tmp_path / "set")
    assert data.names == () and data.missing_labels == 2 and data.empty_labels == 0
    assert [sample.boxes.shape for sample in data.samples] == [(0, 4)] * 2
    with pytest.raises(DataError, match=f"{tmp_path / 'set'}: no labels were found for 2 pictures"):
        refuse(data)


@pytest.mark.parametrize("options", [{}, {"skip_bad_rows": True}, {"single_class": True}])
@pytest.mark.parametrize("folders", ["train val", "."])
def test_d14_training_refuses_them_whatever_it_is_told(
    tmp_path: Path, make_picture: MakePicture, options: dict[str, bool], folders: str
) -> None:
    for folder in folders.split():
        make_picture(f"set/{folder}/a.png", size=(40, 32))
    config = TrainConfig(data=str(tmp_path / "set"), device="cpu", **options)
    with pytest.raises(
        DataError, match=f"{tmp_path / 'set'}: no labels were found for . pictures?.*nothing to train"
    ):
        prepare(config)
