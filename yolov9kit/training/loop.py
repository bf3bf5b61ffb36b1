"""The loop, read aloud: epochs of steps, then a look at the validation pictures, then everything safely on the disk."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field
from itertools import chain, islice
from pathlib import Path

import torch

from yolov9kit.device import memory_mib
from yolov9kit.errors import CheckpointError, EvaluationError, KitError, TrainingError
from yolov9kit.evaluation.network import scored
from yolov9kit.evaluation.validate import SETTINGS, Validation, validate
from yolov9kit.model.checkpoint import save
from yolov9kit.model.yolov9 import main_branch
from yolov9kit.training.control import Requests, StopAsked
from yolov9kit.training.examples import write_examples
from yolov9kit.training.journal import Journal
from yolov9kit.training.prepare import Prepared
from yolov9kit.training.reports import (
    CheckpointReport,
    ControlReport,
    EndReport,
    EpochReport,
    EvaluationReport,
    LossValues,
    Problem,
    Report,
    StepReport,
)
from yolov9kit.training.share import computing, out_of_memory
from yolov9kit.training.state import (
    EVALUATED,
    REPORTED,
    STEPS,
    Progress,
    Saved,
    load_optimizer,
    optimizer_tensors,
    write_state,
)
from yolov9kit.training.step import StepResult
from yolov9kit.types import Batch


@dataclass
class Loop:
    """A run in progress. Its folder holds the journal, the state and the weights.

    With ``requests`` it does, after any report, what other processes ask for.
    """

    folder: Path
    parts: Prepared
    progress: Progress = field(default_factory=Progress)
    requests: Requests | None = None

    def __post_init__(self) -> None:
        self._saved_at = self._began = time.monotonic()
        self._before = self._save_seconds = 0.0

    def start(self) -> Report:
        """The first report; writes the config beside the journal."""
        report = self.parts.start_report(str(self.folder), self.progress.step)
        (self.folder / "config.json").write_text(
            self.parts.config.model_dump_json(indent=2) + "\n", encoding="utf-8"
        )
        return report

    # ------------------------------------------------------------------------------------------ the loop

    def reports(self, first: Sequence[Report]) -> Iterator[Report]:
        """All reports of the run; each stands in the journal before it is given out."""
        journal = Journal(self.folder)
        failure: TrainingError | None = None
        try:
            for report in chain(first, self._epochs(journal)):
                journal.append(report)
                yield report
                if self.requests is not None and not self.progress.ended:
                    for answer in self.requests.obey(self.progress.step, lambda: self._checkpoint(journal)):
                        journal.append(answer)
                        yield answer
        except StopAsked:
            with suppress(KitError):
                journal.append(ControlReport("stop", self.progress.step))
            self._stopped(journal)
        except (GeneratorExit, KeyboardInterrupt):
            self._stopped(journal)
            raise
        except torch.OutOfMemoryError as error:
            failure = TrainingError(out_of_memory(error, f"a batch of {self.parts.batch}"))
            self._failed(journal, failure)
        except Exception as error:
            self._failed(journal, error)
            raise
        finally:
            journal.close()
            self.parts.close()
        if failure is not None:  # raised here: the frames of the error above would hold the GPU's memory
            raise failure

    def _failed(self, journal: Journal, error: Exception) -> None:
        kind = "" if isinstance(error, KitError) else f"{type(error).__name__}: "
        with suppress(KitError):
            journal.append(self._end(f"failed: {kind}{error}"))

    def _epochs(self, journal: Journal) -> Iterator[Report]:
        """A stop at any report leaves a state that the rest follows from: ``stage`` says what is behind an epoch."""
        config, progress = self.parts.config, self.progress
        if not progress.step:
            yield self._checkpoint(journal)
        while progress.epoch < config.epochs and not progress.ended:
            yield from self._steps(journal)
            if progress.stage == STEPS:
                progress.stage = REPORTED
                yield self._epoch_report()
            done = progress.epoch + 1
            if progress.stage == REPORTED and (done % config.evaluate_every == 0 or done == config.epochs):
                report = self._evaluate()
                if report.best:
                    self._write_weights("best", f"{done} epochs")
                progress.stage = EVALUATED
                yield report
            self._finish_epoch()
            if self.progress.ended or self._checkpoint_is_due():
                self._write_weights("last", f"{progress.epoch} epochs")
                yield self._checkpoint(journal)
        yield self._end(progress.ended)

    def _finish_epoch(self) -> None:
        config, progress = self.parts.config, self.progress
        epoch = progress.epoch + 1
        if epoch == config.epochs:
            progress.ended = "finished"
        elif config.patience and epoch - (progress.best_epoch or 0) >= config.patience:
            progress.ended = f"no better AP for {config.patience} epochs"
        progress.begin_epoch(epoch)

    def _steps(self, journal: Journal) -> Iterator[Report]:
        parts, progress = self.parts, self.progress
        accumulate = parts.recipe.accumulate
        batches = iter(
            parts.train_batches.epoch(
                progress.epoch, start=progress.step_in_epoch * accumulate, mosaic=self._mosaic()
            )
        )
        parts.step.fix_norms(parts.fixed_norms and not self._mosaic())
        clock = time.monotonic()
        while progress.step_in_epoch < parts.steps_per_epoch:
            ready = parts.train_batches.ready
            group = list(islice(batches, accumulate))
            waited = time.monotonic() - clock
            parts.schedule.apply(parts.step.optimizer, progress.step)
            with interrupts_after():
                result = parts.step([(batch.images, batch.targets) for batch in group])
                self._count(result)
            now = time.monotonic()
            progress.epoch_seconds += now - clock
            progress.epoch_waited += waited
            yield self._step_report(result, group, now - clock, waited, ready)
            self._check_faults(result, group)
            clock = time.monotonic()
            if clock - self._saved_at > parts.config.checkpoint_minutes * 60:
                yield self._checkpoint(journal)

    def _mosaic(self) -> bool:
        return self.progress.epoch < self.parts.config.epochs - self.parts.epochs_without_mosaic

    def _count(self, result: StepResult) -> None:
        progress = self.progress
        progress.step += 1
        progress.step_in_epoch += 1
        if result.fault is None:
            values = astuple(result.loss)
            progress.applied += 1
            progress.loss_sums = tuple(a + b for a, b in zip(progress.loss_sums, values, strict=True))
            progress.bad_in_a_row = 0
        else:
            progress.skipped += 1
            progress.bad_in_a_row += not result.overflow

    def _check_faults(self, result: StepResult, group: Sequence[Batch]) -> None:
        """Raises where going on makes no sense: spoilt weights, too many bad steps in a row, a whole epoch of them."""
        if result.fault is None or result.overflow:
            return
        progress, limit = self.progress, self.parts.config.max_bad_steps
        whole_epoch = progress.step_in_epoch == self.parts.steps_per_epoch and not progress.applied
        if result.hopeless or progress.bad_in_a_row >= limit or whole_epoch:
            why = "" if result.hopeless else f" {progress.bad_in_a_row} steps in a row were not applied."
            raise self._stop(f"{self._problem(result, group)}.{why}")

    def _stop(self, why: str) -> TrainingError:
        progress = self.progress
        rate = self.parts.schedule.learning_rate(max(progress.step - 1, 0))
        return TrainingError(
            f"step {progress.step} (epoch {progress.epoch + 1}): {why} The run stops; the last good checkpoint is kept "
            f"in {self.folder}. A lower learning rate (now {rate:.3g}) or precision fp32 may help."
        )

    def _problem(self, result: StepResult, group: Sequence[Batch]) -> Problem:
        assert result.fault is not None
        tensor, what = result.fault
        if result.overflow:
            what += f"; the fp16 loss scale is halved to {self.parts.step.scale.value:g}"
        samples = self.parts.train_data.samples
        return Problem(tensor, what, tuple(str(samples[i].path) for batch in group for i in batch.indices))

    # ------------------------------------------------------------------------------------------ reports

    def _step_report(
        self, result: StepResult, group: Sequence[Batch], seconds: float, waited: float, ready: int | None
    ) -> StepReport:
        progress = self.progress
        good = result.fault is None
        return StepReport(
            epoch=progress.epoch + 1,
            step=progress.step,
            step_in_epoch=progress.step_in_epoch,
            loss=result.loss if good else None,
            learning_rate=self.parts.schedule.learning_rate(progress.step - 1),
            grad_norm=result.grad_norm if good else None,
            pictures_per_s=sum(len(batch.images) for batch in group) / seconds,
            waiting=waited / seconds,
            ready=ready,
            memory_mib=memory_mib(self.parts.device.torch_name),
            problem=None if good else self._problem(result, group),
        )

    def _epoch_report(self) -> EpochReport:
        progress = self.progress
        applied = progress.applied
        return EpochReport(
            epoch=progress.epoch + 1,
            steps=applied,
            skipped=progress.skipped,
            loss=LossValues(*(value / applied for value in progress.loss_sums)) if applied else None,
            learning_rate=self.parts.schedule.learning_rate(progress.step - 1),
            mosaic=self._mosaic(),
            seconds=progress.epoch_seconds,
            pictures_per_s=len(self.parts.train_batches) * self.parts.batch / progress.epoch_seconds,
            waiting=progress.epoch_waited / progress.epoch_seconds,
        )

    def _evaluate(self) -> EvaluationReport:
        parts, progress = self.parts, self.progress
        try:
            result = evaluate_average(parts, self.requests)
        except EvaluationError as error:
            raise self._stop(f"{error}.") from None
        scores = result.scores
        best = progress.best_epoch is None or (scores.ap or 0.0) > (progress.best_ap or 0.0)
        if best:
            progress.best_ap, progress.best_epoch = scores.ap, progress.epoch + 1
        names = parts.train_data.names
        write_examples(self.folder, progress.epoch + 1, parts.val_data.samples, result.found, names)
        return EvaluationReport(
            epoch=progress.epoch + 1,
            loss=LossValues(*(float(part) for part in result.loss)),
            ap=scores.ap,
            ap50=scores.ap50,
            ap75=scores.ap75,
            per_class=tuple((name, *pair) for name, pair in zip(names, scores.per_class, strict=True)),
            pictures=len(parts.val_data.samples),
            objects=sum(len(sample.labels) for sample in parts.val_data.samples),
            settings=f"averaged weights, {parts.config.image_size} px, {parts.precision.name}, {SETTINGS}"
            + (f", {result.cut:,} candidates cut" if result.cut else ""),
            best=best,
            seconds=result.seconds,
        )

    def _end(self, reason: str) -> EndReport:
        progress = self.progress
        kind = "last" if progress.best_epoch is None else "best"
        return EndReport(
            reason,
            progress.epoch,
            progress.best_epoch,
            progress.best_ap,
            str(self.folder / f"weights/{kind}.safetensors"),
            self._seconds(),
        )

    def _seconds(self) -> float:
        held = self.requests.held if self.requests is not None else 0.0
        return self._before + time.monotonic() - self._began - held

    # ------------------------------------------------------------------------------------------ the disk

    def _stopped(self, journal: Journal) -> None:
        reason = "stopped"
        try:
            if not self.progress.ended:
                self._write_weights("last", f"{self.progress.step} steps")
                journal.append(self._checkpoint(journal))
        except CheckpointError as error:
            reason = f"stopped; the state was not saved: {error}"
        with suppress(KitError):
            journal.append(self._end(reason))

    def _write_weights(self, kind: str, after: str) -> None:
        config = self.parts.config
        save(
            self.parts.step.average.model,
            self.folder / f"weights/{kind}.safetensors",
            names=self.parts.train_data.names,
            input_hw=(config.image_size,) * 2,
            provenance=f"trained by yolov9kit, {after}, on {config.data}",
        )

    def _checkpoint_is_due(self) -> bool:
        """Whether the last one took a small enough share of the time that has passed since."""
        share = self.parts.config.checkpoint_share
        return share == 1 or time.monotonic() - self._saved_at >= self._save_seconds / share

    def _checkpoint(self, journal: Journal) -> CheckpointReport:
        parts, progress = self.parts, self.progress
        began = time.monotonic()
        progress.average_updates = parts.step.average.updates
        progress.scale, progress.scale_good_steps = parts.step.scale.value, parts.step.scale.good_steps
        progress.seconds = self._seconds()
        tensors, groups = optimizer_tensors(parts.step.optimizer)
        for name, module in (("model", parts.model), ("average", parts.step.average.model)):
            tensors |= {f"{name}.{key}": tensor for key, tensor in module.state_dict().items()}
        config = parts.config.model_dump(mode="json")
        path = write_state(self.folder, tensors, progress, journal.committed(), config, parts.facts, groups)
        self._saved_at = time.monotonic()
        self._save_seconds = self._saved_at - began
        return CheckpointReport(progress.epoch, progress.step, str(path), self._save_seconds)

    def restore(self, saved: Saved) -> None:
        """Take over a saved state.

        Raises:
            TrainingError: the data or the classes are not those of the saved run.
        """
        parts = self.parts
        changed = [key for key, value in parts.facts.items() if saved.facts.get(key) != value]
        if changed:
            raise TrainingError(
                f"{self.folder}: {changed[0].replace('_', ' ')} is not what it was when the run began. An exact "
                "resumption is impossible; start a new run from weights/last.safetensors."
            )
        parts.model.load_state_dict(saved.part("model"))
        parts.step.average.model.load_state_dict(saved.part("average"))
        load_optimizer(parts.step.optimizer, saved)
        self.progress = saved.progress
        parts.step.average.updates = saved.progress.average_updates
        parts.step.scale.value = saved.progress.scale
        parts.step.scale.good_steps = saved.progress.scale_good_steps
        self._before = saved.progress.seconds


def evaluate_average(parts: Prepared, requests: Requests | None = None) -> Validation:
    """The averaged weights, without their auxiliary branch, on the validation pictures.

    Raises:
        StopAsked: by ``requests``, between two batches.
    """
    network = scored(main_branch(parts.step.average.model), parts.device, parts.precision)
    with computing(parts.device, parts.precision, parts.config.deterministic):
        return validate(
            network,
            parts.val_batches,
            parts.val_data.samples,
            parts.loss,
            parts.device.torch_name,
            parts.config.image_size,
            on_progress=None if requests is None else lambda done, total: requests.stop_if_asked(),
        )


@contextmanager
def interrupts_after() -> Iterator[None]:
    """Ctrl-C takes effect at the end: half an update must not be left behind. In other threads it never comes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before: Callable[..., object] | int | None = signal.signal(
        signal.SIGINT, lambda number, frame: came.append(number)
    )
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt
