"""COCO files that contradict themselves, or are none, are refused by a sentence."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.data.formats.coco_sets import coco_folder, opened, write
from yolov9kit.data.formats.coco import open_coco
from yolov9kit.errors import DataError


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    return partial(coco_folder, tmp_path / "set")


# ------------------------------------------------------------------------------------------- descriptions


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": [{"id": 1}]}, r"images\[0\] \(id 1\): file_name is null"),
        ({"images": [{"file_name": "a.png"}]}, r"images\[0\]: id is null"),
        ({"images": [{"id": 1.5, "file_name": "a.png"}]}, r"images\[0\]: id is 1\.5"),
        ({"images": [5]}, r"images\[0\] is 5: expected an object"),
        (
            {"images": [{"id": 7, "file_name": "a.png"}, {"id": 7, "file_name": "b.png"}]},
            r"images\[1\] \(b\.png\): id 7 is that of a\.png",
        ),
        ({"categories": []}, "has no list 'categories'"),
        ({"categories": [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]}, r"categories\[1\] \(b\): id 1 is that of a"),
        ({"categories": [{"id": 1, "name": "a"}, {"id": 2, "name": "a"}]}, "two categories are called 'a'"),
        ({"categories": [{"id": 1}]}, r"categories\[0\] \(id 1\): name is null"),
        ({"categories": [{"id": 1, "name": "\ud800"}]}, r"categories\[0\] \(id 1\): name is"),
        ({"categories": {"1": "a"}}, "'categories' is .*: expected a list"),
        ({"annotations": {"1": "a"}}, "'annotations' is .*: expected a list"),
        ({"images": None}, "has no list 'images' with the file names"),
    ],
)  # fmt: skip
def test_a_description_that_cannot_be_used_is_refused(
    make: Callable[..., Path], change: dict[str, Any], words: str
) -> None:
    folder = make(**change)
    with pytest.raises(DataError, match=words):
        open_coco(folder)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"images": [1,]}', "not a JSON: line 1, column"),
        ('{"images": ' + "[" * 200_000, "nest too deep"),
        ('{"images": [' + "9" * 5000 + "]}", "not a JSON"),
        ('{"images": [], "annotations": [], "images": []}', "an object has the key 'images' twice"),
    ],
    ids=["comma", "deep", "digits", "twice"],
)
def test_text_that_is_no_json_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        open_coco(write(tmp_path / "a.json", text))
    assert len(str(caught.value)) < 400


def test_bytes_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"images": [\xff]}')
    with pytest.raises(DataError, match="byte 12 is no UTF-8 text"):
        open_coco(tmp_path)


def test_no_picture_at_all_lists_the_places(make: Callable[..., Path]) -> None:
    folder = make(images=[{"id": 7, "file_name": "x.png"}])
    with pytest.raises(
        DataError, match=r"none of its 1 pictures was found; 'x\.png' was looked for in .*x\.png"
    ):
        opened(folder).open("train")
    empty = make(images=[], annotations=[])
    with pytest.raises(DataError, match="split 'train': names no picture"):
        opened(empty).open("train")
