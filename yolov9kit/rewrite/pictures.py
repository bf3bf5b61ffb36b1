"""Pictures → the folder of a split, several at once: copies, byte for byte, unless one is to be made anew."""

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from yolov9kit.data.image import is_image_name
from yolov9kit.rewrite.item import Item
from yolov9kit.rewrite.picture_names import picture_names
from yolov9kit.types import ProgressCallback

_AT_ONCE = 16  # pictures that a thread takes: one by one, handing over costs more than copying a small one

Renamed = tuple[Path, str]
"""A picture of the source, and the name it has now because another would have had its own."""


def write_pictures(
    items: Sequence[Item],
    folder: Path,
    what: str,
    write_boxes: Callable[[Item, Path], None],
    on_progress: ProgressCallback | None = None,
) -> tuple[list[str], list[Renamed]]:
    """Makes the folder and writes the picture of each item into it; returns their names, and which are not the old.

    ``write_boxes(item, picture)`` is called for each, in several threads.

    Raises:
        OSError: it cannot be written, or a source cannot be read.
    """
    folder.mkdir(parents=True)
    names = picture_names([item.sample.path for item in items], [_suffix(item) for item in items])

    def write(start: int) -> int:
        end = min(start + _AT_ONCE, len(items))
        for item, name in zip(items[start:end], names[start:end], strict=True):
            picture = folder / name
            if item.write_picture is not None:
                item.write_picture(picture)
            else:  # no link: the original must not be reachable from here
                shutil.copyfile(item.sample.path, picture)
            write_boxes(item, picture)
        return end

    threads = ThreadPoolExecutor(min(os.cpu_count() or 1, 16), "write-pictures")
    try:
        for end in threads.map(write, range(0, len(items), _AT_ONCE)):
            if on_progress is not None:
                on_progress(what, end, len(items))
    finally:
        threads.shutdown(cancel_futures=True)
    renamed = [
        (item.sample.path, name)
        for item, name in zip(items, names, strict=True)
        if Path(name).stem != item.sample.path.stem
    ]
    return names, renamed


def _suffix(item: Item) -> str:
    """A picture is looked for by the suffix of its name, and decoded by its content."""
    path = item.sample.path
    return item.suffix or (path.suffix if is_image_name(path) else ".jpg")
