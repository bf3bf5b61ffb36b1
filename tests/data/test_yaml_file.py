"""data.yaml: names, and the places that an entry may mean."""

from pathlib import Path

import pytest

from yolov9kit.data.yaml_file import read_data_yaml
from yolov9kit.errors import DataError


def write(folder: Path, text: str, name: str = "data.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_bytes(text.encode())
    return file


@pytest.mark.parametrize(
    "names",
    [
        "names: [a, 'no', b c]",
        "names: [a, no, b c]",
        "names: {0: a, 1: no, 2: b c}",
        "names: {2: b c, 0: a, 1: no}",
        "names:\n- a\n- no\n- b c\nnc: 3",
    ],
)
def test_names_as_list_and_map(tmp_path: Path, names: str) -> None:
    assert read_data_yaml(write(tmp_path, names)).names == ("a", "no", "b c")


def test_what_yaml_would_make_of_a_name_plays_no_part(tmp_path: Path) -> None:
    assert read_data_yaml(write(tmp_path, "names: [yes, 007, null, 2024-13-45, 1e3]")).names == (
        *("yes", "007", "null", "2024-13-45", "1e3"),
    )


def test_d22_other_ways_to_write_text_change_nothing(tmp_path: Path) -> None:
    text = "train: t  # \N{HAMMER AND WRENCH}\nnames:\n  0: Schraube\n  1: 螺母\n  2: гайка\n\n\n"
    plain = read_data_yaml(write(tmp_path, text))
    assert plain.names == ("Schraube", "螺母", "гайка")
    assert read_data_yaml(write(tmp_path, "\ufeff" + text.replace("\n", "\r\n"))) == plain


@pytest.mark.parametrize("nc", ["4", "2", "3.0", "three", "[3]"])
def test_d25_two_class_counts_are_both_shown(tmp_path: Path, nc: str) -> None:
    with pytest.raises(DataError, match=r"data\.yaml: nc is .* names holds 3 \(a, b, c\)") as caught:
        read_data_yaml(write(tmp_path, f"nc: {nc}\nnames: [a, b, c]"))
    assert nc.strip("[]") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found none"),
        ("- a\n- b", "found none"),
        ("train: images\nnc: 3", r"no key 'names'.*train, nc"),
        ("names: []", "expected a list of class names"),
        ("names: a", "expected a list of class names, found 'a'"),
        ("names: [a, '']", "class 1 is called ''"),
        ("names: [a, [b]]", "class 1 is called"),
        ("names: {1: a, 2: b}", "the keys are 1, 2; expected 0 to 1"),
        ("names: {0: a, x: b}", "the keys are 0, x"),
        ("names: {0: a, 0: b}", "line 1: key 0 twice"),
        ("names: [a]\ntrain: x\ntrain: y", "line 3: key train twice"),
        ("names: [a\ntrain: x", "not a yaml: line 2"),
        ('names: [a]\npath: "G:\\data"', "not a yaml: line 2"),
        ("[" * 20_000, "not a yaml"),
        ("names: [a]\npath: [a, b]", "is not one folder"),
        ("names: [a]\nkpt_shape: [3]", r"kpt_shape is \[3\]; expected the number of key points and 2 or 3"),
        ("names: [a]\nkpt_shape: [3, 4]", "kpt_shape is"),
        ("names: [a]\nkpt_shape: [three, 2]", "kpt_shape is \\[three, 2"),
        ("names: [a]\nkpt_shape: 17", "kpt_shape is 17"),
        ("names: [a]\nkpt_shape: [9999999, 3]", "kpt_shape is"),
    ],
)
def test_a_wrong_yaml_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=rf"data\.yaml: .*{said}") as caught:
        read_data_yaml(write(tmp_path, text))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("shape", "columns"), [("[17, 3]", 51), ("[3, 2]", 6), ("[0, 0]", 0)])
def test_the_columns_of_key_points_are_told(tmp_path: Path, shape: str, columns: int) -> None:
    data = read_data_yaml(write(tmp_path, f"names: [a]\ntrain: t\nkpt_shape: {shape}\nflip_idx: [0, 2, 1]"))
    assert data.point_columns == columns and data.splits == ("train",)
    assert read_data_yaml(write(tmp_path, "names: [a]")).point_columns == 0


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.yaml").write_bytes("names: [é]".encode("latin-1"))
    with pytest.raises(DataError, match="byte 8 is no UTF-8 text"):
        read_data_yaml(tmp_path)


# ------------------------------------------------------------------------------------------------- folder


@pytest.mark.parametrize(
    ("there", "taken"),
    [
        (["data.yaml", "a.yaml"], "data.yaml"),
        (["dataset.yaml", "a.yaml"], "dataset.yaml"),
        (["boards.yml"], "boards.yml"),
        (["boards.yaml", ".hidden.yaml"], "boards.yaml"),
    ],
)
def test_a_folder_stands_for_its_yaml(tmp_path: Path, there: list[str], taken: str) -> None:
    for name in there:
        write(tmp_path, "names: [a]", name)
    assert read_data_yaml(tmp_path).file == tmp_path / taken


def test_a_folder_without_or_with_several_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no data\.yaml in this folder"):
        read_data_yaml(tmp_path)
    write(tmp_path, "names: [a]", "a.yaml")
    write(tmp_path, "names: [a]", "b.yml")
    with pytest.raises(DataError, match=r"several yaml files \(a\.yaml, b\.yml\)"):
        read_data_yaml(tmp_path)
    with pytest.raises(DataError, match=r"away\.yaml: no such file or folder"):
        read_data_yaml(tmp_path / "away.yaml")


# ------------------------------------------------------------------------------------------------- splits


def test_val_has_three_spellings(tmp_path: Path) -> None:
    for key in ("val", "valid", "validation"):
        data = read_data_yaml(write(tmp_path, f"names: [a]\ntrain: t\n{key}: [v, w]"))
        assert "val" in data.splits and data.split("val") == ("v", "w")


@pytest.mark.parametrize("empty", ["", "~", "null", "[]", "{a: b}", "[a, {b: c}]"])
def test_a_missing_split_lists_the_keys(tmp_path: Path, empty: str) -> None:
    data = read_data_yaml(write(tmp_path, f"names: [a]\ntrain: t\ntest: u\nval: {empty}"))
    assert "val" not in data.splits
    with pytest.raises(DataError, match=r"data\.yaml: has no key 'val'.*keys: train, test\)"):
        data.split("val")


@pytest.mark.parametrize(
    ("root", "entry", "there", "noted"),
    [
        ("", "images/train", "images/train", False),
        ("", "./images/train", "images/train", False),
        ("", "images\\train", "images/train", False),
        ("", "../train/images", "train/images", True),
        ("", "../../train/images", "train/images", True),
        ("", "..\\train\\images", "train/images", True),
        ("sub", "images", "sub/images", False),
        ("./sub/", "images", "sub/images", False),
        ("sub\\inner", "images", "sub/inner/images", False),
        ("sub", "../images", "images", False),
        ("G:\\boards\\dataset", "train/images", "train/images", True),
        ("away", "../train/images", "train/images", True),
        ("", "val/images", "valid/images", True),
        ("", "../valid/images", "val/images", True),
        ("", "images\\val", "images/validation", True),
    ],
)
def test_d26_an_entry_is_found_wherever_the_process_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, entry: str, there: str, noted: bool
) -> None:
    file = write(tmp_path / "set", f"path: '{root}'\nnames: [a]\ntrain: '{entry}'")
    for folder in ("set/sub", f"set/{there}", "other"):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path / "other")
    data = read_data_yaml(Path("../set") / file.name)
    found, note = data.resolve(data.split("train")[0])
    assert found == tmp_path / "set" / there
    assert bool(note) == noted and (not noted or (entry in note and str(found) in note))


def test_d26_the_working_directory_plays_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other" / "images").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "other")
    with pytest.raises(DataError, match="was not found"):
        read_data_yaml(write(tmp_path / "set", "names: [a]")).resolve("images")


def test_another_spelling_of_val_is_taken_only_where_that_in_the_yaml_is_not_there(tmp_path: Path) -> None:
    data = read_data_yaml(write(tmp_path, "names: [a]"))
    for folder in ("valid", "val"):
        (tmp_path / folder).mkdir()
    assert data.resolve("val") == (tmp_path / "val", "") and data.resolve("valid") == (tmp_path / "valid", "")


def test_d26_every_place_that_was_tried_is_listed(tmp_path: Path) -> None:
    data = read_data_yaml(write(tmp_path / "set", "path: sub\nnames: [a]\ntrain: ../train/images"))
    with pytest.raises(DataError) as caught:
        data.resolve("../train/images")
    for place in ("set/sub/../train/images", "set/../train/images", "set/train/images"):
        assert f"{tmp_path}/{place}" in str(caught.value)


def test_a_name_that_is_too_long_for_the_system_is_not_there(tmp_path: Path) -> None:
    data = read_data_yaml(write(tmp_path, "names: [a]"))
    with pytest.raises(DataError, match="was not found, tried"):
        data.resolve("a" * 5000)


def test_the_root_goes_first_and_an_absolute_path_is_itself(tmp_path: Path) -> None:
    for folder in ("set/images", "set/sub/images", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    data = read_data_yaml(write(tmp_path / "set", "path: sub\nnames: [a]"))
    assert data.resolve("images") == (tmp_path / "set" / "sub" / "images", "")
    assert data.resolve(str(tmp_path / "elsewhere")) == (tmp_path / "elsewhere", "")


def test_two_dots_behind_a_link_stay_the_systems_business(tmp_path: Path) -> None:
    (tmp_path / "far" / "inner").mkdir(parents=True)
    (tmp_path / "far" / "images").mkdir()
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "link").symlink_to(tmp_path / "far" / "inner")
    data = read_data_yaml(write(tmp_path / "set", "names: [a]"))
    found, _ = data.resolve("link/../images")
    assert found.samefile(tmp_path / "far" / "images")
