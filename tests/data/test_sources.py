"""Sources: whatever a user names is found or refused in one clear line, in order, and nothing is lost on the way."""

import os
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from yolov9kit.data.sources import Picture, PictureFile, Sequential, Source, open_source, read_picture
from yolov9kit.errors import KitError, PictureError, UsageError
from yolov9kit.types import Failed

MakePicture = Callable[..., Path]
MakeVideo = Callable[..., Path]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative names mean the test's own folder."""
    monkeypatch.chdir(tmp_path)


def names(source: Any, **settings_: Any) -> list[str]:
    """The file names of all pictures, each of which could be read."""
    return [Path(picture.path).name for picture in read(source, **settings_)]


def read(source: Any, **settings_: Any) -> list[Picture]:
    opened = open_source(source, **settings_)
    found = list(opened)
    assert all(isinstance(item, Picture) for item in found), found
    assert opened.total in (None, len(found))
    return found  # type: ignore[return-value]


def level(picture: Picture | Failed) -> int:
    assert isinstance(picture, Picture)
    return int(picture.pixels[0, 0, 0])


def refusal(source: Any, kind: type[KitError] = PictureError, **settings_: Any) -> str:
    with pytest.raises(kind) as caught:
        open_source(source, **settings_)
    assert len(str(caught.value).splitlines()) == 1 and str(caught.value).isprintable()
    return str(caught.value)


ODD_NAMES = [
    *("a b.png", "猫 图片.jpg", "Ünïcödé é.png", "v1.2.final.jpg", "UPPER.JPG", "Mixed.Jpeg", "b.TIF"),
    *(
        "a[1].jpg",
        "star*.png",
        "what?.jpg",
        "#1.png",
        "0.jpg",
        "-rf.png",
        "quote'\".png",
        "100%d.jpg",
        "back\\slash.png",
    ),
]


# --- one file


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("form", [str, Path, lambda path: path.name, lambda path: Path(path.name)])
def test_d23_a_picture_of_any_name(make_picture: MakePicture, name: str, form: Callable[[Path], Any]) -> None:
    given_name = form(make_picture(name, level=77))
    (picture,) = read(given_name)
    assert picture.path == str(given_name) and picture.frame is None and picture.video_fps is None
    assert abs(level(picture) - 77) < 3 and picture.decode_ms > 0


def test_a_picture_without_an_ending_is_known_by_its_content(make_picture: MakePicture) -> None:
    make_picture("a.png", level=5).rename("a")
    assert level(read("a")[0]) == 5


def test_notes_of_the_decoder_come_along() -> None:
    Image.new("L", (4, 4), 9).save("gray.png")
    assert read("gray.png")[0].notes == ("gray repeated in three channels",)


@pytest.mark.parametrize(
    "source", ["nowhere.jpg", Path("no/where"), "a\0b", "x" * 5000, "{}", "~nobody-of-this-name/a.jpg"]
)
def test_what_is_not_there_is_refused_with_the_place(source: Any, tmp_path: Path) -> None:
    message = refusal(source)
    assert "no such file or folder (looked in " in message and len(message) < 800
    assert refusal("nowhere.jpg").startswith("nowhere.jpg: ") and str(tmp_path) in refusal("nowhere.jpg")


@pytest.mark.parametrize("source", ["", "  ", "\n"])
def test_an_empty_name_is_a_usage_error(source: str) -> None:
    assert "name a picture, a video, a folder" in refusal(source, UsageError)


def test_home_is_understood_and_a_file_of_that_name_comes_first(
    make_picture: MakePicture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    make_picture("home/a.png", level=1)
    assert [level(p) for p in read("~/a.png")] == [level(p) for p in read("~/*.png")] == [1]
    make_picture("~/a.png", level=2)
    assert level(read("~/a.png")[0]) == 2


def test_links(make_picture: MakePicture) -> None:
    Path("link.png").symlink_to(make_picture("a.png"))
    assert names("link.png") == ["link.png"]
    Path("gone.png").symlink_to("nowhere.png")
    (item,) = open_source("gone.png")
    assert isinstance(item, Failed) and "gone.png" in item.error and "No such file" in item.error
    Path("loop.png").symlink_to("loop.png")
    (item,) = open_source("loop.png")
    assert isinstance(item, Failed) and "symbolic links" in item.error


# --- cameras and streams


@pytest.mark.parametrize("source", [0, "0", " 0 ", np.int64(0), "camera 0"])
def test_a_number_is_a_camera(source: Any) -> None:
    opened = open_source(source)
    assert (opened.description, opened.total) == ("camera 0", None)


def test_a_camera_that_does_not_exist_is_a_clear_failure() -> None:
    (item,) = open_source(98)
    assert item == Failed("camera 98", "camera 98: no such camera, or it is in use")


@pytest.mark.parametrize("source", [-1, 1000, 10**30])
def test_camera_numbers_that_cannot_be(source: int) -> None:
    assert "camera numbers go from 0 to 999" in refusal(source, UsageError)


def test_a_folder_called_0_is_not_taken_for_a_camera_or_the_other_way_round(
    make_picture: MakePicture,
) -> None:
    make_picture("0/a.png")
    assert "Write './0'" in refusal("0", UsageError)
    for source in ("./0", Path("0"), "0/", "0/a.png"):
        assert names(source) == ["a.png"]
    assert open_source(0).description == open_source("camera 0").description == "camera 0"


def test_a_path_object_is_never_a_camera() -> None:
    assert "no such file or folder" in refusal(Path("0"))


def test_the_name_of_a_stream_holds_no_password() -> None:
    opened = open_source("rtsp://user:secret@127.0.0.1:9/live@home")
    assert (opened.description, opened.total) == ("rtsp://127.0.0.1:9/live@home", None)


# --- folders


def test_d23_a_folder_gives_its_pictures_and_videos_in_order(
    make_picture: MakePicture, make_video: MakeVideo
) -> None:
    for name in ODD_NAMES:
        make_picture(f"so many 图/{name}")
    make_video("so many 图/film.MP4", frames=3)
    Path("so many 图/notes.txt").write_text("not a picture")
    make_picture("so many 图/below/z.png")
    assert names("so many 图") == sorted([*ODD_NAMES, *["film.MP4"] * 3])


def test_hidden_files_folders_that_look_like_pictures_and_links(make_picture: MakePicture) -> None:
    make_picture("f/a.png")
    make_picture("f/.hidden.png")
    make_picture("f/._a.png")
    make_picture("f/folder.jpg/inside.png")
    Path("f/link.png").symlink_to("a.png")
    Path("f/loop").symlink_to(".")
    assert names("f") == ["a.png", "link.png"]
    assert names("f/folder.jpg") == ["inside.png"]


def test_what_cannot_be_read_comes_as_failed_in_its_place_and_the_rest_follows(
    make_picture: MakePicture,
) -> None:
    for name in ("a.png", "c.png", "f.png"):
        make_picture(f"f/{name}")
    Path("f/b.jpg").write_bytes(b"\xff\xd8\xff no picture")
    Path("f/d.png").symlink_to("nowhere")
    os.mkfifo("f/e.png")
    Path("f/g.mp4").write_bytes(b"no video")
    opened = open_source("f")
    found = list(opened)
    assert opened.total == len(found) == 7
    assert [type(item) for item in found] == [Picture, Failed, Picture, Failed, Failed, Picture, Failed]
    for item, name in zip(found, "abcdefg", strict=True):
        assert Path(item.path).name.startswith(name)
        if isinstance(item, Failed):
            assert Path(item.path).name in item.error and len(item.error.splitlines()) == 1


def test_a_folder_without_pictures_is_refused_with_a_hint(make_picture: MakePicture) -> None:
    Path("f").mkdir()
    Path("f/readme.md").touch()
    assert "f: no pictures or videos among its 1 entries. Known endings: 3gp" in refusal("f")
    make_picture("f/train/a.png")
    make_picture("f/val/b.png")
    assert "2 lie one folder below: try 'f/**/*'" in refusal("f")
    assert names("f/**/*") == ["a.png", "b.png"]


def test_a_folder_that_cannot_be_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    Path("f").mkdir()
    monkeypatch.setattr(Path, "iterdir", denied)
    assert refusal("f") == "f: cannot be listed (Permission denied)"


def test_a_name_that_is_not_utf8(make_picture: MakePicture, tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.png")
    make_picture("f/a.png").rename(tmp_path / "f" / odd)
    (picture,) = read("f")
    assert picture.path == os.path.join("f", odd)
    Path("f", odd).write_bytes(b"")
    (item,) = open_source("f")
    assert isinstance(item, Failed) and item.error.startswith("f/caf\\udce9.png: ")
    assert "caf\\udce9.jpg: no such file" in refusal(os.fsdecode(b"caf\xe9.jpg"))


# --- patterns


def test_patterns(make_picture: MakePicture, make_video: MakeVideo) -> None:
    for name in (
        "a 1.png",
        "a 2.JPG",
        "猫.png",
        "b.1.2.png",
        "sub/c.png",
        "sub/deep/d.png",
        ".hidden/e.png",
        ".f.png",
    ):
        make_picture(f"my pictures/{name}")
    make_video("my pictures/v.avi", frames=2)
    Path("my pictures/z.txt").touch()
    everything = {
        "my pictures/*": ["a 1.png", "a 2.JPG", "b.1.2.png", "v.avi", "v.avi", "猫.png"],
        "my pictures/a*": ["a 1.png", "a 2.JPG"],
        "my pictures/*.JPG": ["a 2.JPG"],
        "my pictures/?.png": ["猫.png"],
        "my pictures/a [12].*": ["a 1.png", "a 2.JPG"],
        "my*/*/*.png": ["c.png"],
        "my pictures/**/*.png": ["a 1.png", "b.1.2.png", "c.png", "d.png", "猫.png"],
        "my pictures/**/d*": ["d.png"],
        "my pictures/**/deep/*": ["d.png"],
        "**/sub/**/*.png": ["c.png", "d.png"],
        "my pictures/sub/**": ["c.png", "d.png"],
        "./my pictures/../my pictures/a*": ["a 1.png", "a 2.JPG"],
        "my pictures/.hidden/*": ["e.png"],
        "my pictures/.*": [".f.png"],
    }
    for pattern, expected in everything.items():
        assert names(pattern) == names(Path(pattern)) == expected, pattern
        assert names(os.path.abspath(pattern)) == expected, pattern


def test_a_real_name_with_brackets_comes_before_the_pattern(make_picture: MakePicture) -> None:
    make_picture("a[1].jpg")
    make_picture("a1.jpg")
    assert names("a[1].jpg") == ["a[1].jpg"]
    assert names("a[12].jpg") == ["a1.jpg"]
    make_picture("data [v2]/x.png")
    make_picture("data [v2]/sub/y.png")
    assert names("data [v2]/*.png") == ["x.png"]
    assert names("data [v2]/**/*.png") == ["y.png", "x.png"]
    assert names("data [v2]") == ["x.png"]


def test_links_that_lead_back_end_and_linked_folders_are_seen_once(make_picture: MakePicture) -> None:
    make_picture("data/train/a.png")
    make_picture("elsewhere/b.png")
    Path("data/up").symlink_to("..")
    Path("data/here").symlink_to(".")
    Path("data/train/again").symlink_to("../train")
    Path("data/val").symlink_to(Path("elsewhere").absolute())
    assert sorted(names("data/**/*.png")) == ["a.png", "b.png"]


def test_a_pattern_without_pictures_is_refused_with_the_count() -> None:
    assert "x*.jpg: no such file, and as a pattern it matches 0 files and folders" in refusal("x*.jpg")
    Path("notes.txt").touch()
    Path("folder.jpg").mkdir()
    assert "matches 2 files and folders, none of them a picture or video" in refusal("*")


def test_a_folder_below_that_cannot_be_listed_is_told(
    make_picture: MakePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_picture("f/a/x.png")
    make_picture("f/b/y.png")
    scan = os.scandir

    def denied(folder: Any = ".") -> Any:
        if str(folder).endswith("b"):
            raise PermissionError(13, "Permission denied", folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", denied)
    found = list(open_source("f/**/*.png"))
    assert isinstance(found[0], Picture) and found[0].path == os.path.join("f", "a", "x.png")
    assert found[1:] == [
        Failed(os.path.join("f", "b"), f"{os.path.join('f', 'b')}: cannot be listed (Permission denied)")
    ]


# --- list files


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_list_in_the_forms_that_editors_write(
    make_picture: MakePicture, tmp_path: Path, ending: str, encoding: str
) -> None:
    for name in ("lists/near.png", "far 猫.png", "lists/sub/deep [1].png", "lists/~/tilde.png"):
        make_picture(name)
    absolute = make_picture("absolute.png")
    lines = [
        "# a comment",
        "near.png",
        "",
        "   ",
        f"  {absolute}  ",
        "far 猫.png",
        "./sub/deep [1].png",
        "  # more",
        "~/tilde.png",
    ]
    (tmp_path / "lists" / "all.TXT").write_bytes((ending.join(lines) + ending).encode(encoding))
    expected = ["near.png", "absolute.png", "far 猫.png", "deep [1].png", "tilde.png"]
    assert names("lists/all.TXT") == names(tmp_path / "lists" / "all.TXT") == expected


def test_a_list_made_on_windows(make_picture: MakePicture) -> None:
    make_picture("images/train/a b.png")
    make_picture("odd\\name.png")
    Path("all.txt").write_text("images\\train\\a b.png\n.\\images\\train\\a b.png\nodd\\name.png\n")
    assert names("all.txt") == ["a b.png", "a b.png", "odd\\name.png"]


def test_names_beside_the_list_come_before_those_of_the_working_folder(make_picture: MakePicture) -> None:
    make_picture("a.png", level=1)
    make_picture("lists/a.png", level=2)
    Path("lists/all.txt").write_text("a.png")
    assert [level(p) for p in read("lists/all.txt")] == [2]


def test_a_list_keeps_its_order_repeats_and_missing_files(
    make_picture: MakePicture, make_video: MakeVideo
) -> None:
    make_picture("b.png")
    make_picture("a.png")
    make_video("v.mp4", frames=2)
    Path("folder.jpg").mkdir()
    Path("all.txt").write_text("b.png\nnowhere.jpg\na.png\nb.png\nfolder.jpg\nv.mp4\nC:\\x\\y.jpg\n")
    opened = open_source("all.txt")
    found = list(opened)
    assert opened.total == len(found) == 8
    assert [Path(item.path).name for item in found if isinstance(item, Picture)] == [
        "b.png",
        "a.png",
        "b.png",
        "v.mp4",
        "v.mp4",
    ]
    failed = [item for item in found if isinstance(item, Failed)]
    assert [item.path for item in failed] == ["nowhere.jpg", "folder.jpg", "C:\\x\\y.jpg"]
    assert "No such file" in failed[0].error and "a folder" in failed[1].error


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# only a comment\n", b"\xef\xbb\xbf"])
def test_a_list_that_names_nothing_is_refused(content: bytes) -> None:
    Path("all.txt").write_bytes(content)
    assert refusal("all.txt") == "all.txt: the list names no picture"


def test_a_list_that_is_not_utf8_is_refused_with_the_line() -> None:
    Path("all.txt").write_bytes("a.jpg\nb.jpg\ncafé.jpg\n".encode("latin-1"))
    assert refusal("all.txt") == "all.txt, line 3: not UTF-8 text; save the list as UTF-8"
    Path("all.txt").write_bytes(bytes(range(256)))
    assert "all.txt, line 2: not UTF-8 text" in refusal("all.txt")


def test_a_list_that_cannot_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    Path("all.txt").touch()
    monkeypatch.setattr(Path, "read_bytes", denied)
    assert refusal("all.txt") == "all.txt: cannot be read as a list of pictures (Permission denied)"


def test_a_folder_called_txt_is_a_folder(make_picture: MakePicture) -> None:
    make_picture("all.txt/a.png")
    assert names("all.txt") == ["a.png"]


def test_a_long_list_is_read_one_by_one(make_picture: MakePicture) -> None:
    make_picture("a.png")
    Path("all.txt").write_text("a.png\n" * 20_000)
    opened = open_source("all.txt")
    assert opened.total == 20_000
    first = next(iter(opened))
    assert isinstance(first, Picture) and first.path == "a.png"


def outcome(source: Any) -> list[str]:
    """What is said about a source: in a refusal, or about each of its pictures that cannot be read."""
    try:
        opened = open_source(source)
    except KitError as error:
        return [str(error)]
    return [item.error for item in opened if isinstance(item, Failed)]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_no_list_does_anything_but_work_or_be_refused(content: bytes) -> None:
    Path("all.txt").write_bytes(content)
    said = outcome("all.txt")
    assert said and all(line.isprintable() for line in said)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30) | st.text("*?[]!-~/\\#ab", max_size=12))
def test_no_name_does_anything_but_work_or_be_refused(name: str) -> None:
    (said,) = outcome(f"nowhere/{name}")
    assert said.isprintable() and "nowhere/" in said


# --- videos


def test_a_video_with_stride(make_video: MakeVideo) -> None:
    make_video("v.mp4", frames=10)
    opened = open_source("v.mp4", stride=4)
    assert opened.total == 3
    assert [(p.path, p.frame) for p in read("v.mp4", stride=4)] == [("v.mp4", 0), ("v.mp4", 4), ("v.mp4", 8)]


def test_stride_leaves_pictures_alone(make_picture: MakePicture, make_video: MakeVideo) -> None:
    for name in ("a", "b", "d"):
        make_picture(f"f/{name}.png")
    make_video("f/c.avi", frames=5)
    assert names("f", stride=3) == ["a.png", "b.png", "c.avi", "c.avi", "d.png"]


@pytest.mark.parametrize("stride", [0, -1])
def test_a_stride_below_one_is_refused(stride: int) -> None:
    assert f"frame stride {stride}: must be at least 1" in refusal("x", UsageError, stride=stride)


def test_a_truncated_video_in_a_folder_is_told_and_the_rest_follows(
    make_picture: MakePicture, make_video: MakeVideo
) -> None:
    path = make_video("f/a.avi", frames=30)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])
    make_picture("f/b.png")
    *_, last_but_one, last = open_source("f")
    assert isinstance(last_but_one, Failed) and "frames: cut off or damaged" in last_but_one.error
    assert isinstance(last, Picture) and last.path == os.path.join("f", "b.png")


def test_nothing_piles_up_over_a_folder_of_videos_and_pictures(
    make_picture: MakePicture, make_video: MakeVideo
) -> None:
    make_video("f/a.avi", frames=100, size=(320, 240))
    for i in range(20):
        make_picture(f"f/b{i}.png", size=(320, 240))
    alive: list[weakref.ref[np.ndarray]] = []
    tracemalloc.start()
    try:
        for item in open_source("f"):
            assert isinstance(item, Picture)
            alive.append(weakref.ref(item.pixels))
            assert sum(ref() is not None for ref in alive) <= 2
        del item
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(alive) == 120 and peak < 10 * 320 * 240 * 3
    assert not any(ref() is not None for ref in alive)


def test_stopping_early_lets_the_file_go(make_video: MakeVideo) -> None:
    iterator = iter(open_source(make_video("v.mp4", frames=10)))
    first = next(iterator)
    assert isinstance(first, Picture)
    iterator.close()  # type: ignore[attr-defined]
    assert list(iterator) == []


# --- sequences


def test_a_list_of_mixed_things_in_order_with_names_that_tell_them_apart(
    make_picture: MakePicture, make_video: MakeVideo
) -> None:
    make_picture("b.png", level=2)
    make_picture("f/a.png", level=3)
    make_video("v.avi", frames=3)
    gray = np.full((4, 4), 9, np.uint8)
    batch = torch.stack([torch.full((3, 4, 4), i, dtype=torch.uint8) for i in (11, 12)])
    mixed = [
        "b.png",
        gray,
        Path("f"),
        Image.new("RGB", (4, 4), (10, 0, 0)),
        batch,
        [gray, ("b.png", gray)],
        "v.avi",
    ]
    found = read(mixed, stride=2)
    assert [(picture.path, picture.frame) for picture in found] == [
        *(("b.png", None), ("picture 1", None), (os.path.join("f", "a.png"), None), ("picture 3", None)),
        *(("picture 4-0", None), ("picture 4-1", None)),
        *(("picture 5-0", None), ("b.png", None), ("picture 5-1-1", None)),
        *(("v.avi", 0), ("v.avi", 2)),
    ]
    assert [level(picture) for picture in found[:9]] == [2, 9, 3, 10, 11, 12, 9, 2, 9]
    assert found[-1].video_fps == 5 and found[0].decode_ms > 0
    assert len({(picture.path, picture.frame) for picture in found}) == len(found) - 1  # b.png is there twice


def test_one_in_memory_is_picture_0_and_a_batch_counts() -> None:
    pixels = np.zeros((4, 4, 3), np.uint8)
    assert names(pixels) == names([pixels]) == ["picture 0"]
    assert names(torch.zeros(3, 3, 4, 4)) == ["picture 0", "picture 1", "picture 2"]
    assert names([pixels] * 3) == ["picture 0", "picture 1", "picture 2"]


def test_a_missing_file_of_a_list_comes_as_failed_and_the_rest_follows(make_picture: MakePicture) -> None:
    make_picture("a.png")
    first, second, third = open_source(["a.png", "nowhere.png", "a.png"])
    assert isinstance(first, Picture) and isinstance(third, Picture)
    assert isinstance(second, Failed) and second.path == "nowhere.png" and "no such file" in second.error


def test_a_broken_pil_picture_of_a_list_comes_as_failed_and_the_rest_follows(
    make_picture: MakePicture,
) -> None:
    data = make_picture("a.png", size=(64, 64)).read_bytes()
    Path("cut.png").write_bytes(data[: len(data) * 2 // 3])
    items = [Image.open("a.png"), Image.open("cut.png"), Image.open("a.png")]
    first, second, third = open_source(items)
    assert isinstance(first, Picture) and isinstance(third, Picture) and isinstance(second, Failed)
    assert second.path == "picture 1" and second.error.startswith("picture 1: ")


def test_pictures_in_memory_are_converted_one_by_one() -> None:
    frames = [np.zeros((100, 100, 3), np.uint8) for _ in range(50)]
    opened = open_source(frames, bgr=True)
    alive: list[weakref.ref[np.ndarray]] = []
    for item in opened:
        assert isinstance(item, Picture)
        alive.append(weakref.ref(item.pixels))
        assert sum(ref() is not None for ref in alive) <= 2
    assert len(alive) == 50


@pytest.mark.parametrize("source", [[], (), [[]]])
def test_an_empty_list(source: Any) -> None:
    if source:
        (item,) = open_source(source)
        assert isinstance(item, Failed) and "is empty" in item.error
    else:
        assert refusal(source) == "the list of pictures is empty"


@pytest.mark.parametrize(
    "source",
    [
        None,
        True,
        False,
        np.bool_(True),
        1.5,
        b"a.jpg",
        {"a": 1},
        {"a.png"},
        object(),
        (i for i in ()),
        range(3),
        Path,
    ],
)
def test_what_is_no_source_is_a_usage_error_also_in_a_list(source: Any) -> None:
    for given_source in (source, [source], ["nowhere.png", source]):
        message = refusal(given_source, UsageError)
        assert f"source of type {type(source).__name__}: expected a path" in message


def test_pixels_as_nested_lists_are_not_taken_for_cameras() -> None:
    assert "give pixels as a numpy array" in refusal([[0, 1], [2, 3]], UsageError)
    assert open_source([0, 1]).total is None


def test_bytes_of_a_path_object_are_a_path(make_picture: MakePicture) -> None:
    class Odd(os.PathLike):
        def __fspath__(self) -> bytes:
            return b"a.png"

    make_picture("a.png")
    assert names(Odd()) == ["a.png"]


# --- Source


def test_a_source_can_be_read_again_and_opened_again(make_picture: MakePicture) -> None:
    make_picture("f/a.png")
    make_picture("f/b.png")
    opened = open_source("f")
    assert isinstance(opened, Source) and open_source(opened) is opened
    assert names(opened) == names(opened) == names([opened]) == ["a.png", "b.png"]
    assert opened.description == "f"


@pytest.mark.parametrize("settings_", [{"bgr": True}, {"stride": 2}])
def test_settings_for_an_open_source_are_refused(settings_: dict) -> None:
    opened = open_source(np.zeros((4, 4, 3), np.uint8))
    assert "this source is open already" in refusal(opened, UsageError, **settings_)


def test_bgr_changes_arrays_only(make_picture: MakePicture) -> None:
    make_picture("a.png", level=200)
    blue_first = np.full((4, 4, 3), (0, 0, 200), np.uint8)
    mixed = ["a.png", blue_first, Image.new("RGB", (4, 4), (200, 0, 0))]
    assert [level(picture) for picture in read(mixed, bgr=True)] == [200, 200, 200]


# --- parts


def test_parts_tell_what_can_be_read_apart(make_picture: MakePicture, make_video: MakeVideo) -> None:
    make_picture("f/a.png")
    make_video("f/b.avi")
    source = open_source(["f", "f/a.png", np.zeros((4, 4, 3), np.uint8), "nowhere.jpg", 0])
    file, video, again, memory, failed, camera = source.parts()
    assert file == again == PictureFile(Path("f/a.png"))
    assert [isinstance(part, Sequential) and part.ahead for part in (video, memory, camera)] == [
        *(True, False, False)
    ]
    assert isinstance(failed, Failed) and "no such file" in failed.error


def test_nothing_is_opened_before_its_turn(
    monkeypatch: pytest.MonkeyPatch, make_picture: MakePicture
) -> None:
    make_picture("a.png")
    source = open_source(["a.png", "a.png"])
    monkeypatch.setattr("yolov9kit.data.sources.read_picture", None)  # whoever calls it fails
    assert len(list(source.parts())) == len(list(source.parts())) == 2
    with pytest.raises(TypeError):
        next(source.pictures())


def test_a_picture_is_read_in_any_thread_with_its_own_time(make_picture: MakePicture) -> None:
    picture = read_picture(make_picture("a.png", level=30))
    assert isinstance(picture, Picture) and level(picture) == 30 and picture.decode_ms > 0
    sizes: list[tuple[int, int]] = []
    read_picture(make_picture("b.png", size=(9, 5)), lambda width, height: sizes.append((width, height)))
    failed = read_picture(Path("nowhere.png"), lambda width, height: sizes.append((width, height)))
    assert sizes == [(9, 5)] and isinstance(failed, Failed) and failed.path == "nowhere.png"
