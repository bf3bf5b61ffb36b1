"""The picture lists of Pascal VOC."""

from pathlib import Path

import pytest

from tests.data.formats.voc_files import box, opened, pairs, touch, write, xml


def lists(folder: Path, **texts: str) -> None:
    main = folder / "ImageSets" / "Main"
    main.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (main / f"{name}.txt").write_text(text, encoding="utf-8")


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    touch(tmp_path, "JPEGImages/a.jpg JPEGImages/b.jpg JPEGImages/c.jpg")
    write(tmp_path, Annotations__a=xml(box()), Annotations__b=xml(box("dog")))
    return tmp_path


def names_of(folder: Path, split: str) -> list[str]:
    return [picture.name for picture in opened(folder).open(split).pictures]


def test_lists_tell_the_splits_in_their_order(listed: Path) -> None:
    lists(
        listed,
        train="b\r\na\r\n\r\n",
        val="\ufeffc".encode().decode("utf-8"),
        cat_train="c 1",
        trainval="a\nb\nc",
    )
    layout = opened(listed)
    assert layout.splits == ("train", "val") and layout.findings == ()
    assert names_of(listed, "train") == ["b.jpg", "a.jpg"] and names_of(listed, "val") == ["c.jpg"]
    assert layout.open("val").label_paths == (None,)
    assert layout.open("train").sources == (listed / "ImageSets" / "Main" / "train.txt",)


@pytest.mark.parametrize("name", ["trainval", "default"])
def test_a_list_of_everything_is_the_training_split(listed: Path, name: str) -> None:
    lists(listed, **{name: "a\nb\nc\n", "test": "a"})
    assert opened(listed).splits == ("train", "test")
    assert names_of(listed, "train") == ["a.jpg", "b.jpg", "c.jpg"]


@pytest.mark.parametrize(
    "line", ["a.jpg", "a  1", "a -1", '"a"', "./a", ".\\a", "# comment\na", " a ", "a 0"]
)
def test_a_line_may_be_written_in_many_ways(listed: Path, line: str) -> None:
    lists(listed, train=f"{line}\nb\nc")
    assert names_of(listed, "train") == ["a.jpg", "b.jpg", "c.jpg"]


def test_a_name_with_blanks_is_one_name(listed: Path) -> None:
    touch(listed, "JPEGImages/x.jpg")
    (listed / "JPEGImages" / "a 1.jpg").touch()
    lists(listed, train="a 1\nx\nb\nc\na")
    assert names_of(listed, "train") == ["a 1.jpg", "x.jpg", "b.jpg", "c.jpg", "a.jpg"]


def test_lines_without_a_picture_repeated_ones_and_pictures_in_no_list_are_told(listed: Path) -> None:
    lists(listed, train="a\nmissing\na\n")
    layout = opened(listed)
    missing, repeated = layout.open("train").findings
    assert (missing.code, missing.severity, missing.line) == ("picture_missing", "error", 2)
    assert missing.path == listed / "ImageSets" / "Main" / "train.txt" and missing.value == "missing"
    assert repeated.code == "picture_repeated" and repeated.path.name == "a.jpg"
    (unnamed,) = layout.findings
    assert (unnamed.code, unnamed.value) == ("picture_unnamed", "2")


def test_several_years_are_one_set(tmp_path: Path) -> None:
    for year in ("VOC2007", "VOC2012"):
        touch(tmp_path / year, "JPEGImages/a.jpg")
        write(tmp_path / year, Annotations__a=xml(box()))
        lists(tmp_path / year, train="a\n")
    assert pairs(tmp_path) == {
        f"{y}/JPEGImages/a.jpg": f"{y}/Annotations/a.xml" for y in ("VOC2007", "VOC2012")
    }
