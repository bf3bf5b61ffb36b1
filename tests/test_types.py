"""The values that travel: frozen, consistent, and clear about what does not fit."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yolov9kit.types import Candidates, Detections, Failed, Timings, printable

NAMES = ("nut", "bolt", "wing nut")


def made(n: int = 3, **changes: object) -> Detections:
    parts: dict[str, object] = {
        "boxes": [[i, i, i + 10, i + 20] for i in range(n)],
        "scores": [0.9 - 0.1 * i for i in range(n)],
        "labels": [i % 3 for i in range(n)],
        "names": NAMES,
        "picture_wh": (100, 50),
    }
    values = parts | changes
    arrays = {name: np.asarray(values[name]) for name in ("boxes", "scores", "labels")}
    return Detections(**(values | arrays))  # type: ignore[arg-type]


@settings(deadline=None)
@given(n=st.integers(0, 7))
def test_arrays_get_the_stated_shape_and_type(n: int) -> None:
    found = made(n)
    assert (found.boxes.shape, found.scores.shape, found.labels.shape) == ((n, 4), (n,), (n,))
    assert (found.boxes.dtype, found.scores.dtype, found.labels.dtype) == (np.float32, np.float32, np.int64)
    assert len(found) == n == sum(found.counts().values())


@pytest.mark.parametrize("what", ["boxes", "scores", "labels"])
@pytest.mark.parametrize("kind", [Detections, Candidates])
def test_arrays_are_frozen_copies(kind: type, what: str) -> None:
    given = {
        "boxes": np.ones((2, 4), np.float32),
        "scores": np.ones(2, np.float32),
        "labels": np.ones(2, np.int64),
    }
    rest = {"names": NAMES, "picture_wh": (9, 9)} if kind is Detections else {"min_score": 0.1}
    value = kind(**given, **rest)
    kept = vars(value)[what]
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 0
    given[what][:] = 0
    assert (kept == 1).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.scores = given["scores"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"boxes": np.zeros((3, 5))}, r"Detections.boxes: expected shape 3 x 4, got 3 x 5"),
        ({"boxes": np.zeros((2, 4))}, r"Detections.boxes: expected shape 3 x 4, got 2 x 4"),
        ({"boxes": np.zeros(12)}, r"Detections.boxes: expected shape 3 x 4, got 12"),
        ({"boxes": []}, r"Detections.boxes: expected shape 3 x 4, got 0 x 4"),
        ({"labels": [0, 1]}, r"Detections.labels: expected shape 3, got 2"),
        ({"labels": [0, 1, 3]}, r"Detections.labels: 3 has no name, there are 3"),
        ({"labels": [0, -1, 2]}, r"Detections.labels: -1 has no name, there are 3"),
        ({"labels": [0, 0.5, 1]}, r"Detections.labels: 0.5 is not a whole number"),
        ({"labels": [0, np.nan, 1]}, r"Detections.labels: nan is not a finite number"),
        ({"scores": [0.5, np.nan, 0.1]}, r"Detections.scores: nan is not a finite number"),
        ({"scores": [0.5, 1.5, 0.1]}, r"Detections.scores: 1.5 is not between 0 and 1"),
        ({"scores": [0.5, -0.5, 0.1]}, r"Detections.scores: -0.5 is not between 0 and 1"),
        ({"boxes": [[0, 0, 1, np.inf]] * 3}, r"Detections.boxes: inf is not a finite number"),
        ({"boxes": np.full((3, 4), 1e300)}, r"Detections.boxes: inf is not a finite number"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint) as caught:
        made(**changes)
    assert len(str(caught.value).splitlines()) == 1


def test_empty_boxes_of_another_width_do_not_pass() -> None:
    assert made(0, boxes=np.zeros((0, 4)), scores=np.zeros(0), labels=np.zeros(0)).boxes.shape == (0, 4)
    with pytest.raises(ValueError, match="expected shape 0 x 4, got 0 x 7"):
        made(0, boxes=np.zeros((0, 7)))


def test_candidates_are_checked_as_detections_are() -> None:
    with pytest.raises(ValueError, match=r"Candidates.boxes: expected shape 1 x 4, got 2 x 4"):
        Candidates(np.zeros((2, 4)), np.zeros(1), np.zeros(1, int), 0.1)
    assert len(Candidates(np.zeros((0, 4)), np.zeros(0), np.zeros(0, int), 0.1)) == 0


def test_whole_numbers_written_as_floats_are_labels() -> None:
    assert made(labels=np.array([0.0, 2.0, 1.0], np.float32)).labels.tolist() == [0, 2, 1]


def test_counts_put_the_most_frequent_first_and_add_classes_of_one_name() -> None:
    found = made(5, labels=[2, 1, 2, 0, 2])
    assert list(found.counts().items()) == [("wing nut", 3), ("nut", 1), ("bolt", 1)]
    assert made(3, names=("nut", "bolt", "nut")).counts() == {"nut": 2, "bolt": 1}
    assert made(0).counts() == {}


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=6, max_size=6))
def test_only_by_bools_equals_only_by_indices(keep: list[bool]) -> None:
    found = made(6, path="a.jpg", frame=7, notes=("x",))
    by_bools, by_indices = found.only(np.array(keep)), found.only(np.flatnonzero(keep))
    for one, other in (
        (by_bools, by_indices),
        (found.only(np.array(keep)).only(np.ones(sum(keep), bool)), by_bools),
    ):
        np.testing.assert_array_equal(one.boxes, other.boxes)
        np.testing.assert_array_equal(one.labels, other.labels)
    assert len(by_bools) == sum(keep)
    assert (by_bools.path, by_bools.frame, by_bools.notes, by_bools.names) == ("a.jpg", 7, ("x",), NAMES)


def test_only_none_is_possible_however_it_is_said() -> None:
    for none in (np.array([]), np.zeros(0, int), np.zeros(3, bool)):
        assert len(made(3).only(none)) == 0


def test_one_line_says_what_was_found() -> None:
    found = made(3, labels=[1, 1, 0], path="a.jpg", timings=Timings(1.0, 2.0, 3.25, 4.0))
    assert str(found) == "a.jpg 100x50: 2 bolt, 1 nut, 10.2 ms"
    assert str(made(0, path="v.mp4", frame=12)) == "v.mp4 frame 12 100x50: nothing found, 0.0 ms"


@given(st.text() | st.sampled_from(["a\nb", "caf\udce9.jpg", "\x1b[2J", "猫.jpg"]))
@settings(deadline=None)
def test_a_name_never_breaks_the_line_or_the_encoding(name: str) -> None:
    line = str(made(1, path=name, names=(name, "b", "c")))
    assert len(line.splitlines()) == 1 and "\x1b" not in line
    assert line.encode().decode() == line
    assert printable(printable(name)) == printable(name)


def test_ordinary_names_are_shown_as_they_are() -> None:
    assert printable("my photo 猫 é (1).jpg") == "my photo 猫 é (1).jpg"


def test_values_survive_a_process_boundary() -> None:
    found = pickle.loads(
        pickle.dumps(made(3, candidates=Candidates(np.ones((1, 4)), np.array([0.5]), np.array([1]), 0.1)))
    )
    np.testing.assert_array_equal(found.boxes, made(3).boxes)
    assert found.candidates is not None and found.candidates.min_score == 0.1
    assert pickle.loads(pickle.dumps(Failed("a", "b"))) == Failed("a", "b")


def test_total_is_the_sum_of_the_stages() -> None:
    assert Timings(1.0, 2.0, 3.0, 4.0).total_ms == 10 and Timings().total_ms == 0
