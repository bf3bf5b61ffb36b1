"""A selection as Python."""

from pathlib import Path

from yolov9kit.doctor.diagnosis import Diagnosis
from yolov9kit.explore.filter import ExploreFilter


def selection_code(wanted: ExploreFilter, source: Path | None, diagnosis: Diagnosis | None) -> str:
    """Python that selects the same pictures; without a source, of an ``explorer`` that is there already."""
    select = f"selection = explorer.select({wanted})\n"
    if source is None:
        return select
    names = ["Explorer", "ExploreFilter"]
    given = "data"
    if diagnosis is not None:
        names.append("diagnose")
        settings = diagnosis.config.model_dump(exclude_defaults=True)
        config = ""
        if settings:
            names.append("DoctorConfig")
            config = f", DoctorConfig({', '.join(f'{name}={value!r}' for name, value in settings.items())})"
        given = f"data, diagnosis=diagnose(data{config})"
    return (
        f"from yolov9kit import {', '.join(sorted(names))}\n\n"
        f"data = {str(source)!r}\nexplorer = Explorer.open({given})\n{select}"
    )
