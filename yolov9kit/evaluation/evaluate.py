"""Weights on a data set: the scores, what they mean, and where they were lost."""

import os
import time
from importlib.metadata import version
from pathlib import Path

from yolov9kit.data.batches import ValBatches
from yolov9kit.data.dataset import Dataset, has_split, open_dataset, refuse
from yolov9kit.device import Device, Precision, choose_device, choose_precision
from yolov9kit.errors import DataError, EvaluationError
from yolov9kit.evaluation.config import EvalConfig
from yolov9kit.evaluation.matching import match
from yolov9kit.evaluation.network import Network, as_one_class, fused_network, plain_network
from yolov9kit.evaluation.report import EvalReport, Loss, SizeScore
from yolov9kit.evaluation.validate import Validation, validate
from yolov9kit.loss.criterion import DetectionLoss
from yolov9kit.model.checkpoint import Checkpoint, load
from yolov9kit.types import ProgressCallback, counting

_SHOWN_FINDINGS = 10


def evaluate(
    weights: str | Path | Checkpoint,
    data: str | os.PathLike[str],
    config: EvalConfig | None = None,
    *,
    on_progress: ProgressCallback | None = None,
) -> EvalReport:
    """Scores of a weights file of any kind, or a ``Checkpoint``, on a split of a data set.

    Computed as training computes them: the best weights of a run score what its journal says, at the same settings.

    Raises:
        EvaluationError: weights and data have another number of classes, or the network's values are not finite.
        CheckpointError, DataError, DeviceError, UsageError: whatever else makes it impossible.
    """
    start = time.monotonic()
    config = config or EvalConfig()
    device = choose_device(config.device)
    precision = choose_precision(config.precision, device)
    checkpoint = weights if isinstance(weights, Checkpoint) else load(weights)
    title = "weights in memory" if isinstance(weights, Checkpoint) else str(weights)
    dataset = _open(data, config, on_progress)
    notes = [*checkpoint.report.notes, *_compare_classes(title, checkpoint, dataset, config.single_class)]
    notes += _findings(dataset)
    import torchvision.ops  # noqa: F401 - loaded now, or the first pictures' NMS time would hold it

    network = (fused_network if config.fused else plain_network)(checkpoint.model, device, precision)
    if config.single_class and checkpoint.model.num_classes > 1:
        network = as_one_class(network)
    results = [_at(size, network, dataset, device, config, on_progress) for size in config.image_size]
    first = results[0]
    return EvalReport(
        weights=title,
        data=dataset.summary(),
        settings=_settings(config, device, precision, first),
        names=dataset.names,
        sizes=tuple(
            _size_score(size, result) for size, result in zip(config.image_size, results, strict=True)
        ),
        paths=tuple(str(sample.path) for sample in dataset.samples),
        sizes_wh=tuple(sample.size_wh for sample in dataset.samples),
        truths=first.truths,
        found=first.found,
        matches=match(first.truths, first.found),
        min_score=config.min_score,
        worst_count=config.worst,
        notes=tuple(notes),
        seconds=time.monotonic() - start,
    )


def _open(data: str | os.PathLike[str], config: EvalConfig, on_progress: ProgressCallback | None) -> Dataset:
    if not has_split(data, config.split):
        raise DataError(f"{data}: names no pictures for the split '{config.split}'; name another split")
    dataset = open_dataset(
        data,
        config.split,
        single_class=config.single_class,
        min_items=config.min_items,
        progress=counting(on_progress, "checking pictures"),
    )
    if not config.skip_bad_rows:
        refuse(dataset)
    return dataset


def _compare_classes(title: str, checkpoint: Checkpoint, dataset: Dataset, single_class: bool) -> list[str]:
    """Notes where the names differ.

    Raises:
        EvaluationError: the numbers of classes differ: labels of one would mean nothing to the other.
    """
    if single_class:
        return []
    ours, theirs = checkpoint.names, dataset.names
    if len(ours) != len(theirs):
        raise EvaluationError(
            f"{title} knows {_listed(ours)}, {dataset.name} has {_listed(theirs)}: name the data set of these weights, "
            "or score all classes as one (single_class)"
        )
    different = [n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]
    if not different:
        return []
    n = different[0]
    order = "are in another order" if sorted(ours) == sorted(theirs) else "differ"
    return [
        f"names: {len(different)} of {len(ours)} {order}: class {n} is {ours[n]!r} in the weights and {theirs[n]!r} in "
        "the data. Classes are compared by number, the names are those of the data"
    ]


def _findings(dataset: Dataset) -> list[str]:
    """The first errors and warnings; of mere notes the number and one example."""
    grave = [finding for finding in dataset.findings if finding.severity != "note"]
    lines = [str(finding) for finding in grave[:_SHOWN_FINDINGS]]
    if len(grave) > _SHOWN_FINDINGS:
        lines.append(f"{len(grave) - _SHOWN_FINDINGS} more errors and warnings in the data set")
    slight = dataset.findings[len(grave) :]
    if slight:
        lines.append(f"{len(slight)} notes on the data set, the first: {slight[0]}")
    return lines


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
    return f"{len(names)} {'class' if len(names) == 1 else 'classes'} ({shown})"


def _at(
    size: int,
    network: Network,
    dataset: Dataset,
    device: Device,
    config: EvalConfig,
    on_progress: ProgressCallback | None,
) -> Validation:
    batches = ValBatches(dataset.samples, size, config.batch, config.workers)
    try:
        return validate(
            network,
            batches,
            dataset.samples,
            DetectionLoss(len(dataset.names)),
            device.torch_name,
            size,
            config.selection,
            None
            if on_progress is None
            else lambda done, total: on_progress(f"evaluating at {size} px", done, total),
        )
    finally:
        batches.close()


def _size_score(size: int, result: Validation) -> SizeScore:
    pictures = len(result.truths)
    return SizeScore(
        size,
        result.scores,
        Loss(*(float(part) for part in result.loss)),
        detections=sum(len(one.labels) for one in result.found),
        cut=result.cut,
        over=result.over,
        speed={stage: 1000 * seconds / pictures for stage, seconds in result.stages.items()},
    )


def _settings(config: EvalConfig, device: Device, precision: Precision, first: Validation) -> str:
    facts = [
        f"{config.image_size[0]} px, {precision.label} on {device.label}{', fused' if config.fused else ''}",
        str(config.selection),
        *(["all classes as one"] if config.single_class else []),
        f"{first.cut:,} candidates and {first.over:,} boxes over the limits cut",
        f"AP by faster-coco-eval {version('faster-coco-eval')}",
    ]
    return ", ".join(facts)
