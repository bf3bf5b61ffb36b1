"""Key tables: the names that other projects gave to the same tensors, and ours.

A layout maps layer numbers to our paths. Numbers are counted from the file's first layer: some files start with
a layer that does nothing and shifts every number by one. Facts of the released files; see also ``blocks``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from yolov9kit.model.variants import VARIANTS, Form, Size

Source = Literal["official", "ultralytics", "mit", "yolov9kit"]

_BACKBONE = ("conv1", "conv2", "elan2", "down3", "elan3", "down4", "elan4", "down5", "elan5")
_TOP_DOWN = ("spp", "elan4", "elan3")
_BOTTOM_UP = ("down4", "elan4", "down5", "elan5")


def _rows(path: str, blocks: tuple[str, ...], numbers: tuple[int, ...]) -> dict[int, str]:
    return {number: f"{path}.{block}" for number, block in zip(numbers, blocks, strict=True)}


@dataclass(frozen=True)
class Layout:
    """One arrangement of layers. ``heads``: layer number and tower name inside it -> our tower."""

    name: str
    sizes: tuple[str, ...]
    form: Form
    paths: Mapping[int, str]
    heads: Mapping[tuple[int, str], str]

    @property
    def last(self) -> int:
        return max(number for number, _ in self.heads)


_TRUNK = _rows("backbone", _BACKBONE, tuple(range(9)))
_NECK = _rows("top_down", _TOP_DOWN, (9, 12, 15)) | _rows("bottom_up", _BOTTOM_UP, (16, 18, 19, 21))
_AUX_REVERSIBLE = _rows("aux.route", ("3", "4", "5"), (22, 23, 24)) | _rows(
    "aux.backbone", _BACKBONE, (25, 26, 27, 28, 30, 31, 33, 34, 36)
)
_E_TRUNK = (
    _TRUNK
    | _rows("reversible.route", ("1", "2", "3", "4", "5"), (9, 10, 11, 12, 13))
    | _rows("reversible.backbone", _BACKBONE, (14, 16, 18, 19, 21, 22, 24, 25, 27))
)


def _deployed_head(layer: int) -> dict[tuple[int, str], str]:
    return {(layer, "cv2"): "head.box", (layer, "cv3"): "head.cls"}


def _dual_head(layer: int) -> dict[tuple[int, str], str]:
    return {
        (layer, "cv2"): "aux_head.box",
        (layer, "cv3"): "aux_head.cls",
        (layer, "cv4"): "head.box",
        (layer, "cv5"): "head.cls",
    }


OFFICIAL = (
    Layout("gelan", ("t", "s", "m", "c"), "deployed", _TRUNK | _NECK, _deployed_head(22)),
    Layout(
        "yolov9-t/s", ("t", "s"), "training",
        _TRUNK | _NECK | _rows("aux", _TOP_DOWN, (22, 25, 28)), _dual_head(29),
    ),
    Layout("yolov9-m/c", ("m", "c"), "training", _TRUNK | _NECK | _AUX_REVERSIBLE, _dual_head(37)),
    Layout(
        "gelan-e", ("e",), "deployed",
        _E_TRUNK | _rows("top_down", _TOP_DOWN, (28, 31, 34))
        | _rows("bottom_up", _BOTTOM_UP, (35, 37, 38, 40)),
        _deployed_head(41),
    ),
    Layout(
        "yolov9-e", ("e",), "training",
        _E_TRUNK | _rows("aux", _TOP_DOWN, (28, 31, 34)) | _rows("top_down", _TOP_DOWN, (35, 38, 41))
        | _rows("bottom_up", _BOTTOM_UP, (42, 44, 45, 47)),
        _dual_head(48),
    ),
)  # fmt: skip
"""The original layouts, which Ultralytics' deployed files share."""


def _mit_heads(main: int, aux: int | None) -> dict[tuple[int, str], str]:
    heads = {(main, "box"): "head.box", (main, "cls"): "head.cls"}
    return heads if aux is None else heads | {(aux, "box"): "aux_head.box", (aux, "cls"): "aux_head.cls"}


MIT = (
    Layout("v9, no auxiliary branch", ("t", "s", "m", "c"), "deployed", _TRUNK | _NECK, _mit_heads(22, None)),
    Layout(
        "v9-t/s", ("t", "s"), "training",
        _TRUNK | _NECK | _rows("aux", _TOP_DOWN, (23, 26, 29)), _mit_heads(22, 30),
    ),
    Layout(
        "v9-m/c", ("m", "c"), "training",
        _TRUNK | _NECK | {number + 1: path for number, path in _AUX_REVERSIBLE.items()}, _mit_heads(22, 38),
    ),
)  # fmt: skip
"""The MIT rewrite's layouts: the auxiliary part comes after the head."""


@dataclass(frozen=True)
class Recognised:
    """A file's tensors under our names. ``file_keys`` are their names in the file.

    ``constants`` and ``foreign`` are keys of the file: of constants, which are no weights, and of tensors that have no
    place in the layout. ``averaged``: the moving average was taken, and a running model left.
    """

    tensors: Mapping[str, Tensor]
    file_keys: Mapping[str, str]
    size: Size
    form: Form
    source: Source
    constants: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    averaged: bool = False


class UnknownLayoutError(ValueError):
    """The tensors are those of no YOLOv9. The message says why, without the file's name."""


CONSTANT = "constant ramp 0..15 of the decoding, not a weight"

_OWN_ROOTS = "backbone|reversible|top_down|bottom_up|head|aux|aux_head"
_OWN_KEY = re.compile(rf"(?:(?:model|module)\.)*(?P<own>(?:{_OWN_ROOTS})\..+)")
_LAYER_KEY = re.compile(r"(?P<prefix>(?:[A-Za-z_]\w*\.)*?)(?P<layer>[0-9]{1,3})\.(?P<rest>.+)")
_STEM, _PLAIN_ELAN2 = "backbone.conv1.conv.weight", "backbone.elan2.cv2.conv.weight"


@dataclass(frozen=True)
class _Key:
    """``model.module.7.cv1.conv.weight``: prefix ``model.module.``, layer 7, the rest."""

    prefix: str
    layer: int
    rest: str


def recognise(tensors: Mapping[str, Tensor]) -> Recognised:
    """Find the layout that a file's tensors have, whichever prefixes stand before it.

    Raises:
        UnknownLayoutError: none of them.
    """
    own = _own_names(tensors)
    if own is not None:
        form: Form = "training" if any(name.startswith("aux_head.") for name in own) else "deployed"
        reversible = any(name.startswith("reversible.") for name in own)
        named = {name: tensors[key] for name, key in own.items()}
        size = _size_of(named, get_args(Size), reversible)
        return Recognised(named, own, size, form, "yolov9kit")
    keys, layout, averaged = _one_model(tensors)
    first = min(key.layer for key in keys.values())
    own, constants, foreign = {}, [], []
    for file_key, key in keys.items():
        name = _own_name(layout, key.layer - first, key.rest)
        if _is_constant(key.rest, tensors[file_key]):
            constants.append(file_key)
        elif name is None or name in own:
            foreign.append(file_key)
        else:
            own[name] = file_key
    if not averaged:
        foreign += [key for key in tensors if key not in keys]
    named = {name: tensors[key] for name, key in own.items()}
    size = _size_of(named, layout.sizes, reversible=layout.sizes == ("e",))
    foreign_source: Source = "official" if box_groups(named) > 1 else "ultralytics"
    source: Source = "mit" if layout in MIT else foreign_source
    return Recognised(named, own, size, layout.form, source, tuple(constants), tuple(foreign), averaged)


def box_groups(tensors: Mapping[str, Tensor]) -> int:
    """Groups of the box towers (official 4, Ultralytics 1), from tensors under our names: they say, not a constant."""
    weight = tensors.get("head.box.0.1.conv.weight")
    return 1 if weight is None or weight.ndim != 4 or weight.shape[0] == weight.shape[1] else 4


def _own_names(tensors: Mapping[str, Tensor]) -> dict[str, str] | None:
    """Our tensor name -> the file's key, None if these are not our names."""
    matches = {key: _OWN_KEY.fullmatch(key.replace("_orig_mod.", "")) for key in tensors}
    own = {match["own"]: key for key, match in matches.items() if match is not None}
    return own if len(own) == len(tensors) and _STEM in own else None


def _one_model(tensors: Mapping[str, Tensor]) -> tuple[dict[str, _Key], Layout, bool]:
    """The keys of one model, its layout, and whether it is the moving average of another one in the same file."""
    groups: dict[str, dict[str, _Key]] = {}
    for file_key in tensors:
        match = _LAYER_KEY.fullmatch(file_key.replace("_orig_mod.", ""))
        if match:
            key = _Key(match["prefix"], int(match["layer"]), match["rest"])
            groups.setdefault(key.prefix, {})[file_key] = key
    found = {prefix: _layout_of(list(keys.values())) for prefix, keys in groups.items()}
    models = [(prefix, layout) for prefix, layout in found.items() if layout is not None]
    averages = [item for item in models if any(part.startswith("ema") for part in item[0].split("."))]
    if len(models) == 1 or (
        len(averages) == 1 and sum(len(groups[prefix]) for prefix, _ in models) == len(tensors)
    ):
        prefix, layout = (averages or models)[0]
        return groups[prefix], layout, len(models) > 1
    if models:
        prefixes = ", ".join(repr(prefix[:40]) for prefix, _ in models)
        raise UnknownLayoutError(f"it holds several models, under {prefixes}.\nSave one of them alone.")
    ends = [_last(list(keys.values())) for keys in groups.values()]
    ours = ", ".join(str(layout.last + 1) for layout in OFFICIAL)
    why = "its tensors have no layer numbers"
    if ends:
        why = f"it has {max(ends) + 1} numbered layers, not one of {ours}"
    raise _nothing_fits(tensors, why)


def _nothing_fits(tensors: Mapping[str, Tensor], why: str) -> UnknownLayoutError:
    key, tensor = next(iter(tensors.items()))
    return UnknownLayoutError(
        f"not YOLOv9: {why}.\n"
        f"0 of {len(tensors):,} tensors fit; first misfit: {key[:100]!r} {list(tensor.shape)}."
    )


def _last(keys: Sequence[_Key]) -> int:
    """Number of the last layer, counted from the first that has tensors."""
    return max(key.layer for key in keys) - min(key.layer for key in keys)


def _layout_of(keys: Sequence[_Key]) -> Layout | None:
    """The layout that has its head where the last layer is."""
    last, end = _last(keys), max(key.layer for key in keys)
    mit = any(key.rest.startswith("heads.") for key in keys)
    towers = {"box", "cls"} if mit else {key.rest.partition(".")[0] for key in keys if key.layer == end}
    for layout in MIT if mit else OFFICIAL:
        if layout.last == last and any((last, tower) in layout.heads for tower in towers):
            return layout
    return None


def _size_of(tensors: Mapping[str, Tensor], candidates: Sequence[str], reversible: bool) -> Size:
    """The size whose stem and second stage are the file's."""
    stem = tensors[_STEM].shape[0] if _STEM in tensors and tensors[_STEM].ndim else 0
    for size in get_args(Size):
        row = VARIANTS[size]
        same = (row.stem[0], row.elan2_plain, row.reversible_main) == (
            stem,
            _PLAIN_ELAN2 in tensors,
            reversible,
        )
        if same and size in candidates:
            return size
    known = ", ".join(f"{row.stem[0]} ({size})" for size, row in VARIANTS.items())
    raise _nothing_fits(tensors, f"its first convolution has {stem} channels, YOLOv9's {known}")


def _is_constant(rest: str, tensor: Tensor) -> bool:
    """Whether a tensor of the file is the ramp that stands among the weights of the official and the MIT heads."""
    named = re.fullmatch(r"dfl2?\.conv\.weight|heads\.\d\.anc2vec\..+", rest)
    return named is not None and tensor.numel() == 16 and tensor.flatten().tolist() == list(range(16))


def mit_to_official(rest: str) -> str:
    """Names inside a block: ``conv3.0.bottleneck.1.conv1.conv2.bn.bias`` -> ``cv3.0.m.1.cv1.conv2.bn.bias``."""
    head = re.match(r"heads\.(\d)\.(anchor|class)_conv\.(\d)\.(.+)$", rest)
    if head:
        level, tower, place, tail = head.groups()
        return f"{'box' if tower == 'anchor' else 'cls'}.{level}.{place}.{tail}"
    words = rest.split(".")
    renamed, inside_rep_conv = [], False
    for i, word in enumerate(words):
        if word == "bottleneck":
            renamed.append("m")
        elif re.fullmatch(r"conv\d", word) and not inside_rep_conv:
            renamed.append(f"cv{word[4:]}")
            # a bottleneck's first convolution is a RepConv, whose branches keep conv1 and conv2
            inside_rep_conv = len(words) > i + 1 and re.fullmatch(r"conv\d", words[i + 1]) is not None
        elif word == "conv" and words[i + 1 : i + 2] in (["conv"], ["bn"]):
            renamed.append("cv1")  # an AConv's only convolution
        else:
            renamed.append(word)
    return ".".join(renamed)


def _own_name(layout: Layout, layer: int, rest: str) -> str | None:
    """Our name of a tensor, None if the layout has no place for it."""
    rest = mit_to_official(rest) if layout in MIT else rest
    tower, _, tail = rest.partition(".")
    if (layer, tower) in layout.heads:
        return f"{layout.heads[layer, tower]}.{tail}"
    path = layout.paths.get(layer)
    return None if path is None else f"{path}.{rest}"


def layer_paths(size: str) -> dict[int, tuple[str, ...]]:
    """Official layer numbers of the training form, as in its model files, and our paths of each.

    Sizes m, c and e begin with a layer that does nothing. The last number is the head: both heads of ours.
    """
    layout = next(layout for layout in OFFICIAL if size in layout.sizes and layout.form == "training")
    shift = 1 if size in ("m", "c", "e") else 0
    paths = {number + shift: (path,) for number, path in layout.paths.items()}
    return paths | {layout.last + shift: ("head", "aux_head")}
