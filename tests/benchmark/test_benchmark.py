"""A benchmark from start to end on a processor: what it gives, what cannot be had, what fails, how it is stopped."""

import copy
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from yolov9kit import EvalConfig, evaluate, load
from yolov9kit.benchmark.benchmark import combine, run_benchmark
from yolov9kit.benchmark.config import LEAST_RUNS, BenchmarkConfig
from yolov9kit.benchmark.measure import LEAST_BATCHES, in_words
from yolov9kit.benchmark.report import BenchmarkReport, Plan, Row
from yolov9kit.device import Device, choose_device
from yolov9kit.errors import DeviceError, EvaluationError, PictureError, UsageError
from yolov9kit.infer.runner import Runner
from yolov9kit.model.checkpoint import Checkpoint
from yolov9kit.types import Outputs

CPU = choose_device("cpu")
SHORT: dict[str, Any] = {
    "image_sizes": 64, "modes": "eager", "device": "cpu", "warm_up": 1, "runs": 3, "pictures": 5,
    "timed_pictures": 5, "floor": False,
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def checkpoint(lively_weights: Path) -> Checkpoint:
    return load(lively_weights)


def everything(checkpoint: Checkpoint, photos: Path, **settings: Any) -> BenchmarkReport:
    *_, last = run_benchmark(checkpoint, BenchmarkConfig(**(SHORT | {"source": str(photos)} | settings)))
    assert isinstance(last, BenchmarkReport)
    return last


def test_first_the_plan_then_the_rows_then_everything(checkpoint: Checkpoint, photos: Path) -> None:
    config = BenchmarkConfig(**(SHORT | {"source": str(photos), "batch_sizes": (1, 2), "floor": True}))
    config = config.changed(profile=True, profile_runs=2)
    told: list[tuple[str, int, int]] = []
    plan, *rows, report = run_benchmark(checkpoint, config, on_progress=lambda *one: told.append(one))
    assert isinstance(plan, Plan) and isinstance(report, BenchmarkReport)
    assert report.rows == tuple(rows) and report.complete and report.failed == ()
    assert [row.combination for row in rows if isinstance(row, Row)] == list(plan.combinations)
    assert (plan.seconds > 0, plan.pictures, plan.environment.device) == (True, 5, "cpu")
    assert {(done, total) for _, done, total in told} == {(0, 2), (1, 2)}
    for row, batch in zip(report.rows, (1, 2), strict=True):
        assert row.network is not None and row.end_to_end is not None and row.memory is not None
        assert row.network.runs.count == 3 and row.combination.batch_size == batch
        assert row.end_to_end.pictures == (5 if batch == 1 else 6) and row.latency is None
        assert row.end_to_end.total.mean == pytest.approx(
            sum(s.mean for s in (row.end_to_end.decode, row.end_to_end.preprocess, row.end_to_end.network,
                                 row.end_to_end.nms))
        )  # fmt: skip
        assert row.floor is not None and row.floor.share > 0
        assert row.profile is not None and row.profile.calls == 2
        assert all(row.profile.kinds_ms[kind] > 0 for kind in ("convolution", "concat", "upsample", "NMS"))
        assert row.usage is not None and row.usage.missing["power_w"] == "the work is done on the CPU"


def test_fp32_eager_is_no_different_from_itself_and_half_is_a_little(
    checkpoint: Checkpoint, photos: Path
) -> None:
    plain, half = everything(checkpoint, photos, precisions=("fp32", "bf16")).rows
    assert plain.difference is not None and half.difference is not None
    assert plain.difference.reference > 0 and plain.difference.pictures == 5
    assert (plain.difference.lost, plain.difference.new) == (0, 0)
    assert plain.difference.max_score_change == pytest.approx(0, abs=1e-5)
    assert half.difference.reference == plain.difference.reference
    assert half.difference.max_score_change is not None and half.difference.max_score_change > 1e-4


def planted(checkpoint: Checkpoint, hook: Callable[..., None]) -> Checkpoint:
    """The same weights in a network that calls ``hook`` each time it runs."""
    model = copy.deepcopy(checkpoint.model)
    # a function, which copies of the network share: a method would take its object along
    model.register_forward_pre_hook(lambda network, _: hook(network))
    return replace(checkpoint, model=model)


class Time:
    """Stands still, but for what a network plants in it: 500 ms in its first run, 20 ms in each."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seen: set[int] = set()

    def delay(self, network: nn.Module) -> None:
        self.now += 0.02 if id(network) in self.seen else 0.52
        self.seen.add(id(network))


def test_m15_a_planted_delay_is_in_the_network_alone_and_its_first_run_apart(
    checkpoint: Checkpoint, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Time()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    # one thread: a picture that is decoded while the planted delay passes would seem to take as long
    monkeypatch.setattr("yolov9kit.infer.predict.usable_cores", lambda: 1.0)
    (row,) = everything(planted(checkpoint, clock.delay), photos).rows
    assert row.network is not None and row.end_to_end is not None
    assert row.network.first_ms == pytest.approx(520)
    assert row.network.runs.mean == pytest.approx(20) and row.network.runs.std == pytest.approx(0, abs=1e-6)
    assert row.end_to_end.network.mean == pytest.approx(20)
    assert row.end_to_end.nms.mean == row.end_to_end.preprocess.mean == row.end_to_end.decode.mean == 0
    assert row.end_to_end.pictures_per_s == pytest.approx(50)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_m15_a_planted_delay_on_the_gpu_is_in_the_network(
    checkpoint: Checkpoint, photos: Path, mode: str
) -> None:
    def with_delay(cycles: int) -> Row:
        settings = {"device": "0", "modes": mode, "warm_up": 10, "runs": 50}
        delayed = planted(checkpoint, lambda *_: torch.cuda._sleep(cycles) if cycles else None)
        return everything(delayed, photos, **settings).rows[0]

    def median(cycles: int) -> float:
        network = with_delay(cycles).network
        assert network is not None
        return network.runs.median

    plain = median(0)
    cycles = 20_000_000
    cycles_a_ms = cycles / (median(cycles) - plain)
    delayed = with_delay(round(20 * cycles_a_ms))
    assert delayed.network is not None and delayed.end_to_end is not None
    assert delayed.network.runs.median - plain == pytest.approx(20, rel=0.1)
    assert delayed.end_to_end.nms.median < 10 and delayed.end_to_end.network.median > 18


def test_what_cannot_be_had_is_listed_with_its_reason_beside_the_rest() -> None:
    config = BenchmarkConfig(precisions=("fp32", "tf32"), modes=("eager", "graph"))
    combinations, refused = combine(config, CPU)
    assert [str(one) for one in combinations] == ["640 px, batch 1, fp32, eager"]
    assert [(one.precision, one.mode) for one in refused] == [("fp32", "graph"), ("tf32", "any mode")]
    assert "records work of an NVIDIA GPU" in refused[0].reason and "Take fp32 here" in refused[1].reason


@pytest.mark.parametrize("settings", [{"modes": "graph"}, {"modes": "graph", "batch_sizes": (1, 2)}])
def test_where_nothing_can_be_had_it_is_an_error(checkpoint: Checkpoint, settings: dict[str, Any]) -> None:
    with pytest.raises(DeviceError, match="mode graph: records work of an NVIDIA GPU"):
        next(run_benchmark(checkpoint, BenchmarkConfig(**(SHORT | settings))))


def test_an_unknown_name_is_an_error_also_beside_known_ones(checkpoint: Checkpoint) -> None:
    with pytest.raises(UsageError, match="mode 'warp'"):
        next(run_benchmark(checkpoint, BenchmarkConfig(**(SHORT | {"modes": ("eager", "warp")}))))


def test_what_auto_means_is_done_once() -> None:
    config = BenchmarkConfig(
        precisions=("fp32", "auto"), modes=("auto", "eager", "onnx"), image_sizes=(64, 96)
    )
    combinations, refused = combine(config, CPU)
    assert [(one.image_size, one.mode.name) for one in combinations] == [
        (64, "onnx"), (64, "eager"), (96, "onnx"), (96, "eager")
    ] and refused == ()  # fmt: skip


def test_a_gpu_is_offered_every_mode_but_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    config = BenchmarkConfig(precisions=("fp32", "bf16"), modes=("eager", "graph", "compiled", "onnx"))
    combinations, refused = combine(config, Device("cuda:0", "GPU", "as asked"))
    assert len(combinations) == 6
    assert [(one.precision, one.mode) for one in refused] == [("fp32", "onnx"), ("bf16", "onnx")]


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception, batch: int) -> None:
    plain = Runner.__call__

    def run(self: Runner, images: torch.Tensor) -> Outputs:
        if len(images) == batch:
            raise error
        return plain(self, images)

    monkeypatch.setattr(Runner, "__call__", run)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            "not enough memory for a row: take a smaller batch or size",
        ),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "not enough memory for a row: take a"),
        (MemoryError(), "not enough memory for a row"),
        (RuntimeError("something\nelse"), "RuntimeError: something else"),
        (DeviceError("a whole sentence"), "a whole sentence"),
    ],
)
def test_reasons_are_words_in_one_line(error: Exception, words: str) -> None:
    reason = in_words(error, "a row")
    assert reason.startswith(words) and "\n" not in reason


def test_a_row_that_fails_has_its_reason_and_the_others_follow(
    checkpoint: Checkpoint, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, torch.OutOfMemoryError("CUDA out of memory"), batch=2)
    report = everything(checkpoint, photos, batch_sizes=(2, 1))
    failed, done = report.rows
    assert failed.error.startswith("not enough memory for 64 px, batch 2, fp32, eager: take a")
    assert failed.network is None and report.failed == (failed,)
    assert done.error == "" and done.network is not None and report.complete


def test_a_fault_of_ours_is_not_a_row(
    checkpoint: Checkpoint, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, TypeError("ours"), batch=2)
    with pytest.raises(TypeError, match="ours"):
        everything(checkpoint, photos, batch_sizes=2)


def test_where_fp32_eager_cannot_be_had_the_rows_say_so(
    checkpoint: Checkpoint, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, torch.OutOfMemoryError("CUDA out of memory"), batch=5)  # all the pictures at once
    (row,) = everything(checkpoint, photos).rows
    assert row.difference is None and row.error == "" and row.end_to_end is not None
    assert row.notes == (
        "no difference to fp32 eager: not enough memory for fp32 eager at 64 px: take a smaller batch or size",
    )


def test_who_stops_iterating_leaves_nothing_behind(
    checkpoint: Checkpoint, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ones: list[Runner] = []
    made, closed = Runner.__init__, Runner.close

    def make(self: Runner, *args: Any, **named: Any) -> None:
        open_ones.append(self)
        made(self, *args, **named)

    def close(self: Runner) -> None:
        open_ones.remove(self)
        closed(self)

    monkeypatch.setattr(Runner, "__init__", make)
    monkeypatch.setattr(Runner, "close", close)
    config = BenchmarkConfig(**(SHORT | {"source": str(photos), "batch_sizes": (1, 2, 3)}))
    reports = run_benchmark(checkpoint, config)
    assert isinstance(next(reports), Plan) and isinstance(next(reports), Row)
    assert "yolov9kit telemetry" in {one.name for one in threading.enumerate()}
    assert open_ones == []
    reports.close()
    assert "yolov9kit telemetry" not in {one.name for one in threading.enumerate()}


def test_seconds_cap_the_pictures_too_and_only_those_that_were_done_are_compared(
    checkpoint: Checkpoint, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Time()
    monkeypatch.setattr(time, "perf_counter", lambda: clock.now)
    (row,) = everything(planted(checkpoint, clock.delay), photos, runs=500, seconds=0.01).rows
    assert row.network is not None and row.end_to_end is not None and row.difference is not None
    assert row.network.capped and row.network.runs.count == LEAST_RUNS
    assert row.end_to_end.capped and row.end_to_end.pictures == row.difference.pictures == LEAST_BATCHES
    assert row.difference.lost == row.difference.new == 0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    for seed in range(2):
        grain = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
        Image.fromarray(grain).resize((96, 64)).save(tmp_path / f"images/{seed}.png")
        (tmp_path / f"images/{seed}.txt").write_text("1 0.5 0.5 0.25 0.25\n")
    (tmp_path / "data.yaml").write_text("val: images\nnames: [nut, bolt, wing nut]\n")
    return tmp_path / "data.yaml"


def test_with_data_each_size_and_precision_is_scored(checkpoint: Checkpoint, data: Path) -> None:
    settings = SHORT | {"data": str(data), "precisions": "bf16", "batch_sizes": (1, 2)}
    *_, report = run_benchmark(checkpoint, BenchmarkConfig(**settings))
    assert isinstance(report, BenchmarkReport) and report.plan.pictures == 2
    first, second = (row.accuracy for row in report.rows)
    assert first is second and first is not None  # scored once for all batches
    wanted = evaluate(checkpoint, data, EvalConfig(image_size=64, device="cpu", precision="bf16", fused=True))
    assert (first.ap, first.ap50) == (wanted.ap, wanted.ap50)
    assert first.of.startswith("mode eager") and "bf16" in first.of


def test_data_of_other_classes_is_an_error_before_anything_is_timed(
    checkpoint: Checkpoint, data: Path
) -> None:
    data.write_text("val: images\nnames: [nut, bolt]\n")
    with pytest.raises(EvaluationError, match=r"the weights know 3 classes, .* has 2"):
        next(run_benchmark(checkpoint, BenchmarkConfig(**(SHORT | {"data": str(data)}))))


def test_a_source_that_is_not_there_is_an_error_before_anything_is_timed(checkpoint: Checkpoint) -> None:
    with pytest.raises(PictureError, match="nowhere"):
        next(run_benchmark(checkpoint, BenchmarkConfig(**(SHORT | {"source": "nowhere"}))))
