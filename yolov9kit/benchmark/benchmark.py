"""A benchmark from start to end, as an iterator of reports: the plan, each row when it is done, everything."""

import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from yolov9kit.benchmark.config import BenchmarkConfig
from yolov9kit.benchmark.environment import environment
from yolov9kit.benchmark.estimate import estimate, probe
from yolov9kit.benchmark.floor import Ceiling, ConvWork, conv_work, floor, measure_ceiling
from yolov9kit.benchmark.measure import in_words, measure, release
from yolov9kit.benchmark.pictures import PictureItem, choose_pictures
from yolov9kit.benchmark.report import Accuracy, BenchmarkReport, Combination, Plan, Refused, Report, Row
from yolov9kit.benchmark.usage import HZ
from yolov9kit.data.dataset import Dataset, open_dataset, refuse
from yolov9kit.device import Device, Precision, choose_device, choose_precision
from yolov9kit.errors import DeviceError, EvaluationError, KitError
from yolov9kit.evaluation.config import EvalConfig
from yolov9kit.evaluation.evaluate import evaluate
from yolov9kit.infer.mode import choose_mode
from yolov9kit.infer.predict import Detector
from yolov9kit.model.checkpoint import Checkpoint, load
from yolov9kit.telemetry import Sampler
from yolov9kit.types import Detections, ProgressCallback

_DRIVER_SECONDS = 2.0  # to wait for telemetry's first sample, which knows the driver


def run_benchmark(
    weights: str | Path | Checkpoint,
    config: BenchmarkConfig | None = None,
    *,
    on_progress: ProgressCallback | None = None,
) -> Generator[Report, None, None]:
    """First a ``Plan``, then a ``Row`` for each combination, last a ``BenchmarkReport``. To stop, stop iterating.

    A combination that cannot be had here stands in the plan with its reason; one that fails on the way, for want of
    memory, is a row with its reason, and the others follow.

    Raises:
        DeviceError: none of the combinations can be had, with the reason of the first.
        CheckpointError, DataError, EvaluationError, PictureError, UsageError: what keeps it from beginning.
    """
    start = time.monotonic()
    config = config or BenchmarkConfig()
    device = choose_device(config.device)
    combinations, refused = combine(config, device)
    checkpoint = weights if isinstance(weights, Checkpoint) else load(weights)
    dataset = _open_data(config, checkpoint, on_progress)
    pictures = choose_pictures(config, dataset)
    with Sampler(device.torch_name, hz=HZ) as sampler:
        work = _Work(checkpoint, device, config, pictures.items, sampler, on_progress)
        plan = Plan(
            weights="weights in memory" if isinstance(weights, Checkpoint) else str(weights),
            config=config,
            device=device,
            environment=environment(device, _driver(sampler)),
            combinations=combinations,
            refused=refused,
            model=f"YOLOv9-{checkpoint.size}, {len(checkpoint.names)} classes",
            source=pictures.description,
            pictures=len(pictures.items),
            seconds=work.estimate(combinations, 0 if dataset is None else len(dataset.samples)),
            notes=(*checkpoint.report.notes, *pictures.notes),
        )
        yield plan
        rows: list[Row] = []
        for combination in combinations:
            row = work.row(combination, len(rows), len(combinations))
            rows.append(row)
            yield row
    yield BenchmarkReport(plan, tuple(rows), time.monotonic() - start)


def combine(config: BenchmarkConfig, device: Device) -> tuple[tuple[Combination, ...], tuple[Refused, ...]]:
    """Every combination that can be had, each once though ``auto`` may mean one that is named too, and the others.

    Raises:
        DeviceError: there is none, with the reason of the first.
        UsageError: a name that no precision or mode has.
    """
    runs: dict[tuple[str, str], Combination] = {}
    refused: list[Refused] = []
    for wanted in config.precisions:
        try:
            precision = choose_precision(wanted, device)
        except DeviceError as error:
            refused.append(Refused(wanted, "any mode", str(error)))
            continue
        for name in config.modes:
            try:
                mode = choose_mode(name, device, precision)
            except DeviceError as error:
                refused.append(Refused(precision.name, name, str(error)))
                continue
            runs.setdefault((precision.name, mode.name), Combination(0, 0, precision, mode))
    if not runs:
        raise DeviceError(refused[0].reason)
    combinations = tuple(
        replace(run, image_size=size, batch_size=batch)
        for size in config.image_sizes
        for batch in config.batch_sizes
        for run in runs.values()
    )
    return combinations, tuple(refused)


@dataclass
class _Work:
    """What rows share, and what is found out once for several of them."""

    checkpoint: Checkpoint
    device: Device
    config: BenchmarkConfig
    pictures: tuple[PictureItem, ...]
    sampler: Sampler
    on_progress: ProgressCallback | None
    references: dict[int, list[Detections] | str] = field(default_factory=dict)
    convolutions: dict[int, ConvWork] = field(default_factory=dict)
    ceilings: dict[str, Ceiling | str] = field(default_factory=dict)
    accuracies: dict[tuple[int, str], Accuracy | str] = field(default_factory=dict)

    def estimate(self, combinations: tuple[Combination, ...], scored: int) -> float:
        with closing(self._plain(combinations[0].image_size)) as detector:
            run_ms = probe(detector, combinations, self.device)
        del detector
        release(self.device)
        return estimate(
            run_ms, combinations, self.config, len(self.pictures), scored, self.device.kind == "cpu"
        )

    def row(self, combination: Combination, done: int, total: int) -> Row:
        def stage(what: str) -> None:
            if self.on_progress is not None:
                self.on_progress(f"{combination}: {what}", done, total)

        stage("fp32 eager, to compare with")
        reference = self._reference(combination.image_size)
        known = [] if isinstance(reference, str) else reference
        row = measure(
            self.checkpoint, self.device, combination, self.config, self.pictures, known,
            self.sampler, stage,
        )  # fmt: skip
        notes = [f"no difference to fp32 eager: {reference}"] if isinstance(reference, str) else []
        if self.config.floor and row.network is not None:
            stage("measuring what the device can do")
            ceiling = self._ceiling(combination.precision)
            if isinstance(ceiling, str):
                notes.append(f"no floor: {ceiling}")
            else:
                work, value_bytes = (
                    self._convolutions(combination.image_size),
                    combination.precision.dtype.itemsize,
                )
                median = row.network.runs.median
                row = replace(row, floor=floor(work, ceiling, combination.batch_size, value_bytes, median))
        if self.config.data is not None and not row.error:
            stage("scoring")
            accuracy = self._accuracy(combination)
            if isinstance(accuracy, str):
                notes.append(f"no AP: {accuracy}")
            else:
                row = replace(row, accuracy=accuracy)
        return replace(row, notes=(*row.notes, *notes))

    def _plain(self, image_size: int) -> Detector:
        return Detector(self.checkpoint, self.device.torch_name, "fp32", mode="eager", image_size=image_size)

    def _reference(self, image_size: int) -> list[Detections] | str:
        """What fp32 eager finds on the pictures, or why there is nothing."""
        if image_size not in self.references:
            try:
                with closing(self._plain(image_size)) as detector:
                    self.references[image_size] = detector.detect(list(self.pictures))
                del detector
            except (KitError, RuntimeError, MemoryError) as error:
                self.references[image_size] = in_words(error, f"fp32 eager at {image_size} px")
            release(self.device)
        return self.references[image_size]

    def _convolutions(self, image_size: int) -> ConvWork:
        if image_size not in self.convolutions:
            self.convolutions[image_size] = conv_work(self.checkpoint.model, image_size)
        return self.convolutions[image_size]

    def _ceiling(self, precision: Precision) -> Ceiling | str:
        if precision.name not in self.ceilings:
            try:
                self.ceilings[precision.name] = measure_ceiling(self.device, precision)
            except (RuntimeError, MemoryError) as error:
                self.ceilings[precision.name] = in_words(error, "what measures the device")
            release(self.device)
        return self.ceilings[precision.name]

    def _accuracy(self, combination: Combination) -> Accuracy | str:
        """Of the fused network, eager: ``evaluate`` knows no other mode."""
        size, precision = combination.image_size, combination.precision.name
        if (size, precision) not in self.accuracies:
            try:
                self.accuracies[size, precision] = self._score(size, precision)
            except (KitError, RuntimeError, MemoryError) as error:
                self.accuracies[size, precision] = in_words(error, f"scoring at {size} px in {precision}")
            release(self.device)
        return self.accuracies[size, precision]

    def _score(self, size: int, precision: str) -> Accuracy:
        assert self.config.data is not None
        settings = EvalConfig(
            image_size=size,
            precision=precision,
            device=self.device.torch_name,
            fused=True,
            split=self.config.split,
        )
        report = evaluate(self.checkpoint, self.config.data, settings)
        return Accuracy(report.ap, report.ap50, report.ap75, of=f"mode eager: {report.settings}")


def _open_data(
    config: BenchmarkConfig, checkpoint: Checkpoint, on_progress: ProgressCallback | None
) -> Dataset | None:
    """What would keep ``evaluate`` from scoring is told before anything is timed."""
    if config.data is None:
        return None
    dataset = open_dataset(
        config.data,
        config.split,
        progress=None
        if on_progress is None
        else lambda done, total: on_progress("checking pictures", done, total),
    )
    refuse(dataset)
    if len(dataset.names) != len(checkpoint.names):
        raise EvaluationError(
            f"the weights know {len(checkpoint.names)} classes, {dataset.name} has {len(dataset.names)}: name the data "
            "set of these weights, or leave data out"
        )
    return dataset


def _driver(sampler: Sampler) -> str | None:
    end = time.monotonic() + _DRIVER_SECONDS
    while sampler.latest is None and time.monotonic() < end:
        time.sleep(0.01)
    return sampler.facts.driver
