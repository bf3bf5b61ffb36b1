"""A folder that appears when everything in it is written, and not at all otherwise."""

import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from yolov9kit.errors import KitError
from yolov9kit.types import printable


def refuse_folder(out: Path, roots: Iterable[Path]) -> None:
    """Does nothing for a folder that may be written.

    Raises:
        KitError: ``out`` is there and holds something, lies in one of ``roots``, or one of them lies in it.
    """
    if os.path.lexists(out):
        if not out.is_dir():
            raise _refusal(out, "is a file: name a new folder")
        if any(out.iterdir()):
            raise _refusal(out, "holds files already: name a new folder")
        if out.is_symlink() or os.path.samefile(out, os.curdir):
            raise _refusal(out, "is the folder that you are in, or a link: name a new folder")
    resolved = out.resolve()
    for root in roots:
        source = root.resolve()
        if resolved.is_relative_to(source):
            raise _refusal(out, f"lies inside the source {root}: name a folder beside it")
        if source.is_relative_to(resolved):
            raise _refusal(out, f"the source {root} lies inside it: name another folder")


@contextmanager
def new_folder(out: Path, roots: Iterable[Path]) -> Iterator[Path]:
    """An empty folder beside ``out`` to write into; at the end it becomes ``out``.

    Whatever ends the work before, nothing is left.

    Raises:
        KitError: as ``refuse_folder``, or it cannot be written: no permission, no room.
    """
    refuse_folder(out, roots)
    missing = [folder for folder in (out.parent, *out.parent.parents) if not folder.exists()]
    part = out.parent / f".{out.name[:100]}.{secrets.token_hex(4)}.part"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part.mkdir()
        yield part
        refuse_folder(out, roots)  # others may have written there meanwhile
        if out.is_dir():
            out.rmdir()
        part.rename(out)
    except BaseException as fault:
        shutil.rmtree(part, ignore_errors=True)
        for folder in missing:
            try:
                folder.rmdir()
            except OSError:
                break
        if isinstance(fault, OSError):
            reason = f"cannot be written or read ({fault.strerror or fault})"
            raise _refusal(_where(fault, part, out), reason) from fault
        raise


def _where(fault: OSError, part: Path, out: Path) -> Path:
    """The file that a fault is about, by the name that it would have had; copying names the target last."""
    name = fault.filename2 or fault.filename
    path = Path(name) if isinstance(name, str) else out
    return out / path.relative_to(part) if path.is_relative_to(part) else path


def _refusal(out: Path, reason: str) -> KitError:
    return KitError(printable(f"{out}: {reason}"))
