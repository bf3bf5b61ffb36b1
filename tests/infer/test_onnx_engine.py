"""ONNX Runtime equals torch, its file is kept once and made again when damaged, and a wrong one is refused."""

import copy
from pathlib import Path

import pytest
import torch

from tests.waiting import in_threads
from yolov9kit import load, untrained
from yolov9kit.device import choose_device, choose_precision
from yolov9kit.errors import KitError
from yolov9kit.infer import onnx_engine
from yolov9kit.infer.mode import Mode
from yolov9kit.infer.network import network_for
from yolov9kit.infer.runner import Runner, make_runner
from yolov9kit.model.yolov9 import YOLOv9, yolov9
from yolov9kit.types import RawMaps

CPU = choose_device("cpu")
FP32 = choose_precision("fp32", CPU)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "yolov9kit" / "onnx"


@pytest.fixture(scope="module")
def model(lively_weights: Path) -> YOLOv9:
    return load(lively_weights).model


def runner(model: YOLOv9, mode: str | Mode = "onnx") -> Runner:
    return make_runner(model, CPU, FP32, mode)


def largest(ours: Runner, other: Runner, images: torch.Tensor) -> float:
    """Largest difference of the maps, relative to the largest number."""
    pairs = zip(ours(images).main, other(images).main, strict=True)
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)


def test_it_equals_torch_at_any_batch_and_size(model: YOLOv9) -> None:
    onnx, eager = runner(model), runner(model, "eager")
    for shape in ((1, 3, 64, 64), (3, 3, 96, 160), (7, 3, 32, 32)):
        images = torch.randint(0, 256, shape, dtype=torch.uint8)
        assert largest(onnx, eager, images) < 1e-3
        assert largest(onnx, eager, images.float() / 255) < 1e-3
    assert "ONNX Runtime" in onnx.mode.reason and "thread" in onnx.mode.reason


@pytest.mark.parametrize("size", ["s", "m", "c", "e"])
def test_every_size_can_be_exported(size: str) -> None:
    torch.manual_seed(1)
    images = torch.rand(2, 3, 64, 32)
    small = yolov9(size, 2)
    assert largest(runner(small), runner(small, "eager"), images) < 1e-4


def test_the_file_is_kept_and_used_again(model: YOLOv9, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = torch.rand(1, 3, 64, 64)
    first = runner(model)(images).main
    (kept,) = cache.iterdir()
    monkeypatch.setattr(onnx_engine, "export", lambda network: pytest.fail("exported again"))
    for a, b in zip(first, runner(model)(images).main, strict=True):
        assert torch.equal(a, b)
    assert list(cache.iterdir()) == [kept]


def test_other_weights_have_another_file(model: YOLOv9, cache: Path) -> None:
    changed = copy.deepcopy(model)
    with torch.no_grad():
        changed.head.cls[0][-1].bias[0] += 1e-3  # type: ignore[index, operator]
    images = torch.rand(1, 3, 64, 64)
    assert largest(runner(model), runner(changed), images) > 1e-6
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("damage", ["cut", "text", "other weights"])
def test_a_damaged_file_is_made_again(model: YOLOv9, cache: Path, damage: str) -> None:
    runner(model)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    other = onnx_engine.export(network_for(yolov9("t", 3), CPU, FP32))
    kept.write_bytes({"cut": whole[:-100], "text": b"not a graph", "other weights": other}[damage])
    images = torch.rand(1, 3, 64, 64)
    assert largest(runner(model), runner(model, "eager"), images) < 1e-4
    assert kept.read_bytes() == whole


def test_a_folder_that_cannot_be_written_costs_only_time(
    model: YOLOv9, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert runner(model).mode.name == "onnx"


def test_wrong_numbers_are_refused_or_lead_to_eager_with_the_reason(
    model: YOLOv9, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(5)
    wrong = onnx_engine.export(network_for(untrained(["a", "b", "c"], seed=8).model, CPU, FP32))
    monkeypatch.setattr(onnx_engine, "export", lambda network: wrong)
    with pytest.raises(KitError, match=r"other numbers than torch at level P3.*Take mode eager"):
        runner(model)
    taken = runner(model, "auto")
    assert taken.mode.name == "eager" and "other numbers" in taken.mode.reason
    assert len(taken(torch.rand(1, 3, 64, 64)).main) == 3


def test_only_the_newest_files_stay(model: YOLOv9, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_engine, "KEPT", 1)
    runner(model)
    (first,) = cache.iterdir()
    runner(yolov9("t", 1))
    (second,) = cache.iterdir()
    assert first != second


def test_threads_share_one(model: YOLOv9) -> None:
    onnx = runner(model)
    batches = [torch.rand(2, 3, 64, 64) for _ in range(8)]
    wanted = [onnx(batch).main for batch in batches]

    def work(number: int) -> RawMaps:
        return [onnx(batches[number]).main for _ in range(3)][-1]

    found = in_threads(8, work)
    for number, maps in enumerate(wanted):
        assert all(torch.equal(a, b) for a, b in zip(maps, found[number], strict=True))


def test_a_closed_runner_says_so(model: YOLOv9) -> None:
    onnx = runner(model)
    onnx.close()
    onnx.close()
    with pytest.raises(KitError, match="closed"):
        onnx(torch.rand(1, 3, 64, 64))
