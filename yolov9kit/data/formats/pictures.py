"""Folders of pictures without any labels: to look at them. There is nothing in them to train on."""

from functools import partial
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.data.formats.loose import by_split, loose_places
from yolov9kit.data.formats.ready import ReadyLayout
from yolov9kit.data.image import is_image_name
from yolov9kit.data.labels import LabelFile
from yolov9kit.data.listing import files_below
from yolov9kit.data.yaml_file import exists
from yolov9kit.types import printable

KIND = "pictures without labels"
_MAY_BE_LABELS = (".txt", ".json", ".xml", ".csv", ".tsv")
_LOOKED_AT = 50
_NEVER_LABELS = ("readme", "license", "licence", "notice")


def open_pictures(path: Path) -> Layout | None:
    """The pictures of a folder; None where there are none in it or below.

    Folders called train, val and test are splits; without them all is ``train``. No picture has a label file, and there
    are no class names: that is one finding, an error, because training refuses.
    """
    if not path.is_dir():
        return None
    pictures = list(files_below(path, is_image_name))
    if not pictures:
        return None
    splits, findings = by_split(path, sorted(pictures, key=Path.as_posix))
    parts = {split: partial(_split, found) for split, found in splits.items()}
    absent = Finding("labels_absent", "error", path, printable(_why_no_labels(path, pictures)))
    return ReadyLayout(KIND, path, (), parts, (absent, *findings, *_about_other_files(path)))


def _why_no_labels(path: Path, pictures: list[Path]) -> str:
    elsewhere = next(
        (place for picture in pictures[:_LOOKED_AT] for place in loose_places(picture) if exists(place)), None
    )
    if elsewhere is not None:
        return f"no labels in this folder; {elsewhere} lies outside of it: give the folder that holds both"
    count = "1 picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    tried = ", ".join(map(str, loose_places(pictures[0])[:2]))
    return (
        f"no labels were found for {count}, in no format that is read (as YOLO, {tried}): they can be looked at, and "
        "there is nothing to train on"
    )


def _about_other_files(path: Path) -> list[Finding]:
    others = sorted(files_below(path, _may_be_labels))
    if not others:
        return []
    files = "1 file was" if len(others) == 1 else f"{len(others)} files, this one first, were"
    message = f"{files} not understood as labels of any format: the pictures count as unlabelled"
    return [Finding("place", "note", others[0], printable(message), value=str(len(others)))]


def _may_be_labels(name: str) -> bool:
    name = name.lower()
    return name.endswith(_MAY_BE_LABELS) and not name.startswith(_NEVER_LABELS)


def _split(pictures: tuple[Path, ...]) -> SplitFiles:
    sources = tuple(sorted({picture.parent for picture in pictures}))
    return SplitFiles(pictures, (None,) * len(pictures), _no_boxes, sources)


def _no_boxes(i: int, size_wh: tuple[int, int]) -> LabelFile:
    raise AssertionError(f"asked for the boxes of picture {i}, which has no label file")
