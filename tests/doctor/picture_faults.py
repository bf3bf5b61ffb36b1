"""Faults of pictures, of lists of pictures, and pictures that repeat."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
from PIL import Image

from tests.doctor.drawn_set import Drawn, DrawnSet, encoded
from tests.doctor.planting import Planter, added, pick, untouched


def _changed(code: str, change: Callable[[Drawn, random.Random], None]) -> Planter:
    """One picture file is another."""

    def plant(whole: DrawnSet, dice: random.Random) -> bool:
        one = untouched(whole, dice)
        if one is None:
            return False
        change(one, dice)
        whole.expect_picture(code, one)
        return True

    return plant


def _as_jpeg(one: Drawn, **options: object) -> None:
    one.suffix, one.data = ".jpg", encoded(one.pixels, "JPEG", quality=90, **options)


def _make_empty(one: Drawn, _dice: random.Random) -> None:
    one.data = b""


def _make_truncated(one: Drawn, dice: random.Random) -> None:
    one.data = one.data[: int(len(one.data) * dice.uniform(0.3, 0.8))]


def _make_text(one: Drawn, dice: random.Random) -> None:
    one.data = dice.choice(
        [b"not a picture at all\n", b"<html><body>404</body></html>\n", b"version https://git-lfs\n"]
    )


def _make_unreadable(one: Drawn, _dice: random.Random) -> None:
    """A PNG whose pixels are garbage."""
    one.suffix = ".png"
    one.data = encoded(one.pixels)
    at = one.data.find(b"IDAT") + 12
    one.data = one.data[:at] + bytes(byte ^ 0x5A for byte in one.data[at : at + 60]) + one.data[at + 60 :]


def _make_endless(one: Drawn, _dice: random.Random) -> None:
    _as_jpeg(one)
    one.data = one.data[:-2]


def _make_turned(one: Drawn, dice: random.Random) -> None:
    exif = Image.Exif()
    exif[274] = dice.randint(2, 8)
    _as_jpeg(one, exif=exif)


def _make_gray(one: Drawn, dice: random.Random) -> None:
    one.suffix = ".png"
    gray = one.pixels.mean(axis=2).astype(np.uint8)
    alpha = np.dstack((one.pixels, np.full_like(gray, 200)))
    one.data = encoded(dice.choice([gray, alpha, gray.astype(np.uint16) * 257]))


def _make_frames(one: Drawn, _dice: random.Random) -> None:
    one.suffix = ".tif"
    one.data = encoded(
        one.pixels, "TIFF", save_all=True, append_images=[Image.fromarray(one.pixels[::-1].copy())]
    )


def _make_odd_exif(one: Drawn, _dice: random.Random) -> None:
    _as_jpeg(one, exif=b"Exif\0\0II*\0\xff\xff\xff\xff")


def _make_suffix(one: Drawn, _dice: random.Random) -> None:
    one.suffix, one.data = ".jpg", encoded(one.pixels)


def _make_tiny(one: Drawn, dice: random.Random) -> None:
    size = (dice.randint(20, 31), 40)
    one.suffix, one.data = ".png", encoded(np.asarray(Image.fromarray(one.pixels).resize(size)))


def _make_long(one: Drawn, dice: random.Random) -> None:
    size = (dice.randint(200, 300), 36)
    one.suffix, one.data = ".png", encoded(np.asarray(Image.fromarray(one.pixels).resize(size)))


@cache
def _huge_file() -> bytes:
    """Just above 25 megapixels, of one colour."""
    return encoded(np.full((5001, 5000, 3), 90, np.uint8), "JPEG", quality=50)


def _make_huge(one: Drawn, _dice: random.Random) -> None:
    one.suffix, one.data = ".jpg", _huge_file()


def _huge_picture(whole: DrawnSet, dice: random.Random) -> bool:
    """Once in a set: it takes long, and two would be the same picture."""
    return whole.once("huge", "") and _changed("picture_huge", _make_huge)(whole, dice)


# --------------------------------------------------------------------------------- lists and copies


def _missing_picture(whole: DrawnSet, dice: random.Random) -> bool:
    line = f"images/val/gone {dice.randrange(10**6)}.png"
    whole.listed.insert(dice.randint(0, len(whole.listed)), line)
    whole.expect("picture_missing", "val.txt", lambda: whole.listed.index(line) + 1)
    return True


def _repeated_picture(whole: DrawnSet, dice: random.Random) -> bool:
    one = pick(whole, dice, lambda one: one.split == "val" and one in whole.of("val"))
    if one is None or not whole.once("picture_repeated", one.picture):
        return False
    first = whole.listed.index(one)
    if one.touched:
        return False
    one.taken = True  # its name must not change any more
    spelling = dice.choice(["{}", "./{}", "images/../{}"]).format(one.picture)
    whole.listed.insert(dice.randint(first + 1, len(whole.listed)), spelling)
    whole.expect_picture("picture_repeated", one)
    return True


def _copy(code: str, across: bool, make: Callable[[Drawn], bytes]) -> Planter:
    """Another picture that is, or looks like, one of the set."""

    def plant(whole: DrawnSet, dice: random.Random) -> bool:
        one = untouched(whole, dice, "train" if across else "")
        if one is None or one.rows is None:
            return False
        stem = f"{dice.choice('az')} copy {dice.randrange(10**6)}"
        copy = replace(one, split="val" if across else one.split, stem=stem, rows=list(one.rows), used=set())
        copy.data = make(copy)
        added(whole, dice, copy)
        if across:
            whole.expect_picture(code, copy)
        else:
            whole.expect(code, lambda: max((one, copy), key=whole.of(one.split).index).picture)
        return True

    return plant


def _same(one: Drawn) -> bytes:
    return one.data


def _alike(one: Drawn) -> bytes:
    """A little brighter, and compressed again."""
    one.suffix = ".jpg"
    brighter = (one.pixels.astype(np.int64) + 6).clip(0, 255).astype(np.uint8)
    return encoded(brighter, "JPEG", quality=80)


def _place(whole: DrawnSet, dice: random.Random) -> bool:
    split = dice.choice(["train", "val"])
    if whole.entries[split].startswith("../"):
        return False
    whole.entries[split] = f"../{whole.entries[split]}"
    whole.expect("place", "data.yaml")
    return True


PICTURE_FAULTS: dict[str, Planter] = {
    "picture_empty": _changed("picture_empty", _make_empty),
    "picture_truncated": _changed("picture_truncated", _make_truncated),
    "picture_not_a_picture": _changed("picture_not_a_picture", _make_text),
    "picture_unreadable": _changed("picture_unreadable", _make_unreadable),
    "picture_end": _changed("picture_end", _make_endless),
    "picture_orientation": _changed("picture_orientation", _make_turned),
    "picture_mode": _changed("picture_mode", _make_gray),
    "picture_frames": _changed("picture_frames", _make_frames),
    "picture_note": _changed("picture_note", _make_odd_exif),
    "picture_suffix": _changed("picture_suffix", _make_suffix),
    "picture_tiny": _changed("picture_tiny", _make_tiny),
    "picture_aspect": _changed("picture_aspect", _make_long),
    "picture_huge": _huge_picture,
    "picture_missing": _missing_picture,
    "picture_repeated": _repeated_picture,
    "duplicate_inside": _copy("duplicate_inside", False, _same),
    "duplicate_across": _copy("duplicate_across", True, _same),
    "near_inside": _copy("near_inside", False, _alike),
    "near_across": _copy("near_across", True, _alike),
    "place": _place,
}
