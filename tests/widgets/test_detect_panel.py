"""The detection panel without a browser: clicks, errors in words, the code it shows, the boxes it shows."""

import json
import runpy
import shlex
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import yolov9kit
from widgets import DetectPanel, Workbench
from widgets.detect_panel import OTHER, UNTRAINED
from yolov9kit.cli import main


@pytest.fixture
def panel(tmp_path: Path, lively_weights: Path) -> DetectPanel:
    """Small weights, small pictures."""
    made = DetectPanel(tmp_path, None)
    made.weights.value, made.weights_path.value = OTHER, str(lively_weights)
    made.image_size.value, made.device.value = 64, "cpu"
    return made


def finish(panel: DetectPanel) -> None:
    panel.start.click()
    assert panel.job is not None and panel.job.wait(120)
    assert panel.job.error is None, panel.status.text


def use(panel: DetectPanel, source: Path) -> None:
    panel.pictures.value, panel.pictures_path.value = "folder or file", str(source)


def test_detects_on_the_sample_pictures_with_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolov9kit.samples.WEIGHTS", "weights/not there.safetensors")
    panel = DetectPanel(tmp_path, None)
    assert panel.weights.value == UNTRAINED  # nothing else lies in an empty folder
    panel.image_size.value, panel.batch_size.value = 64, 8
    finish(panel)
    assert len(panel.canvas.pictures) == 32 and panel.progress.value == 32
    assert panel.status.text.startswith("done: 32 pictures") and "network" in panel.status.text
    assert not panel.start.disabled and panel.stop.disabled


def test_sample_weights_are_offered_after_a_persons_own(
    tmp_path: Path, lively_weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("yolov9kit.samples.WEIGHTS", str(lively_weights))
    panel = DetectPanel(tmp_path, None)
    assert (panel.weights.value, panel.weights.label.split(":")[0]) == (str(lively_weights), "sample weights")
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "own.safetensors").write_bytes(lively_weights.read_bytes())
    labels = [label.split(":")[0] for label, _ in DetectPanel(tmp_path, None).weights.options]
    assert labels == ["weights/own.safetensors", "sample weights", "random weights", OTHER]
    monkeypatch.setattr("yolov9kit.samples.WEIGHTS", str(tmp_path / "weights" / "own.safetensors"))
    labels = [label.split(":")[0] for label, _ in DetectPanel(tmp_path, None).weights.options]
    assert labels == ["sample weights", "random weights", OTHER]  # the same file is listed once


def test_weights_in_the_folder_are_listed_first(tmp_path: Path, lively_weights: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "my own.safetensors").write_bytes(lively_weights.read_bytes())
    assert DetectPanel(tmp_path, None).weights.options[0][0] == "weights/my own.safetensors"


def test_the_boxes_shown_are_the_librarys(panel: DetectPanel, photos: Path, lively_weights: Path) -> None:
    use(panel, photos)
    panel.canvas.min_score, panel.canvas.max_iou = 0.4, 0.5
    finish(panel)
    wanted = yolov9kit.detect(lively_weights, photos, device="cpu", image_size=64, min_score=0.4, max_iou=0.5)
    for i, found in enumerate(wanted):
        shown = panel.canvas.selection(i)
        np.testing.assert_allclose(shown.boxes, found.boxes, atol=1e-3)
        np.testing.assert_array_equal(shown.labels, found.labels)


def test_two_precisions_side_by_side(panel: DetectPanel, photos: Path) -> None:
    use(panel, photos)
    panel.compare.value = "bf16"
    finish(panel)
    assert [side["label"] for side in panel.canvas.pictures[0]["sides"]] == ["fp32", "bf16"]
    assert panel.status.text.count("MiB") == 2


def test_the_python_shown_gives_the_boxes_shown(panel: DetectPanel, photos: Path, tmp_path: Path) -> None:
    use(panel, photos)
    finish(panel)
    panel.canvas.min_score, panel.canvas.max_iou, panel.canvas.hidden_classes = 0.35, 0.5, [1]
    program = tmp_path / "shown.py"
    program.write_text(panel.code.python, encoding="utf-8")
    found = runpy.run_path(str(program))["found"]
    assert len(found) == 5 and sum(map(len, found)) > 0
    for i, detections in enumerate(found):
        np.testing.assert_allclose(detections.boxes, panel.canvas.selection(i).boxes, atol=1e-3)


def test_the_command_line_shown_gives_the_boxes_shown(
    panel: DetectPanel, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    use(panel, photos)
    finish(panel)
    panel.canvas.min_score, panel.canvas.hidden_classes, panel.canvas.agnostic = 0.35, [0], True
    words = shlex.split(panel.code.command)
    assert words[0] == "yolov9kit" and main(words[1:]) == 0
    images = json.loads(Path("detections-fp32.json").read_text())["images"]
    for i, image in enumerate(images):
        boxes = np.array([d["box"] for d in image["detections"]]).reshape(-1, 4)
        np.testing.assert_allclose(boxes, panel.canvas.selection(i).boxes, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"weights_path": ""}, "Name a weights file."),
        ({"weights_path": "nowhere.pt"}, "nowhere.pt: no such file"),
        ({"pictures_path": ""}, "Name a picture, a folder or a video."),
        ({"pictures_path": "/no/such/folder"}, "no such file or folder"),
        ({"precision": "tf32"}, "precision tf32"),
        ({"image_size": 100}, "image size 100: must be a multiple of 32, the nearest is 96"),
        ({"pictures": "upload"}, "Upload pictures first."),
    ],
)
def test_errors_are_words(panel: DetectPanel, photos: Path, change: dict, says: str) -> None:
    use(panel, photos)
    for name, value in change.items():
        panel.controls[name].value = value
    panel.start.click()
    if panel.job is not None:
        assert panel.job.wait(60)
    assert panel.status.is_error and says in panel.status.text
    assert not panel.start.disabled


def test_broken_pictures_are_listed_and_the_rest_goes_on(
    panel: DetectPanel, photos: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    for path in photos.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    use(panel, folder)
    finish(panel)
    assert len(panel.canvas.pictures) == 5 and panel.progress.value == 6
    assert "1 pictures could not be read" in panel.status.text and "broken.jpg" in panel.status.text


def test_stop(panel: DetectPanel, photos: Path) -> None:
    use(panel, photos)
    panel.batch_size.value = 1
    panel.run()
    panel.stop.click()
    assert panel.job is not None and panel.job.wait(60)
    assert "stopped after" in panel.status.text and 1 <= len(panel.canvas.pictures) <= 5
    finish(panel)  # and again
    assert len(panel.canvas.pictures) == 5


def test_uploads_lie_in_a_folder(panel: DetectPanel, photos: Path, tmp_path: Path) -> None:
    data = (photos / "photo 0.png").read_bytes()
    item: dict[str, object] = {
        "name": "../my photo.png",
        "type": "image/png",
        "size": len(data),
        "content": memoryview(data),
    }
    item["last_modified"] = datetime.now(tz=UTC)
    panel.pictures.value = "upload"
    panel.upload.value = (item,)
    assert (tmp_path / "uploads" / "_my photo.png").read_bytes() == data
    finish(panel)
    assert panel.canvas.pictures[0]["title"] == "_my photo.png"


def test_choices_survive_a_kernel_restart(tmp_path: Path) -> None:
    state = tmp_path / "panel_state.json"
    first = DetectPanel(tmp_path, state)
    first.image_size.value, first.precision.value, first.compare.value = 320, "bf16", "fp16"
    again = DetectPanel(tmp_path, state)
    assert (again.image_size.value, again.precision.value, again.compare.value) == (320, "bf16", "fp16")


def test_static_copy_needs_no_kernel(panel: DetectPanel, photos: Path) -> None:
    use(panel, photos)
    finish(panel)
    text = panel.copy.html
    assert text.count('<img src="data:image/') == 4 and "1 more pictures" in text and "<script" not in text
    assert len(text) < 1_000_000


def test_every_control_has_text() -> None:
    workbench = Workbench(state_file=None)
    assert workbench.titles == ("Detect", "Data", "Train", "Runs", "Speed")
    panel = workbench.detect
    buttons = [panel.start, panel.stop, panel.upload, panel.code.button]
    assert all(control.description for control in [*panel.controls.values(), *buttons])
    workbench.close()
