"""What is remembered of pictures, where, and when it no longer counts."""

import base64
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from yolov9kit.data import checked as module
from yolov9kit.data.checked import Checked, PictureFacts, check_picture, facts_file

MakePicture = Callable[..., Path]


@pytest.fixture
def pictures(make_picture: MakePicture) -> list[Path]:
    return [make_picture(f"set/{i}.png", level=i, size=(10 + i, 7)) for i in range(20)]


def scan(file: Path | None, paths: list[Path]) -> tuple[list[Checked], int]:
    """The facts, and how many pictures had to be decoded."""
    facts = PictureFacts(file)
    found = list(facts.check(paths))
    assert facts.save() == ""
    return found, facts.decoded


def photo(width: int = 160, height: int = 120, seed: int = 0) -> Image.Image:
    """Smooth, and no two seeds look alike."""
    coarse = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def test_facts_of_a_picture(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    photo(90, 50).save(path)
    checked = check_picture(path)
    assert checked.decode_ms > 0
    assert checked == Checked(
        size_wh=(90, 50),
        kind="PNG",
        mode="RGB",
        bytes=path.stat().st_size,
        digest=hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest(),
        look=checked.look,
    )
    Image.new("L", (9, 5)).save(path)
    checked = check_picture(path)
    assert checked.notes == ("gray repeated in three channels",) and checked.note_codes == ("picture_mode",)
    assert checked.mode == "L"


def test_facts_of_an_upright_picture(tmp_path: Path) -> None:
    stored, exif = photo(), Image.Exif()
    exif[274] = 6
    stored.save(tmp_path / "turned.jpg", exif=exif)
    checked = check_picture(tmp_path / "turned.jpg")
    assert (checked.size_wh, checked.orientation) == ((120, 160), 6)
    with Image.open(tmp_path / "turned.jpg") as image:
        ImageOps.exif_transpose(image).save(tmp_path / "upright.png")
    assert check_picture(tmp_path / "upright.png").look == checked.look


def test_a_look_is_the_picture_at_12_x_12(tmp_path: Path) -> None:
    pixels = np.kron(np.arange(144, dtype=np.uint8).reshape(12, 12), np.ones((20, 30), np.uint8))
    Image.fromarray(pixels).save(tmp_path / "steps.png")
    levels = np.frombuffer(base64.b64decode(check_picture(tmp_path / "steps.png").look), np.uint8)
    assert np.abs(levels.astype(int) - np.arange(144)).max() <= 1


def test_flat_pictures_have_no_look(tmp_path: Path, make_picture: MakePicture) -> None:
    assert check_picture(make_picture("a.png", size=(300, 200))).look == ""
    noise = np.random.default_rng(0).integers(100, 110, (480, 640, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.jpg")
    assert check_picture(tmp_path / "noise.jpg").look == ""


def test_the_reason_comes_without_the_name_of_the_picture(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    assert check_picture(tmp_path / "empty.png") == Checked(
        (0, 0), "the file is empty", fault="picture_empty"
    )


def test_a_picture_that_goes_away_meanwhile(
    make_picture: MakePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_picture("a.png")
    decode = module.decode_image

    def decode_and_remove(*given: object, **named: object) -> object:
        image = decode(*given, **named)
        path.unlink()
        return image

    monkeypatch.setattr(module, "decode_image", decode_and_remove)
    checked = check_picture(path)
    assert "No such file" in checked.error and not checked.lasting and checked.fault == "picture_unreadable"


def test_what_was_decoded_once_is_known(pictures: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "cache" / "facts.json"
    first, decoded = scan(file, pictures)
    assert decoded == 20 and [facts.size_wh for facts in first] == [(10 + i, 7) for i in range(20)]
    assert scan(file, pictures) == (first, 0)
    assert scan(file, pictures[::-1]) == (first[::-1], 0)


def test_known_facts_are_not_written_again(pictures: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    scan(file, pictures)
    before = file.stat()
    scan(file, pictures)
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_errors_and_notes_are_remembered(tmp_path: Path) -> None:
    (tmp_path / "empty.png").touch()
    Image.new("L", (9, 5)).save(tmp_path / "gray.png")
    paths = [tmp_path / "empty.png", tmp_path / "gray.png"]
    first, decoded = scan(tmp_path / "facts.json", paths)
    assert decoded == 2 and first[0].error and first[1].notes
    assert scan(tmp_path / "facts.json", paths) == (first, 0)


def test_an_error_of_the_system_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "away.png"
    path.symlink_to(tmp_path / "elsewhere.png")
    assert not check_picture(path).lasting
    found, _ = scan(tmp_path / "facts.json", [path])
    assert "No such file" in found[0].error
    Image.new("RGB", (9, 5)).save(tmp_path / "elsewhere.png")
    (found,), decoded = scan(tmp_path / "facts.json", [path])
    assert (found.size_wh, found.error, decoded) == ((9, 5), "", 1)


def test_a_changed_picture_with_a_forged_time_is_decoded_again(pictures: list[Path], tmp_path: Path) -> None:
    scan(tmp_path / "facts.json", pictures)
    before = pictures[3].stat()
    data = bytearray(pictures[3].read_bytes())
    data[len(data) // 2] ^= 255
    pictures[3].write_bytes(data)
    os.utime(pictures[3], ns=(before.st_atime_ns, before.st_mtime_ns))
    after = pictures[3].stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    found, decoded = scan(tmp_path / "facts.json", pictures)
    assert decoded == 1 and found[3].error
    assert scan(tmp_path / "facts.json", pictures) == (found, 0)


def test_a_replaced_picture_is_decoded_again(pictures: list[Path], tmp_path: Path) -> None:
    scan(tmp_path / "facts.json", pictures)
    shutil.move(pictures[5], pictures[4])
    found, decoded = scan(tmp_path / "facts.json", pictures[:5])
    assert decoded == 1 and found[4].size_wh == (15, 7)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "[" * 100_000,
        lambda text: text.replace("yolov9kit", "another"),
        lambda text: json.dumps({**json.loads(text), "pictures": []}),
        lambda text: json.dumps(
            {**json.loads(text), "pictures": {path: [[1, 2], 3] for path in json.loads(text)["pictures"]}}
        ),
        lambda text: text.replace(",7,", ",0,"),
        lambda text: text.replace('"PNG"', "1"),
        lambda text: text.replace('"RGB",1,1', '"RGB",9,1'),
        lambda text: text.replace("[],[]", '[],["picture_mode"]'),
        lambda text: text.replace('","",', '","bG9vaw==",'),
    ],
)
def test_a_damaged_file_is_ignored_and_written_anew(
    pictures: list[Path], tmp_path: Path, damage: Callable[[str], str]
) -> None:
    file = tmp_path / "facts.json"
    first, _ = scan(file, pictures)
    file.write_text(damage(file.read_text()))
    assert scan(file, pictures) == (first, 20)
    assert scan(file, pictures) == (first, 0)


def test_pictures_that_are_gone_are_forgotten(pictures: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "facts.json"
    scan(file, pictures)
    pictures[0].touch()
    scan(file, pictures[:4])
    assert sorted(json.loads(file.read_text())["pictures"]) == sorted(map(str, pictures[:4]))


def test_an_interrupted_scan_keeps_what_it_learnt_and_what_was_known(
    make_picture: MakePicture, tmp_path: Path
) -> None:
    file = tmp_path / "facts.json"
    paths = [make_picture(f"set/{i:03}.png", level=i % 200, size=(10, 7)) for i in range(100)]
    scan(file, paths[50:])
    facts = PictureFacts(file)
    checks = facts.check(paths)
    for _ in range(10):
        next(checks)
    checks.close()
    assert facts.save() == ""
    kept = json.loads(file.read_text())["pictures"]
    assert {str(path) for path in (*paths[:10], *paths[50:])} <= set(kept)


def test_a_scan_that_is_killed_goes_on_where_it_was(
    pictures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SAVE_EVERY_S", 0.0)
    file = tmp_path / "facts.json"
    checks = PictureFacts(file).check(pictures)
    for _ in range(17):
        next(checks)
    # no end, no save: as if the process were gone
    assert scan(file, pictures)[1] == 4
    checks.close()


def test_closing_the_iterator_ends_the_threads(pictures: list[Path], tmp_path: Path) -> None:
    before = set(threading.enumerate())
    facts = PictureFacts(tmp_path / "facts.json")
    checks = facts.check(pictures * 20)
    next(checks)
    assert set(threading.enumerate()) > before
    checks.close()
    assert set(threading.enumerate()) == before


def test_nothing_is_left_behind_where_writing_fails(
    pictures: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    facts = PictureFacts(tmp_path / "cache" / "facts.json")
    list(facts.check(pictures))
    monkeypatch.setattr(module.os, "replace", full)
    assert "No space left on device" in facts.save()
    assert list((tmp_path / "cache").iterdir()) == []


def test_without_a_file_nothing_is_remembered(
    pictures: list[Path], private_cache: Path, tmp_path: Path
) -> None:
    assert scan(None, pictures)[1] == 20
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_each_split_and_source_has_a_file_of_its_own(private_cache: Path, tmp_path: Path) -> None:
    files = {facts_file(split, [tmp_path / name]) for split in ("train", "val") for name in ("a", "b")}
    files.add(facts_file("train", [tmp_path / "a", tmp_path / "b"]))
    assert len(files) == 5
    assert {file.parent for file in files} == {private_cache / "yolov9kit" / "pictures"}


@pytest.mark.parametrize("given", ["", "relative/folder"])
def test_the_home_folder_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert facts_file("train", [tmp_path]).is_relative_to(tmp_path / ".cache" / "yolov9kit")


def test_names_that_are_no_text_can_be_remembered(make_picture: MakePicture, tmp_path: Path) -> None:
    plain = make_picture("a.png")
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xe9.png"))
    plain.rename(path)
    first, _ = scan(tmp_path / "facts.json", [path])
    assert first[0].size_wh == (8, 6)
    assert scan(tmp_path / "facts.json", [path]) == (first, 0)
