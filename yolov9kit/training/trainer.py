"""Start a run, go on with one that was interrupted, train a finished one longer. Each is an iterator of reports."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from yolov9kit.errors import TrainingError, UsageError
from yolov9kit.model.checkpoint import model_of
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.control import Requests
from yolov9kit.training.journal import cut_back
from yolov9kit.training.lock import claim_folder, locked
from yolov9kit.training.loop import Loop
from yolov9kit.training.prepare import Prepared, prepare
from yolov9kit.training.reports import Report, ResumedReport
from yolov9kit.training.state import STATE, Saved, read_state
from yolov9kit.types import ProgressCallback


def train(config: TrainConfig, on_progress: ProgressCallback | None = None) -> Iterator[Report]:
    """Train; yields a report for every step, epoch, evaluation and checkpoint. To stop, stop iterating.

    A run that is stopped (also by Ctrl-C, after the step) saves its state first; ``resume`` goes on from there.

    Args:
        config: the run.
        on_progress: called with (what, done, of how many) while data is checked and decoded.

    Raises:
        KitError: the run cannot start, or cannot go on. Its last good checkpoint is kept.
    """
    prepared = prepare(config, on_progress)
    with locked(claim_folder(config.project, config.name)) as folder:
        yield from begin(folder, prepared)


def begin(folder: Path, prepared: Prepared, requests: Requests | None = None) -> Iterator[Report]:
    """The first run in a folder that is ours already."""
    loop = Loop(folder, prepared, requests=requests)
    yield from loop.reports([loop.start()])


def resume(
    folder: str | Path,
    *,
    device: str | None = None,
    workers: int | None = None,
    on_progress: ProgressCallback | None = None,
) -> Iterator[Report]:
    """Go on with a run from its last checkpoint; the result is that of a run that was never interrupted.

    Device and workers may differ from before; results on another device differ in the last digits.

    Raises:
        TrainingError: no run, one that is alive, a finished one, or the data is not what it was.
    """
    folder = Path(folder)
    if not (folder / STATE).is_file():
        read_state(folder)  # says what is missing; a lock would be left in a folder that is no run's
    with locked(folder):
        yield from go_on(folder, device=device, workers=workers, on_progress=on_progress)


def go_on(
    folder: Path,
    *,
    device: str | None = None,
    workers: int | None = None,
    on_progress: ProgressCallback | None = None,
    requests: Requests | None = None,
) -> Iterator[Report]:
    """``resume`` in a folder that is ours already."""
    saved = read_state(folder)
    if saved.progress.ended:
        raise TrainingError(
            f"{folder}: this run has ended ({saved.progress.ended}). To train longer, extend it: "
            "extend(folder, epochs=...), or --extend on the command line."
        )
    config = TrainConfig(**saved.config)
    if device is not None:
        config = on_devices(config, device, saved.facts)
    if workers is not None:
        config = config.changed(workers=workers)
    prepared = prepare(config, on_progress, model_of(saved.part("model"), folder))
    loop = Loop(folder, prepared, requests=requests)
    loop.restore(saved)
    lost = cut_back(folder, saved.journal_bytes)
    yield from loop.reports([ResumedReport(loop.progress.step, lost, prepared.notes)])


def on_devices(config: TrainConfig, device: str, facts: Mapping[str, Any]) -> TrainConfig:
    """The same run on other devices, more of them or fewer: the batches of a step are dealt out anew.

    Raises:
        UsageError: they cannot be dealt out evenly.
    """
    before, now = (text.count(",") + 1 for text in (config.device, device))
    if before == now:
        return config.changed(device=device)
    batches = facts["accumulate"]
    if batches % now:
        raise UsageError(
            f"device {device!r}: a step of this run has {batches} batches of {facts['batch']} pictures, which {now} "
            "devices cannot share out evenly"
        )
    return config.changed(device=device, batch=facts["batch"] * now, accumulate=batches // now)


def extend(
    folder: str | Path, epochs: int, *, on_progress: ProgressCallback | None = None
) -> Iterator[Report]:
    """Train a finished run on to ``epochs`` epochs in all, in a new folder; the old one stays as it is.

    Weights, average and optimizer go on; the learning rate is that of a run planned for ``epochs`` from the start.

    Raises:
        TrainingError: no run, or one that has that many epochs already.
    """
    folder = Path(folder)
    saved, prepared = prepare_extension(folder, epochs, on_progress)
    with locked(claim_folder(prepared.config.project, f"{folder.name}-extended")) as target:
        yield from begin_extension(folder, target, saved, prepared)


def prepare_extension(
    folder: Path, epochs: int, on_progress: ProgressCallback | None = None
) -> tuple[Saved, Prepared]:
    """Everything of an extension that can fail, before there is a folder for it."""
    saved = read_state(folder)
    if epochs <= saved.progress.epoch:
        raise TrainingError(f"{folder}: has {saved.progress.epoch} epochs already; name more than that")
    config = TrainConfig(**saved.config).changed(epochs=epochs)
    return saved, prepare(config, on_progress, model_of(saved.part("model"), folder))


def begin_extension(
    folder: Path, target: Path, saved: Saved, prepared: Prepared, requests: Requests | None = None
) -> Iterator[Report]:
    """Train the run of ``folder`` on in ``target``, which is ours already."""
    for kind in ("best", "last"):
        with suppress(FileNotFoundError):
            (target / f"weights/{kind}.safetensors").write_bytes(
                (folder / f"weights/{kind}.safetensors").read_bytes()
            )
    (target / "journal.jsonl").write_bytes((folder / "journal.jsonl").read_bytes()[: saved.journal_bytes])
    loop = Loop(target, prepared, requests=requests)
    loop.restore(replace(saved, progress=replace(saved.progress, ended="")))
    note = f"extends {folder} from {saved.progress.epoch} to {prepared.config.epochs} epochs"
    yield from loop.reports([loop.start(), ResumedReport(loop.progress.step, 0, (note,))])
