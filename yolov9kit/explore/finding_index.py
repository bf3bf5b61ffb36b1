"""Findings name files; here they are sorted to the pictures that they are about."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from yolov9kit.data.findings import Finding, Severity
from yolov9kit.explore.item import Entry

_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_OF_TWO = ("duplicate_inside", "duplicate_across", "near_inside", "near_across")
_OF_MANY = ("label_missing", "label_empty", "label_beside")
"""Findings about two pictures, and those about many of a split: they name the first, and count."""


@dataclass(eq=False)
class FindingIndex:
    """Which findings are about which pictures.

    A finding is about a picture if it names its file, or a label file of its own. A file that tells of the boxes of
    many pictures belongs to none; but where it has lines, a finding is about the picture whose box stands in its line,
    else about the one whose boxes were read when it was found.
    What is said of two pictures, or of many (no label file, an empty one, one beside the picture), is about each.

    Attributes:
        of_picture: number of a picture → its findings; only pictures that have some.
        of_data: findings about no single picture.
        pictures: code → numbers of the pictures, rising.
        severity: code → the worst that occurs.
        counts: P x 3: errors, warnings and notes of each picture.
    """

    of_picture: dict[int, list[Finding]] = field(default_factory=dict)
    of_data: list[Finding] = field(default_factory=list)
    pictures: dict[str, np.ndarray] = field(default_factory=dict)
    severity: dict[str, Severity] = field(default_factory=dict)
    counts: np.ndarray = field(default_factory=lambda: np.empty((0, 3), np.int64))


def index_findings(findings: Iterable[Finding], entries: Sequence[Entry]) -> FindingIndex:
    """Sorts findings, each once, to the pictures."""
    findings = list(dict.fromkeys(findings))
    places = _Places(entries, {finding.path.absolute() for finding in findings if finding.severity != "note"})
    index = FindingIndex(counts=np.zeros((len(entries), len(_SEVERITIES)), np.int64))
    by_code: dict[str, set[int]] = {}
    for finding in findings:
        about = places.of(finding)
        if not about:
            index.of_data.append(finding)
            continue
        rank = _SEVERITIES.index(finding.severity)
        worst = index.severity.setdefault(finding.code, finding.severity)
        if rank < _SEVERITIES.index(worst):
            index.severity[finding.code] = finding.severity
        by_code.setdefault(finding.code, set()).update(about)
        for picture in about:
            index.of_picture.setdefault(picture, []).append(finding)
            index.counts[picture, rank] += 1
    codes = sorted(by_code, key=lambda code: (_SEVERITIES.index(index.severity[code]), code))
    index.pictures = {code: np.array(sorted(by_code[code]), np.int64) for code in codes}
    return index


class _Places:
    """Finding → the pictures that it is about. ``spoiled``: files of which errors or warnings are known."""

    def __init__(self, entries: Sequence[Entry], spoiled: set[Path]) -> None:
        self._entries, self._spoiled = entries, spoiled
        self._pictures: dict[Path, list[int]] = {}
        self._labels: dict[Path, list[int]] = {}
        self._lines: dict[Path, dict[int, list[int]]] = {}
        for i, entry in enumerate(entries):
            self._pictures.setdefault(entry.path.absolute(), []).append(i)
            if entry.label_path is not None:
                self._labels.setdefault(entry.label_path.absolute(), []).append(i)

    def of(self, finding: Finding) -> list[int]:
        about = self._named(finding)
        if finding.code in _OF_TWO:
            other = self._pictures.get(Path(finding.value).absolute(), [])
            return list(dict.fromkeys([*about, *other]))
        if finding.code in _OF_MANY:
            splits = {self._entries[i].split for i in about}
            many = (i for i, one in enumerate(self._entries) if one.split in splits)
            return sorted({*about, *(i for i in many if self._is(finding.code, self._entries[i]))})
        return about

    def _is(self, code: str, entry: Entry) -> bool:
        """Whether a finding of this code, about the whole split, counts this picture."""
        if code == "label_missing":
            return entry.label_path is None and entry.size_wh != (0, 0)
        if entry.label_path is None:
            return False
        if code == "label_beside":
            return entry.label_path.parent == entry.path.parent
        return not len(entry.labels) and entry.label_path.absolute() not in self._spoiled

    def _named(self, finding: Finding) -> list[int]:
        """The pictures whose files are named."""
        path = finding.path.absolute()  # a diagnosis may have been made from another folder's view
        if path in self._pictures:
            return self._pictures[path]
        sharing = self._labels.get(path, [])
        if len(sharing) < 2:
            return sharing
        if finding.line is not None:
            at_line = self._at_line(path, sharing).get(finding.line, [])
            if at_line:
                return at_line
        # a.jpg and a.png share a.txt, which is then about both
        same_name = [i for i in sharing if self._entries[i].path.stem == finding.path.stem]
        if same_name or finding.picture is None:
            return same_name
        return self._pictures.get(finding.picture.absolute(), [])

    def _at_line(self, path: Path, sharing: Sequence[int]) -> dict[int, list[int]]:
        if path not in self._lines:
            lines: dict[int, list[int]] = {}
            for i in sharing:
                rows = self._entries[i].rows
                for line in [] if rows is None else rows.tolist():
                    lines.setdefault(line, []).append(i)
            self._lines[path] = lines
        return self._lines[path]
