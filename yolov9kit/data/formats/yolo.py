"""YOLO with a data.yaml: pictures by folders and lists, a label file for each."""

from dataclasses import dataclass
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import SplitFiles, in_order
from yolov9kit.data.labels import LabelFile, read_labels
from yolov9kit.data.listing import Listing, label_places, list_pictures
from yolov9kit.data.yaml_file import DataYaml, exists
from yolov9kit.errors import DataError
from yolov9kit.types import printable


@dataclass(frozen=True)
class YoloLayout:
    """What a data.yaml describes."""

    yaml: DataYaml
    kind: str = "YOLO"
    findings: tuple[Finding, ...] = ()

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

        def read(i: int, size_wh: tuple[int, int]) -> LabelFile:
            path = label_paths[i]
            assert path is not None, "asked for the boxes of a picture without a label file"
            return read_labels(path, size_wh, len(self.names))

        shared = _shared_labels(listing.pictures, label_paths)
        findings = (*listing.findings, *shared)
        return SplitFiles(listing.pictures, label_paths, read, listing.sources, findings)


def _label_paths(listing: Listing, data: DataYaml, split: str) -> tuple[Path | None, ...]:
    lists = set(listing.sources)  # train.txt is the label file of no picture, even of one called train.jpg
    paths = tuple(
        next((place for place in label_places(picture) if place not in lists and exists(place)), None)
        for picture in listing.pictures
    )
    if not any(paths):
        first = listing.pictures[0]
        tried = ", ".join(map(str, label_places(first)))
        pictures = "1 picture" if len(paths) == 1 else f"{len(paths)} pictures"
        raise DataError(
            printable(
                f"{data.file}: split '{split}': no label file for any of {pictures}. For {first} "
                f"these were looked for: {tried}. Put the labels there; an empty file makes a background."
            )
        )
    return paths


def _shared_labels(pictures: tuple[Path, ...], label_paths: tuple[Path | None, ...]) -> list[Finding]:
    first: dict[Path, Path] = {}
    found = []
    for picture, label_path in zip(pictures, label_paths, strict=True):
        if label_path is not None and first.setdefault(label_path, picture) != picture:
            message = (
                f"shares the label file {label_path} with {first[label_path]}: rename one of the two pictures"
            )
            found.append(Finding("label_shared", "warning", picture, message))
    return found
