"""SHA-256 of files: the proof that a source is what it was."""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from yolov9kit.types import ProgressCallback


def sha256_of(
    files: Sequence[Path], what: str = "hashing", on_progress: ProgressCallback | None = None
) -> dict[Path, str]:
    """The SHA-256 of each file's content, as hexadecimal digits; the reason, in words, where it cannot be read."""
    threads = ThreadPoolExecutor(min(os.cpu_count() or 1, 16), "sha256")
    digests = {}
    try:
        for path, digest in zip(files, threads.map(_sha256, files), strict=True):
            digests[path] = digest
            if on_progress is not None:
                on_progress(what, len(digests), len(files))
    finally:
        threads.shutdown(cancel_futures=True)
    return digests


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as fault:
        return f"cannot be read ({fault.strerror or fault})"
