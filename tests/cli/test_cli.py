"""The command line, through ``main`` and, where the process matters, through a process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from yolov9kit import load, write_boards
from yolov9kit.cli import main
from yolov9kit.infer.predict import detect

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs a command in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # --help
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


def small(weights: Path, source: Path) -> list[object]:
    return ["--weights", weights, "--source", source, "--img", 64, "--device", "cpu"]


def test_json_equals_the_library(cli: Cli, lively_weights: Path, photos: Path) -> None:
    code, out, _ = cli(
        "detect",
        *small(lively_weights, photos),
        "--conf",
        0.3,
        "--iou",
        0.6,
        "--json",
        "a/found.json",
        "--nosave",
    )
    content = json.loads(Path("a/found.json").read_text())
    assert code == 0 and len(out.splitlines()) == 5
    assert list(content) == ["weights", "settings", "images", "failed"] and content["failed"] == []
    assert content["settings"]["min_score"] == 0.3 and content["settings"]["precision"] == "fp32"
    library = detect(lively_weights, photos, device="cpu", image_size=64, min_score=0.3, max_iou=0.6)
    for record, found in zip(content["images"], library, strict=True):
        assert (record["path"], record["width"], record["height"]) == (found.path, *found.picture_wh)
        assert set(record["timings_ms"]) == {"decode", "preprocess", "network", "nms"}
        np.testing.assert_allclose([d["box"] for d in record["detections"]], found.boxes, atol=1e-3)
        assert [d["label"] for d in record["detections"]] == found.labels.tolist()
        assert [d["name"] for d in record["detections"]] == [found.names[i] for i in found.labels]
    assert not Path("runs").exists()


def test_everything_that_can_be_saved(cli: Cli, lively_weights: Path, photos: Path) -> None:
    words = [
        "detect",
        *small(lively_weights, photos),
        "--conf",
        0.3,
        "--save-txt",
        "--save-conf",
        "--save-crop",
    ]
    code, _, err = cli(
        *words, "--project", "P", "--name", "N", "--coco", "coco.json", "--csv", "found.csv", "--batch", 3
    )
    assert code == 0 and "results in P/N" in err
    assert sorted(p.name for p in Path("P/N").glob("*.png")) == [f"photo {i}.png" for i in range(5)]
    row = Path("P/N/labels/photo 0.txt").read_text().splitlines()[0].split()
    assert len(row) == 6 and all(0 <= float(v) <= 1 for v in row[1:])
    assert {p.name for p in Path("P/N/crops").iterdir()} <= {"nut", "bolt", "wing nut"}
    boxes = json.loads(Path("coco.json").read_text())
    assert boxes and set(boxes[0]) == {"image_id", "category_id", "bbox", "score"}
    assert len(Path("found.csv").read_text().splitlines()) == 1 + len(boxes)
    assert cli(*words, "--project", "P", "--name", "N")[0] == 0  # an earlier run is not written over
    assert Path("P/N2").is_dir()


def test_classes_by_number_and_name(cli: Cli, lively_weights: Path, photos: Path) -> None:
    words = ["detect", *small(lively_weights, photos), "--conf", 0.3, "--nosave", "--json", "f.json"]
    assert cli(*words, "--classes", 0, "wing nut")[0] == 0
    labels = {d["label"] for i in json.loads(Path("f.json").read_text())["images"] for d in i["detections"]}
    assert labels == {0, 2}
    code, _, err = cli(*words, "--classes", "screw")
    assert code == 2 and "--classes screw: the weights know nut, bolt, wing nut" in err


@pytest.mark.parametrize(
    "before", [["detect_dual.py"], ["python", "detect_dual.py"], ["detect", "./detect_dual.py"]]
)
def test_a_pasted_script_line_brings_its_defaults(
    cli: Cli, lively_weights: Path, photos: Path, before: list[str]
) -> None:
    code, _, err = cli(*before, *small(lively_weights, photos), "--no-trace", "--nosave", "--json", "f.json")
    settings = json.loads(Path("f.json").read_text())["settings"]
    assert code == 0 and (settings["max_iou"], settings["max_detections"]) == (0.45, 1000)
    assert "IoU 0.45" in err


def test_script_spellings_behind_detect(cli: Cli, lively_weights: Path, photos: Path) -> None:
    words = [
        *small(lively_weights, photos),
        "--conf-thres",
        0.4,
        "--view-img",
        "--hide-conf",
        "--line-thickness",
        2,
    ]
    code, _, err = cli(
        "detect", *words, "--half", "--exist-ok", "--name", "x", "--agnostic-nms", "--json", "f.json"
    )
    settings = json.loads(Path("f.json").read_text())["settings"]
    assert code == 0, err
    assert (settings["min_score"], settings["max_iou"], settings["agnostic"]) == (0.4, 0.45, True)
    assert settings["precision"].startswith("fp16")
    cli("detect", *small(lively_weights, photos), "--conf", 0.4, "--nosave", "--json", "g.json")
    assert json.loads(Path("g.json").read_text())["settings"]["max_iou"] == 0.7


def test_the_mode_is_said_and_changes_no_box(cli: Cli, lively_weights: Path, photos: Path) -> None:
    words = [*small(lively_weights, photos), "--conf", 0.3, "--nosave"]
    for mode, told in (("auto", "onnx chosen: faster than torch"), ("eager", "eager as asked")):
        code, _, err = cli("detect", *words, "--mode", mode, "--json", f"{mode}.json")
        assert code == 0 and told in err
    auto, eager = (json.loads(Path(f"{mode}.json").read_text()) for mode in ("auto", "eager"))
    assert (auto["settings"]["mode"], eager["settings"]["mode"]) == ("onnx", "eager")
    for ours, theirs in zip(auto["images"], eager["images"], strict=True):
        assert len(ours["detections"]) == len(theirs["detections"]) > 0
    code, out, err = cli("detect", *words, "--mode", "graph")
    assert code == 1 and out == "" and "mode graph: records work of an NVIDIA GPU" in err


def test_both_half_and_bf16_is_an_error(cli: Cli, lively_weights: Path, photos: Path) -> None:
    code, out, err = cli("detect", *small(lively_weights, photos), "--half", "--bf16")
    assert code == 2 and out == "" and len(err.splitlines()) == 1 and "two precisions at once" in err
    assert cli("detect", *small(lively_weights, photos), "--half", "--precision", "bf16")[0] == 2


ARTICLE_LINES = [
    "detect_dual.py --source './data/images/horses.jpg' --img 640 --device 0 --weights './yolov9-s.pt' "
    "--name yolov9_s_bf16 --half --no-trace",
    "detect_dual.py --source './data/images/horses.jpg' --img 640 --device 0 --weights './yolov9-s.pt' --nosave --half",
]


@pytest.mark.parametrize("line", ARTICLE_LINES)
def test_lines_of_the_articles_run_verbatim(cli: Cli, line: str, lively_weights: Path, photos: Path) -> None:
    import shlex

    Path("data/images").mkdir(parents=True)
    (Path("data/images") / "horses.jpg").write_bytes((photos / "photo 0.png").read_bytes())
    Path("yolov9-s.pt").write_bytes(lively_weights.read_bytes())
    code, _, err = cli(*shlex.split(line))
    if torch.cuda.is_available():
        assert code == 0, err
    else:
        assert code == 1 and "device '0': not on this machine, which has cpu (CPU)" in err
    code, _, err = cli(*shlex.split(line.replace("--device 0", "--device cpu")))
    assert code == 0, err
    assert Path("runs/detect/yolov9_s_bf16/horses.jpg").exists() is ("--nosave" not in line)


def test_a_folder_goes_on_past_broken_pictures(
    cli: Cli, lively_weights: Path, photos: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed folder"
    folder.mkdir()
    for path in photos.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff no picture")
    code, out, err = cli("detect", *small(lively_weights, folder), "--nosave", "--json", "f.json")
    content = json.loads(Path("f.json").read_text())
    assert code == 1 and len(out.splitlines()) == len(content["images"]) == 5
    assert [Path(f["path"]).name for f in content["failed"]] == ["broken.jpg"]
    assert "broken.jpg" in err and "1 failed" in err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["detect"], 2, "--weights"),
        (["detct"], 2, "'detct': no such command"),
        (["detect", "--weights", "w.pt", "--source", "x", "--wrong"], 2, "--wrong"),
        (["detect", "--weights", "w.pt", "--source", "x", "--augment"], 2, "--augment"),
        (["detect", "--weights", "a.pt", "b.pt", "--source", "x"], 2, "2 files"),
        (["detect", "--weights", "w.pt", "--source", "x"], 1, "w.pt: no such file"),
        (["export.py", "--cfg", "x"], 2, "'export.py'"),
        (["convert", "w.pt", "out.safetensors"], 1, "w.pt: no such file"),
        (["fetch", "yolov9-x"], 2, "yolov9-x"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(cli: Cli, words: list[str], code: int, says: str) -> None:
    got, out, err = cli(*words)
    assert (got, out) == (code, "") and says in err and err.startswith("yolov9kit: ")
    assert len(err.splitlines()) == 1


def test_sources_that_are_not_there(cli: Cli, lively_weights: Path, tmp_path: Path) -> None:
    code, _, err = cli("detect", *small(lively_weights, tmp_path / "no such folder"))
    assert code == 1 and "no such file or folder" in err
    (tmp_path / "empty").mkdir()
    code, _, err = cli("detect", *small(lively_weights, tmp_path / "empty"))
    assert code == 1 and "no pictures or videos" in err


def test_names_from_data_yaml_for_weights_without_names(cli: Cli, photos: Path, tmp_path: Path) -> None:
    from yolov9kit import yolov9

    torch.save(yolov9("t", 2, "deployed").state_dict(), tmp_path / "nameless.pt")
    Path("data.yaml").write_text("names: {0: Schraube, 1: 螺母}\n", encoding="utf-8")
    words = ["detect", *small(tmp_path / "nameless.pt", photos), "--conf", 0, "--nosave", "--json", "f.json"]
    assert cli(*words, "--data", "data.yaml", "--conf", 0.00001)[0] == 0
    names = {d["name"] for i in json.loads(Path("f.json").read_text())["images"] for d in i["detections"]}
    assert names <= {"Schraube", "螺母"} and names
    Path("data.yaml").write_text("names: [a, b, c]\n")
    code, _, err = cli(*words, "--data", "data.yaml")
    assert code == 2 and "3 names, but the weights have 2 classes" in err


def test_boards_are_drawn_equal_to_the_librarys(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli(
        "boards", "own", "--train", 2, "--val", 1, "--img", 64, "--seed", 5, "--processes", 1
    )
    assert (code, Path(out.strip()).name, err) == (0, "data.yaml", "")
    ours = write_boards(tmp_path / "library", 2, 1, 5, (64, 64)).parent
    drawn = Path(out.strip())
    for path in sorted(p for p in ours.rglob("*") if p.is_file()):
        assert (tmp_path / drawn).parent.joinpath(path.relative_to(ours)).read_bytes() == path.read_bytes()
    code, _, err = cli("boards", "own", "--train", 2)
    assert code == 2 and "not an empty folder" in err
    code, _, err = cli("boards", "other", "--style", "neon")
    assert code == 2 and "neon" in err


def test_convert(cli: Cli, shared: Path, lively_weights: Path) -> None:
    source = shared / "checkpoints" / "official-yolov9-t-deeppcb.pt"
    code, out, _ = cli("convert", source, "board.safetensors")
    assert (
        code == 0
        and "YOLOv9-t, 6 classes, fp16, deployed form" in out
        and "2,661,204" in out
        and "1,914,402" in out
    )
    code, _, err = cli("convert", source, "board.safetensors")
    assert code == 2 and "exists already" in err
    code, out, _ = cli("convert", lively_weights, "board.safetensors", "--overwrite")
    assert code == 0 and "3 classes" in out and load("board.safetensors").names == ("nut", "bolt", "wing nut")


def test_real_boards_through_the_command_line(cli: Cli, shared: Path) -> None:
    folder = shared / "checkpoints"
    words = [
        "--weights",
        folder / "official-yolov9-t-deeppcb.pt",
        "--source",
        folder / "images" / "44000021_test.jpg",
    ]
    assert cli("detect", *words, "--conf", 0.05, "--device", "cpu", "--nosave", "--json", "f.json")[0] == 0
    rows = json.loads((folder / "detections.json").read_text())["detections"]["official-yolov9-t-deeppcb.pt"]
    found = json.loads(Path("f.json").read_text())["images"][0]["detections"]
    assert len(found) == len(rows["44000021_test.jpg"]) - 1  # one pair overlaps by 0.70001: see parity
    best, expected = found[0], rows["44000021_test.jpg"][0]
    np.testing.assert_allclose([*best["box"], best["score"]], expected[:5], atol=2e-3)


def test_help_loads_no_torch(root: Path) -> None:
    for command in ([], ["detect"], ["convert"], ["fetch"], ["env"]):
        program = (
            "import sys\nfrom yolov9kit.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
            "print(sorted({'torch', 'numpy', 'cv2', 'PIL'} & set(sys.modules)), file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, *command, "--help"], capture_output=True, text=True, cwd=root
        )
        assert done.stderr.strip() == "[]" and "usage: yolov9kit" in done.stdout


def test_env_as_json(cli: Cli) -> None:
    code, out, _ = cli("env", "--json")
    assert code in (0, 1) and isinstance(json.loads(out), dict)


def test_a_reader_that_goes_away_is_no_fault(root: Path) -> None:
    command = f"{sys.executable} -m yolov9kit fetch | head -1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, cwd=root
    )
    assert done.returncode == 0 and done.stderr == "" and len(done.stdout.splitlines()) == 1


def test_an_internal_fault_is_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("a\nb")

    monkeypatch.setattr("yolov9kit.machine.inspect_machine", broken)
    monkeypatch.delitem(os.environ, "YOLOV9KIT_TRACEBACK", raising=False)
    code, _, err = cli("env")
    assert code == 1 and len(err.splitlines()) == 1 and "internal fault, RuntimeError: a b" in err
