"""Every code that is made anywhere stands in the table, and every code of the table is made somewhere."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from yolov9kit.doctor.codes import CODES

MADE_IN = ("data", "doctor")
SEVERITIES = {"error", "warning", "note"}
LOOKS_LIKE_ONE = re.compile(r"(picture|label|box|class|split|duplicate|near|objects|loader)_[a-z_]+")
NO_CODES = {
    "code",  # the key of a record
    "class_names",  # the word of an annotation file
    "picture_too_large",  # of an error, becomes picture_unreadable
    "picture_unsupported",
}


def texts(nodes: Iterable[ast.AST]) -> set[str]:
    """String constants below these."""
    return {
        node.value
        for top in nodes
        for node in ast.walk(top)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def made(source: str) -> set[str]:
    """The first argument of each call that names a severity or makes a finding, and words that look like codes."""
    codes: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and node.args:
            makes_one = ast.unparse(node.func).lower().endswith("finding")
            codes |= texts(node.args[:1]) if makes_one or SEVERITIES & texts(node.args[1:]) else set()
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and LOOKS_LIKE_ONE.fullmatch(node.value)
        ):
            codes.add(node.value)
    return codes


def test_the_table_holds_every_code_and_no_other(root: Path) -> None:
    files = [
        path
        for room in MADE_IN
        for path in (root / "yolov9kit" / room).rglob("*.py")
        if path.name != "codes.py"
    ]
    codes = set().union(*(made(path.read_text(encoding="utf-8")) for path in files)) - NO_CODES
    assert codes == set(CODES)


def test_a_code_is_seen_wherever_it_stands() -> None:
    assert made("Finding('odd', 'note', path, 'text')") == {"odd"}
    assert made("_as_finding('odd', path, fault)") == {"odd"}
    assert made("Finding('one' if x else 'two', severity if y else 'error', path)") == {"one", "two"}
    assert made("kinds = {1: 'picture_odd'}; print('picture', 'a picture_odd one')") == {"picture_odd"}


def test_each_code_says_what_to_do_in_one_sentence() -> None:
    for name, code in CODES.items():
        assert code.to_do.endswith(".") and ". " not in code.to_do, name
        assert code.title[0].isupper() and not code.title.endswith("."), name
    assert len({code.title for code in CODES.values()}) == len(CODES)
