"""Examples of a run: the same boxes back, few and evenly spread, and never half a file."""

from pathlib import Path

import numpy as np
import pytest

from yolov9kit.data.dataset import Sample
from yolov9kit.errors import TrainingError
from yolov9kit.evaluation.average_precision import PictureBoxes
from yolov9kit.training.examples import (
    EXAMPLES,
    LEAST_SCORE,
    MOST_BOXES,
    PICTURES,
    read_examples,
    write_examples,
)


def made(count: int, boxes: int = 3) -> tuple[list[Sample], list[PictureBoxes]]:
    rng = np.random.default_rng(0)
    samples, found = [], []
    for i in range(count):
        corner = rng.uniform(0, 50, (boxes, 2)).astype(np.float32)
        box = np.concatenate((corner, corner + 20), 1)
        labels = rng.integers(0, 2, boxes)
        samples.append(Sample(Path(f"picture {i} 螺.png"), (100, 80), box, labels))
        scores = np.sort(rng.uniform(0.06, 1, boxes).astype(np.float32))[::-1].copy()
        found.append(PictureBoxes(box + 1, labels, scores))
    return samples, found


def test_what_was_written_comes_back(tmp_path: Path) -> None:
    samples, found = made(3)
    write_examples(tmp_path, 7, samples, found, ["a", "b"])
    epoch, examples = read_examples(tmp_path)
    assert epoch == 7 and [e.path.name for e in examples] == [s.path.name for s in samples]
    for example, sample, boxes in zip(examples, samples, found, strict=True):
        assert example.path.is_absolute() and example.found.picture_wh == (100, 80)
        np.testing.assert_allclose(example.truth.boxes, sample.boxes, atol=0.006)
        np.testing.assert_allclose(example.found.boxes, boxes.boxes, atol=0.006)
        np.testing.assert_allclose(example.found.scores, boxes.scores, atol=6e-5)
        np.testing.assert_array_equal(example.found.labels, boxes.labels)
        assert (example.truth.scores == 1).all() and example.found.candidates is not None
        assert len(example.found.candidates) == len(example.found)


def test_pictures_are_spread_and_boxes_are_limited(tmp_path: Path) -> None:
    samples, found = made(50, boxes=MOST_BOXES + 20)
    found[0] = PictureBoxes(
        found[0].boxes, found[0].labels, np.full(MOST_BOXES + 20, LEAST_SCORE / 2, np.float32)
    )
    write_examples(tmp_path, 1, samples, found, ["a", "b"])
    _, examples = read_examples(tmp_path)
    assert len(examples) == PICTURES
    assert examples[0].path.name == samples[0].path.name and examples[-1].path.name == samples[-1].path.name
    assert [len(e.found) for e in examples] == [0, *[MOST_BOXES] * (PICTURES - 1)]


def test_no_examples_yet_and_damaged_ones(tmp_path: Path) -> None:
    assert read_examples(tmp_path) == (0, [])
    (tmp_path / EXAMPLES).write_text('{"epoch": 1, "names": ["a"], "pictures": [{"path": "x"}]}')
    with pytest.raises(TrainingError, match="cannot be read"):
        read_examples(tmp_path)


def test_a_set_of_one_picture_and_pictures_without_anything(tmp_path: Path) -> None:
    nothing = np.zeros((0, 4), np.float32)
    sample = Sample(Path("a.png"), (10, 10), nothing, np.zeros(0, np.int64))
    write_examples(
        tmp_path, 1, [sample], [PictureBoxes(nothing, np.zeros(0, np.int64), np.zeros(0, np.float32))], ["a"]
    )
    assert [len(e.found) + len(e.truth) for e in read_examples(tmp_path)[1]] == [0]
