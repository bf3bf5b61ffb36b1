"""What the rows of a whole split tell together, and one row alone does not.

Four corners are an oriented box or a polygon, a class that is too large a slip or counted from 1: the other rows
decide.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from yolov9kit.data.findings import Finding, Severity
from yolov9kit.data.labels import LabelFile

_CONVERT = "training takes upright boxes: convert by `yolov9kit data convert DATA OUT --as-boxes`"
_FROM_ONE = "ids seem to start at 1"
_POLYGONS = ("label_polygons", "label_mixed")


class _Kind(NamedTuple):
    """How rows of one kind are spoken of."""

    code: str
    one: str
    many: str
    taken: str


_ORIENTED = _Kind(
    "label_oriented",
    "row gives the four corners of a tilted box",
    "rows give the four corners of a tilted box",
    "the upright box around each is taken",
)
_POINTS = _Kind(
    "label_points",
    "row has key points behind the box",
    "rows have key points behind the box",
    "the boxes alone are taken",
)


@dataclass
class _Rows:
    """Rows of one kind: how many, and where the first stands."""

    count: int = 0
    first: Path = Path()
    line: int = 0

    def add(self, path: Path, lines: tuple[int, ...]) -> None:
        if lines and not self.count:
            self.first, self.line = path, lines[0]
        self.count += len(lines)

    def finding(self, kind: _Kind, as_boxes: bool) -> Finding:
        what = f"{self.count} {kind.one if self.count == 1 else kind.many + ', this one first'}"
        ending = kind.taken if as_boxes else _CONVERT
        severity: Severity = "note" if as_boxes else "error"
        return Finding(
            kind.code, severity, self.first, f"{what}: {ending}", self.line or None, str(self.count)
        )


@dataclass
class SplitRows:
    """Gathers the label files of a split, then revises its findings.

    ``file`` stands for the data set in messages. ``as_boxes``: oriented boxes and key points are no error, for their
    boxes are asked for.
    """

    file: Path
    num_classes: int
    as_boxes: bool
    _oriented: _Rows = field(default_factory=_Rows)
    _points: _Rows = field(default_factory=_Rows)
    _other_polygons: int = 0
    _class_0_occurs: bool = False

    def add(self, path: Path, read: LabelFile) -> None:
        self._oriented.add(path, read.oriented)
        self._points.add(path, read.points)
        self._other_polygons += read.other_polygons
        self._class_0_occurs = self._class_0_occurs or bool((read.labels == 0).any())

    def revise(self, findings: list[Finding]) -> list[Finding]:
        """With one finding for oriented boxes, one for key points and one for classes that are counted from 1."""
        found = []
        if self._oriented.count and not self._other_polygons:
            found.append(self._oriented.finding(_ORIENTED, self.as_boxes))
            findings = [finding for finding in findings if finding.code not in _POLYGONS]
        if self._points.count:
            found.append(self._points.finding(_POINTS, self.as_boxes))
        beyond = [finding for finding in findings if finding.code == "label_class_range"]
        if beyond and not self._class_0_occurs and {f.value for f in beyond} == {str(self.num_classes)}:
            message = (
                f"class numbers go from 1 to {self.num_classes} and class 0 never occurs: {_FROM_ONE}; subtract 1 "
                "from each"
            )
            found.append(Finding("class_from_one", "error", self.file, message, value=str(len(beyond))))
            findings = [_with_guess(finding) for finding in findings]
        return [*found, *findings]


def _with_guess(finding: Finding) -> Finding:
    if finding.code != "label_class_range":
        return finding
    return replace(finding, message=f"{finding.message}; {_FROM_ONE}")
