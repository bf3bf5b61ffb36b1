"""What the doctor says about a data set: findings, and the facts that they rest on."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from yolov9kit.data.findings import Finding, counted
from yolov9kit.doctor.config import DoctorConfig
from yolov9kit.errors import DataError

FORMAT = "yolov9kit diagnosis 1"
SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Of the boxes, in order of their size: where ``SplitFacts.box_sides_px`` is read off."""


@dataclass(frozen=True)
class SplitFacts:
    """Numbers of one split.

    Attributes:
        split: its name.
        pictures: those that can be used, backgrounds among them.
        boxes: all of them.
        boxes_per_class: in the order of the names.
        empty_labels: pictures whose label file has no row: backgrounds on purpose.
        missing_labels: pictures without a label file.
        left_out: pictures that cannot be read.
        smallest_wh, middle_wh, largest_wh: of the upright pictures in pixels, ordered by area; (0, 0): no picture.
        box_sides_px: the shorter side of a box in pixels of the input, at each of ``SHARES``; empty without boxes.
        edge_boxes: boxes that touch the edge of their picture.
        decode_ms: middle time that decoding one picture took when it was last done.
    """

    split: str
    pictures: int = 0
    boxes: int = 0
    boxes_per_class: tuple[int, ...] = ()
    empty_labels: int = 0
    missing_labels: int = 0
    left_out: int = 0
    smallest_wh: tuple[int, int] = (0, 0)
    middle_wh: tuple[int, int] = (0, 0)
    largest_wh: tuple[int, int] = (0, 0)
    box_sides_px: tuple[float, ...] = ()
    edge_boxes: int = 0
    decode_ms: float = 0.0


@dataclass(frozen=True)
class Diagnosis:
    """A data set, looked at.

    Attributes:
        data: the file or folder that was asked about.
        kind: its format for people, ``YOLO``; empty where it cannot be told.
        names: the name of each class.
        splits: the facts of each split that could be opened.
        findings: errors first, then warnings, then notes; inside these by code, file and line.
        config: the settings.
    """

    data: Path
    kind: str = ""
    names: tuple[str, ...] = ()
    splits: tuple[SplitFacts, ...] = ()
    findings: tuple[Finding, ...] = ()
    config: DoctorConfig = field(default_factory=DoctorConfig)

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def notes(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "note")

    @property
    def ok(self) -> bool:
        """No errors. Training starts then, if there are pictures to train on and to validate."""
        return not self.errors

    @property
    def counts(self) -> dict[str, int]:
        """How many findings of each code, in the order of the findings."""
        return dict(Counter(finding.code for finding in self.findings))

    @property
    def verdict(self) -> str:
        """What training would say, in a few words."""
        if not self.ok:
            return "training refuses until the errors are gone"
        if "split_absent" in self.counts:
            return "no errors; training needs both train and val (yolov9kit data split deals pictures out)"
        return "nothing keeps it from training"

    def summary(self) -> str:
        """One line: ``12 errors, 3 warnings, 5 notes in 3 splits``."""
        parts = [
            counted(len(self.errors), "error"),
            counted(len(self.warnings), "warning"),
            counted(len(self.notes), "note"),
        ]
        return f"{', '.join(parts)} in {counted(len(self.splits), 'split')}"

    def to_json(self) -> str:
        """Everything as JSON text; ``from_json`` reads it back equal."""
        record = {
            "format": FORMAT,
            "data": str(self.data),
            "kind": self.kind,
            "names": self.names,
            "summary": self.summary(),
            "settings": self.config.model_dump(),
            "splits": [asdict(facts) for facts in self.splits],
            "findings": [_record(finding) for finding in self.findings],
        }
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, indent=1)
        # bytes of a file name that are no UTF-8: JSON means them by an escape, a file in UTF-8 cannot hold them
        return text.encode(errors="backslashreplace").decode()

    @staticmethod
    def from_json(text: str) -> "Diagnosis":
        """The diagnosis that ``to_json`` wrote.

        Raises:
            DataError: the text is something else.
        """
        try:
            record = json.loads(text)
            if record["format"] != FORMAT:
                raise ValueError(f"format {record['format']!r}")
            return Diagnosis(
                data=Path(record["data"]),
                kind=record["kind"],
                names=tuple(record["names"]),
                splits=tuple(_facts(values) for values in record["splits"]),
                findings=tuple(_finding(values) for values in record["findings"]),
                config=DoctorConfig(**record["settings"]),
            )
        except (ValueError, KeyError, TypeError) as fault:
            raise DataError(f"not a diagnosis as the doctor writes it: {fault}") from fault


def _record(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "file": str(finding.path),
        "line": finding.line,
        "value": finding.value,
        "message": finding.message,
        "picture": None if finding.picture is None else str(finding.picture),
    }


def _finding(values: dict[str, Any]) -> Finding:
    return Finding(
        values["code"],
        values["severity"],
        Path(values["file"]),
        values["message"],
        values["line"],
        values["value"],
        None if values["picture"] is None else Path(values["picture"]),
    )


def _facts(values: dict[str, Any]) -> SplitFacts:
    frozen: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in values.items()}
    return SplitFacts(**frozen)
