"""Rows of label files: there and back, and the source's own rows as far as they can stay."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolov9kit.data.dataset import Sample
from yolov9kit.data.labels import read_labels
from yolov9kit.errors import DataError
from yolov9kit.rewrite.item import Item, item_of
from yolov9kit.rewrite.label_text import write_labels

SIZE = st.sampled_from([(1, 1), (64, 48), (640, 480), (8192, 31), (70_000, 1_000)])


@st.composite
def pictures(draw: st.DrawFn) -> tuple[tuple[int, int], np.ndarray, np.ndarray]:
    """A size and any boxes of at least a fiftieth of a pixel, among them repeated ones and ones at the edge."""
    width, height = draw(SIZE)
    sides = [st.floats(0, side - 0.02, allow_subnormal=False) for side in (width, height)]
    boxes = []
    for _ in range(draw(st.integers(0, 6))):
        left, top = draw(sides[0]), draw(sides[1])
        right, bottom = (
            draw(st.floats(left, width, allow_subnormal=False)),
            draw(st.floats(top, height, allow_subnormal=False)),
        )
        boxes.append((left, top, max(right, left + 0.02), max(bottom, top + 0.02)))
    boxes += boxes[: draw(st.integers(0, 1))]
    array = np.array(boxes, np.float32).reshape(-1, 4).clip(0, np.float32([width, height, width, height]))
    labels = np.array([draw(st.integers(0, 2)) for _ in boxes], np.int64)
    return (width, height), array, labels


@settings(max_examples=150, deadline=None)
@given(picture=pictures())
def test_boxes_come_back_to_a_thousandth_of_a_pixel(
    picture: tuple[tuple[int, int], np.ndarray, np.ndarray], tmp_path_factory: pytest.TempPathFactory
) -> None:
    item, _ = item_of(Sample(Path("a.jpg"), *picture), np.array([0, 1, 1]))
    path = tmp_path_factory.getbasetemp() / "there and back.txt"
    write_labels(item, path, 2, keep_polygons=False)
    read = read_labels(path, item.sample.size_wh, 2)
    assert read.rows == len(item.classes) and (read.labels == item.classes).all()
    np.testing.assert_allclose(read.boxes, item.boxes, rtol=0, atol=1e-3)


def item_from(path: Path, new_label: list[int], clipped: frozenset[int] = frozenset()) -> Item:
    read = read_labels(path, (64, 48), 3)
    sample = Sample(Path("a.jpg"), (64, 48), read.boxes, read.labels, path, read.lines)
    return item_of(sample, np.array(new_label), clipped)[0]


POLYGON = "2 .1 .1 .5 .1 .45 .5 .1 .4"


@pytest.mark.parametrize(
    ("content", "new_label", "keep_polygons", "expected"),
    [
        # nothing changes: every byte stays, also what is no row
        ("\ufeff0 .5 .5 .2 .2\r\n\r\n# two\r\n1.0 .2 .2 .1 .1", [0, 1, 2], False, None),
        ("", [0, 1, 2], False, None),
        (POLYGON, [0, 1, 2], True, None),
        # class numbers change, and nothing else of a row
        (
            "0 .5 .5 .2 .2  # nut\n1\t.20 .2 .1 .1\n",
            [1, 0, 2],
            False,
            "1 .5 .5 .2 .2  # nut\n0 .20 .2 .1 .1\n",
        ),
        (POLYGON, [0, 1, 0], True, f"0{POLYGON[1:]}\n"),
        # a class is left out
        ("0 .5 .5 .2 .2\n1 .2 .2 .1 .1\n", [-1, 0, -1], False, "0 .2 .2 .1 .1\n"),
        # rows that gave no box are left out
        ("0 .5 .5 .2 .2\n7 .2 .2 .1 .1\n0 .5 .5 0 .2\n0 .5 .5 .2 .2\n", [0, 1, 2], False, "0 .5 .5 .2 .2\n"),
    ],
)
def test_own_rows_stay_as_they_are_written(
    tmp_path: Path, content: str, new_label: list[int], keep_polygons: bool, expected: str | None
) -> None:
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.write_bytes(content.encode())
    write_labels(item_from(source, new_label), target, 3, keep_polygons)
    assert target.read_bytes() == (content if expected is None else expected).encode()


def test_polygons_become_boxes_where_they_are_not_kept(tmp_path: Path) -> None:
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.write_text(f"{POLYGON}\n0 .5 .5 .2 .2\n")
    write_labels(item_from(source, [0, 1, 2]), target, 3, keep_polygons=False)
    first, second = target.read_text().splitlines()
    np.testing.assert_allclose(list(map(float, first.split())), [2, 0.3, 0.3, 0.4, 0.4], atol=1e-6)
    assert second == "0 .5 .5 .2 .2"


def test_a_clipped_box_ends_at_the_edge(tmp_path: Path) -> None:
    source, target = tmp_path / "source.txt", tmp_path / "target.txt"
    source.write_text("0 .95 .5 .2 .2\n1 .5 .5 .2 .2\n")
    write_labels(item_from(source, [0, 1, 2], frozenset([1])), target, 3, keep_polygons=True)
    first, second = target.read_text().splitlines()
    np.testing.assert_allclose(list(map(float, first.split())), [0, 0.925, 0.5, 0.15, 0.2], atol=1e-6)
    assert second == "1 .5 .5 .2 .2" and read_labels(target, (64, 48), 3).findings == ()


def test_the_same_box_twice_is_written_once() -> None:
    boxes = np.array([[1, 1, 9, 9], [1, 1, 9, 9], [1, 1, 9, 9]], np.float32)
    sample = Sample(Path("a.jpg"), (64, 48), boxes, np.array([0, 1, 2]))
    item, findings = item_of(sample, np.array([0, 1, 0]))
    assert item.labels.tolist() == [0, 1, -1] and [f.code for f in findings] == ["label_repeated"]
    # left out twice is not repeated
    assert item_of(sample, np.array([-1, -1, 0]))[1] == []


def test_a_box_that_no_row_can_hold_is_named(tmp_path: Path) -> None:
    boxes = np.array([[1, 1, 1, 9]], np.float32)
    item = Item(Sample(Path("a.jpg"), (64, 48), boxes, np.array([0])), np.array([0]))
    with pytest.raises(DataError, match=r"a\.jpg: has a box that no row of a label file can hold"):
        write_labels(item, tmp_path / "a.txt", 1, keep_polygons=False)
