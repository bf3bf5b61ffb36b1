"""What all tests share: fixed seeds, and the folder of reference data beside the repository."""

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

if "PYTEST_XDIST_WORKER" in os.environ:
    # several test processes at once: were each to use every core, they would mostly wait for each other's threads
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture(autouse=True)
def _seeds() -> None:
    """The same numbers in each test, whatever ran before. Seeds only what is loaded."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests keep for another time does not fill the user's cache, and nothing of his is found in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Small work is done sooner by one thread, above all on a busy machine and beside other processes."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Reference data, no part of the project: skips, by name, where it is not beside the repository."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the reference data in ../shared, which is not beside this checkout")
    return folder


@pytest.fixture(scope="session")
def lively_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Size t, 3 classes, deployed, random: its scores spread around one half, so that it finds plenty in noise."""
    from yolov9kit import save, untrained

    names = ["nut", "bolt", "wing nut"]
    target = tmp_path_factory.mktemp("weights") / "lively model.safetensors"
    return save(untrained(names, seed=7).model, target, names=names, input_hw=(64, 64))


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five pictures of different sizes, seeded noise of different grain."""
    import numpy as np
    from PIL import Image

    folder = tmp_path_factory.mktemp("photos")
    random_numbers = np.random.default_rng(3)
    for i, (width, height) in enumerate([(96, 64), (64, 96), (200, 120), (64, 64), (33, 150)]):
        grain = random_numbers.integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=np.uint8)
        Image.fromarray(grain).resize((width, height)).save(folder / f"photo {i}.png")
    return folder
