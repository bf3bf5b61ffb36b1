"""Where what can be made again is kept: one folder a user."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/yolov9kit``, else ``~/.cache/yolov9kit``.

    A relative value of the variable counts as none, as the XDG Base Directory Specification says.

    Not absolute where the system knows no home folder.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~/.cache"))) / "yolov9kit"
