"""A selection of pictures as a list that a data.yaml can name."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from yolov9kit.errors import DataError
from yolov9kit.types import printable


def write_picture_list(pictures: Sequence[Path], file: Path, data_folders: Iterable[Path]) -> Path:
    """Writes the absolute path of each picture as a line. Returns the absolute path of the list.

    Raises:
        DataError: no picture, a target that is no new .txt file or lies in a folder of the data set, or cannot be
            written.
    """
    target = file.resolve()
    if target.suffix.lower() != ".txt":
        raise DataError(printable(f"{file}: a list of pictures is called .txt"))
    if not pictures:
        raise DataError(printable(f"{file}: no picture is selected, so there is nothing to write"))
    inside = {folder.resolve() for folder in data_folders} & {*target.parents}
    if inside:
        raise DataError(
            printable(
                f"{file}: lies in the data set's folder {max(inside)}, which is only read: name another place"
            )
        )
    text = "".join(f"{picture.resolve()}\n" for picture in pictures)
    try:
        if target.exists():
            raise DataError(printable(f"{file}: exists already: name a new file"))
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "x", encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            stream.write(text)
    except OSError as fault:
        raise DataError(printable(f"{file}: cannot be written ({fault.strerror or fault})")) from fault
    return target
