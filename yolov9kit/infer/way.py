"""The two ways from a batch of pictures to detections: step by step anywhere, or in one launch on an NVIDIA GPU."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from yolov9kit.cuda_graph import CaptureError
from yolov9kit.data.gpu_jpeg import DevicePicture
from yolov9kit.data.letterbox import Letterbox, input_size, letterbox
from yolov9kit.infer.choose import Located, best_classes, by_score, kept_candidates, not_finite, select
from yolov9kit.infer.config import DetectConfig
from yolov9kit.infer.recorded import IN_FLIGHT, SLOTS, Recorded, Underway
from yolov9kit.infer.runner import Runner
from yolov9kit.types import Candidates, Detections, Picture, Timings

Shown = Picture | DevicePicture

Chosen = tuple[Located, Candidates | None]
"""What stays of one picture, and the candidates if they are kept."""

Spent = tuple[float, float, float]
"""Milliseconds of a batch: before the network, the network, after it."""

Started = Callable[[], list[Detections]]
"""Waits for a batch that was started."""


@runtime_checkable
class Way(Protocol):
    """``start`` sends a batch on its way; what it returns waits for the results, in the order of the pictures.

    ``ahead``: how many batches are worth having under way. ``largest``: pictures of the largest batch of this source
    so far. Threads may share one.
    """

    ahead: int

    def start(self, pictures: Sequence[Shown], config: DetectConfig, largest: int) -> Started: ...

    def close(self) -> None: ...


def way_of(runner: Runner, names: tuple[str, ...]) -> Way:
    """The faster of the ways that this runner can go."""
    stepwise = Stepwise(runner, names)
    return stepwise if runner.recordable is None else OneLaunch(runner, names, stepwise)


def placed(pictures: Sequence[Shown], config: DetectConfig) -> list[Letterbox]:
    """How each picture lies in the input."""
    size = input_size(config.image_size)
    return [letterbox(picture.hw, size) for picture in pictures]


class Stepwise:
    """Letterbox on the processor, network on the device, thresholds and NMS on the processor."""

    ahead = 1

    def __init__(self, runner: Runner, names: tuple[str, ...]) -> None:
        self._runner, self._names = runner, names

    def start(self, pictures: Sequence[Shown], config: DetectConfig, largest: int) -> Started:
        found, spent = self.choose(pictures, config)
        results = detections(pictures, found, self._names, spent)
        return lambda: results

    def close(self) -> None:
        pass

    def choose(self, pictures: Sequence[Shown], config: DetectConfig) -> tuple[list[Chosen], Spent]:
        """What stays on each picture, and the time that it took."""
        clock = _Clock(self._runner)
        here = [shown.picture() if isinstance(shown, DevicePicture) else shown for shown in pictures]
        boxed = placed(here, config)
        inputs = np.stack([box.apply(picture.pixels) for box, picture in zip(boxed, here, strict=True)])
        images = torch.from_numpy(inputs).to(self._runner.device.torch_name).permute(0, 3, 1, 2)
        preprocess_ms = clock.lap()
        outputs = self._runner(images)
        network_ms = clock.lap()
        with torch.inference_mode():
            found = best_classes(outputs.main, config.floor, self._runner.precision.name)
        results = []
        for box, (boxes, scores, labels) in zip(boxed, found, strict=True):
            located = by_score((box.undo(boxes), scores, labels))
            results.append(chosen(box.picture_hw, located, len(scores), config))
        return results, (preprocess_ms, network_ms, clock.lap())


class OneLaunch:
    """Everything between the pixels and the final boxes on the GPU; the processor prepares the next batch meanwhile.

    A picture with more locations than fit goes step by step, with the same result. Where ``auto`` chose this way and it
    cannot be recorded, everything does.
    """

    ahead = IN_FLIGHT

    def __init__(self, runner: Runner, names: tuple[str, ...], stepwise: Stepwise) -> None:
        assert runner.recordable is not None  # for the type checker: ``way_of`` looks
        self._runner, self._names, self._stepwise = runner, names, stepwise
        self._recorded: Recorded | None = Recorded(
            runner.recordable, runner.device, runner.precision, len(names)
        )

    def start(self, pictures: Sequence[Shown], config: DetectConfig, largest: int) -> Started:
        if self._recorded is None:
            return self._stepwise.start(pictures, config, largest)
        self._runner.engine()  # a closed one records nothing any more
        begin = time.perf_counter()
        boxed = placed(pictures, config)
        pixels: list[Any] = [picture.pixels for picture in pictures]
        try:
            underway = self._recorded.submit(pixels, boxed, config, largest)
        except CaptureError:
            if not self._runner.mode.chosen:
                raise
            self._recorded = None  # the runner meets the same and says why
            return self._stepwise.start(pictures, config, largest)
        preprocess_ms = (time.perf_counter() - begin) * 1000
        return lambda: self._results(underway, pictures, config, preprocess_ms)

    def close(self) -> None:
        if self._recorded is not None:
            self._recorded.close()

    def _results(
        self, underway: Underway, pictures: Sequence[Shown], config: DetectConfig, preprocess_ms: float
    ) -> list[Detections]:
        found, network_ms = underway.result()
        begin = time.perf_counter()
        if not all(one.finite for one in found):
            raise not_finite(self._runner.precision.name)
        results: list[Chosen] = []
        for picture, one in zip(pictures, found, strict=True):
            if one.located > SLOTS:
                results += self._stepwise.choose([picture], config)[0]
            elif config.keep_candidates:
                results.append(chosen(picture.hw, one[:3], one.located, config))
            else:
                results.append((one[:3], None))
        nms_ms = (time.perf_counter() - begin) * 1000
        return detections(pictures, results, self._names, (preprocess_ms, network_ms, nms_ms))


def chosen(picture_hw: tuple[int, int], located: Located, count: int, config: DetectConfig) -> Chosen:
    """Thresholds and NMS on what was located, which comes by falling score in picture pixels."""
    height, width = picture_hw
    return select(*located, (width, height), config), kept_candidates(located, count, config)


def detections(
    pictures: Sequence[Shown], found: Sequence[Chosen], names: tuple[str, ...], spent: Spent
) -> list[Detections]:
    """What was found on each picture of a batch, with where it comes from and its even share of the time."""
    shares = [milliseconds / len(pictures) for milliseconds in spent]
    results = []
    for picture, (located, candidates) in zip(pictures, found, strict=True):
        height, width = picture.hw
        timings = Timings(picture.decode_ms, *shares)
        results.append(
            Detections(
                *located,
                names,
                (width, height),
                picture.path,
                picture.frame,
                timings,
                picture.notes,
                candidates,
            )
        )
    return results


class _Clock:
    """Milliseconds since the last look, after the device has finished."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._last = time.perf_counter()

    def lap(self) -> float:
        self._runner.synchronize()
        now = time.perf_counter()
        spent, self._last = (now - self._last) * 1000, now
        return spent
