"""Samples → ``Batch``: training pictures that depend on seed, epoch and place alone, and letterboxed ones to validate.

Worker processes only change who prepares a batch, never what is in it.
"""

import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from yolov9kit.data.augment import AugmentConfig, Plan, place, plan, render
from yolov9kit.data.dataset import Sample
from yolov9kit.data.letterbox import Letterbox, input_size, letterbox
from yolov9kit.data.pixels import PreparedPictures, read_sample
from yolov9kit.errors import KitError, TrainingError, UsageError
from yolov9kit.types import Batch, Targets

_FEWEST_SLOTS = 8


class PictureKey(NamedTuple):
    """Says what one training picture is: ``position`` counts the pictures of the epoch."""

    epoch: int
    position: int
    sample: int
    mosaic: bool


Keys = tuple[PictureKey, ...] | tuple[int, ...]
Answer = TypeVar("Answer")


class TrainBatches:
    """Full batches of augmented pictures, ``size`` x ``size``, the same for the same seed whoever prepares them.

    An epoch shows every picture; its last batch is filled up with further views of the epoch's first pictures.
    ``workers``: processes that prepare ``prefetch`` batches each in advance, started by the first epoch and kept
    until ``close``; with 0 the caller's process prepares each batch when it is asked for. On Linux they share filled
    ``pictures`` with this process, elsewhere each gets a copy.

    Raises:
        UsageError: sizes or numbers that do not go together.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        size: int,
        batch: int,
        augment: AugmentConfig,
        seed: int,
        *,
        pictures: PreparedPictures,
        workers: int = 0,
        prefetch: int = 2,
    ) -> None:
        input_size(size)
        if not 1 <= batch <= len(samples):
            raise UsageError(
                f"batch {batch}: must be 1 to {len(samples)}, the number of pictures to train with"
            )
        if seed < 0:
            raise UsageError(f"seed {seed}: must be 0 or more")
        if pictures.size != size or len(pictures) != len(samples):
            raise UsageError(
                f"{len(pictures)} pictures prepared at {pictures.size} px do not fit {len(samples)} samples, {size} px"
            )
        self.batch, self.augment = batch, augment
        self._pictures = pictures
        self._recipe = _TrainRecipe(
            size,
            augment,
            seed,
            pictures,
            _prepared_boxes(samples, pictures),
            tuple(s.labels for s in samples),
        )
        self._feed = _Feed(self._recipe, workers, prefetch)

    def __len__(self) -> int:
        """Batches of an epoch."""
        return -(-len(self._pictures) // self.batch)

    def epoch(self, epoch: int, start: int = 0, mosaic: bool = True) -> Iterator[Batch]:
        """The batches of an epoch from number ``start`` on. ``mosaic=False``: single pictures, without mixup.

        A later call ends this one: going on with it raises UsageError.

        Raises:
            DataError: a picture cannot be read any more, by name.
            TrainingError: a worker process died.
        """
        if epoch < 0 or not 0 <= start <= len(self):
            raise UsageError(f"epoch {epoch}, batch {start}: an epoch has the batches 0 to {len(self) - 1}")
        order = self._order(epoch)
        tasks = []
        for first in range(start * self.batch, len(self) * self.batch, self.batch):
            positions = range(first, first + self.batch)
            tasks.append(tuple(PictureKey(epoch, p, order[p % len(order)], mosaic) for p in positions))
        return self._feed.run(tasks)

    def one(self, position: int, epoch: int = 0, mosaic: bool = True) -> Batch:
        """A batch of the single picture at ``position`` of an epoch, prepared here and now."""
        order = self._order(epoch)
        return self._recipe((PictureKey(epoch, position, order[position % len(order)], mosaic),))

    @property
    def ready(self) -> int | None:
        """Batches that workers have prepared and nobody has taken. None without workers, and on macOS, which does not
        count what waits in a pipe."""
        return self._feed.ready

    def plan(self, key: PictureKey) -> Plan:
        """How that picture is made."""
        return self._recipe.plan(key)

    def close(self) -> None:
        """Ends the worker processes; not while another thread waits for a batch. A later epoch starts new ones."""
        self._feed.close()

    def _order(self, epoch: int) -> list[int]:
        return _generator(self._recipe.seed, epoch).permutation(len(self._pictures)).tolist()


class ValBatches:
    """All pictures in their order, letterboxed exactly as detection does; the last batch may be smaller.

    ``pictures``: taken from there where that gives the same pixels, which it does for pictures that are not shrunk.
    ``workers`` and ``prefetch`` as in training.

    Raises:
        UsageError: a size that the network does not take, or a batch below 1.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        size: int,
        batch: int,
        workers: int = 0,
        pictures: PreparedPictures | None = None,
        prefetch: int = 2,
    ) -> None:
        input_size(size)
        if batch < 1:
            raise UsageError(f"batch {batch}: must be 1 or more")
        if pictures is not None and (pictures.size != size or len(pictures) != len(samples)):
            raise UsageError(f"pictures prepared at {pictures.size} px do not fit validation at {size} px")
        indices = tuple(range(len(samples)))
        self._batches = [indices[first : first + batch] for first in range(0, len(samples), batch)]
        self._feed = _Feed(_ValRecipe(size, tuple(samples), pictures), workers, prefetch)

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        """All batches. Raises as the epochs of training do."""
        return self._feed.run(self._batches)

    def close(self) -> None:
        """Ends the worker processes, as in training. Iterating again starts new ones."""
        self._feed.close()


# ---------------------------------------------------------------------------------------------- what is in a batch


@dataclass(frozen=True, eq=False)
class _TrainRecipe:
    """Prepares the training pictures of some keys. ``boxes`` are those of the prepared pictures."""

    size: int
    augment: AugmentConfig
    seed: int
    pictures: PreparedPictures
    boxes: tuple[np.ndarray, ...]
    labels: tuple[np.ndarray, ...]

    def plan(self, key: PictureKey) -> Plan:
        rng = _generator(self.seed, key.epoch, key.position)
        return plan(rng, self.augment, key.sample, self.pictures.sizes_wh, self.size, key.mosaic)

    def __call__(self, keys: tuple[PictureKey, ...]) -> Batch:
        plans = [self.plan(key) for key in keys]
        images = _stacked((render(p, self.pictures.picture) for p in plans), len(plans), self.size)
        found = [place(p, self.boxes.__getitem__, self.labels.__getitem__) for p in plans]
        return Batch(images, padded_targets(found), tuple(key.sample for key in keys))


@dataclass(frozen=True, eq=False)
class _ValRecipe:
    """Prepares the pictures of some samples as detection does."""

    size: int
    samples: tuple[Sample, ...]
    pictures: PreparedPictures | None

    def __call__(self, indices: tuple[int, ...]) -> Batch:
        images = _stacked((self._picture(i) for i in indices), len(indices), self.size)
        samples = [self.samples[i] for i in indices]
        found = [(self._letterbox(s.size_wh).forward(s.boxes), s.labels) for s in samples]
        return Batch(images, padded_targets(found), indices)

    def _picture(self, index: int) -> np.ndarray:
        size_wh = self.samples[index].size_wh
        if self.pictures is not None and max(size_wh) <= self.size:
            return self._letterbox(self.pictures.sizes_wh[index]).apply(self.pictures.picture(index))
        return self._letterbox(size_wh).apply(read_sample(self.samples[index]))

    def _letterbox(self, size_wh: tuple[int, int]) -> Letterbox:
        return letterbox((size_wh[1], size_wh[0]), (self.size, self.size))


def padded_targets(found: Sequence[tuple[np.ndarray, np.ndarray]]) -> Targets:
    """Boxes N x 4 and labels N of B pictures in one shape. M is 8, 16, 32, ..., so that shapes repeat."""
    slots = _FEWEST_SLOTS
    while slots < max(len(labels) for _, labels in found):
        slots *= 2
    boxes = np.zeros((len(found), slots, 4), np.float32)
    labels = np.full((len(found), slots), -1, np.int64)
    for row, (its_boxes, its_labels) in enumerate(found):
        boxes[row, : len(its_boxes)] = its_boxes
        labels[row, : len(its_labels)] = its_labels
    return Targets(torch.from_numpy(boxes), torch.from_numpy(labels))


def _stacked(pictures: Iterable[np.ndarray], count: int, size: int) -> torch.Tensor:
    """S x S x 3 pictures to B x 3 x S x S."""
    import cv2

    images = np.empty((count, 3, size, size), np.uint8)
    for planes, picture in zip(images, pictures, strict=True):
        cv2.split(picture, list(planes))  # several times faster than a transposed copy
    return torch.from_numpy(images)


def _prepared_boxes(samples: Sequence[Sample], pictures: PreparedPictures) -> tuple[np.ndarray, ...]:
    boxes = []
    for sample, size_wh in zip(samples, pictures.sizes_wh, strict=True):
        scale = np.divide(size_wh, sample.size_wh)
        boxes.append((sample.boxes * np.tile(scale, 2)).astype(np.float32))
    return tuple(boxes)


def _generator(seed: int, *place: int) -> np.random.Generator:
    """Random numbers that depend on nothing but the arguments. Of a place and its neighbour they are independent."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=place)))


# ---------------------------------------------------------------------------------------------- who prepares it


@dataclass(frozen=True)
class _Failure:
    """A worker's KitError, sent as a value: the loader would put a traceback into its message."""

    error: KitError


class _Work(Dataset):
    """What a worker process does with the keys of a batch."""

    def __init__(self, recipe: Callable[..., Batch]) -> None:
        self._recipe = recipe

    def __getitem__(self, keys: Keys) -> Batch | _Failure:
        try:
            return self._recipe(keys)
        except KitError as error:
            return _Failure(error.with_traceback(None))


class _Feed:
    """Batches for lists of keys, in their order, from this process or from workers that stay."""

    def __init__(self, recipe: Callable[..., Batch], workers: int, prefetch: int) -> None:
        if workers < 0 or prefetch < 1:
            raise UsageError(f"workers {workers}, prefetch {prefetch}: must be at least 0 and 1")
        self._recipe = recipe
        self._workers = workers
        self._prefetch = prefetch
        self._runs = 0
        self._order: list[Keys] = []
        self._loader: DataLoader | None = None
        self._arriving: _MultiProcessingDataLoaderIter | None = None

    def run(self, tasks: Sequence[Keys]) -> Iterator[Batch]:
        """One batch for each of the tasks. A later run ends this one, and so does ``close``."""
        self._runs += 1
        mine = self._runs
        if self._workers and tasks:
            self._start(tasks)
        for keys in tasks:
            if self._runs != mine:
                raise UsageError(
                    "these batches were given up when others were begun or all were closed: begin again"
                )
            batch = self._arrived() if self._workers else self._recipe(keys)
            if isinstance(batch, _Failure):
                raise batch.error
            yield batch

    @property
    def ready(self) -> int | None:
        if not self._workers:
            return None
        if self._arriving is None:
            return 0
        # The loader counts in private only: what came before its turn, and what waits in the pipe.
        early = sum(len(info) == 2 for info in self._arriving._task_info.values())
        try:
            return early + int(self._arriving._worker_result_queue.qsize())
        except NotImplementedError:
            return None

    def close(self) -> None:
        self._runs += 1
        arriving, self._arriving, self._loader = self._arriving, None, None
        if arriving is not None:
            # The loader has no public way to end its workers but to be forgotten, and a traceback that someone keeps
            # (a notebook keeps the last one) remembers it.
            arriving._shutdown_workers()

    def _start(self, tasks: Sequence[Keys]) -> None:
        self._order[:] = tasks
        # Batches of a run that was given up are still prepared, and thrown away here. Not in the main thread: there the
        # loader would install a signal handler that raises, wherever the program is, when a worker dies.
        with warnings.catch_warnings(), ThreadPoolExecutor(1) as thread:
            # of more workers than cores: whoever chose them says so in its own words
            warnings.filterwarnings("ignore", message="This DataLoader will create")
            if self._loader is None:
                self._loader = _loader(_Work(self._recipe), self._order, self._workers, self._prefetch)
            loader = self._loader
            arriving = self._alive(lambda: thread.submit(iter, loader).result())
        assert isinstance(arriving, _MultiProcessingDataLoaderIter)
        self._arriving = arriving

    def _arrived(self) -> Batch | _Failure:
        assert self._arriving is not None
        batch: Batch | _Failure = self._alive(self._arriving.__next__)
        return batch

    def _alive(self, wait: Callable[[], Answer]) -> Answer:
        """What ``wait`` brings from the workers, which end with any error. Raises TrainingError when one has died."""
        try:
            return wait()
        except BaseException as error:  # an interrupt too may leave half a batch on its way
            self.close()
            if not _means_death(error):
                raise
            reason = " ".join(str(error).split()) or type(error).__name__
            raise TrainingError(
                f"a process that prepares pictures died ({reason}): there may be too little memory or /dev/shm, "
                "use fewer workers or 0"
            ) from error


def _means_death(error: BaseException) -> bool:
    """Whether a worker died, and not met a fault that it could report."""
    if isinstance(error, RuntimeError):
        return str(error).startswith("DataLoader worker")
    # it died with a batch half handed over
    return isinstance(error, OSError | EOFError) and not str(error).startswith("Caught ")


def _loader(work: _Work, order: list[Keys], workers: int, prefetch: int) -> DataLoader:
    """Reads ``order`` anew each time it is iterated."""
    return DataLoader(
        work,
        batch_size=None,  # each item of the order is a whole batch
        sampler=order,
        collate_fn=_as_it_is,
        num_workers=workers,
        prefetch_factor=prefetch,
        persistent_workers=True,
        # Forked workers share the parent's decoded pictures instead of each getting a copy. A forked process cannot
        # use CUDA; these never touch it. Elsewhere fork is missing or, on macOS, breaks system libraries.
        multiprocessing_context="fork" if sys.platform == "linux" else "spawn",
        worker_init_fn=_begin_work,
        generator=torch.Generator(),  # the loader draws a number: not from the stream that the model draws from
    )


def _as_it_is(batch: Any) -> Any:
    return batch


def _begin_work(_worker: int) -> None:
    import cv2

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, which ends its workers
    # The parent's threads do not exist here. With 0 OpenCV leaves them alone, with 1 it waits for them for ever.
    cv2.setNumThreads(0)
    torch.set_num_threads(1)
