"""Hyperparameter files: what they mean here, and one clear line where they cannot be meant."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yolov9kit.errors import UsageError
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.hyp import SCRATCH_HIGH, read_hyp


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


SPELLINGS = ["hyp.scratch-high.yaml", "hyp.scratch-high", "data/hyps/hyp.scratch-high.yaml"]


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_articles_recipe_is_built_in(here: Path, name: str) -> None:
    settings, notes = read_hyp(name)
    config = TrainConfig(data="d", **settings)
    assert (config.lr0, config.momentum, config.warmup_bias_lr) == (0.01, 0.937, 0.1)
    assert (config.box_gain, config.cls_gain, config.dfl_gain) == (7.5, 0.5, 1.5)
    assert (config.flip_lr, config.flip_ud, config.mosaic, config.mixup, config.scale) == (
        0.5,
        0,
        1,
        0.15,
        0.9,
    )
    assert notes == (
        f"{name}: the built-in recipe is used",
        "copy_paste 0.3: needs polygons, changes nothing for boxes",
    )


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_file_on_the_disk_comes_before_the_built_in_one(here: Path, name: str) -> None:
    (here / name).parent.mkdir(parents=True, exist_ok=True)
    (here / name).write_text("lr0: 0.02\n")
    assert read_hyp(name) == ({"lr0": 0.02}, ())


def test_written_out_the_recipe_means_the_same(here: Path) -> None:
    (here / "own.yaml").write_text("".join(f"{key}: {value}\n" for key, value in SCRATCH_HIGH.items()))
    assert read_hyp("own.yaml")[0] == read_hyp("hyp.scratch-high")[0]


def test_nothing_of_the_recipe_goes_without_a_word() -> None:
    """Each key is a setting, or changes nothing in a model without anchors, or has the value that changes nothing."""
    taken = len(read_hyp("hyp.scratch-high")[0])
    without_effect = {
        "cls_pw",
        "obj",
        "obj_pw",
        "iou_t",
        "anchor_t",
        "fl_gamma",
        "perspective",
        "copy_paste",
    }
    assert taken == len(SCRATCH_HIGH) - len(without_effect)
    assert without_effect < set(SCRATCH_HIGH)


@given(st.floats(min_value=1e-12, max_value=1.0), st.sampled_from(["{}", "{:e}", "'{}'"]))
def test_numbers_are_read_as_written(
    tmp_path_factory: pytest.TempPathFactory, value: float, form: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "number.yaml"
    text = form.format(value)
    file.write_text(f"# a remark\nlr0: {text}\n", encoding="utf-8-sig")
    assert read_hyp(file)[0] == {"lr0": float(text.strip("'"))}


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("lr0: 0.01\nlr_0: 0.1\n", "own.yaml, line 2: 'lr_0' is no hyperparameter. Did you mean lr0?"),
        ("qqq: 1\n", "'qqq' is no hyperparameter. There are anchor_t, anchors, box, cls,"),
        ("epochs: 3\n", "'epochs' is no hyperparameter."),
        ("lr0: much\n", "own.yaml, line 1: lr0 = 'much': a number is expected"),
        ("lr0: .nan\n", "lr0 = '.nan': a number"),
        ("lr0: nan\n", "lr0 = 'nan': a number"),
        ("lr0: inf\n", "lr0 = 'inf': a number"),
        ("lr0: true\n", "lr0 = 'true': a number"),
        ("lr0:\n", "lr0 = '': a number"),
        ("lr0: [0.1, 0.2]\n", "lr0 = 'more than one value'"),
        ("lr0: 1\n\nlr0: 2\n", "own.yaml, line 3: lr0 stands here a second time"),
        ("lr0: -1\n", "own.yaml: lr0 = -1.0"),
        ("box: 5000\n", "own.yaml: box_gain = 5000.0"),
        ("fl_gamma: 1.5\n", "fl_gamma = 1.5 is not offered: leave it out, or write 0"),
        ("perspective: 0.001\n", "perspective = 0.001 is not offered"),
        ("cls_pw: 2\n", "cls_pw = 2 is not offered: leave it out, or write 1"),
        ("label_smoothing: 0.1\n", "label_smoothing = 0.1 is not offered"),
        ("- lr0\n", "lines such as `lr0: 0.01` are expected"),
        ("", "lines such as `lr0: 0.01` are expected"),
        ("? [a, b]\n: 1\n", "line 1: the name of a hyperparameter"),
        ("lr0: 'a\n", "own.yaml: is not YAML"),
    ],
)
def test_what_is_wrong_is_one_line(here: Path, content: str, complaint: str) -> None:
    (here / "own.yaml").write_text(content)
    with pytest.raises(UsageError) as caught:
        read_hyp("own.yaml")
    message = str(caught.value)
    assert complaint in message and message.startswith("own.yaml") and "\n" not in message


@pytest.mark.parametrize("content", ["fl_gamma: 0\n", "perspective: 0.0\n", "obj: 3\niou_t: 0.7\n"])
def test_what_changes_nothing_is_accepted(here: Path, content: str) -> None:
    (here / "own.yaml").write_text(content)
    assert read_hyp(here / "own.yaml") == ({}, ())


def test_files_that_are_not_there(here: Path) -> None:
    for name in ("mine.yaml", "runs/hyp.scratch-high.yaml", "hyp.scratch-low.yaml"):
        with pytest.raises(UsageError, match=f"^{name}: no such file. hyp.scratch-high.yaml is built in"):
            read_hyp(name)
    with pytest.raises(UsageError, match="cannot be read"):
        read_hyp(here)
    (here / "own.yaml").write_bytes(b"lr0: \xff")
    with pytest.raises(UsageError, match="byte 5 is no UTF-8"):
        read_hyp("own.yaml")


def test_all_values_are_finite_numbers() -> None:
    assert all(math.isfinite(value) for value in read_hyp("hyp.scratch-high")[0].values())
