"""Tensors out of ``.pt`` files without running any code of the file.

``torch.load(weights_only=True)`` refuses files that hold a pickled module, and nearly every detector file in
circulation does. This reader admits a list of *full* names, whose objects become empty shells; containers and
tensors become real, and any other name is refused by name. See ``unpickler`` for why nothing can act.
"""

import io
import shlex
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from yolov9kit.errors import CheckpointError
from yolov9kit.model.unpickler import RefusedError, Shell, Unpickler

_OFFICIAL_CLASSES = """
    models.common: AConv ADown AutoShape CBFuse CBLinear Concat Conv DFL ELAN1 RepConvN RepNBottleneck RepNCSP
        RepNCSPELAN4 SP SPPELAN Silence
    models.yolo: DDetect Detect DetectionModel DualDDetect DualDetect Model TripleDDetect
    models.experimental: Ensemble
    utils.loss: ComputeLoss
    utils.loss_tal: BboxLoss ComputeLoss
    utils.loss_tal_dual: BboxLoss ComputeLoss
    utils.tal.assigner: TaskAlignedAssigner
"""
_OFFICIAL_PACKAGES = ("", "yolo9.", "yolov9.")
"""The original repository's modules, and the names under which it is packaged."""

_OTHER_CLASSES = """
    ultralytics.nn.modules.block: AConv ADown CBFuse CBLinear DFL ELAN1 RepBottleneck RepCSP RepNCSPELAN4 SPPELAN
        Silence
    ultralytics.nn.modules.conv: Concat Conv RepConv
    ultralytics.nn.modules.head: Detect
    ultralytics.nn.tasks: DetectionModel
    ultralytics.utils: IterableSimpleNamespace
    ultralytics.utils.loss: BboxLoss DFLoss v8DetectionLoss
    ultralytics.utils.tal: TaskAlignedAssigner
    torch.nn.modules.activation: Identity LeakyReLU ReLU SiLU Sigmoid
    torch.nn.modules.batchnorm: BatchNorm2d SyncBatchNorm
    torch.nn.modules.container: ModuleDict ModuleList Sequential
    torch.nn.modules.conv: Conv2d
    torch.nn.modules.linear: Identity
    torch.nn.modules.loss: BCEWithLogitsLoss CrossEntropyLoss
    torch.nn.modules.pooling: AdaptiveAvgPool2d AvgPool2d MaxPool2d
    torch.nn.modules.upsampling: Upsample
    torch.nn.parallel.data_parallel: DataParallel
    torch.nn.parallel.distributed: DistributedDataParallel
    torch: bfloat16 device dtype float16 float32 float64 int32 int64 uint8
    torch.torch_version: TorchVersion
    argparse: Namespace
    collections: Counter deque
    datetime: date datetime timedelta timezone
    pathlib: Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath
    pathlib._local: Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath
    numpy: dtype float32 float64 int32 int64 ndarray
    numpy.core.multiarray: _reconstruct scalar
    numpy._core.multiarray: _reconstruct scalar
    _codecs: encode
    builtins: bool bytearray bytes complex dict float frozenset int list range slice str tuple
    __builtin__: bool bytearray bytes complex dict float frozenset int list long slice str tuple unicode xrange
    typing: Any
    omegaconf.base: ContainerMetadata Metadata
    omegaconf.dictconfig: DictConfig
    omegaconf.listconfig: ListConfig
    omegaconf.nodes: AnyNode BooleanNode FloatNode IntegerNode StringNode
    lightning.fabric.utilities.data: AttributeDict
    lightning.pytorch.utilities.parsing: AttributeDict
    lightning_fabric.utilities.data: AttributeDict
    pytorch_lightning.utilities.parsing: AttributeDict
"""


def _full_names(listing: str) -> list[str]:
    names, module = [], ""
    for word in listing.split():
        if word.endswith(":"):
            module = word[:-1]
        else:
            names.append(f"{module}.{word}")
    return names


SHELLS = frozenset(
    [package + name for package in _OFFICIAL_PACKAGES for name in _full_names(_OFFICIAL_CLASSES)]
    + _full_names(_OTHER_CLASSES)
)
"""Full names that become empty shells, functions among them: what they would have made is not needed."""


def read_pickle(path: Path, admit: Iterable[str] = ()) -> Any:
    """The object in a file written by ``torch.save``: containers, tensors (CPU), names and shells.

    ``admit``: further full class names (``package.module.Class``) to read as empty shells.

    Raises:
        CheckpointError: the file is damaged, or asks for a name that is not admitted. Nothing was executed.
    """
    admitted = SHELLS.union([admit] if isinstance(admit, str) else admit)
    try:
        with path.open("rb") as file:
            # Its first bytes decide, as for torch.load: the mark of an archive's end may also stand among the
            # numbers of a file in the older form, where zipfile.is_zipfile would find it.
            if file.read(4) in (b"PK\x03\x04", b"PK\x05\x06"):
                if not zipfile.is_zipfile(file):
                    raise EOFError("its end is missing")
                return _read_zip(path, admitted)
            file.seek(0)
            return _read_legacy(file, path, admitted)
    except CheckpointError:
        raise
    except RefusedError as refused:
        raise CheckpointError(_refusal(path, refused)) from None
    except Exception as error:  # a damaged file can raise nearly anything
        expected = isinstance(error, (zipfile.BadZipFile, EOFError, OSError))
        raise CheckpointError(
            damaged(path, error, "" if expected else f"{type(error).__name__}: ")
        ) from error


def _refusal(path: Path, refused: RefusedError) -> str:
    if refused.acts:
        return (
            f"{path}: refused, it asks for {shown(refused.names[-1])}, which could run code and has no place in a "
            "weights file. Nothing was executed.\n"
            "Use a copy from a source that you trust; do not open this one with torch.load(weights_only=False)."
        )
    admit = " ".join(f"--admit {name}" for name in refused.names)
    names = ", ".join(refused.names[:3])
    more = f" and {len(refused.names) - 3} more" if len(refused.names) > 3 else ""
    return (
        f"{path}: refused, it holds a pickled model with classes that are not known here: {names}{more}. "
        "Nothing was executed.\n"
        "If they are parts of the model, import them once, as empty shells that run nothing: "
        f"yolov9kit convert {shlex.quote(str(path))} OUT.safetensors {admit}"
    )


def damaged(path: Path, why: object, kind: str = "") -> str:
    """The two lines about a file that breaks off or contradicts itself."""
    return (
        f"{path}: damaged or cut off ({kind}{shown(str(why), 160)}; the file has {path.stat().st_size:,} bytes).\n"
        "Copy or download it again and compare its size or digest with the source."
    )


def shown(text: str, limit: int = 100) -> str:
    """Text of a file as it may stand in a message: one line, no control characters, not too long."""
    line = "".join(c if c.isprintable() else "?" for c in text[:limit])
    return line + ("..." if len(text) > limit else "")


# ------------------------------------------------------------------------------------------------- files


def _read_zip(path: Path, admitted: frozenset[str]) -> Any:
    with zipfile.ZipFile(path) as archive:
        root = _root(archive, path)
        cache: dict[str, Tensor] = {}

        def read_storage(key: str, dtype: torch.dtype, count: int) -> Tensor:
            if key not in cache:
                data = bytearray(archive.read(f"{root}data/{key}"))
                cache[key] = (
                    torch.frombuffer(data, dtype=torch.uint8) if data else torch.empty(0, dtype=torch.uint8)
                )
            size = count * dtype.itemsize
            if cache[key].numel() < size:
                raise EOFError(f"storage {shown(key)} has {cache[key].numel():,} bytes, {size:,} expected")
            return cache[key][:size].view(dtype)

        return Unpickler(io.BytesIO(archive.read(f"{root}data.pkl")), read_storage, admitted).load()


def _root(archive: zipfile.ZipFile, path: Path) -> str:
    """The folder inside a file of ``torch.save``, once it is sure that it is such a file and no trap."""
    names = archive.namelist()
    roots = {name[: -len("data.pkl")] for name in names if name.rsplit("/", 1)[-1] == "data.pkl"}
    if len(roots) != 1:
        raise CheckpointError(
            f"{path}: a zip archive, but none of torch.save ({len(roots)} entries data.pkl inside, 1 expected).\n"
            "If the weights are packed in it, unpack it first."
        )
    root = roots.pop()
    if any(name.startswith(f"{root}code/") for name in names):
        raise CheckpointError(
            f"{path}: a TorchScript program, not a weights file.\nUse the .pt file that it was exported from."
        )
    if len(set(names)) < len(names) or any(name.startswith("/") or ".." in name.split("/") for name in names):
        raise CheckpointError(
            f"{path}: refused, its archive lists a file twice or outside its folder.\n"
            "torch.save writes no such file: use a copy from a source that you trust."
        )
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > 8 * path.stat().st_size + 2**20:  # torch.save never compresses
        raise CheckpointError(
            f"{path}: refused, it has {path.stat().st_size:,} bytes and claims to unpack to {unpacked:,}.\n"
            "torch.save writes no such file: use a copy from a source that you trust."
        )
    if f"{root}byteorder" in names and archive.read(f"{root}byteorder") != b"little":
        raise CheckpointError(f"{path}: written on a big-endian machine, which is not supported.")
    return root


_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001


def _read_legacy(file: io.BytesIO | io.BufferedReader, path: Path, admitted: frozenset[str]) -> Any:
    """The stream format of torch before 1.6: four pickles, then the storages one after the other."""
    if file.read(1) not in (b"\x80", b"c"):  # the second is how a pickle without protocol number may start
        raise CheckpointError(
            f"{path}: not a weights file (it starts neither like a zip archive nor like a pickle).\n"
            "Known are .pt, .pth and .ckpt files of torch.save, and .safetensors."
        )
    file.seek(0)
    storages: dict[str, Tensor] = {}
    room = path.stat().st_size

    def read_storage(key: str, dtype: torch.dtype, count: int) -> Tensor:
        nonlocal room
        if key not in storages:
            room -= count * dtype.itemsize
            if room < 0:
                raise EOFError(f"storage {shown(key)} claims {count:,} values")
            storages[key] = torch.empty(count, dtype=dtype)  # filled below
        if (storages[key].dtype, storages[key].numel()) != (dtype, count):
            raise ValueError(f"storage {shown(key)} is described twice")
        return storages[key]

    def load() -> Any:
        return Unpickler(file, read_storage, admitted).load()

    if load() != _LEGACY_MAGIC:
        raise CheckpointError(
            f"{path}: a plain pickle, not a file of torch.save.\nSave the state dict with torch.save."
        )
    if load() != _LEGACY_PROTOCOL:
        raise CheckpointError(
            f"{path}: unknown version of the old torch.save format.\nSave it again with a newer torch."
        )
    load()  # facts about the machine it was written on
    result = load()
    keys = load()
    if not isinstance(keys, list) or set(keys) != set(storages):
        raise ValueError("its list of storages is not the list of those that it uses")
    for key in keys:
        _fill(storages[key], file, key)
    return result


def _fill(storage: Tensor, file: io.BytesIO | io.BufferedReader, key: str) -> None:
    head = file.read(8)
    size = storage.numel() * storage.element_size()
    if len(head) < 8:
        raise EOFError("it ends too early")
    if struct.unpack("<q", head)[0] != storage.numel():
        raise ValueError(f"storage {shown(key)} has another size than its tensors say")
    data = file.read(size)
    if len(data) < size:
        raise EOFError(f"storage {shown(key)} has {len(data):,} bytes, {size:,} expected")
    if data:
        storage.copy_(torch.frombuffer(bytearray(data), dtype=storage.dtype))


# ----------------------------------------------------------------------------------------------- modules

_MAX_DEPTH, _MAX_MODULES, _MAX_NAME = 64, 100_000, 200
"""A model has some thousand modules, ten deep. Crossing references could make a small file endless to walk."""


def module_tensors(module: Shell) -> dict[str, Tensor]:
    """The state dict of a pickled ``nn.Module``: its parameters and persistent buffers, by dotted name.

    Raises:
        ValueError: it is no module, or its modules are nested without end.
    """
    found: dict[str, Tensor] = {}
    waiting = [(module, "", 0)]
    for _ in range(_MAX_MODULES):
        if not waiting:
            return found
        shell, prefix, depth = waiting.pop()
        fleeting = shell.state.get("_non_persistent_buffers_set")
        buffers = _entries(shell, "_buffers", Tensor)
        if isinstance(fleeting, set):
            buffers = {name: tensor for name, tensor in buffers.items() if name not in fleeting}
        for name, tensor in (_entries(shell, "_parameters", Tensor) | buffers).items():
            found[f"{prefix}{name}"] = tensor
        children = _entries(shell, "_modules", Shell)
        if children and depth == _MAX_DEPTH:
            break
        waiting.extend((child, f"{prefix}{name}.", depth + 1) for name, child in reversed(children.items()))
    raise ValueError("modules nested without end")


def _entries(shell: Shell, kind: str, wanted: type) -> dict[str, Any]:
    """Children of one kind, by name. None stands for one that the module does without."""
    entries = shell.state.get(kind)
    if entries is None:
        return {}
    if not isinstance(entries, dict):
        raise ValueError(f"{kind} of a module is no mapping")
    for name, entry in entries.items():
        if (
            not isinstance(name, str)
            or len(name) > _MAX_NAME
            or not (entry is None or isinstance(entry, wanted))
        ):
            raise ValueError(f"{kind} of a module holds something else")
    return {name: entry for name, entry in entries.items() if entry is not None}
