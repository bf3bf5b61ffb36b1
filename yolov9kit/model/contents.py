"""What a weights file holds, before anything is made of it: its tensors, class names and metadata."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from yolov9kit.errors import CheckpointError
from yolov9kit.model.pickles import damaged, module_tensors, read_pickle, shown
from yolov9kit.model.unpickler import Shell


@dataclass(frozen=True)
class Contents:
    """Tensors under the file's own keys, and what it says about them.

    ``averaged``: the moving average was taken, and a running model left.
    """

    tensors: Mapping[str, Tensor]
    names: tuple[str, ...] | None = None
    metadata: Mapping[str, str] | None = None
    averaged: bool = False


_OTHER_KINDS: Mapping[bytes, str] = {
    b"\x08": "an ONNX file",
    b"ftrt": "a TensorRT engine",
    b"ptrt": "a TensorRT engine",
    b"\x89HDF": "a Keras (HDF5) file",
    b"GGUF": "a GGUF file",
    b"\x1f\x8b": "a gzip archive",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7-Zip archive",
}
_OTHER_ENDINGS: Mapping[str, str] = {
    ".onnx": "an ONNX file",
    ".engine": "a TensorRT engine",
    ".trt": "a TensorRT engine",
    ".plan": "a TensorRT engine",
    ".tflite": "a TensorFlow Lite file",
    ".xml": "an OpenVINO description",
    ".yaml": "a YAML file",
    ".yml": "a YAML file",
}

_PLAIN_PICKLE = re.compile(rb"c[\w.]+\n[\w.]+\n[p-r(]")
"""A pickle without protocol number that begins with a name. It is text, but must be refused as what it is."""


def read(path: Path, admit: Iterable[str] = ()) -> Contents:
    """Open a file of any kind that holds weights; ``admit`` as for ``read_pickle``.

    Raises:
        CheckpointError: no weights file, damaged, or not trusted. The message names the file and says which.
    """
    try:
        if path.is_dir():
            raise CheckpointError(f"{path}: a folder. Name a weights file in it.")
        if path.exists() and not path.is_file():
            raise CheckpointError(f"{path}: not an ordinary file.")
        with path.open("rb") as file:
            start = file.read(512)
    except FileNotFoundError:
        raise CheckpointError(
            f"{path}: no such file. `yolov9kit fetch` lists weights that can be downloaded."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        why = error.strerror if isinstance(error, OSError) else error
        raise CheckpointError(f"{shown(str(path))}: cannot be opened ({why}).") from None
    _refuse_other_kinds(path, start)
    return _read_safetensors(path) if start[8:9] == b"{" else _read_torch(path, admit)


def _refuse_other_kinds(path: Path, start: bytes) -> None:
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not start:
        raise CheckpointError(f"{path}: the file is empty (0 bytes).\nCopy or download it again.")
    if text.startswith(b"<") and b"<net" not in text:
        raise CheckpointError(
            f"{path}: a web page saved under the name of a weights file.\n"
            "Download the file itself (on GitHub: the release asset, not the page about it)."
        )
    if text.startswith(b"version https://git-lfs"):
        raise CheckpointError(
            f"{path}: a Git LFS pointer, not the file itself.\nRun `git lfs pull` in its repository."
        )
    if start.startswith((b"PK", b"\x80")) or start[8:9] == b"{" or _PLAIN_PICKLE.match(start):
        return
    kinds = [kind for magic, kind in _OTHER_KINDS.items() if start.startswith(magic)]
    kind = kinds[0] if kinds else _OTHER_ENDINGS.get(path.suffix.lower())
    if kind is not None:
        raise CheckpointError(
            f"{path}: {kind}, not a weights file.\nUse the .pt or .safetensors file that it was made from."
        )
    if start.isascii() and "".join(start.decode().split()).isprintable():
        raise CheckpointError(
            f"{path}: a text, not a weights file (it begins {shown(start.decode(), 40)!r}).\n"
            "If it was downloaded, this is the server's answer: download it again."
        )


def _read_safetensors(path: Path) -> Contents:
    from safetensors import safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = dict(file.metadata() or {})
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a mapping
    except Exception as error:  # a damaged header can raise nearly anything
        raise CheckpointError(damaged(path, error)) from None
    try:
        names = _names_from(json.loads(metadata.get("names", "null")))
    except (ValueError, RecursionError):  # other programs may write them in another way
        names = None
    return Contents(tensors, names, metadata)


_NESTED = ("ema", "model", "state_dict", "model_state_dict", "module")


def _read_torch(path: Path, admit: Iterable[str]) -> Contents:
    content = read_pickle(path, admit)
    names, averaged = None, False
    for _ in range(4):  # ema -> model -> state_dict: never nested deeper
        if isinstance(content, Shell):
            return _contents_of_module(content, path, names, averaged)
        if not isinstance(content, dict):
            break
        names = _names_from(content.get("names")) or names
        inside = [k for k in _NESTED if isinstance(content.get(k), (Shell, dict))]
        if not inside:
            tensors = {key: value for key, value in content.items() if isinstance(value, Tensor)}
            return Contents(tensors, names, averaged=averaged)
        averaged = averaged or inside[:2] == ["ema", "model"]
        content = content[inside[0]]
    raise CheckpointError(
        f"{path}: holds no weights (found {type(content).__name__}).\nSave a state dict or a model."
    )


def _contents_of_module(module: Shell, path: Path, names: tuple[str, ...] | None, averaged: bool) -> Contents:
    try:
        tensors = module_tensors(module)
    except ValueError as error:
        raise CheckpointError(damaged(path, error)) from None
    children = module.state.get("_modules")
    wrapped = children.get("module") if isinstance(children, dict) else None  # for several GPUs
    inner = wrapped if isinstance(wrapped, Shell) else module
    return Contents(tensors, _names_from(inner.state.get("names")) or names, averaged=averaged)


def _names_from(value: Any) -> tuple[str, ...] | None:
    """Class names from a list, or from a dict of index to name."""
    if isinstance(value, dict):
        by_index = {str(key): name for key, name in value.items() if isinstance(key, (str, int))}
        value = [by_index.get(str(i)) for i in range(len(value))]
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, (str, int, float)) for name in value):
        return None
    return tuple(map(str, value)) or None
