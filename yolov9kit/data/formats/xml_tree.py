"""An XML file as a tree whose nodes know their lines. Entities that a file declares itself are refused."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from yolov9kit.errors import DataError
from yolov9kit.types import printable

_DEEPEST = 100
_ENCODING = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


@dataclass(eq=False)
class Node:
    """One element. ``line``: where its tag stands, from 1. ``text``: all text directly in it, without outer blanks."""

    tag: str
    line: int
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Node"] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()

    def all(self, tag: str) -> Iterator["Node"]:
        """The children of a name, not those of children."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> "Node | None":
        return next(self.all(tag), None)

    def text_of(self, tag: str) -> str:
        """The text of the first child of a name; "" where there is none."""
        child = self.first(tag)
        return "" if child is None else child.text


class XmlError(Exception):
    """Why a file is no XML that can be used. ``line``: where, from 1, as far as it is known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def read_xml(path: Path) -> Node:
    """The root of a file.

    Raises:
        XmlError: it cannot be read, is not XML, or declares entities.
    """
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise XmlError(f"cannot be read ({fault.strerror or fault})") from fault
    return parse_xml(data)


def parse_xml(data: bytes) -> Node:
    """The root of the XML in ``data``, in any encoding that its first line declares.

    Raises:
        XmlError: it is not XML, or declares entities.
    """
    declared = _ENCODING.search(data[:200])
    encoding = declared[1].decode("ascii").lower() if declared else ""
    if encoding in ("", "utf-8", "utf8", "utf-16", "us-ascii", "iso-8859-1"):
        return _Builder(None).parse(data)  # the parser knows these itself
    try:
        text = data.decode(encoding)
    except (LookupError, ValueError) as fault:
        raise XmlError(f"cannot be read as {encoding}, which it says it is: {fault}") from fault
    return _Builder("utf-8").parse(text.encode("utf-8", "replace"))


def root_tag(path: Path) -> str:
    """The name of the first element; "" for a file that is no XML. Reads the beginning alone."""
    try:
        with path.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return ""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head[: len(head) // 2 * 2].decode("utf-16", "replace").encode()
    head = re.sub(rb"<!--.*?-->", b"", head, flags=re.DOTALL)
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return ""
    found = re.search(rb"<([A-Za-z_][\w.-]*)", head)
    return found[1].decode("ascii") if found else ""


def as_data_error(path: Path, fault: XmlError) -> DataError:
    where = str(path) if fault.line is None else f"{path}:{fault.line}"
    return DataError(printable(f"{where}: {fault}"))


class _Builder:
    def __init__(self, encoding: str | None) -> None:
        self._parser = expat.ParserCreate(encoding)
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._entity
        self._parser.ExternalEntityRefHandler = self._external
        self._parser.SkippedEntityHandler = self._skipped
        self._open: list[Node] = []
        self._root: Node | None = None

    def parse(self, data: bytes) -> Node:
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as fault:
            raise XmlError(f"not XML: {expat.ErrorString(fault.code)}", fault.lineno) from fault
        assert self._root is not None, "a document without a root is an error of the parser"
        return self._root

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= _DEEPEST:
            raise XmlError(f"elements lie more than {_DEEPEST} deep in each other", self._line)
        node = Node(tag, self._line, attributes)
        if self._open:
            self._open[-1].children.append(node)
        else:
            self._root = node
        self._open.append(node)

    def _end(self, tag: str) -> None:
        self._open.pop()

    def _characters(self, text: str) -> None:
        self._open[-1].pieces.append(text)

    def _entity(self, name: str, *rest: object) -> None:
        """A few lines of entities can grow to gigabytes, or read other files."""
        raise XmlError(
            f"declares the entity '{name}', which label files have no need of: remove it", self._line
        )

    def _external(self, *names: object) -> int:
        raise XmlError("refers to another file, which label files have no need of: remove it", self._line)

    def _skipped(self, name: str, *rest: object) -> None:
        raise XmlError(f"the entity '{name}' is not known: write the character itself", self._line)

    @property
    def _line(self) -> int:
        return self._parser.CurrentLineNumber
