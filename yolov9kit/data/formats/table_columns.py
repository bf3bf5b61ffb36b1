"""Which column of a table of boxes means what: by its header, or by what stands in rows without one."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from yolov9kit.data.image import is_image_name

Form = Literal["corners", "size", "centre", "four"]
"""What the four coordinates are: two corners; left, top, width, height; centre, width, height; or untold."""

_FILE = ("filename", "imagefilename", "imagename", "imgname", "filepath", "imagepath", "imgpath", "path", "file",
         "image", "img", "picture", "imagefile", "imageid", "imgid")  # fmt: skip
_CLASS = ("classname", "labelname", "categoryname", "classlabel", "class", "label", "category", "object", "name",
          "classid", "labelid", "categoryid", "target")  # fmt: skip
_SPLIT = ("split", "subset", "set")
_WIDTH = ("imagewidth", "imgwidth", "imagew", "imgw", "picturewidth", "originalwidth")
_HEIGHT = ("imageheight", "imgheight", "imageh", "imgh", "pictureheight", "originalheight")
_LEFT, _TOP = ("xmin", "minx", "x1", "x0", "left", "xleft"), ("ymin", "miny", "y1", "y0", "top", "ytop")
_RIGHT, _BOTTOM = ("xmax", "maxx", "x2", "right", "xright"), ("ymax", "maxy", "y2", "bottom", "ybottom")
_BOX_WIDTH, _BOX_HEIGHT = ("width", "w", "boxwidth", "boxw"), ("height", "h", "boxheight", "boxh")
_CENTRE_X, _CENTRE_Y = ("xcenter", "centerx", "xcentre", "centrex", "cx", "xc"), (
    "ycenter", "centery", "ycentre", "centrey", "cy", "yc")  # fmt: skip
_BOX = ("bbox", "box", "boundingbox", "bboxes", "coordinates")


@dataclass(frozen=True)
class Columns:
    """Numbers of columns, from 0. ``box`` holds one (all four values in one text) or four. ``label`` and the others are
    None where there is no such column.

    ``corner_untold``: the columns are called x and y alone. ``open_images``: coordinates are shares by definition.
    ``notes``: choices that had to be made, as sentences.
    """

    count: int
    file: int
    box: tuple[int, ...]
    form: Form
    label: int | None = None
    split: int | None = None
    width: int | None = None
    height: int | None = None
    group: int | None = None
    corner_untold: bool = False
    open_images: bool = False
    header: bool = True
    notes: tuple[str, ...] = field(default=())


def by_header(cells: Sequence[str]) -> Columns | str | None:
    """None: no header of a table of boxes; a text says why its boxes cannot be read."""
    names = [_plain(cell) for cell in cells]
    files = _all(names, _FILE)
    if not files:
        return None
    box, form = _box_columns(names)
    if form is None:
        return None
    if "x3" in names and "y3" in names:
        return "holds boxes by more than two corners (x3, y3): write xmin, ymin, xmax, ymax of the box around each"
    twice = [name for name in names if name and names.count(name) > 1]
    if twice:
        return f"has two columns called '{twice[0]}': rename or remove one"
    free = [i for i in range(len(names)) if i not in (*box, *files)]
    labels = [i for i in _all(names, _CLASS) if i in free]
    notes = []
    if len(files) > 1:
        notes.append(f"pictures are named by column '{cells[files[0]]}', '{cells[files[1]]}' is not used")
    if len(labels) > 1:
        notes.append(f"classes are named by column '{cells[labels[0]]}', '{cells[labels[1]]}' is not used")
    inside = [
        (names.index(w), names.index(h)) for w, h in (("width", "height"),) if w in names and h in names
    ]
    sizes = [pair for pair in inside if not set(pair) & set(box)]
    width = next(iter(_all(names, _WIDTH)), sizes[0][0] if sizes else None)
    height = next(iter(_all(names, _HEIGHT)), sizes[0][1] if sizes else None)
    first = names[box[0]]
    return Columns(
        len(cells),
        files[0],
        box,
        form,
        labels[0] if labels else None,
        next((i for i in _all(names, _SPLIT) if i in free), None),
        width,
        height,
        names.index("isgroupof") if "isgroupof" in names else None,
        corner_untold=len(box) == 4 and form == "size" and first == "x",
        open_images="imageid" in names and "labelname" in names and first == "xmin" and form == "corners",
        notes=tuple(notes),
    )


def by_rows(rows: Sequence[Sequence[str]]) -> Columns | str | None:
    """Of rows without a header, which begin with the name of a picture; a text says why they cannot be read, None that
    they are no boxes."""
    full = [row for row in rows if any(cell.strip() for cell in row[1:])]
    if not full or not is_image_name(full[0][0].strip()):
        return None
    count = Counter(map(len, full)).most_common(1)[0][0]
    usual = [row for row in full if len(row) == count]
    numeric = [2 * sum(is_number(row[i]) for row in usual) > len(usual) for i in range(count)]
    if sum(numeric) < 4:
        return None
    if count == 5:
        return Columns(count, 0, (1, 2, 3, 4), "four", header=False)
    if count == 6 and not all(numeric[1:]):
        if all(numeric[2:]):
            return Columns(count, 0, (2, 3, 4, 5), "four", label=1, header=False)
        if all(numeric[1:5]):
            return Columns(count, 0, (1, 2, 3, 4), "four", label=5, header=False)
    return (
        f"{count} columns without a header: write their names above them (filename,class,xmin,ymin,xmax,ymax)"
    )


def is_class_table(header: Sequence[str], row: Sequence[str]) -> bool:
    """Whether a header names pictures and their classes, and nothing of boxes; or a column for each class, 0 or 1."""
    names = [_plain(cell) for cell in header]
    if not _all(names, _FILE) or _all(names, _LEFT):
        return False
    flags = (
        len(header) > 1 and len(row) == len(header) and all(cell.strip() in ("0", "1") for cell in row[1:])
    )
    return bool(_all(names, _CLASS)) or flags


def _box_columns(names: list[str]) -> tuple[tuple[int, ...], Form | None]:
    def first(candidates: Sequence[str]) -> int | None:
        return next(iter(_all(names, candidates)), None)

    left, top = first(_LEFT), first(_TOP)
    right, bottom = first(_RIGHT), first(_BOTTOM)
    if right is None and bottom is None and "x0" in names and "x1" in names:
        left, top, right, bottom = first(("x0",)), first(("y0",)), first(("x1",)), first(("y1",))
    width, height = first(_BOX_WIDTH), first(_BOX_HEIGHT)
    forms: tuple[tuple[Form, tuple[int | None, ...]], ...] = (
        ("corners", (left, top, right, bottom)),
        ("centre", (first(_CENTRE_X), first(_CENTRE_Y), width, height)),
        ("size", (left, top, width, height)),
        ("size", (first(("x",)), first(("y",)), width, height)),
        ("four", (first(_BOX),)),
    )
    for form, columns in forms:
        found = tuple(column for column in columns if column is not None)
        if len(found) == len(columns):
            return found, form
    return (), None


def _all(names: list[str], candidates: Sequence[str]) -> list[int]:
    """The columns of such names, in the order of the candidates."""
    return [names.index(name) for name in candidates if name in names]


def _plain(cell: str) -> str:
    name = re.sub(r"[\s_\-.\"']+", "", cell).lower()
    return name if name in _BOX else name.removeprefix("bbox")


def is_number(cell: str) -> bool:
    """A decimal number of ASCII digits, finite, blanks around it."""
    return re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*", cell) is not None
