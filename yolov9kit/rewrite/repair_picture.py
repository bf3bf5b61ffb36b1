"""What has to be done to a picture so that every program reads the same pixels from it, and quickly."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from yolov9kit.data.checked import Checked
from yolov9kit.data.image import read_image

_SUFFIXES = {"JPEG": (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo"), "PNG": (".png", ".apng")}
"""Of the two formats that every program reads and that decode quickly: the usual suffix first."""
_LARGEST_JPEG = 65_500
_JPEG_END = b"\xff\xd9"


@dataclass(frozen=True)
class Mend:
    """``done``: in words, what is done. ``suffix``: of the new name. ``write``: makes the new picture; None: a copy."""

    done: tuple[str, ...]
    suffix: str
    write: Callable[[Path], None] | None


def mend(path: Path, checked: Checked) -> Mend | None:
    """What is to be done to a picture that can be decoded; None where it is to be copied as it is.

    Pixels are written anew where an orientation is applied, where the format is neither JPEG nor PNG, and where colours
    are stored in a way that programs read differently. JPEG and other lossy formats become JPEG of quality 95, the
    others PNG, so that nothing more is lost.
    """
    done = _done(checked)
    if done:
        as_jpeg = _is_lossy(path, checked.kind) and max(checked.size_wh) <= _LARGEST_JPEG
        kind = "JPEG" if as_jpeg else "PNG"
        if kind != checked.kind:
            done.append(f"{checked.kind} to {kind}")
        suffix = _suffix(path, kind)
        return Mend(
            tuple(done), suffix, partial(_write, path, kind, checked.mode in ("1", "L", "I;16", "L;16"))
        )
    suffix = _suffix(path, checked.kind)
    renamed = [] if suffix == path.suffix else [f"suffix {path.suffix} to {suffix}"]
    if "picture_end" in checked.note_codes:
        return Mend(("JPEG end marker added", *renamed), suffix, partial(_write_with_end, path))
    return Mend(tuple(renamed), suffix, None) if renamed else None


def _done(checked: Checked) -> list[str]:
    """Why the pixels are to be written anew; empty where they are not. A change of format is said by the caller."""
    done = []
    if checked.orientation != 1:
        done.append("orientation applied")
    if "16" in checked.mode or checked.mode in ("CMYK", "LAB"):
        done.append("colours converted to 8 bit RGB or gray")
    if checked.frames > 1 and checked.kind != "JPEG":
        done.append("first of several pictures taken")
    if not done and checked.kind not in _SUFFIXES:
        done.append("format changed")
    return done


def _is_lossy(path: Path, kind: str) -> bool:
    return kind in ("JPEG", "AVIF") or (kind == "WEBP" and not _is_lossless_webp(path))


def _is_lossless_webp(path: Path) -> bool:
    """A lossless picture stands in a chunk called VP8L, alone or beside others."""
    with path.open("rb") as file:
        file.seek(12)
        while len(head := file.read(8)) == 8:
            name, size = struct.unpack("<4sL", head)
            if name in (b"VP8L", b"VP8 "):
                return bool(name == b"VP8L")
            # frames of an animation hold chunks of their own, behind 16 bytes
            file.seek(16 if name == b"ANMF" else size + size % 2, 1)
    return False


def _suffix(path: Path, kind: str) -> str:
    suffixes = _SUFFIXES[kind]
    return path.suffix if path.suffix.lower() in suffixes else suffixes[0]


def _write(source: Path, kind: str, gray: bool, target: Path) -> None:
    pixels = read_image(source)
    image = Image.fromarray(np.ascontiguousarray(pixels[..., 0]) if gray else pixels)
    if kind == "JPEG":
        image.save(target, "JPEG", quality=95, subsampling=0)
    else:
        image.save(target, "PNG", compress_level=3)


def _write_with_end(source: Path, target: Path) -> None:
    content = source.read_bytes()
    target.write_bytes(content + (_JPEG_END[1:] if content.endswith(_JPEG_END[:1]) else _JPEG_END))
