"""Pictures and their label files: which have none, which have an empty one."""

from yolov9kit.data.dataset import Dataset, Sample
from yolov9kit.data.findings import Finding
from yolov9kit.types import printable


def pair_findings(dataset: Dataset) -> list[Finding]:
    """``label_missing`` and ``label_empty``, each at most once: backgrounds are many and no fault."""
    found = []
    without = [sample for sample in dataset.samples if sample.label_path is None]
    if without:
        message = (
            f"{_pictures(len(without), dataset.split)} no label file, taken for background, this one first: "
            "an empty file says that nothing is on a picture"
        )
        found.append(Finding("label_missing", "note", without[0].path, message, value=str(len(without))))
    if dataset.empty_labels:
        first = _first_empty(dataset)
        message = (
            f"{_pictures(dataset.empty_labels, dataset.split)} a label file without rows, taken for background, "
            f"this one first ({printable(first.path.name)})"
        )
        path = first.label_path or first.path
        found.append(Finding("label_empty", "note", path, message, value=str(dataset.empty_labels)))
    return found


def _first_empty(dataset: Dataset) -> Sample:
    """The first picture without boxes of whose label file nothing else is said: the rows of others are left out."""
    spoiled = {finding.path for finding in dataset.findings if finding.severity != "note"}
    bare = [sample for sample in dataset.samples if sample.label_path is not None and not len(sample.labels)]
    return next((sample for sample in bare if sample.label_path not in spoiled), bare[0])


def _pictures(count: int, split: str) -> str:
    return f"1 picture of {split} has" if count == 1 else f"{count} pictures of {split} have"
