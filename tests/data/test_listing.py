"""Which pictures a split names, and where their labels are looked for."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from yolov9kit.data.findings import Finding
from yolov9kit.data.listing import Listing, label_places, list_pictures
from yolov9kit.data.yaml_file import read_data_yaml
from yolov9kit.errors import DataError

ListFiles = Callable[..., Listing]


@pytest.fixture
def list_files(tmp_path: Path) -> ListFiles:
    """The listing of a data set with these empty files."""

    def listing(files: str, train: str, root: str = ".") -> Listing:
        for name in files.split():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        (tmp_path / "data.yaml").write_text(f"names: [a]\npath: {root}\ntrain: {train}", encoding="utf-8")
        return list_pictures(read_data_yaml(tmp_path), "train")

    return listing


def names(listing: Listing, tmp_path: Path) -> list[str]:
    return [picture.relative_to(tmp_path).as_posix() for picture in listing.pictures]


def findings(listing: Listing) -> list[tuple[str, str, int | None]]:
    return [(finding.code, finding.severity, finding.line) for finding in listing.findings]


def test_a_folder_is_searched_to_its_ground(list_files: ListFiles, tmp_path: Path) -> None:
    listing = list_files(
        "t/images/b.JPG t/images/a/c.Jpeg t/a.png t/labels/b.txt t/notes.md t/x.jpg.bak", "t"
    )
    assert names(listing, tmp_path) == ["t/a.png", "t/images/a/c.Jpeg", "t/images/b.JPG"]
    assert listing.sources == (tmp_path / "t",) and listing.findings == ()


def test_hidden_files_are_no_pictures(list_files: ListFiles, tmp_path: Path) -> None:
    listing = list_files("t/a.png t/._a.png t/.cache/b.png t/__MACOSX/t/c.png", "t")
    assert names(listing, tmp_path) == ["t/a.png"]


def test_the_data_set_itself_may_lie_in_a_hidden_folder(list_files: ListFiles, tmp_path: Path) -> None:
    assert names(list_files(".boards/t/a.png", ".boards/t"), tmp_path) == [".boards/t/a.png"]


def test_links_are_followed_but_not_in_circles(list_files: ListFiles, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a.png").touch()
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "link").symlink_to(tmp_path / "far")
    (tmp_path / "far" / "back").symlink_to(tmp_path / "t")
    assert names(list_files("t/b.png", "t"), tmp_path) == ["t/b.png", "t/link/a.png"]


def test_a_link_to_itself_is_no_folder(list_files: ListFiles, tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for name in ("round", "round.png"):
        (tmp_path / "t" / name).symlink_to(name)
    assert names(list_files("t/b.png", "t"), tmp_path) == ["t/b.png", "t/round.png"]


@pytest.mark.parametrize(
    "name", ["a b.png", "a#1.png", "#a.png", "été.PNG", "電路 板.v1.2.JPG", "-a.png", "a;b,c.png"]
)
def test_d23_odd_names_in_folders_and_lists(list_files: ListFiles, tmp_path: Path, name: str) -> None:
    for folder in ("t #1/ü", "l"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).touch()
    (tmp_path / "t.txt").write_bytes(f"\ufeff.\\l\\{name}\r\n".encode())
    listing = list_files("", "['t #1', t.txt]")
    assert names(listing, tmp_path) == [f"t #1/ü/{name}", f"l/{name}"] and listing.findings == ()


def test_several_entries_stay_in_order_and_each_picture_counts_once(
    list_files: ListFiles, tmp_path: Path
) -> None:
    listing = list_files("u/a.png t/b.png t/a/c.png d.png", "[u, t, d.png, t/a]")
    assert names(listing, tmp_path) == ["u/a.png", "t/a/c.png", "t/b.png", "d.png"]
    assert findings(listing) == [("picture_repeated", "warning", None)]
    assert listing.findings[0].path == tmp_path / "t" / "a" / "c.png"


@pytest.mark.parametrize(
    ("train", "said"), [("t", "no picture in"), ("n.md", "is no folder"), ("x", "tried")]
)
def test_no_picture_at_all_is_an_error(list_files: ListFiles, train: str, said: str) -> None:
    with pytest.raises(DataError, match=rf"data\.yaml: .*{said}"):
        list_files("t/a.txt n.md", train)


# --------------------------------------------------------------------------------------------------- lists


def test_a_list_names_pictures_in_its_own_order(list_files: ListFiles, tmp_path: Path) -> None:
    lines = ["./sub/b.png", "sub\\c d.png", "", f"{tmp_path}/lists/a.png", "  e.png  ", "../f.png"]
    (tmp_path / "lists" / "sub").mkdir(parents=True)
    (tmp_path / "lists" / "sub" / "c d.png").touch()
    (tmp_path / "lists" / "t.txt").write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
    listing = list_files("lists/sub/b.png lists/a.png r/e.png f.png", "../lists/t.txt", root="r")
    expected = ["lists/sub/b.png", "lists/sub/c d.png", "lists/a.png", "r/e.png", "f.png"]
    assert names(listing, tmp_path) == expected and listing.findings == ()


def test_the_folder_of_the_list_goes_before_the_root(list_files: ListFiles, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a.png", encoding="utf-8")
    assert names(list_files("a.png r/a.png", "../t.txt", root="r"), tmp_path) == ["a.png"]


def test_a_missing_picture_is_an_error_with_its_line(list_files: ListFiles, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("a.png\n\naway.png\n", encoding="utf-8")
    listing = list_files("a.png", "t.txt")
    (finding,) = listing.findings
    assert isinstance(finding, Finding) and finding.value == "away.png" and finding.path.name == "t.txt"
    assert (finding.code, finding.severity, finding.line) == ("picture_missing", "error", 3)
    assert str(tmp_path / "away.png") in finding.message


def test_a_list_of_missing_pictures_shows_what_was_tried(list_files: ListFiles, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("away.png\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"t\.txt:1: 'away\.png' was not found") as caught:
        list_files("a.png", "t.txt", root="r")
    assert all(str(tmp_path / place) in str(caught.value) for place in ("away.png", "r/away.png"))


def test_the_data_prefix_of_cvat_is_left_out_with_one_note(list_files: ListFiles, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("data/i/a.png\ndata/i/b.png\n", encoding="utf-8")
    listing = list_files("i/a.png i/b.png", "t.txt")
    assert names(listing, tmp_path) == ["i/a.png", "i/b.png"]
    assert findings(listing) == [("place", "note", None)] and "2 lines" in listing.findings[0].message
    (tmp_path / "t.txt").write_text("data\\i\\a.png\n", encoding="utf-8")
    assert "'data/' at the start of 1 line was" in list_files("", "t.txt").findings[0].message


def test_a_list_in_another_encoding_is_refused(list_files: ListFiles, tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_bytes(b"\xe9.png")
    with pytest.raises(DataError, match=r"t\.txt: byte 0 is no UTF-8 text"):
        list_files("a.png", "t.txt")


# -------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("picture", "places"),
    [
        ("/d/images/train/a.jpg", ("/d/labels/train/a.txt", "/d/images/train/a.txt")),
        ("/x/images/train/images/a.png", ("/x/images/train/labels/a.txt", "/x/images/train/images/a.txt")),
        ("/d/flat/a.jpg", ("/d/flat/a.txt",)),
        ("/d/images/a.b.c.jpg", ("/d/labels/a.b.c.txt", "/d/images/a.b.c.txt")),
        ("/d/my images/a.jpg", ("/d/my images/a.txt",)),
        ("/d/flat/images", ("/d/flat/images.txt",)),
        ("/d/Images/a.jpg", ("/d/Labels/a.txt", "/d/labels/a.txt", "/d/Images/a.txt")),
        ("/d/JPEGImages/a.jpg", ("/d/labels/a.txt", "/d/JPEGImages/a.txt")),
        ("/home/Images/d/images/a.jpg", ("/home/Images/d/labels/a.txt", "/home/Images/d/images/a.txt")),
    ],
)
def test_d15_the_last_images_of_the_path_becomes_labels(picture: str, places: tuple[str, ...]) -> None:
    assert tuple(map(os.fspath, label_places(Path(picture)))) == places
