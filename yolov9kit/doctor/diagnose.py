"""A data set looked at as a whole: every picture decoded, every row read, splits compared."""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from yolov9kit.data.checked import Checked, PictureFacts, facts_file
from yolov9kit.data.dataset import Dataset, open_dataset
from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.formats.open_layout import open_layout
from yolov9kit.data.picture_findings import findings_of
from yolov9kit.data.yaml_file import exists
from yolov9kit.doctor.balance import absent_findings, balance_findings, boxes_per_class, size_findings
from yolov9kit.doctor.boxes import box_findings, touching_edge
from yolov9kit.doctor.config import DoctorConfig
from yolov9kit.doctor.diagnosis import SHARES, Diagnosis, SplitFacts
from yolov9kit.doctor.duplicates import exact_groups, near_groups
from yolov9kit.doctor.flat_boxes import FlatBoxes, flatten
from yolov9kit.doctor.pairs import pair_findings
from yolov9kit.doctor.speed import loader_findings
from yolov9kit.doctor.splits import absent_splits, exact_findings, near_findings, same_split
from yolov9kit.doctor.unnamed import unnamed_folders
from yolov9kit.errors import DataError
from yolov9kit.types import ProgressCallback, counting

_RANK = {"error": 0, "warning": 1, "note": 2}


def diagnose(
    data: str | os.PathLike[str],
    config: DoctorConfig | None = None,
    *,
    on_progress: ProgressCallback | None = None,
) -> Diagnosis:
    """Looks for what is wrong with a data set, and says where. Only reads.

    ``data``: as ``open_dataset`` takes it. ``on_progress(what, done, total)`` counts pictures; an exception from it
    stops the work, and with ``config.cache`` a later call goes on where this one was stopped.

    Never raises for what the data hold: a description that cannot be used, or a split without pictures, is a finding
    as well. A split that ``config`` names and the data set does not have is one too.
    """
    config = config or DoctorConfig()
    try:
        layout = open_layout(data)
    except DataError as fault:
        return Diagnosis(Path(data), findings=(_as_finding("description", data, fault),), config=config)
    findings = [*layout.findings]
    if not config.splits:
        findings += absent_splits(layout.file, layout.splits)
    datasets: list[Dataset] = []
    facts = []
    for split in config.splits or layout.splits:
        try:
            dataset = open_dataset(
                layout,
                split,
                cache=config.cache,
                progress=counting(on_progress, f"checking {split} pictures"),
            )
        except DataError as fault:
            findings += _of_lost_split(layout, split, fault, config)
            continue
        flat = flatten(dataset.samples, config.image_size)
        findings += _of_split(layout, dataset, flat, config)
        datasets.append(dataset)
        facts.append(_facts(dataset, flat))
    if on_progress is not None:
        on_progress("comparing pictures", 0, 1)
    findings += _of_all(layout, datasets, config)
    if on_progress is not None:
        on_progress("comparing pictures", 1, 1)
    return Diagnosis(Path(data), layout.kind, layout.names, tuple(facts), _in_order(findings), config)


def _as_finding(code: str, path: str | os.PathLike[str], fault: DataError) -> Finding:
    """A finding at the file, and the line, that the sentence of an error begins with."""
    message = str(fault)
    start, _, rest = message.partition(": ")
    if rest and exists(Path(start)):
        path, message = start, rest
    line = re.match(r"not a yaml: line (\d+): ", message)
    return Finding(code, "error", Path(path), message, int(line[1]) if line else None)


def _of_lost_split(layout: Layout, split: str, fault: DataError, config: DoctorConfig) -> list[Finding]:
    """That the split cannot be used, and what is wrong with each of its pictures if they are the reason.

    Only a split that training needs, or that was asked for, is an error.
    """
    needed = split in ("train", "val") or split in config.splits
    about = _as_finding("split_missing", layout.file, fault)
    found = [about if needed else replace(about, severity="warning")]
    try:
        files = layout.open(split)
    except DataError:
        return found
    facts = PictureFacts(facts_file(split, files.sources) if config.cache else None)
    with closing(facts.check(files.pictures)) as checks:
        for path, checked in zip(files.pictures, checks, strict=True):
            found += findings_of(path, checked)
    return [*found, *files.findings]


def _of_split(layout: Layout, dataset: Dataset, flat: FlatBoxes, config: DoctorConfig) -> list[Finding]:
    return [
        *dataset.findings,
        *box_findings(flat, dataset.names, config.image_size),
        *pair_findings(dataset),
        *size_findings(layout.file, dataset.split, flat, config.image_size),
        *loader_findings(dataset.checked, config.image_size),
    ]


def _of_all(layout: Layout, datasets: Sequence[Dataset], config: DoctorConfig) -> list[Finding]:
    named = {dataset.split: dataset for dataset in datasets}
    train, val = named.get("train"), named.get("val")
    # of a split that could not be opened it is not known what it names
    found = unnamed_folders(datasets) if len(datasets) == len(layout.splits) else []
    if train is not None:
        found += absent_findings(layout.file, train, val) + balance_findings(layout.file, train)
    if train is not None and val is not None:
        found += same_split(layout.file, train, val)
    checked: dict[Path, Checked] = {}
    for dataset in datasets:
        checked |= dataset.checked
    found += exact_findings(datasets, exact_groups(checked))
    if config.near_duplicates:
        found += near_findings(datasets, near_groups(checked), checked)
    return found


def _facts(dataset: Dataset, flat: FlatBoxes) -> SplitFacts:
    sizes = sorted((sample.size_wh for sample in dataset.samples), key=lambda wh: wh[0] * wh[1])
    shorter = flat.sides_px.min(axis=1)
    decode_ms = [checked.decode_ms for checked in dataset.checked.values() if not checked.error]
    return SplitFacts(
        split=dataset.split,
        pictures=len(dataset.samples),
        boxes=len(flat.labels),
        boxes_per_class=tuple(boxes_per_class(dataset).tolist()),
        empty_labels=dataset.empty_labels,
        missing_labels=dataset.missing_labels,
        left_out=dataset.left_out,
        smallest_wh=sizes[0],
        middle_wh=sizes[len(sizes) // 2],
        largest_wh=sizes[-1],
        box_sides_px=tuple(np.quantile(shorter, SHARES).tolist()) if len(shorter) else (),
        edge_boxes=int(touching_edge(flat).sum()),
        decode_ms=float(np.median(decode_ms)) if decode_ms else 0.0,
    )


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each once (what concerns the whole data set is told by every split), errors first, then as they were found."""
    return tuple(
        sorted(
            dict.fromkeys(findings),
            key=lambda one: (_RANK[one.severity], one.code, str(one.path), one.line or 0),
        )
    )
