"""The options of ``yolov9kit train``: its own, and those of ``train_dual.py``."""

import argparse
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from yolov9kit.cli.parsing import Parser

PRECISIONS = ("auto", "fp32", "tf32", "fp16", "bf16")

OPTIONS: Mapping[str, tuple[tuple[str, ...], Mapping[str, Any]]] = MappingProxyType(
    {
        "data": (("--data",), {"metavar": "YAML"}),
        "weights": (("--weights", "-w"), {"metavar": "FILE"}),
        "size": (("--size",), {"metavar": "SIZE"}),
        "epochs": (("--epochs",), {"type": int, "metavar": "N"}),
        "batch": (("--batch", "--batch-size"), {"type": int, "metavar": "N"}),
        "val_batch": (("--val-batch",), {"type": int, "metavar": "N"}),
        "image_size": (("--img", "--imgsz", "--img-size"), {"type": int, "nargs": "+", "metavar": "PX"}),
        "device": (("--device",), {}),
        "precision": (("--precision",), {"choices": PRECISIONS}),
        "workers": (("--workers",), {"type": int, "metavar": "N"}),
        "cache": (("--cache",), {"nargs": "?", "const": "ram", "metavar": "ram"}),
        "seed": (("--seed",), {"type": int, "metavar": "N"}),
        "deterministic": (("--deterministic",), {"action": "store_true"}),
        "optimizer": (
            ("--optimizer",),
            {"type": str.lower, "choices": ("auto", "sgd", "adam", "adamw")},
        ),
        "lr0": (("--lr0",), {"type": float, "metavar": "RATE"}),
        "accumulate": (("--accumulate",), {"type": int, "metavar": "N"}),
        "close_mosaic": (("--close-mosaic",), {"type": int, "metavar": "N"}),
        "min_items": (("--min-items",), {"type": int, "metavar": "N"}),
        "single_class": (("--single-cls", "--single-class"), {"action": "store_true"}),
        "skip_bad_rows": (("--skip-bad-rows",), {"action": "store_true"}),
        "new_auxiliary": (("--new-auxiliary",), {"action": "store_true"}),
        "freeze": (("--freeze",), {"type": int, "nargs": "+", "metavar": "N"}),
        "patience": (("--patience",), {"type": int, "metavar": "N"}),
        "evaluate_every": (("--evaluate-every",), {"type": int, "metavar": "N"}),
        "project": (("--project",), {"metavar": "FOLDER"}),
        "name": (("--name",), {}),
    }
)
"""Settings with an option of their own: its spellings (messages name the first), and what argparse needs."""

CHANGES_NOTHING: Mapping[str, str] = MappingProxyType(
    {
        "noautoanchor": "--noautoanchor: YOLOv9 has no anchors; it changes nothing",
        "noplots": "--noplots: training draws no plots; it changes nothing",
        "nosave": "--nosave: checkpoints are written all the same, a stopped run could not go on without them",
        "sync_bn": "--sync-bn: the BatchNorm of each device sees its own pictures; it changes nothing",
    }
)
"""Options that are accepted, each with the note for its user."""

_NO_LOGGER = "nothing is uploaded; leave it out and read journal.jsonl of the run"
REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "rect": "--rect: pictures are not sorted into rectangular batches; leave it out to train on squares",
        "evolve": "--evolve: no search for hyperparameters is offered; leave it out",
        "multi-scale": "--multi-scale: the size does not change during a run; leave it out",
        "image-weights": "--image-weights: pictures are not drawn by weight; leave it out",
        "quad": "--quad: pictures are not joined in the batch; leave it out",
        "flat-cos-lr": "--flat-cos-lr: is not offered; --cos-lr is a plain cosine",
        "fixed-lr": "--fixed-lr: is not offered; `--set lrf=1` keeps the learning rate after warm-up",
        "entity": f"--entity: {_NO_LOGGER}",
        "upload_dataset": f"--upload_dataset: {_NO_LOGGER}",
        "bbox_interval": f"--bbox_interval: {_NO_LOGGER}",
        "artifact_alias": f"--artifact_alias: {_NO_LOGGER}",
        "bucket": f"--bucket: {_NO_LOGGER}",
    }
)
"""Options that would change the result, or promise what is not there, each with the reason why it is refused."""

ONLY_VALUE: Mapping[str, tuple[float, str]] = MappingProxyType(
    {
        "label_smoothing": (0.0, "--label-smoothing: is not offered; leave it out"),
        "save_period": (-1, "--save-period: last and best weights are written after each epoch, no others"),
        "local_rank": (
            -1,
            "--local_rank: a run starts the processes of its devices itself; start it without a launcher",
        ),
    }
)
"""Options of which one value changes nothing; any other is refused, with the reason."""


def parser_of_train() -> Parser:
    from yolov9kit.training.config import TrainConfig

    fields = TrainConfig.model_fields
    others = "\n".join(
        f"  {name:<18} {info.description}" + ("" if info.default is None else f" (default {info.default})")
        for name, info in fields.items()
        if name not in OPTIONS
    )
    parser = Parser(
        prog="yolov9kit train",
        usage="yolov9kit train --data YAML [OPTION ...] | --resume [RUN] | --extend N RUN",
        description="Train on pictures with boxes. Weights, journal and state go to PROJECT/NAME; the score of each\n"
        "evaluation goes to standard output, progress to standard error. Ctrl-C saves the state and stops.",
        epilog=f"settings for --set KEY=VALUE:\n{others}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    add = parser.add_argument
    for name, (spellings, options) in OPTIONS.items():
        info = fields[name]
        hidden = info.is_required() or info.default in (None, ()) or info.default is False
        text = f"{info.description}" + ("" if hidden else f" (default {info.default})")
        add(*spellings, dest=name, help=text.replace("%", "%%"), **options)
    add("--set", action="append", metavar="KEY=VALUE", help="any other setting, listed below; repeatable")
    add("--hyp", metavar="FILE", help="hyperparameter file; hyp.scratch-high.yaml is built in")
    add("--cos-lr", action="store_true", help="--set schedule=cosine")
    add(
        "--resume",
        nargs="?",
        const="",
        metavar="RUN",
        help="go on with an interrupted run: its folder, or the newest of PROJECT; it keeps its settings",
    )
    add(
        "--extend",
        nargs="+",
        metavar=("N", "RUN"),
        help="train the run in this folder on to N epochs in all, in a new folder",
    )
    add("--quiet", "-q", action="store_true", help="only steps that were not applied, and the summary")
    _add_old_spellings(parser)
    return parser


def _add_old_spellings(parser: Parser) -> None:
    names = [f"--{name}" for name in REFUSED]
    refused = ",\n".join(", ".join(names[i : i + 6]) for i in range(0, len(names), 6))
    old = parser.add_argument_group("spellings of train_dual.py", f"Refused with the reason:\n{refused}.")
    old.add_argument(
        "--cfg", metavar="NAME", help="yolov9-s.yaml and the like: only the size is read from the name"
    )
    old.add_argument("--amp", action="store_true", help="--precision auto, if no other is named")
    old.add_argument("--half", action="store_true", help="--precision fp16")
    old.add_argument("--bf16", action="store_true", help="--precision bf16")
    old.add_argument(
        "--exist-ok", action="store_true", help="an error if the folder exists: no run is written over"
    )
    old.add_argument("--noval", action="store_true", help="evaluate after the last epoch only")
    for name, note in CHANGES_NOTHING.items():
        old.add_argument(f"--{name.replace('_', '-')}", action="store_true", help=note.partition(": ")[2])
    for name, (value, _) in ONLY_VALUE.items():
        spellings = {f"--{name.replace('_', '-')}", f"--{name}"}
        old.add_argument(*sorted(spellings), dest=name, type=type(value), help=argparse.SUPPRESS)
    for name in REFUSED:
        old.add_argument(f"--{name}", dest=f"refused {name}", nargs="?", help=argparse.SUPPRESS)
