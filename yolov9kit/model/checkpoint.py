"""Weights files: every YOLOv9 checkpoint in circulation in, our own safetensors out.

Reading runs no code of the file (see ``pickles``) and needs no other project. Loading is strict: a tensor that is
missing or misshapen raises with the numbers; only a change of the class count is an exception: it must be asked for.
"""

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from yolov9kit.device import to_host
from yolov9kit.errors import CheckpointError, UsageError
from yolov9kit.model.coco import COCO_NAMES
from yolov9kit.model.contents import Contents, read
from yolov9kit.model.fuse import is_fused
from yolov9kit.model.head import last_layer
from yolov9kit.model.layouts import CONSTANT, Recognised, Source, UnknownLayoutError, box_groups, recognise
from yolov9kit.model.pickles import damaged, shown
from yolov9kit.model.variants import Form, Size
from yolov9kit.model.yolov9 import YOLOv9, deployed, parameter_count

FORMAT = "yolov9kit 1"
PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class LeftOut:
    """A tensor that was not carried over, and why."""

    tensor: str
    reason: str


@dataclass(frozen=True)
class LoadReport:
    """``fitted`` of the model's ``total`` tensors came from the file; ``left_out`` names the rest, and unused ones."""

    fitted: int
    total: int
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.fitted:,} of {self.total:,} tensors fitted"]
        reasons = {
            item.reason: [i.tensor for i in self.left_out if i.reason == item.reason]
            for item in self.left_out
        }
        for reason, tensors in reasons.items():
            more = f" and {len(tensors) - 3} more" if len(tensors) > 3 else ""
            lines.append(f"left out: {', '.join(tensors[:3])}{more}: {reason}")
        return "\n".join((*lines, *self.notes))


@dataclass(frozen=True)
class Checkpoint:
    """A weights file, read. The model is in evaluation mode, on the CPU, in float32 and not fused.

    ``precision`` is the file's own ("fp16": its numbers were stored in half precision). ``provenance`` is free
    text about where the weights come from.
    """

    model: YOLOv9
    names: tuple[str, ...]
    size: Size
    form: Form
    source: Source
    report: LoadReport
    precision: str = "fp32"
    input_hw: tuple[int, int] = (640, 640)
    provenance: str = ""


def load(
    path: str | Path,
    *,
    num_classes: int | None = None,
    names: Sequence[str] | None = None,
    admit: Iterable[str] = (),
) -> Checkpoint:
    """Read any YOLOv9 weights file: official, gelan, Ultralytics, the MIT rewrite, plain state dicts, our own.

    Args:
        path: the file.
        num_classes: ask for another class count than the file's: the class outputs then start anew, everything else
            is kept, and the report names what was left out.
        names: class names to use; they ask for their own count.
        admit: further full class names of a pickled file to read as empty shells.

    Raises:
        CheckpointError: not a weights file, damaged, not trusted, not YOLOv9, or not finite. The message names the
            file, the first misfit and what to do.
    """
    path = Path(path)
    if isinstance(names, str):
        raise UsageError(f"names {names!r}: a list of names is expected, not one text")
    if names is not None and num_classes not in (None, len(names)):
        raise UsageError(f"num_classes is {num_classes}, but {len(names)} names were given")
    wanted = len(names) if names is not None else num_classes
    if wanted is not None and wanted < 1:
        raise UsageError(f"num_classes {wanted}: a detector needs at least one class")
    checkpoint = _fit(read(path, admit), path, wanted)
    return checkpoint if names is None else _with_names(checkpoint, tuple(map(str, names)))


# ---------------------------------------------------------------------------------------------- fitting

_MOST_CHANNELS, _MOST_WEIGHTS = 100_000, 2**28
"""Classes or channels, and weights: several times those of any model. A small file may claim any shape."""


def _fit(contents: Contents, path: Path, wanted_classes: int | None) -> Checkpoint:
    if not contents.tensors:
        raise CheckpointError(f"{path}: holds no tensors.\nSave a state dict or a model.")
    try:
        found = recognise(contents.tensors)
    except UnknownLayoutError as unknown:
        raise CheckpointError(f"{path}: {unknown}") from None
    model = _empty_model(found, path)
    precision = _precision(found.tensors.values())
    input_hw = _check_metadata(contents, found, model.num_classes, precision, path)
    _assign(model, found, path)
    file_classes = model.num_classes
    restarted = [] if wanted_classes in (None, file_classes) else _restart_classes(model, wanted_classes)
    names, source_of_names = _choose_names(contents.names, model.num_classes, file_classes)
    notes = []
    if contents.averaged or found.averaged:
        notes.append("the file holds a running model and its moving average: the average (ema) was taken")
    if source_of_names:
        notes.append(source_of_names)
    total = len(model.state_dict())
    left_out = (*restarted, *(LeftOut(key, CONSTANT) for key in found.constants))
    return Checkpoint(
        model=model.eval(),
        names=names,
        size=found.size,
        form=found.form,
        source=found.source,
        report=LoadReport(total - len(restarted), total, left_out, tuple(notes)),
        precision=precision,
        input_hw=input_hw,
        provenance=(contents.metadata or {}).get("provenance", ""),
    )


def model_of(tensors: Mapping[str, Tensor], path: Path) -> YOLOv9:
    """The model that these tensors are, under our own names and whole; ``path`` is where they were read.

    Raises:
        CheckpointError: they are not one model of ours.
    """
    try:
        found = recognise(tensors)
    except UnknownLayoutError as unknown:
        raise CheckpointError(f"{path}: {unknown}") from None
    model = _empty_model(found, path)
    _assign(model, found, path)
    return model


def _precision(tensors: Iterable[Tensor]) -> str:
    kinds = {tensor.dtype for tensor in tensors if tensor.is_floating_point()}
    return next((name for name, dtype in PRECISIONS.items() if kinds == {dtype}), "fp32")


def _check_metadata(
    contents: Contents, found: Recognised, num_classes: int, precision: str, path: Path
) -> tuple[int, int]:
    """The input size (height, width) that our own file states. What else it states must be true of its tensors."""
    metadata = contents.metadata or {}
    written = metadata.get("format", "")
    if not written.startswith("yolov9kit"):
        return 640, 640
    if written != FORMAT:
        raise CheckpointError(
            f"{path}: written in the format {shown(written)!r}, known here is {FORMAT!r}.\nUpdate yolov9kit."
        )
    facts = {"size": found.size, "form": found.form, "num_classes": str(num_classes), "precision": precision}
    wrong = [key for key, fact in facts.items() if metadata.get(key) != fact]
    if wrong:
        raise CheckpointError(
            f"{path}: its metadata say {wrong[0]} {shown(metadata.get(wrong[0], 'nothing'))}, "
            f"its tensors {facts[wrong[0]]}.\nThe file was changed by hand: use the original."
        )
    if contents.names is None or len(contents.names) != num_classes:
        raise CheckpointError(damaged(path, f"{num_classes} classes, but not as many names in its metadata"))
    try:
        return _valid_hw(json.loads(metadata["input_hw"]))
    except (KeyError, ValueError, TypeError, RecursionError, UsageError) as error:
        raise CheckpointError(damaged(path, f"input_hw in its metadata: {error}")) from None


def _valid_hw(sides: Sequence[int]) -> tuple[int, int]:
    if len(sides) != 2 or not all(type(n) is int and 32 <= n <= 2**15 and n % 32 == 0 for n in sides):
        raise UsageError(f"input size {shown(str(sides))}: height and width are multiples of 32")
    return sides[0], sides[1]


def _with_names(checkpoint: Checkpoint, names: tuple[str, ...]) -> Checkpoint:
    notes = tuple(note for note in checkpoint.report.notes if not note.startswith("names:"))
    return replace(checkpoint, names=names, report=replace(checkpoint.report, notes=notes))


def _choose_names(
    given: tuple[str, ...] | None, num_classes: int, file_classes: int
) -> tuple[tuple[str, ...], str | None]:
    if given and len(given) == num_classes:
        return given, None
    if given and num_classes == file_classes:
        note = f"names: the file has {len(given)} names for {num_classes} classes; numbers are used instead"
    elif num_classes == len(COCO_NAMES) == file_classes:
        return COCO_NAMES, "names: none in the file; its 80 classes are taken to be those of COCO"
    else:
        note = "names: none in the file for these classes; numbers are used instead"
    return tuple(f"class {i}" for i in range(num_classes)), note


def _empty_model(found: Recognised, path: Path) -> YOLOv9:
    """The model that the file describes, without memory for weights yet. Widths and groups are the tensors' own."""

    def rows(key: str) -> int | None:
        tensor = found.tensors.get(key)
        return tensor.shape[0] or None if tensor is not None and tensor.ndim else None

    classes = rows("head.cls.0.2.weight") or 1
    widths = [rows(f"{head}.cls.0.0.conv.weight") for head in ("head", "aux_head")]
    too_many = max(classes, *(width or 0 for width in widths)) > _MOST_CHANNELS
    if not too_many:
        with torch.device("meta"):
            model = YOLOv9(found.size, classes, found.form, box_groups(found.tensors), *widths)
        too_many = sum(tensor.numel() for tensor in model.state_dict().values()) > _MOST_WEIGHTS
    if too_many:
        raise CheckpointError(
            f"{path}: refused, its shapes claim {classes:,} classes and class towers of {widths[0] or 0:,} channels.\n"
            "No YOLOv9 is that large: use a copy from a source that you trust."
        )
    return model


def _assign(model: YOLOv9, found: Recognised, path: Path) -> None:
    """Put the file's tensors into the model; raise unless everything fits."""
    expected = model.state_dict()
    fit = {key for key, tensor in found.tensors.items() if key in expected and _fits(tensor, expected[key])}
    misfit = _first_misfit(expected, fit, found)
    if misfit:
        raise CheckpointError(
            f"{path}: {len(fit):,} of {len(expected):,} tensors fit YOLOv9-{found.size} ({found.form} form, "
            f"{found.source} layout); first misfit: {misfit}.\n"
            "Nothing was loaded: weights that fit only in part are never used silently."
        )
    state = {}
    for key, empty in expected.items():
        tensor = found.tensors[key]
        # a plain copy: a tensor of the file may be a view of a larger one, or share its numbers with another
        state[key] = torch.empty(empty.shape, dtype=empty.dtype).copy_(tensor)
        if not torch.isfinite(state[key] if empty.is_floating_point() else tensor.float()).all():
            raise CheckpointError(
                f"{path}: tensor {found.file_keys[key]} has values that are not finite: the training that wrote it "
                "had diverged.\nUse an earlier file of that run."
            )
    model.load_state_dict(state, assign=True)
    model.requires_grad_(True)


def _first_misfit(expected: Mapping[str, Tensor], fit: set[str], found: Recognised) -> str | None:
    for key, tensor in expected.items():
        if key not in fit:
            given = found.tensors.get(key)
            if given is None:
                return f"{key} {list(tensor.shape)} is missing"
            kind = "" if given.shape != tensor.shape else f" of {given.dtype}"
            return (
                f"{shown(found.file_keys[key])} is {list(given.shape)}{kind}, {list(tensor.shape)} expected"
            )
    extra = [found.file_keys[key] for key in found.tensors if key not in expected] + list(found.foreign)
    return f"{shown(extra[0])} has no place in it" if extra else None


def _fits(tensor: Tensor, expected: Tensor) -> bool:
    """Same shape; weights are floating numbers. Counters may be: some averages turn them into such."""
    return tensor.shape == expected.shape and (
        tensor.is_floating_point() or not (expected.is_floating_point() or tensor.is_complex())
    )


def _restart_classes(model: YOLOv9, num_classes: int) -> list[LeftOut]:
    """New class outputs, everything else stays; what was left out."""
    reason = f"class outputs start anew for {num_classes} classes, the file has {model.num_classes}"
    left_out = []
    for name, head in (("head", model.head), ("aux_head", model.aux_head)):
        if head is not None:
            for level, tower in enumerate(head.cls):
                assert isinstance(tower, nn.Sequential)  # for the type checker
                tower[-1] = nn.Conv2d(last_layer(tower).in_channels, num_classes, 1)
                left_out += [LeftOut(f"{name}.cls.{level}.2.{kind}", reason) for kind in ("weight", "bias")]
            head.start_class_biases()
    model.num_classes = num_classes
    return left_out


# ---------------------------------------------------------------------------------------------- writing


def save(
    model: YOLOv9,
    path: str | Path,
    *,
    names: Sequence[str],
    precision: str = "fp32",
    input_hw: tuple[int, int] = (640, 640),
    provenance: str = "",
) -> Path:
    """Write our own ``.safetensors``: tensors, and size, form, names, input size, precision, provenance as metadata.

    The file appears complete or not at all (written beside, then renamed).

    Raises:
        UsageError: a fused model, an unknown precision, a wrong number of names, another ending.
        CheckpointError: a value is not finite (also after rounding to ``precision``), or the disk refused.
    """
    path = Path(path)
    data = _encoded(model, path, names, precision, input_hw, provenance)
    replace_file(path, data)
    return path


def _encoded(
    model: YOLOv9,
    path: Path,
    names: Sequence[str],
    precision: str,
    input_hw: tuple[int, int],
    provenance: str,
) -> bytes:
    _check_target(path, precision)
    if isinstance(names, str) or len(names) != model.num_classes:
        raise UsageError(f"{path}: {len(names)} names for {model.num_classes} classes")
    if is_fused(model):
        raise UsageError(
            f"{path}: a fused model cannot be saved; save the model that it was fused from, it can be trained further"
        )
    tensors = {}
    for key, tensor in to_host(model.state_dict()).items():
        dtype = PRECISIONS[precision] if tensor.is_floating_point() else tensor.dtype
        tensors[key] = tensor.to(dtype)
        if not torch.isfinite(tensors[key]).all():
            raise CheckpointError(
                f"{path}: not written, tensor {key} has values that are not finite in {precision}."
            )
    return _serialised(
        tensors,
        {
            "format": FORMAT,
            "size": model.size,
            "form": model.form,
            "num_classes": str(model.num_classes),
            "names": json.dumps(list(map(str, names))),
            "input_hw": json.dumps(list(_valid_hw(input_hw))),
            "precision": precision,
            "provenance": provenance.encode("utf-8", "replace").decode(),  # file names may be no valid text
        },
    )


def _serialised(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """safetensors, with the metadata in a fixed order: equal contents are equal files."""
    from safetensors.torch import save as serialise

    data = serialise(dict(tensors), dict(metadata))
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(metadata)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # the numbers start at a multiple of 8
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def _check_target(path: Path, precision: str) -> None:
    if path.suffix.lower() != ".safetensors":
        raise UsageError(f"{path}: weights are written as .safetensors; choose a name with that ending")
    if precision not in PRECISIONS:
        raise UsageError(f"{path}: precision {precision!r}; weights are stored as {', '.join(PRECISIONS)}")


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A new file in the same folder, which takes the place of ``path`` at the end, or goes if something fails."""
    new = path.with_name(f".{secrets.token_hex(4)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield new
        os.replace(new, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written ({error.strerror or error}).") from None
    finally:
        with suppress(OSError):
            new.unlink()


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())  # or a power cut could leave the name without the contents


def _sync_folder(folder: Path) -> None:
    """Put a renaming on the disk, or a power cut could undo it. Only POSIX systems open folders."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """All of it or nothing: written beside, put on the disk, renamed.

    Raises:
        CheckpointError: the disk refused. What was there before is still there.
    """
    with _beside(path) as new:
        _write(new, data)


@dataclass(frozen=True)
class Conversion:
    """What ``convert`` wrote, and the proof: largest differences of raw maps between the two files' models."""

    path: Path
    checkpoint: Checkpoint
    parameters_before: int
    parameters_after: int
    max_difference: float


def convert(
    source: str | Path,
    target: str | Path,
    *,
    precision: str | None = None,
    overwrite: bool = False,
    admit: Iterable[str] = (),
) -> Conversion:
    """Write the deployed form of any checkpoint as ``.safetensors``, after proving equal outputs.

    The new file is read back, and both models see the same five random pictures in float32: the raw maps of the main
    branch must be equal within 1e-5 (nothing is rounded unless ``precision`` asks for fewer bits than the file has; the
    bound is then 5 % of the largest value, and the difference is returned).

    Raises:
        CheckpointError, UsageError: as ``load`` and ``save``; the target exists; the outputs differ.
    """
    source, target = Path(source), Path(target)
    _check_target(target, precision or "fp32")
    if os.path.exists(target) and not overwrite:  # unlike the path's own method, no error where it cannot be
        raise UsageError(f"{target}: exists already; choose another name or ask for overwriting")
    before = load(source, admit=admit)
    kept = precision or before.precision
    note = f"converted from {source.name} ({before.source}, {before.form} form)"
    if before.source == "yolov9kit" and before.form == "deployed":
        provenance = before.provenance  # nothing was converted but perhaps the precision
    else:
        provenance = "; ".join(filter(None, (before.provenance, note)))
    data = _encoded(deployed(before.model), target, before.names, kept, before.input_hw, provenance)
    with _beside(target) as new:
        _write(new, data)
        after = load(new)
        difference, largest = _largest_difference(before.model, after.model)
        bound = 1e-5 if kept in (before.precision, "fp32") else 0.05 * largest
        if not difference <= bound:  # also false for NaN
            raise CheckpointError(
                f"{target}: not written, the outputs differ by {difference:.2e} (allowed {bound:.2e}) from {source}."
            )
    return Conversion(target, after, parameter_count(before.model), parameter_count(after.model), difference)


def _largest_difference(one: YOLOv9, other: YOLOv9, pictures: int = 5) -> tuple[float, float]:
    """Largest difference of the main branch's raw maps, and their largest value; NaN if anything is NaN."""
    images = torch.rand(pictures, 3, 96, 128, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        ours, theirs = (torch.cat([raw.flatten() for raw in model(images).main]) for model in (one, other))
    return float((ours - theirs).abs().max()), float(ours.abs().max())
