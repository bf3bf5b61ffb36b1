"""What a selection of pictures is made of, as lists and small charts; a line of a list is a filter to press."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import anywidget
import numpy as np
import traitlets as t

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Row:
    """A line of a list.

    Attributes:
        key: what is reported when it is pressed.
        label: its words.
        count: what stands at its end.
        share: 0..1, how long its bar is; None: it has none.
        pressed: whether it filters now.
        severity: error, warning or note; empty: none of them.
        colour: of a class, "#rrggbb"; empty: none.
        about: more words, shown when it is pointed at.
    """

    key: str
    label: str
    count: int
    share: float | None = None
    pressed: bool = False
    severity: str = ""
    colour: str = ""
    about: str = ""


@dataclass(frozen=True)
class Rows:
    """A list. ``key`` is reported with that of the line pressed. ``words`` stand where there is no line."""

    key: str
    title: str
    rows: Sequence[Row]
    note: str = ""
    words: str = "none"
    kind: Literal["rows"] = "rows"


@dataclass(frozen=True)
class Bins:
    """A histogram: ``edges`` in words, one more than ``counts``. ``ticks``: which edges are written below the bars."""

    key: str
    title: str
    edges: Sequence[str]
    counts: Sequence[int]
    ticks: Sequence[int] = ()
    note: str = ""
    kind: Literal["bins"] = "bins"


@dataclass(frozen=True)
class Heat:
    """Counts on a picture, row by row, ``columns`` in each."""

    key: str
    title: str
    counts: Sequence[int]
    columns: int
    note: str = ""
    kind: Literal["heat"] = "heat"


Section = Rows | Bins | Heat


class Facets(anywidget.AnyWidget):
    """Sections below each other.

    Args:
        on_pick: called with the keys of the list and of the line that was pressed.
    """

    _esm = _HERE / "facets.js"
    _css = _HERE / "facets.css"

    sections = t.List(t.Dict()).tag(sync=True)

    def __init__(self, on_pick: Callable[[str, str], object] | None = None) -> None:
        self._on_pick = on_pick
        super().__init__()
        self.on_msg(self._hear)

    def show(self, sections: Sequence[Section]) -> None:
        """Show these instead of those before. Lists and charts with the same key change in place."""
        self.sections = [_plain(section) for section in sections]

    def _hear(self, _: Any, content: Any, __: Any) -> None:
        if isinstance(content, dict) and content.get("kind") == "pick" and self._on_pick is not None:
            self._on_pick(str(content.get("section")), str(content.get("row")))


def _plain(section: Section) -> dict[str, Any]:
    made = asdict(section)
    if "counts" in made:
        made["counts"] = np.asarray(section.counts).ravel().tolist()  # type: ignore[union-attr]
    return made
