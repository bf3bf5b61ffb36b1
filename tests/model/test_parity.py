"""Equal numbers: official, MIT and Ultralytics forms with deterministic weights against reference outputs."""

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from yolov9kit.geometry import cxcywh_to_xyxy
from yolov9kit.model.checkpoint import Checkpoint, load
from yolov9kit.model.decode import decode
from yolov9kit.model.fuse import fuse
from yolov9kit.model.yolov9 import deployed

# what separates rounding (thread count, backend: under 1e-6) from the smallest structural mistake (1.5e-3)
MAPS, PIXELS, SCORES = 2e-6, 1e-3, 1e-5

OFFICIAL = ["yolov9-t", "yolov9-s", "yolov9-c", "gelan-t", "gelan-s", "gelan-m", "gelan-e"]
ULTRALYTICS = ["ultralytics-yolov9t", "ultralytics-yolov9s", "ultralytics-yolov9c"]
MIT = ["mit-v9-t", "mit-v9-s", "mit-v9-c"]


@pytest.fixture(scope="module")
def parity(shared: Path) -> Path:
    return shared / "parity"


@pytest.fixture(scope="module")
def fill(parity: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("parity_fill", parity / "fill.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def checkpoint(name: str, parity: Path, fill: ModuleType, folder: Path) -> Checkpoint:
    """The form called ``name`` with the reference's weights, read from a file as a user would."""
    keys = "keys_mit.json.gz" if name in MIT else "keys.json.gz"
    shapes = json.loads(gzip.decompress((parity / keys).read_bytes()))[name]
    state = fill.fill_state({key: tuple(shape) for key, shape in shapes.items()})
    for key, tensor in state.items():
        if "anc2vec" in key:  # constant, like the official dfl
            state[key] = torch.arange(16.0).view(tensor.shape)
    torch.save(state, folder / f"{name}.pt")
    return load(folder / f"{name}.pt")


def reference(name: str, parity: Path) -> dict[str, Tensor]:
    file = "outputs_mit.safetensors" if name in MIT else "outputs.safetensors"
    return {
        k.removeprefix(f"{name}."): v for k, v in load_file(parity / file).items() if k.startswith(f"{name}.")
    }


def largest(pairs: list[tuple[Tensor, Tensor]]) -> float:
    for ours, theirs in pairs:
        assert ours.shape == theirs.shape
        assert torch.isfinite(ours).all()  # NaN would pass a comparison by maximum
    return max(float((ours - theirs).abs().max()) for ours, theirs in pairs)


def assert_decoded(maps: tuple[Tensor, ...], wanted: Tensor) -> None:
    """``wanted``: 1 x (4 + C) x A, boxes cx cy w h in pixels, then scores."""
    boxes, scores = decode(maps)
    rows = wanted.transpose(1, 2)
    assert largest([(boxes, cxcywh_to_xyxy(rows[..., :4]))]) < PIXELS
    assert largest([(scores, rows[..., 4:])]) < SCORES


@pytest.mark.parametrize("name", OFFICIAL)
@torch.inference_mode()
def test_official(name: str, parity: Path, fill: ModuleType, tmp_path: Path) -> None:
    read, wanted = checkpoint(name, parity, fill, tmp_path), reference(name, parity)
    outputs = read.model(fill.fill_image(name, 96, 128))
    assert (read.size, read.source, read.report.fitted) == (name[-1], "official", read.report.total)
    if read.form == "training":
        assert outputs.aux is not None
        expected = [wanted[f"eval.{i}"] for i in range(8)]
        assert largest(list(zip(outputs.aux + outputs.main, expected[2:], strict=True))) < MAPS
        assert_decoded(outputs.aux, expected[0])
        assert_decoded(outputs.main, expected[1])
    else:
        assert outputs.aux is None
        assert largest([(m, wanted[f"eval.{i + 1}"]) for i, m in enumerate(outputs.main)]) < MAPS
        assert_decoded(outputs.main, wanted["eval.0"])


@pytest.mark.parametrize("name", ULTRALYTICS)
@torch.inference_mode()
def test_ultralytics(name: str, parity: Path, fill: ModuleType, tmp_path: Path) -> None:
    read, wanted = checkpoint(name, parity, fill, tmp_path), reference(name, parity)
    assert (read.size, read.source, read.form) == (name[-1], "ultralytics", "deployed")
    main = read.model(fill.fill_image(name, 96, 128)).main
    flat = torch.cat([m.flatten(2) for m in main], dim=2)
    assert largest([(flat[:, :64], wanted["eval.1"]), (flat[:, 64:], wanted["eval.2"])]) < MAPS
    assert_decoded(main, wanted["eval.0"])


@pytest.mark.parametrize("name", MIT)
@torch.inference_mode()
def test_mit(name: str, parity: Path, fill: ModuleType, tmp_path: Path) -> None:
    read, wanted = checkpoint(name, parity, fill, tmp_path), reference(name, parity)
    assert (read.size, read.source, read.form) == (name[-1], "mit", "training")
    outputs = read.model(fill.fill_image(name, 96, 128))
    assert outputs.aux is not None
    for branch, maps in (("Main", outputs.main), ("AUX", outputs.aux)):
        for level, raw in enumerate(maps):
            logits, bins, distances = (wanted[f"{branch}.{3 * level + i}"] for i in range(3))
            ours = raw[:, :64].unflatten(1, (4, 16)).transpose(1, 2)  # theirs: 16 bins x 4 sides
            assert largest([(raw[:, 64:], logits), (ours, bins)]) < MAPS
            expectation = (ours.softmax(1) * torch.arange(16.0).view(1, 16, 1, 1, 1)).sum(1)
            assert largest([(expectation, distances)]) < 1e-5


@pytest.mark.parametrize("name", OFFICIAL + ULTRALYTICS + MIT)
@torch.inference_mode()
def test_deployed_and_fused_forms_are_equal(
    name: str, parity: Path, fill: ModuleType, tmp_path: Path
) -> None:
    model = checkpoint(name, parity, fill, tmp_path).model
    images = fill.fill_image(name, 96, 128)
    whole, lean = model(images).main, deployed(model)(images).main
    assert all(torch.equal(a, b) for a, b in zip(whole, lean, strict=True))
    assert largest(list(zip(fuse(model)(images).main, whole, strict=True))) < MAPS
