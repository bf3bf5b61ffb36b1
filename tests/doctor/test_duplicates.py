"""The same bytes, and pictures that look alike: what is found, and what is not."""

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from yolov9kit.data.checked import Checked, PictureFacts
from yolov9kit.doctor import duplicates as module
from yolov9kit.doctor.duplicates import exact_groups, near_groups


def photo(seed: int, width: int = 320, height: int = 240) -> Image.Image:
    """Smooth areas and edges, and no two seeds look alike."""
    dice = np.random.default_rng(seed)
    image = Image.fromarray(dice.integers(0, 200, (5, 6, 3), dtype=np.uint8)).resize((width, height))
    for _ in range(6):
        size = dice.integers(20, 90, 2)
        place = dice.integers(0, (width, height)).tolist()
        image.paste(tuple(dice.integers(0, 220, 3).tolist()), (*place, *(place + size).tolist()))
    return image


def checked(paths: list[Path]) -> dict[Path, Checked]:
    facts = dict(zip(paths, PictureFacts(None).check(paths), strict=True))
    assert not any(one.error for one in facts.values())
    return facts


def of_look(levels: np.ndarray, number: int) -> tuple[Path, Checked]:
    """Facts of a picture that has these 12 x 12 gray levels."""
    look = base64.b64encode(levels.astype(np.uint8).tobytes()).decode()
    return Path(f"{number}.jpg"), Checked((640, 480), digest=f"{number:032x}", look=look)


# --- the same bytes


def test_d32_the_same_bytes_under_other_names(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.png" for i in range(6)]
    for path, seed in zip(paths, (0, 1, 0, 2, 1, 0), strict=True):
        photo(seed).save(path)
    facts = checked(paths)
    assert exact_groups(facts) == [(paths[0], paths[2], paths[5]), (paths[1], paths[4])]
    assert near_groups(facts) == []


def test_unreadable_files_are_no_duplicates() -> None:
    facts = {Path(f"{i}.jpg"): Checked((0, 0), "the file is empty", fault="picture_empty") for i in range(3)}
    assert exact_groups(facts) == near_groups(facts) == []
    assert exact_groups({}) == near_groups({}) == []


# --- alike


def jpeg_70(image: Image.Image) -> Image.Image:
    stream = io.BytesIO()
    image.save(stream, "JPEG", quality=70)
    return Image.open(stream)


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "jpeg.jpg": jpeg_70,
    "half.jpg": lambda image: image.resize((image.width // 2, image.height // 2)),
    "stretched.png": lambda image: image.resize((image.width, image.width)),
    "brighter.jpg": lambda image: ImageEnhance.Brightness(image).enhance(1.15),
    "contrast.jpg": lambda image: ImageEnhance.Contrast(image).enhance(0.8),
    "gray.png": lambda image: image.convert("L"),
    "converted.png": lambda image: image,
}


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_photo_that_was_changed_a_little_is_found(tmp_path: Path, name: str) -> None:
    originals, changed = [], []
    for seed in range(8):
        originals.append(tmp_path / f"{seed}.jpg")
        photo(seed).save(originals[-1], quality=92)
        changed.append(tmp_path / f"{seed} {name}")
        with Image.open(originals[-1]) as image:
            CHANGES[name](image).save(changed[-1])
    facts = checked([*originals, *changed])
    assert near_groups(facts) == list(zip(originals, changed, strict=True))
    assert exact_groups(facts) == []


def test_a_photo_turned_round_is_another(tmp_path: Path) -> None:
    image = photo(0)
    paths = [tmp_path / f"{i}.png" for i in range(3)]
    for path, turned in zip(paths, (image, image.transpose(0), image.transpose(1)), strict=True):
        turned.save(path)
    assert near_groups(checked(paths)) == []


def test_flat_pictures_are_alike_only_where_they_are_equal(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.png" for i in range(6)]
    for path, level in zip(paths[:4], (80, 80, 81, 200), strict=True):
        Image.new("RGB", (320, 240), (level, level, level)).save(path)
    for path, seed in zip(paths[4:], (0, 1), strict=True):  # nearly flat
        Image.fromarray(np.random.default_rng(seed).integers(90, 96, (240, 320, 3), dtype=np.uint8)).save(
            path
        )
    facts = checked(paths)
    assert near_groups(facts) == [] and exact_groups(facts) == [(paths[0], paths[1])]


def test_a_small_thing_at_another_place_is_another_picture(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.png" for i in range(5)]
    for path, x in zip(paths, range(20, 270, 50), strict=True):
        image = Image.new("RGB", (320, 240), (245, 245, 245))
        image.paste((30, 30, 30), (x, 100, x + 40, 140))
        image.save(path)
    assert near_groups(checked(paths)) == []


def test_the_first_of_a_group_is_the_earliest_that_each_is_like() -> None:
    dice = np.random.default_rng(0)
    start, step = dice.integers(40, 200, (12, 12)), dice.integers(-12, 13, (12, 12))
    chain = dict(of_look(start + i * step, i) for i in range(4))
    # neighbours are alike, what lies two steps apart is not
    a, b, c, d = chain
    assert near_groups(chain) == [(a, b), (b, c), (c, d)]
    assert near_groups(dict(reversed(chain.items()))) == [(d, c), (c, b), (b, a)]
    assert near_groups({a: chain[a], c: chain[c]}) == []


@pytest.mark.parametrize("rows", [1, 7, 64, 512])
def test_many_at_once_are_compared_as_two_are(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(module, "_ROWS", rows)
    dice = np.random.default_rng(1)
    scenes = dice.integers(40, 200, (30, 12, 12))
    kinds = dice.integers(0, 30, 200)
    facts = dict(of_look(scenes[kind] + dice.integers(-9, 10, (12, 12)), i) for i, kind in enumerate(kinds))
    paths = list(facts)
    expected: dict[int, list[int]] = {}
    for child in range(len(paths)):
        for parent in range(child):
            if near_groups({paths[i]: facts[paths[i]] for i in (parent, child)}):
                expected.setdefault(parent, [parent]).append(child)
                break
    assert len(expected) > 20
    assert near_groups(facts) == [tuple(paths[i] for i in expected[parent]) for parent in sorted(expected)]


def test_of_the_same_bytes_the_earliest_stands_for_all() -> None:
    dice = np.random.default_rng(2)
    path, one = of_look(dice.integers(0, 256, (12, 12)), 0)
    again, near = Path("again.jpg"), Path("near.jpg")
    other = Checked((640, 480), digest="f" * 32, look=one.look)
    assert near_groups({path: one, again: one, near: other}) == [(path, near)]
    assert exact_groups({path: one, again: one, near: other}) == [(path, again)]


# --- data sets


def pictures(folder: Path) -> list[Path]:
    suffixes = (".jpg", ".jpeg", ".png")
    found = [
        path for split in ("train", "val", "test") for path in sorted((folder / "images" / split).rglob("*"))
    ]
    return [path for path in found if path.suffix.lower() in suffixes]


def test_drawn_boards_are_all_different(root: Path) -> None:
    facts = checked(pictures(root / "sample_data/pcb"))
    assert len(facts) > 100 and near_groups(facts) == exact_groups(facts) == []


def test_d32_same_bytes_in_a_real_set(shared: Path) -> None:
    folder = shared / "data/rubik"
    facts = checked(pictures(folder))
    stated = json.loads((folder / "SOURCE.json").read_text(encoding="utf-8"))
    groups = exact_groups(facts)
    assert sum(len(group) - 1 for group in groups) == stated["issues"]["same_bytes_as"] == 7
    assert len(near_groups(facts)) > 20  # three augmented versions of each photo


@pytest.mark.parametrize(("name", "near"), [("bccd", 1), ("cards", 0), ("coco128", 0)])
def test_real_sets_have_no_pair_that_is_none(shared: Path, name: str, near: int) -> None:
    facts = checked(pictures(shared / "data" / name))
    assert len(facts) > 50 and exact_groups(facts) == []
    assert [len(group) for group in near_groups(facts)] == [2] * near
