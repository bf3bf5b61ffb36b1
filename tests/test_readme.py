"""What the README shows is true: its file tree is the tree on disk, and its code runs.

Conventions. The tree is the code block that opens with ```tree: one entry a line, indented, folders end in
``/``, a remark after two spaces. It starts below the repository's own name. A folder without entries below
it is closed. Names with a leading dot and ``__init__.py`` may be left out. A block right under a comment
``<!-- not run: why -->`` is not run.
"""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^(?:<!-- (not run: .+?) -->\n\s*)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Shell lines that a test must not run: they install, or go on until someone stops them.
INSTALLS = {"git", "cd", "sudo", "apt-get", "pip", "python3", "conda", "bash", "source", "."}
GOES_ON = {"lab", "app", "serve", "fetch"}


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    not_run: str


def blocks(text: str) -> list[Block]:
    return [Block(language, body, not_run) for not_run, language, body in BLOCK.findall(text)]


def parse_tree(text: str) -> set[str]:
    """``a/`` and, indented, ``b.py`` give ``a/`` and ``a/b.py``."""
    entries: set[str] = set()
    above: list[tuple[int, str]] = []
    for line in filter(str.strip, text.splitlines()):
        indent = len(line) - len(line.lstrip(" │├└─"))
        name = re.split(r"\s{2,}", line.lstrip(" │├└─").rstrip())[0]
        while above and above[-1][0] >= indent:
            above.pop()
        parent = above[-1][1] if above else ""
        assert not parent or parent.endswith("/"), f"{name}: stands below {parent}, which is no folder"
        assert parent + name not in entries, f"the tree shows {parent + name} twice"
        entries.add(parent + name)
        above.append((indent, parent + name))
    return entries


def tree_of(files: list[str], shown: set[str]) -> set[str]:
    """The tree of ``files`` with the same folders open as in ``shown``."""
    opened = {""} | {
        entry for entry in shown for other in shown if other != entry and other.startswith(entry)
    }
    entries: set[str] = set()
    for file in files:
        parts = file.split("/")
        for depth in range(len(parts)):
            if "/".join(parts[:depth]) + "/" * bool(depth) not in opened:
                break
            entries.add("/".join(parts[: depth + 1]) + "/" * (depth + 1 < len(parts)))
    return entries


def optional(entry: str) -> bool:
    return entry.startswith(".") or "/." in entry or entry.endswith("__init__.py")


def complaints(shown: set[str], files: list[str]) -> list[str]:
    real = tree_of(files, shown)
    missing = [f"not shown: {entry}" for entry in sorted(real - shown) if not optional(entry)]
    return missing + [f"not there: {entry}" for entry in sorted(shown - real)]


@pytest.fixture(scope="module")
def files() -> list[str]:
    """Tracked files and those that git would track, as they stand on disk."""
    if not (ROOT / ".git").exists():
        pytest.skip("compares with what git tracks, and this is no git checkout")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [file for file in listed.split("\0") if file and (ROOT / file).exists()]


def test_the_tree_is_the_tree_on_disk(files: list[str]) -> None:
    shown = [parse_tree(block.text) for block in blocks(README.read_text()) if block.language == "tree"]
    assert len(shown) == 1, "README.md shows one ```tree"
    assert complaints(shown[0], files) == []


@pytest.fixture
def sandbox(tmp_path: Path) -> Path:
    """A folder where all of the repository can be read, and what is written lands outside of it."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith(".") and entry.name != "runs":  # a reader's own runs stay alone
            (tmp_path / entry.name).symlink_to(entry)
    return tmp_path


def run(command: list[str], folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": path, "PYTHONPATH": "."},
    )
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}\n{done.stderr}"


def test_the_python_blocks_run_one_after_the_other(sandbox: Path) -> None:
    ran = [
        block.text for block in blocks(README.read_text()) if block.language == "python" and not block.not_run
    ]
    run([sys.executable, "-c", "\n".join(ran)], sandbox)


def shell_lines(text: str) -> list[str]:
    """Commands, without comments, continued lines joined."""
    joined = text.replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def check_command(line: str, folder: Path) -> None:
    """Run a line of ours; of those that must not run, check that they exist."""
    program, *arguments = shlex.split(line)
    program = Path(program).name
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        wanted = [argument for argument in arguments if "=" not in argument]
        assert set(wanted) <= set(targets), f"{line}: the Makefile has no such target"
    elif program == "yolov9kit":
        run([program, arguments[0], "--help"] if arguments[0] in GOES_ON else [program, *arguments], folder)
    else:
        assert program in INSTALLS, f"{line}: say in tests/test_readme.py how to check this"


def test_the_shell_blocks_run(sandbox: Path) -> None:
    shells = ("sh", "bash", "shell")
    ran = [block for block in blocks(README.read_text()) if block.language in shells and not block.not_run]
    assert ran, "the README shows how to begin"
    for block in ran:
        for line in shell_lines(block.text):
            check_command(line, sandbox)


def test_no_block_is_of_a_kind_that_nobody_checks() -> None:
    known = {"tree", "python", "sh", "bash", "shell", "text", "console", "json", "yaml", "mermaid"}
    assert {block.language for block in blocks(README.read_text())} <= known


# --- the checks themselves ----------------------------------------------------------------------------------

FILES = ["README.md", ".gitignore", "kit/__init__.py", "kit/types.py", "kit/model/a.py", "tests/test_a.py"]
TREE = "README.md\nkit/\n  types.py   the values\n  model/     closed\ntests/   closed\n"
DRAWN = "├── README.md\n├── kit/  rooms\n│   ├── types.py\n│   └── model/\n└── tests/\n"


@pytest.mark.parametrize("text", [TREE, DRAWN], ids=["indented", "drawn"])
def test_a_true_tree_passes(text: str) -> None:
    assert complaints(parse_tree(text), FILES) == []


def test_an_opened_folder_is_compared_too() -> None:
    opened = parse_tree(TREE.replace("model/     closed", "model/\n    b.py"))
    assert complaints(opened, FILES) == ["not shown: kit/model/a.py", "not there: kit/model/b.py"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (TREE.replace("README.md\n", ""), "not shown: README.md"),
        (TREE + "docs/\n", "not there: docs/"),
        (TREE.replace("  types.py   the values\n", ""), "not shown: kit/types.py"),
    ],
)
def test_a_false_tree_is_seen(text: str, complaint: str) -> None:
    assert complaints(parse_tree(text), FILES) == [complaint]


def test_blocks_are_found_with_their_language_and_reason() -> None:
    text = "a\n```python\nx = 1\n```\n\n<!-- not run: needs a camera -->\n```sh\nyolov9kit detect 0\n```\n"
    assert blocks(text) == [
        Block("python", "x = 1\n", ""),
        Block("sh", "yolov9kit detect 0\n", "not run: needs a camera"),
    ]


def test_shell_lines_join_and_lose_comments() -> None:
    assert shell_lines("# first\nmake test  # all\nyolov9kit detect \\\n  a.png\n") == [
        "make test",
        "yolov9kit detect    a.png",
    ]


def test_a_file_cannot_have_entries() -> None:
    with pytest.raises(AssertionError, match=r"stands below a\.py"):
        parse_tree("a.py\n  b.py\n")


@pytest.mark.parametrize("line", ["make bake", "curl example.org"])
def test_a_command_nobody_knows_is_seen(line: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"no such target|how to check"):
        check_command(line, tmp_path)
