"""Which picture a label file belongs to, and to which split."""

from pathlib import Path

import pytest

from tests.data.formats.voc_files import box, opened, pairs, touch, write, xml
from yolov9kit.errors import DataError


@pytest.mark.parametrize(
    ("picture", "label"),
    [
        ("a.jpg", "a"),
        ("images/a.jpg", "annotations/a"),
        ("JPEGImages/a.JPG", "Annotations/a"),
        ("images/a.jpg", "annotations/xmls/a"),
        ("sub/a.jpg", "sub/a"),
        ("Images/s1/a.png", "Annotations/s1/a"),
        ("images/a.jpg", "Annotations/any/a"),
        ("VOC2007/JPEGImages/a 1.v2.jpg", "VOC2007/Annotations/a 1.v2"),
        ("images/картинка #1.png", "labels/картинка #1"),
    ],
)
def test_the_picture_of_a_file_has_its_name(tmp_path: Path, picture: str, label: str) -> None:
    (tmp_path / picture).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / picture).touch()
    write(tmp_path, **{label: xml(box())})
    assert pairs(tmp_path) == {picture: f"{label}.xml"}


def test_the_same_name_in_two_folders_means_two_pictures(tmp_path: Path) -> None:
    touch(tmp_path, "JPEGImages/s1/a.jpg JPEGImages/s2/a.jpg")
    write(tmp_path, Annotations__s1__a=xml(box()), Annotations__s2__a=xml(box("dog")))
    assert pairs(tmp_path) == {f"JPEGImages/{s}/a.jpg": f"Annotations/{s}/a.xml" for s in ("s1", "s2")}


def test_the_folder_of_the_annotations_may_be_given(tmp_path: Path) -> None:
    touch(tmp_path, "JPEGImages/a.jpg")
    write(tmp_path, Annotations__a=xml(box()))
    (picture,) = opened(tmp_path / "Annotations").open("train").pictures
    assert picture == tmp_path / "JPEGImages" / "a.jpg"


def test_folders_named_after_splits_are_splits(tmp_path: Path) -> None:
    touch(tmp_path, "train/a.jpg train/b.jpg valid/c.jpg Test/d.jpg logo.png")
    write(tmp_path, train__a=xml(box()), valid__c=xml(box("dog")), Test__d=xml())
    layout = opened(tmp_path)
    assert layout.splits == ("train", "val", "test") and layout.names == ("cat", "dog")
    assert pairs(tmp_path) == {"train/a.jpg": "train/a.xml", "train/b.jpg": None}
    assert pairs(tmp_path, "val") == pairs(tmp_path, "valid") == {"valid/c.jpg": "valid/c.xml"}
    (finding,) = layout.findings
    assert finding.code == "picture_unnamed" and "logo.png" in finding.message
    with pytest.raises(DataError, match=r"no split 'night' \(splits: train, val, test\)"):
        layout.open("night")


def test_the_name_told_inside_counts_only_where_the_own_name_has_no_picture(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg b.jpg 007.jpg")
    write(
        tmp_path,
        a=xml(box(), filename="b.jpg"),
        x=xml(box("dog"), filename="C:\\pictures\\007.jpg"),
        y=xml(box("dog"), filename="b.jpg"),
    )
    assert pairs(tmp_path) == {"a.jpg": "a.xml", "b.jpg": "y.xml", "007.jpg": "x.xml"}
    (finding,) = opened(tmp_path).open("train").findings
    assert finding.code == "place" and finding.path == tmp_path / "a.xml" and "'b.jpg'" in finding.message


def test_files_without_a_picture_and_two_files_for_one_are_told(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg")
    write(tmp_path, a=xml(box()), gone=xml(box(), box("dog")), other=xml(box(), filename="a.jpg"))
    assert pairs(tmp_path) == {"a.jpg": "a.xml"}
    found = {f.path.name: f for f in opened(tmp_path).open("train").findings}
    assert {f.code for f in found.values()} == {"label_orphan"}
    assert "2 objects" in found["gone.xml"].message and "a.xml" in found["other.xml"].message


def test_two_pictures_of_one_name_share_a_file_unless_it_names_one(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg a.png")
    write(tmp_path, a=xml(box()))
    assert pairs(tmp_path) == {"a.jpg": "a.xml", "a.png": "a.xml"}
    (finding,) = opened(tmp_path).open("train").findings
    assert finding.code == "label_shared" and finding.path == tmp_path / "a.png"
    write(tmp_path, a=xml(box(), filename="a.png"))
    assert pairs(tmp_path) == {"a.jpg": None, "a.png": "a.xml"}


def test_pictures_of_masks_are_no_pictures(tmp_path: Path) -> None:
    touch(tmp_path, "JPEGImages/a.jpg SegmentationClass/a.png SegmentationObject/a.png")
    write(tmp_path, Annotations__a=xml(box()))
    assert pairs(tmp_path) == {"JPEGImages/a.jpg": "Annotations/a.xml"}


def test_no_picture_at_all_is_refused_with_the_first_file(tmp_path: Path) -> None:
    write(tmp_path, Annotations__a=xml(box()))
    with pytest.raises(DataError, match=r"split 'train': no picture was found: .*a\.xml: its picture"):
        opened(tmp_path).open("train")
