"""The rows of a YOLO label file: made of boxes, or those of the source under new class numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from yolov9kit.data.labels import LabelFile, read_labels
from yolov9kit.errors import DataError
from yolov9kit.rewrite.item import Item
from yolov9kit.types import printable

SAME_PX = 1e-3
"""Boxes come back from a label file at most this far from where they were."""
_EXACT = 17


def label_texts(item: Item, keep_polygons: bool) -> Iterator[bytes]:
    """What may stand in the label file of a picture, the most faithful first.

    The source's own rows where it has such, then rows of about as many digits as the picture's size needs, then rows
    with every digit that there is.
    """
    own = own_rows(item, keep_polygons)
    if own is not None:
        yield own
    yield box_rows(item, _digits(item)).encode()
    yield box_rows(item, _EXACT).encode()


def box_rows(item: Item, digits: int) -> str:
    """``class cx cy w h`` for each box, as shares of the picture with ``digits`` decimals."""
    return "".join(
        _row(label, box, item.sample.size_wh, digits) + "\n"
        for label, box in zip(item.classes.tolist(), item.boxes.tolist(), strict=True)
    )


def own_rows(item: Item, keep_polygons: bool) -> bytes | None:
    """The rows of the sample's own label file without those that gave no box or are not wanted.

    Only the class number of a row changes. A box that reached out of the picture is written anew, and without
    ``keep_polygons`` every row that is more than a box. None where the file is no YOLO label file.
    """
    path, numbers = item.sample.label_path, item.sample.lines
    if path is None or numbers is None or path.suffix.lower() != ".txt":
        return None
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(numbers) and numbers.max() > len(lines):
        return None  # changed since it was read
    rows: list[str] = []
    boxes = item.sample.boxes.tolist()
    for number, label, box in zip(numbers.tolist(), item.labels.tolist(), boxes, strict=True):
        line = lines[number - 1]
        if label < 0:
            continue
        if number in item.clipped_lines or not (keep_polygons or len(_columns(line)) == 5):
            rows.append(_row(label, box, item.sample.size_wh, _digits(item)))
        else:
            rows.append(_with_class(line, label))
    if rows == [line for line in lines if _columns(line)]:
        return content
    return "".join(row + "\n" for row in rows).encode()


def same_boxes(read: LabelFile, item: Item) -> bool:
    """Whether a label file gives the boxes and classes of an item, within ``SAME_PX``, and nothing to complain of."""
    if len(read.labels) != len(item.classes) or len(read.labels) < read.rows:
        return False
    near = np.abs(read.boxes.astype(np.float64) - item.boxes) <= SAME_PX
    return bool(near.all() and (read.labels == item.classes).all())


def write_labels(item: Item, path: Path, num_classes: int, keep_polygons: bool) -> None:
    """Writes the label file of an item, reads it back and compares.

    Raises:
        DataError: no row can hold one of the boxes.
    """
    for text in label_texts(item, keep_polygons):
        with open(path, "wb") as file:
            file.write(text)
        if same_boxes(read_labels(path, item.sample.size_wh, num_classes), item):
            return
    message = (
        "has a box that no row of a label file can hold: remove boxes that are narrower than 0.001 pixels"
    )
    raise DataError(printable(f"{item.sample.path}: {message}"))


def _row(label: int, box: list[float], size_wh: tuple[int, int], digits: int) -> str:
    left, top, right, bottom = box
    width, height = size_wh
    shares = (
        (left + right) / 2 / width,
        (top + bottom) / 2 / height,
        (right - left) / width,
        (bottom - top) / height,
    )
    return f"{label} {' '.join(f'{share:.{digits}f}' for share in shares)}"


def _digits(item: Item) -> int:
    """Decimals of a share with which boxes come back to a hundred-thousandth of a pixel."""
    return 5 + len(str(max(item.sample.size_wh)))


def _columns(line: str) -> list[str]:
    return line.partition("#")[0].split()


def _with_class(line: str, label: int) -> str:
    """The line under a new class number; unchanged where it has that already, also as ``0.0``."""
    try:
        return line if float(_columns(line)[0]) == label else f"{label} {line.split(maxsplit=1)[1]}"
    except (IndexError, ValueError):
        return line  # no row of YOLO: reading it back will tell
