"""A data set with all its splits read, and everything on the disk that belongs to it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from yolov9kit.data.dataset import Dataset, open_dataset, refuse
from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.errors import DataError, UsageError
from yolov9kit.types import ProgressCallback, counting, printable

LEFT_OUT_CODES = frozenset(
    ("label_repeated", "label_no_area", "label_orphan", "picture_repeated", "picture_unnamed")
)
"""Warnings about something that is not used; errors and pictures that cannot be decoded are others."""

_NOTHING_LOST = frozenset(("labels_absent",))
"""Errors for training about things that are written all the same."""
_DESCRIPTIONS = frozenset((".yaml", ".yml", ".json", ".txt", ".names", ".data", ".xml", ".csv"))
OTHER_ROWS = frozenset(("label_oriented", "label_points"))
"""Errors of whole sets: leaving the rows out would leave nothing."""


@dataclass(frozen=True, eq=False)
class Opened:
    """``splits``: each as it was read. ``missing``: one finding for each split that cannot be. ``files``: every file
    that tells of the set, pictures among them. ``roots``: the folders they lie in."""

    layout: Layout
    splits: dict[str, Dataset]
    missing: tuple[Finding, ...]
    files: tuple[Path, ...]
    roots: tuple[Path, ...]

    @property
    def name(self) -> str:
        return next(iter(self.splits.values())).name

    @property
    def names(self) -> tuple[str, ...]:
        return self.layout.names

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Of all splits, each once."""
        found = [finding for dataset in self.splits.values() for finding in dataset.findings]
        return tuple(dict.fromkeys([*self.missing, *found]))

    @property
    def left_out(self) -> tuple[Finding, ...]:
        """What is said about rows, pictures and splits that were not read."""
        unread = {
            path for dataset in self.splits.values() for path, facts in dataset.checked.items() if facts.error
        }
        return tuple(
            finding
            for finding in self.findings
            if (finding.severity == "error" and finding.code not in _NOTHING_LOST)
            or finding.code in LEFT_OUT_CODES
            or (finding.path in unread and finding.severity == "warning")
        )


def open_data(
    data: str | os.PathLike[str],
    *,
    splits: Sequence[str] | None = None,
    as_boxes: bool = False,
    skip_bad_rows: bool = False,
    on_progress: ProgressCallback | None = None,
) -> Opened:
    """Reads every split of a data set. Decodes each picture once.

    Args:
        splits: those that are read. None: all.
        as_boxes: oriented boxes and key points are read as upright boxes.
        skip_bad_rows: go on without rows and splits that have errors.

    Raises:
        UsageError: a split that is not there.
        DataError: the data set cannot be used, holds oriented boxes or key points without ``as_boxes``, or has errors
            without ``skip_bad_rows``.
    """
    layout = open_layout(data, as_boxes=as_boxes)
    files, missing = _listed(layout, _wanted(layout, splits), skip_bad_rows)
    read = {}
    for split in files:
        try:
            read[split] = open_dataset(
                layout, split, as_boxes=as_boxes, progress=counting(on_progress, f"reading {split}")
            )
        except DataError as fault:
            if not skip_bad_rows:
                raise
            missing.append(_missing(layout, split, fault))
    if not read:
        raise DataError(str(missing[0].message) if missing else printable(f"{layout.file}: names no split"))
    for dataset in read.values():
        other = next((finding for finding in dataset.errors if finding.code in OTHER_ROWS), None)
        if other is not None:
            raise DataError(str(other))
        if not skip_bad_rows:
            refuse(dataset)
    return Opened(layout, read, tuple(missing), _files(layout, files), _roots(data, layout, files))


def source_files(data: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Every file that tells of a data set, pictures among them. No picture is decoded.

    Raises:
        DataError: the description cannot be used.
    """
    layout = open_layout(data)
    return _files(layout, _listed(layout, layout.splits, skip=True)[0])


def _wanted(layout: Layout, splits: Sequence[str] | None) -> Sequence[str]:
    if splits is None:
        return layout.splits
    unknown = [split for split in splits if split not in layout.splits]
    if unknown or not splits:
        there = ", ".join(layout.splits)
        raise UsageError(printable(f"splits: {', '.join(unknown) or 'none named'}: there are {there}"))
    return [split for split in layout.splits if split in splits]


def _listed(layout: Layout, splits: Sequence[str], skip: bool) -> tuple[dict[str, SplitFiles], list[Finding]]:
    files, missing = {}, []
    for split in splits:
        try:
            files[split] = layout.open(split)
        except DataError as fault:
            if not skip:
                others = [one for one in splits if one != split]
                hint = f" (to go on without split '{split}': skip_bad_rows)" if others else ""
                raise DataError(f"{fault}{hint}") from fault
            missing.append(_missing(layout, split, fault))
    return files, missing


def _missing(layout: Layout, split: str, fault: DataError) -> Finding:
    return Finding("split_missing", "error", layout.file, f"split '{split}' left out: {fault}", value=split)


def _files(layout: Layout, splits: dict[str, SplitFiles]) -> tuple[Path, ...]:
    own = layout.file if layout.file.is_dir() else layout.file.parent
    beside = (path for path in sorted(own.iterdir()) if path.suffix.lower() in _DESCRIPTIONS)
    paths: dict[Path, None] = dict.fromkeys((layout.file, *beside))  # lists of class names, say
    for files in splits.values():
        labels = [path for path in files.label_paths if path is not None]
        paths.update(dict.fromkeys([*files.sources, *files.pictures, *labels]))
    return tuple(path for path in paths if path.is_file())


def _roots(data: str | os.PathLike[str], layout: Layout, splits: dict[str, SplitFiles]) -> tuple[Path, ...]:
    """The folders of the set: the one given, those of its files, and that of a description that lies above them."""
    given = Path(os.path.expanduser(data)).absolute()
    folders = {given} if given.is_dir() else set()
    for files in splits.values():
        folders.update(path.parent for path in (*files.pictures, *files.label_paths) if path is not None)
        folders.update(source if source.is_dir() else source.parent for source in files.sources)
    own = layout.file if layout.file.is_dir() else layout.file.parent
    if any(folder.is_relative_to(own) for folder in folders):
        folders.add(own)
    return tuple(sorted(folder for folder in folders if not folders.intersection(folder.parents)))
