"""Weights as other projects store them, made from our own models by turning the key tables round."""

import datetime
import io
import pickle
import struct
import sys
import warnings
import zipfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from yolov9kit.model.layouts import MIT, OFFICIAL, Layout
from yolov9kit.model.yolov9 import YOLOv9

RAMP = torch.arange(16.0)
EVERY_FORM = [(layout, size) for layout in (*OFFICIAL, *MIT) for size in layout.sizes]
"""Each layout in each of its sizes."""


def form_id(value: object) -> str:
    return value.name.replace(" ", "-") if isinstance(value, Layout) else str(value)


def on_meta(layout: Layout, size: str, num_classes: int = 3, **widths: int) -> YOLOv9:
    """The model of a layout, without memory for its weights."""
    with torch.device("meta"):
        return YOLOv9(size, num_classes, layout.form, **widths)  # type: ignore[arg-type]


def lively(model: YOLOv9) -> YOLOv9:
    """Statistics and counters as after training, so that a mix-up shows."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            assert module.num_batches_tracked is not None
            nn.init.normal_(module.running_mean, std=0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
            module.num_batches_tracked.fill_(12_345)
    return model.eval()


def state_in(
    layout: Layout, state: Mapping[str, Tensor], prefix: str = "model.", first: int = 0
) -> dict[str, Tensor]:
    """Our state dict under the keys of a layout; the first layer has the number ``first``."""
    theirs = {
        f"{prefix}{_foreign_name(layout, name, first, state)}": tensor for name, tensor in state.items()
    }
    heads = {layer + first for layer, _ in layout.heads}
    if layout in MIT:
        names = [f"{head}.heads.{level}.anc2vec.anc2vec.weight" for head in heads for level in range(3)]
        return theirs | {f"{prefix}{name}": RAMP.view(1, 16, 1, 1, 1) for name in names}
    ramps = ("dfl", "dfl2") if layout.form == "training" else ("dfl",)
    names = [f"{head}.{ramp}.conv.weight" for head in heads for ramp in ramps]
    return theirs | {f"{prefix}{name}": RAMP.view(1, 16, 1, 1) for name in names}


def _foreign_name(layout: Layout, name: str, first: int, state: Mapping[str, Tensor]) -> str:
    for (layer, tower), ours in layout.heads.items():
        if name.startswith(f"{ours}."):
            rest = name.removeprefix(f"{ours}.")
            if layout not in MIT:
                return f"{layer + first}.{tower}.{rest}"
            level, place, tail = rest.split(".", 2)
            return (
                f"{layer + first}.heads.{level}.{'anchor' if tower == 'box' else 'class'}_conv.{place}.{tail}"
            )
    for layer, ours in layout.paths.items():
        if name.startswith(f"{ours}."):
            rest = name.removeprefix(f"{ours}.")
            if layout in MIT:
                only_one = ".down" in ours and f"{ours}.cv2.conv.weight" not in state  # AConv, not ADown
                rest = rest.replace("cv1.", "conv.", 1) if only_one else _mit_words(rest)
            return f"{layer + first}.{rest}"
    raise AssertionError(f"{name} is in no layer of {layout.name}")


def _mit_words(rest: str) -> str:
    return ".".join("bottleneck" if word == "m" else word.replace("cv", "conv") for word in rest.split("."))


# ---------------------------------------------------------------------------------------- pickled models

OFFICIAL_CLASSES = {
    "models.yolo": ("DetectionModel", "DualDDetect"),
    "models.common": ("Conv", "RepNCSPELAN4"),
}
PACKAGED_CLASSES = {f"yolo9.{module}": names for module, names in OFFICIAL_CLASSES.items()}
ULTRALYTICS_CLASSES = {
    "ultralytics.nn.tasks": ("DetectionModel",),
    "ultralytics.nn.modules.head": ("Detect",),
    "ultralytics.nn.modules.conv": ("Conv",),
    "ultralytics.nn.modules.block": ("RepNCSPELAN4",),
}


@contextmanager
def importable(classes: Mapping[str, tuple[str, ...]]) -> Iterator[list[type[nn.Module]]]:
    """Module classes of another project, which is gone afterwards."""
    made, added = [], []
    for module, names in classes.items():
        parts = module.split(".")
        for full in (".".join(parts[: i + 1]) for i in range(len(parts))):
            if full not in sys.modules:
                sys.modules[full] = ModuleType(full)
                added.append(full)
        for name in names:
            made.append(type(name, (nn.Module,), {"__module__": module}))
            sys.modules[module].__dict__[name] = made[-1]
    try:
        yield made
    finally:
        for full in added:
            del sys.modules[full]


def module_of(state: Mapping[str, Tensor], classes: list[type[nn.Module]], names: object) -> nn.Module:
    """A module tree of these classes with this state dict, and attributes such as detectors have."""
    root, *inner = classes
    tree = root()
    for number, (key, tensor) in enumerate(state.items()):
        *path, leaf = key.split(".")
        node = tree
        for part in path:
            child = dict(node.named_children()).get(part)
            if child is None:
                child = nn.Sequential() if part.isdigit() else inner[number % len(inner)]()
                node.add_module(part, child)
            node = child
        if leaf.startswith(("running", "num_batches")):
            node.register_buffer(leaf, tensor)
        else:
            node.register_parameter(leaf, nn.Parameter(tensor, requires_grad=False))
    tree.register_buffer("grid", torch.zeros(3), persistent=False)
    tree.names, tree.stride, tree.yaml = names, torch.tensor([8.0, 16.0, 32.0]), {"nc": len(names)}  # type: ignore[assignment, arg-type]
    tree.anchors = torch.zeros(2, 1).expand(2, 8400)  # type: ignore[assignment]
    tree.act, tree.pool = nn.SiLU(), nn.MaxPool2d(5)
    return tree


def save_module(saved: object, path: Path | io.BytesIO, **options: Any) -> None:
    """``torch.save`` without its warning that the source text of a class was not found."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Couldn't retrieve source code")
        torch.save(saved, path, **options)


def middle_of_a_run() -> dict[str, Any]:
    """What else lies in a file that training left before its end."""
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return {
        "epoch": 12,
        "best_fitness": np.float64(0.25),
        "fitness": np.array([0.1, 0.2]),
        "count": np.int64(3),
        "updates": 77,
        "optimizer": optimizer.state_dict(),
        "opt": vars(Namespace(weights="", lr=1e-2, save_dir=Path("runs") / "exp", resume=None)),
        "args": Namespace(data="x.yaml", shape=torch.Size([1, 2])),
        "date": datetime.datetime(2026, 1, 2, 3, 4, 5),
        "day": datetime.date(2026, 1, 2),
        "dtype": torch.float32,
        "device": torch.device("cpu"),
        "version": torch.__version__,
        "kinds": {int, str, float},
        "digest": b"\x00\xff",
        "pair": (1 + 2j, slice(1, 2), range(3), frozenset([1]), bytearray(b"x")),
        "git": {"origin": None},
    }


def lightning(state: Mapping[str, Tensor]) -> dict[str, Any]:
    """A Lightning checkpoint around a state dict."""
    return {
        "epoch": 3,
        "global_step": 1000,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": dict(state),
        "loops": {"fit_loop": {"state_dict": {}, "epoch_progress": {"total": {"ready": 4}}}},
        "callbacks": {
            "ModelCheckpoint{'monitor': 'map'}": {"best_model_score": torch.tensor(0.5), "kth": {}}
        },
        "optimizer_states": [middle_of_a_run()["optimizer"]],
        "lr_schedulers": [{"_step_count": 4, "base_lrs": [0.01], "lr_lambdas": [None, {}]}],
        "hparams_name": "cfg",
        "hyper_parameters": {"image_size": [640, 640], "lr": 0.01, "path": Path("weights")},
    }


# -------------------------------------------------------------------------------------- files by hand


def zip_file(
    path: Path, pickled: bytes, storages: Mapping[str, bytes] | None = None, compressed: bool = False
) -> Path:
    """A file as torch.save writes it, around any pickle."""
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", b"little")
        for key, data in (storages or {}).items():
            archive.writestr(f"archive/data/{key}", data)
        archive.writestr("archive/version", b"3\n")
    return path


def legacy_file(path: Path, pickled: bytes, storages: Mapping[str, tuple[int, bytes]] | None = None) -> Path:
    """The same in the format of torch before 1.6. ``storages``: declared count and bytes."""
    out = io.BytesIO()
    for value in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}):
        out.write(pickle.dumps(value, 2))
    out.write(pickled)
    out.write(pickle.dumps(sorted(storages or {}), 2))
    for _, (count, data) in sorted((storages or {}).items()):
        out.write(struct.pack("<q", count) + data)
    path.write_bytes(out.getvalue())
    return path
