"""sample_data/broken is what its writer makes, and the doctor finds there what stands in its expected.json."""

import json
from pathlib import Path

import numpy as np

from tests.doctor.broken import FAULTS, write_broken
from yolov9kit.data.image import decode_image, is_image_name
from yolov9kit.doctor.codes import CODES
from yolov9kit.doctor.diagnose import diagnose
from yolov9kit.errors import PictureError

MOST_BYTES = 400_000
JPEG_LEVELS = 6
"""Another JPEG library may decode this much otherwise."""


def files(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def pixels_of(path: Path) -> np.ndarray | str:
    """H x W x 3, or the code of the reason why there are none."""
    try:
        return decode_image(path).pixels
    except PictureError as fault:
        return fault.code


def test_it_is_what_its_writer_makes(root: Path, tmp_path: Path) -> None:
    write_broken(tmp_path)
    ours, made = files(root / "sample_data/broken"), files(tmp_path)
    assert set(ours) == set(made)
    for name in ours:
        if not is_image_name(name):
            assert ours[name].read_bytes() == made[name].read_bytes(), name
            continue
        one, other = pixels_of(ours[name]), pixels_of(made[name])
        if isinstance(one, str) or isinstance(other, str):
            assert one == other, name
        else:
            assert one.shape == other.shape
            assert np.abs(one.astype(int) - other.astype(int)).max() <= JPEG_LEVELS, name


def test_the_doctor_finds_what_is_expected(root: Path) -> None:
    folder = root / "sample_data/broken"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    found = [
        {
            "code": finding.code,
            "severity": finding.severity,
            "file": finding.path.relative_to(folder).as_posix(),
            "line": finding.line,
        }
        for finding in diagnose(folder).findings
    ]
    assert sorted(found, key=str) == sorted(expected, key=str)


def test_each_fault_has_a_picture_called_after_it(root: Path) -> None:
    folder = root / "sample_data/broken"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    codes = {one["code"] for one in expected}
    assert codes == {*FAULTS, "label_orphan", "label_polygons"}  # polygons beside boxes are polygons as well
    assert codes <= set(CODES)
    named = {Path(name).stem for name in files(folder / "images")}
    assert set(FAULTS) <= named


def test_it_is_small(root: Path) -> None:
    assert sum(path.stat().st_size for path in files(root / "sample_data/broken").values()) < MOST_BYTES
