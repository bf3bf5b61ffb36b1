"""Class names that stand in a text file, one in each line."""

from pathlib import Path

from yolov9kit.data.yaml_file import text_of
from yolov9kit.errors import DataError
from yolov9kit.types import printable

NAME_FILES = ("obj.names", "classes.txt", "names.txt", "predefined_classes.txt")
"""How such files are called by Darknet and by labelling tools."""


def names_in_lines(file: Path) -> tuple[str, ...]:
    """The names in the order of their numbers. Blank lines at the end do not count.

    Raises:
        DataError: the file cannot be read, has no name, or a line before the last name is blank.
    """
    lines = [line.strip() for line in text_of(file).replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise DataError(printable(f"{file}: holds no class name: write one name in each line"))
    if "" in lines:
        raise DataError(
            printable(
                f"{file}:{lines.index('') + 1}: the line is blank, and the numbers of the classes below it are "
                "unclear: remove the line or write a name"
            )
        )
    return tuple(lines)
