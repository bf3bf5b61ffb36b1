"""What is said about a picture: its faults, what the decoder converted, and sizes that training does not like."""

from pathlib import Path

from yolov9kit.data.checked import Checked
from yolov9kit.data.findings import Finding

TINY_PX = 32
HUGE_PIXELS = 25_000_000
LONG_ASPECT = 5

_KINDS = {
    "JPEG": "jpg jpeg jpe jfif mpo",
    "PNG": "png apng",
    "BMP": "bmp dib",
    "GIF": "gif",
    "WEBP": "webp",
    "AVIF": "avif",
    "TIFF": "tif tiff",
    "JPEG2000": "jp2 j2k",
    "PPM": "ppm pgm pbm pnm",
    "HEIC": "heic heif",
}
_KIND_OF_SUFFIX = {f".{suffix}": kind for kind, suffixes in _KINDS.items() for suffix in suffixes.split()}

# How to mend what the reason alone does not tell. Reasons of the other codes end with it already.
_MEND = {
    "picture_empty": "; copy it again from where it came from, or remove it",
    "picture_truncated": "; copy it again from where it came from, or remove it",
    "picture_unreadable": "; save it again with another program, or remove it",
}


def findings_of(path: Path, checked: Checked) -> list[Finding]:
    """Everything worth saying about one picture. An unreadable one has one finding: that it is left out, and why."""
    if checked.error:
        return [_left_out(path, checked)]
    return [*_conversions(path, checked), *_suffix(path, checked), *_size(path, checked)]


def _left_out(path: Path, checked: Checked) -> Finding:
    code = checked.fault
    if code in ("picture_too_large", "picture_unsupported"):  # readable elsewhere, but not here
        code = "picture_unreadable"
    message = f"left out: {checked.error}{_MEND.get(checked.fault, '')}"
    return Finding(code, "warning", path, message, value=checked.error)


def _conversions(path: Path, checked: Checked) -> list[Finding]:
    """One finding a code: a gray picture with alpha is one fact."""
    words: dict[str, list[str]] = {}
    for code, note in zip(checked.note_codes, checked.notes, strict=True):
        words.setdefault(code, []).append(note)
    found = []
    for code, notes in words.items():
        said = "; ".join(notes)
        match code:
            case "picture_end":
                mend = "copy it again from where it came from, other programs may refuse it"
                found.append(Finding(code, "warning", path, f"{said}: {mend}"))
            case "picture_orientation":
                look = "look whether the boxes were drawn on the upright picture"
                found.append(Finding(code, "note", path, f"{said}: {look}", value=str(checked.orientation)))
            case "picture_mode":
                found.append(Finding(code, "note", path, said, value=checked.mode))
            case "picture_frames":
                mend = "save the others as files of their own if they are meant too"
                frames = str(checked.frames) if checked.frames > 2 else "2 or more"
                found.append(Finding(code, "note", path, f"{said}: {mend}", value=frames))
            case _:
                found.append(Finding(code, "note", path, said))
    return found


def _suffix(path: Path, checked: Checked) -> list[Finding]:
    promised = _KIND_OF_SUFFIX.get(path.suffix.lower(), checked.kind)
    if promised == checked.kind:
        return []
    usual = _KINDS[checked.kind].split()[0]
    message = f"is a {checked.kind} picture, not {path.suffix}: rename it to .{usual}, other programs trust the name"
    return [Finding("picture_suffix", "warning", path, message, value=checked.kind)]


def _size(path: Path, checked: Checked) -> list[Finding]:
    width, height = checked.size_wh
    shown = f"{width} x {height}"
    found = []
    if min(width, height) < TINY_PX:
        said = f"{shown} pixels, a side below {TINY_PX}: replace it by the whole picture if it is a thumbnail"
        found.append(Finding("picture_tiny", "warning", path, said, value=shown))
    if width * height > HUGE_PIXELS:
        said = f"{shown} pixels take long to decode in every epoch: cut it into tiles, or save it smaller"
        found.append(Finding("picture_huge", "warning", path, said, value=shown))
    if max(width, height) > LONG_ASPECT * min(width, height):
        said = f"{shown} pixels: scaled to a square, little is left of its short side; cut it into pieces"
        found.append(Finding("picture_aspect", "warning", path, said, value=shown))
    return found
