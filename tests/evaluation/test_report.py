"""What is read from the matches without running anything again."""

import json

import numpy as np
import pytest

from tests.evaluation.random_boxes import Boxes, boxes, random_set
from yolov9kit.evaluation.average_precision import average_precision
from yolov9kit.evaluation.curve import Point
from yolov9kit.evaluation.matching import match
from yolov9kit.evaluation.report import EvalReport, Loss, SizeScore
from yolov9kit.evaluation.text import as_record, table


def report_of(truths: Boxes, found: Boxes, names: tuple[str, ...], **more: object) -> EvalReport:
    scores = average_precision(truths, found, len(names))
    detections = sum(len(one.labels) for one in found)
    size = SizeScore(64, scores, Loss(4.0, 1.0, 2.0, 1.0), detections, 0, 0, {"network": 5.0})
    settings = {"weights": "w.pt", "data": "data val", "settings": "64 px", "min_score": 0.001, **more}
    return EvalReport(
        names=names,
        sizes=(size,),
        paths=tuple(f"{n}.png" for n in range(len(truths))),
        sizes_wh=((640, 640),) * len(truths),
        truths=tuple(truths),
        found=tuple(found),
        matches=match(truths, found),
        **settings,
    )


@pytest.fixture(scope="module")
def by_hand() -> EvalReport:
    """Two pictures, classes a, b and c; c stands nowhere, b is taken for a once."""
    truths = [
        boxes((0, 0, 100, 100), (200, 0, 300, 100), labels=[0, 1]),
        boxes((0, 0, 10, 10), (50, 50, 90, 90), labels=[0, 1]),
    ]
    found = [
        boxes(
            (0, 0, 100, 100), (200, 0, 300, 90), (400, 0, 500, 50), labels=[0, 0, 2], scores=[0.9, 0.8, 0.3]
        ),
        boxes((50, 50, 90, 90), labels=[1], scores=[0.7]),
    ]
    return report_of(truths, found, ("a", "b", "c"))


def test_a_small_set_by_hand(by_hand: EvalReport) -> None:
    assert by_hand.at(0.5).all == pytest.approx(Point(2 / 3, 2 / 4, 4 / 7))
    assert by_hand.at(0.5).classes[:2] == (
        pytest.approx(Point(0.5, 0.5, 0.5)),
        pytest.approx(Point(1, 0.5, 2 / 3)),
    )
    assert by_hand.at(0.2).classes[2] == Point(0.0, None, None)
    assert by_hand.at(0.5).classes[2] == Point(None, None, None)
    assert by_hand.confusion(0.5).tolist() == [[1, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert by_hand.confusion(0.2).tolist()[3] == [0, 0, 1, 0]
    assert by_hand.confusion(0.5, min_iou=0.95).tolist() == [
        [1, 0, 0, 1],
        [0, 1, 0, 1],
        [0, 0, 0, 0],
        [1, 0, 0, 0],
    ]
    worst = [(one.path, one.objects, one.missed, one.wrong) for one in by_hand.worst(0.5)]
    assert worst == [("0.png", 2, 1, 1), ("1.png", 2, 1, 0)]
    assert [(one.objects, one.pictures, one.detections) for one in by_hand.classes] == [
        (2, 2, 2),
        (2, 2, 1),
        (0, 0, 1),
    ]


def test_the_threshold_is_the_middle_of_where_f1_is_best(by_hand: EvalReport) -> None:
    assert by_hand.at(by_hand.threshold).all.f1 == pytest.approx(4 / 7)
    assert by_hand.threshold == pytest.approx(0.499, abs=2e-3)  # of 0.3 to 0.699


def test_the_threshold_is_the_best_of_all() -> None:
    report = report_of(*random_set(3), tuple("abcde"))
    best = report.at().all.f1
    assert best == pytest.approx(max(report.at(t / 200).all.f1 for t in range(1, 200)), abs=5e-3)
    assert all(report.at(t / 200).all.f1 <= best + 1e-12 for t in range(1, 200))


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.8, 1.0])
def test_every_object_and_every_detection_is_in_the_confusion_once(threshold: float) -> None:
    truths, found = random_set(5, pictures=20)
    counts = report_of(truths, found, tuple("abcde")).confusion(threshold)
    labels = np.concatenate([one.labels for one in truths])
    above = np.concatenate([one.labels[one.scores > threshold] for one in found])
    assert counts[:-1].sum(1).tolist() == np.bincount(labels, minlength=5).tolist()
    assert counts[:, :-1].sum(0).tolist() == np.bincount(above, minlength=5).tolist()
    assert counts[-1, -1] == 0


def test_missed_and_wrong_of_all_pictures_add_up() -> None:
    truths, found = random_set(6, pictures=20)
    report = report_of(truths, found, tuple("abcde"))
    point, worst = report.at(0.4).all, report.worst(0.4, count=20)
    above = int((report.matches.score > 0.4).sum())
    right = round(point.precision * above)
    assert sum(one.wrong for one in worst) == above - right
    assert sum(one.missed for one in worst) == report.objects - right
    faults = [one.missed + one.wrong for one in worst]
    assert faults == sorted(faults, reverse=True) and len(report.worst(0.4, count=3)) == 3


def test_pictures_without_a_fault_are_not_among_the_worst() -> None:
    truth = [boxes((0, 0, 9, 9)), boxes((0, 0, 9, 9))]
    assert [one.index for one in report_of(truth, [truth[0], boxes()], ("a",)).worst(0.5)] == [1]


def test_ap_of_the_report_is_the_mean_of_its_curves() -> None:
    report = report_of(*random_set(8, pictures=20), tuple("abcde"))
    assert report.ap_at_50() == pytest.approx(report.ap50, abs=1e-6)
    assert report.mean_precision().mean() == pytest.approx(report.ap50, abs=1e-6)
    assert [one.ap50 for one in report.classes] == pytest.approx(
        [report.curve(n).ap() for n in range(5)], abs=1e-6
    )


def test_v08_no_objects_are_words_and_null_never_a_number(by_hand: EvalReport) -> None:
    text, record = table(by_hand), as_record(by_hand)
    assert "AP large 0.4505" not in text and "AP small 0.0000" in text
    row = next(line for line in text.splitlines() if line.startswith("c "))
    assert row.split() == ["c", "-", "-", "-", "-", "-", "no", "objects"]
    only_large = report_of([boxes((0, 0, 200, 200))], [boxes((0, 0, 200, 200))], ("a", "b"))
    assert "AP small no objects, AP medium no objects, AP large 1.0000" in table(only_large)
    assert only_large.ap == pytest.approx(1.0)
    assert record["classes"][2]["ap"] is None
    assert as_record(only_large)["sizes"][0]["small"] is None
    assert "-1" not in table(only_large)


def test_v08_a_set_without_any_object_or_detection() -> None:
    report = report_of([boxes(), boxes()], [boxes(), boxes()], ("a", "b"))
    assert (report.ap, report.ap_at_50(), report.mean_precision()) == (None, None, None)
    assert report.at().all == Point(None, None, None)
    assert report.worst() == () and report.confusion().sum() == 0
    assert table(report).startswith("AP 50-95 no objects, AP 50 no objects")
    json.dumps(as_record(report), allow_nan=False)


def test_the_record_is_json_and_the_table_ends_with_the_settings(by_hand: EvalReport) -> None:
    record = json.loads(json.dumps(as_record(by_hand), allow_nan=False))
    assert record["sizes"][0]["ap50"] == by_hand.ap50
    assert record["confusion"]["counts"] == by_hand.confusion().tolist()
    assert table(by_hand).splitlines()[-1] == "settings: 64 px"
    assert not any(line.startswith("a ") for line in table(by_hand, classes=False).splitlines())


def test_the_arrays_cannot_be_changed(by_hand: EvalReport) -> None:
    with pytest.raises(ValueError, match="read-only"):
        by_hand.matches.score[0] = 0
