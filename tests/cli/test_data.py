"""``yolov9kit data``: what its command lines do, what they print, and one clear line for faults."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from yolov9kit.cli import main
from yolov9kit.data.dataset import open_dataset

ROWS = ("0 .5 .5 .2 .2\n1 .2 .2 .1 .1\n", "1 .5 .5 .2 .2\n", "", "0 .4 .4 .3 .3\n")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def source(here: Path) -> Path:
    random = np.random.default_rng(0)
    for i, rows in enumerate(ROWS):
        for kind in ("images", "labels"):
            (here / f"set/{kind}/train").mkdir(parents=True, exist_ok=True)
        pixels = random.integers(0, 256, (9, 9, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((64, 48)).save(here / f"set/images/train/{i}.png")
        (here / f"set/labels/train/{i}.txt").write_text(rows)
    (here / "set/data.yaml").write_text("train: images/train\nnames: [nut, bolt]\n")
    return here / "set"


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("convert set out", "/out/data.yaml: YOLO, 2 classes"),
        ("convert set/data.yaml out --to coco", "/out: COCO JSON, 2 classes"),
        ("split set out --val 0.5 --seed 3", "all pictures: train 2 (50%), val 2 (50%)"),
        ("split set out --val 0.25 --test 0.25", "test 1 (25%)"),
        ("merge set set out", "4 pictures named by several of the data sets"),
        ("subset set out --classes bolt --split train", "train: 2 of 4 pictures stay"),
        ("subset set out --count 3 --empty-share 0.34 --seed 1", "train: 3 pictures"),
    ],
)
def test_each_verb_writes_a_new_folder_and_says_so(
    source: Path, here: Path, words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digest(source)
    assert main(["data", *words.split()]) == 0
    printed = capsys.readouterr()
    assert said in printed.out and printed.err == ""
    splits = [path.name for path in (here / "out/images").iterdir()]
    assert splits and all(open_dataset(here / "out", split).samples for split in splits)
    assert digest(source) == before


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("convert nowhere out", 1, "nowhere: no such file or folder"),
        ("convert set set", 1, "set: holds files already: name a new folder"),
        ("convert set set/out", 1, "set/out: lies inside the source"),
        ("convert set out --to voc", 2, "invalid choice: 'voc'"),
        ("split set out --val 1.5", 2, "leave something for train"),
        ("merge set out", 2, "1 data set to merge: name two or more"),
        ("subset set out --classes screw", 2, "classes: screw: there are nut, bolt"),
        ("convert set", 2, "the following arguments are required: OUT (see `yolov9kit data convert --help`)"),
        ("", 2, "the following arguments are required: VERB"),
    ],
)
def test_a_refusal_is_one_line_and_leaves_nothing(
    source: Path, here: Path, words: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = digest(source)
    assert main(["data", *words.split()]) == code
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1 and printed.out == ""
    assert digest(source) == before and not (here / "out").exists()


def test_bad_rows_are_refused_or_listed(source: Path, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (source / "labels/train/2.txt").write_text("7 .5 .5 .1 .1\n0 .5 .5 .1 .1\n")
    assert main(["data", "convert", "set", "out"]) == 1
    assert "2.txt:1: class 7" in capsys.readouterr().err and not (here / "out").exists()
    assert main(["data", "convert", "set", "out", "--skip-bad-rows"]) == 0
    assert "left out: 1 thing" in capsys.readouterr().out
    assert "2.txt:1: class 7" in (here / "out/left_out.txt").read_text()


def test_coco_is_written_for_others(source: Path, here: Path) -> None:
    assert main(["data", "convert", "set", "out", "--to", "coco", "--quiet"]) == 0
    record = json.loads((here / "out/annotations/instances_train.json").read_text())
    assert (len(record["images"]), len(record["annotations"])) == (4, 4)


def test_help_loads_no_torch() -> None:
    code = (
        "import sys\nfrom yolov9kit.cli import main\n"
        "try:\n    main(['data', 'split', '--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "--group-by" in done.stdout and done.stderr == ""
