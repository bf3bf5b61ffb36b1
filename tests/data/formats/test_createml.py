"""Create ML JSON: pictures with their labelled boxes, given by their centres."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.createml import open_createml
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.data.labels import LabelFile
from yolov9kit.errors import DataError

EXPORTS = Path(__file__).parents[3].parent / "shared/data/raw/formats_datumaro/tests/assets"
exports = pytest.mark.skipif(not EXPORTS.is_dir(), reason="no ../shared/data/raw/formats_datumaro")
WH = (64, 48)


def box(
    label: object = "dog", x: object = 20, y: object = 10, width: object = 8, height: object = 6
) -> dict[str, Any]:
    return {"label": label, "coordinates": {"x": x, "y": y, "width": width, "height": height}}


CLEAN = [
    {"image": "a.png", "annotations": [box("screw"), box("board", 32, 24, 64, 48)]},
    {"image": "b.png", "annotations": []},
]


def make(folder: Path, content: object = CLEAN, name: str = "_annotations.createml.json") -> Path:
    for picture in ("a.png", "b.png"):
        if not (folder / picture).exists():
            Image.new("RGB", WH).save(folder / picture)
    (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def opened(path: Path) -> Layout:
    layout = open_createml(path)
    assert layout is not None
    return layout


def read_all(files: SplitFiles) -> list[LabelFile]:
    return [files.read(i, WH) for i in range(len(files.pictures))]


def every_finding(layout: Layout) -> list[Finding]:
    files = layout.open("train")
    return [*layout.findings, *files.findings, *(f for read in read_all(files) for f in read.findings)]


def test_boxes_are_given_by_their_centres(tmp_path: Path) -> None:
    layout = opened(make(tmp_path))
    assert layout.names == ("board", "screw") and layout.splits == ("train",) and every_finding(layout) == []
    a, b = read_all(layout.open("train"))
    np.testing.assert_array_equal(a.boxes, [[16, 7, 24, 13], [0, 0, 64, 48]])
    assert a.labels.tolist() == [1, 0] and b.rows == 0


def test_the_keys_of_apples_documentation(tmp_path: Path) -> None:
    content = [{"imagefilename": "a.png", "annotation": [box()]}]
    assert len(read_all(opened(make(tmp_path, content)).open("train"))[0].boxes) == 1


@pytest.mark.parametrize(
    ("bad", "code", "words"),
    [
        (box(label=None), "label_class", "label is null"),
        (box(label=" "), "label_class", 'label is " "'),
        (box(x="20"), "label_number", "holds something that is no number"),
        (box(x=float("nan")), "label_number", "'nan' is not a finite number"),
        (box(width=-3), "label_no_area", "a box of -3 x 6 pixels"),
        (box(x=500), "label_outside", "outside the picture"),
        ({"label": "dog"}, "label_columns", "expected label and coordinates"),
        ({"label": "dog", "coordinates": {"x": 1}}, "label_columns", "expected label and coordinates"),
        (5, "label_columns", "expected label and coordinates"),
    ],
)
def test_a_box_that_cannot_be_used_is_named(tmp_path: Path, bad: object, code: str, words: str) -> None:
    content = [{"image": "a.png", "annotations": [box(), bad]}, CLEAN[1]]
    layout = opened(make(tmp_path, content))
    [finding] = every_finding(layout)
    assert finding.code == code and words in finding.message
    assert finding.message.startswith("[0].annotations[1] of a.png: ")
    assert len(read_all(layout.open("train"))[0].boxes) == 1


def test_missing_repeated_and_unnamed_pictures(tmp_path: Path) -> None:
    content = [
        {"image": "a.png", "annotations": [box()]},
        {"image": "none.png", "annotations": [box(), box()]},
        {"image": "./a.png", "annotations": [box("cat")]},
    ]
    layout = opened(make(tmp_path, content))
    found = {finding.code: finding for finding in every_finding(layout)}
    assert sorted(found) == ["picture_missing", "picture_repeated", "picture_unnamed"]
    assert "[1]: 'none.png' (2 boxes) was not found" in found["picture_missing"].message
    assert len(read_all(layout.open("train"))[0].boxes) == 2


def test_boxes_given_by_their_corners_are_suspected(tmp_path: Path) -> None:
    content = [
        {"image": "a.png", "annotations": [box("dog", 0, 0, 64, 48), box("dog", 2, 3, 30, 20)]},
        CLEAN[1],
    ]
    found = every_finding(opened(make(tmp_path, content)))
    [finding] = [finding for finding in found if finding.code == "box_anchor"]
    assert finding.severity == "warning" and finding.value == "2"
    assert [f.code for f in found if f is not finding] == ["label_clipped", "label_clipped"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([*CLEAN, 5], r"\[2\] is 5: expected an object"),
        ([*CLEAN, {"image": 5, "annotations": []}], r"\[2\]: image is 5"),
        (
            [*CLEAN, {"image": "c.png", "annotations": 5}],
            r"\[2\] \(c\.png\): annotations is 5: expected a list",
        ),
    ],
)
def test_a_list_that_cannot_be_used_is_refused(tmp_path: Path, content: object, words: str) -> None:
    with pytest.raises(DataError, match=words):
        open_createml(make(tmp_path, content))


def test_no_picture_at_all_lists_the_places(tmp_path: Path) -> None:
    layout = opened(make(tmp_path, [{"image": "x.png", "annotations": []}]))
    with pytest.raises(DataError, match=r"none of its 1 pictures was found; 'x\.png' was looked for in"):
        layout.open("train")


@pytest.mark.parametrize(
    "content", [[], {}, 5, {"images": [], "annotations": []}, [{"image_id": 3, "bbox": []}], [[]]]
)
def test_other_json_is_left_to_others(tmp_path: Path, content: object) -> None:
    assert open_createml(make(tmp_path, content)) is None
    assert open_createml(tmp_path / "none.json") is None


def test_text_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    make(tmp_path)
    file = tmp_path / "_annotations.createml.json"
    file.write_text(file.read_text("utf-8")[:-5], encoding="utf-8")
    with pytest.raises(DataError, match=r"createml\.json: not a JSON: line 1, column"):
        open_createml(tmp_path)


values = (
    st.none() | st.booleans() | st.integers(-3, 70) | st.floats() | st.sampled_from(["a", ""]) | st.just([])
)
boxes = st.builds(box, st.sampled_from(["dog", "cat", None]), values, values, values, values) | values
entries = st.lists(
    st.fixed_dictionaries(
        {"image": st.sampled_from(["a.png", "b.png", "none.png"]), "annotations": st.lists(boxes, max_size=4)}
    ),
    max_size=4,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=entries)
def test_every_box_is_read_or_named(tmp_path: Path, content: list[dict[str, Any]]) -> None:
    entries = [{"image": "a.png", "annotations": []}, *content]
    files = opened(make(tmp_path, entries)).open("train")
    counted = 0
    for read in read_all(files):
        left_out = [finding for finding in read.findings if finding.severity != "note"]
        assert len(read.boxes) + len(left_out) == read.rows
        counted += read.rows
    for finding in files.findings:
        if finding.code == "picture_missing":
            counted += int(finding.message.partition(" boxes)")[0].rpartition("(")[2])
    assert counted == sum(len(entry["annotations"]) for entry in entries)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary(max_size=50).map(lambda tail: b'[{"image": "a.png", "annotations": [' + tail))
def test_arbitrary_bytes_give_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=r"^[^\n]*a\.json: [^\n]*$"):
        open_createml(tmp_path / "a.json")


@exports
def test_a_real_export_is_read_without_loss() -> None:
    folder = EXPORTS / "roboflow_dataset/createml"
    layout = opened(folder)
    assert layout.splits == ("train", "val") and layout.names == ("label_0", "label_1")
    for split in layout.splits:
        content = json.loads((folder / split / "_annotations.createml.json").read_text("utf-8"))
        files = layout.open(split)
        assert [path.name for path in files.pictures] == [entry["image"] for entry in content]
        assert [len(read.boxes) for read in read_all(files)] == [
            len(entry["annotations"]) for entry in content
        ]
        assert {finding.code for finding in files.findings} == {
            "box_anchor"
        }  # this one was written with corners
