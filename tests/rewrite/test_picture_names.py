"""No two pictures of a split share a label file, and a name that is alone stays."""

from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.data.image import is_image_name
from yolov9kit.rewrite.picture_names import picture_names

part = st.sampled_from(["a", "A", "b", "1", "a_1", "Ä", normalize("NFD", "Ä"), "x" * 120])
paths = st.lists(
    st.builds(
        lambda folders, stem, suffix: Path("/set", *folders, stem + suffix),
        st.lists(part, max_size=3),
        part,
        st.sampled_from([".jpg", ".png", ".JPG"]),
    ),
    unique=True,
    max_size=12,
)


@given(paths)
def test_no_two_names_are_one_file(paths: list[Path]) -> None:
    names = picture_names(paths, [path.suffix for path in paths])
    folded = [normalize("NFC", Path(name).stem).casefold() for name in names]
    assert len(set(folded)) == len(paths)
    for path, name in zip(paths, names, strict=True):
        assert is_image_name(name) and Path(name).suffix == path.suffix and len(name.encode()) < 255
        alone = [
            p for p in paths if normalize("NFC", p.stem).casefold() == normalize("NFC", path.stem).casefold()
        ]
        assert name == path.name or len(alone) > 1


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/s/a/1.jpg", "/s/b/1.jpg", "/s/b/2.jpg"], ["a_1.jpg", "b_1.jpg", "2.jpg"]),
        (["/s/1.jpg", "/s/1.png"], ["1.jpg", "1_png.png"]),
        (["/s/a/1.jpg", "/s/A/1.JPG"], ["a_1.jpg", "A_1_JPG.JPG"]),
        (["/s/a/1.jpg", "/s/b/1.jpg", "/s/a_1.jpg"], ["a_1_jpg.jpg", "b_1.jpg", "a_1.jpg"]),
        (["/s/.hidden.jpg"], ["hidden.jpg"]),
        (["/s/two.dots.jpg"], ["two.dots.jpg"]),
        (["/s/caf\udce9.jpg"], ["caf_.jpg"]),
    ],
)
def test_names_come_from_the_path(paths: list[str], names: list[str]) -> None:
    given = [Path(path) for path in paths]
    assert picture_names(given, [path.suffix for path in given]) == names
