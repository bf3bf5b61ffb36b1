"""Which format a path is taken for, in which order, and what is said of what is not read."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yolov9kit.data.dataset import open_dataset
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.errors import DataError

MakePicture = Callable[..., Path]

YAML = "train: train\nval: train\nnames: [cat]\n"
COCO = json.dumps(
    {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 8, "height": 6}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 3], "iscrowd": 0}],
        "categories": [{"id": 1, "name": "cat"}],
    }
)
CREATEML = json.dumps(
    [
        {
            "image": "a.jpg",
            "annotations": [{"label": "cat", "coordinates": {"x": 2, "y": 3, "width": 2, "height": 2}}],
        }
    ]
)
CVAT = (
    '<annotations><meta/><image id="0" name="a.jpg" width="8" height="6"><box label="cat" xtl="1" ytl="2" xbr="3" '
    'ybr="4"/></image></annotations>'
)
VOC = (
    "<annotation><object><name>cat</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>"
    "</object></annotation>"
)
LABELME = json.dumps(
    {
        "version": "5",
        "imagePath": "a.jpg",
        "shapes": [{"label": "cat", "shape_type": "rectangle", "points": [[1, 2], [3, 4]]}],
    }
)
WEB = (
    "<annotation><object><name>cat</name><polygon><pt><x>1</x><y>2</y></pt><pt><x>3</x><y>2</y></pt><pt><x>3</x>"
    "<y>4</y></pt></polygon></object></annotation>"
)
TABLE = "filename,width,height,class,xmin,ymin,xmax,ymax\na.jpg,8,6,cat,1,2,3,4\n"
ROW = "0 .5 .5 .5 .5\n"
DOTA = "1 2 3 2 3 4 1 4 cat 0\n"


def make(folder: Path, **files: str) -> Path:
    """Writes files that are called by ``place``."""
    for name, text in files.items():
        path = folder / place(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def place(name: str) -> str:
    """``train__a_jpg`` means ``train/a.jpg``."""
    return ".".join(name.replace("__", "/").rsplit("_", 1))


SETS = {
    "YOLO": {"data_yaml": YAML, "train__a_jpg": "", "train__a_txt": ROW},
    "Darknet YOLO": {
        "obj_data": "names = obj.names\ntrain = train.txt\n",
        "obj_names": "cat\n",
        "train_txt": "a.jpg\n",
        "a_jpg": "",
        "a_txt": ROW,
    },
    "COCO JSON": {"all_json": COCO, "a_jpg": ""},
    "Create ML JSON": {"all_json": CREATEML, "a_jpg": ""},
    "CVAT for images": {"annotations_xml": CVAT, "a_jpg": ""},
    "Pascal VOC": {"a_xml": VOC, "a_jpg": ""},
    "LabelMe": {"a_json": LABELME, "a_jpg": ""},
    "LabelMe XML": {"a_xml": WEB, "a_jpg": ""},
    "table of boxes": {"boxes_csv": TABLE, "a_jpg": ""},
    "YOLO without a yaml": {"a_txt": ROW, "a_jpg": ""},
    "DOTA": {"images__a_jpg": "", "labelTxt__a_txt": DOTA},
    "pictures without labels": {"a_jpg": ""},
}


@pytest.mark.parametrize("kind", SETS)
def test_each_format_is_known_by_its_folder(tmp_path: Path, kind: str) -> None:
    layout = open_layout(make(tmp_path, **SETS[kind]))
    assert layout.kind == kind
    expected = () if kind.startswith("pictures") else ("0",) if "without" in kind else ("cat",)
    assert layout.names == expected
    files = layout.open("train")
    assert [path.name for path in files.pictures] == ["a.jpg"]
    assert (files.label_paths[0] is None) == kind.startswith("pictures")
    assert not [f for f in layout.findings if f.code == "place"]


DESCRIBED = {
    "YOLO": "data.yaml",
    "Darknet YOLO": "obj.data",
    "COCO JSON": "all.json",
    "Create ML JSON": "all.json",
    "CVAT for images": "annotations.xml",
    "table of boxes": "boxes.csv",
}


@pytest.mark.parametrize("kind", DESCRIBED)
def test_a_file_that_is_named_itself_is_the_one_taken(tmp_path: Path, kind: str) -> None:
    for other in SETS:
        if other != "DOTA" and place(next(iter(SETS[other]))) != DESCRIBED[kind]:
            make(tmp_path, **SETS[other])
    make(tmp_path, **SETS[kind])
    layout = open_layout(tmp_path / DESCRIBED[kind])
    assert layout.kind == kind
    assert [path.name for path in layout.open("train").pictures] == ["a.jpg"]


ORDER = ["YOLO", "Darknet YOLO", "COCO JSON", "CVAT for images", "Pascal VOC", "LabelMe", "table of boxes"]
SIGN = {"table of boxes": "a table of boxes", "Darknet YOLO": "Darknet"}


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_of_several_the_first_is_taken_and_the_others_are_told_with_how_to_choose_them(
    tmp_path: Path, first: int
) -> None:
    for kind in ORDER[first:]:
        make(tmp_path, **SETS[kind])
    layout = open_layout(tmp_path)
    assert layout.kind == ORDER[first]
    notes = [f for f in layout.findings if f.code == "place"]
    for kind in ORDER[first + 1 :]:
        (note,) = [f for f in notes if f"looks like {SIGN.get(kind, kind)}:" in f.message]
        assert note.severity == "note" and f"read as {layout.kind}" in note.message
        choice = Path(note.message.partition(": name ")[2].partition(" itself")[0])
        assert choice == (tmp_path if kind in ("Pascal VOC", "LabelMe") else Path(note.value))
        if choice != tmp_path:
            assert open_layout(choice).kind == kind
    assert len(notes) == len(ORDER) - first - 1
    assert layout.open("train").pictures and layout.splits


def test_notes_reach_the_data_set(tmp_path: Path, make_picture: MakePicture, private_cache: Path) -> None:
    make(tmp_path / "set", all_json=COCO, a_xml=VOC)
    make_picture("set/a.jpg")
    data = open_dataset(tmp_path / "set")
    assert data.samples[0].boxes.tolist() == [[1, 2, 4, 5]]
    assert any("Pascal VOC" in f.message for f in data.findings if f.code == "place")


# ---------------------------------------------------------------------------------------- around them


@pytest.mark.parametrize("given", ["set", "set/", "other/../set", "./set", "link"])
def test_the_way_to_a_folder_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    make(tmp_path / "set", **SETS["Pascal VOC"])
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("set")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for text in (given, f"~/{given}", str(tmp_path / given)):
        assert open_layout(text).open("train").pictures[0].name == "a.jpg"


def test_a_folder_around_a_data_set_is_looked_into(tmp_path: Path) -> None:
    make(tmp_path / "download" / "my set", **SETS["YOLO"])
    (tmp_path / "README.txt").touch()
    layout = open_layout(tmp_path)
    assert layout.kind == "YOLO" and layout.names == ("cat",)
    (note,) = layout.findings
    assert (note.code, note.severity) == ("place", "note")
    assert str(tmp_path / "download" / "my set") in note.message
    make(tmp_path / "second", **SETS["YOLO"])
    with pytest.raises(DataError, match=r"holds 2 data sets .*second.*: name one of them"):
        open_layout(tmp_path)


def test_a_format_at_a_place_where_it_is_not_read_is_pointed_at(tmp_path: Path) -> None:
    make(tmp_path / "a" / "b", **SETS["CVAT for images"])
    with pytest.raises(
        DataError, match=r"is no data set itself, but .*annotations\.xml looks like CVAT for images"
    ):
        open_layout(tmp_path)


def test_a_yaml_of_another_kind_does_not_hide_a_data_set(tmp_path: Path) -> None:
    make(tmp_path, settings_yaml="lr: 0.1\n", **SETS["COCO JSON"])
    assert open_layout(tmp_path).kind == "COCO JSON"
    make(tmp_path, boards_yaml=YAML, **SETS["YOLO"])
    (tmp_path / "data.yaml").unlink()
    layout = open_layout(tmp_path)
    assert layout.kind == "YOLO" and layout.file == tmp_path / "boards.yaml"
    make(tmp_path, other_yaml=YAML)
    with pytest.raises(
        DataError, match=r"several yaml files \(boards\.yaml, other\.yaml.*\): name one of them"
    ):
        open_layout(tmp_path)


# ------------------------------------------------------------------------------------------- refused


KITTI = "Car 0.00 0 -1.57 100.5 120 200 220 1.5 1.6 3.9 -1 1.7 9.2 0.3\n"
REFUSED = {
    "TFRecord": {"train__boards_tfrecord": "x", "train__map_pbtxt": ""},
    "KITTI": {"training__image_2__a_png": "", "training__label_2__a_txt": KITTI},
    "WIDER FACE": {
        "split__wider_face_train_bbx_gt_txt": "a.jpg\n1\n1 2 3 4 0 0 0 0 0 0\n",
        "images__a_jpg": "",
    },
    "pictures with masks": {"images__a_jpg": "", "masks__a_png": ""},
    "folders named after their class": {"train__cat__a_jpg": "", "train__dog__b_jpg": ""},
    "class.* of whole pictures, no boxes": {"labels_csv": "image,label\na.jpg,cat\nb.jpg,dog\n", "a_jpg": ""},
    "the class of whole pictures": {"ann_txt": "a.jpg cat\nb.jpg dog\n", "images__a_jpg": ""},
    "VGG annotator": {"via_json": '{"a.jpg1": {"filename": "a.jpg", "regions": []}}', "a_jpg": ""},
    "compute metrics": {"truths__a_txt": "person 25 16 38 56\n", "a_jpg": ""},
    "give the folder that holds pictures and labels": {"labels__a_txt": ROW},
    "no pictures, and no YOLO, Darknet, COCO JSON": {"notes_md": "hello"},
    "settings.yaml has no key 'names'": {"settings_yaml": "lr: 1\n"},
}


@pytest.mark.parametrize("says", REFUSED)
def test_what_is_not_read_is_refused_by_name_and_nothing_is_a_background(tmp_path: Path, says: str) -> None:
    make(tmp_path, **REFUSED[says])
    with pytest.raises(DataError, match=says) as caught:
        open_layout(tmp_path)
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_not_there_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{tmp_path / 'gone'}: no such file or folder"):
        open_layout(tmp_path / "gone")
    with pytest.raises(DataError, match="the folder is empty"):
        open_layout(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", b'{"theme": "dark"}', "is not YOLO, Darknet, COCO JSON"),
        ("a.xml", b"<doc/>", "is not YOLO"),
        ("a.xml", VOC.encode(), "tells of one picture: give the folder"),
        ("a.json", LABELME.encode(), "tells of one picture: give the folder"),
        ("a.txt", KITTI.encode(), "KITTI"),
        ("a.txt", b"", "is not YOLO"),
        ("a.tfrecord", b"\0\1", "TFRecord"),
        ("a.zip", b"PK", "is an archive: unpack it"),
        ("a.csv", b"image,label\na.jpg,cat\n", "of whole pictures"),
        ("a.yaml", b"lr: 1\n", "has no key 'names'"),
        ("a.jpg", b"\xff\xd8\xff", "is one picture"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        open_layout(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


NAMES = st.sampled_from(
    [
        "data.yaml",
        "obj.data",
        "classes.txt",
        *(f"a.{suffix}" for suffix in ("txt", "json", "xml", "csv", "jpg")),
        *("labels/a.txt", "images/a.jpg", "train/a.jpg"),
    ]
)
CONTENTS = st.binary(max_size=60) | st.sampled_from(
    [text.encode() for text in (YAML, COCO, CREATEML, CVAT, VOC, LABELME, WEB, TABLE, ROW, DOTA, KITTI)]
)


@given(files=st.dictionaries(NAMES, CONTENTS, max_size=5))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_folder_opens_or_is_refused(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    for path in (folder, *(folder / name for name in files)):
        try:
            layout = open_layout(path)
            for split in layout.splits:
                read = layout.open(split)
                for i, label_path in enumerate(read.label_paths):
                    assert label_path is None or read.read(i, (8, 6)).boxes.shape[1] == 4
        except DataError as fault:
            told = str(fault)
        else:
            told = str(folder)
        assert str(folder) in told
