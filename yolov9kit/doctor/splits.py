"""Splits side by side: which are missing, which share pictures."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from yolov9kit.data.checked import Checked
from yolov9kit.data.dataset import Dataset
from yolov9kit.data.findings import Finding, Severity
from yolov9kit.types import printable

Groups = Iterable[Sequence[Path]]
"""Pictures that are the same, or look alike, each group at least two."""

_ABSENT = {
    "train": "names no training pictures (train: ...): it can be scored, not trained on",
    "val": "names no validation pictures (val: ...): training refuses, name some that are not trained on",
}


def absent_splits(file: Path, splits: Sequence[str]) -> list[Finding]:
    """``split_absent`` for each of train and val that a description does not name."""
    return [
        Finding("split_absent", "warning", file, message, value=split)
        for split, message in _ABSENT.items()
        if split not in splits
    ]


def same_split(file: Path, train: Dataset, val: Dataset) -> list[Finding]:
    """``split_same``: val names exactly the pictures of train."""
    if set(train.checked) != set(val.checked):
        return []
    message = f"val names exactly the {len(train.checked)} pictures of train: scores on them tell nothing, name others"
    return [Finding("split_same", "warning", file, message, value="val")]


def exact_findings(datasets: Sequence[Dataset], groups: Groups) -> list[Finding]:
    """``duplicate_inside`` and ``duplicate_across``: ``groups`` are those of the same bytes in all splits together.

    Also finds files that two splits name, except where these splits are the same altogether.
    """
    splits = _splits_of(datasets)
    equal: dict[frozenset[Path], str] = {}  # to each set of pictures the first split that names it
    one_of = {one.split: equal.setdefault(frozenset(one.checked), one.split) for one in datasets}
    found = []
    for path, named in splits.items():
        different = dict.fromkeys(one_of[split] for split in named)
        if len(different) > 1:
            said = f"is named by {' and '.join(different)}"
            found.append(_finding("duplicate_across", "warning", path, path, said))
    for path, other, across in _members(groups, splits):
        if across:
            said = f"the same picture as {_beside(path, other)} of {splits[other][0]}"
            found.append(_finding("duplicate_across", "warning", path, other, said))
        else:
            said = f"the same picture as {_beside(path, other)}"
            found.append(_finding("duplicate_inside", "warning", path, other, said))
    return found


def near_findings(
    datasets: Sequence[Dataset], groups: Groups, checked: Mapping[Path, Checked]
) -> list[Finding]:
    """``near_inside`` and ``near_across``: ``groups`` look alike. Those of the same bytes are left to others."""
    splits = _splits_of(datasets)
    found = []
    for path, other, across in _members(groups, splits):
        if checked[path].digest == checked[other].digest:
            continue
        if across:
            said = f"looks like {_beside(path, other)} of {splits[other][0]}"
            found.append(_finding("near_across", "warning", path, other, said))
        else:
            found.append(_finding("near_inside", "note", path, other, f"looks like {_beside(path, other)}"))
    return found


_TO_DO = {
    "duplicate_across": "remove it from one of them, or scores come out too good",
    "duplicate_inside": "remove one of them, or it counts twice",
    "near_across": "look at both, and keep views of one scene in one split",
    "near_inside": "look at both; many views of one scene teach little",
}


def _finding(code: str, severity: Severity, path: Path, other: Path, said: str) -> Finding:
    return Finding(code, severity, path, f"{said}: {_TO_DO[code]}", value=printable(str(other)))


def _members(groups: Groups, splits: Mapping[Path, Sequence[str]]) -> Iterator[tuple[Path, Path, bool]]:
    """Each picture of a group but the first, with that one, and whether that is of another split."""
    order = {path: position for position, path in enumerate(splits)}
    for group in groups:
        first, *others = sorted(group, key=order.__getitem__)
        for path in others:
            yield path, first, splits[path][0] != splits[first][0]


def _splits_of(datasets: Sequence[Dataset]) -> dict[Path, list[str]]:
    """The splits that name each picture, unreadable ones too."""
    splits: dict[Path, list[str]] = {}
    for dataset in datasets:
        for path in dataset.checked:
            splits.setdefault(path, []).append(dataset.split)
    return splits


def _beside(path: Path, other: Path) -> str:
    """``other``, named from the folder on that both have in common."""
    common = os.path.commonpath([path.parent, other.parent])
    return printable(os.path.relpath(other, common))
