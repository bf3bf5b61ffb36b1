"""Replays equal eager, in any thread, on any device; what was returned stays; memory comes back."""

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from tests.waiting import in_threads
from yolov9kit import load, sample_weights
from yolov9kit.cuda_graph import CaptureError, capture
from yolov9kit.device import choose_device, choose_precision
from yolov9kit.infer.graph_engine import MAX_SHAPES, GraphEngine, riding
from yolov9kit.infer.recordings import Recordings
from yolov9kit.infer.runner import Runner, make_runner
from yolov9kit.types import RawMaps

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def test_a_smaller_batch_rides_where_it_fills_a_quarter() -> None:
    recorded = [(64, 3, 32, 32), (8, 3, 32, 32), (16, 3, 64, 32)]
    assert riding((8, 3, 32, 32), recorded) == (8, 3, 32, 32)
    assert riding((3, 3, 32, 32), recorded) == (8, 3, 32, 32)
    assert riding((1, 3, 32, 32), recorded) == (1, 3, 32, 32)  # it would pay for eight
    assert riding((16, 3, 32, 32), recorded) == (64, 3, 32, 32)
    assert riding((9, 3, 64, 64), recorded) == (9, 3, 64, 64)
    assert riding((65, 3, 32, 32), recorded) == (65, 3, 32, 32)


def runner(mode: str, device: str = "cuda", precision: str = "fp32") -> Runner:
    chosen = choose_device(device)
    return make_runner(load(sample_weights()).model, chosen, choose_precision(precision, chosen), mode)


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "bf16"])
def test_graph_equals_eager(precision: str) -> None:
    graph, eager = runner("graph", precision=precision), runner("eager", precision=precision)
    for shape in ((4, 3, 128, 96), (4, 3, 128, 96), (3, 3, 128, 96), (1, 3, 64, 64)):
        images = torch.rand(shape)
        for a, b in zip(graph(images).main, eager(images).main, strict=True):
            torch.testing.assert_close(a, b, atol=1e-2, rtol=1e-2)


@pytest.mark.gpu
@on_gpu
def test_m12_a_result_is_kept_when_the_next_comes() -> None:
    graph = runner("graph")
    first = graph(torch.rand(1, 3, 64, 64)).main
    before = [level.clone() for level in first]
    graph(torch.rand(1, 3, 64, 64))
    assert all(torch.equal(a, b) for a, b in zip(before, first, strict=True))


@pytest.mark.gpu
@on_gpu
def test_weights_that_change_in_place_take_effect() -> None:
    graph = runner("graph")
    images = torch.rand(1, 3, 64, 64)
    before = graph(images).main[0]
    with torch.no_grad():
        graph.network.head.cls[0][-1].bias.add_(1)  # type: ignore[index, operator]
    after = graph(images).main[0]
    torch.testing.assert_close(after[:, 64:], before[:, 64:] + 1)


@pytest.mark.gpu
@on_gpu
def test_eight_threads_equal_serial() -> None:
    graph = runner("graph")
    batches = [torch.rand(2, 3, 64, 64) for _ in range(8)]
    wanted = [graph(batch).main for batch in batches]

    def work(number: int) -> RawMaps:
        with torch.cuda.stream(torch.cuda.Stream()):
            maps = [graph(batches[number]).main for _ in range(20)][-1]
            torch.cuda.current_stream().synchronize()
        return maps

    found = in_threads(8, work)
    for number, maps in enumerate(wanted):
        assert all(torch.equal(a, b) for a, b in zip(maps, found[number], strict=True))


@pytest.mark.gpu
@on_gpu
def test_m10_recording_while_a_loader_pins_memory() -> None:
    started = 0
    data = DataLoader(torch.rand(4000, 3, 32, 32), batch_size=8, num_workers=4, pin_memory=True)  # type: ignore[arg-type]
    batches = iter(data)
    engine = GraphEngine(_three, choose_device("cuda"), choose_precision("fp32", choose_device("cuda")))
    for number in range(50):
        next(batches)
        engine(torch.rand(1 + number, 3, 8, 8, device="cuda"))
        started += 1
    assert started == 50


def _three(images: Tensor) -> RawMaps:
    return images * 2, images + 1, images.sqrt()


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two NVIDIA GPUs")
def test_m14_the_second_device() -> None:
    before = torch.cuda.memory_allocated(0)
    graph, eager = runner("graph", "cuda:1"), runner("eager", "cuda:1")
    images = torch.rand(2, 3, 64, 64)
    for a, b in zip(graph(images).main, eager(images).main, strict=True):
        assert a.device == torch.device("cuda:1")
        torch.testing.assert_close(a, b, atol=1e-3, rtol=1e-3)
    assert torch.cuda.memory_allocated(0) == before


@pytest.mark.gpu
@on_gpu
def test_memory_comes_back_on_close() -> None:
    graph = runner("graph")
    graph(torch.rand(1, 3, 64, 64))
    torch.cuda.synchronize()
    before = torch.cuda.memory_reserved()
    for batch in range(8, 40, 8):
        graph(torch.rand(batch, 3, 320, 320))
    held = torch.cuda.memory_reserved()
    graph.close()
    assert held > before + 50 * 2**20 and torch.cuda.memory_reserved() <= before


def test_the_recordings_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
    cpu = choose_device("cpu")
    recordings: Recordings[str, str] = Recordings(cpu, choose_precision("fp32", cpu), most=2)
    pools: list[object] = []

    def take(key: str, value: str) -> str:
        def record(pool: object) -> str:
            pools.append(pool)
            return value

        return recordings.take(key, record)

    assert (take("a", "first"), take("b", "second"), take("a", "third")) == ("first", "second", "first")
    assert take("c", "fourth") == "fourth" and list(recordings) == ["a", "c"]
    assert take("b", "fifth") == "fifth" and len(pools) == 4 and len(set(map(id, pools))) == 1


@pytest.mark.gpu
@on_gpu
def test_only_so_many_recordings_are_kept() -> None:
    engine = GraphEngine(_three, choose_device("cuda"), choose_precision("fp32", choose_device("cuda")))
    for height in range(1, MAX_SHAPES + 5):
        images = torch.rand(1, 3, height, 8, device="cuda")
        for a, b in zip(engine(images), _three(images), strict=True):
            torch.testing.assert_close(a, b)
    assert len(list(engine._recordings)) == MAX_SHAPES


@pytest.mark.gpu
@on_gpu
def test_what_waits_for_the_device_cannot_be_recorded() -> None:
    with pytest.raises(CaptureError, match="cannot be recorded"):
        capture(lambda x: x[: int(x.sum())], [torch.ones(3, device="cuda")])


@pytest.mark.gpu
@on_gpu
def test_where_auto_chose_it_comes_down_to_eager_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise CaptureError("cannot be recorded as a CUDA graph: a planted reason")

    monkeypatch.setattr("yolov9kit.infer.graph_engine.capture", refused)
    images = torch.rand(1, 3, 64, 64)
    with pytest.raises(CaptureError):
        runner("graph")(images)
    taken = runner("auto")
    assert len(taken(images).main) == 3
    assert taken.mode.name == "eager" and "a planted reason" in taken.mode.reason


@pytest.mark.gpu
@on_gpu
def test_random_numbers_go_on_after_recording() -> None:
    torch.cuda.manual_seed(3)
    wanted = torch.rand(4, device="cuda")
    torch.cuda.manual_seed(3)
    capture(lambda x: x + torch.rand_like(x), [torch.ones(3, device="cuda")])
    torch.testing.assert_close(torch.rand(4, device="cuda"), wanted)
