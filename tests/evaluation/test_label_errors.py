"""Label errors: planted ones come first, and the ranking is that of cleanlab's object detection."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.evaluation.random_boxes import boxes
from yolov9kit import Detections, EvalReport, LabelErrors, label_errors
from yolov9kit.data.dataset import Dataset, Sample
from yolov9kit.errors import EvaluationError
from yolov9kit.evaluation.average_precision import PictureBoxes
from yolov9kit.evaluation.label_errors import KINDS
from yolov9kit.evaluation.matching import match

NAMES = ("nut", "bolt", "washer", "pin")
WH = (640, 640)


def judge(
    truths: list[PictureBoxes], found: list[PictureBoxes], confident: float | None = None
) -> LabelErrors:
    samples = [Sample(Path(f"/set/{i}.png"), WH, one.boxes, one.labels) for i, one in enumerate(truths)]
    detections = [
        Detections(one.boxes, one.scores, one.labels, NAMES, WH, f"/set/{i}.png")
        for i, one in enumerate(found)
    ]
    return label_errors(detections[::-1], Dataset("set", "val", NAMES, tuple(samples)), confident=confident)


def good_set(
    seed: int, pictures: int = 40, noise: float = 2.0
) -> tuple[list[PictureBoxes], list[PictureBoxes]]:
    """One to five objects in cells of their own, and a sure detection near each; the last picture has none."""
    rng = np.random.default_rng(seed)
    truths, found = [], []
    for picture in range(pictures):
        count = int(rng.integers(1, 6)) * (picture < pictures - 1)
        cell = rng.permutation(9)[:count]
        first = np.stack((cell % 3, cell // 3), 1) * 210.0 + rng.uniform(5, 60, (count, 2))
        box = np.concatenate((first, first + rng.uniform(50, 120, (count, 2))), 1)
        labels = rng.integers(0, len(NAMES), count)
        truths.append(PictureBoxes(box.astype(np.float32), labels, np.ones(count, np.float32)))
        near = (box + rng.uniform(0, noise) * rng.normal(size=box.shape)).clip(0, 640).astype(np.float32)
        found.append(PictureBoxes(near, labels.copy(), rng.uniform(0.96, 0.999, count).astype(np.float32)))
    return truths, found


def planted(seed: int) -> tuple[list[PictureBoxes], list[PictureBoxes], dict[str, tuple[int, int]]]:
    """Good detections, and one error of each kind: kind → picture, and row of the detection or label."""
    truths, found = good_set(seed)
    rng = np.random.default_rng(seed)
    rich = [i for i, one in enumerate(truths) if len(one.labels) > 1]
    missed, misplaced, swapped = rng.choice(rich, 3, replace=False).tolist()
    row = {i: int(rng.integers(len(truths[i].labels))) for i in (missed, misplaced, swapped)}
    one = truths[missed]
    keep = np.arange(len(one.labels)) != row[missed]
    truths[missed] = PictureBoxes(one.boxes[keep], one.labels[keep], one.scores[keep])
    box = truths[misplaced].boxes[row[misplaced]]
    box += np.tile((box[2:] - box[:2]) * 0.4, 2)
    labels = truths[swapped].labels
    labels[row[swapped]] = (labels[row[swapped]] + 1) % len(NAMES)
    places = {"missed": missed, "misplaced": misplaced, "swapped": swapped}
    return truths, found, {kind: (i, row[i]) for kind, i in places.items()}


# ---------------------------------------------------------------------------------------------- beside cleanlab


def of_cleanlab(truths: list[PictureBoxes], found: list[PictureBoxes]) -> dict[str, Any]:
    labels = [{"bboxes": one.boxes.astype(float), "labels": one.labels} for one in truths]
    predictions = []
    for one in found:
        by_class = np.empty(len(NAMES), object)
        for label in range(len(NAMES)):
            mine = one.labels == label
            by_class[label] = np.concatenate((one.boxes[mine], one.scores[mine, None]), 1).astype(float)
        predictions.append(by_class)
    return {"labels": labels, "predictions": predictions}


def cleanlab_scores(truths: list[PictureBoxes], found: list[PictureBoxes]) -> dict[str, list[np.ndarray]]:
    """Kind → picture → scores, with cleanlab's own thresholds; 1 where it says nothing."""
    rank = pytest.importorskip("cleanlab.object_detection.rank", reason="cleanlab is not here")
    given = of_cleanlab(truths, found)
    scores = {
        "missed": [
            scores[
                np.argsort(np.argsort(one.labels, kind="stable"))
            ]  # cleanlab has detections class by class
            for scores, one in zip(rank.compute_overlooked_box_scores(**given), found, strict=True)
        ],
        "misplaced": rank.compute_badloc_box_scores(**given),
        "swapped": rank.compute_swap_box_scores(**given),
    }
    return {kind: [np.nan_to_num(one, nan=1.0) for one in of] for kind, of in scores.items()}


def first_of(scores: list[np.ndarray] | tuple[np.ndarray, ...]) -> tuple[int, int]:
    lowest = [one.min(initial=2.0) for one in scores]
    picture = int(np.argmin(lowest))
    return picture, int(scores[picture].argmin())


@pytest.mark.parametrize("seed", range(5))
def test_planted_errors_come_first_here_and_at_cleanlab(seed: int) -> None:
    truths, found, places = planted(seed)
    ours, theirs = judge(truths, found), cleanlab_scores(truths, found)
    for kind in KINDS:
        assert first_of(ours.of_kind(kind)) == first_of(theirs[kind]) == places[kind]
    assert {(one.kind, one.picture) for one in ours.ranking(3)} == {(k, i) for k, (i, _) in places.items()}


@pytest.mark.parametrize("seed", range(3))
def test_pictures_are_ranked_as_cleanlab_ranks_them(seed: int) -> None:
    """Noise of its own in each picture; a tenth of the labels are gone, a seventh have another class."""
    rank = pytest.importorskip("cleanlab.object_detection.rank", reason="cleanlab is not here")
    truths, found = good_set(seed, pictures=150, noise=12)
    rng = np.random.default_rng(seed)
    for i, one in enumerate(truths):
        fate = rng.random(len(one.labels))
        labels = np.where(fate > 0.86, (one.labels + 1) % len(NAMES), one.labels)
        truths[i] = PictureBoxes(*(values[fate > 0.1] for values in (one.boxes, labels, one.scores)))
    ours, theirs = judge(truths, found, confident=0.95), cleanlab_scores(truths, found)
    for kind in KINDS:
        # cleanlab's scores from 0.9 to 1 tell only how far away another box is
        lowest = [min(scores.min(initial=1.0), 0.9) for scores in theirs[kind]]
        assert spearmanr(ours.picture_scores(kind), lowest).statistic > 0.9, kind
    together = rank.get_label_quality_scores(**of_cleanlab(truths, found), verbose=False)
    assert spearmanr(ours.picture_scores(), together).statistic > 0.95


# ---------------------------------------------------------------------------------------------- what a score is

OBJECT = (100.0, 100.0, 200.0, 200.0)
SHIFTED = (150.0, 100.0, 250.0, 200.0)  # IoU 1/3 with it
FAR = (400.0, 400.0, 500.0, 500.0)


def only(errors: LabelErrors) -> tuple:
    [error] = errors.ranking()
    return error.kind, round(error.score, 4), error.row, error.label, error.suggested_label, error.confidence


def test_labels_that_are_confirmed_are_not_suspicious() -> None:
    truth = boxes(OBJECT, FAR, labels=[0, 1])
    errors = judge([truth], [boxes(OBJECT, FAR, labels=[0, 1], scores=[0.75, 0.5])])
    assert errors.ranking() == () and errors.picture_scores().tolist() == [1.0]


def test_a_detection_where_no_label_is() -> None:
    errors = judge([boxes(OBJECT)], [boxes(OBJECT, FAR, labels=[0, 2], scores=[0.9, 0.75])])
    assert only(errors) == ("missed", 0.25, -1, -1, 2, 0.75)
    assert (errors.ranking()[0].box, errors.ranking()[0].suggested_box) == (None, FAR)
    assert errors.missed[0].tolist() == [1.0, 0.25]


def test_a_box_beside_its_detection() -> None:
    errors = judge([boxes(SHIFTED, labels=[3])], [boxes(OBJECT, labels=[3], scores=[0.75])])
    error = errors.ranking()[0]
    assert error.kind == "misplaced" and error.score == pytest.approx(1 - 0.75 * 2 / 3)
    assert (error.row, error.label, error.box, error.suggested_box) == (0, 3, SHIFTED, OBJECT)
    # it covers the detection by two thirds of what would explain it
    assert errors.missed[0][0] == pytest.approx(1 - 0.75 / 3) and len(errors.ranking()) == 2


def test_a_class_that_is_contradicted() -> None:
    errors = judge([boxes(OBJECT, labels=[1])], [boxes(OBJECT, labels=[2], scores=[0.75])])
    assert only(errors) == ("swapped", 0.25, 0, 1, 2, 0.75)


def test_a_class_that_its_own_detection_speaks_for() -> None:
    truth = boxes(OBJECT, labels=[1])
    weaker = judge([truth], [boxes(OBJECT, OBJECT, labels=[1, 2], scores=[0.25, 0.75])])
    assert only(weaker) == ("swapped", 0.5, 0, 1, 2, 0.75)
    stronger = judge([truth], [boxes(OBJECT, OBJECT, labels=[1, 2], scores=[0.75, 0.625])])
    assert stronger.ranking() == ()


def test_a_neighbour_contradicts_nothing() -> None:
    """The object is not found at all; the one beside it, of the same or another class, is."""
    for label in (0, 1):
        errors = judge(
            [boxes(OBJECT, SHIFTED, labels=[0, label])], [boxes(SHIFTED, labels=[label], scores=[0.9])]
        )
        assert errors.ranking() == ()


def test_unsure_detections_contradict_nothing() -> None:
    found = boxes(SHIFTED, FAR, OBJECT, labels=[0, 0, 1], scores=[0.4, 0.4, 0.4])
    assert judge([boxes(OBJECT)], [found]).ranking() == ()
    assert {error.kind for error in judge([boxes(OBJECT)], [found], confident=0.3).ranking()} == {*KINDS}


def test_empty_pictures() -> None:
    nothing = boxes()
    errors = judge([nothing, nothing, boxes(OBJECT)], [nothing, boxes(FAR, scores=[0.75]), nothing])
    assert only(errors) == ("missed", 0.25, -1, -1, 0, 0.75) and errors.ranking()[0].picture == 1
    assert errors.picture_scores().tolist() == [1.0, 0.25, 1.0]


def test_scores_do_not_depend_on_the_order_of_boxes() -> None:
    truths, found, _ = planted(7)
    order = [np.random.default_rng(i).permutation(len(one.labels)) for i, one in enumerate(found)]
    shuffled = [PictureBoxes(o.boxes[p], o.labels[p], o.scores[p]) for o, p in zip(found, order, strict=True)]
    before, after = judge(truths, found), judge(truths, shuffled)
    for i, one in enumerate(order):
        assert np.array_equal(before.missed[i][one], after.missed[i])
    for kind in ("misplaced", "swapped"):
        assert all(map(np.array_equal, before.of_kind(kind), after.of_kind(kind)))


def test_a_ranking_can_be_of_some_kinds_and_short() -> None:
    truths, found, _ = planted(8)
    errors = judge(truths, found)
    everything = errors.ranking()
    scores = [error.score for error in everything]
    assert scores == sorted(scores) and 0 <= scores[0] <= scores[-1] < 1
    assert errors.ranking(2) == everything[:2]
    moved = errors.ranking(4, ["misplaced"])
    assert moved == tuple(error for error in everything if error.kind == "misplaced")[:4]
    below = [
        (k, i, j) for k in KINDS for i, of in enumerate(errors.of_kind(k)) for j in np.flatnonzero(of < 1)
    ]
    assert len(everything) == len(below)


# ---------------------------------------------------------------------------------------------- what it is given


def test_an_evaluation_holds_all_that_is_needed() -> None:
    truths, found, _ = planted(3)
    report = report_of(truths, found)
    errors = label_errors(report)
    assert (errors.names, errors.paths, errors.confident) == (NAMES, report.paths, report.threshold)
    assert errors.ranking()[0].path == report.paths[errors.ranking()[0].picture]
    apart = judge(truths, found, confident=report.threshold)
    for kind in KINDS:
        assert all(map(np.array_equal, errors.of_kind(kind), apart.of_kind(kind)))
    assert label_errors(report_of(truths, truths)).ranking() == ()  # detections that are the labels
    with pytest.raises(EvaluationError, match="holds its labels"):
        label_errors(report, Dataset("set", "val", NAMES, ()))


def report_of(truths: list[PictureBoxes], found: list[PictureBoxes]) -> EvalReport:
    return EvalReport(
        weights="w.pt",
        data="set val",
        settings="",
        names=NAMES,
        sizes=(),
        paths=tuple(f"{i}.png" for i in range(len(truths))),
        sizes_wh=(WH,) * len(truths),
        truths=tuple(truths),
        found=tuple(found),
        matches=match(truths, found),
        min_score=0.001,
    )


def test_detections_that_do_not_belong_to_the_data_set_are_refused() -> None:
    boxless, labels, scores = np.empty((0, 4), np.float32), np.empty(0, np.int64), np.empty(0, np.float32)
    dataset = Dataset("set", "val", NAMES, (Sample(Path("/set/a.png"), WH, boxless, labels),))
    with pytest.raises(EvaluationError, match="the labels are missing"):
        label_errors([])
    with pytest.raises(EvaluationError, match=r"a\.png: no detections"):
        label_errors([], dataset)
    for names, wh, message in (
        (NAMES[:2], WH, "knows 2 classes, set has 4"),
        (NAMES, (64, 64), "64 x 64 and 640 x 640"),
    ):
        with pytest.raises(EvaluationError, match=message):
            label_errors([Detections(boxless, scores, labels, names, wh, "/set/a.png")], dataset)
