"""What stands beside the pictures of a data set: its filters with their numbers, and charts of the selection."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import yolov9kit
from widgets.data_pictures import title_of_code
from widgets.facets import Bins, Heat, Row, Rows, Section

SIZES = {
    "small": "small boxes: under 32 x 32 px",
    "medium": "medium boxes",
    "large": "large boxes: over 96 x 96 px",
}
EMPTY = {"yes": "without boxes", "no": "with boxes"}


def sections_of(explorer: Any, chosen: Any, selection: np.ndarray) -> list[Section]:
    """Lists and charts of a selection.

    The numbers of a list say how many pictures there would be with that line alone pressed in it, beside the other
    filters; those of the classes count boxes of the pictures shown.
    """
    return [
        _findings(explorer, chosen),
        _classes(explorer, chosen, selection),
        _pictures(explorer, chosen),
        *_charts(explorer, selection),
    ]


def toggled(chosen: Any, section: str, key: str) -> Any:
    """The filter after a line of a list was pressed: in if it was out, out if it was in."""
    if section == "codes":
        return replace(chosen, codes=_flip(chosen.codes, key))
    if section == "classes":
        return replace(chosen, classes=_flip(chosen.classes, int(key)))
    kind, _, value = key.partition(":")
    if kind == "split":
        return replace(chosen, splits=_flip(chosen.splits, value))
    if kind == "size":
        return replace(chosen, sizes=_flip(chosen.sizes, value))
    wanted = value == "yes"
    return replace(chosen, empty=None if chosen.empty is wanted else wanted)


def chips_of(chosen: Any, names: Sequence[str]) -> list[tuple[str, str]]:
    """Key and words of each filter that holds."""
    chips = [(f"codes/{code}", f"finding: {title_of_code(code)}") for code in chosen.codes]
    chips += [(f"classes/{label}", f"class: {names[label]}") for label in chosen.classes]
    chips += [(f"pictures/split:{split}", f"split: {split}") for split in chosen.splits]
    chips += [(f"pictures/size:{size}", f"boxes: {size}") for size in chosen.sizes]
    if chosen.empty is not None:
        key = "yes" if chosen.empty else "no"
        chips.append((f"pictures/empty:{key}", EMPTY[key]))
    if chosen.text:
        chips.append(("text/", f"name: {chosen.text}"))
    return chips


def _flip(values: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    return tuple(v for v in values if v != value) if value in values else (*values, value)


def _findings(explorer: Any, chosen: Any) -> Rows:
    counts = explorer.finding_counts(explorer.select(replace(chosen, codes=())))
    gone = [code for code in chosen.codes if code not in counts]
    rows = [
        Row(code, title_of_code(code), n, pressed=code in chosen.codes, severity=severity, about=to_do(code))
        for code, (severity, n) in [*counts.items(), *((code, ("", 0)) for code in gone)]
    ]
    return Rows("codes", "Findings", rows, "pictures", "none about these pictures")


def to_do(code: str) -> str:
    """The advice for a kind of finding."""
    return str(yolov9kit.CODES[code].to_do) if code in yolov9kit.CODES else ""


def _classes(explorer: Any, chosen: Any, selection: np.ndarray) -> Rows:
    counts = explorer.class_counts(selection)
    most = max(1, counts.max(initial=0))
    rows = [
        Row(
            str(label), name, int(n), float(n / most), label in chosen.classes,
            colour="#{:02x}{:02x}{:02x}".format(*yolov9kit.class_colour(label)),
        )
        for label, (name, n) in enumerate(zip(explorer.names, counts, strict=True))
    ]  # fmt: skip
    return Rows("classes", "Classes", rows, f"{counts.sum():,} boxes on the pictures shown")


def _pictures(explorer: Any, chosen: Any) -> Rows:
    def count(**changes: Any) -> int:
        return len(explorer.select(replace(chosen, **changes)))

    rows = [
        Row(f"split:{split}", f"split {split}", count(splits=(split,)), pressed=split in chosen.splits)
        for split in explorer.splits
    ]
    rows += [
        Row(f"size:{size}", words, count(sizes=(size,)), pressed=size in chosen.sizes)
        for size, words in SIZES.items()
    ]
    rows += [
        Row(f"empty:{key}", words, count(empty=key == "yes"), pressed=chosen.empty is (key == "yes"))
        for key, words in EMPTY.items()
    ]
    return Rows("pictures", "Pictures", rows)


def _charts(explorer: Any, selection: np.ndarray) -> list[Section]:
    sides, side_counts = explorer.box_sizes(selection)
    shapes, shape_counts = explorer.aspects(selection)
    where = explorer.positions(selection)
    sides, side_counts = _without_empty_ends(sides, side_counts)
    shapes, shape_counts = _without_empty_ends(shapes, shape_counts)
    lengths, ratios = [f"{edge:.3g}" for edge in sides], [shape_words(edge) for edge in shapes]
    return [
        Bins("sides", "Box sizes", lengths, side_counts, _ticks(np.log2(sides)), "square root of the area, px"),
        Bins("shapes", "Box shapes", ratios, shape_counts, _ticks(shapes), "width : height"),
        Heat("where", "Where boxes lie", where.ravel(), where.shape[1], "centres, in the picture"),
    ]  # fmt: skip


def shape_words(log2_aspect: float) -> str:
    """A ratio of width to height: 2:1, 1:1.4."""
    ratio = 2.0 ** abs(log2_aspect)
    words = f"{ratio:.2g}" if ratio < 10 else f"{ratio:.0f}"
    return f"{words}:1" if log2_aspect > 0 else f"1:{words}"


def _without_empty_ends(edges: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """From the first to the last bar that counts anything, and one more on each side."""
    used = np.flatnonzero(counts)
    if not len(used):
        return edges, counts
    first, last = max(0, used[0] - 1), min(len(counts), used[-1] + 2)
    return edges[first : last + 1], counts[first:last]


def _ticks(exponents: np.ndarray, most: int = 6) -> list[int]:
    """The edges that are powers of two, evenly thinned where they are many."""
    whole = np.flatnonzero(np.abs(exponents - np.round(exponents)) < 1e-6)
    return [int(k) for k in whole[:: -(-len(whole) // most)]] if len(whole) else []
