"""A data set to look into: filter its pictures, count, see them small. Only reads."""

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from yolov9kit.data.dataset import Dataset, open_dataset
from yolov9kit.data.findings import Finding, Severity
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.doctor.codes import CODES
from yolov9kit.doctor.diagnosis import Diagnosis
from yolov9kit.errors import DataError, UsageError
from yolov9kit.explore.code import selection_code
from yolov9kit.explore.columns import GRID, columns, histogram
from yolov9kit.explore.filter import SIZES, ExploreFilter, as_searched, check_known
from yolov9kit.explore.finding_index import index_findings
from yolov9kit.explore.item import Entry, ExploreItem, entries_of
from yolov9kit.explore.picture_list import write_picture_list
from yolov9kit.explore.thumbnails import Thumbnail, Thumbnails
from yolov9kit.types import Failed, ProgressCallback, counting

_NO_FILTER = ExploreFilter()


class Explorer:
    """The pictures of a data set, numbered from 0: split by split, each in its order, unreadable ones among them.

    ``datasets``: splits of one data set, with the same classes. ``findings``: more than those of the splits, say of a
    diagnosis. ``source``: the data set as ``open_dataset`` takes it. Pictures that a data set left out because they
    have too few boxes are not there.

    Raises:
        DataError: no data set, or splits whose classes differ.
    """

    def __init__(
        self,
        datasets: Sequence[Dataset],
        findings: Iterable[Finding] = (),
        *,
        source: Path | None = None,
    ) -> None:
        if not datasets:
            raise DataError("an explorer needs a data set, none was given")
        other = next((one for one in datasets if one.names != datasets[0].names), None)
        if other is not None:
            raise DataError(
                f"{other.name} {other.split}: its classes differ from those of {datasets[0].name} "
                f"{datasets[0].split}: explore them apart"
            )
        self.names: tuple[str, ...] = datasets[0].names
        self.splits: tuple[str, ...] = tuple(one.split for one in datasets)
        self.source = source
        self._diagnosis: Diagnosis | None = None
        self._datasets = tuple(datasets)
        self._entries: tuple[Entry, ...] = tuple(
            entry for split, dataset in enumerate(datasets) for entry in entries_of(split, dataset)
        )
        self._columns = columns(self._entries)
        self._findings = index_findings(
            [*(f for one in datasets for f in one.findings), *findings], self._entries
        )
        self._thumbnails = Thumbnails()

    @staticmethod
    def open(
        data: str | os.PathLike[str],
        *,
        diagnosis: Diagnosis | None = None,
        on_progress: ProgressCallback | None = None,
    ) -> "Explorer":
        """Opens every split of a data set that can be opened, with the findings of a diagnosis if one is given.

        A split that cannot be opened becomes a finding of the data set. ``on_progress(what, done, total)`` counts
        pictures.

        Raises:
            DataError: the description cannot be used, or no split can be opened.
            UsageError: a diagnosis of other data.
        """
        source = Path(data)
        layout = open_layout(source)
        datasets, faults = [], []
        for split in layout.splits:
            try:
                datasets.append(
                    open_dataset(layout, split, progress=counting(on_progress, f"checking {split} pictures"))
                )
            except DataError as fault:
                faults.append((split, fault))
        if not datasets:
            if not faults:
                raise DataError(f"{layout.file}: names no pictures of any split")
            raise faults[0][1]
        findings = [*layout.findings, *(_missing(layout.file, split, fault) for split, fault in faults)]
        explorer = Explorer(datasets, findings if diagnosis is None else (), source=source)
        return explorer if diagnosis is None else explorer.with_diagnosis(diagnosis)

    def with_diagnosis(self, diagnosis: Diagnosis) -> "Explorer":
        """The same pictures with the findings of a diagnosis as well. The data set is not read again.

        Raises:
            UsageError: a diagnosis of other data.
        """
        if self.source is not None and diagnosis.data.resolve() != self.source.resolve():
            raise UsageError(f"the diagnosis is about {diagnosis.data}, not about {self.source}")
        explorer = Explorer(self._datasets, diagnosis.findings, source=self.source)
        explorer._thumbnails = self._thumbnails
        explorer._diagnosis = diagnosis
        return explorer

    def __len__(self) -> int:
        """Pictures."""
        return len(self._entries)

    @property
    def data_findings(self) -> tuple[Finding, ...]:
        """Findings about the data set, a split or a list: about no single picture."""
        return tuple(self._findings.of_data)

    def item(self, i: int) -> ExploreItem:
        """Picture number ``i``.

        Raises:
            UsageError: no picture has this number.
        """
        entry = self._entry(i)
        findings = tuple(self._findings.of_picture.get(i, ()))
        return ExploreItem(
            entry.path,
            self.splits[entry.split],
            entry.size_wh,
            entry.boxes,
            entry.labels,
            entry.label_path,
            findings,
            tuple(entry.row_of(finding) for finding in findings),
        )

    # ------------------------------------------------------------------------------------------ which pictures

    def select(self, wanted: ExploreFilter = _NO_FILTER) -> np.ndarray:
        """Numbers of the pictures that fit a filter, in its order: int64.

        Class and size are asked of one and the same box: with both, a picture is taken if one of its boxes is of a
        wanted class and of a wanted size.

        Raises:
            UsageError: a split or a class that the data set does not have, or a code that no finding can have.
        """
        check_known("split", wanted.splits, self.splits)
        strange = [label for label in wanted.classes if not 0 <= label < len(self.names)]
        if strange:
            raise UsageError(f"class {strange[0]}: there are 0 to {len(self.names) - 1}")
        unknown = [code for code in wanted.codes if code not in CODES]
        if unknown:
            raise UsageError(f"code {unknown[0]!r}: no finding has this code")
        keep = np.ones(len(self), bool)
        if wanted.splits:
            keep &= _one_of([name in wanted.splits for name in self.splits], self._columns.split)
        if wanted.classes or wanted.sizes:
            keep &= self._with_boxes(wanted)
        if wanted.codes:
            found = np.zeros(len(self), bool)
            for code in wanted.codes:
                found[self._findings.pictures.get(code, _NONE)] = True
            keep &= found
        if wanted.empty is not None:
            has_boxes = self._columns.boxes > 0
            keep &= ~has_boxes & (self._columns.picture_px > 0) if wanted.empty else has_boxes
        places = np.flatnonzero(keep).tolist()
        for word in as_searched(wanted.text).split():
            places = [i for i in places if word in self._texts[i]]
        keep = self._mask(np.array(places, np.int64))
        order = self._orders[wanted.sort]
        return order[keep[order]]

    def _with_boxes(self, wanted: ExploreFilter) -> np.ndarray:
        """Which pictures have a box of a wanted class and size."""
        boxes = np.ones(len(self._columns.label), bool)
        if wanted.classes:
            boxes &= _one_of(
                [label in wanted.classes for label in range(len(self.names))], self._columns.label
            )
        if wanted.sizes:
            boxes &= _one_of([size in wanted.sizes for size in SIZES], self._columns.size)
        found = np.zeros(len(self), bool)
        found[self._columns.picture[boxes]] = True
        return found

    def code(self, wanted: ExploreFilter = _NO_FILTER) -> str:
        """Python that makes the same selection."""
        return selection_code(wanted, self.source, self._diagnosis)

    def write_list(self, selection: np.ndarray, file: str | os.PathLike[str]) -> Path:
        """Writes the absolute paths of pictures to a new .txt file, one a line, as a data.yaml can name it.

        Raises:
            DataError: nothing is selected, the file exists, lies in a folder of the data set, or cannot be written.
        """
        pictures = list(dict.fromkeys(self._entry(int(i)).path for i in selection))
        return write_picture_list(pictures, Path(file), self._data_folders())

    # ------------------------------------------------------------------------------------------ numbers of a selection

    def class_counts(self, selection: np.ndarray) -> np.ndarray:
        """Boxes of each class: C int64."""
        return np.bincount(self._columns.label[self._boxes_of(selection)], minlength=len(self.names))

    def box_sizes(self, selection: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Edges and counts of the square root of the boxes' areas, pixels of the picture; two bins an octave."""
        edges = self._columns.side_edges()
        return edges, histogram(self._columns.side_px[self._boxes_of(selection)], edges)

    def aspects(self, selection: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Edges and counts of log2(width / height) of the boxes; four bins an octave."""
        edges = self._columns.aspect_edges()
        return edges, histogram(self._columns.aspect[self._boxes_of(selection)], edges)

    def positions(self, selection: np.ndarray) -> np.ndarray:
        """16 x 16 counts of box centres, [row, column]; the picture's left upper corner is [0, 0]."""
        cells = np.bincount(self._columns.cell[self._boxes_of(selection)], minlength=GRID * GRID)
        return cells.reshape(GRID, GRID)

    def finding_counts(self, selection: np.ndarray) -> dict[str, tuple[Severity, int]]:
        """Code → its severity and how many of the pictures have it; errors first. Only codes that occur."""
        chosen = self._mask(selection)
        counted = {
            code: (self._findings.severity[code], int(chosen[pictures].sum()))
            for code, pictures in self._findings.pictures.items()
        }
        return {code: entry for code, entry in counted.items() if entry[1]}

    # ------------------------------------------------------------------------------------------ pictures

    def thumbnail(self, i: int, side_px: int = 240) -> Thumbnail:
        """Picture number ``i``, small: its longer side has ``side_px`` pixels at most.

        Raises:
            PictureError: it cannot be read; the reason in one line.
            UsageError: no picture has this number.
        """
        return self._thumbnails.one(self._entry(i).path, side_px)

    def thumbnails(
        self, selection: Sequence[int] | np.ndarray, side_px: int = 240
    ) -> list[Thumbnail | Failed]:
        """Several of them at once, in the order asked for; ``Failed`` for one that cannot be read."""
        return self._thumbnails.several([self._entry(int(i)).path for i in selection], side_px)

    # ------------------------------------------------------------------------------------------ inside

    def _entry(self, i: int) -> Entry:
        if not 0 <= i < len(self._entries):
            raise UsageError(f"picture {i}: there are 0 to {len(self._entries) - 1}")
        return self._entries[i]

    def _mask(self, selection: np.ndarray) -> np.ndarray:
        chosen = np.zeros(len(self), bool)
        chosen[selection] = True
        return chosen

    def _boxes_of(self, selection: np.ndarray) -> np.ndarray:
        """Which boxes belong to these pictures."""
        return self._mask(selection)[self._columns.picture]

    @cached_property
    def _names(self) -> list[str]:
        """The path of each picture below the data set's folder; the whole path where it lies elsewhere."""
        folder = str(self._folder) + os.sep
        return [str(entry.path).removeprefix(folder) for entry in self._entries]

    @cached_property
    def _texts(self) -> list[str]:
        return [as_searched(name) for name in self._names]

    @cached_property
    def _orders(self) -> dict[str, np.ndarray]:
        by_name = np.array(sorted(range(len(self)), key=self._names.__getitem__), np.int64)
        rank = np.empty(len(self), np.int64)
        rank[by_name] = np.arange(len(self))
        errors, warnings, notes = self._findings.counts.T
        return {
            "name": by_name,
            "boxes": np.lexsort((rank, -self._columns.boxes)),
            "findings": np.lexsort((rank, -notes, -warnings, -errors)),
            "size": np.lexsort((rank, -self._columns.picture_px)),
        }

    @cached_property
    def _folder(self) -> Path:
        """The data set's: of its description, else the one that holds all pictures."""
        if self.source is not None:
            folder = Path(os.path.abspath(self.source))
            return folder if folder.is_dir() else folder.parent
        parents = {entry.path.parent for entry in self._entries}
        try:
            return Path(os.path.commonpath(parents))
        except ValueError:  # on several drives
            return Path(os.sep)

    def _data_folders(self) -> set[Path]:
        """Where nothing is written: folders of pictures and labels, and the data set's own if it holds any of them."""
        files = [entry.path for entry in self._entries]
        files += [entry.label_path for entry in self._entries if entry.label_path is not None]
        folders = {file.parent for file in files}
        return folders | ({self._folder} if any(self._folder in one.parents for one in files) else set())


def _missing(file: Path, split: str, fault: DataError) -> Finding:
    """A split that cannot be opened."""
    return Finding("split_missing", "error", file, str(fault).removeprefix(f"{file}: "), value=split)


def _one_of(wanted: list[bool], values: np.ndarray) -> np.ndarray:
    """Which of the small whole numbers are wanted."""
    return np.array(wanted, bool)[values]


_NONE = np.empty(0, np.int64)
