"""YOLO with a data.yaml: pictures by folders and lists, a label file for each."""

from dataclasses import dataclass
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import SplitFiles, in_order
from yolov9kit.data.labels import LabelFile, point_columns_of, read_labels
from yolov9kit.data.listing import Listing, label_places, list_pictures
from yolov9kit.data.orphans import find_orphans
from yolov9kit.data.yaml_file import DataYaml, exists
from yolov9kit.errors import DataError
from yolov9kit.types import printable


@dataclass(frozen=True)
class YoloLayout:
    """What a data.yaml describes.

    ``as_boxes``: rows may hold key points, and the boxes alone are asked for. ``beside``: labels belong beside their
    pictures in this format, and nothing is said of it.
    """

    yaml: DataYaml
    kind: str = "YOLO"
    findings: tuple[Finding, ...] = ()
    as_boxes: bool = False
    beside: bool = False

    @property
    def file(self) -> Path:
        return self.yaml.file

    @property
    def names(self) -> tuple[str, ...]:
        return self.yaml.names

    @property
    def splits(self) -> tuple[str, ...]:
        return in_order(set(self.yaml.splits))

    def open(self, split: str) -> SplitFiles:
        listing = list_pictures(self.yaml, split)
        label_paths = _label_paths(listing, self.yaml, split)
        point_columns = self.yaml.point_columns
        if self.as_boxes and not point_columns:
            point_columns = point_columns_of(path for path in label_paths if path is not None)
        findings = (
            *listing.findings,
            *([] if self.beside else _beside(listing.pictures, label_paths)),
            *shared_labels(listing.pictures, label_paths),
            *find_orphans(listing.pictures),
        )
        return SplitFiles(
            listing.pictures,
            label_paths,
            YoloRows(label_paths, len(self.names), point_columns),
            listing.sources,
            findings,
        )


@dataclass(frozen=True)
class YoloRows:
    """``read`` of a split with a label file for each picture."""

    label_paths: tuple[Path | None, ...]
    num_classes: int
    point_columns: int = 0

    def __call__(self, i: int, size_wh: tuple[int, int]) -> LabelFile:
        path = self.label_paths[i]
        assert path is not None, "asked for the boxes of a picture without a label file"
        return read_labels(path, size_wh, self.num_classes, point_columns=self.point_columns)


def no_labels(file: Path, split: str, pictures: tuple[Path, ...], places: tuple[Path, ...]) -> DataError:
    """Says where the label file of the first picture was looked for."""
    tried = ", ".join(map(str, places))
    count = "1 picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    return DataError(
        printable(
            f"{file}: split '{split}': no label file for any of {count}. For {pictures[0]} "
            f"these were looked for: {tried}. Put the labels there; an empty file makes a background."
        )
    )


def shared_labels(pictures: tuple[Path, ...], label_paths: tuple[Path | None, ...]) -> list[Finding]:
    """Pictures whose label file is that of another picture."""
    first: dict[Path, Path] = {}
    found = []
    for picture, label_path in zip(pictures, label_paths, strict=True):
        if label_path is not None and first.setdefault(label_path, picture) != picture:
            message = (
                f"shares the label file {label_path} with {first[label_path]}: rename one of the two pictures"
            )
            found.append(Finding("label_shared", "warning", picture, message))
    return found


def _label_paths(listing: Listing, data: DataYaml, split: str) -> tuple[Path | None, ...]:
    lists = set(listing.sources)  # train.txt is the label file of no picture, even of one called train.jpg
    paths = tuple(
        next((place for place in label_places(picture) if place not in lists and exists(place)), None)
        for picture in listing.pictures
    )
    if not any(paths):
        raise no_labels(data.file, split, listing.pictures, label_places(listing.pictures[0]))
    return paths


def _beside(pictures: tuple[Path, ...], label_paths: tuple[Path | None, ...]) -> list[Finding]:
    beside = [
        label_path
        for picture, label_path in zip(pictures, label_paths, strict=True)
        if label_path is not None and label_path.parent == picture.parent
    ]
    if not beside:
        return []
    files = (
        "1 label file lies beside its picture"
        if len(beside) == 1
        else (f"{len(beside)} label files lie beside their pictures")
    )
    message = f"{files} instead of in a labels folder, this one first: read from there"
    return [Finding("label_beside", "note", beside[0], message, value=str(len(beside)))]
