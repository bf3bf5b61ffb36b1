"""The order of classes that label files call by name."""

from pathlib import Path

import pytest

from tests.data.formats.voc_files import box, opened, touch, write, xml
from yolov9kit.data.formats.layout import Layout


def named(folder: Path, file: str, text: str) -> Layout:
    touch(folder, "a.jpg")
    write(folder, a=xml(box("dog"), box("cat", "3 3 9 9")))
    (folder / file).write_text(text, encoding="utf-8")
    return opened(folder)


@pytest.mark.parametrize("file", ["classes.txt", "predefined_classes.txt", "labelmap.txt"])
def test_a_file_may_give_the_order_of_the_classes(tmp_path: Path, file: str) -> None:
    layout = named(tmp_path, file, "\ufeffdog\r\nowl\r\ncat\r\n")
    assert layout.names == ("dog", "owl", "cat") and layout.findings == ()
    assert layout.open("train").read(0, (100, 80)).labels.tolist() == [0, 2]


def test_a_label_map_may_hold_colours_and_values_of_masks(tmp_path: Path) -> None:
    text = "# label:color_rgb:parts:actions\nbackground:0,0,0::\ndog:1,2,3::\ncat:4,5,6:head,tail:\n"
    layout = named(tmp_path, "labelmap.txt", text)
    assert layout.names == ("dog", "cat")
    assert [(f.code, f.severity, f.value) for f in layout.findings] == [("place", "note", "background")]


def test_classes_that_the_file_does_not_name_are_put_behind(tmp_path: Path) -> None:
    layout = named(tmp_path, "classes.txt", "owl\ndog\n")
    assert layout.names == ("owl", "dog", "cat")
    (finding,) = layout.findings
    assert finding.value == "cat" and "put behind" in finding.message


def test_a_file_of_other_classes_is_not_taken(tmp_path: Path) -> None:
    layout = named(tmp_path, "predefined_classes.txt", "tv\nsofa\n")
    assert layout.names == ("cat", "dog") and "not taken" in layout.findings[0].message
