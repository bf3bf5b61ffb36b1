"""The data set panel without a browser: findings, filters that combine, marked rows, lists, what training sees."""

import json
import re
import runpy
import shlex
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import yolov9kit
from tests.explore.random_sets import random_split
from widgets import DatasetPanel, Workbench
from widgets.data_copy import findings_html
from widgets.data_facets import chips_of, sections_of, shape_words, toggled
from widgets.data_pictures import DataPictures, title_of_code
from widgets.dataset_panel import DATA, ERRORS, TRAINING
from widgets.detect_panel import OTHER
from widgets.grid import DOTTED, SOLID, Tile
from widgets.left_out import box_of_row, raw_row
from yolov9kit import ExploreFilter, Explorer
from yolov9kit.cli import main


@pytest.fixture(scope="module")
def broken(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample set with one fault for each picture."""
    folder = tmp_path_factory.mktemp("panel") / "my broken set"
    shutil.copytree(root / "sample_data" / "broken", folder)
    return folder


def made(folder: Path, data: Path | None = None, **how: Any) -> DatasetPanel:
    panel = DatasetPanel(folder, how.pop("state_file", None), **how)
    if data is not None:
        panel.data.value, panel.data_path.value = OTHER, str(data)
    return panel


def finish(panel: DatasetPanel, button: Any = None) -> None:
    (panel.start if button is None else button).click()
    assert panel.task.job is not None and panel.task.job.wait(120)


@pytest.fixture
def opened(broken: Path) -> Iterator[DatasetPanel]:
    panel = made(broken.parent, broken / "data.yaml")
    finish(panel)
    assert not panel.status.is_error, panel.status.text
    yield panel
    panel.close()


def section(panel: DatasetPanel, key: str) -> list[dict[str, Any]]:
    return next(one["rows"] for one in panel.facets.sections if one["key"] == key)


def shown(panel: DatasetPanel) -> list[str]:
    """File names of the pictures that pass the filters."""
    return [panel.explorer.item(int(i)).path.name for i in panel.selection]


def tiles(panel: DatasetPanel) -> list[Tile]:
    """All small pictures that the grid would show."""
    pictures = DataPictures(panel.explorer, panel.selection, panel.filter.codes, panel._root)
    assert len(pictures) == panel.grid.total
    return pictures.tiles(range(len(pictures)))


# ------------------------------------------------------------------------------------------------- findings


def test_the_status_says_what_there_is(opened: DatasetPanel, broken: Path) -> None:
    facts, verdict = opened.status.text.split("\n")
    diagnosis = yolov9kit.diagnose(broken)
    pictures, boxes = sum(s.pictures for s in diagnosis.splits), sum(s.boxes for s in diagnosis.splits)
    assert (
        f"{pictures} pictures" in facts
        and f"{boxes} boxes" in facts
        and "3 classes" in facts
        and "YOLO" in facts
    )
    assert verdict == f"{diagnosis.summary()}: training refuses until the errors are gone."
    assert opened.grid.total == opened.grid.everything == len(opened.explorer)


def test_every_finding_is_told_in_the_list_or_above_it(opened: DatasetPanel, broken: Path) -> None:
    expected = json.loads((broken / "expected.json").read_text())
    listed = {row["key"]: row for row in section(opened, "codes")}
    for one in expected:
        if one["code"] in listed:
            assert listed[one["code"]]["severity"] == one["severity"]
        else:
            assert title_of_code(one["code"]) in opened.said.value and one["file"] in opened.said.value
    assert {one["code"] for one in expected} >= {*listed}
    severities = [row["severity"] for row in listed.values()]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert str(broken) not in opened.said.value  # files are named from the data set on


def test_files_are_named_from_the_data_set_on(broken: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(broken.parent.parent)
    for folder in (broken, broken.relative_to(Path.cwd())):
        text = findings_html(yolov9kit.diagnose(folder / "data.yaml").findings, folder)
        assert "<li>labels/train/label_orphan.txt: label file without a picture in images/train:" in text


def test_a_finding_that_is_pressed_shows_its_pictures_and_marks_its_rows(opened: DatasetPanel) -> None:
    for row in section(opened, "codes"):
        opened.pick("codes", row["key"])
        found = tiles(opened)
        assert len(found) == row["count"] > 0 and opened.grid.chips[0]["key"] == f"codes/{row['key']}"
        for tile in found:
            texts = [mark.text for mark in tile.marks]
            assert texts and all(text.startswith(title_of_code(row["key"])) for text in texts)
        opened.pick("codes", row["key"])
    assert opened.grid.total == len(opened.explorer) and opened.grid.chips == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("label_class_range", DOTTED),  # the row was left out
        ("label_conflict", SOLID),
        ("box_tiny", SOLID),
    ],
)
def test_the_row_that_is_meant_is_the_box_that_is_marked(opened: DatasetPanel, code: str, kind: int) -> None:
    opened.pick("codes", code)
    (number,) = opened.selection
    item = opened.explorer.item(int(number))
    large = DataPictures(opened.explorer, opened.selection, (), opened._root).large(0)
    (mark,) = [one for one in large.marks if one.text.startswith(title_of_code(code))]
    assert (
        large.kinds is not None
        and large.kinds[mark.box] == kind
        and sum(large.kinds == SOLID) == len(item.labels)
    )
    line = int(mark.where.rpartition(":")[2])
    assert mark.where == f"labels/train/{code}.txt:{line}"
    assert mark.row == item.label_path.read_text().splitlines()[line - 1]
    label, cx, cy, w, h = (float(word) for word in mark.row.split())
    width, height = item.size_wh
    wanted = [(cx - w / 2) * width, (cy - h / 2) * height, (cx + w / 2) * width, (cy + h / 2) * height]
    np.testing.assert_allclose(large.boxes[mark.box], wanted, atol=1e-3)
    assert large.labels[mark.box] == label and mark.message


def test_pictures_that_cannot_be_read_say_why(opened: DatasetPanel) -> None:
    opened.pick("codes", "picture_empty")
    (tile,) = tiles(opened)
    assert tile.file == b"" and tile.error == "the file is empty" and len(tile.boxes) == 0
    large = DataPictures(opened.explorer, opened.selection).large(0)
    assert large.error == tile.error


def test_a_description_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "data.yaml").write_text("train: nowhere\nnames: [a]\n")
    panel = made(tmp_path, tmp_path / "data.yaml")
    finish(panel)
    assert panel.explorer is None and "training refuses" in panel.status.text
    assert "nowhere" in panel.said.value and panel.grid.words == "No picture could be opened."
    assert panel.facets.sections == [] and "nowhere" in panel.copy.html


# ------------------------------------------------------------------------------------------------- filters


def test_filters_combine_and_are_cleared_one_by_one(opened: DatasetPanel) -> None:
    every = shown(opened)
    opened.pick("pictures", "split:train")
    opened.pick("classes", "2")
    opened.pick("pictures", "size:small")
    opened.find.value = "LABEL_"
    wanted = ExploreFilter(splits=("train",), classes=(2,), sizes=("small",), text="LABEL_")
    assert opened.filter == wanted and list(opened.selection) == list(opened.explorer.select(wanted))
    assert 0 < opened.grid.total < len(every) and opened.grid.everything == len(every)
    counts = [opened.grid.total]
    for chip in [one["key"] for one in opened.grid.chips]:
        opened.clear(chip)
        counts.append(opened.grid.total)
    assert counts == sorted(counts) and shown(opened) == every and opened.find.value == ""


def test_all_filters_are_cleared_at_once(opened: DatasetPanel) -> None:
    opened.sort.value, opened.find.value = "boxes", "label"
    opened.pick("pictures", "empty:no")
    assert len(opened.grid.chips) == 2
    opened.clear("")
    assert (
        opened.filter == ExploreFilter(sort="boxes") and opened.grid.chips == [] and opened.find.value == ""
    )
    counts = [len(opened.explorer.item(int(i)).labels) for i in opened.selection]
    assert counts == sorted(counts, reverse=True)


def test_numbers_beside_the_pictures_are_those_of_the_pictures(opened: DatasetPanel) -> None:
    opened.pick("pictures", "split:train")
    items = [opened.explorer.item(int(i)) for i in opened.selection]
    labels = np.concatenate([item.labels for item in items])
    assert [row["count"] for row in section(opened, "classes")] == [
        int((labels == k).sum()) for k in range(3)
    ]
    rows = {row["key"]: row for row in section(opened, "pictures")}
    assert rows["split:train"]["count"] == len(items) and rows["split:train"]["pressed"] is True
    assert rows["empty:no"]["count"] == sum(len(item.labels) > 0 for item in items)
    charts = {one["key"]: one for one in opened.facets.sections if one["kind"] != "rows"}
    assert all(sum(chart["counts"]) == len(labels) for chart in charts.values())
    for name in ("sides", "shapes"):
        edges = charts[name]["edges"]
        assert len(edges) == len(charts[name]["counts"]) + 1
        assert {edges[k] for k in charts[name]["ticks"]} <= {"1", "2", "4", "8", "16", "32", "64", "1:1"} | {
            f"{k}:1" for k in (2, 4, 8, 16, 32, 64, 128)
        } | {f"1:{k}" for k in (2, 4, 8)}


def test_each_line_says_how_many_pictures_pressing_it_gives(opened: DatasetPanel) -> None:
    opened.pick("classes", "1")
    for key in ("codes", "pictures"):
        for row in section(opened, key):
            opened.pick(key, row["key"])
            assert opened.grid.total == row["count"], row
            opened.pick(key, row["key"])


def test_pressing_a_line_twice_changes_nothing() -> None:
    start = ExploreFilter(text="a", sort="size")
    for name, key in (
        ("codes", "label_class"),
        ("classes", "3"),
        ("pictures", "split:val"),
        ("pictures", "empty:yes"),
    ):
        once = toggled(start, name, key)
        assert once != start and toggled(once, name, key) == start
        assert [chip for chip, _ in chips_of(once, ["n"] * 4)] == [f"{name}/{key}", "text/"]
    assert toggled(replace(start, empty=True), "pictures", "empty:no").empty is False


def test_what_20_000_pictures_cost_to_show_is_what_a_few_cost() -> None:
    few, many = (Explorer([random_split("train", 1, n), random_split("val", 2, n)]) for n in (20, 2_000))
    sizes = []
    for explorer in (few, many):
        sections = sections_of(explorer, ExploreFilter(), explorer.select())
        sizes.append(len(json.dumps([repr(one) for one in sections])))
    assert sizes[1] < 1.5 * sizes[0] + 2_000


@pytest.mark.parametrize(
    ("log2", "words"), [(0.0, "1:1"), (1.0, "2:1"), (-1.0, "1:2"), (0.5, "1.4:1"), (-6.0, "1:64")]
)
def test_shapes_in_words(log2: float, words: str) -> None:
    assert shape_words(log2) == words


# ------------------------------------------------------------------------------------------------- rows left out


@pytest.mark.parametrize(
    "row", ["", "a b", "0 0.5 0.5 0.1", "0 0.5 0.5 0.1 0.1 0.9", "0 nan 0.5 0.1 0.1", "0 0.5 0.5 1_0 0.1",
            "0 0.5 0.5 0 0.1", "0 3 3 0.1 0.1", "1 inf 0 1 1"],
)  # fmt: skip
def test_rows_that_tell_of_no_place_have_no_box(row: str) -> None:
    assert box_of_row(row, (100, 50)) is None


def test_a_row_that_was_left_out_lies_where_it_says() -> None:
    label, box = box_of_row("99 0.5 0.5 0.2 0.4", (100, 50)) or (0, None)
    assert label == 99 and np.allclose(box, [40, 15, 60, 35])
    label, box = box_of_row("0.5 1.0 0.5 0.2 0.4", (100, 50)) or (0, None)
    assert label == -1 and np.allclose(box, [90, 15, 100, 35])  # as far as it lies in the picture


def test_raw_rows_are_what_stands_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes(b"\xef\xbb\xbf0 1 2 3 4\r\n\n\xff x \n")
    assert [raw_row(file, line) for line in (1, 2, 3, 4, None)] == ["0 1 2 3 4", "", "\ufffd x", "", ""]
    assert raw_row(tmp_path / "gone.txt", 1) == ""


# ------------------------------------------------------------------------------------------------- lists, code, copy


def test_the_pictures_shown_are_listed(opened: DatasetPanel, broken: Path, tmp_path: Path) -> None:
    opened.pick("classes", "0")
    opened.list_path.value = str(tmp_path / "some.txt")
    opened.write.click()
    assert not opened.status.is_error and "listed in" in opened.status.text
    lines = (tmp_path / "some.txt").read_text().splitlines()
    assert [Path(line).name for line in lines] == shown(opened) and len(lines) == opened.grid.total
    opened.write.click()  # it is there now
    assert opened.status.is_error and "some.txt" in opened.status.text
    opened.list_path.value = str(broken / "some.txt")
    opened.write.click()
    assert opened.status.is_error and not (broken / "some.txt").exists()


@pytest.mark.parametrize("ready", [False, True])
def test_a_list_needs_a_data_set_and_a_name(broken: Path, ready: bool) -> None:
    panel = made(broken.parent, broken)
    panel.list_path.value = "" if ready else "list.txt"
    if ready:
        finish(panel)
    panel.write.click()
    assert panel.status.is_error
    assert ("Name a new .txt file" if ready else "Open a data set") in panel.status.text


def test_the_code_shown_does_the_same(opened: DatasetPanel, tmp_path: Path, capsys: Any) -> None:
    opened.image_size.value, opened.near.value = 320, False
    opened.pick("codes", "label_conflict")
    opened.find.value = "conflict"
    program = tmp_path / "shown.py"
    program.write_text(opened.code.python, encoding="utf-8")
    ran = runpy.run_path(str(program))
    assert list(ran["selection"]) == list(opened.selection) == [*ran["selection"]]
    assert ran["diagnosis"].config == yolov9kit.DoctorConfig(image_size=320, near_duplicates=False)
    capsys.readouterr()
    words = shlex.split(opened.code.command)
    assert words[0] == "yolov9kit" and main(words[1:]) == 1  # there are errors
    assert ran["diagnosis"].summary() in capsys.readouterr().out


def test_static_copy_needs_no_kernel(opened: DatasetPanel) -> None:
    text = opened.copy.html
    assert "<script" not in text and "http" not in text and len(text) < 300_000
    assert text.count("data:image/jpeg") >= 6 and "<svg" in text and "rectangle" in text
    for row in section(opened, "codes"):
        assert title_of_code(row["key"]) in text
    assert "Static copy: " in text and "training refuses" in text


def test_names_are_text_and_not_markup(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    shutil.copytree(Path(yolov9kit.sample_data()).parent / "images" / "val", folder / "images")
    for picture in sorted((folder / "images").iterdir())[3:]:
        picture.unlink()
    (folder / "labels").mkdir()
    (folder / "labels" / "board_000001.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    (folder / "data.yaml").write_text("train: images\nval: images\nnames: ['<b>x</b>']\n")
    panel = made(tmp_path, folder / "data.yaml")
    finish(panel)
    assert (
        "<b>x" not in panel.copy.html and "&lt;b&gt;x" in panel.copy.html and "<b>x" not in panel.status.value
    )


def test_choices_survive_a_kernel_restart(broken: Path, tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    first = made(broken.parent, broken, state_file=state)
    first.sort.value, first.training.seed.value, first.image_size.value, first.view.value = (
        "size",
        7,
        320,
        TRAINING,
    )
    again = made(broken.parent, state_file=state)
    assert (again.sort.value, again.training.seed.value, again.image_size.value) == ("size", 7, 320)
    assert again.view.value == TRAINING and again.data_file() == str(broken)


def test_data_sets_below_the_folder_are_offered(broken: Path) -> None:
    panel = made(broken.parent)
    labels = [label for label, _ in panel.data.options]
    assert (
        labels[0] == "my broken set"
        and labels[-1] == "another"
        and panel.data_file() == str(yolov9kit.sample_data())
    )


# ------------------------------------------------------------------------------------------------- running


def test_stop_keeps_what_was_shown(opened: DatasetPanel) -> None:
    held, go = threading.Event(), threading.Event()

    def slow(data: Any, config: Any, on_progress: Any) -> Any:
        for done in range(1000):
            on_progress("checking pictures", done, 1000)
            held.set()
            assert go.wait(60)
        raise AssertionError("was not stopped")

    before, opened._diagnose = opened.diagnosis, slow
    opened.start.click()
    assert held.wait(60) and opened.start.disabled and not opened.task.stop_button.disabled
    opened.task.stop_button.click()
    go.set()
    assert opened.task.job is not None and opened.task.job.wait(60)
    assert (
        opened.status.text.startswith("Stopped.") and opened.diagnosis is before and not opened.start.disabled
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [(yolov9kit.KitError("disk gone"), "disk gone"), (ValueError("odd"), "ValueError: odd")],
)
def test_a_problem_is_told_in_words(broken: Path, error: Exception, words: str) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise error

    panel = made(broken.parent, broken, diagnose=failing)
    finish(panel)
    assert panel.status.is_error and panel.status.text == words and not panel.start.disabled


def test_a_data_set_has_to_be_named(tmp_path: Path) -> None:
    panel = made(tmp_path)
    panel.data.value = OTHER
    for button in (panel.start, panel.training.button, panel.errors.button):
        finish(panel, button)
        assert panel.status.is_error and "Name a data.yaml" in panel.status.text
    assert panel.code.python.startswith("#")


# ------------------------------------------------------------------------------------------------- other views


def test_what_is_shown_is_what_training_sees(tmp_path: Path) -> None:
    panel = made(tmp_path)
    panel.view.value, panel.image_size.value, panel.training.seed.value = TRAINING, 64, 5
    panel.training.epoch.value = 3
    finish(panel, panel.training.button)
    assert not panel.status.is_error, panel.status.text
    config = yolov9kit.TrainConfig(data=yolov9kit.sample_data(), image_size=64, seed=5)
    wanted = yolov9kit.preview_batches(config, epoch=2, count=24)
    assert panel.grid.total == 24 and panel.training.preview.epoch == 2
    for mine, theirs in zip(panel.training.preview.pictures, wanted.pictures, strict=True):
        assert np.array_equal(mine.pixels, theirs.pixels) and np.array_equal(mine.boxes, theirs.boxes)
    large = panel.grid._pictures.large(4)  # type: ignore[union-attr]
    assert np.array_equal(yolov9kit.read_image(large.file, name="preview"), wanted.pictures[4].pixels)
    assert np.array_equal(large.boxes, wanted.pictures[4].boxes)
    assert (
        "to the last bit" in panel.caption.value
        and "seed=5" in panel.code.python
        and "epoch=2" in panel.code.python
    )


def test_an_epoch_that_the_run_does_not_have_is_refused(tmp_path: Path) -> None:
    panel = made(
        tmp_path, train_settings=lambda: {"data": "other", "image_size": 64, "epochs": 2, "project": "runs"}
    )
    panel.view.value, panel.training.epoch.value = TRAINING, 3
    assert panel.training.settings() == {
        "data": str(yolov9kit.sample_data()), "image_size": 64, "epochs": 2, "seed": 0,
    }  # fmt: skip
    finish(panel, panel.training.button)
    assert panel.status.is_error and "epoch 2" in panel.status.text and panel.grid.total == 0


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three boards: of the first a label is missing, of the second one has another class; the third is right."""
    source, folder = yolov9kit.sample_data().parent, tmp_path_factory.mktemp("planted") / "set"
    for number in range(3):
        for kind, suffix in (("images", "png"), ("labels", "txt")):
            file = folder / kind / f"{number}.{suffix}"
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / kind / "val" / f"board_00000{number}.{suffix}", file)
    text = source.joinpath("data.yaml").read_text()
    (folder / "data.yaml").write_text("train: images\nval: images\n" + text[text.index("names") :])
    missing, swapped = folder / "labels" / "0.txt", folder / "labels" / "1.txt"
    missing.write_text("\n".join(missing.read_text().splitlines()[1:]) + "\n")
    rows = [line.split() for line in swapped.read_text().splitlines()]
    rows[0][0] = str((int(rows[0][0]) + 1) % 6)
    swapped.write_text("\n".join(" ".join(row) for row in rows) + "\n")
    return folder


def test_planted_label_errors_stand_first(planted: Path, tmp_path: Path) -> None:
    panel = made(tmp_path, planted / "data.yaml")
    panel.view.value, panel.image_size.value, panel.errors.device.value = ERRORS, 320, "cpu"
    finish(panel, panel.errors.button)
    assert not panel.status.is_error, panel.status.text
    assert "not seen" in panel.caption.value and panel.view.value == ERRORS
    rows = {row["key"]: row["count"] for row in section(panel, "kinds")}
    assert sum(rows.values()) == panel.grid.total and rows["missed"] and rows["swapped"]
    for kind, name in (("missed", "1. 0.png"), ("swapped", "1. 1.png")):
        panel.pick("kinds", kind)
        assert panel.grid.total == rows[kind] and panel.grid.chips[0]["key"] == f"kinds/{kind}"
        assert panel.grid._pictures is not None
        (tile,) = panel.grid._pictures.tiles([0])
        (mark,) = tile.marks
        assert tile.title == name and tile.kinds is not None and list(tile.kinds).count(DOTTED) == 1
        assert mark.box == (len(tile.labels) - 1 if kind == "missed" else 0)
        panel.clear(f"kinds/{kind}")
    assert "label_errors(report)" in panel.code.python


def test_a_view_without_anything_says_what_to_press(tmp_path: Path) -> None:
    panel = made(tmp_path)
    for view, button in ((DATA, "Open"), (TRAINING, "Show"), (ERRORS, "Rank label errors")):
        panel.view.value = view
        assert f"Press {button}" in panel.grid.words and panel.facets.sections == []
        assert [name for name, box in panel.tools.items() if box.layout.display != "none"] == [view]


# ------------------------------------------------------------------------------------------------- all of it


def test_every_control_has_text(tmp_path: Path) -> None:
    panel = made(tmp_path)
    buttons = [panel.start, panel.write, panel.task.stop_button, panel.training.button, panel.errors.button]
    plain = [control for name, control in panel.controls.items() if name != "view"]
    assert all(control.description for control in [*plain, panel.find, *buttons, panel.code.button])
    assert all(re.match(r"\w", label) for label, _ in panel.view.options)


def test_the_workbench_has_a_tab_for_data(tmp_path: Path) -> None:
    workbench = Workbench(tmp_path, state_file=None)
    assert workbench.titles == ("Detect", "Data", "Train", "Runs", "Speed")
    assert workbench.children[1] is workbench.data
    workbench.train.epochs.value, workbench.train.image_size.value = 7, 96
    settings = workbench.data.training.settings()
    assert settings["epochs"] == 7 and settings["image_size"] == 96 and settings["seed"] == 0
    yolov9kit.TrainConfig(**settings)
    workbench.close()
