"""Detection: one equals many, thresholds, precisions, threads, and real weights on real boards."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from yolov9kit import Detections, Detector, Failed, deployed, detect, load, reselect
from yolov9kit.errors import CheckpointError, DeviceError, KitError, PictureError, UsageError
from yolov9kit.geometry import iou_matrix

BOARDS = "checkpoints/images"
FOREIGN = ["official-yolov9-t-deeppcb.pt", "ultralytics-yolov9t-deeppcb.pt"]


@pytest.fixture(scope="module")
def detector(lively_weights: Path) -> Detector:
    return Detector(lively_weights, "cpu", image_size=64, min_score=0.3)


def assert_same(a: Detections, b: Detections, pixels: float = 1e-3, score: float = 1e-5) -> None:
    assert len(a) == len(b) and a.path == b.path and a.picture_wh == b.picture_wh
    np.testing.assert_allclose(a.boxes, b.boxes, atol=pixels)
    np.testing.assert_allclose(a.scores, b.scores, atol=score)
    np.testing.assert_array_equal(a.labels, b.labels)


def test_finds_something(detector: Detector, photos: Path) -> None:
    """The other tests of this file would pass on nothing."""
    found = detector.detect(photos)
    assert len(found) == 5 and all(len(f) > 3 for f in found)
    assert len({label for f in found for label in f.labels.tolist()}) > 1


def test_a_batch_of_mixed_sizes_equals_single_calls(detector: Detector, photos: Path) -> None:
    together = detector.detect(photos, batch_size=5)
    for found, path in zip(together, sorted(photos.iterdir()), strict=True):
        assert_same(found, detector.detect(path)[0])


def test_results_are_frozen_and_inside_the_picture(detector: Detector, photos: Path) -> None:
    for found in detector.detect(photos):
        width, height = found.picture_wh
        assert found.boxes.dtype == found.scores.dtype == np.float32
        assert (
            (found.boxes >= 0).all()
            and (found.boxes[:, ::2] <= width).all()
            and (found.boxes[:, 1::2] <= height).all()
        )
        assert (found.boxes[:, 2:] > found.boxes[:, :2]).all()
        assert (np.diff(found.scores) <= 0).all()
        with pytest.raises(ValueError, match="read-only"):
            found.boxes[0] = 0


def test_eight_threads_equal_the_serial_result(detector: Detector, photos: Path) -> None:
    paths = sorted(photos.iterdir())
    serial = [detector.detect(path)[0] for path in paths]
    results: dict[int, list[Detections]] = {}

    def work(i: int) -> None:
        results[i] = [detector.detect(path)[0] for path in paths]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for found in results.values():
        for a, b in zip(found, serial, strict=True):
            assert_same(a, b)


@pytest.mark.parametrize(
    "thresholds",
    [
        {"min_score": 0.35, "max_iou": 0.3},
        {"min_score": 0.5},
        {"max_iou": 0.9, "min_score": 0.3},
        {"agnostic": True},
    ],
)
def test_thresholds_move_without_the_model(detector: Detector, photos: Path, thresholds: dict) -> None:
    kept = detector.detect(photos, keep_candidates=True, candidate_score=0.05)
    for before, wanted in zip(kept, detector.detect(photos, **{"min_score": 0.25} | thresholds), strict=True):
        assert before.candidates is not None and before.candidates.cut == 0
        assert_same(reselect(before, **thresholds), wanted, pixels=1e-6, score=0)


def test_candidates_state_their_floor_and_their_cut(detector: Detector, photos: Path) -> None:
    found = detector.detect(photos, keep_candidates=True, candidate_score=0.2, max_candidates=5)[0]
    assert found.candidates is not None and len(found.candidates) == 5 and found.candidates.cut > 0
    with pytest.raises(UsageError, match=r"min_score 0.1: the candidates were kept above 0.2"):
        reselect(found, min_score=0.1)
    with pytest.raises(UsageError, match="keep_candidates=True"):
        reselect(detector.detect(photos)[0])


def test_class_filter_and_limit(detector: Detector, photos: Path) -> None:
    everything = detector.detect(photos)[0]
    some = detector.detect(photos, classes=[1])[0]
    np.testing.assert_array_equal(some.boxes, everything.boxes[everything.labels == 1])
    assert len(detector.detect(photos, max_detections=2)[0]) == 2
    with pytest.raises(UsageError, match=r"class 3: the weights know 0 to 2 \(nut, bolt, wing nut\)"):
        detector.detect(photos, classes=[3])


def test_a_broken_picture_is_named_and_the_rest_goes_on(
    detector: Detector, photos: Path, tmp_path: Path
) -> None:
    for path in photos.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "photo 2.png").write_bytes(b"no picture")
    failed: list[Failed] = []
    assert len(detector.detect(tmp_path, failed=failed)) == 4
    assert [Path(item.path).name for item in failed] == ["photo 2.png"] and "photo 2.png" in failed[0].error
    with pytest.raises(PictureError, match=r"photo 2\.png"):
        detector.detect(tmp_path)


def test_a_training_form_detects_as_its_deployed_form(photos: Path) -> None:
    from yolov9kit.model.checkpoint import Checkpoint, LoadReport
    from yolov9kit.model.yolov9 import yolov9

    model = yolov9("t", 2).eval()
    for tower in model.head.cls:
        torch.nn.init.zeros_(tower[-1].bias)  # type: ignore[index]
    pairs = [
        Checkpoint(m, ("a", "b"), "t", m.form, "yolov9kit", LoadReport(1, 1))
        for m in (model, deployed(model))
    ]
    one, other = (detect(c, photos, device="cpu", image_size=64) for c in pairs)
    for a, b in zip(one, other, strict=True):
        assert len(a) and np.array_equal(a.boxes, b.boxes)


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precisions_run_where_they_are_named(lively_weights: Path, photos: Path, precision: str) -> None:
    half = Detector(lively_weights, "cpu", precision, image_size=64, min_score=0.3)
    assert half.runner.network.backbone.conv1.conv.weight.dtype in (torch.float16, torch.bfloat16)
    exact = Detector(lively_weights, "cpu", image_size=64, min_score=0.25).detect(photos)
    for a, b in zip(half.detect(photos), exact, strict=True):
        assert len(a)
        iou = iou_matrix(torch.tensor(a.boxes), torch.tensor(b.boxes)).numpy()
        assert (iou.max(axis=1) > 0.8).mean() > 0.7  # crowded noise; real weights are compared below


def test_what_cannot_be_had_is_refused(lively_weights: Path) -> None:
    with pytest.raises(DeviceError, match="precision tf32: a mode of NVIDIA tensor cores"):
        Detector(lively_weights, "cpu", "tf32")
    with pytest.raises(UsageError, match="precision 'int8'"):
        Detector(lively_weights, "cpu", "int8")
    with pytest.raises(DeviceError, match=r"device 'cuda:77'.*cpu"):
        Detector(lively_weights, "cuda:77")
    with pytest.raises(UsageError, match="image size 100: must be a multiple of 32, the nearest is 96"):
        Detector(lively_weights, "cpu").detect(np.zeros((8, 8, 3), np.uint8), image_size=100)
    with pytest.raises(UsageError, match="min_scores: no such setting"):
        Detector(lively_weights, "cpu", min_scores=0.5)
    with pytest.raises(UsageError, match="min_score = 2"):
        Detector(lively_weights, "cpu", min_score=2)
    with pytest.raises(CheckpointError, match="no such file"):
        Detector("nowhere.pt", "cpu")


@pytest.mark.parametrize("mode", ["eager", "onnx"])
def test_values_that_are_not_finite_never_become_detections(lively_weights: Path, mode: str) -> None:
    checkpoint = load(lively_weights)
    with torch.no_grad():
        checkpoint.model.head.cls[0][-1].bias.fill_(float("nan"))  # type: ignore[index]
    broken = Detector(checkpoint, "cpu", image_size=64, mode=mode)
    with pytest.raises(KitError, match="not finite in fp32"):
        broken.detect(np.zeros((64, 64, 3), np.uint8))


def test_an_empty_picture_gives_an_empty_result(lively_weights: Path) -> None:
    found = detect(lively_weights, np.zeros((1, 1, 3), np.uint8), device="cpu", image_size=64, min_score=1.0)[
        0
    ]
    assert found.boxes.shape == (0, 4) and len(found) == 0 and "nothing found" in str(found)


def test_detection_changes_no_torch_setting(detector: Detector, photos: Path) -> None:
    def settings() -> tuple:
        return (
            torch.backends.cudnn.allow_tf32,
            torch.backends.cuda.matmul.allow_tf32,
            torch.get_float32_matmul_precision(),
            torch.is_grad_enabled(),
            torch.get_num_threads(),
            torch.get_default_dtype(),
        )

    before = settings()
    detector.detect(photos)
    assert settings() == before


# ------------------------------------------------------------------------------------- real weights, real boards


def differences(found: Detections, rows: np.ndarray) -> int:
    """Rows without a partner, both ways, among those not at the score threshold's edge."""
    wanted = rows.copy()
    wanted[:, :4] = wanted[:, :4].clip(0, 640)  # the official list is not clipped to the picture
    left = list(range(len(wanted)))
    lonely = 0
    for box, score, label in zip(found.boxes, found.scores, found.labels, strict=True):
        fits = [
            i
            for i in left
            if wanted[i, 5] == label
            and abs(wanted[i, 4] - score) < 2e-3
            and abs(wanted[i, :4] - box).max() < 0.5
        ]
        if fits:
            left.remove(fits[0])
        else:
            lonely += 1
    return lonely + len(left)


@pytest.mark.parametrize("weights", FOREIGN)
def test_foreign_weights_give_their_own_detections(weights: str, shared: Path) -> None:
    folder = shared / "checkpoints"
    wanted = json.loads((folder / "detections.json").read_text())["detections"][weights]
    found = detect(folder / weights, folder / "images", device="cpu", min_score=0.05)
    total = sum(len(rows) for rows in wanted.values())
    wrong = sum(differences(f, np.array(wanted[Path(f.path).name])) for f in found)
    assert len(found) == 16 and total in (213, 200)
    assert wrong <= total / 200  # two boxes of 44000021_test.jpg overlap by 0.70001


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_agrees_on_real_boards(precision: str, shared: Path) -> None:
    weights, boards = shared / "checkpoints" / FOREIGN[0], sorted((shared / BOARDS).glob("*.jpg"))[:4]
    exact = detect(weights, [str(b) for b in boards], device="cpu")
    half = detect(weights, [str(b) for b in boards], device="cpu", precision=precision, min_score=0.2)
    for a, b in zip(exact, half, strict=True):
        iou = iou_matrix(torch.tensor(a.boxes), torch.tensor(b.boxes)).numpy() * (
            a.labels[:, None] == b.labels
        )
        assert (iou.max(axis=1) > 0.9).all()
        assert np.abs(a.scores - b.scores[iou.argmax(axis=1)]).max() < 0.03


def test_real_weights_load_where_neither_project_is_installed(shared: Path) -> None:
    import importlib.util

    assert all(importlib.util.find_spec(name) is None for name in ("ultralytics", "models", "yolo9"))
    checkpoint = load(shared / "checkpoints" / FOREIGN[0])
    assert (checkpoint.size, checkpoint.form, checkpoint.source) == ("t", "training", "official")
    assert checkpoint.names == ("open", "short", "mousebite", "spur", "copper", "pin-hole")
