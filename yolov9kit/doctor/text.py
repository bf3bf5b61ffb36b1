"""A diagnosis as lines for a terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from yolov9kit.data.findings import Finding, Severity
from yolov9kit.doctor.codes import CODES
from yolov9kit.doctor.diagnosis import SHARES, Diagnosis, SplitFacts
from yolov9kit.types import printable

SHOWN = 5
"""Places that are told of each code."""


def report(diagnosis: Diagnosis, *, everything: bool = False, beside: Path | None = None) -> str:
    """What was looked at, then a block for each code with its first places; ``everything``: with all of them.

    Files below the folder ``beside`` are named from there on.
    """
    findings = diagnosis.findings
    if beside is not None:
        findings = tuple(replace(finding, path=_from(beside, finding.path)) for finding in findings)
    blocks = ["\n".join(_about(diagnosis))]
    blocks += ["\n".join(_block(group, everything)) for group in by_code(findings)]
    return "\n\n".join([*blocks, _end(diagnosis)])


def by_code(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """Findings of one code and severity together, in the order in which these first occur."""
    groups: dict[tuple[str, Severity], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.severity), []).append(finding)
    return [tuple(group) for group in groups.values()]


def in_lines(findings: Iterable[Finding]) -> list[str]:
    """A line for each code: how many findings, and the first place."""
    return [_one_line(group) for group in by_code(findings)]


def _one_line(group: Sequence[Finding]) -> str:
    first = group[0]
    if len(group) == 1:
        return f"{first.severity}: {first}"
    return f"{first.severity}: {CODES[first.code].title.lower()}, {len(group)} of them, the first: {first}"


def _about(diagnosis: Diagnosis) -> list[str]:
    kind = f", {diagnosis.kind}" if diagnosis.kind else ""
    names = ", ".join(diagnosis.names[:8]) + (", ..." if len(diagnosis.names) > 8 else "")
    classes = (
        f", {len(diagnosis.names)} class{'' if len(diagnosis.names) == 1 else 'es'} ({names})"
        if names
        else ""
    )
    return [
        printable(f"{diagnosis.data}{kind}{classes}"),
        *(_facts(facts, diagnosis.config.image_size) for facts in diagnosis.splits),
    ]


def _facts(facts: SplitFacts, image_size: int) -> str:
    parts = [
        f"{_count(facts.pictures, 'picture')} of {_sizes(facts)}",
        _count(facts.boxes, "box", "boxes"),
    ]
    if facts.box_sides_px:
        middle = facts.box_sides_px[SHARES.index(0.5)]
        parts.append(f"half of them narrower than {middle:.0f} px at {image_size}")
    if facts.empty_labels or facts.missing_labels:
        parts.append(
            f"backgrounds: {facts.empty_labels} with an empty label file, {facts.missing_labels} without one"
        )
    if facts.left_out:
        parts.append(f"{facts.left_out} left out")
    return f"  {printable(facts.split)}: {', '.join(parts)}"


def _from(folder: Path, path: Path) -> Path:
    return path.relative_to(folder) if path.is_relative_to(folder) else path


def _sizes(facts: SplitFacts) -> str:
    smallest, largest = _size(facts.smallest_wh), _size(facts.largest_wh)
    return smallest if smallest == largest else f"{smallest} to {largest}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _size(wh: tuple[int, int]) -> str:
    return f"{wh[0]} x {wh[1]}"


def _block(group: Sequence[Finding], everything: bool) -> list[str]:
    first = group[0]
    code = CODES[first.code]
    shown = group if everything else group[:SHOWN]
    lines = [f"{first.severity.upper()} {code.title} [{first.code}]: {len(group)}. {code.to_do}"]
    lines += [f"  {finding}" for finding in shown]
    if len(shown) < len(group):
        lines.append(f"  and {len(group) - len(shown)} more (--all)")
    return lines


def _end(diagnosis: Diagnosis) -> str:
    return f"{diagnosis.summary()}: {diagnosis.verdict}"
