"""Batches: what is in one depends on seed, epoch and place alone, and whoever dies leaves nobody waiting."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

import cv2
import numpy as np
import psutil
import pytest
import torch

from tests.data.drawn_samples import drawn_samples
from tests.waiting import until
from yolov9kit.data.augment import NO_AUGMENTATION, AugmentConfig
from yolov9kit.data.batches import PictureKey, TrainBatches, ValBatches, padded_targets
from yolov9kit.data.dataset import Sample
from yolov9kit.data.image import read_image
from yolov9kit.data.letterbox import letterbox
from yolov9kit.data.pixels import PreparedPictures
from yolov9kit.errors import DataError, TrainingError, UsageError
from yolov9kit.types import Batch

SIZE = 64
COUNT = 17


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[Sample]:
    return drawn_samples(tmp_path_factory.mktemp("pictures"), COUNT)


@pytest.fixture(scope="module")
def pictures(samples: list[Sample]) -> PreparedPictures:
    prepared = PreparedPictures(samples, SIZE)
    prepared.fill()
    return prepared


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    yield
    assert multiprocessing.active_children() == []


def batches(pictures: PreparedPictures, batch: int = 4, workers: int = 0, seed: int = 7) -> TrainBatches:
    return TrainBatches(
        pictures.samples, SIZE, batch, AugmentConfig(), seed, pictures=pictures, workers=workers
    )


def assert_same(a: list[Batch], b: list[Batch]) -> None:
    assert len(a) == len(b)
    for one, other in zip(a, b, strict=True):
        assert one.indices == other.indices
        assert torch.equal(one.images, other.images)
        assert torch.equal(one.targets.boxes, other.targets.boxes)
        assert torch.equal(one.targets.labels, other.targets.labels)


def children() -> list[psutil.Process]:
    """Without the process by which multiprocessing minds what is shared: another test may have started it."""
    minder = resource_tracker._resource_tracker._pid
    return [process for process in psutil.Process().children() if process.pid != minder]


# ---------------------------------------------------------------------------------------------- what is in them


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_no_bit(pictures: PreparedPictures, workers: int) -> None:
    cv2.resize(
        np.zeros((3000, 3000, 3), np.uint8), (2000, 2000)
    )  # OpenCV's threads are at work before the fork
    plain, worked = batches(pictures), batches(pictures, workers=workers)
    for epoch, mosaic in ((0, True), (1, True), (5, False)):
        assert_same(list(plain.epoch(epoch, mosaic=mosaic)), list(worked.epoch(epoch, mosaic=mosaic)))
    assert len(children()) == workers  # they stayed
    worked.close()
    assert children() == []


@pytest.mark.parametrize("workers", [0, 2])
def test_a_late_start_gives_the_rest_of_the_epoch(pictures: PreparedPictures, workers: int) -> None:
    whole = list(batches(pictures).epoch(3))
    late = batches(pictures, workers=workers)
    for start in (2, 4, 5):
        assert_same(list(late.epoch(3, start=start)), whole[start:])
    late.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_given_up_leaves_no_trace(pictures: PreparedPictures, workers: int) -> None:
    feed = batches(pictures, workers=workers)
    given_up = feed.epoch(0)
    next(given_up)
    assert_same(list(feed.epoch(1)), list(batches(pictures).epoch(1)))
    with pytest.raises(UsageError, match="given up"):
        next(given_up)
    next(feed.epoch(2))
    feed.close()
    assert_same(list(feed.epoch(2)), list(batches(pictures).epoch(2)))  # with new workers
    feed.close()


def test_epochs_seeds_and_modes_differ(pictures: PreparedPictures) -> None:
    feed = batches(pictures)
    first = next(feed.epoch(0))
    for other in (feed.epoch(1), feed.epoch(0, mosaic=False), batches(pictures, seed=8).epoch(0)):
        assert not torch.equal(next(other).images, first.images)


def test_each_place_of_each_epoch_has_numbers_of_its_own(pictures: PreparedPictures) -> None:
    feed = batches(pictures)
    places = [(epoch, position) for epoch in range(3) for position in range(3)]
    drawn = [feed.plan(PictureKey(epoch, position, 0, True)).hsv_gains for epoch, position in places]
    assert len(set(drawn)) == len(drawn)
    assert feed.plan(PictureKey(2, 1, 0, True)).hsv_gains == drawn[places.index((2, 1))]


def test_the_cache_changes_no_bit(samples: list[Sample], pictures: PreparedPictures) -> None:
    assert_same(list(batches(PreparedPictures(samples, SIZE)).epoch(0)), list(batches(pictures).epoch(0)))


def test_the_models_random_numbers_are_left_alone(pictures: PreparedPictures) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    feed = batches(pictures, workers=1)
    list(feed.epoch(0))
    list(feed.epoch(1))
    feed.close()
    assert torch.equal(torch.get_rng_state(), before)


def test_d34_the_last_batch_is_full(pictures: PreparedPictures) -> None:
    feed = batches(pictures, batch=16)
    assert len(feed) == 2
    both = list(feed.epoch(0))
    assert [tuple(batch.images.shape) for batch in both] == [(16, 3, SIZE, SIZE)] * 2
    order = both[0].indices + both[1].indices
    assert sorted(order[:COUNT]) == list(range(COUNT))
    assert order[COUNT:] == order[: 32 - COUNT]
    assert not torch.equal(both[1].images[1], both[0].images[0])  # the same picture, another view


@pytest.mark.parametrize("batch", [1, 4, 17])
def test_an_epoch_shows_every_picture(pictures: PreparedPictures, batch: int) -> None:
    feed = batches(pictures, batch=batch)
    shown = [index for one in feed.epoch(2) for index in one.indices]
    assert len(shown) == len(feed) * batch and sorted(shown[:COUNT]) == list(range(COUNT))


def test_a_batch_of_one_is_that_of_the_epoch(pictures: PreparedPictures) -> None:
    feed = batches(pictures)
    whole = list(feed.epoch(1))
    one = feed.one(9, epoch=1)
    assert one.indices == whole[2].indices[1:2] and torch.equal(one.images[0], whole[2].images[1])


def test_without_augmentation_boxes_are_those_of_the_letterbox(
    samples: list[Sample], pictures: PreparedPictures
) -> None:
    feed = TrainBatches(samples, SIZE, 5, NO_AUGMENTATION, 0, pictures=pictures)
    seen = 0
    for batch in feed.epoch(0):
        assert batch.images.dtype == torch.uint8 and batch.images.is_contiguous()
        for index, boxes, labels in zip(batch.indices, *batch.targets, strict=True):
            sample = samples[index]
            expected = letterbox(sample.size_wh[::-1], (SIZE, SIZE)).forward(sample.boxes)
            expected_labels = sample.labels[(expected[:, 2:] - expected[:, :2] > 2).all(1)]
            assert labels[: len(expected_labels)].tolist() == expected_labels.tolist()
            assert (labels[len(expected_labels) :] == -1).all()
            kept = expected[(expected[:, 2:] - expected[:, :2] > 2).all(1)]
            assert np.abs(boxes[: len(kept)].numpy() - kept).max(initial=0) < 1e-4
            seen += len(kept)
    assert seen > 20


@pytest.mark.parametrize(("most", "slots"), [(0, 8), (8, 8), (9, 16), (16, 16), (17, 32), (100, 128)])
def test_slots_repeat(most: int, slots: int) -> None:
    boxes = np.arange(4 * most, dtype=np.float32).reshape(most, 4)
    nothing = (np.empty((0, 4), np.float32), np.empty(0, np.int64))
    targets = padded_targets([nothing, (boxes, np.arange(most))])
    assert targets.boxes.shape == (2, slots, 4) and targets.boxes.dtype == torch.float32
    assert targets.labels.shape == (2, slots) and targets.labels.dtype == torch.int64
    assert torch.equal(targets.boxes[1, :most], torch.from_numpy(boxes))
    assert targets.labels[1].tolist() == [*range(most), *[-1] * (slots - most)]
    assert (targets.labels[0] == -1).all() and not targets.boxes[0].any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 18}, "batch 18: must be 1 to 17, the number of pictures"),
        ({"batch": 0}, "batch 0: must be 1 to 17"),
        ({"size": 60}, "image size 60: must be a multiple of 32"),
        ({"size": 96}, "17 pictures prepared at 64 px do not fit 17 samples, 96 px"),
        ({"seed": -1}, "seed -1: must be 0 or more"),
        ({"workers": -1}, "workers -1"),
        ({"prefetch": 0}, "prefetch 0"),
    ],
)
def test_what_does_not_go_together_is_refused(
    samples: list[Sample], pictures: PreparedPictures, change: dict[str, int], message: str
) -> None:
    given = {"size": SIZE, "batch": 4, "seed": 0, "workers": 0, "prefetch": 2, **change}
    with pytest.raises(UsageError, match=message):
        TrainBatches(samples, augment=AugmentConfig(), pictures=pictures, **given)


def test_a_start_behind_the_epoch_is_refused(pictures: PreparedPictures) -> None:
    with pytest.raises(UsageError, match="epoch 0, batch 6: an epoch has the batches 0 to 4"):
        batches(pictures).epoch(0, start=6)


# ---------------------------------------------------------------------------------------------- validation


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_validation_sees_what_detection_sees(
    samples: list[Sample], pictures: PreparedPictures, workers: int, cached: bool
) -> None:
    feed = ValBatches(samples, SIZE, 7, workers, pictures if cached else None)
    for _ in range(2):
        seen = list(feed)
        assert [len(batch.indices) for batch in seen] == [7, 7, 3] and len(feed) == 3
        assert [index for batch in seen for index in batch.indices] == list(range(COUNT))
        for batch in seen:
            for slot, index in enumerate(batch.indices):
                sample = samples[index]
                place = letterbox(sample.size_wh[::-1], (SIZE, SIZE))
                image = place.apply(read_image(sample.path))
                assert np.array_equal(batch.images[slot].numpy(), image.transpose(2, 0, 1))
                count = len(sample.labels)
                boxes, labels = (tensor[slot].numpy() for tensor in batch.targets)
                assert np.array_equal(boxes[:count], place.forward(sample.boxes))
                assert labels.tolist() == [*sample.labels, *[-1] * (len(labels) - count)]
    feed.close()


@pytest.mark.parametrize(("size", "batch"), [(SIZE, 0), (65, 4)])
def test_validation_refuses_what_cannot_be(samples: list[Sample], size: int, batch: int) -> None:
    with pytest.raises(UsageError):
        ValBatches(samples, size, batch)


# ---------------------------------------------------------------------------------------------- what can go wrong


@pytest.mark.parametrize("workers", [0, 2])
def test_d19_a_picture_gone_bad_is_named_from_a_worker_too(tmp_path: Path, workers: int) -> None:
    samples = drawn_samples(tmp_path, 6)
    samples[4].path.write_bytes(b"")
    feed = batches(PreparedPictures(samples, SIZE), batch=6, workers=workers)
    for epoch in range(2):  # the workers live on
        with pytest.raises(DataError, match=r"4\.png.*readable when the data set was opened") as caught:
            list(feed.epoch(epoch))
        assert "\n" not in str(caught.value)
    feed.close()


def test_what_lies_prepared_is_counted(pictures: PreparedPictures) -> None:
    feed = batches(pictures, batch=1, workers=2)
    assert feed.ready == 0 and batches(pictures, batch=1).ready is None
    epoch = feed.epoch(0)
    next(epoch)
    until(lambda: feed.ready == 4)  # two for each worker
    assert len(list(epoch)) == len(feed) - 1 and feed.ready == 0
    feed.close()
    assert feed.ready == 0


def test_a_worker_that_was_killed_is_reported_and_replaced(pictures: PreparedPictures) -> None:
    feed = batches(pictures, batch=1, workers=2)
    handler = signal.getsignal(signal.SIGCHLD)
    epoch = feed.epoch(0)
    next(epoch)
    assert signal.getsignal(signal.SIGCHLD) is handler  # the error comes from the epoch and from nowhere else
    for child in children():
        child.kill()
    with pytest.raises(TrainingError, match=r"a process that prepares pictures died.*fewer workers"):
        list(epoch)
    assert_same(list(feed.epoch(0)), list(batches(pictures, batch=1).epoch(0)))
    feed.close()


def test_workers_killed_between_epochs_are_reported_and_replaced(pictures: PreparedPictures) -> None:
    feed = batches(pictures, workers=2)
    next(feed.epoch(0))
    for child in children():
        child.kill()
    with pytest.raises(TrainingError, match="a process that prepares pictures died"):
        list(feed.epoch(1))
    assert_same(list(feed.epoch(1)), list(batches(pictures).epoch(1)))
    feed.close()


class _Broken(PreparedPictures):
    def picture(self, index: int) -> np.ndarray:
        raise RuntimeError(f"a fault at picture {index}")


def test_a_fault_of_ours_keeps_its_traceback(samples: list[Sample]) -> None:
    feed = batches(_Broken(samples, SIZE), workers=1)
    with pytest.raises(RuntimeError, match=r"(?s)Traceback.*in picture.*a fault at picture \d") as kept:
        list(feed.epoch(0))
    assert children() == []  # although somebody keeps the traceback
    assert kept.tb is not None


def test_an_interrupt_ends_the_workers(pictures: PreparedPictures, monkeypatch: pytest.MonkeyPatch) -> None:
    feed = batches(pictures, batch=1, workers=2)
    epoch = feed.epoch(0)
    next(epoch)

    def interrupted(_: object) -> Batch:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("torch.utils.data.dataloader._MultiProcessingDataLoaderIter.__next__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(epoch)
    assert children() == []
    assert_same(list(feed.epoch(1)), list(batches(pictures, batch=1).epoch(1)))
    feed.close()


def test_workers_ignore_an_interrupt(pictures: PreparedPictures) -> None:
    feed = batches(pictures, workers=2)
    list(feed.epoch(0))
    before = [child.pid for child in children()]
    for pid in before:
        os.kill(pid, signal.SIGINT)
    assert_same(list(feed.epoch(1)), list(batches(pictures).epoch(1)))
    assert [child.pid for child in children()] == before
    feed.close()


def test_close_does_not_wait_for_an_epoch_given_up(pictures: PreparedPictures) -> None:
    feed = batches(pictures, batch=1, workers=3)
    given_up = feed.epoch(0)
    next(given_up)
    feed.close()
    assert children() == []
    with pytest.raises(UsageError, match="given up"):
        next(given_up)
    feed.close()  # twice is fine


_PARENT = """
import sys, time
from pathlib import Path
import psutil
from tests.data.drawn_samples import drawn_samples
from tests.data.test_batches import SIZE, batches
from yolov9kit.data.pixels import PreparedPictures
feed = batches(PreparedPictures(drawn_samples(Path(sys.argv[1]), 4), SIZE), workers=2)
epoch = feed.epoch(0)
next(epoch)
print(*(child.pid for child in psutil.Process().children()), flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_workers_do_not_outlive_a_killed_parent(root: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", _PARENT, str(tmp_path)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        workers = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(workers) == 2
    _, alive = psutil.wait_procs(workers, timeout=60)  # they look every five seconds
    for worker in alive:
        worker.kill()
    assert alive == []
