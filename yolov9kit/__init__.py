"""yolov9kit: a clean, fast YOLOv9 library, and the front door to it.

Nothing happens here but naming: a name is imported when it is first used, so that ``import yolov9kit`` costs next to
nothing and loads no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yolov9kit.benchmark.benchmark import run_benchmark
    from yolov9kit.benchmark.config import BenchmarkConfig
    from yolov9kit.benchmark.report import BenchmarkReport
    from yolov9kit.benchmark.text import benchmark_remarks
    from yolov9kit.data.boards.board import BOARD_NAMES, draw_board, write_boards
    from yolov9kit.data.dataset import open_dataset
    from yolov9kit.data.image import decode_image, read_image
    from yolov9kit.data.letterbox import Letterbox, letterbox
    from yolov9kit.data.sources import Picture, open_source
    from yolov9kit.data.synthetic import SHAPE_NAMES, draw_shapes
    from yolov9kit.device import available_devices, choose_device, choose_precision
    from yolov9kit.doctor.codes import CODES
    from yolov9kit.doctor.config import DoctorConfig
    from yolov9kit.doctor.diagnose import diagnose
    from yolov9kit.doctor.diagnosis import Diagnosis
    from yolov9kit.download import fetch
    from yolov9kit.draw import class_colour, draw_detections, encode_picture
    from yolov9kit.errors import KitError, UsageError
    from yolov9kit.evaluation.config import EvalConfig
    from yolov9kit.evaluation.evaluate import evaluate
    from yolov9kit.evaluation.label_errors import LabelErrors, label_errors
    from yolov9kit.evaluation.report import EvalReport
    from yolov9kit.explore.explorer import Explorer
    from yolov9kit.explore.filter import ExploreFilter
    from yolov9kit.explore.item import ExploreItem
    from yolov9kit.infer.choose import reselect
    from yolov9kit.infer.config import DetectConfig
    from yolov9kit.infer.mode import choose_mode
    from yolov9kit.infer.predict import Detector, detect
    from yolov9kit.loss.criterion import DetectionLoss
    from yolov9kit.machine import inspect_machine
    from yolov9kit.model.checkpoint import Checkpoint, convert, load, save
    from yolov9kit.model.decode import decode
    from yolov9kit.model.fuse import fuse
    from yolov9kit.model.untrained import untrained
    from yolov9kit.model.yolov9 import deployed, parameter_count, yolov9
    from yolov9kit.rewrite.convert import convert_data
    from yolov9kit.rewrite.merge import merge_data
    from yolov9kit.rewrite.repair import Repaired, repair
    from yolov9kit.rewrite.rewritten import Rewritten
    from yolov9kit.rewrite.split import split_data
    from yolov9kit.rewrite.subset import subset_data
    from yolov9kit.samples import find_weights, sample_data, sample_pictures, sample_weights
    from yolov9kit.telemetry import UTILISATION, Sampler, telemetry_series
    from yolov9kit.training.compare import setting_differences
    from yolov9kit.training.config import TrainConfig
    from yolov9kit.training.curves import Curves, Series, thinned
    from yolov9kit.training.examples import Example, read_examples
    from yolov9kit.training.history import RunInfo, runs
    from yolov9kit.training.journal import read_journal
    from yolov9kit.training.launch import launch, launch_extend, launch_resume
    from yolov9kit.training.preview import preview_batches
    from yolov9kit.training.reports import EpochReport, EvaluationReport, StepReport
    from yolov9kit.training.run import RUN_ENDED, Run, attach
    from yolov9kit.training.trainer import extend, resume, train
    from yolov9kit.types import Candidates, Detections, Failed, LossParts, Outputs, Targets

__version__ = "0.1.0"

__all__ = [
    "BOARD_NAMES",
    "CODES",
    "RUN_ENDED",
    "SHAPE_NAMES",
    "UTILISATION",
    "BenchmarkConfig",
    "BenchmarkReport",
    "Candidates",
    "Checkpoint",
    "Curves",
    "DetectConfig",
    "DetectionLoss",
    "Detections",
    "Detector",
    "Diagnosis",
    "DoctorConfig",
    "EpochReport",
    "EvalConfig",
    "EvalReport",
    "EvaluationReport",
    "Example",
    "ExploreFilter",
    "ExploreItem",
    "Explorer",
    "Failed",
    "KitError",
    "LabelErrors",
    "Letterbox",
    "LossParts",
    "Outputs",
    "Picture",
    "Repaired",
    "Rewritten",
    "Run",
    "RunInfo",
    "Sampler",
    "Series",
    "StepReport",
    "Targets",
    "TrainConfig",
    "UsageError",
    "attach",
    "available_devices",
    "benchmark_remarks",
    "choose_device",
    "choose_mode",
    "choose_precision",
    "class_colour",
    "convert",
    "convert_data",
    "decode",
    "decode_image",
    "deployed",
    "detect",
    "diagnose",
    "draw_board",
    "draw_detections",
    "draw_shapes",
    "encode_picture",
    "evaluate",
    "extend",
    "fetch",
    "find_weights",
    "fuse",
    "inspect_machine",
    "label_errors",
    "launch",
    "launch_extend",
    "launch_resume",
    "letterbox",
    "load",
    "merge_data",
    "open_dataset",
    "open_source",
    "parameter_count",
    "preview_batches",
    "read_examples",
    "read_image",
    "read_journal",
    "repair",
    "reselect",
    "resume",
    "run_benchmark",
    "runs",
    "sample_data",
    "sample_pictures",
    "sample_weights",
    "save",
    "setting_differences",
    "split_data",
    "subset_data",
    "telemetry_series",
    "thinned",
    "train",
    "untrained",
    "write_boards",
    "yolov9",
]

_HOMES = {
    "benchmark.benchmark": ("run_benchmark",),
    "benchmark.config": ("BenchmarkConfig",),
    "benchmark.report": ("BenchmarkReport",),
    "benchmark.text": ("benchmark_remarks",),
    "data.boards.board": ("BOARD_NAMES", "draw_board", "write_boards"),
    "data.dataset": ("open_dataset",),
    "data.image": ("decode_image", "read_image"),
    "data.letterbox": ("Letterbox", "letterbox"),
    "data.sources": ("Picture", "open_source"),
    "data.synthetic": ("SHAPE_NAMES", "draw_shapes"),
    "device": ("available_devices", "choose_device", "choose_precision"),
    "doctor.codes": ("CODES",),
    "doctor.config": ("DoctorConfig",),
    "doctor.diagnose": ("diagnose",),
    "doctor.diagnosis": ("Diagnosis",),
    "draw": ("class_colour", "draw_detections", "encode_picture"),
    "evaluation.config": ("EvalConfig",),
    "evaluation.evaluate": ("evaluate",),
    "evaluation.label_errors": ("LabelErrors", "label_errors"),
    "evaluation.report": ("EvalReport",),
    "errors": ("KitError", "UsageError"),
    "explore.explorer": ("Explorer",),
    "explore.filter": ("ExploreFilter",),
    "explore.item": ("ExploreItem",),
    "download": ("fetch",),
    "infer.config": ("DetectConfig",),
    "infer.choose": ("reselect",),
    "infer.mode": ("choose_mode",),
    "infer.predict": ("Detector", "detect"),
    "loss.criterion": ("DetectionLoss",),
    "machine": ("inspect_machine",),
    "model.checkpoint": ("Checkpoint", "convert", "load", "save"),
    "model.decode": ("decode",),
    "model.fuse": ("fuse",),
    "model.untrained": ("untrained",),
    "model.yolov9": ("deployed", "parameter_count", "yolov9"),
    "rewrite.convert": ("convert_data",),
    "rewrite.merge": ("merge_data",),
    "rewrite.repair": ("Repaired", "repair"),
    "rewrite.rewritten": ("Rewritten",),
    "rewrite.split": ("split_data",),
    "rewrite.subset": ("subset_data",),
    "samples": ("find_weights", "sample_data", "sample_pictures", "sample_weights"),
    "training.config": ("TrainConfig",),
    "training.journal": ("read_journal",),
    "training.launch": ("launch", "launch_extend", "launch_resume"),
    "training.preview": ("preview_batches",),
    "training.reports": ("EpochReport", "EvaluationReport", "StepReport"),
    "training.run": ("RUN_ENDED", "Run", "attach"),
    "training.history": ("RunInfo", "runs"),
    "training.curves": ("Curves", "Series", "thinned"),
    "training.examples": ("Example", "read_examples"),
    "training.compare": ("setting_differences",),
    "telemetry": ("UTILISATION", "Sampler", "telemetry_series"),
    "training.trainer": ("extend", "resume", "train"),
    "types": ("Candidates", "Detections", "Failed", "LossParts", "Outputs", "Targets"),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            return vars(import_module(f"yolov9kit.{module}"))[name]
    raise AttributeError(f"module 'yolov9kit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
