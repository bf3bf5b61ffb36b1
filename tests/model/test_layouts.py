"""Key tables: every form of every project maps onto our names, there and back."""

import gzip
import json
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.model.foreign_files import EVERY_FORM, RAMP, form_id, on_meta, state_in
from yolov9kit.model.layouts import (
    MIT,
    OFFICIAL,
    Layout,
    UnknownLayoutError,
    box_groups,
    mit_to_official,
    recognise,
)

PREFIXES = [
    "",
    "model.",
    "module.",
    "_orig_mod.",
    "model.model.",
    "module.model.",
    "_orig_mod.module.model.model.",
]
GELAN, TRAINING_TS = OFFICIAL[0], OFFICIAL[1]


@cache
def _shapes(form: str, size: str) -> dict[str, Tensor]:
    layout = next(row for row in OFFICIAL if row.form == form and size in row.sizes)
    return on_meta(layout, size).state_dict()


def shapes(layout: Layout, size: str) -> dict[str, Tensor]:
    """Tensors without memory, new objects each time."""
    return {name: torch.empty_like(tensor) for name, tensor in _shapes(layout.form, size).items()}


@pytest.mark.parametrize(("layout", "size"), EVERY_FORM, ids=form_id)
def test_there_and_back(layout: Layout, size: str) -> None:
    ours = shapes(layout, size)
    theirs = state_in(layout, ours)
    assert len(theirs) > len(ours)  # constants came with them, and no name met another
    found = recognise(theirs)
    assert (found.size, found.form, found.source) == (
        size,
        layout.form,
        "mit" if layout in MIT else "official",
    )
    assert set(found.tensors) == set(ours)
    assert all(found.tensors[name] is ours[name] for name in ours)
    assert all(theirs[found.file_keys[name]] is ours[name] for name in ours)
    assert set(found.constants) == set(theirs) - set(found.file_keys.values())
    assert found.foreign == () and not found.averaged


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize(("layout", "size"), EVERY_FORM, ids=form_id)
def test_layers_before_the_first_with_tensors_do_not_count(layout: Layout, size: str, first: int) -> None:
    ours = shapes(layout, size)
    assert set(recognise(state_in(layout, ours, first=first)).tensors) == set(ours)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("layout", [TRAINING_TS, GELAN, MIT[1]], ids=form_id)
def test_any_prefix(layout: Layout, prefix: str) -> None:
    ours = shapes(layout, "t")
    assert set(recognise(state_in(layout, ours, prefix)).tensors) == set(ours)


@pytest.mark.parametrize("prefix", PREFIXES[:5])
@pytest.mark.parametrize(("size", "form"), [("t", "training"), ("c", "deployed"), ("e", "training")])
def test_our_own_names(size: str, form: str, prefix: str) -> None:
    ours = _shapes(form, size)
    found = recognise({f"{prefix}{name}": tensor for name, tensor in ours.items()})
    assert (found.size, found.form, found.source) == (size, form, "yolov9kit")
    assert list(found.tensors) == list(ours)


@pytest.mark.parametrize("size", ["t", "s", "m", "c", "e"])
def test_without_groups_it_is_ultralytics(size: str) -> None:
    layout = GELAN if size != "e" else OFFICIAL[3]
    ours = on_meta(layout, size, box_groups=1).state_dict()
    found = recognise(state_in(layout, ours))
    assert (found.size, found.source, box_groups(found.tensors)) == (size, "ultralytics", 1)


@pytest.mark.parametrize("file", ["keys.json.gz", "keys_mit.json.gz"])
def test_reference_keys(shared: Path, file: str) -> None:
    """The keys of the other projects' own models: our tables give them to the last one."""
    for name, keys in json.loads(gzip.decompress((shared / "parity" / file).read_bytes())).items():
        theirs = {
            key: RAMP.view(shape) if "dfl" in key or "anc2vec" in key else torch.empty(shape, device="meta")
            for key, shape in keys.items()
        }
        found = recognise(theirs)
        assert found.foreign == ()
        assert (found.size, found.form) == (
            name[-1],
            "deployed" if name.startswith(("gelan", "ultra")) else "training",
        )
        layout = next(
            row
            for row in (MIT if "mit" in name else OFFICIAL)
            if row.form == found.form and found.size in row.sizes
        )
        first = min(int(key.split(".")[1]) for key in keys)
        assert set(state_in(layout, found.tensors, first=first)) == set(keys)


def test_the_average_is_taken() -> None:
    running, average = shapes(TRAINING_TS, "t"), shapes(TRAINING_TS, "t")
    found = recognise(
        state_in(TRAINING_TS, running, "model.model.") | state_in(TRAINING_TS, average, "ema.model.")
    )
    assert found.averaged
    assert all(found.tensors[name] is average[name] for name in average)


@pytest.mark.parametrize(
    "prefixes", [("a.", "b."), ("ema.", "ema_of_ema."), ("teacher.model.", "student.model.")]
)
def test_two_models_are_refused(prefixes: tuple[str, str]) -> None:
    ours = shapes(GELAN, "t")
    with pytest.raises(UnknownLayoutError, match=r"several models, under '.*', '.*'\.\n"):
        recognise(state_in(GELAN, ours, prefixes[0]) | state_in(GELAN, ours, prefixes[1]))


def test_what_has_no_place_is_named() -> None:
    theirs = state_in(GELAN, shapes(GELAN, "t"))
    more = {
        "model.10.cv1.conv.weight": torch.zeros(2),  # a layer that only enlarges
        "model.22.cv9.0.weight": torch.zeros(2),
        "loss.weight": torch.zeros(2),
        "other.3.weight": torch.zeros(2),
        "model._orig_mod.0.conv.weight": torch.zeros(2),  # a second tensor of the same name
        "model.9999999999.weight": torch.zeros(2),
        "model.0.new\nline": torch.zeros(2),
    }
    found = recognise(theirs | more)
    assert set(found.foreign) == set(more)
    assert not set(found.file_keys.values()) & set(more)


@pytest.mark.parametrize(
    "ramp", [torch.zeros(1, 16, 1, 1), torch.arange(17.0), RAMP + 0.5, RAMP * float("nan")]
)
def test_a_constant_must_be_the_constant(ramp: Tensor) -> None:
    found = recognise(state_in(GELAN, shapes(GELAN, "t")) | {"model.22.dfl.conv.weight": ramp})
    assert found.foreign == ("model.22.dfl.conv.weight",) and found.constants == ()


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (
            ["conv1.weight", "layer1.0.conv1.weight", "layer4.1.conv2.weight", "fc.weight"],
            "it has 1 numbered layers",
        ),
        (["features.0.weight", "features.28.bias", "classifier.6.weight"], "it has 29 numbered layers"),
        (
            ["model.0.conv.weight", "model.24.m.0.weight"],
            "it has 25 numbered layers, not one of 23, 30, 38, 42, 49",
        ),
        (["weight"], "no layer numbers"),
        (["backbone.backbone.stem.conv.weight", "head.stems.0.conv.weight"], "it has 1 numbered layers"),
        (["model.0.conv.weight", "model.22.cv2.0.weight"], "first convolution has 7 channels"),
    ],
)
def test_other_networks(keys: list[str], why: str) -> None:
    with pytest.raises(UnknownLayoutError) as caught:
        recognise({key: torch.zeros(7, 3, 3, 3) for key in keys})
    assert why in str(caught.value)
    assert "tensors fit; first misfit: " in str(caught.value) and str(caught.value).count("\n") == 1


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("conv3.0.bottleneck.1.conv1.conv2.bn.bias", "cv3.0.m.1.cv1.conv2.bn.bias"),
        ("conv3.0.bottleneck.1.conv2.conv.weight", "cv3.0.m.1.cv2.conv.weight"),
        ("conv.conv.weight", "cv1.conv.weight"),
        ("conv1.conv.weight", "cv1.conv.weight"),
        ("conv5.bn.running_var", "cv5.bn.running_var"),
        ("conv.weight", "conv.weight"),
        ("bn.weight", "bn.weight"),
        ("heads.2.class_conv.1.bn.weight", "cls.2.1.bn.weight"),
        ("heads.0.anchor_conv.2.bias", "box.0.2.bias"),
    ],
)
def test_mit_words(theirs: str, ours: str) -> None:
    assert mit_to_official(theirs) == ours


def test_rows_of_the_published_table() -> None:
    """Some rows, spelled out, of each official layout; numbers are counted from the first layer with tensors."""
    gelan, ts, mc, gelan_e, e = OFFICIAL
    assert [row.last for row in OFFICIAL] == [22, 29, 37, 41, 48]
    assert (gelan.paths[8], gelan.paths[9], gelan.paths[21]) == (
        "backbone.elan5",
        "top_down.spp",
        "bottom_up.elan5",
    )
    assert (ts.paths[22], ts.paths[28], ts.heads[29, "cv2"], ts.heads[29, "cv4"]) == (
        *("aux.spp", "aux.elan3"),
        *("aux_head.box", "head.box"),
    )
    assert (mc.paths[22], mc.paths[36], mc.heads[37, "cv5"]) == (
        "aux.route.3",
        "aux.backbone.elan5",
        "head.cls",
    )
    assert (gelan_e.paths[9], gelan_e.paths[27], gelan_e.heads[41, "cv3"]) == (
        *("reversible.route.1", "reversible.backbone.elan5"),
        "head.cls",
    )
    assert (e.paths[28], e.paths[35], e.paths[47]) == ("aux.spp", "top_down.spp", "bottom_up.elan5")
