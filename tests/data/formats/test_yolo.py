"""A data.yaml opened: label files for pictures, and what is said of both."""

from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yolov9kit.data.formats.layout import SplitFiles
from yolov9kit.data.formats.yolo import YoloLayout
from yolov9kit.data.yaml_file import read_data_yaml
from yolov9kit.errors import DataError

ROW = "1 .5 .5 .2 .1\n"


def make(folder: Path, names: str, text: str = ROW) -> None:
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text if name.endswith(".txt") else "", encoding="utf-8")


def opened(
    folder: Path, yaml: str = "train: images", split: str = "train", as_boxes: bool = False
) -> SplitFiles:
    (folder / "data.yaml").write_text(f"names: [a, b]\n{yaml}", encoding="utf-8")
    return YoloLayout(read_data_yaml(folder), as_boxes=as_boxes).open(split)


def said(files: SplitFiles) -> list[tuple[str, str, str, str]]:
    return [(f.code, f.severity, f.path.name, f.value) for f in files.findings]


def test_an_ordinary_set_has_nothing_to_say(tmp_path: Path) -> None:
    make(tmp_path, "images/a.jpg images/b.jpg labels/a.txt classes.txt labels/classes.txt")
    files = opened(tmp_path)
    assert said(files) == [] and files.label_paths == (tmp_path / "labels/a.txt", None)
    assert files.read(0, (100, 100)).boxes.tolist() == [[40, 45, 60, 55]]


def test_labels_beside_their_pictures_are_one_note(tmp_path: Path) -> None:
    make(tmp_path, "images/a.jpg images/b.jpg images/c.jpg images/a.txt images/b.txt labels/c.txt")
    assert said(opened(tmp_path)) == [("label_beside", "note", "a.txt", "2")]


def test_an_orphan_and_a_shared_file_are_warnings(tmp_path: Path) -> None:
    make(tmp_path, "images/a.jpg images/a.png labels/a.txt labels/z.txt")
    assert said(opened(tmp_path)) == [
        ("label_shared", "warning", "a.png", ""),
        ("label_orphan", "warning", "z.txt", ""),
    ]


def test_pictures_of_the_other_split_of_a_flat_layout_are_no_orphans(tmp_path: Path) -> None:
    make(tmp_path, "images/a.jpg images/b.jpg labels/a.txt labels/b.txt labels/z.txt")
    for split, name in (("train", "a"), ("val", "b")):
        (tmp_path / f"{split}.txt").write_text(f"images/{name}.jpg\n")
    for split in ("train", "val"):
        files = opened(tmp_path, "train: train.txt\nval: val.txt", split)
        assert said(files) == [("label_orphan", "warning", "z.txt", "")]


def test_a_yaml_with_key_points_tells_their_columns(tmp_path: Path) -> None:
    make(tmp_path, "images/a.jpg")
    make(tmp_path, "labels/a.txt", "0 .5 .5 .2 .1 .1 .2 .3 .4")
    read = opened(tmp_path, "train: images\nkpt_shape: [2, 2]").read(0, (100, 100))
    assert read.points == (1,) and read.boxes.tolist() == [[40, 45, 60, 55]]
    assert opened(tmp_path).read(0, (100, 100)).points == ()


def test_as_boxes_looks_at_the_whole_split_for_key_points(tmp_path: Path) -> None:
    make(tmp_path, "images/a.jpg images/b.jpg")
    make(tmp_path, "labels/a.txt", "0 .5 .5 .2 .1 .1 .2 1 .3 .4 1")
    make(tmp_path, "labels/b.txt", "0 .5 .5 .2 .1 .1 .2 2 .3 .4 1")
    assert opened(tmp_path, as_boxes=True).read(0, (100, 100)).boxes.tolist() == [[40, 45, 60, 55]]


def test_links_to_pictures_and_folders_are_followed(tmp_path: Path) -> None:
    make(tmp_path, "far/images/a.jpg far/labels/a.txt single/b.JPG labels/b.txt images/x.md")
    (tmp_path / "images" / "b.JPG").symlink_to(tmp_path / "single" / "b.JPG")
    (tmp_path / "images" / "loop").symlink_to(tmp_path / "images")
    (tmp_path / "images" / "self.jpg").symlink_to("self.jpg")
    (tmp_path / "images" / "self").symlink_to("self")
    files = opened(tmp_path, "train: [images, far/images]")
    assert [path.name for path in files.pictures] == ["b.JPG", "self.jpg", "a.jpg"]
    assert files.label_paths == (tmp_path / "labels/b.txt", None, tmp_path / "far/labels/a.txt")


def why_not(opening: Callable[[], SplitFiles]) -> str:
    """The first picture, or why there is none."""
    try:
        return str(opening().pictures[0])
    except DataError as fault:
        return str(fault) if "\n" not in str(fault) else "two lines"


words = "names: train: path: val: kpt_shape: [a] [17,3] {0:a} images . ~ - é & * ? \0"


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    text=st.one_of(
        st.binary(max_size=80),
        st.lists(st.sampled_from([*words.split(), "\n"])).map(" ".join).map(str.encode),
    )
)
def test_any_bytes_as_yaml_or_list_give_pictures_or_a_named_error(tmp_path: Path, text: bytes) -> None:
    make(tmp_path, "images/a.jpg labels/a.txt")
    (tmp_path / "data.yaml").write_bytes(text)
    assert why_not(lambda: YoloLayout(read_data_yaml(tmp_path)).open("train")).startswith(str(tmp_path))
    (tmp_path / "list.txt").write_bytes(text)
    assert why_not(lambda: opened(tmp_path, "train: [images, list.txt]")).startswith(str(tmp_path))
