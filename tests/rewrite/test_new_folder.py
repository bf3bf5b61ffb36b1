"""A folder that is there whole or not at all."""

import os
from pathlib import Path

import pytest

from yolov9kit.errors import KitError
from yolov9kit.rewrite.new_folder import new_folder


@pytest.mark.parametrize("empty_before", [False, True])
def test_it_appears_at_the_end(tmp_path: Path, empty_before: bool) -> None:
    out = tmp_path / "deep" / "out"
    if empty_before:
        out.mkdir(parents=True)
    with new_folder(out, []) as part:
        (part / "a").write_text("1")
        assert part.parent == out.parent and list(out.parent.glob("out/*")) == []
    assert [path.name for path in out.iterdir()] == ["a"] and list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize(
    "fault", [KeyboardInterrupt(), ValueError("odd"), OSError(28, "No space left on device")]
)
def test_a_stop_leaves_nothing(tmp_path: Path, fault: BaseException) -> None:
    expected = KitError if isinstance(fault, OSError) else type(fault)
    with pytest.raises(expected), new_folder(tmp_path / "deep/er/out", []) as part:  # noqa: PT012
        (part / "a").write_text("1")
        raise fault
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(KitError, match=r"out: cannot be written or read \(No space left on device\)"),
        new_folder(tmp_path / "out", []),
    ):
        raise OSError(28, "No space left on device")


def test_a_full_disk_is_named_with_the_file(tmp_path: Path) -> None:
    with (
        pytest.raises(KitError, match=rf"^{tmp_path}/out/b\.png: cannot be written or read \(No space"),
        new_folder(tmp_path / "out", []) as part,
    ):
        raise OSError(28, "No space left on device", "/set/a.png", None, str(part / "b.png"))


def test_what_holds_something_is_refused_and_stays(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").write_text("1")
    (tmp_path / "file").write_text("1")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, reason in (("out", "holds files already"), ("file", "is a file"), ("link", "is a file")):
        with pytest.raises(KitError, match=f"{name}: {reason}"), new_folder(tmp_path / name, []):
            pytest.fail("must not begin")
    assert (tmp_path / "out/mine").read_text() == "1" and len(list(tmp_path.iterdir())) == 3


def test_what_came_there_meanwhile_stays(tmp_path: Path) -> None:
    with pytest.raises(KitError, match="holds files already"), new_folder(tmp_path / "out", []):  # noqa: PT012
        (tmp_path / "out").mkdir()
        (tmp_path / "out/other").write_text("1")
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "other"]


def test_source_and_target_do_not_hold_each_other(tmp_path: Path) -> None:
    source = tmp_path / "set"
    source.mkdir()
    (tmp_path / "link").symlink_to(source)
    for out, reason in (
        (source / "out", "lies inside the source"),
        (source / "../set/out", "lies inside the source"),
        (tmp_path / "link/out", "lies inside the source"),
        (source, "lies inside the source"),
    ):
        with pytest.raises(KitError, match=reason), new_folder(out, [source]):
            pytest.fail("must not begin")
    empty = tmp_path / "empty"
    with pytest.raises(KitError, match="lies inside it"), new_folder(empty, [empty / "images"]):
        pytest.fail("must not begin")
    assert list(source.iterdir()) == []


def test_the_folder_that_one_is_in_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KitError, match="that you are in"), new_folder(tmp_path, []):
        pytest.fail("must not begin")


def test_the_new_folder_can_be_read_by_those_who_may_read_any_other(tmp_path: Path) -> None:
    (tmp_path / "usual").mkdir()
    with new_folder(tmp_path / "out", []):
        pass
    assert os.stat(tmp_path / "out").st_mode == os.stat(tmp_path / "usual").st_mode
