"""What the rows of a split tell together."""

from pathlib import Path

import numpy as np
import pytest

from yolov9kit.data.findings import Finding
from yolov9kit.data.labels import LabelFile
from yolov9kit.data.split_rows import SplitRows

YAML, A, B = Path("data.yaml"), Path("a.txt"), Path("b.txt")
NOTES = [
    Finding("label_polygons", "note", A, "2 polygon rows"),
    Finding("label_mixed", "note", A, "mixed file"),
]


def read(
    oriented: tuple[int, ...] = (),
    others: int = 0,
    points: tuple[int, ...] = (),
    labels: tuple[int, ...] = (),
) -> LabelFile:
    boxes = np.zeros((len(labels), 4), np.float32)
    return LabelFile(boxes, np.array(labels, np.int64), (), 9, None, oriented, others, points)


def revised(
    *files: LabelFile, findings: list[Finding] | None = None, num_classes: int = 3, as_boxes: bool = False
) -> list[Finding]:
    rows = SplitRows(YAML, num_classes, as_boxes)
    for path, file in zip((A, B), files, strict=False):
        rows.add(path, file)
    return rows.revise(findings or [])


def beyond(value: int, line: int) -> Finding:
    return Finding("label_class_range", "error", A, f"class {value}, allowed 0-2", line, str(value))


def test_nothing_to_say() -> None:
    assert revised(read(labels=(0, 1)), findings=NOTES) == NOTES


def test_oriented_rows_are_one_error_at_the_first_and_no_polygons() -> None:
    (finding,) = revised(read(), read(oriented=(4, 7)), findings=NOTES)
    assert (finding.code, finding.severity, finding.path, finding.line) == ("label_oriented", "error", B, 4)
    assert finding.value == "2" and "2 rows give the four corners" in finding.message
    assert "yolov9kit data convert DATA OUT --as-boxes" in finding.message


def test_with_another_polygon_in_the_split_they_are_polygons() -> None:
    assert revised(read(oriented=(4, 7)), read(others=1), findings=NOTES) == NOTES


def test_as_boxes_makes_them_notes() -> None:
    found = revised(read(oriented=(4,), points=(5, 6)), as_boxes=True)
    assert [(f.code, f.severity, f.line, f.value) for f in found] == [
        ("label_oriented", "note", 4, "1"),
        ("label_points", "note", 5, "2"),
    ]
    assert not any("convert" in finding.message for finding in found)


def test_key_points_are_one_error_at_the_first() -> None:
    (finding,) = revised(read(points=(3,)), read(points=(1, 2)))
    assert (finding.code, finding.severity, finding.path, finding.line) == ("label_points", "error", A, 3)
    assert finding.value == "3" and "--as-boxes" in finding.message


def test_ids_that_start_at_1_are_one_error_and_a_guess_in_each_row() -> None:
    found = revised(read(labels=(1, 2)), findings=[*NOTES, beyond(3, 5), beyond(3, 8)])
    assert [(f.code, f.path, f.line, f.value) for f in found if f.severity == "error"] == [
        ("class_from_one", YAML, None, "2"),
        ("label_class_range", A, 5, "3"),
        ("label_class_range", A, 8, "3"),
    ]
    assert all("ids seem to start at 1" in f.message for f in found if f.severity == "error")
    assert found[1:3] == NOTES


@pytest.mark.parametrize(
    ("labels", "values"), [((0, 1), (3,)), ((1, 2), (3, 4)), ((1, 2), (-1,)), ((1, 2), ()), ((1, 2), (2,))]
)
def test_other_classes_are_slips(labels: tuple[int, ...], values: tuple[int, ...]) -> None:
    findings = [beyond(value, 1) for value in values]
    assert revised(read(labels=labels), findings=findings) == findings


def test_the_name_of_a_class_is_no_number() -> None:
    findings = [Finding("label_class_range", "error", A, "class 'ship' is not among the names", 1, "ship")]
    assert revised(read(labels=(1,)), findings=findings) == findings
