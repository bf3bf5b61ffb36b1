"""Command lines of ``train``: the run that they mean, and one clear line where they mean none."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.shapes import write_shapes
from yolov9kit.cli import main
from yolov9kit.cli.train import config_from, folder_of_run, newest_run
from yolov9kit.cli.train_options import CHANGES_NOTHING, OPTIONS, REFUSED
from yolov9kit.errors import TrainingError, UsageError
from yolov9kit.training import trainer
from yolov9kit.training.config import TrainConfig
from yolov9kit.training.reports import EndReport, Report

ARTICLE = (
    "--workers 8 --device 0 --batch 64 --data data.yaml --img 640 --cfg models/detect/yolov9-s.yaml --weights '' "
    "--name yolov9-s-bf16 --hyp hyp.scratch-high.yaml --min-items 0 --epochs 20 --close-mosaic 15 --amp --bf16"
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def config(text: str) -> TrainConfig:
    return config_from(shlex.split("--data d.yaml " + text))[0]


def notes(text: str) -> str:
    return "\n".join(config_from(shlex.split("--data d.yaml " + text))[1])


# ---------------------------------------------------------------------------------------------- a new run


def test_the_articles_line_means_their_run() -> None:
    found, about = config_from(shlex.split(ARTICLE))
    assert found == TrainConfig(
        data="data.yaml",
        weights=None,
        size="s",
        epochs=20,
        batch=64,
        image_size=640,
        device="0",
        workers=8,
        precision="bf16",
        optimizer="sgd",
        lr0=0.01,
        momentum=0.937,
        warmup_bias_lr=0.1,
        min_items=0,
        close_mosaic=15,
        mixup=0.15,
        scale=0.9,
        name="yolov9-s-bf16",
    )
    assert any(note.startswith("optimizer sgd: lr0 0.01 of hyp.scratch-high.yaml") for note in about)
    assert any(note.startswith("copy_paste 0.3") for note in about)


@pytest.mark.parametrize(
    "before", [["train"], ["train_dual.py"], ["python", "train_dual.py"], ["train", "./train_dual.py"]]
)
def test_the_articles_line_runs_behind_each_name(before: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[TrainConfig] = []

    def train(run: TrainConfig, on_progress: Any) -> Iterator[Report]:
        begun.append(run)
        yield EndReport("finished", 20, None, None, "w", 1.0)

    monkeypatch.setattr(trainer, "train", train)
    assert main([*before, *shlex.split(ARTICLE)]) == 0
    assert begun == [config_from(shlex.split(ARTICLE))[0]]


def test_nothing_but_data_brings_the_library_s_defaults() -> None:
    assert config_from(["--data", "d.yaml"]) == (TrainConfig(data="d.yaml"), ())


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("--weights ''", {"weights": None}),
        ("-w w.pt --size c", {"weights": Path("w.pt"), "size": "c"}),
        ("--batch-size 8 --val-batch 3", {"batch": 8, "val_batch": 3}),
        ("--imgsz 320", {"image_size": 320}),
        ("--img-size 320 320", {"image_size": 320}),
        ("--cache", {"cache": "ram"}),
        ("--cache ram", {"cache": "ram"}),
        ("--cache none", {"cache": "none"}),
        ("--single-cls --deterministic", {"single_class": True, "deterministic": True}),
        ("--new-auxiliary --skip-bad-rows", {"new_auxiliary": True, "skip_bad_rows": True}),
        ("--freeze 10", {"freeze": (10,)}),
        ("--freeze 0 2 4", {"freeze": (0, 2, 4)}),
        ("--optimizer SGD", {"optimizer": "sgd"}),
        ("--optimizer AdamW --lr0 1e-3", {"optimizer": "adamw", "lr0": 0.001}),
        ("--optimizer Auto", {"optimizer": "auto"}),
        ("--cos-lr", {"schedule": "cosine"}),
        ("--patience 0 --seed 3 --accumulate 2", {"patience": 0, "seed": 3, "accumulate": 2}),
        ("--evaluate-every 5", {"evaluate_every": 5}),
        ("--noval --epochs 7", {"evaluate_every": 7}),
        ("--project runs/x --name y", {"project": Path("runs/x"), "name": "y"}),
        ("--amp", {"precision": "auto"}),
        ("--amp --bf16", {"precision": "bf16"}),
        ("--half", {"precision": "fp16"}),
        ("--half --precision fp16", {"precision": "fp16"}),
        ("--precision tf32", {"precision": "tf32"}),
        ("--cfg yolov9-t", {"size": "t"}),
        ("--cfg gelan-c.yaml", {"size": "c"}),
        ("--cfg models/detect/yolov9-E.YAML", {"size": "e"}),
        (r"--cfg 'models\detect\yolov9-m.yml'", {"size": "m"}),
        ("--cfg s --size s", {"size": "s"}),
        ("--cfg ''", {"size": None}),
        ("--label-smoothing 0.0 --save-period -1 --local_rank -1", {}),
        ("--set mixup=0.5 --set degrees=10", {"mixup": 0.5, "degrees": 10}),
        ("--set workers=none --set cache=none", {"workers": None, "cache": "none"}),
        ("--set freeze=1,2 --set deterministic=true", {"freeze": (1, 2), "deterministic": True}),
        ("--hyp hyp.scratch-high --lr0 0.5", {"lr0": 0.5, "optimizer": "sgd"}),
        ("--hyp hyp.scratch-high --set mosaic=0 --optimizer Adam", {"mosaic": 0, "optimizer": "adam"}),
        ("--close 3", {"close_mosaic": 3}),  # an abbreviation, as argparse takes it
    ],
)
def test_options_are_settings(text: str, settings: dict[str, Any]) -> None:
    found = config(text)
    assert {name: found.model_dump()[name] for name in settings} == settings
    untouched = set(TrainConfig.model_fields) - set(settings)
    if "--hyp" not in text and not {"--optimizer", "--epochs"} & set(shlex.split(text)):
        assert found.model_dump(include=untouched) == TrainConfig(data="d.yaml").model_dump(include=untouched)


def test_a_hyp_file_of_the_user(here: Path) -> None:
    (here / "h.yaml").write_text("box: 5\nfliplr: 0.1\n")
    found = config("--hyp h.yaml")
    assert (found.box_gain, found.flip_lr, found.optimizer) == (5, 0.1, "auto")  # no rate, so no optimizer


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("--cfg gelan-c.yaml", "size c is trained with its auxiliary branch, as yolov9-c"),
        ("--hyp hyp.scratch-high --optimizer AdamW", "lr0 0.01 of hyp.scratch-high is meant for SGD"),
        *((f"--{name.replace('_', '-')}", note) for name, note in CHANGES_NOTHING.items()),
    ],
)
def test_what_is_taken_otherwise_is_said(text: str, note: str) -> None:
    assert note in notes(text)


def test_a_cfg_file_is_not_read_and_that_is_said(here: Path) -> None:
    (here / "yolov9-s.yaml").write_text("nc: 3\n")
    assert "the file is not" in notes("--cfg yolov9-s.yaml")
    assert notes("--cfg other/yolov9-s.yaml") == ""


def test_exist_ok_never_writes_over_a_run(here: Path) -> None:
    assert config("--exist-ok --name x").name == "x"
    (here / "runs/train/x").mkdir(parents=True)
    with pytest.raises(UsageError, match="--exist-ok: runs/train/x exists, and a run is never written over"):
        config("--exist-ok --name x")
    assert config("--name x").name == "x"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("--img 650", "image_size = 650: must be a multiple of 32, the nearest is 640"),
        ("--img 640 320", "--img 640 320: training takes squares"),
        ("--batch -1", "--batch -1: a size is not chosen by guessing; name one"),
        ("--batch 0", "batch = 0"),
        ("--cfg yolov9-l.yaml", "--cfg yolov9-l.yaml: names no size. There are t, s, m, c, e"),
        ("--cfg yolov9.yaml", "names no size"),
        ("--cfg yolov9-s.yaml --size c", "--cfg yolov9-s.yaml and --size c: two sizes at once"),
        ("--size l", "YOLOv9 has the sizes t, s, m, c, e"),
        ("--half --bf16", "--half and --bf16: two precisions at once"),
        ("--bf16 --precision fp16", "--bf16 and --precision fp16: two precisions"),
        ("--half --precision auto", "--half and --precision auto: two precisions"),
        ("--amp --precision fp32", "--amp and --precision fp32: 16 and 32 bit"),
        ("--precision fp8", "--precision"),
        ("--cache disk", "--cache disk: is not offered; --cache ram"),
        ("--cache gpu", "cache = 'gpu'"),
        ("--optimizer LION", "--optimizer"),
        ("--freeze -3", "freeze"),
        ("--epochs many", "--epochs"),
        ("--name a/b", "one folder"),
        ("--noval --evaluate-every 2", "--noval and --evaluate-every"),
        ("--hyp mine.yaml", "mine.yaml: no such file. hyp.scratch-high.yaml is built in"),
        ("--set mixup", "--set mixup: KEY=VALUE is expected"),
        ("--set mixupp=1", "--set mixupp=1: no such setting. Did you mean mixup?"),
        ("--set mixup=1 --set mixup=0", "--set mixup=0: mixup is set twice"),
        ("--set epochs=3 --epochs 4", "--set epochs=3: another option says 4"),
        ("--set mixup=much", "mixup = 'much'"),
        ("--set mixup=2", "mixup = '2'"),
        ("--set freeze=a", "freeze"),
        ("--label-smoothing 0.1", "--label-smoothing: is not offered"),
        ("--save-period 5", "--save-period: last and best weights are written"),
        ("--local_rank 0", "--local_rank: a run starts the processes"),
        ("--resume", "--resume: goes on with a run"),
        ("--extend 3 x", "--extend: goes on with a run"),
        ("--wrong", "unrecognized arguments: --wrong (see `yolov9kit train --help`)"),
        ("stray", "unrecognized arguments: stray"),
        *((f"--{name}", reason) for name, reason in REFUSED.items()),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as caught:
        config(text)
    assert complaint in str(caught.value) and "\n" not in str(caught.value)


def test_data_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train"]) == 2
    assert capsys.readouterr().err.startswith("yolov9kit: data: is needed: data.yaml of a YOLO data set")


def test_a_script_of_another_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detect", "train_dual.py", "--epochs", "3"]) == 2
    assert "detect train_dual.py: that script's command line is one for `yolov9kit train`" in (
        capsys.readouterr().err
    )


def test_every_option_is_a_setting_and_help_tells_of_all_settings(root: Path) -> None:
    assert set(OPTIONS) <= set(TrainConfig.model_fields)
    program = (
        "import sys\nfrom yolov9kit.cli import main\n"
        "try:\n    main(['train', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'torch', 'numpy', 'cv2', 'PIL'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root)
    assert done.stderr.strip() == "[]"
    shown = " ".join(done.stdout.split())
    for name, field in TrainConfig.model_fields.items():
        assert " ".join(str(field.description).split()) in shown, name


@pytest.mark.slow
def test_a_real_run_through_the_script_s_line(here: Path, root: Path) -> None:
    write_shapes(here)
    line = (
        "train_dual.py --workers 0 --device cpu --batch 4 --data data.yaml --img 64 --cfg yolov9-t.yaml --weights '' "
        "--name first --hyp hyp.scratch-high.yaml --epochs 2 --close-mosaic 1"
    )

    def command(words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "yolov9kit", *shlex.split(words)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(root), "XDG_CACHE_HOME": str(here / "cache")},
        )

    done = command(line)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [text.partition("  ")[0] for text in lines[:2]] == ["epoch 1", "epoch 2"]
    assert lines[2].startswith("finished after 2 epochs") and lines[-1] == "run: runs/train/first"
    assert Path(lines[3].removeprefix("weights: ")).is_file()
    again = command("train --resume runs/train/first")
    assert again.returncode == 1 and "this run has ended (finished)" in again.stderr


# ---------------------------------------------------------------------------------------------- an old run


def make_run(folder: Path, ended: str = "", age: int = 0) -> Path:
    folder.mkdir(parents=True)
    state = folder / "state.safetensors"
    save_file({"x": np.zeros(1)}, state, {"progress": json.dumps({"ended": ended})})
    os.utime(state, (1_000_000 - age, 1_000_000 - age))
    return folder


def test_the_newest_run_that_has_not_ended(here: Path) -> None:
    project = here / "runs/train"
    with pytest.raises(UsageError, match="no run in"):
        newest_run(project)
    make_run(project / "a", "finished", age=0)
    with pytest.raises(UsageError, match=r"all 1 runs in .* have ended.*--extend N .*/a"):
        newest_run(project)
    make_run(project / "b", age=30)
    make_run(project / "c", age=20)
    (project / "d").mkdir()
    assert newest_run(project) == project / "c"
    (make_run(project / "e", age=10) / "state.safetensors").write_bytes(b"no state")
    with pytest.raises(TrainingError, match=r"e/state.safetensors: cannot be read as the state of a run"):
        newest_run(project)


@pytest.mark.parametrize(
    "inner", ["", "weights", "weights/last.safetensors", "weights/last.pt", "state.safetensors"]
)
def test_a_run_is_named_by_its_folder_or_a_file_in_it(here: Path, inner: str) -> None:
    run = make_run(here / "runs/x")
    (run / "weights").mkdir()
    assert folder_of_run(str(run / inner)) == run


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was asked of the library: resume or extend, with which arguments."""
    calls: list[tuple[Any, ...]] = []

    def resume(folder: Path, *, device: Any, workers: Any, on_progress: Any) -> Iterator[Report]:
        calls.append(("resume", folder, device, workers))
        yield from ()

    def extend(folder: Path, epochs: int, *, on_progress: Any) -> Iterator[Report]:
        calls.append(("extend", folder, epochs))
        yield from ()

    monkeypatch.setattr(trainer, "resume", resume)
    monkeypatch.setattr(trainer, "extend", extend)
    return calls


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("--resume", ("resume", Path("runs/train/a"), None, None)),
        ("--resume --project runs/other", ("resume", Path("runs/other/b"), None, None)),
        ("--resume --device cpu --workers 0 -q", ("resume", Path("runs/train/a"), "cpu", 0)),
        ("--resume runs/other/b/weights/last.pt", ("resume", Path("runs/other/b"), None, None)),
        ("--extend 200 runs/train/a", ("extend", Path("runs/train/a"), 200)),
        ("--resume runs/train/a --extend 200", ("extend", Path("runs/train/a"), 200)),
    ],
)
def test_going_on(here: Path, called: list[tuple[Any, ...]], text: str, call: tuple[Any, ...]) -> None:
    make_run(here / "runs/train/a")
    make_run(here / "runs/other/b")
    assert main(["train", *shlex.split(text)]) == 0
    assert called == [call]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("--resume --epochs 3 --batch 2", "--epochs, --batch: a resumed run keeps its settings; extend it"),
        ("--resume x --project y", "--project: a resumed run keeps its settings"),
        ("--resume x --cos-lr --set mixup=0", "--set, --cos-lr: a resumed run"),
        ("--extend 3 x --device cpu", "--device: an extended run keeps its settings"),
        ("--extend 3", "--extend 3: the folder of one run is expected"),
        ("--extend 3 x --resume y", "--extend 3: the folder of one run is expected"),
        ("--extend x 3", "--extend x: the number of epochs in all is expected first"),
        ("--resume", "--resume: no run in runs/train; name the folder of one"),
    ],
)
def test_going_on_wrongly_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    assert main(["train", *shlex.split(text)]) == 2
    err = capsys.readouterr().err
    assert set(complaint.split(": ", 1)[0].split(", ")) <= set(err.split(": ")[1].split(", "))
    assert complaint.split(": ", 1)[1] in err and len(err.splitlines()) == 1
