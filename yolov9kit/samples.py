"""What is at hand for a first try: weights files in a folder, and pictures that come with the project."""

import os
from itertools import chain
from pathlib import Path

from yolov9kit.data.synthetic import draw_shapes

SHAPES = 6
"""Drawn pictures in the sample set."""

_PLACES = ("*", "weights/*", "sample_data/weights/*", "runs/*/weights/*", "runs/*/*/weights/*")


def find_weights(folder: str | Path = ".") -> list[Path]:
    """Weights files in ``folder`` and the usual places below it, by name; reads none of them."""
    root = Path(folder)
    found = chain.from_iterable(root.glob(place) for place in _PLACES)
    return sorted(
        {path for path in found if path.suffix in (".pt", ".pth", ".safetensors") and path.is_file()}
    )


def sample_pictures() -> Path:
    """The folder of drawn sample pictures.

    They lie in the project's ``sample_data``. Where only the package is installed they are drawn again, into the user's
    cache folder.
    """
    here = Path(__file__).parents[1] / "sample_data" / "shapes"
    if here.is_dir():
        return here
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yolov9kit" / "shapes"
    write_shapes(cache)
    return cache


def write_shapes(folder: Path) -> None:
    """Draw the sample set into ``folder``; files that are there already stay as they are."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(SHAPES):
        target = folder / f"shapes_{seed}.png"
        if not target.exists():
            Image.fromarray(draw_shapes(seed).pixels).save(target, optimize=True)
