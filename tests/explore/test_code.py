"""The code of a selection."""

from pathlib import Path

from yolov9kit import ExploreFilter
from yolov9kit.doctor.config import DoctorConfig
from yolov9kit.doctor.diagnosis import Diagnosis
from yolov9kit.explore.code import selection_code


def test_without_a_source_the_explorer_is_there_already() -> None:
    assert selection_code(ExploreFilter(empty=True), None, None) == (
        "selection = explorer.select(ExploreFilter(empty=True))\n"
    )


def test_a_diagnosis_is_made_with_its_settings() -> None:
    diagnosis = Diagnosis(Path("set"), config=DoctorConfig(image_size=320, near_duplicates=False))
    code = selection_code(ExploreFilter(), Path("it's/set"), diagnosis)
    assert code == (
        "from yolov9kit import DoctorConfig, ExploreFilter, Explorer, diagnose\n\n"
        'data = "it\'s/set"\n'
        "explorer = Explorer.open(data, "
        "diagnosis=diagnose(data, DoctorConfig(image_size=320, near_duplicates=False)))\n"
        "selection = explorer.select(ExploreFilter())\n"
    )
    assert "Explorer.open(data, diagnosis=diagnose(data))" in selection_code(
        ExploreFilter(), Path("set"), Diagnosis(Path("set"))
    )
