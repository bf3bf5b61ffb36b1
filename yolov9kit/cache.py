"""Where what can be made again is kept: one folder a user."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/yolov9kit``, else ``~/.cache/yolov9kit``.

    A relative value of the variable counts as none, as the XDG Base Directory Specification says.

    Not absolute where the system knows no home folder.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~/.cache"))) / "yolov9kit"


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """``write(file)``, then ``path`` is that file: whole or not at all, whoever reads or writes it at the same time.

    Raises:
        OSError: it cannot be written; what was there before is there still.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    os.close(handle)
    try:
        write(Path(name))
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def keep(path: Path, write: Callable[[Path], object], most: int) -> None:
    """As ``write_whole``; of the files of its kind in its folder the ``most`` newest stay.

    Where nothing can be written nothing is kept: what lies here can be made again.
    """
    try:
        write_whole(path, write)
        files = sorted(path.parent.glob(f"*{path.suffix}"), key=lambda file: file.stat().st_mtime)
        for old in files[:-most]:
            old.unlink(missing_ok=True)
    except OSError:
        return
