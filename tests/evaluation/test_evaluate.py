"""Whole evaluations: equal to the reference tool, to the journal of a training run, and to themselves."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.evaluation.random_boxes import known_mean, reference_precision
from yolov9kit.errors import DataError, EvaluationError
from yolov9kit.evaluation.average_precision import PictureBoxes, average_precision
from yolov9kit.evaluation.config import EvalConfig
from yolov9kit.evaluation.evaluate import evaluate
from yolov9kit.evaluation.report import EvalReport
from yolov9kit.model.checkpoint import Checkpoint, load
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.reports import EvaluationReport
from yolov9kit.training.trainer import train

FILES = ("official-yolov9-t-deeppcb.pt", "ultralytics-yolov9t-deeppcb.pt")
CPU = EvalConfig(device="cpu", batch=4)
SMALL = EvalConfig(device="cpu", image_size=64)
ReadOnce = Callable[[str], Checkpoint]


@pytest.fixture(scope="module")
def read_once(shared: Path) -> ReadOnce:
    """The weights of one of ``FILES``: with checks of types at every call, to read a pickle takes ten seconds."""
    return cache(lambda file: load(shared / "checkpoints" / file))


def check_against_pycocotools(report: EvalReport) -> None:
    precision = reference_precision(list(report.truths), list(report.found), len(report.names))
    every = precision[..., 0]
    assert report.ap == pytest.approx(known_mean(every), abs=1e-6)
    assert report.ap50 == pytest.approx(known_mean(every[0]), abs=1e-6)
    assert report.ap75 == pytest.approx(known_mean(every[5]), abs=1e-6)
    assert report.ap_at_50() == pytest.approx(report.ap50, abs=1e-6)


@pytest.mark.parametrize(("file", "least_ap50"), list(zip(FILES, (0.83, 0.87), strict=True)))
def test_real_weights_on_real_boards(
    shared: Path, boards: Path, file: str, least_ap50: float, capsys: pytest.CaptureFixture[str]
) -> None:
    report = evaluate(shared / "checkpoints" / file, boards, CPU)
    with capsys.disabled():
        print(
            f"\n{file}: AP {report.ap:.4f}, AP50 {report.ap50:.4f}, AP75 {report.ap75:.4f}; {report.settings}"
        )
    check_against_pycocotools(report)
    assert report.ap50 > least_ap50
    assert (len(report.paths), report.objects) == (16, 99)
    assert report.scores.large is None
    assert report.at().all.f1 > 0.75
    assert report.confusion()[:-1].sum() == 99


@pytest.mark.parametrize("file", FILES)
def test_equals_pycocotools_on_the_detections_that_their_own_code_gives(
    shared: Path, boards: Path, read_once: ReadOnce, file: str
) -> None:
    """Those are of the best class of a location, score over 0.05, have four digits and are not clipped."""
    config = CPU.changed(min_score=0.05, multi_label=False)
    report = evaluate(read_once(file), boards, config)
    recorded = json.loads((shared / "checkpoints/detections.json").read_text())["detections"][file]
    truths, ours, theirs = [], [], []
    for path, truth, found in zip(report.paths, report.truths, report.found, strict=True):
        if Path(path).name == "44000021_test.jpg":  # two boxes overlap by 0.70001: either may fall
            continue
        rows = np.array(recorded[Path(path).name], np.float32).reshape(-1, 6)
        assert len(rows) == len(found.scores), path
        truths.append(truth)
        ours.append(found)
        theirs.append(PictureBoxes(rows[:, :4].clip(0, 640), rows[:, 5].astype(np.int64), rows[:, 4]))
    precision = reference_precision(truths, theirs, len(report.names))[..., 0]
    scores = average_precision(truths, ours, len(report.names))
    assert scores.ap == pytest.approx(known_mean(precision), abs=1e-4)
    assert scores.ap50 == pytest.approx(known_mean(precision[0]), abs=1e-4)
    assert scores.ap50 > 0.7


def test_v05_a_lower_floor_of_scores_changes_little(read_once: ReadOnce, tiles: Path) -> None:
    config = CPU.changed(image_size=256, batch=16)
    lower, usual = (
        evaluate(read_once(FILES[1]), tiles, config.changed(min_score=floor)) for floor in (1e-4, 1e-3)
    )
    assert len(usual.paths) >= 100 and usual.ap > 0.2
    assert lower.detections > usual.detections
    assert abs(lower.ap - usual.ap) < 0.01


def test_v07_the_batch_changes_nothing(read_once: ReadOnce, tiles: Path) -> None:
    config = CPU.changed(image_size=192, split="few")
    reports = [evaluate(read_once(FILES[1]), tiles, config.changed(batch=batch)) for batch in (1, 7, 32)]
    assert len(reports[0].paths) > 32 and reports[0].ap > 0.05
    for report in reports[1:]:
        assert report.ap == pytest.approx(reports[0].ap, abs=1e-4)
        assert report.ap50 == pytest.approx(reports[0].ap50, abs=1e-4)
        assert report.loss == pytest.approx(reports[0].loss, rel=1e-4)


def test_v10_the_best_of_a_journal_is_the_score_of_the_best_file(
    shared: Path, boards: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data.yaml"
    data.write_text(boards.read_text() + "train: images\n")
    run = TrainConfig(
        data=data, weights=shared / "checkpoints" / FILES[0], epochs=2, batch=8, image_size=160, lr0=1e-5,
        device="cpu", workers=0, project=tmp_path / "runs",
    )  # fmt: skip
    scored = [report for report in train(run) if isinstance(report, EvaluationReport)]
    best = [report for report in scored if report.best][-1]
    alone = evaluate(
        tmp_path / "runs/exp/weights/best.safetensors", data, CPU.changed(image_size=160, batch=3)
    )
    assert len(scored) == 2 and best.ap > 1e-3
    for words in ("160 px", str(CPU.selection)):
        assert words in best.settings and words in alone.settings
    assert (alone.ap, alone.ap50, alone.ap75) == pytest.approx((best.ap, best.ap50, best.ap75), abs=1e-6)
    assert alone.loss.total == pytest.approx(best.loss.total, rel=1e-5)
    assert [(one.name, one.ap) for one in alone.classes] == [
        (name, pytest.approx(ap, abs=1e-6)) for name, ap, _ in best.per_class
    ]


def test_several_sizes_in_one_call_are_those_of_single_calls(read_once: ReadOnce, tiles: Path) -> None:
    weights, config = read_once(FILES[1]), CPU.changed(split="few", batch=12)
    both = evaluate(weights, tiles, config.changed(image_size=(96, 160)))
    alone = evaluate(weights, tiles, config.changed(image_size=160))
    assert [one.image_size for one in both.sizes] == [96, 160]
    assert both.sizes[1].scores == alone.scores and both.sizes[1].loss == alone.loss
    assert both.ap == both.sizes[0].scores.ap < alone.ap
    assert both.settings.startswith("96 px")


def test_the_fused_network_scores_the_same(read_once: ReadOnce, boards: Path) -> None:
    plain, fused = (
        evaluate(read_once(FILES[1]), boards, CPU.changed(image_size=320, fused=fused))
        for fused in (False, True)
    )
    assert fused.ap == pytest.approx(plain.ap, abs=1e-3)
    assert "fused" in fused.settings and "fused" not in plain.settings


def test_the_limits_say_what_they_cut(lively_weights: Path, shapes: Path) -> None:
    report = evaluate(lively_weights, shapes, SMALL.changed(max_candidates=100, max_detections=5))
    one = report.sizes[0]
    assert one.cut > 0 and one.over > 0 and one.detections == 5 * 4
    assert f"{one.cut:,} candidates and {one.over:,} boxes over the limits cut" in report.settings


def test_one_label_gives_each_location_its_best_class(lively_weights: Path, shapes: Path) -> None:
    config = SMALL.changed(max_iou=1.0, max_detections=10_000)
    several = evaluate(lively_weights, shapes, config)
    single = evaluate(lively_weights, shapes, config.changed(multi_label=False))
    assert single.detections == 84 * 4 and several.detections == 3 * 84 * 4
    assert "one class a box" in single.settings


def test_all_classes_as_one(lively_weights: Path, shapes: Path) -> None:
    report = evaluate(lively_weights, shapes, SMALL.changed(single_class=True))
    assert report.names == ("object",) and set(report.matches.label.tolist()) == {0}
    assert "all classes as one" in report.settings
    assert np.isfinite(report.loss).all()


def test_another_number_of_classes_is_refused_with_both(lively_weights: Path, shapes: Path) -> None:
    other = shapes.with_name("two.yaml")
    other.write_text(shapes.read_text().replace("[nut, bolt, wing nut]", "[nut, bolt, wing nut, screw]"))
    with pytest.raises(EvaluationError) as error:
        evaluate(lively_weights, other, SMALL)
    assert "knows 3 classes (nut, bolt, wing nut), two has 4 classes (nut, bolt, wing nut, screw)" in str(
        error.value
    )


def test_other_names_are_a_note(lively_weights: Path, shapes: Path) -> None:
    other = shapes.with_name("renamed.yaml")
    other.write_text(shapes.read_text().replace("[nut, bolt, wing nut]", "[bolt, nut, wing nut]"))
    report = evaluate(lively_weights, other, SMALL)
    assert report.names == ("bolt", "nut", "wing nut")
    assert any(
        "2 of 3 are in another order: class 0 is 'nut' in the weights" in note for note in report.notes
    )
    assert not any(note.startswith("names") for note in evaluate(lively_weights, shapes, SMALL).notes)


def test_values_that_are_not_finite_are_an_error(lively_weights: Path, shapes: Path) -> None:
    checkpoint = load(lively_weights)
    with torch.no_grad():
        next(checkpoint.model.head.parameters()).fill_(float("nan"))
    with pytest.raises(EvaluationError, match="not finite"):
        evaluate(checkpoint, shapes, SMALL)


def test_weights_in_memory_are_left_as_they_are(lively_weights: Path, shapes: Path) -> None:
    checkpoint = load(lively_weights)
    checkpoint.model.train()
    before = {key: tensor.clone() for key, tensor in checkpoint.model.state_dict().items()}
    report = evaluate(checkpoint, shapes, SMALL)
    assert report.weights == "weights in memory"
    assert report.loss == evaluate(lively_weights, shapes, SMALL).loss
    assert all(module.training for module in checkpoint.model.modules())
    assert all(torch.equal(tensor, before[key]) for key, tensor in checkpoint.model.state_dict().items())


def test_a_missing_split_is_an_error(lively_weights: Path, shapes: Path) -> None:
    with pytest.raises(DataError, match="names no pictures for the split 'test'"):
        evaluate(lively_weights, shapes, SMALL.changed(split="test"))


def test_wrong_rows_are_refused_unless_they_may_be_skipped(
    lively_weights: Path, tmp_path: Path, shapes: Path
) -> None:
    (tmp_path / "images").mkdir()
    picture = next((shapes.parent / "images/val").glob("*.png"))
    (tmp_path / "images/a.png").write_bytes(picture.read_bytes())
    (tmp_path / "images/a.txt").write_text("0 0.5 0.5 0.2 0.2\n7 0.5 0.5 0.2 0.2\n")
    data = tmp_path / "data.yaml"
    data.write_text("val: images\nnames: [nut, bolt, wing nut]\n")
    with pytest.raises(DataError, match=r"a\.txt:2"):
        evaluate(lively_weights, data, SMALL)
    report = evaluate(lively_weights, data, SMALL.changed(skip_bad_rows=True))
    assert report.objects == 1 and any("a.txt:2" in note for note in report.notes)


def test_progress_counts_pictures(lively_weights: Path, shapes: Path) -> None:
    told: list[tuple[str, int, int]] = []
    evaluate(lively_weights, shapes, SMALL.changed(batch=3), on_progress=lambda *what: told.append(what))
    assert ("checking pictures", 4, 4) in told
    assert [what for what in told if what[0] == "evaluating at 64 px"] == [
        ("evaluating at 64 px", 3, 4),
        ("evaluating at 64 px", 4, 4),
    ]
