"""Starting from another file's weights: what is carried over is exact, what is not is said."""

from pathlib import Path

import pytest
import torch

from yolov9kit.errors import CheckpointError
from yolov9kit.model.checkpoint import load, save
from yolov9kit.model.layouts import layer_paths
from yolov9kit.model.transfer import freeze, new_model, transfer
from yolov9kit.model.yolov9 import deployed

NAMES = ["a", "b", "c"]


def test_the_same_seed_gives_the_same_weights_and_leaves_the_global_generator() -> None:
    state = torch.get_rng_state()
    one, other, third = new_model("t", 3, 5), new_model("t", 3, 5), new_model("t", 3, 6)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one.parameters(), third.parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())


def test_a_training_file_is_carried_over_whole(tmp_path: Path) -> None:
    model = new_model("t", 3, 1)
    moved = transfer(save(model, tmp_path / "w.safetensors", names=NAMES), ["x", "y", "z"])
    assert moved.carried == moved.total == len(model.state_dict())
    assert moved.anew == ()
    assert moved.model.training
    state = moved.model.state_dict()
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key])


def test_w06_another_class_count_keeps_all_but_the_class_outputs(tmp_path: Path) -> None:
    model = new_model("t", 80, 1)
    moved = transfer(save(model, tmp_path / "w.safetensors", names=[str(i) for i in range(80)]), NAMES)
    own = model.state_dict()
    kept = [
        k for k, v in moved.model.state_dict().items() if v.shape == own[k].shape and torch.equal(v, own[k])
    ]
    changed = set(own) - set(kept)
    assert changed == {
        f"{h}.cls.{level}.2.{w}"
        for h in ("head", "aux_head")
        for level in range(3)
        for w in ("weight", "bias")
    }
    assert moved.carried == moved.total - len(changed)
    assert "class outputs start anew for 3 classes" in str(moved)


def test_w04_a_deployed_file_carries_its_branch_when_that_is_wanted(tmp_path: Path) -> None:
    lean = deployed(new_model("t", 3, 1))
    path = save(lean, tmp_path / "w.safetensors", names=NAMES)
    with pytest.raises(
        CheckpointError, match=rf"(?s){len(lean.state_dict()):,} of the training form's .*--new-auxiliary"
    ):
        transfer(path, NAMES)
    moved = transfer(path, NAMES, new_auxiliary=True)
    assert moved.model.form == "training"
    assert moved.carried == len(lean.state_dict())
    state = moved.model.state_dict()
    for key, value in lean.state_dict().items():
        assert torch.equal(value, state[key])


@pytest.mark.parametrize("form", ["training", "deployed"])
def test_what_starts_anew_follows_from_the_seed(tmp_path: Path, form: str) -> None:
    model = new_model("t", 5, 1)
    names = [str(i) for i in range(5)]
    path = save(model if form == "training" else deployed(model), tmp_path / "w.safetensors", names=names)
    state = torch.get_rng_state()
    one, other, third = (transfer(path, NAMES, True, seed).model.state_dict() for seed in (7, 7, 8))
    assert all(torch.equal(value, other[key]) for key, value in one.items())
    assert not all(torch.equal(value, third[key]) for key, value in one.items())
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("name", ["official", "ultralytics"])
def test_real_files_in_foreign_formats_can_be_trained_further(shared: Path, name: str) -> None:
    found = [
        path for path in (shared / "checkpoints").glob("*.pt") if ("ultra" in path.name) == ("ultra" in name)
    ]
    assert found
    checkpoint = load(found[0])
    moved = transfer(found[0], NAMES, new_auxiliary=True)
    assert moved.model.num_classes == 3
    with torch.no_grad():
        outputs = moved.model.eval()(torch.rand(1, 3, 64, 64))
    assert outputs.aux is not None
    if checkpoint.form == "training":
        assert moved.carried == moved.total - 12


def test_official_layer_numbers() -> None:
    assert layer_paths("t")[9] == ("top_down.spp",)
    assert layer_paths("s")[29] == ("head", "aux_head")
    assert layer_paths("c")[1] == ("backbone.conv1",)  # its layer 0 does nothing
    for size in ("t", "s", "m", "c", "e"):
        model = new_model(size, 1, 0) if size in "ts" else None
        paths = layer_paths(size)
        assert max(paths) == {"t": 29, "s": 29, "m": 38, "c": 38, "e": 49}[size]
        if model is not None:
            owned = {
                id(p)
                for layer in paths.values()
                for path in layer
                for p in model.get_submodule(path).parameters()
            }
            assert owned == {id(p) for p in model.parameters()}


def test_freezing_names_the_norms_that_must_rest() -> None:
    model = new_model("t", 3, 0)
    norms = freeze(model, ["backbone.conv1", "top_down.spp"])
    assert len(norms) == 3
    assert not model.backbone.conv1.conv.weight.requires_grad
    assert model.backbone.conv2.conv.weight.requires_grad
