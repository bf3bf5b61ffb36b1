"""Writes sample_data/broken: one fault for each picture, and what a doctor finds there.

``python -m tests.doctor.broken FOLDER`` writes it anew.
"""

import json
import random
import sys
from pathlib import Path

from tests.doctor.drawn_set import DrawnSet, clean_set, drawn
from tests.doctor.injector import PLANTERS
from yolov9kit.doctor.codes import CODES

SIZE_WH = (160, 120)
FAULTS = (
    "label_columns",
    "label_number",
    "label_class",
    "label_class_range",
    "label_outside",
    "label_pixels",
    "label_no_area",
    "label_clipped",
    "label_repeated",
    "label_near_repeat",
    "label_conflict",
    "label_mixed",
    "label_missing",
    "label_empty",
    "box_tiny",
    "picture_empty",
    "picture_truncated",
    "picture_not_a_picture",
    "picture_end",
    "picture_orientation",
    "picture_mode",
    "picture_suffix",
    "duplicate_across",
)
"""Each has a picture that is called after it. There is also a label file without a picture."""


def broken_set() -> DrawnSet:
    """The faults, each planted into a set of one picture; then put together."""
    whole = clean_set((), ())
    for seed, code in enumerate(FAULTS):
        alone = DrawnSet([drawn("train", seed, code, size_wh=SIZE_WH)])
        assert PLANTERS[code](alone, random.Random(seed)), code
        for one in alone.pictures[1:]:
            one.stem = f"{code} again"
        whole.pictures += alone.pictures
        whole.listed += alone.listed
        whole.files |= alone.files
        whole.expected += alone.expected
    whole.files["labels/train/label_orphan.txt"] = b"0 0.5 0.5 0.2 0.1\n"
    whole.expect("label_orphan", "labels/train/label_orphan.txt")
    for seed in range(100, 104):
        whole.add(drawn("val", seed, size_wh=SIZE_WH))
    return whole


def write_broken(folder: Path) -> Path:
    """The set and ``expected.json``: code, severity, file and line of each finding."""
    whole = broken_set()
    expected = [
        {"code": code, "severity": CODES[code].severity, "file": file, "line": line}
        for code, file, line in whole.all_expected()
    ]
    yaml = whole.write(folder)
    text = json.dumps(expected, indent=1) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")
    return yaml


if __name__ == "__main__":
    print(write_broken(Path(sys.argv[1])))
