"""Data sets that lie below a folder, for a list to choose from."""

from itertools import chain
from pathlib import Path

import yolov9kit

_PLACES = ("data.yaml", "*/data.yaml", "*/*/data.yaml", "*/*/*/data.yaml")
SAMPLE = "sample boards: drawn circuit boards"


def known_data(folder: Path) -> list[tuple[str, str]]:
    """Data sets as (what a list says, path of the data.yaml): a person's own, by name, then the sample set.

    Looks three folders deep, not into hidden ones and not into runs.
    """
    sample = yolov9kit.sample_data()
    found = chain.from_iterable(folder.glob(place) for place in _PLACES)
    own = sorted(
        path for path in found if _is_own(path.relative_to(folder)) and path.resolve() != sample.resolve()
    )
    return [*((str(path.parent.relative_to(folder)), str(path)) for path in own), (SAMPLE, str(sample))]


def _is_own(path: Path) -> bool:
    return path.parts[0] != "runs" and not any(part.startswith(".") for part in path.parts)
