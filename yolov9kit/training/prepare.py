"""From a config to everything that a run needs, checked before the first step. Each choice has its reason."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from yolov9kit.data.augment import AugmentConfig
from yolov9kit.data.batches import TrainBatches, ValBatches
from yolov9kit.data.dataset import Dataset, open_dataset, refuse
from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.data.pixels import PreparedPictures, available_bytes, needed_bytes
from yolov9kit.data.workers import batch_bytes, check_workers, suggest_workers
from yolov9kit.device import Device, Precision, choose_devices, choose_precision, takes_channels_last
from yolov9kit.doctor.gate import gate
from yolov9kit.doctor.text import in_lines
from yolov9kit.errors import DataError, UsageError
from yolov9kit.loss.criterion import DetectionLoss
from yolov9kit.machine import usable_cores
from yolov9kit.model.blocks import batch_norms
from yolov9kit.model.layouts import layer_paths
from yolov9kit.model.transfer import freeze, new_model, transfer
from yolov9kit.model.yolov9 import YOLOv9, parameter_count
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.devices import OtherDevices
from yolov9kit.training.optim import (
    SHORT_RUN_STEPS,
    Recipe,
    Schedule,
    WeightAverage,
    choose_average,
    choose_norm_momentum,
    choose_recipe,
    make_optimizer,
    make_schedule,
)
from yolov9kit.training.reports import StartReport
from yolov9kit.training.step import TrainStep
from yolov9kit.types import ProgressCallback, counting

FIRST_SCALE = 2.0**10
CLOSE_SCALE = 0.1


@dataclass
class Prepared:
    """The parts of a run."""

    config: TrainConfig
    train_data: Dataset
    val_data: Dataset
    devices: tuple[Device, ...]
    precision: Precision
    recipe: Recipe
    schedule: Schedule
    step: TrainStep
    loss: DetectionLoss
    train_batches: TrainBatches
    val_batches: ValBatches
    batch: int
    workers: str
    mode: str
    cache: str
    notes: tuple[str, ...]

    @property
    def epochs_without_mosaic(self) -> int:
        return epochs_without_mosaic(self.config)

    @property
    def fixed_norms(self) -> bool:
        """Whether BatchNorm rests in these epochs. With its running values single pictures can come out far from what
        they were in a batch, the further the deeper the layer: fine-tuned for five epochs on 96 pictures, AP 50 fell
        from 0.7 to 0.2 in the third (two of three seeds) and ended at 0.84, 0.48 and 0.83. Where the last two epochs
        trained with these values it ended at 0.85 each time.
        """
        if self.config.fixed_norms is not None:
            return self.config.fixed_norms
        return self.schedule.total_steps < SHORT_RUN_STEPS

    @property
    def norm_momentum(self) -> float:
        """How much of a batch BatchNorm's running values take in."""
        return choose_norm_momentum(self.schedule.total_steps * self.recipe.accumulate)

    @property
    def device(self) -> Device:
        """The one of this process: all but the parts of a step that others take happens there."""
        return self.devices[0]

    @property
    def model(self) -> YOLOv9:
        return self.step.model

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.train_batches) // self.recipe.accumulate)

    @property
    def facts(self) -> Mapping[str, Any]:
        """What must be the same for a run to be resumed."""
        return {
            "train_data": self.train_data.digest,
            "val_data": self.val_data.digest,
            "names": list(self.train_data.names),
            "size": self.model.size,
            "batch": self.batch,
            "accumulate": self.recipe.accumulate,
            "optimizer": self.recipe.optimizer,
        }

    def start_report(self, folder: str, first_step: int) -> StartReport:
        return StartReport(
            folder=folder,
            config=self.config.model_dump(mode="json"),
            size=self.model.size,
            names=self.train_data.names,
            parameters=parameter_count(self.model),
            device=", ".join(f"{d.torch_name} ({d.label})" for d in self.devices) + f", {self.device.reason}",
            device_uuid=self.device.uuid,
            precision=f"{self.precision.label}, {self.precision.reason}",
            optimizer=f"{self.recipe.optimizer} at {self.recipe.lr0:g}, {self.recipe.reason}",
            average=f"{self.step.average.label}; BatchNorm's running values over {1 / self.norm_momentum:.0f} batches",
            augmentation=self._augmentation(),
            mode=self.mode,
            cache=self.cache,
            workers=self.workers,
            train_data=self.train_data.summary(),
            val_data=self.val_data.summary(),
            batch=self.batch * len(self.devices),
            accumulate=self.recipe.accumulate // len(self.devices),
            steps_per_epoch=self.steps_per_epoch,
            total_steps=self.steps_per_epoch * self.config.epochs,
            first_step=first_step,
            notes=self.notes,
        )

    def _augmentation(self) -> str:
        chosen = self.train_batches.augment
        short = self.config.scale is None or self.config.mixup is None
        why = ", chosen by the length of the run" if short else ", as asked"
        last = f"; the last {self.epochs_without_mosaic} epochs without mosaic"
        size = "" if chosen.close_scale is None else f", with scale {chosen.close_scale:g}"
        norms = " and with BatchNorm's running values" if self.fixed_norms else ""
        return f"mosaic {chosen.mosaic:g}, mixup {chosen.mixup:g}, scale {chosen.scale:g}{why}{last}{size}{norms}"

    def close(self) -> None:
        self.train_batches.close()
        self.val_batches.close()
        if self.step.others is not None:
            self.step.others.close()


def prepare(
    config: TrainConfig, progress: ProgressCallback | None = None, model: YOLOv9 | None = None
) -> Prepared:
    """Read the data, choose, build. ``model`` is that of a run that goes on; None makes the one that a run begins with.

    Raises:
        DataError, DeviceError, CheckpointError, UsageError: whatever makes the run impossible, before any of its work.
    """
    devices = choose_devices(config.device)
    device = devices[0]
    precision = choose_precision(config.precision, device)
    train_data, val_data = _open_data(config, progress)
    notes = []
    if model is None:  # a run that goes on has been told
        notes += in_lines([*train_data.findings, *val_data.findings, *gate(train_data, val_data)])
        model, account = _first_model(config, train_data)
        notes += account
    norms = freeze(model, frozen_paths(config.freeze, model.size))
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise UsageError(f"freeze = {list(config.freeze)}: nothing is left that could learn")
    model = model.to(device.torch_name)
    if takes_channels_last(device, precision):
        model = model.to(memory_format=torch.channels_last)
    batch, batch_note = batch_of_a_device(config, len(train_data.samples), len(devices))
    notes += batch_note
    pictures, cache = _pictures(config, train_data, progress)
    together = batch * len(devices)
    augment = augmentation_of(config, len(pictures), together)
    workers, reason = _choose_workers(config, pictures, batch, device, augment)
    train_batches = make_train_batches(config, pictures, batch, workers, augment)
    val_batches = ValBatches(val_data.samples, config.image_size, config.val_batch or batch, workers)
    recipe = choose_recipe(config, together, -(-len(train_batches) // len(devices)))
    # a step of several devices is one of as many batches
    recipe = replace(recipe, accumulate=recipe.accumulate * len(devices))
    steps = -(-len(train_batches) // recipe.accumulate)
    loss = DetectionLoss(
        len(train_data.names), config.box_gain, config.cls_gain, config.dfl_gain, config.aux_weight
    )
    graph, mode = choose_mode(config.mode, devices, recipe)
    schedule = make_schedule(config, recipe, steps)
    momentum = choose_norm_momentum(schedule.total_steps * recipe.accumulate)
    for norm in batch_norms(model):
        norm.momentum = momentum
    others = None
    if len(devices) > 1:
        others = OtherDevices(model, loss, devices[1:], precision, config.deterministic, norms)
    step = TrainStep(
        model,
        WeightAverage(model, *choose_average(config, schedule.total_steps)),
        make_optimizer(model, recipe),
        loss,
        device,
        precision,
        config.clip_norm,
        config.deterministic,
        graph,
        frozen_norms=norms,
        others=others,
    )
    if precision.name == "fp16":
        step.scale.value = FIRST_SCALE
    if config.deterministic and device.kind == "cuda":
        notes.append(_GPU_DETERMINISM)
    return Prepared(
        config, train_data, val_data, devices, precision, recipe, schedule, step, loss,
        train_batches, val_batches, batch, reason, mode, cache, tuple(notes),
    )  # fmt: skip


def choose_mode(wanted: str, devices: Sequence[Device], recipe: Recipe) -> tuple[bool, str]:
    """Whether steps are recorded and replayed, and why.

    Raises:
        UsageError: a graph was asked for where there can be none.
    """
    obstacle = ""
    if devices[0].kind != "cuda":
        obstacle = f"CUDA graphs need an NVIDIA GPU, the device is {devices[0].torch_name}"
    elif len(devices) > 1:
        obstacle = (
            f"{len(devices)} devices agree on a number in the middle of a step, a graph cannot wait for it"
        )
    elif recipe.accumulate > 1:
        obstacle = f"{recipe.accumulate} batches make a step, a graph holds one"
    if wanted == "graph" and obstacle:
        raise UsageError(f"mode graph: {obstacle}")
    if wanted == "eager":
        return False, "eager, as asked"
    if obstacle:
        return False, f"eager, {obstacle}"
    return True, "graph, " + (
        "as asked" if wanted == "graph" else "chosen: one launch a step instead of thousands"
    )


_GPU_DETERMINISM = (
    "deterministic: only deterministic algorithms run; the same bits are promised for the same GPU model, driver, "
    "torch and cuDNN, not between different ones"
)


def _open_data(config: TrainConfig, progress: ProgressCallback | None) -> tuple[Dataset, Dataset]:
    layout = open_layout(config.data)
    if not layout.names:
        errors = [str(finding) for finding in layout.findings if finding.severity == "error"]
        nothing = f"{layout.file}: tells of pictures and of no class: there is nothing to train on"
        raise DataError(errors[0] if errors else nothing)
    if "val" not in layout.splits:
        raise DataError(
            f"{config.data}: names no validation pictures (val: ...). Scores on the training pictures would tell "
            "nothing: name a set that is not trained on."
        )
    train_data = open_train_data(config, layout, counting(progress, "checking training pictures"))
    val_data = open_dataset(
        layout,
        "val",
        single_class=config.single_class,
        progress=counting(progress, "checking validation pictures"),
    )
    if not config.skip_bad_rows:
        refuse(train_data)
        refuse(val_data)
    return train_data, val_data


def open_train_data(
    config: TrainConfig, layout: Layout, progress: Callable[[int, int], None] | None
) -> Dataset:
    return open_dataset(
        layout, "train", single_class=config.single_class, min_items=config.min_items, progress=progress
    )


def make_train_batches(
    config: TrainConfig, pictures: PreparedPictures, batch: int, workers: int, augment: AugmentConfig
) -> TrainBatches:
    return TrainBatches(
        pictures.samples,
        config.image_size,
        batch,
        augment,
        config.seed,
        pictures=pictures,
        workers=workers,
    )


def _pictures(
    config: TrainConfig, data: Dataset, progress: ProgressCallback | None
) -> tuple[PreparedPictures, str]:
    """The training pictures, kept in memory if that is asked for or takes little of it."""
    pictures = PreparedPictures(data.samples, config.image_size)
    needed, free = (n / 2**30 for n in (needed_bytes(data.samples, config.image_size), available_bytes()))
    what = f"pictures take {needed:.2f} of {free:.1f} GiB free memory"
    if config.cache == "none":
        return pictures, "none, as asked: pictures are decoded each time"
    if config.cache == "auto" and needed > free / 4:
        return pictures, f"none, chosen: {what}, more than a quarter; decoded each time"
    pictures.fill(counting(progress, "decoding pictures"))
    return pictures, f"ram, {'as asked' if config.cache == 'ram' else 'chosen'}: {what}"


def _choose_workers(
    config: TrainConfig, pictures: PreparedPictures, batch: int, device: Device, augment: AugmentConfig
) -> tuple[int, str]:
    """How many processes prepare pictures, and why: as asked or by measuring, and never more than /dev/shm holds."""
    usable = max(int(usable_cores()), 1)
    if config.workers is None:
        trial = make_train_batches(config, pictures, 1, 0, augment)
        suggestion = suggest_workers(trial.one, usable, device.kind)
        workers, reason = suggestion.workers, suggestion.reason
    else:
        workers, reason = config.workers, "as asked"
        if workers > usable:
            reason += f"; more than the {usable} cores of this machine"
    fitting, shortage = check_workers(workers, batch_bytes(batch, config.image_size))
    return fitting, f"{fitting}, {shortage or reason}"


def batch_of_a_device(config: TrainConfig, pictures: int, devices: int) -> tuple[int, list[str]]:
    """Pictures of one batch, of which each device takes one or more in a step, and what there is to say about it."""
    together = min(config.batch, pictures)
    notes = []
    if together < config.batch:
        together -= together % devices
        notes = [f"batch {config.batch}: the data set has {pictures} pictures, the batch is {together}"]
    if not together or together % devices:
        raise UsageError(
            f"batch {config.batch} of {pictures} pictures: it is shared out evenly, take a multiple of {devices}"
        )
    return together // devices, notes


def _first_model(config: TrainConfig, data: Dataset) -> tuple[YOLOv9, list[str]]:
    if config.weights is None:
        return new_model(config.size or "s", len(data.names), config.seed), []
    moved = transfer(config.weights, data.names, config.new_auxiliary, config.seed)
    if config.size is not None and moved.model.size != config.size:
        raise UsageError(
            f"{config.weights}: holds size {moved.model.size}, but size {config.size} was asked for"
        )
    return moved.model, [f"{config.weights}: {moved}"]


def frozen_paths(freeze: tuple[int, ...], size: str) -> list[str]:
    """Our paths of official layer numbers; one number n means layers 0 to n - 1.

    Raises:
        UsageError: a number that the size does not have.
    """
    layers = layer_paths(size)
    wanted = range(freeze[0]) if len(freeze) == 1 else freeze
    beyond = [number for number in wanted if number > max(layers)]
    if beyond:
        raise UsageError(f"freeze: layer {beyond[0]} does not exist, YOLOv9-{size} has 0 to {max(layers)}")
    return [path for number in wanted for path in layers.get(number, ())]


def epochs_without_mosaic(config: TrainConfig) -> int:
    """The last epochs, in which pictures are shown alone."""
    return min(config.close_mosaic, config.epochs // 2)


def augmentation_of(config: TrainConfig, pictures: int, together: int) -> AugmentConfig:
    """``together``: pictures that go through the network at a time, on all devices."""
    return augmentation(config, -(-pictures // together) * config.epochs)


def augmentation(config: TrainConfig, total_steps: int) -> AugmentConfig:
    """How pictures are changed in a run of this many steps.

    The paper's strengths are made for hundreds of epochs. In a short run the network has no time for objects of a tenth
    of their size and for pictures blended into each other: on small drawn sets it learns half as fast with them.

    A picture shown alone tells by its grey margins whether it was reduced; one without them was enlarged. A network
    that has learnt so takes every whole picture for an enlarged one, and boxes that no edge fixes (labels with a margin
    of so many pixels) come out too large. So sizes hardly change in the last epochs of a short run, whose pictures then
    are as detection meets them (Touvron et al. 2019, Fixing the train-test resolution discrepancy).
    """
    short = total_steps < SHORT_RUN_STEPS
    mixup = (0.0 if short else 0.15) if config.mixup is None else config.mixup
    scale = (0.5 if short else 0.9) if config.scale is None else config.scale
    close_scale = config.close_scale
    if close_scale is None and short and config.scale is None:
        close_scale = CLOSE_SCALE
    return AugmentConfig(
        mosaic=config.mosaic,
        mixup=mixup,
        degrees=config.degrees,
        translate=config.translate,
        scale=scale,
        shear=config.shear,
        hue=config.hsv_h,
        saturation=config.hsv_s,
        value=config.hsv_v,
        flip_lr=config.flip_lr,
        flip_ud=config.flip_ud,
        close_scale=close_scale,
    )
