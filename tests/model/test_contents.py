"""What a file holds: nesting, class names, and which kind of file it is when it is no weights file."""

import json
import os
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save, save_file
from torch import nn

from tests.model.foreign_files import (
    OFFICIAL_CLASSES,
    PACKAGED_CLASSES,
    ULTRALYTICS_CLASSES,
    importable,
    middle_of_a_run,
    module_of,
    save_module,
)
from yolov9kit.errors import CheckpointError
from yolov9kit.model.contents import Contents, read

STATE = {"0.conv.weight": torch.tensor([1.0]), "1.bn.running_mean": torch.tensor([2.0])}
OTHER = {key: tensor + 10 for key, tensor in STATE.items()}


def stored(saved: object, folder: Path, **options: Any) -> Contents:
    save_module(saved, folder / "weights.pt", **options)
    return read(folder / "weights.pt")


def refusal(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and len(message.split("\n")) <= 2
    return message


# --------------------------------------------------------------------------------------------- nesting


@pytest.mark.parametrize(
    "saved",
    [
        STATE,
        OrderedDict(STATE),
        {"model": STATE},
        {"state_dict": STATE},
        {"ema": STATE},
        {"model_state_dict": STATE},
        {"model": {"state_dict": STATE}},
        {"ema": {"module": STATE, "updates": 3}},
        {"model": None, "ema": STATE},
        {"model": STATE, "ema": None},
        {"ema": {"model": {"state_dict": STATE}}},
        {"state_dict": STATE, "epoch": 3, "names": None},
        STATE | {"epoch": 3, "names": ["a"]},
    ],
    ids=lambda saved: "-".join(map(str, saved))[:30],
)
def test_state_dicts_anywhere(saved: dict[str, Any], tmp_path: Path) -> None:
    found = stored(saved, tmp_path)
    assert list(found.tensors) == list(STATE) and not found.averaged
    assert all(torch.equal(found.tensors[key], STATE[key]) for key in STATE)


def test_the_average_is_preferred_and_said(tmp_path: Path) -> None:
    for saved in (
        {"model": STATE, "ema": OTHER},
        {"ema": OTHER, "model": STATE},
        {"epoch": 1, "model": STATE, "ema": OTHER},
    ):
        found = stored(saved, tmp_path)
        assert found.averaged and found.tensors["0.conv.weight"].item() == 11


@pytest.mark.parametrize(
    "classes", [OFFICIAL_CLASSES, PACKAGED_CLASSES, ULTRALYTICS_CLASSES], ids=lambda c: next(iter(c))
)
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
def test_pickled_models(classes: dict[str, tuple[str, ...]], options: dict[str, Any], tmp_path: Path) -> None:
    with importable(classes) as made:
        model, average = (module_of(state, made, {0: "a cat", 1: "狗"}) for state in (STATE, OTHER))
        save_module({"epoch": -1, "model": model, "ema": None}, tmp_path / "done.pt", **options)
        save_module({**middle_of_a_run(), "model": model, "ema": average}, tmp_path / "middle.pt", **options)
        save_module(model, tmp_path / "alone.pt", **options)
        save_module({"model": nn.DataParallel(model)}, tmp_path / "wrapped.pt", **options)
    assert next(iter(classes)).split(".")[0] not in sys.modules
    for name, first in (("done", 1), ("middle", 11), ("alone", 1), ("wrapped", 1)):
        found = read(tmp_path / f"{name}.pt")
        prefix = "module." if name == "wrapped" else ""
        assert list(found.tensors) == [prefix + key for key in STATE]
        assert found.tensors[f"{prefix}0.conv.weight"].item() == first
        assert found.names == ("a cat", "狗") and found.averaged == (name == "middle")


@pytest.mark.parametrize(
    ("saved", "found"),
    [([], "list"), (3, "int"), (torch.zeros(2), "Tensor"), ("text", "str"), (None, "NoneType")],
)
def test_no_weights(saved: object, found: str, tmp_path: Path) -> None:
    torch.save(saved, tmp_path / "weights.pt")
    assert f"holds no weights (found {found})" in refusal(tmp_path / "weights.pt")


def test_endless_nesting(tmp_path: Path) -> None:
    itself: dict[str, Any] = {}
    itself["model"] = itself
    torch.save(itself, tmp_path / "weights.pt")
    assert "holds no weights" in refusal(tmp_path / "weights.pt")


def test_a_model_that_holds_itself(tmp_path: Path) -> None:
    with importable(OFFICIAL_CLASSES) as classes:
        model = module_of(STATE, classes, ["a"])
        model.__dict__["_modules"]["again"] = model
        save_module(model, tmp_path / "weights.pt")
    assert "damaged" in refusal(tmp_path / "weights.pt")


# ----------------------------------------------------------------------------------------- class names


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["a", "b c", "汽车"], ("a", "b c", "汽车")),
        (("a",), ("a",)),
        ({0: "a", 1: "b"}, ("a", "b")),
        ({1: "b", 0: "a"}, ("a", "b")),
        ({"0": "a", "1": "b"}, ("a", "b")),
        ({i: str(i) for i in range(12)}, tuple(map(str, range(12)))),
        ([0, 1, 2.5], ("0", "1", "2.5")),
        ({0: "a", 2: "b"}, None),
        ({"a": 0, "b": 1}, None),
        ([], None),
        ({}, None),
        (None, None),
        ("abc", None),
        ([["a"], ["b"]], None),
        ([None], None),
        (torch.zeros(3), None),
        ({(0, 1): "a"}, None),
        (3, None),
    ],
)
def test_class_names(given: object, names: tuple[str, ...] | None, tmp_path: Path) -> None:
    assert stored({"model": STATE, "names": given}, tmp_path).names == names


def test_names_inside_win(tmp_path: Path) -> None:
    assert stored({"names": ["out"], "model": {"names": ["in"], "state_dict": STATE}}, tmp_path).names == (
        "in",
    )


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "a b.safetensors"
    for metadata, names in (
        (None, None),
        ({"format": "pt"}, None),
        ({"names": '["a", "b"]'}, ("a", "b")),
        ({"names": '{"0": "a"}'}, ("a",)),
        ({"names": "{0: 'a'}"}, None),  # another program's way
        ({"names": "[" * 100_000}, None),
        ({"names": "NaN"}, None),
        ({"names": "3"}, None),
    ):
        save_file(STATE, path, metadata)
        found = read(path)
        assert found.names == names and found.metadata == (metadata or {})
        assert {key: tensor.item() for key, tensor in found.tensors.items()} == {
            k: t.item() for k, t in STATE.items()
        }


# ------------------------------------------------------------------------------------- damaged headers

HEADER = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}


def with_header(header: object, data: bytes = bytes(8), length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(**changes: object) -> dict[str, object]:
    return {"a": HEADER["a"] | changes}


@pytest.mark.parametrize(
    "data",
    [
        with_header(HEADER, bytes(7)),
        with_header(HEADER, bytes(9)),
        with_header(HEADER, length=2**63),
        with_header(HEADER, length=10**6),
        with_header(HEADER, length=10),
        with_header(entry(shape=[3])),
        with_header(entry(shape=[2**62, 2**62])),
        with_header(entry(shape=[-2])),
        with_header(entry(data_offsets=[0, 2**60])),
        with_header(entry(data_offsets=[8, 0])),
        with_header(entry(data_offsets=[4, 12])),
        with_header(entry(dtype="F31")),
        with_header({"a": {}}),
        with_header({"a": 3}),
        with_header(HEADER | {"b": HEADER["a"]}),  # two tensors in one place
        with_header({"__metadata__": {"names": ["a"]}, **HEADER}),
        with_header({"__metadata__": "x", **HEADER}),
        with_header(b"{" * 10_000),
        with_header(b'{"a":\xff}'),
        with_header(b"{]"),
    ],
)
def test_lying_headers(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(with_header(HEADER))
    assert list(read(path).tensors) == ["a"]
    path.write_bytes(data)
    assert f"the file has {len(data):,} bytes" in refusal(path)


@pytest.mark.parametrize("left", [1, 7, 8, 9, 20, 100, 150])
def test_cut_safetensors(left: int, tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(save(STATE)[:left])
    refusal(path)


# ----------------------------------------------------------------------------------- other kinds of file


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.pt", b"", "the file is empty (0 bytes)"),
        ("a.pt", b"<!DOCTYPE html><html lang=en>", "a web page"),
        ("a.pt", b"\n\n  <html>", "a web page"),
        ("a.pt", b"\xef\xbb\xbf<!doctype html>\r\n", "a web page"),
        ("a.safetensors", b"<!-- x --><html>" * 100, "a web page"),
        ("a.pt", b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "a web page"),
        ("a.pt", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "a Git LFS pointer"),
        ("a.pt", b"Not Found", "a text, not a weights file (it begins 'Not Found')"),
        ("a.pt", b'{"message":"Not Found",\t"status": 404}\r\n', "a text"),
        ("a.pt", b"cat\ndog\nbird\n", "a text"),
        ("a.pt", b"x" * 600, "a text"),
        ("a.onnx", b"\x08\x08\x12\x07pytorch\x1a\x052.1.0", "an ONNX file"),
        ("a.pt", b"\x08\x0a\x12\x07pytorch", "an ONNX file"),
        ("a.engine", b"ftrt\x00\x00\x00\x00", "a TensorRT engine"),
        ("a.engine", b"\x10\x02\x00\x00\x00\x00\x00\x00\xff\xff", "a TensorRT engine"),
        ("a.tflite", b"\x1c\x00\x00\x00TFL3", "a TensorFlow Lite file"),
        ("a.xml", b'<?xml version="1.0"?>\n<net name="Model0" version="11">', "an OpenVINO description"),
        ("a.pt", b"\x89HDF\r\n\x1a\n", "a Keras (HDF5) file"),
        ("a.pt", b"\x1f\x8b\x08\x00", "a gzip archive"),
        ("a.yaml", b"nc: 80\n", "a YAML file"),
        ("a.pt", b"\x00" * 100, "not a weights file"),
        ("a.pt", "只是文字".encode(), "not a weights file"),
        ("a.jpg", b"\xff\xd8\xff\xe0\x00\x10JFIF", "not a weights file"),
        ("a.npz", b"PK\x05\x06" + bytes(18), "a zip archive, but none of torch.save"),
    ],
)
def test_other_kinds_are_named(name: str, data: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert why in refusal(tmp_path / name)


def test_the_contents_count_more_than_the_ending(tmp_path: Path) -> None:
    torch.save(STATE, tmp_path / "a.onnx")
    save_file(STATE, tmp_path / "b.yaml")
    assert len(read(tmp_path / "a.onnx").tensors) == len(read(tmp_path / "b.yaml").tensors) == 2


def test_no_file(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "weights 名.pt")
    assert "a folder" in refusal(tmp_path)
    with pytest.raises(CheckpointError, match="cannot be opened"):
        read(Path("a\0b.pt"))
    (tmp_path / "file").touch()
    assert "cannot be opened" in refusal(tmp_path / "file" / "a.pt")


@pytest.mark.skipif(os.name != "posix", reason="needs named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    assert "not an ordinary file" in refusal(tmp_path / "pipe.pt")
