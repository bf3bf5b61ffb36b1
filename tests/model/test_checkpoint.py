"""Weights files, whole: every form loads with every tensor in its place, misfits are counted, our own files return."""

import copy
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from tests.model.foreign_files import (
    EVERY_FORM,
    OFFICIAL_CLASSES,
    ULTRALYTICS_CLASSES,
    form_id,
    importable,
    lightning,
    lively,
    middle_of_a_run,
    module_of,
    on_meta,
    save_module,
    state_in,
)
from yolov9kit.errors import CheckpointError, UsageError
from yolov9kit.model.checkpoint import Checkpoint, LeftOut, LoadReport, convert, load, save
from yolov9kit.model.coco import COCO_NAMES
from yolov9kit.model.fuse import fuse
from yolov9kit.model.layouts import MIT, OFFICIAL, Layout
from yolov9kit.model.yolov9 import YOLOv9, deployed, parameter_count, yolov9

GELAN, TRAINING_TS, _, GELAN_E, _ = OFFICIAL
MIT_TS = MIT[1]
NAMES = ("a cat", "汽车 (car)", 'naïve, "quoted"')

State = dict[str, Tensor]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def model() -> YOLOv9:
    """Size t, 3 classes, training form."""
    torch.manual_seed(5)
    return lively(yolov9("t", 3))


@pytest.fixture(scope="module")
def lean(model: YOLOv9) -> State:
    """The deployed state dict of ``model``, under our names."""
    return deployed(model).state_dict()


@pytest.fixture(scope="module")
def own(model: YOLOv9, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(model, tmp_path_factory.mktemp("own") / "own.safetensors", names=NAMES)


@pytest.fixture(scope="module")
def coco_80(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Size t, training form, 80 classes, official keys."""
    torch.manual_seed(6)
    path = tmp_path_factory.mktemp("coco") / "yolov9-t.pt"
    torch.save({"model": state_in(TRAINING_TS, lively(yolov9("t", 80)).state_dict())}, path)
    return path


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(CheckpointError) as caught:
        load(path, **options)
    return check_message(caught.value, path)


def check_message(error: CheckpointError, path: Path) -> str:
    """It names the file and has at most two lines, without control characters."""
    message = str(error)
    lines = message.split("\n")
    assert message.startswith(f"{path}: ") and len(lines) <= 2 and all(line.isprintable() for line in lines)
    return message


def assert_state(found: Checkpoint, wanted: State) -> None:
    state = found.model.state_dict()
    assert list(state) == list(wanted)
    for name, tensor in wanted.items():
        assert state[name].dtype == (torch.float32 if tensor.is_floating_point() else torch.int64)
        assert torch.equal(state[name], tensor.to(state[name].dtype)), name
    assert found.report.fitted == found.report.total == len(wanted)
    assert not found.model.training
    assert all(
        parameter.requires_grad and parameter.is_contiguous() for parameter in found.model.parameters()
    )


# ------------------------------------------------------------------------------------- every kind of file


def filled(model: YOLOv9) -> State:
    """Numbers in half precision for a model without memory; each tensor has others."""
    state = {}
    for i, (name, empty) in enumerate(model.state_dict().items()):
        if empty.is_floating_point():
            numbers = (torch.arange(empty.numel(), dtype=torch.int16) * 31 + i) % 251
            state[name] = numbers.half().view(empty.shape) / 256
        else:
            state[name] = torch.tensor(i)
    return state


@pytest.mark.parametrize(
    ("layout", "size"), [row for row in EVERY_FORM if row[0] in OFFICIAL or row[1] in "tc"], ids=form_id
)
def test_every_form(layout: Layout, size: str, tmp_path: Path) -> None:
    state = filled(on_meta(layout, size))
    theirs = state_in(layout, state, "" if layout in MIT else "model.")
    torch.save(theirs, tmp_path / "weights.pt")
    found = load(tmp_path / "weights.pt")
    assert_state(found, state)
    assert (found.size, found.form, found.precision) == (size, layout.form, "fp16")
    assert found.source == ("mit" if layout in MIT else "official")
    assert {item.tensor for item in found.report.left_out} == {
        k for k in theirs if "dfl" in k or "anc2vec" in k
    }
    assert all("constant" in item.reason for item in found.report.left_out)
    if layout in OFFICIAL:
        again = load(save(found.model, tmp_path / "own.safetensors", names=NAMES, precision="fp16"))
        assert_state(again, state)
        assert (again.size, again.form, again.source, again.precision) == (
            size,
            layout.form,
            "yolov9kit",
            "fp16",
        )


@pytest.mark.parametrize("size", ["t", "m", "e"])
def test_ultralytics_sizes(size: str, tmp_path: Path) -> None:
    layout = GELAN_E if size == "e" else GELAN
    state = filled(on_meta(layout, size, box_groups=1, class_width=100))  # neither groups nor widths are ours
    torch.save({"state_dict": state_in(layout, state)}, tmp_path / "weights.pt")
    found = load(tmp_path / "weights.pt")
    assert_state(found, state)
    assert (found.source, found.size, found.form) == ("ultralytics", size, "deployed")
    assert found.model.head.cls[0][0].conv.weight.shape[0] == 100
    assert found.model.head.box[0][1].conv.groups == 1


PREFIXES = ["", "model.", "module.", "_orig_mod.", "module.model.", "_orig_mod.module.model.", "model.model."]


NESTED = [("model",), ("ema",), ("state_dict",), ("ema", "state_dict")]


@pytest.mark.parametrize(
    ("prefix", "nested"), [*((prefix, ()) for prefix in PREFIXES), *zip(PREFIXES[2:], NESTED, strict=False)]
)
def test_prefixes_and_nesting(prefix: str, nested: tuple[str, ...], lean: State, tmp_path: Path) -> None:
    saved: dict[str, Any] = state_in(GELAN, lean, prefix, first=len(prefix) % 2)
    for key in reversed(nested):
        saved = {key: saved, "epoch": 1}
    torch.save(saved, tmp_path / "weights.pt")
    assert_state(load(tmp_path / "weights.pt"), lean)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize(
    ("dtype", "precision"),
    [(torch.float16, "fp16"), (torch.bfloat16, "bf16"), (torch.float32, "fp32"), (torch.float64, "fp32")],
    ids=str,
)
def test_precisions(dtype: torch.dtype, precision: str, legacy: bool, lean: State, tmp_path: Path) -> None:
    saved = {key: tensor.to(dtype) if tensor.is_floating_point() else tensor for key, tensor in lean.items()}
    torch.save(
        state_in(GELAN, saved),
        tmp_path / "weights.pt",
        _use_new_zipfile_serialization=not legacy,
        pickle_protocol=4 - legacy,
    )
    found = load(tmp_path / "weights.pt")
    assert_state(found, saved)
    assert found.precision == precision


def test_mixed_precision_counts_as_full(lean: State, tmp_path: Path) -> None:
    saved = dict(lean)
    saved["head.cls.0.2.bias"] = saved["head.cls.0.2.bias"].half()
    torch.save(state_in(GELAN, saved), tmp_path / "weights.pt")
    assert load(tmp_path / "weights.pt").precision == "fp32"


def test_views_and_averaged_counters(lean: State, tmp_path: Path) -> None:
    """Tensors that are views of larger ones or in another memory order; counters that an average made floats."""
    saved = dict(lean)
    for name, tensor in lean.items():
        if tensor.ndim == 4:
            saved[name] = tensor.contiguous(memory_format=torch.channels_last)
        elif tensor.ndim == 1:
            saved[name] = torch.stack((tensor, tensor), dim=1)[:, 1]
        else:
            saved[name] = tensor.float()
    torch.save(state_in(GELAN, saved), tmp_path / "weights.pt")
    assert_state(load(tmp_path / "weights.pt"), lean)


def test_no_two_parameters_share_memory(lean: State, tmp_path: Path) -> None:
    saved = dict(lean)
    saved["head.cls.1.2.bias"] = saved["head.cls.0.2.bias"]
    torch.save(state_in(GELAN, saved), tmp_path / "weights.pt")
    found = load(tmp_path / "weights.pt").model
    places = [tensor.untyped_storage().data_ptr() for tensor in found.state_dict().values()]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
def test_official_pickled_training_file(legacy: bool, model: YOLOv9, tmp_path: Path) -> None:
    average = {k: t.half() if t.is_floating_point() else t for k, t in model.state_dict().items()}
    running = {k: torch.zeros_like(t) for k, t in average.items()}
    path = tmp_path / "last.pt"
    with importable(OFFICIAL_CLASSES) as classes:
        theirs = [
            module_of(state_in(TRAINING_TS, s), classes, dict(enumerate(NAMES))) for s in (running, average)
        ]
        saved = {**middle_of_a_run(), "model": theirs[0], "ema": theirs[1]}
        save_module(saved, path, _use_new_zipfile_serialization=not legacy)
    found = load(path)
    assert_state(found, average)
    assert (found.source, found.form, found.names, found.precision) == ("official", "training", NAMES, "fp16")
    assert "average (ema) was taken" in str(found.report)


def test_ultralytics_pickled_file(tmp_path: Path) -> None:
    state = lively(YOLOv9("t", 3, "deployed", box_groups=1, class_width=80)).state_dict()
    with importable(ULTRALYTICS_CLASSES) as classes:
        theirs = module_of(state_in(GELAN, state), classes, dict(enumerate(NAMES)))
        save_module({"model": theirs, "ema": None, "train_args": {"imgsz": 640}}, tmp_path / "best.pt")
    found = load(tmp_path / "best.pt")
    assert_state(found, state)
    assert (found.source, found.names) == ("ultralytics", NAMES)


def test_wrapped_for_several_gpus(lean: State, tmp_path: Path) -> None:
    with importable(OFFICIAL_CLASSES) as classes:
        theirs = nn.DataParallel(module_of(state_in(GELAN, lean), classes, list(NAMES)))
        save_module({"model": theirs}, tmp_path / "weights.pt")
    found = load(tmp_path / "weights.pt")
    assert_state(found, lean)
    assert found.names == NAMES


def test_lightning_file_of_the_mit_rewrite(model: YOLOv9, tmp_path: Path) -> None:
    theirs = lightning(state_in(MIT_TS, model.state_dict(), "model.model."))
    torch.save(theirs, tmp_path / "epoch=3.ckpt")
    found = load(tmp_path / "epoch=3.ckpt")
    assert_state(found, model.state_dict())
    assert (found.source, found.form) == ("mit", "training")
    average = state_in(MIT_TS, {k: t + 1 for k, t in model.state_dict().items()}, "ema.model.")
    theirs["state_dict"] |= average
    torch.save(theirs, tmp_path / "epoch=3.ckpt")
    found = load(tmp_path / "epoch=3.ckpt")
    assert_state(found, {k: t + 1 for k, t in model.state_dict().items()})
    assert "average (ema) was taken" in str(found.report)


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "model."])
def test_our_own_state_dict_in_a_pt_file(prefix: str, model: YOLOv9, tmp_path: Path) -> None:
    torch.save({"model": {prefix + k: t for k, t in model.state_dict().items()}}, tmp_path / "weights.pt")
    found = load(tmp_path / "weights.pt")
    assert_state(found, model.state_dict())
    assert found.source == "yolov9kit"


def test_official_keys_in_safetensors(lean: State, tmp_path: Path) -> None:
    save_file(state_in(GELAN, lean), tmp_path / "weights.safetensors", {"format": "pt"})
    found = load(tmp_path / "weights.safetensors")
    assert_state(found, lean)
    assert (found.source, found.input_hw, found.provenance) == ("official", (640, 640), "")


def test_real_files(shared: Path) -> None:
    official = load(shared / "checkpoints" / "official-yolov9-t-deeppcb.pt")
    assert (official.size, official.form, official.source, official.precision) == (
        "t",
        "training",
        "official",
        "fp16",
    )
    assert (official.report.fitted, official.report.total, len(official.report.left_out)) == (1770, 1770, 2)
    theirs = load(shared / "checkpoints" / "ultralytics-yolov9t-deeppcb.pt")
    assert (theirs.size, theirs.form, theirs.source, theirs.precision) == (
        "t",
        "deployed",
        "ultralytics",
        "fp16",
    )
    assert (theirs.report.fitted, theirs.report.total, len(theirs.report.left_out)) == (1338, 1338, 1)
    assert official.names == theirs.names == ("open", "short", "mousebite", "spur", "copper", "pin-hole")


# --------------------------------------------------------------------------------------------- class names


def test_names_are_chosen_and_their_source_said(lean: State, coco_80: Path, tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(state_in(GELAN, lean), path)
    found = load(path)
    assert found.names == ("class 0", "class 1", "class 2")
    assert found.report.notes == ("names: none in the file for these classes; numbers are used instead",)
    found = load(path, names=NAMES)
    assert found.names == NAMES and found.report.notes == () and found.report.fitted == found.report.total
    torch.save({"model": state_in(GELAN, lean), "names": ["only", "two"]}, path)
    found = load(path)
    assert found.names == ("class 0", "class 1", "class 2") and "2 names for 3 classes" in str(found.report)
    found = load(coco_80)
    assert found.names == COCO_NAMES and "those of COCO" in str(found.report)


# -------------------------------------------------------------------------------- another class count


@pytest.mark.parametrize(
    "options", [{"num_classes": 3}, {"names": NAMES}, {"num_classes": 3, "names": list(NAMES)}]
)
def test_w06_another_class_count(options: dict[str, Any], coco_80: Path) -> None:
    before, found = load(coco_80), load(coco_80, **options)
    new = [
        f"{head}.cls.{i}.2.{kind}"
        for head in ("head", "aux_head")
        for i in range(3)
        for kind in ("weight", "bias")
    ]
    restarted = [item for item in found.report.left_out if item.tensor in new]
    assert [item.tensor for item in restarted] == new
    assert {item.reason for item in restarted} == {"class outputs start anew for 3 classes, the file has 80"}
    assert found.report.fitted == found.report.total - 12 == before.report.total - 12
    assert f"{found.report.fitted:,} of {found.report.total:,} tensors fitted" in str(found.report)
    assert "head.cls.0.2.weight" in str(found.report) and "and 9 more" in str(found.report)
    old, state = before.model.state_dict(), found.model.state_dict()
    assert list(old) == list(state)
    assert all(torch.equal(old[name], state[name]) for name in old if name not in new)
    assert found.model.head.cls[0][0].conv.weight.shape[0] == 128
    assert all(state[name].shape[0] == 3 and torch.isfinite(state[name]).all() for name in new)
    fresh = yolov9("t", 3).head  # what a new model starts with
    for ours, theirs in zip(found.model.head.cls, fresh.cls, strict=True):
        assert torch.equal(ours[-1].bias, theirs[-1].bias)
    assert found.model.num_classes == 3 == len(found.names)
    assert found.names == (NAMES if "names" in options else ("class 0", "class 1", "class 2"))
    maps = found.model(torch.rand(1, 3, 64, 64))
    assert all(raw.shape[1] == 67 for raw in (*maps.main, *maps.aux))
    sum(raw.sum() for raw in (*maps.main, *maps.aux)).backward()
    assert all(parameter.grad is not None for parameter in found.model.parameters())


def test_the_same_class_count_leaves_nothing_out(coco_80: Path) -> None:
    found = load(coco_80, num_classes=80)
    assert found.report.fitted == found.report.total
    assert all("constant" in item.reason for item in found.report.left_out)
    assert torch.equal(found.model.head.cls[0][2].bias, load(coco_80).model.head.cls[0][2].bias)


def test_a_transferred_model_is_saved_and_read(coco_80: Path, tmp_path: Path) -> None:
    found = load(coco_80, names=NAMES)
    again = load(save(found.model, tmp_path / "mine.safetensors", names=found.names))
    assert_state(again, found.model.state_dict())
    assert again.names == NAMES


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"num_classes": 0}, "at least one class"),
        ({"num_classes": -1}, "at least one class"),
        ({"names": []}, "at least one class"),
        ({"names": "cat"}, "a list of names"),
        ({"num_classes": 2, "names": ["a"]}, "num_classes is 2, but 1 names"),
    ],
)
def test_contradictory_wishes(options: dict[str, Any], why: str, own: Path) -> None:
    with pytest.raises(UsageError, match=why):
        load(own, **options)


# ------------------------------------------------------------------------------------------- strictness


def changed(state: State, **changes: Any) -> State:
    return {k: t for k, t in (state | changes).items() if t is not None}


@pytest.mark.parametrize(
    ("key", "tensor", "why"),
    [
        (
            "model.2.cv1.conv.weight",
            None,
            r"1,337 of 1,338 .* backbone\.elan2\.cv1\.conv\.weight .* missing",
        ),
        (
            "model.2.cv1.conv.weight",
            torch.zeros(9, 1, 1, 1),
            r"1,337 of 1,338 .*model\.2\.cv1\.conv\.weight is \[9",
        ),
        ("model.2.cv1.conv.weight", torch.zeros(32, 32, 1, 1).int(), r"1,337 of 1,338 .* of torch\.int32"),
        (
            "model.2.cv9.conv.weight",
            torch.zeros(1),
            r"1,338 of 1,338 .* model\.2\.cv9\.conv\.weight has no",
        ),
        ("model.13.conv.weight", torch.zeros(1), r"1,338 of 1,338 .* model\.13\.conv\.weight has no place"),
        ("loss.gain", torch.zeros(1), r"1,338 of 1,338 .* loss\.gain has no place"),
        (
            "model.22.dfl.conv.weight",
            torch.zeros(1, 16, 1, 1),
            r"1,338 of 1,338 .*dfl\.conv\.weight has no place",
        ),
        ("model.0.conv.weight", None, "0 of "),
        ("model.0.conv.weight", torch.zeros(()), "0 of "),
        ("model.0.conv.weight", torch.zeros(16, 3, 3), r"1,337 of 1,338"),
        ("model.22.cv3.0.2.weight", None, "tensors fit"),
        ("model.22.cv3.0.2.weight", torch.zeros(0, 80, 1, 1), "tensors fit"),
        ("model.22.cv3.0.2.weight", torch.zeros(()), "tensors fit"),
        ("model.22.cv3.0.0.conv.weight", torch.zeros(0, 64, 3, 3), "tensors fit"),
        ("model.22.cv2.0.1.conv.weight", torch.zeros(64, 0, 3, 3), "tensors fit"),
        ("model.22.cv2.0.1.conv.weight", torch.zeros(64, 7, 3, 3), "tensors fit"),
        ("model.22.cv2.0.1.conv.weight", torch.zeros(64), "tensors fit"),
    ],
)
def test_one_misfit(key: str, tensor: Tensor | None, why: str, lean: State, tmp_path: Path) -> None:
    torch.save(changed(state_in(GELAN, lean), **{key: tensor}), tmp_path / "weights.pt")
    message = refusal(tmp_path / "weights.pt")
    assert re.search(why, message), message


def test_another_class_count_excuses_no_misfit(lean: State, tmp_path: Path) -> None:
    torch.save(changed(state_in(GELAN, lean), **{"model.22.cv3.1.2.bias": None}), tmp_path / "weights.pt")
    assert "1,337 of 1,338" in refusal(tmp_path / "weights.pt", num_classes=7)


def other_detector(width: int, layers: int, towers: tuple[str, ...]) -> State:
    """Keys and shapes such as the family's other generations have."""
    state = {"model.0.conv.weight": torch.zeros(width, 3, 3, 3), "model.0.bn.weight": torch.zeros(width)}
    for i in range(1, layers):
        state |= {f"model.{i}.cv{j}.conv.weight": torch.zeros(8, 8, 1, 1) for j in (1, 2, 3)}
        state[f"model.{i}.m.0.cv1.conv.weight"] = torch.zeros(4, 4, 3, 3)
    return state | {f"model.{layers}.{tower}.0.0.conv.weight": torch.zeros(64, 64, 3, 3) for tower in towers}


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (
            other_detector(16, 24, ("m",)),
            r"25 numbered layers.*\n0 of \d+ tensors fit; first misfit: 'model\.0\.conv",
        ),
        (other_detector(16, 22, ("cv2", "cv3")), r"\d+ of 1,338 tensors fit YOLOv9-t .* first misfit: "),
        (other_detector(32, 22, ("cv2", "cv3")), r"\d+ of 1,338 tensors fit YOLOv9-s .* first misfit: "),
        (
            other_detector(48, 22, ("cv2", "cv3")),
            r"first convolution has 48 channels.*\n0 of \d+ tensors fit",
        ),
        (other_detector(16, 23, ("cv2", "one2one_cv2")), r"24 numbered layers.*\n0 of \d+ tensors fit"),
        (
            {"conv1.weight": torch.zeros(64, 3, 7, 7), "layer1.0.bn1.bias": torch.zeros(64)},
            "0 of 2 tensors fit",
        ),
        ({"features.0.weight": torch.zeros(1), "classifier.6.bias": torch.zeros(1)}, "0 of 2 tensors fit"),
        ({"blocks.3.attn.qkv.weight": torch.zeros(1), "head.weight": torch.zeros(1)}, "0 of 2 tensors fit"),
        ({"w": torch.zeros(1)}, "0 of 1 tensors fit"),
        ({"w" * 5000: torch.zeros(1)}, "0 of 1 tensors fit"),
        ({"a\nb\x1b[0m": torch.zeros(1)}, "0 of 1 tensors fit"),
        ({"epoch": 3}, "holds no tensors"),
        ({}, "holds no tensors"),
        ({"0": torch.zeros(1)}, "0 of 1 tensors fit"),
    ],
    ids=[
        "v5",
        "v8n",
        "v8s",
        "v8m",
        "v10",
        "resnet",
        "vgg",
        "vit",
        "one",
        "long",
        "control",
        "no",
        "empty",
        "number",
    ],
)
def test_other_networks(state: dict[str, Any], why: str, tmp_path: Path) -> None:
    torch.save(state, tmp_path / "weights.pt")
    message = refusal(tmp_path / "weights.pt")
    assert re.search(why, message), message
    assert len(message) < 700


def test_two_models_in_one_file(lean: State, tmp_path: Path) -> None:
    torch.save(state_in(GELAN, lean, "student.") | state_in(GELAN, lean, "teacher."), tmp_path / "weights.pt")
    assert "several models, under 'student.', 'teacher.'" in refusal(tmp_path / "weights.pt")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("backbone.conv1.conv.weight", float("nan")),
        ("backbone.elan5.cv4.bn.running_var", float("inf")),
        ("head.cls.2.2.bias", -float("inf")),
        ("head.box.0.2.weight", 1e300),
    ],
)
def test_values_that_are_not_finite(key: str, value: float, lean: State, tmp_path: Path) -> None:
    broken = dict(lean)
    broken[key] = lean[key].double().clone()  # 1e300 is finite in the file, and not in float32
    broken[key].view(-1)[-1] = value
    theirs = state_in(GELAN, broken)
    torch.save(theirs, tmp_path / "weights.pt")
    message = refusal(tmp_path / "weights.pt", num_classes=5)
    name = next(k for k, t in theirs.items() if t is broken[key])
    assert f"tensor {name} has values that are not finite" in message


def test_counters_that_are_not_finite(lean: State, tmp_path: Path) -> None:
    broken = dict(lean)
    broken["backbone.conv1.bn.num_batches_tracked"] = torch.tensor(float("nan"))
    torch.save(state_in(GELAN, broken), tmp_path / "weights.pt")
    assert "not finite" in refusal(tmp_path / "weights.pt")


@pytest.mark.parametrize("rows", [10**6, 2**40, 2**62])
@pytest.mark.parametrize("key", ["head.cls.{}.2", "head.cls.{}.0.conv", "both"])
def test_shapes_beyond_memory(rows: int, key: str, lean: State, tmp_path: Path) -> None:
    """A few bytes can claim any shape (stride 0): the class count and the towers' width come from shapes."""
    huge = {}
    width = rows if key != "head.cls.{}.2" else 80
    classes = rows if key != "head.cls.{}.0.conv" else 3
    zero = torch.zeros(())
    for i, channels in enumerate((64, 96, 128)):
        tower = f"head.cls.{i}"
        huge |= {f"{tower}.2.weight": zero.expand(classes, 1, 1, 1), f"{tower}.2.bias": zero.expand(classes)}
        huge |= {f"{tower}.0.conv.weight": zero.expand(width, channels if rows < 2**62 else 1, 1, 1)}
    torch.save(state_in(GELAN, lean | huge), tmp_path / "weights.pt")
    message = refusal(tmp_path / "weights.pt")
    assert "tensors fit" in message or "refused, its shapes claim" in message


def test_wide_towers_beyond_memory(lean: State, tmp_path: Path) -> None:
    """Each dimension is moderate and the shapes agree; all together would need 120 GB."""
    zero, huge = torch.zeros(()), {}
    with torch.device("meta"):
        wide = YOLOv9("t", 3, "deployed", class_width=60_000).state_dict()
    for name, tensor in wide.items():
        if name.startswith("head.cls") and tensor.is_floating_point():
            huge[name] = zero.expand(tensor.shape)
    torch.save(state_in(GELAN, lean | huge), tmp_path / "weights.pt")
    assert "refused, its shapes claim 3 classes and class towers of 60,000 channels" in refusal(
        tmp_path / "weights.pt"
    )


# --------------------------------------------------------------------------------- old and hostile files


def test_w08_an_unknown_pickled_module_is_explained(lean: State, tmp_path: Path) -> None:
    path = tmp_path / "old model.pt"
    with importable({"labs.nets": ("Net", "Block")}) as classes:
        save_module({"epoch": 3, "model": module_of(state_in(GELAN, lean), classes, list(NAMES))}, path)
    first, second = refusal(path).split("\n")
    assert "pickled model" in first and "labs.nets.Net" in first and "Nothing was executed" in first
    assert second.endswith(
        f"yolov9kit convert '{path}' OUT.safetensors --admit labs.nets.Net --admit labs.nets.Block"
    )
    done = convert(path, tmp_path / "new.safetensors", admit=["labs.nets.Net", "labs.nets.Block"])
    assert_state(load(done.path), lean)  # and the new file needs no such step
    assert done.checkpoint.names == NAMES
    assert len(load_file(done.path)) == len(lean)  # it is read by a reader that knows tensors only


class _Mark:
    """Makes a folder when it is unpickled without care."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.marker),)


@pytest.mark.parametrize("legacy", [False, True], ids=["zip", "legacy"])
@pytest.mark.parametrize("place", ["model", "ema", "optimizer", "names", "state_dict"])
def test_w09_a_file_that_would_act(place: str, legacy: bool, lean: State, tmp_path: Path) -> None:
    marker, path = tmp_path / "marker", tmp_path / "weights.pt"
    torch.save(
        {"model": state_in(GELAN, lean), "names": NAMES, place: _Mark(marker)},
        path,
        _use_new_zipfile_serialization=not legacy,
    )
    message = refusal(path)
    assert f"{os.mkdir.__module__}.mkdir" in message and "Nothing was executed" in message
    refusal(path, admit=["labs.nets.Net"])
    with pytest.raises(CheckpointError, match="refused"):
        convert(path, tmp_path / "new.safetensors")
    assert not marker.exists() and not (tmp_path / "new.safetensors").exists()


quick = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module", params=["zip", "legacy", "safetensors"])
def whole(
    request: pytest.FixtureRequest, lean: State, own: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[bytes, Path]]:
    path = tmp_path_factory.mktemp("damage") / ("w.safetensors" if request.param == "safetensors" else "w.pt")
    if request.param == "safetensors":
        yield own.read_bytes(), path
    else:
        half = {k: t.half() if t.is_floating_point() else t for k, t in lean.items()}
        torch.save(
            {"model": state_in(GELAN, half)}, path, _use_new_zipfile_serialization=request.param == "zip"
        )
        yield path.read_bytes(), path


@settings(quick, max_examples=25)
@given(data=st.data())
def test_truncated_files(whole: tuple[bytes, Path], data: st.DataObject) -> None:
    content, path = whole
    left = data.draw(st.integers(0, len(content) - 1))
    path.write_bytes(content[:left])
    message = refusal(path)
    if left > 100:
        assert "damaged or cut off" in message and f"the file has {left:,} bytes" in message


@settings(quick, max_examples=12)
@given(data=st.data())
def test_flipped_bits(whole: tuple[bytes, Path], data: st.DataObject) -> None:
    content, path = whole
    broken = bytearray(content)
    near_ends = st.integers(0, 20_000) | st.integers(len(content) - 20_000, len(content) - 1)
    for at in data.draw(st.lists(near_ends | st.integers(0, len(content) - 1), min_size=1, max_size=3)):
        broken[at] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(broken)
    try:
        found = load(path)
    except CheckpointError as error:
        check_message(error, path)
    else:  # a number changed, which no file format can know
        assert all(torch.isfinite(tensor).all() for tensor in found.model.state_dict().values())


@pytest.fixture(scope="module")
def header(own: Path) -> tuple[dict[str, Any], bytes]:
    data = own.read_bytes()
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


@quick
@given(data=st.data())
def test_flipped_bits_in_our_header(own: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(own.read_bytes())
    length = int.from_bytes(content[:8], "little")
    first = data.draw(st.sampled_from([0, 8]))
    for at in data.draw(st.lists(st.integers(first, min(8 + length, 8 + 400)), min_size=1, max_size=3)):
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    try:
        load(path)
    except CheckpointError as error:
        check_message(error, path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"size": "c"}, "its metadata say size c, its tensors t"),
        ({"size": None}, "its metadata say size nothing, its tensors t"),
        ({"size": "t\n\x1b[0m"}, "size t??[0m, its tensors t"),
        ({"form": "deployed"}, "its metadata say form deployed, its tensors training"),
        ({"num_classes": "80"}, "its metadata say num_classes 80, its tensors 3"),
        ({"precision": "fp16"}, "its metadata say precision fp16, its tensors fp32"),
        ({"format": "yolov9kit 2"}, "Update yolov9kit"),
        ({"names": "[]"}, "not as many names"),
        ({"names": '["a", "b"]'}, "not as many names"),
        ({"names": "{]"}, "not as many names"),
        ({"names": "[NaN, null, 3]"}, "not as many names"),
        ({"names": None}, "not as many names"),
        ({"input_hw": None}, "input_hw"),
        ({"input_hw": "NaN"}, "input_hw"),
        ({"input_hw": "[NaN, 640]"}, "input_hw"),
        ({"input_hw": "[640]"}, "input_hw"),
        ({"input_hw": "[640, 641]"}, "multiples of 32"),
        ({"input_hw": "[true, 640]"}, "input_hw"),
        ({"input_hw": "[-640, 640]"}, "input_hw"),
        ({"input_hw": '"ab"'}, "input_hw"),
        ({"input_hw": "[" * 100_000}, "input_hw"),
        ({"input_hw": "[1e400, 640]"}, "input_hw"),
    ],
)
def test_metadata_that_are_not_true(
    changes: dict[str, Any], why: str, header: tuple[dict[str, Any], bytes], tmp_path: Path
) -> None:
    head, numbers = copy.deepcopy(header)
    metadata = head["__metadata__"] | changes
    head["__metadata__"] = {key: value for key, value in metadata.items() if value is not None}
    text = json.dumps(head).encode()
    (tmp_path / "w.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + numbers)
    assert why in refusal(tmp_path / "w.safetensors")


def test_foreign_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "llm.safetensors"
    save_file({f"model.layers.{i}.mlp.weight": torch.zeros(2) for i in range(32)}, path, {"format": "pt"})
    assert "32 numbered layers" in refusal(path) and "0 of 32 tensors fit" in refusal(path)
    save_file({"backbone.x": torch.zeros(1), "head.y": torch.zeros(1)}, path, {"format": "yolov9kit 1"})
    assert "0 of 2 tensors fit" in refusal(path)


# --------------------------------------------------------------------------------------- saving and back


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize("form", ["training", "deployed"])
def test_saved_and_read_back(form: str, precision: str, model: YOLOv9, tmp_path: Path) -> None:
    ours = model if form == "training" else deployed(model)
    target = tmp_path / "neue Gewichte 权重.safetensors"
    written = save(
        ours, target, names=NAMES, precision=precision, input_hw=(96, 320), provenance="训练 run 3"
    )
    assert written == target and [p.name for p in tmp_path.iterdir()] == [target.name]
    found = load(target)
    dtype = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}[precision]
    state = {k: t.to(dtype) if t.is_floating_point() else t for k, t in ours.state_dict().items()}
    assert_state(found, state)
    assert (found.names, found.precision, found.input_hw, found.provenance) == (
        NAMES,
        precision,
        (96, 320),
        "训练 run 3",
    )
    assert (found.size, found.form, found.source) == ("t", form, "yolov9kit")
    assert found.report.left_out == () and found.report.notes == ()


def test_equal_contents_are_equal_files(model: YOLOv9, own: Path, tmp_path: Path) -> None:
    again = save(load(own).model, tmp_path / "again.safetensors", names=NAMES)
    assert again.read_bytes() == own.read_bytes()


def test_other_names_than_texts_allows(model: YOLOv9, tmp_path: Path) -> None:
    """File names on Linux may be no valid text; names may hold half of a character pair."""
    names = ["a", "\ud800", 3]
    found = load(save(model, tmp_path / "w.safetensors", names=names, provenance="from \udcff.pt"))
    assert found.names == ("a", "\ud800", "3") and found.provenance == "from ?.pt"


def test_a_loaded_model_does_not_depend_on_its_file(own: Path, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    path.write_bytes(own.read_bytes())
    found = load(path)
    with path.open("r+b") as file:
        file.truncate(100)  # memory that still lay in the file would now end the process
    assert_state(found, load(own).model.state_dict())
    with torch.no_grad():
        found.model.backbone.conv1.conv.weight.zero_()


def broken(model: YOLOv9, value: float) -> YOLOv9:
    model = copy.deepcopy(model)
    with torch.no_grad():
        model.head.cls[1][2].bias[0] = value
    return model


@pytest.mark.parametrize(
    ("options", "error", "why"),
    [
        ({"path": "w.pt"}, UsageError, "are written as .safetensors"),
        ({"path": "w"}, UsageError, "are written as .safetensors"),
        ({"names": ["a"]}, UsageError, "1 names for 3 classes"),
        ({"names": "abc"}, UsageError, "names for 3 classes"),
        ({"precision": "int8"}, UsageError, "fp32, fp16, bf16"),
        ({"input_hw": (640, 641)}, UsageError, "multiples of 32"),
        ({"input_hw": (0, 640)}, UsageError, "multiples of 32"),
        ({"value": float("nan")}, CheckpointError, r"tensor head\.cls\.1\.2\.bias .* not finite in fp32"),
        ({"value": float("inf")}, CheckpointError, "not finite in fp32"),
        ({"value": 1e6, "precision": "fp16"}, CheckpointError, "not finite in fp16"),
    ],
)
def test_what_is_not_saved(
    options: dict[str, Any], error: type[Exception], why: str, model: YOLOv9, tmp_path: Path
) -> None:
    ours = broken(model, options.pop("value", 0.0))
    path = tmp_path / options.pop("path", "w.safetensors")
    path.write_bytes(b"what was there before")
    with pytest.raises(error, match=why):
        save(ours, path, **{"names": NAMES} | options)
    assert path.read_bytes() == b"what was there before" and len(list(tmp_path.iterdir())) == 1


def test_a_fused_model_is_not_saved(model: YOLOv9, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fused"):
        save(fuse(model), tmp_path / "w.safetensors", names=NAMES)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(model: YOLOv9, own: Path, tmp_path: Path) -> None:
    """A limit on file sizes stops the writing in the middle, as a full disk does."""
    resource = pytest.importorskip("resource", reason="needs a Unix system")
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"what was there before")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    for write in (lambda: save(model, path, names=NAMES), lambda: convert(own, path, overwrite=True)):
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
        try:
            with pytest.raises(
                CheckpointError, match=rf"^{re.escape(str(path))}: cannot be written \(.+\)\.$"
            ):
                write()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert path.read_bytes() == b"what was there before" and len(list(tmp_path.iterdir())) == 1


def test_places_that_cannot_be_written(model: YOLOv9, own: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder.safetensors").mkdir()
    for name in ("file/w.safetensors", "folder.safetensors", "x" * 300 + ".safetensors"):
        path = tmp_path / name
        with pytest.raises(CheckpointError, match="cannot be written"):
            save(model, path, names=NAMES)
        with pytest.raises(CheckpointError, match="cannot be written"):
            convert(own, path, overwrite=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "folder.safetensors"]
    assert save(model, tmp_path / "new" / "er" / "w.safetensors", names=NAMES).exists()  # folders are made
    longest = tmp_path / ("x" * (255 - len(".safetensors")) + ".safetensors")
    assert save(model, longest, names=NAMES).exists()  # the name beside it is no longer


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the administrator may write everywhere")
def test_a_folder_without_permission(model: YOLOv9, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="cannot be written"):
        save(model, tmp_path / "w.safetensors", names=NAMES)
    tmp_path.chmod(0o700)


# ------------------------------------------------------------------------------------------- converting


def test_convert_a_real_training_file(shared: Path, tmp_path: Path) -> None:
    source = shared / "checkpoints" / "official-yolov9-t-deeppcb.pt"
    done = convert(source, tmp_path / "t.safetensors")
    before, after = load(source), load(done.path)
    assert done.max_difference == 0.0
    assert (done.parameters_before, done.parameters_after) == (2_661_204, 1_914_402)
    assert (before.form, after.form, after.names, after.precision) == (
        "training",
        "deployed",
        before.names,
        "fp16",
    )
    assert after.provenance == "converted from official-yolov9-t-deeppcb.pt (official, training form)"
    images = torch.rand(2, 3, 64, 64)
    with torch.inference_mode():
        for ours, theirs in zip(after.model(images).main, before.model(images).main, strict=True):
            assert torch.equal(ours, theirs)


def test_converting_twice_is_stable(own: Path, tmp_path: Path) -> None:
    first = convert(own, tmp_path / "first.safetensors")
    second = convert(first.path, tmp_path / "second.safetensors")
    assert second.path.read_bytes() == first.path.read_bytes()
    assert (
        first.parameters_before
        > first.parameters_after
        == second.parameters_before
        == second.parameters_after
    )
    assert parameter_count(second.checkpoint.model) == second.parameters_after
    third = convert(first.path, first.path, overwrite=True)  # onto itself
    assert third.path.read_bytes() == second.path.read_bytes()


@pytest.mark.parametrize(("precision", "bound"), [("fp32", 0.0), ("fp16", 0.02), ("bf16", 0.2)])
def test_convert_to_a_precision(precision: str, bound: float, own: Path, tmp_path: Path) -> None:
    done = convert(own, tmp_path / "w.safetensors", precision=precision)
    assert done.checkpoint.precision == precision
    assert done.max_difference <= bound and (done.max_difference > 0) == (bound > 0)


def test_convert_keeps_what_the_file_says(model: YOLOv9, tmp_path: Path) -> None:
    source = save(model, tmp_path / "a.safetensors", names=NAMES, input_hw=(64, 96), provenance="run 3")
    found = convert(source, tmp_path / "b.safetensors").checkpoint
    assert (found.names, found.input_hw) == (NAMES, (64, 96))
    assert found.provenance == "run 3; converted from a.safetensors (yolov9kit, training form)"


def test_convert_refuses(own: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.safetensors"
    taken.write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"taken\.safetensors: exists already"):
        convert(own, taken)
    with pytest.raises(UsageError, match=r"w\.pt: weights are written as \.safetensors"):
        convert(own, tmp_path / "w.pt")
    with pytest.raises(UsageError, match="precision 'int4'"):
        convert(own, tmp_path / "w.safetensors", precision="int4")
    with pytest.raises(CheckpointError, match="no such file"):
        convert(tmp_path / "none.pt", tmp_path / "w.safetensors")
    assert taken.read_bytes() == b"mine" and len(list(tmp_path.iterdir())) == 1
    assert convert(own, taken, overwrite=True).path.stat().st_size > 1000


@pytest.mark.parametrize("how", ["different", "nan"])
def test_convert_proves_before_it_writes(
    how: str, model: YOLOv9, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What would differ is not written: here the deployed form is made wrongly, or numbers overflow on their way."""
    source = tmp_path / "a.safetensors"
    if how == "nan":
        overflowing = copy.deepcopy(model)
        with torch.no_grad():
            for tower in overflowing.head.cls[2:]:  # the last level only
                tower[0].bn.weight.fill_(3e38)
                tower[1].bn.weight.fill_(3e38)
        save(overflowing, source, names=NAMES)
    else:
        save(model, source, names=NAMES)
        monkeypatch.setattr("yolov9kit.model.checkpoint.deployed", lambda model: broken(deployed(model), 1.0))
    with pytest.raises(CheckpointError, match="not written, the outputs differ by"):
        convert(source, tmp_path / "b.safetensors")
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


# ------------------------------------------------------------------------------------------------ report


def test_report_as_text() -> None:
    left_out = (*(LeftOut(f"t{i}", "why") for i in range(5)), LeftOut("u", "constant"))
    report = LoadReport(1234, 1239, left_out, ("a note",))
    assert str(report).split("\n") == [
        "1,234 of 1,239 tensors fitted",
        "left out: t0, t1, t2 and 2 more: why",
        "left out: u: constant",
        "a note",
    ]


def test_our_own_files_need_no_pickle(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_pickle(*_: object, **__: object) -> object:
        raise AssertionError("a pickle was opened")

    monkeypatch.setattr("yolov9kit.model.contents.read_pickle", no_pickle)
    assert load(own).source == "yolov9kit"
