"""Which pictures of a data set belong together: copies of each other, views of one scene, of one source."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from yolov9kit.data.checked import Checked
from yolov9kit.doctor.duplicates import exact_groups, near_groups
from yolov9kit.errors import UsageError

ROBOFLOW_COPIES = r"^(.+)[._](?:jpe?g|png|bmp|webp|tiff?)\.rf\.[0-9A-Za-z]+\."
"""Augmented copies that a Roboflow export makes of one picture: ``board_jpg.rf.HASH.jpg``."""


def groups_of(
    paths: Sequence[Path], checked: Mapping[Path, Checked], group_by: str | None
) -> tuple[list[list[int]], dict[str, int]]:
    """The pictures as groups of indices into ``paths``, each picture in one group, in the order of their first.

    Also how many pictures each reason to stay together ties to another: equal bytes, looks, name.

    Args:
        paths: each once.
        checked: what decoding told of each.
        group_by: a regular expression that is looked for in each file name: pictures whose first group (without one:
            whose match) is equal stay together. None: names play no part.

    Raises:
        UsageError: ``group_by`` is no regular expression.
    """
    index = {path: i for i, path in enumerate(paths)}
    known = {path: checked[path] for path in paths}
    reasons = {
        "the same bytes": exact_groups(known),
        "look alike": near_groups(known),
        "one source by name": _by_name(paths, group_by),
    }
    parent = list(range(len(paths)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = i = parent[parent[i]]
        return i

    for tied in reasons.values():
        for together in tied:
            first, *others = (root(index[path]) for path in together)
            for other in others:
                low, high = sorted((root(first), root(other)))
                parent[high] = low
    groups: dict[int, list[int]] = {}
    for i in range(len(paths)):
        groups.setdefault(root(i), []).append(i)
    counts = {reason: sum(map(len, tied)) for reason, tied in reasons.items()}
    return list(groups.values()), counts


def _by_name(paths: Sequence[Path], group_by: str | None) -> list[tuple[Path, ...]]:
    if group_by is None:
        return []
    try:
        pattern = re.compile(group_by)
    except re.error as fault:
        raise UsageError(f"group_by {group_by!r}: not a regular expression ({fault})") from fault
    named: dict[str, list[Path]] = {}
    for path in paths:
        if match := pattern.search(path.name):
            key = match.group(1) if pattern.groups else match.group()
            named.setdefault(key or "", []).append(path)
    return [tuple(together) for together in named.values() if len(together) > 1]
