"""The part of the doctor that costs nothing where both data sets are open: what every training looks at."""

from pathlib import Path

from yolov9kit.data.dataset import Dataset
from yolov9kit.data.findings import Finding
from yolov9kit.doctor.balance import absent_findings
from yolov9kit.doctor.duplicates import exact_groups
from yolov9kit.doctor.splits import exact_findings, same_split


def gate(train: Dataset, val: Dataset) -> tuple[Finding, ...]:
    """Warnings about two data sets together: val equal to train, the same pictures in both, classes without boxes."""
    where = Path(train.name)
    found = [*same_split(where, train, val), *absent_findings(where, train, val)]
    across = exact_findings((train, val), exact_groups({**train.checked, **val.checked}))
    found += [finding for finding in across if finding.code == "duplicate_across"]
    return tuple(found)
