"""What is at hand for a first try: drawn boards to learn from and to look at, and weights that know them."""

import os
import shutil
from contextlib import suppress
from itertools import chain
from pathlib import Path

from yolov9kit.cache import cache_folder
from yolov9kit.data.boards.board import write_boards
from yolov9kit.errors import UsageError

TRAIN_BOARDS, VAL_BOARDS = 96, 32
BOARD_SEED = 6
BOARD_SIZE = (320, 320)
"""Width and height of a board of the sample set, pixels."""

WEIGHTS = "weights/yolov9-t-pcb.safetensors"

_PLACES = ("*", "weights/*", "sample_data/weights/*", "runs/*/weights/*", "runs/*/*/weights/*")


def find_weights(folder: str | Path = ".") -> list[Path]:
    """Weights files in ``folder`` and the usual places below it, by name; reads none of them."""
    root = Path(folder)
    found = chain.from_iterable(root.glob(place) for place in _PLACES)
    return sorted(
        {path for path in found if path.suffix in (".pt", ".pth", ".safetensors") and path.is_file()}
    )


def sample_data() -> Path:
    """The data.yaml of the sample set: drawn circuit boards with six kinds of defect, 96 to train on and 32 to look at.

    They lie in the project's ``sample_data``. Where only the package is installed they are drawn again, into the user's
    cache folder.
    """
    here = _shipped() / "pcb" / "data.yaml"
    if here.is_file():
        return here
    cache = cache_folder() / "pcb"
    if not cache.is_dir():
        new = cache.with_name(f".pcb-{os.getpid()}")  # beside it: what was interrupted is not half a data set
        shutil.rmtree(new, ignore_errors=True)
        write_sample_data(new)
        with suppress(OSError):  # another process was first
            new.rename(cache)
        shutil.rmtree(new, ignore_errors=True)
    return cache / "data.yaml"


def sample_pictures() -> Path:
    """The folder of the sample set's boards that are not for training."""
    return sample_data().parent / "images" / "val"


def sample_weights() -> Path:
    """Weights of size t that find defects on drawn and on real boards; trained on drawn boards alone.

    Raises:
        UsageError: they are not here, as only the package is installed.
    """
    path = _shipped() / WEIGHTS
    if not path.is_file():
        raise UsageError(
            f"{path}: not there. The sample weights belong to the project's folder; train some: "
            f"yolov9kit train --data {sample_data()} --cfg t"
        )
    return path


def write_sample_data(folder: Path) -> Path:
    """Draw the sample set into a new or empty folder; returns its data.yaml."""
    return write_boards(folder, TRAIN_BOARDS, VAL_BOARDS, BOARD_SEED, BOARD_SIZE)


def _shipped() -> Path:
    return Path(__file__).parents[1] / "sample_data"
