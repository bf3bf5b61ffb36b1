"""Which pictures of a data set are wanted, and in which order."""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, fields

from yolov9kit.errors import UsageError

SIZES = ("small", "medium", "large")
SORTS = ("name", "boxes", "findings", "size")
SMALL_PX, LARGE_PX = 32.0, 96.0
"""COCO's borders: a small box has less than 32 x 32 pixels of the picture, a large one more than 96 x 96."""


@dataclass(frozen=True)
class ExploreFilter:
    """All conditions hold together; of the values of one condition, any. An empty one asks for nothing.

    Attributes:
        splits: names of splits.
        classes: class numbers. With ``sizes`` both are asked of the same box: small nuts, not small boxes beside nuts.
        sizes: ``small`` (under 32 x 32 pixels of the picture), ``medium``, ``large`` (over 96 x 96).
        codes: of findings about the picture or its labels.
        text: words that all occur in the path below the data set's folder, in any case.
        empty: True: pictures that can be read and have no box; False: pictures with boxes; None: both.
        sort: by ``name`` (the path), ``boxes`` (most first), ``findings`` (most errors first, then warnings, then
            notes), ``size`` (largest picture first). Equal ones by name.

    Raises:
        UsageError: a size or an order that does not exist.
    """

    splits: tuple[str, ...] = ()
    classes: tuple[int, ...] = ()
    sizes: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    text: str = ""
    empty: bool | None = None
    sort: str = "name"

    def __post_init__(self) -> None:
        check_known("size", self.sizes, SIZES)
        check_known("order", (self.sort,), SORTS)

    def __str__(self) -> str:
        """As Python writes it, without what is left at its default."""
        given = (
            f"{one.name}={value!r}" for one in fields(self) if (value := vars(self)[one.name]) != one.default
        )
        return f"ExploreFilter({', '.join(given)})"


def check_known(what: str, given: Iterable[str], known: Iterable[str]) -> None:
    """Raises UsageError for the first of ``given`` that is not ``known``, naming those that are."""
    known = tuple(known)
    strange = next((one for one in given if one not in known), None)
    if strange is not None:
        raise UsageError(f"{what} {strange!r}: there is {', '.join(known) or 'none'}")


def as_searched(text: str) -> str:
    """Text so that case, and how accents are stored, make no difference."""
    return unicodedata.normalize("NFC", text).casefold()
