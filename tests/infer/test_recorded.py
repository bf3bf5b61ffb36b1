"""What one recording does is what is done step by step. On a processor the same sentence runs with the references."""

import copy
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from tests.waiting import in_threads
from yolov9kit import Detections, Detector, Failed, load
from yolov9kit.cuda_graph import Captured, CaptureError
from yolov9kit.data.gpu_jpeg import GpuJpegDecoder, JpegEngine
from yolov9kit.data.letterbox import letterbox
from yolov9kit.device import choose_device, choose_precision
from yolov9kit.errors import KitError
from yolov9kit.infer import recorded, way
from yolov9kit.infer.config import DetectConfig
from yolov9kit.infer.mode import Mode
from yolov9kit.infer.recorded import (
    Form,
    Kernels,
    Recorded,
    blank_settings,
    copy_pixels,
    found,
    set_up,
)
from yolov9kit.infer.way import OneLaunch, Stepwise
from yolov9kit.kernels.letterbox import interleaved, letterbox_reference, planar
from yolov9kit.kernels.nms import nms_reference

CPU = choose_device("cpu")
FP32 = choose_precision("fp32", CPU)
SETTINGS: list[dict[str, Any]] = [
    {},
    {"classes": (1,)},
    {"agnostic": True, "max_iou": 0.3},
    {"min_score": 0.5, "max_detections": 4},
    {"keep_candidates": True},
    {"keep_candidates": True, "classes": (0, 2), "max_candidates": 20},
]


def letterboxed(pixels: Tensor, table: Tensor, out: Tensor) -> Tensor:
    return out.copy_(letterbox_reference(pixels, table, (out.shape[2], out.shape[3]), out.dtype))


REFERENCES = Kernels(letterboxed, nms_reference)


class Event:
    """Nothing is ever under way on a processor."""

    def __init__(self, enable_timing: bool = False) -> None: ...

    def record(self, stream: object = None) -> None: ...

    def synchronize(self) -> None: ...

    def elapsed_time(self, end_event: object) -> float:
        return 1.0


class Graph:
    """Does again what was to be recorded, into the same outputs."""

    def __init__(self, function: Any, inputs: Any, outputs: Any) -> None:
        self._function, self._inputs, self._outputs = function, inputs, outputs

    def replay(self) -> None:
        for place, values in zip(self._outputs, self._function(*self._inputs), strict=True):
            place.copy_(values)


def on_the_processor(function: Any, examples: Any, pool: object) -> Captured:
    inputs = tuple(example.clone() for example in examples)
    outputs = function(*inputs)
    return Captured(Graph(function, inputs, outputs), inputs, outputs)


@pytest.fixture
def no_gpu_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of a GPU on a processor: references for kernels, and repeating for replaying."""
    monkeypatch.setattr(recorded, "capture", on_the_processor)
    monkeypatch.setattr(recorded, "Kernels", lambda: REFERENCES)
    for name, stand_in in (
        ("Event", Event),
        ("device", lambda _: nullcontext()),
        ("graph_pool_handle", object),
    ):
        monkeypatch.setattr(torch.cuda, name, stand_in)
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(Tensor, "pin_memory", Tensor.clone)


@pytest.fixture
def one_launch(lively_weights: Path, no_gpu_is_needed: None) -> Detector:
    """A detector that goes the way of a GPU."""
    detector = Detector(lively_weights, "cpu", mode="eager", image_size=64, min_score=0.3)
    detector.runner.recordable = detector.runner._engine
    detector._way = OneLaunch(detector.runner, detector.names, Stepwise(detector.runner, detector.names))
    return detector


def assert_equal(ours: Detections, wanted: Detections, pixels: float = 0.0, score: float = 0.0) -> None:
    assert (ours.path, ours.picture_wh, ours.notes) == (wanted.path, wanted.picture_wh, wanted.notes)
    assert (ours.candidates is None) == (wanted.candidates is None)
    pairs: list[tuple[Any, Any]] = [(ours, wanted)]
    if ours.candidates is not None and wanted.candidates is not None:
        assert (ours.candidates.min_score, ours.candidates.cut) == (
            wanted.candidates.min_score,
            wanted.candidates.cut,
        )
        pairs.append((ours.candidates, wanted.candidates))
    for a, b in pairs:
        np.testing.assert_allclose(a.boxes, b.boxes, atol=pixels, rtol=0)
        np.testing.assert_allclose(a.scores, b.scores, atol=score, rtol=0)
        np.testing.assert_array_equal(a.labels, b.labels)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_one_launch_equals_step_by_step(
    one_launch: Detector, lively_weights: Path, photos: Path, settings: dict[str, Any]
) -> None:
    plain = Detector(lively_weights, "cpu", mode="eager", image_size=64, min_score=0.3)
    wanted = plain.detect(photos, batch_size=5, **settings)
    assert sum(map(len, wanted)) > 10
    for a, b in zip(one_launch.detect(photos, batch_size=5, **settings), wanted, strict=True):
        assert_equal(a, b, pixels=1e-3, score=1e-6)
    # the last batch is not full: convolutions of another size differ in the last digits
    for a, b in zip(one_launch.detect(photos, batch_size=2, **settings), wanted, strict=True):
        assert_equal(a, b, pixels=1e-3, score=1e-5)


def test_more_locations_than_fit_take_the_plain_way(
    one_launch: Detector, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = one_launch.detect(photos)
    monkeypatch.setattr(recorded, "SLOTS", 10)
    monkeypatch.setattr(way, "SLOTS", 10)
    for a, b in zip(one_launch.detect(photos), wanted, strict=True):
        assert_equal(a, b, pixels=1e-3, score=1e-5)


def test_recordings_and_staging_are_used_again_and_given_back(one_launch: Detector, photos: Path) -> None:
    assert isinstance(one_launch._way, OneLaunch) and one_launch._way._recorded is not None
    recordings = one_launch._way._recorded._recordings._kept
    for _ in range(3):
        one_launch.detect(photos, batch_size=1)
    assert all(1 <= len(free) <= 2 for _, free in recordings.values())  # two batches are under way at a time
    assert len(recordings) <= 4  # pictures of different sizes, in rooms of powers of two
    one_launch.close()
    assert not recordings
    with pytest.raises(KitError, match="closed"):
        one_launch.detect(photos)


def test_a_stream_that_is_left_half_way_disturbs_no_other(one_launch: Detector, photos: Path) -> None:
    wanted = one_launch.detect(photos, batch_size=2)
    for _ in range(3):
        next(one_launch.stream(photos, batch_size=2))
    for a, b in zip(one_launch.detect(photos, batch_size=2), wanted, strict=True):
        assert_equal(a, b)


def test_threads_share_one(one_launch: Detector, photos: Path) -> None:
    wanted = one_launch.detect(photos, batch_size=2)
    for found_by_one in in_threads(4, lambda _: one_launch.detect(photos, batch_size=2)):
        for a, b in zip(found_by_one, wanted, strict=True):
            assert_equal(a, b)


def test_where_auto_chose_and_nothing_can_be_recorded_it_goes_step_by_step(
    one_launch: Detector, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = one_launch.detect(photos)
    assert isinstance(one_launch._way, OneLaunch) and one_launch._way._recorded is not None
    one_launch._way._recorded._recordings.clear()

    def refused(*_: object, **__: object) -> None:
        raise CaptureError("cannot be recorded as a CUDA graph: a planted reason")

    monkeypatch.setattr(recorded, "capture", refused)
    with pytest.raises(CaptureError):
        one_launch.detect(photos)
    one_launch.runner.mode = Mode("graph", "chosen: a test", chosen=True)
    for a, b in zip(one_launch.detect(photos), wanted, strict=True):
        assert_equal(a, b, pixels=1e-3, score=1e-5)


def test_numbers_that_are_not_finite_are_told(one_launch: Detector) -> None:
    with torch.no_grad():
        one_launch.runner.network.head.cls[0][-1].bias.fill_(float("nan"))  # type: ignore[index]
    with pytest.raises(KitError, match="not finite in fp32"):
        one_launch.detect(np.zeros((64, 64, 3), np.uint8))


def test_a_form_is_used_again_where_a_batch_fits() -> None:
    recordings = Recorded(lambda images: (images,) * 3, CPU, FP32, 3)
    config = DetectConfig()
    made = recordings._form(1000, (64, 64), config, 8)
    assert made == Form(8, (64, 64), 1024, 300, True)
    recordings._recordings._kept[made] = ()  # type: ignore[assignment]
    assert recordings._form(700, (64, 64), config, 8) == made
    assert recordings._form(700, (64, 64), config, 3) == made
    for other in (
        recordings._form(1025, (64, 64), config, 8),
        recordings._form(700, (64, 96), config, 8),
        recordings._form(700, (64, 64), config, 1),
        recordings._form(700, (64, 64), config.changed(keep_candidates=True), 8),
        recordings._form(700, (64, 64), config.changed(max_detections=10), 8),
    ):
        assert other not in list(recordings._recordings)


def test_what_is_set_up_is_the_batch_and_its_settings() -> None:
    pictures = [np.full((2, 3, 3), 7, np.uint8), np.full((4, 1, 3), 9, np.uint8)]
    boxes = [letterbox(picture.shape[:2], (32, 32)) for picture in pictures]  # type: ignore[arg-type]
    pixels, settings = torch.zeros(64, dtype=torch.uint8), blank_settings(3, 4)
    copy_pixels(pictures, torch.zeros(64, dtype=torch.uint8)[:30], pixels[:30])
    assert pixels[:31].tolist() == [7] * 18 + [9] * 12 + [0]
    config = DetectConfig(min_score=0.5, max_iou=0.25, agnostic=True, classes=(2, 0))
    set_up(settings, boxes, interleaved, 64, config)
    assert settings.limits.tolist() == [0.5, 0.25, 1]
    assert settings.classes.tolist() == [True, False, True, False]
    assert settings.table[2].eq(0).all() and settings.table[1, :4].tolist() == [18, 3, 3, 1]
    set_up(settings, boxes[:1], planar, 64, DetectConfig(keep_candidates=True, classes=(1,)))
    assert settings.classes.all() and settings.table[1].eq(0).all()
    assert settings.table[0, :4].tolist() == [0, 3, 1, 6]
    assert settings.limits.tolist()[0] == pytest.approx(0.01)


def by_torchvision(data: list[Tensor]) -> list[Tensor]:
    from torchvision.io import ImageReadMode, decode_jpeg

    return [decode_jpeg(file, mode=ImageReadMode.RGB) for file in data]


@pytest.fixture
def mixed(photos: Path, tmp_path: Path) -> Path:
    """Four pictures, one of them no JPEG, and a broken one in their midst."""
    for number, path in enumerate(sorted(photos.iterdir())[:4]):
        image = Image.open(path)
        image.save(tmp_path / (f"{number}.png" if number == 2 else f"{number}.jpg"))
    (tmp_path / "1 broken.jpg").write_bytes((tmp_path / "1.jpg").read_bytes()[:300])
    return tmp_path


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torchvision")
@pytest.mark.parametrize("settings", SETTINGS[:5:4], ids=str)
def test_pictures_that_are_on_the_device_already_give_the_same(
    one_launch: Detector, mixed: Path, settings: dict[str, Any]
) -> None:
    """JPEG files, decoded by a stand-in for the GPU's engine; one of them broken, one of another format."""
    wanted_failed: list[Failed] = []
    wanted = one_launch.detect(mixed, failed=wanted_failed, batch_size=2, **settings)
    one_launch._decoder = GpuJpegDecoder("cpu", JpegEngine("stand-in", by_torchvision, ""))
    failed: list[Failed] = []
    ours = one_launch.detect(mixed, failed=failed, batch_size=2, **settings)
    assert failed == wanted_failed and len(failed) == 1 and "broken" in failed[0].path
    assert len(ours) == len(wanted) == 4 and sum(map(len, wanted)) > 10
    for a, b in zip(ours, wanted, strict=True):
        assert_equal(a, b, pixels=1e-3, score=1e-5)


def test_results_do_not_change_when_the_memory_is_written_again() -> None:
    rows = np.arange(12, dtype=np.float32).reshape(2, 6)
    one = found(rows, np.array([2, 5, 1]))
    kept = copy.deepcopy(one)
    rows[:] = 0
    assert np.array_equal(one.boxes, kept.boxes) and one.located == 5 and one.finite


on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_the_recording_equals_step_by_step_on_the_gpu(
    lively_weights: Path, photos: Path, mode: str, settings: dict[str, Any]
) -> None:
    fast = Detector(lively_weights, "cuda", mode=mode, image_size=64, min_score=0.3)
    assert isinstance(fast._way, OneLaunch)
    plain = Detector(load(lively_weights), "cuda", mode="eager", image_size=64, min_score=0.3)
    for batch in (5, 2, 5):
        for a, b in zip(
            fast.detect(photos, batch_size=batch, **settings),
            plain.detect(photos, batch_size=batch, **settings),
            strict=True,
        ):
            assert abs(len(a) - len(b)) <= 1
            if len(a) == len(b):
                np.testing.assert_allclose(np.sort(a.scores), np.sort(b.scores), atol=1e-2)
    fast.close()
    with pytest.raises(KitError, match="closed"):
        fast.detect(photos)
