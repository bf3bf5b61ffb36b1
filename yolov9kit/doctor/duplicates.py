"""Pictures that are the same, or look alike: told from what decoding them left behind, no file is opened."""

import base64
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from yolov9kit.data.checked import LOOK_SIDE, Checked

_ALIKE = 0.97
"""The same photo saved anew, scaled or brightened has 0.98 or more; unlike ones hardly ever 0.85."""
_ROWS = 512  # pictures compared with all later ones at once: 40 MB where there are 20,000


def exact_groups(checked: Mapping[Path, Checked]) -> list[tuple[Path, ...]]:
    """Pictures whose files hold the same bytes, each group in the order of ``checked``; never unreadable ones."""
    same: dict[str, list[Path]] = {}
    for path, facts in checked.items():
        if facts.digest:
            same.setdefault(facts.digest, []).append(path)
    return [tuple(paths) for paths in same.values() if len(paths) > 1]


def near_groups(checked: Mapping[Path, Checked]) -> list[tuple[Path, ...]]:
    """Pictures that look alike although their bytes differ: saved anew, scaled, brightened, or one scene twice.

    The first of a group is the earliest in ``checked`` that each of the others looks like. These do not always look
    like each other, and one of them can be the first of another group: views of a moving scene form a chain.
    Of files with the same bytes only the earliest takes part. Flat pictures look like nothing.

    The measure: the gray pictures of ``Checked.look``, as differences between neighbouring pixels, have a cosine of
    0.97 or more. It knows nothing of brightness and contrast, and a small object at another place lowers it more
    than it would lower that of the gray levels themselves.
    """
    firsts: dict[str, Path] = {}
    for path, facts in checked.items():
        if facts.look:
            firsts.setdefault(facts.digest, path)
    paths = list(firsts.values())
    if len(paths) < 2:
        return []
    parents = _earliest_alike(_steps([checked[path].look for path in paths]))
    groups: dict[int, list[Path]] = {}
    for child in np.flatnonzero(parents >= 0).tolist():
        parent = int(parents[child])
        groups.setdefault(parent, [paths[parent]]).append(paths[child])
    return [tuple(groups[parent]) for parent in sorted(groups)]


def _steps(looks: list[str]) -> np.ndarray:
    """N x 264 float32: the differences between neighbouring pixels, across and down, each row of length 1."""
    gray = np.frombuffer(b"".join(map(base64.b64decode, looks)), np.uint8).astype(np.float32)
    gray = gray.reshape(-1, LOOK_SIDE, LOOK_SIDE)
    count = len(gray)
    across, down = np.diff(gray, axis=2).reshape(count, -1), np.diff(gray, axis=1).reshape(count, -1)
    steps = np.concatenate((across, down), axis=1)
    return steps / np.linalg.norm(steps, axis=1, keepdims=True)


def _earliest_alike(steps: np.ndarray) -> np.ndarray:
    """For each row the earliest row before it that is like it, -1 where there is none."""
    parents = np.full(len(steps), -1)
    for top in range(0, len(steps), _ROWS):
        rows = steps[top : top + _ROWS]
        later = top + np.flatnonzero(parents[top:] < 0)  # who has found an earlier one needs no other
        alike = rows @ steps[later].T >= _ALIKE
        alike &= later > top + np.arange(len(rows))[:, None]
        found = alike.any(axis=0)
        parents[later[found]] = top + alike[:, found].argmax(axis=0)  # argmax: the first that is true
    return parents
