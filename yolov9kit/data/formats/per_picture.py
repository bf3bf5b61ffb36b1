"""Formats with a label file for each picture that names its classes: files → splits, class names and boxes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PureWindowsPath
from typing import NamedTuple

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.folder_tree import FolderTree
from yolov9kit.data.formats.image_sets import find_image_sets
from yolov9kit.data.formats.layout import SplitFiles, in_order
from yolov9kit.data.formats.named_classes import ordered_names
from yolov9kit.data.formats.pixel_rows import Box, PixelRow, boxes_of_rows, with_size
from yolov9kit.data.formats.ready import ReadyLayout
from yolov9kit.data.image import is_image_name
from yolov9kit.data.labels import LabelFile
from yolov9kit.data.yaml_file import exists, spellings, without_dots
from yolov9kit.errors import DataError
from yolov9kit.types import printable


class NamedBox(NamedTuple):
    """One object: as ``PixelRow``, but with the name of its class."""

    name: str
    box: Box
    line: int | None = None
    where: str = ""
    polygon: bool = False
    oriented: bool = False


@dataclass(frozen=True)
class PictureLabels:
    """What one label file tells.

    Attributes:
        picture: the path of its picture as written; "" where it tells none.
        size_wh: of the picture as written, with the line where that stands; None where it tells none.
        objects: a finding for each object that cannot be read.
        inside: whether the picture is stored in the label file itself.
        counts: how many of its objects are special in some way, by code: one finding a split sums them up.
    """

    path: Path
    picture: str = ""
    size_wh: tuple[int, int] | None = None
    size_line: int | None = None
    objects: tuple[NamedBox | Finding, ...] = ()
    inside: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Sentences:
    """How a format says what ``counts`` of a split hold: code → the text after the number."""

    kind: str
    told_in: str
    counted: Mapping[str, str]


class _Pair(NamedTuple):
    picture: Path
    labels: PictureLabels | None

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.picture,) if self.labels is None else (self.picture, self.labels.path)


def layout_of_files(
    file: Path, tree: FolderTree, files: Sequence[PictureLabels], words: Sentences
) -> ReadyLayout:
    """The data set of all label files below a folder.

    Each belongs to the picture of its own name, where there is none to the one that it names. Pictures without a label
    file are backgrounds. Lists in ``ImageSets`` tell the splits; without them folders called train, val and test do;
    without these everything is ``train``.

    Raises:
        DataError: a list, or the file with the order of the class names, cannot be used.
    """
    pairs, findings = _pair(tree, files, words)
    used = Counter(o.name for labels in files for o in labels.objects if isinstance(o, NamedBox))
    names, about = ordered_names(tree.root, used)
    listed, about_lists = find_image_sets(tree)
    if listed:
        splits = {
            split: [_Pair(picture, pairs.get(picture)) for picture in found.pictures]
            for split, found in listed.items()
        }
    else:
        splits, about_lists = _by_folders(file, tree, pairs)
    shares = _by_split(findings, splits, tree)
    numbers = {name: number for number, name in enumerate(names)}
    parts = {}
    for split, found in splits.items():
        lists = listed[split].lists if split in listed else ()
        own = (*(listed[split].findings if split in listed else ()), *shares[split])
        parts[split] = partial(_open, file, split, found, numbers, words, own, lists)
    return ReadyLayout(words.kind, file, names, parts, (*about, *about_lists))


# ---------------------------------------------------------------------------------- pictures and files


def _pair(
    tree: FolderTree, files: Sequence[PictureLabels], words: Sentences
) -> tuple[dict[Path, PictureLabels], list[Finding]]:
    """The label file of each picture that has one, and what is to be said of the others."""
    pairs: dict[Path, PictureLabels] = {}
    findings = []
    elsewhere = []
    waiting = []
    for labels in files:
        own = tree.pictures_for(labels.path, labels.path.stem)
        told = _last_part(labels.picture)
        own = tuple(picture for picture in own if picture.name == told) or own
        if not own:
            waiting.append(labels)
            continue
        if told and Path(told).stem != labels.path.stem:
            elsewhere.append(labels)
        findings += _claim(own, labels, pairs)
    for labels in waiting:
        named = _named_picture(tree, labels)
        findings += _claim(named, labels, pairs) if named else [_no_picture(labels)]
    if elsewhere:
        findings.append(_about_elsewhere(elsewhere, words))
    return pairs, findings


def _claim(
    pictures: Iterable[Path], labels: PictureLabels, pairs: dict[Path, PictureLabels]
) -> list[Finding]:
    found = []
    shared = list(pictures)
    for picture in shared:
        first = pairs.setdefault(picture, labels)
        if first is not labels:
            message = (
                f"belongs to {picture}, whose boxes come from {first.path}: left out, remove one of the two"
            )
            found.append(Finding("label_orphan", "warning", labels.path, message))
    if len(shared) > 1:
        message = f"shares the label file {labels.path} with {shared[0]}: rename one of the two pictures"
        found += [Finding("label_shared", "warning", picture, message) for picture in shared[1:]]
    return found


def _named_picture(tree: FolderTree, labels: PictureLabels) -> tuple[Path, ...]:
    """The picture that a file names: at that path, beside the file, or where pictures lie."""
    told = _last_part(labels.picture)
    if not told or not is_image_name(told):
        return ()
    folder = labels.path.parent
    for spelling in (*spellings(labels.picture), told):
        place = folder / spelling
        if "\0" not in spelling and is_image_name(spelling) and exists(place) and place.is_file():
            return (without_dots(place),)
    found = tree.pictures_for(labels.path, Path(told).stem)
    return tuple(picture for picture in found if picture.name == told) or found[:1]


def _no_picture(labels: PictureLabels) -> Finding:
    if labels.inside:
        message = (
            f"the picture '{labels.picture}' is no file, only stored in this one (imageData): save it there"
        )
        return Finding("picture_missing", "error", labels.path, printable(message), value=labels.picture)
    told = f" '{labels.picture}'" if labels.picture else ""
    message = f"its picture{told} was not found, by that name or by its own: left out, {len(labels.objects)} objects"
    return Finding(
        "label_orphan", "warning", labels.path, printable(message), value=printable(labels.picture)
    )


def _about_elsewhere(elsewhere: list[PictureLabels], words: Sentences) -> Finding:
    first = elsewhere[0]
    files = "this file names" if len(elsewhere) == 1 else f"{len(elsewhere)} files, this one first, name"
    message = f"{files} another picture in {words.told_in} ('{first.picture}'): that of the file's own name was taken"
    return Finding("place", "note", first.path, printable(message), value=str(len(elsewhere)))


def _last_part(text: str) -> str:
    return PureWindowsPath(text).name


# ---------------------------------------------------------------------------------------------- splits


def _by_folders(
    file: Path, tree: FolderTree, pairs: Mapping[Path, PictureLabels]
) -> tuple[dict[str, list[_Pair]], tuple[Finding, ...]]:
    """The pictures of each split, and how many belong to none where there are any splits."""
    outside = sorted(set(pairs) - set(tree.pictures))
    splits: dict[str, list[_Pair]] = defaultdict(list)
    none: list[_Pair] = []
    for picture in (*tree.pictures, *outside):
        labels = pairs.get(picture)
        split = tree.split(picture) or (tree.split(labels.path) if labels is not None else None)
        (none if split is None else splits[split]).append(_Pair(picture, labels))
    if not splits:
        return {"train": none}, ()
    if not none:
        return splits, ()
    lie = "1 picture lies" if len(none) == 1 else f"{len(none)} pictures lie"
    folders = ", ".join(in_order(set(splits)))
    message = f"{lie} in none of the folders of {folders}, left out: {none[0].picture}"
    return splits, (Finding("picture_unnamed", "warning", file, printable(message), value=str(len(none))),)


def _by_split(
    findings: Iterable[Finding], splits: Mapping[str, Sequence[_Pair]], tree: FolderTree
) -> dict[str, list[Finding]]:
    """Findings about the files of each split; the first has those about files of none."""
    owner = {path: split for split, pairs in splits.items() for pair in pairs for path in pair.paths}
    shares: dict[str, list[Finding]] = {split: [] for split in splits}
    for finding in findings:
        split = owner.get(finding.path) or tree.split(finding.path)
        shares[split if split in shares else next(iter(in_order(set(splits))))].append(finding)
    return shares


def _open(
    file: Path,
    split: str,
    pairs: Sequence[_Pair],
    numbers: Mapping[str, int],
    words: Sentences,
    findings: Sequence[Finding],
    lists: tuple[Path, ...],
) -> SplitFiles:
    if not pairs:
        reason = f": {findings[0]}" if findings else ""
        raise DataError(printable(f"{file}: split '{split}': no picture was found{reason}"))
    pictures = tuple(pair.picture for pair in pairs)
    labels = tuple(pair.labels for pair in pairs)
    paths = tuple(None if one is None else one.path for one in labels)
    sources = lists or tuple(sorted({picture.parent for picture in pictures}))
    counted = _counted(file, list(filter(None, labels)), words)
    return SplitFiles(pictures, paths, _Read(pictures, labels, numbers), sources, (*findings, *counted))


def _counted(file: Path, files: Sequence[PictureLabels], words: Sentences) -> list[Finding]:
    found = []
    for code, text in words.counted.items():
        with_any = [labels for labels in files if labels.counts.get(code)]
        if with_any:
            total = sum(labels.counts[code] for labels in with_any)
            message = f"{total} object{'' if total == 1 else 's'} {text}, first in {with_any[0].path}"
            found.append(Finding(code, "note", file, printable(message), value=str(total)))
    return found


# ---------------------------------------------------------------------------------------------- boxes


@dataclass(frozen=True)
class _Read:
    """``read`` of a split."""

    pictures: tuple[Path, ...]
    labels: tuple[PictureLabels | None, ...]
    numbers: Mapping[str, int]

    def __call__(self, i: int, size_wh: tuple[int, int]) -> LabelFile:
        labels = self.labels[i]
        assert labels is not None, "asked for the boxes of a picture without a label file"
        rows = [
            o
            if isinstance(o, Finding)
            else PixelRow(self.numbers[o.name], o.box, o.line, o.name, o.polygon, o.where)
            for o in labels.objects
        ]
        read = boxes_of_rows(labels.path, rows, size_wh)
        oriented = tuple(o.line or 0 for o in labels.objects if isinstance(o, NamedBox) and o.oriented)
        read = with_size(read, self.pictures[i], size_wh, labels.size_wh, labels.path, labels.size_line)
        return replace(read, oriented=oriented)
