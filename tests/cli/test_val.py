"""Command lines of ``val``: the evaluation that they mean, the files that they write, and one clear line for faults."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from yolov9kit.cli import main
from yolov9kit.data.synthetic import draw_shapes
from yolov9kit.evaluation import evaluate as module
from yolov9kit.evaluation.config import EvalConfig


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def data(here: Path) -> Path:
    (here / "set/images").mkdir(parents=True)
    for seed in range(3):
        drawing = draw_shapes(seed, (96, 96))
        Image.fromarray(drawing.pixels).save(here / f"set/images/{seed}.png")
        corners = drawing.boxes / 96
        rows = [
            f"{label} {(x1 + x2) / 2:.6f} {(y1 + y2) / 2:.6f} {x2 - x1:.6f} {y2 - y1:.6f}\n"
            for (x1, y1, x2, y2), label in zip(corners, drawing.labels, strict=True)
        ]
        (here / f"set/images/{seed}.txt").write_text("".join(rows))
    (here / "set/data.yaml").write_text("val: images\ntest: images\nnames: [nut, bolt, wing nut]\n")
    return here / "set/data.yaml"


class Stop(Exception):  # noqa: N818 - not an error
    """Raised where the evaluation would begin."""


@pytest.fixture
def meant(monkeypatch: pytest.MonkeyPatch) -> list[EvalConfig]:
    """What command lines mean, instead of doing it."""
    configs: list[EvalConfig] = []

    def begin(weights: Any, data: Any, config: EvalConfig, **_: Any) -> None:
        configs.append(config)
        raise Stop

    monkeypatch.setattr(module, "evaluate", begin)
    return configs


def config(words: str, meant: list[EvalConfig]) -> EvalConfig:
    main(shlex.split(words))
    return meant[-1]


def test_the_line_of_val_dual_means_its_settings(meant: list[EvalConfig]) -> None:
    words = (
        "python val_dual.py --data d.yaml --img 640 --batch 32 --conf 0.001 --iou 0.7 --device 0 --max-det 200 "
        "--weights w.pt --save-json --name x --half --task test --workers 4 --single-cls --min-items 2 --verbose"
    )
    assert config(words, meant) == EvalConfig(
        image_size=640,
        batch=32,
        min_score=0.001,
        max_iou=0.7,
        device="0",
        max_detections=200,
        precision="fp16",
        split="test",
        workers=4,
        single_class=True,
        min_items=2,
    )


@pytest.mark.parametrize("before", ["val", "val.py", "val_dual.py", "python val.py", "val ./val_dual.py"])
def test_every_name_of_the_script_is_this_command(before: str, meant: list[EvalConfig]) -> None:
    assert config(f"{before} --weights w.pt --data d.yaml", meant) == EvalConfig()


def test_old_spellings_are_the_same_settings(meant: list[EvalConfig]) -> None:
    old = "val -w w.pt --data d --conf-thres 0.01 --iou-thres 0.5 --imgsz 320 --batch-size 2 --bf16"
    new = "val -w w.pt --data d --conf 0.01 --iou 0.5 --img 320 --batch 2 --precision bf16"
    assert config(old, meant) == config(new, meant)


def test_own_options(meant: list[EvalConfig]) -> None:
    words = "val -w w.pt --data d --img 320 640 --one-label --fused --worst 4 --skip-bad-rows"
    assert config(words, meant) == EvalConfig(
        image_size=(320, 640), multi_label=False, fused=True, worst=4, skip_bad_rows=True
    )


def test_a_scripts_odd_size_is_rounded_up_as_it_does(
    meant: list[EvalConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    assert config("val_dual.py --weights w --data d --img 100", meant).image_size == (128,)
    assert "rounded up to [128]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--save-hybrid", "--save-hybrid: truth among the detections would score itself"),
        ("--augment", "--augment: test-time augmentation is not offered"),
        ("--dnn", "--dnn: OpenCV's network engine is not used"),
        ("--task speed", "--task speed: not offered; several --img sizes give AP and time by size"),
        ("--half --bf16", "--half and --bf16: two precisions at once"),
        ("--half --precision fp32", "two precisions at once"),
        ("--save-conf", "--save-conf: adds scores to the files of --save-txt"),
        ("--img 100", "image_size = (100,): 100 is no multiple of 32"),
        ("--iou 7", "max_iou = 7.0"),
        ("--batch 0", "batch = 0"),
        ("--html .", "--html .: is a folder; name a file to write"),
        ("--nonsense", "unrecognized arguments: --nonsense"),
        ("--weights a b", "--weights names 2 files: ensembles are not offered"),
    ],
)
def test_what_is_refused_is_refused_in_one_line_before_any_work(
    words: str, message: str, meant: list[EvalConfig], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(f"val --weights w.pt --data d.yaml {words}")) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and meant == []


def test_the_table_goes_to_standard_output_and_the_files_are_written(
    lively_weights: Path, data: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = (
        f"val --weights '{lively_weights}' --data {data} --img 64 --device cpu --json out/r.json --html out/r.html "
        "--png out/r.png --save-json --save-txt --save-conf --project runs --name one --max-det 20"
    )
    assert main(shlex.split(line)) == 0
    said = capsys.readouterr()
    assert said.out.startswith("AP 50-95 0.") and "AP large no objects" in said.out
    assert said.out.splitlines()[-1].startswith(
        "settings: 64 px, fp32 on CPU, score over 0.001, NMS at IoU 0.7"
    )
    assert [row.split()[0] for row in said.out.splitlines() if row.startswith(("nut", "bolt"))] == [
        "nut",
        "bolt",
    ]
    record = json.loads(Path("out/r.json").read_text(encoding="utf-8"))
    assert (record["pictures"], record["objects"], record["detections"]) == (3, record["objects"], 60)
    assert Path("out/r.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert Image.open("out/r.png").format == "PNG"
    rows = json.loads(Path("runs/one/predictions.json").read_text())
    assert len(rows) == 60 and {row["image_id"] for row in rows} == {0, 1, 2}
    assert {row["category_id"] for row in rows} <= {0, 1, 2}
    txt = np.loadtxt("runs/one/labels/1.txt", ndmin=2)
    of_picture = [row for row in rows if row["image_id"] == 1]
    assert txt.shape == (20, 6)
    np.testing.assert_allclose(txt[:, 3:5] * 96, [row["bbox"][2:] for row in of_picture], atol=1e-3)
    assert main(shlex.split(line)) == 0 and Path("runs/one2/predictions.json").is_file()


def test_nothing_is_written_that_was_not_asked_for(lively_weights: Path, data: Path, here: Path) -> None:
    before = {path for path in here.rglob("*") if "cache" not in path.parts}
    assert (
        main(["val", "--weights", str(lively_weights), "--data", str(data), "--img", "64", "--device", "cpu"])
        == 0
    )
    assert {path for path in here.rglob("*") if "cache" not in path.parts} == before


def test_weights_of_other_classes_are_a_fault_in_one_line(
    lively_weights: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data.write_text("val: images\nnames: [a, b, c, d]\n")
    assert main(["val", "-w", str(lively_weights), "--data", str(data), "--device", "cpu"]) == 1
    error = capsys.readouterr().err
    assert "knows 3 classes (nut, bolt, wing nut), set has 4 classes (a, b, c, d)" in error
    assert error.count("\n") == 1


def test_a_file_that_cannot_be_written_is_a_fault(
    lively_weights: Path, data: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "file").write_text("")
    words = ["--img", "64", "--device", "cpu", "--json", "file/r.json"]
    assert main(["val", "-w", str(lively_weights), "--data", str(data), *words]) == 1
    assert "file/r.json: cannot be written" in capsys.readouterr().err


def test_help_lists_the_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["val", "--help"])
    assert end.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for words in (
        "(default 0.001)",
        "(default 0.7)",
        "(default 300)",
        "category_id is the class number, from 0",
    ):
        assert words in text
