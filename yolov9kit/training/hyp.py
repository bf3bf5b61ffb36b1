"""Hyperparameter files of the field, ``hyp.*.yaml``, as settings of a run."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import yaml

from yolov9kit.errors import UsageError
from yolov9kit.training.config import TrainConfig, nearest

BUILT_IN = "hyp.scratch-high"
SCRATCH_HIGH: Mapping[str, float] = MappingProxyType(
    {
        "lr0": 0.01,
        "lrf": 0.01,
        "momentum": 0.937,
        "weight_decay": 0.0005,
        "warmup_epochs": 3.0,
        "warmup_momentum": 0.8,
        "warmup_bias_lr": 0.1,
        "box": 7.5,
        "cls": 0.5,
        "cls_pw": 1.0,
        "obj": 0.7,
        "obj_pw": 1.0,
        "dfl": 1.5,
        "iou_t": 0.2,
        "anchor_t": 5.0,
        "fl_gamma": 0.0,
        "hsv_h": 0.015,
        "hsv_s": 0.7,
        "hsv_v": 0.4,
        "degrees": 0.0,
        "translate": 0.1,
        "scale": 0.9,
        "shear": 0.0,
        "perspective": 0.0,
        "flipud": 0.0,
        "fliplr": 0.5,
        "mosaic": 1.0,
        "mixup": 0.15,
        "copy_paste": 0.3,
    }
)
"""The recipe that YOLOv9's articles name, under the keys of its file."""

_BUILT_IN_SPELLINGS = frozenset(
    folder + BUILT_IN + suffix for folder in ("", "data/hyps/") for suffix in ("", ".yaml")
)
_RENAMED = {"box": "box_gain", "cls": "cls_gain", "dfl": "dfl_gain", "fliplr": "flip_lr", "flipud": "flip_ud"}
_SAME_NAME = frozenset(SCRATCH_HIGH) & frozenset(TrainConfig.model_fields)
_WITHOUT_EFFECT = frozenset(["obj", "obj_pw", "iou_t", "anchor_t", "anchors", "copy_paste"])
# what a loss or augmentation that is not offered would need to be to change nothing
_ONLY_VALUE = {"fl_gamma": 0.0, "perspective": 0.0, "cls_pw": 1.0, "label_smoothing": 0.0}


def read_hyp(name_or_path: str | Path) -> tuple[dict[str, float], tuple[str, ...]]:
    """The settings of ``TrainConfig`` that a hyperparameter file means, and notes for the user.

    ``hyp.scratch-high.yaml`` is built in, also without suffix or behind ``data/hyps/``; a file of that name on the disk
    comes first. Keys that belong to anchors or to polygons change nothing in YOLOv9 and are accepted.

    Raises:
        UsageError: no such file, not a map of numbers, an unknown key, a value out of range, or one that asks for
            something that is not offered. The message names file, line, key and value.
    """
    path = Path(name_or_path)
    notes = []
    if not path.is_file() and path.as_posix() in _BUILT_IN_SPELLINGS:
        values = dict(SCRATCH_HIGH)
        notes.append(f"{path}: the built-in recipe is used")
    else:
        values = dict(_values(path))
    settings = {
        _RENAMED.get(key, key): value for key, value in values.items() if key in _RENAMED or key in _SAME_NAME
    }
    try:
        TrainConfig(data=Path(), **settings)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    if values.get("copy_paste"):
        notes.append(f"copy_paste {values['copy_paste']:g}: needs polygons, changes nothing for boxes")
    return settings, tuple(notes)


def _values(path: Path) -> Iterator[tuple[str, float]]:
    seen = set()
    for line, key, text in _entries(path):
        where = f"{path}, line {line}"
        if key in seen:
            raise UsageError(f"{where}: {key} stands here a second time: keep one of them")
        seen.add(key)
        if key not in (known := {*_RENAMED, *_SAME_NAME, *_WITHOUT_EFFECT, *_ONLY_VALUE}):
            raise UsageError(f"{where}: {key!r} is no hyperparameter.{nearest(key, sorted(known))}")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise UsageError(f"{where}: {key} = {text!r}: a number is expected")
        if value != _ONLY_VALUE.get(key, value):
            raise UsageError(
                f"{where}: {key} = {value:g} is not offered: leave it out, or write {_ONLY_VALUE[key]:g}"
            )
        yield key, value


def _entries(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, key and value of each entry, as written: YAML itself takes ``1e-3`` for a word."""
    try:
        root = yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=yaml.SafeLoader)
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file. {BUILT_IN}.yaml is built in") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}). {BUILT_IN}.yaml is built in") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: byte {error.start} is no UTF-8 text: save it as UTF-8") from None
    except (yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"{path}: is not YAML ({' '.join(str(error).split())[:120]})") from None
    if not isinstance(root, yaml.MappingNode):
        raise UsageError(f"{path}: lines such as `lr0: 0.01` are expected")
    for key, value in root.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise UsageError(f"{path}, line {line}: the name of a hyperparameter is expected")
        yield line, key.value, value.value if isinstance(value, yaml.ScalarNode) else "more than one value"
