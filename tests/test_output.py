"""Detections to files: what is written reads back as what was found, and no file takes another's place."""

import contextlib
import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from yolov9kit.data.sources import open_source
from yolov9kit.errors import KitError, UsageError
from yolov9kit.output import (
    CSV_COLUMNS,
    JsonStream,
    ResultFolder,
    as_record,
    coco_results,
    csv_rows,
    run_folder,
    yolo_rows,
)
from yolov9kit.output.names import FileNames, crop_folders
from yolov9kit.types import Detections, Failed, Picture, Timings

NAMES = ("nut", "bolt", "wing nut")


def picture(path: str = "a.png", width: int = 60, height: int = 40, **changes: Any) -> Picture:
    """Every pixel tells where it is: red counts columns, green rows."""
    y, x = np.mgrid[0:height, 0:width]
    return Picture(np.stack((x, y, x * 0), axis=-1).astype(np.uint8), path, **changes)


def found(
    of: Picture, rows: Any = ((3, 4, 20, 30, 0.9, 0), (10.5, 2.25, 59.75, 39, 0.5, 2)), **changes: Any
) -> Detections:
    values = np.array(rows, np.float64).reshape(-1, 6)
    height, width = of.pixels.shape[:2]
    parts = {
        "names": NAMES,
        "picture_wh": (width, height),
        "path": of.path,
        "frame": of.frame,
        "notes": of.notes,
    }
    return Detections(values[:, :4], values[:, 4], values[:, 5], **(parts | changes))


@st.composite
def detections(draw: st.DrawFn) -> Detections:
    width, height = draw(st.integers(1, 5000)), draw(st.integers(1, 5000))
    unit = st.floats(0, 1, width=32)
    rows = draw(st.lists(st.tuples(unit, unit, unit, unit, unit, st.integers(0, 2)), max_size=6))
    values = np.array(rows, np.float64).reshape(-1, 6)
    corners = np.sort(values[:, :4].reshape(-1, 2, 2), axis=1).reshape(-1, 4) * [width, height, width, height]
    return Detections(corners, values[:, 4], values[:, 5], NAMES, (width, height), path="a.png")


def files(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def pixels_of(path: Path) -> np.ndarray:
    return np.asarray(Image.open(path).convert("RGB"))


# --- one picture's rows


def test_the_json_form() -> None:
    seen = picture("a.png")
    record = as_record(found(seen, timings=Timings(1.0, 2.34567, 3.0, 4.0)))
    assert record == {
        "path": "a.png",
        "width": 60,
        "height": 40,
        "detections": [
            {"box": [3.0, 4.0, 20.0, 30.0], "score": 0.9, "label": 0, "name": "nut"},
            {"box": [10.5, 2.25, 59.75, 39.0], "score": 0.5, "label": 2, "name": "wing nut"},
        ],
        "timings_ms": {"decode": 1, "preprocess": 2.346, "network": 3, "nms": 4},
    }
    assert list(record) == ["path", "width", "height", "detections", "timings_ms"]


def test_frames_and_conversions_are_in_the_json_too() -> None:
    record = as_record(found(picture("v.mp4", frame=7, notes=("alpha dropped",))))
    assert (record["frame"], record["notes"]) == (7, ["alpha dropped"])


@settings(deadline=None)
@given(detections())
def test_json_there_and_back(one: Detections) -> None:
    record = json.loads(json.dumps(as_record(one), allow_nan=False))
    back = np.array([d["box"] for d in record["detections"]], np.float64).reshape(-1, 4)
    np.testing.assert_allclose(back, one.boxes, atol=6e-5)
    np.testing.assert_allclose([d["score"] for d in record["detections"]], one.scores, atol=6e-7)
    assert [d["label"] for d in record["detections"]] == one.labels.tolist()


@settings(deadline=None)
@given(detections(), st.booleans())
def test_yolo_rows_there_and_back(one: Detections, scores: bool) -> None:
    rows = [row.split() for row in yolo_rows(one, scores)]
    assert all(len(row) == (6 if scores else 5) for row in rows)
    assert [int(row[0]) for row in rows] == one.labels.tolist()
    values = np.array([row[1:5] for row in rows], np.float64).reshape(-1, 4)
    assert ((values >= 0) & (values <= 1)).all()
    centre, size = values[:, :2], values[:, 2:]
    back = np.concatenate((centre - size / 2, centre + size / 2), axis=1) * [*one.picture_wh, *one.picture_wh]
    assert (np.abs(back - one.boxes) <= 1e-6 * np.array([*one.picture_wh, *one.picture_wh]) + 1e-9).all()
    if scores:
        np.testing.assert_allclose([float(row[5]) for row in rows], one.scores, atol=6e-7)


@settings(deadline=None)
@given(detections())
def test_csv_there_and_back(one: Detections) -> None:
    for row, box, score, label in zip(csv_rows(one), one.boxes, one.scores, one.labels, strict=True):
        told = dict(zip(CSV_COLUMNS, row, strict=True))
        assert (told["path"], told["frame"], told["label"], told["name"]) == (
            "a.png",
            "",
            label,
            NAMES[label],
        )
        np.testing.assert_allclose([float(told[c]) for c in ("x1", "y1", "x2", "y2")], box, atol=6e-5)
        assert abs(float(told["score"]) - score) < 1e-6


@settings(deadline=None)
@given(detections())
def test_coco_boxes_are_corner_and_size(one: Detections) -> None:
    for row, box, label in zip(coco_results(one, 7), one.boxes, one.labels, strict=True):
        assert (row["image_id"], row["category_id"]) == (7, label)
        x, y, width, height = row["bbox"]
        np.testing.assert_allclose([x, y, x + width, y + height], box, atol=2e-4)


# --- JSON that grows


@pytest.mark.parametrize("n", [0, 1, 2, 500])
def test_a_stream_is_valid_json_of_any_length(tmp_path: Path, n: int) -> None:
    path = tmp_path / "new folder" / "x.json"
    stream = JsonStream(path, {"weights": "w", "settings": {"a": [1]}}, "images")
    plain = JsonStream(tmp_path / "list.json", None)
    for i in range(n):
        stream.add({"i": i})
        plain.add(i)
        assert not path.exists()
    stream.close({"failed": [], "more": "é"})
    plain.close()
    content = json.loads(path.read_text(encoding="utf-8"))
    expected = {
        "weights": "w",
        "settings": {"a": [1]},
        "images": [{"i": i} for i in range(n)],
        "failed": [],
        "more": "é",
    }
    assert content == expected and list(content) == list(expected)
    assert json.loads((tmp_path / "list.json").read_text()) == list(range(n))
    assert files(tmp_path) == ["list.json", "new folder/x.json"]


def test_a_stream_without_head_or_tail(tmp_path: Path) -> None:
    stream = JsonStream(tmp_path / "x.json", {}, "images")
    stream.close()
    assert json.loads((tmp_path / "x.json").read_text()) == {"images": []}


def test_an_earlier_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("earlier")
    stream = JsonStream(path, {}, "images")
    stream.add(1)
    assert path.read_text() == "earlier"
    stream.abandon()
    assert path.read_text() == "earlier" and files(tmp_path) == ["x.json"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1, {"a": float("-inf")}]])
def test_what_json_cannot_say_is_refused(tmp_path: Path, value: Any) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        JsonStream(tmp_path / "head.json", {"settings": value}, "images")
    stream = JsonStream(tmp_path / "x.json", {}, "images")
    with pytest.raises(ValueError, match="JSON compliant"):
        stream.add(value)
    stream.add("fine")
    with pytest.raises(ValueError, match="JSON compliant"):
        stream.close({"failed": value})
    stream.close()
    assert json.loads((tmp_path / "x.json").read_text()) == {"images": ["fine"]} and files(tmp_path) == [
        "x.json"
    ]


def test_nan_never_gets_as_far_as_json() -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        found(picture(), [(1, 2, 3, float("nan"), 0.5, 0)])


# --- a whole run


def run(
    folder: Path,
    shown: list[Picture],
    rows: Any = None,
    stop: type[BaseException] | None = None,
    **wanted: Any,
) -> ResultFolder:
    """Writes ``shown``, each with ``rows``; at the end raises ``stop``."""
    with ResultFolder(folder, **({"pictures": False} | wanted)) as results:
        for one in shown:
            results.add(one, found(one) if rows is None else found(one, rows))
        if stop:
            raise stop
    return results


def test_the_json_file(tmp_path: Path) -> None:
    target = tmp_path / "out" / "found.json"
    head = {"weights": "w.pt", "settings": {"min_score": 0.25}}
    with ResultFolder(tmp_path / "run", pictures=False, json_file=target, head=head) as results:
        for one in (picture("a.png"), picture("猫 b.png")):
            results.add(one, found(one))
        results.failed.append(Failed("c.png", "c.png: broken"))
    content = json.loads(target.read_text(encoding="utf-8"))
    assert list(content) == ["weights", "settings", "images", "failed"]
    assert content == head | {
        "images": [as_record(found(picture("a.png"))), as_record(found(picture("猫 b.png")))],
        "failed": [{"path": "c.png", "error": "c.png: broken"}],
    }
    assert "猫" in target.read_text(encoding="utf-8")
    assert not (tmp_path / "run").exists(), "no empty folder where nothing goes into it"


def test_a_json_file_without_a_head_is_valid(tmp_path: Path) -> None:
    run(tmp_path, [], json_file=tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text()) == {"images": [], "failed": []}


def test_the_csv_file(tmp_path: Path) -> None:
    names = ['a,"b".png', "new\nline.png", "猫.png"]
    run(tmp_path, [picture(name) for name in names], csv_file=tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows] == [name for name in names for _ in range(2)]
    assert tuple(rows[0]) == CSV_COLUMNS and rows[1]["name"] == "wing nut" and rows[1]["x2"] == "59.7500"


def test_coco_results_are_accepted_by_pycocotools(tmp_path: Path) -> None:
    from pycocotools.coco import COCO

    shown = [
        picture("000000000139.jpg"),
        picture("board.png"),
        picture("x/board.png"),
        picture("139.png"),
        picture("empty.png"),
    ]
    with ResultFolder(tmp_path, pictures=False, coco_file=tmp_path / "found.json") as results:
        for one in shown:
            results.add(one, found(one, () if one.path == "empty.png" else ((3, 4, 20, 30, 0.9, 0),)))
    rows = json.loads((tmp_path / "found.json").read_text())
    assert [row["image_id"] for row in rows] == [139, "board", "board-2", "139"]
    truth = COCO()
    truth.dataset = {
        "images": [{"id": i, "width": 60, "height": 40} for i in (139, "board", "board-2", "139", "empty")],
        "categories": [{"id": i, "name": name} for i, name in enumerate(NAMES)],
        "annotations": [],
    }
    with contextlib.redirect_stdout(io.StringIO()):
        truth.createIndex()
        loaded = truth.loadRes(str(tmp_path / "found.json"))
    assert len(loaded.getAnnIds()) == 4 and loaded.loadAnns(loaded.getAnnIds())[0]["area"] == 17 * 26


def targets(folder: Path) -> dict[str, Path]:
    return {f"{kind}_file": folder / f"{kind}.out" for kind in ("json", "coco", "csv")}


@pytest.mark.parametrize("stop", [ZeroDivisionError, KitError, SystemExit, MemoryError])
def test_a_run_that_breaks_leaves_no_half_of_a_file(tmp_path: Path, stop: type[BaseException]) -> None:
    with pytest.raises(stop):
        run(tmp_path, [picture()], stop=stop, pictures=True, txt=True, **targets(tmp_path))
    assert files(tmp_path) == ["a.png", "labels/a.txt"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, GeneratorExit])
def test_a_run_stopped_by_hand_keeps_what_it_has(tmp_path: Path, stop: type[BaseException]) -> None:
    one = picture()
    with pytest.raises(stop):
        run(tmp_path, [one], stop=stop, **targets(tmp_path))
    assert json.loads((tmp_path / "json.out").read_text())["images"] == [as_record(found(one))]
    assert len(json.loads((tmp_path / "coco.out").read_text())) == 2
    assert len((tmp_path / "csv.out").read_text().splitlines()) == 3
    assert files(tmp_path) == ["coco.out", "csv.out", "json.out"]


def test_a_target_that_cannot_be_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for target, kind, complaint in (
        (tmp_path / "folder", UsageError, "is a folder; name a file to write"),
        (tmp_path / "file" / "x", KitError, "cannot be written"),
    ):
        for which in ("coco_file", "csv_file"):
            with pytest.raises(kind, match=complaint):
                ResultFolder(tmp_path, json_file=tmp_path / "x.json", **{which: target})
    with pytest.raises(UsageError, match="need a file each"):
        ResultFolder(tmp_path, json_file=tmp_path / "x", csv_file=tmp_path / "folder" / ".." / "x")
    assert files(tmp_path) == ["file"]


def test_one_file_that_cannot_be_finished_keeps_none_of_the_others_from_it(tmp_path: Path) -> None:
    with (
        pytest.raises(IsADirectoryError),
        ResultFolder(
            tmp_path,
            pictures=False,
            json_file=tmp_path / "j",
            coco_file=tmp_path / "k",
            csv_file=tmp_path / "c",
        ),
    ):
        (tmp_path / "k").mkdir()
    assert files(tmp_path) == ["c", "j"]


def test_a_name_that_is_not_utf8_is_written_everywhere(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.png")
    run(
        tmp_path,
        [picture(odd)],
        pictures=True,
        txt=True,
        json_file=tmp_path / "j.json",
        csv_file=tmp_path / "c.csv",
    )
    assert json.loads((tmp_path / "j.json").read_text(encoding="utf-8"))["images"][0]["path"] == odd
    assert "caf\\udce9.png" in (tmp_path / "c.csv").read_text(encoding="utf-8")
    assert files(tmp_path) == ["c.csv", "caf_.png", "j.json", "labels/caf_.txt"]


def test_label_files(tmp_path: Path) -> None:
    run(tmp_path / "plain", [picture("a.jpg")], txt=True)
    assert (tmp_path / "plain/labels/a.txt").read_text() == (
        "0 0.191667 0.425000 0.283333 0.650000\n2 0.585417 0.515625 0.820833 0.918750\n"
    )
    run(tmp_path / "scores", [picture("a.jpg")], txt=True, txt_scores=True)
    assert (tmp_path / "scores/labels/a.txt").read_text().splitlines()[0].endswith(" 0.900000")
    run(tmp_path / "none", [picture("a.jpg")], rows=(), txt=True)
    assert (tmp_path / "none/labels/a.txt").read_bytes() == b""  # looked at, nothing there


# --- names


def test_colliding_names_keep_all_their_files(tmp_path: Path) -> None:
    expected = {
        "a.jpg": "a",
        "a.png": "a-2",
        "x/a.jpg": "a-3",
        "A.jpg": "A-4",  # a file system may ignore case
        "a-2.jpg": "a-2-2",
        "a.tar.png": "a.tar",
        "a": "a-5",
        "picture 0": "picture_0",
        "picture_0.jpg": "picture_0-2",
        "": "picture",
    }
    run(tmp_path, [*map(picture, expected), picture("a.jpg")], pictures=True, txt=True, crops=True)
    names = {*expected.values(), "a-6"}  # the same picture again
    assert {p.stem for p in (tmp_path / "labels").iterdir()} == names
    assert {p.stem for p in tmp_path.iterdir() if p.is_file()} == names
    assert {p.stem for p in (tmp_path / "crops" / "nut").iterdir()} == {f"{name}_0" for name in names}
    assert {p.stem for p in (tmp_path / "crops" / "wing nut").iterdir()} == {f"{name}_1" for name in names}


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "A", "a-2", "a_0", "a_0_0", "a_1", "x/a", "a-2_0", "é", "e\u0301"]),
            st.sampled_from([".jpg", ".png", ".mp4"]),
        ),
        max_size=8,
    )
)
def test_no_two_pictures_or_frames_share_a_name(parts: list[tuple[str, str]]) -> None:
    names, given_names = FileNames(), []
    for stem, ending in parts:
        for frame in (0, 1, 2) if ending == ".mp4" else (None,):
            given_names.append(names.of(found(picture(stem + ending, frame=frame))))
    crops = [f"{name}_{i}" for name in given_names for i in range(3)]
    for every in (given_names, crops):
        assert len({name.casefold() for name in every}) == len(every)
        assert all("/" not in name for name in every)


def test_frames_of_a_clip_share_its_name_and_a_second_pass_gets_another() -> None:
    names = FileNames()

    def name(path: str, frame: int | None) -> str:
        return names.of(found(picture(path, frame=frame)))

    assert [name("v.mp4", i) for i in (0, 2, 4)] == ["v_0", "v_2", "v_4"]
    assert [name("v.mp4", i) for i in (0, 1)] == ["v-2_0", "v-2_1"]
    assert [name("x/v.mp4", 2), name("camera 0", 0), name("rtsp://10.0.0.1:554/live?x=1", 3)] == [
        "v-3_2",
        "camera_0_0",
        "10.0.0.1_554_live_x_1_3",
    ]


@pytest.mark.parametrize("stem", ["x" * 255, "猫" * 85, "x" * 251])
def test_long_names_leave_room_for_what_is_added(tmp_path: Path, stem: str) -> None:
    run(tmp_path, [picture(f"{stem}.png"), picture(f"{stem}y.png")], pictures=True, txt=True, crops=True)
    assert len(files(tmp_path)) == 2 * (1 + 1 + 2)


def test_a_long_run_of_one_name_is_numbered(tmp_path: Path) -> None:
    names = FileNames()
    one = found(picture("picture 0"))
    assert len({names.of(one) for _ in range(5000)}) == 5000


def test_class_folders() -> None:
    names = [
        "car",
        "Car",
        "a/b",
        "a:b",
        "..",
        "",
        " ",
        "猫",
        "x" * 300,
        "x" * 299,
        "new\nline",
        "caf\udce9",
        "c\\d",
        "CON?",
    ]
    folders = crop_folders(names)
    assert folders[:8] == ["car", "Car 1", "a_b", "a_b 3", "class 4", "class 5", "class 6", "猫"]
    assert len({folder.casefold() for folder in folders}) == len(names)
    for folder in folders:
        assert folder.isprintable() and not set(folder) & set('/\\:*?"<>|') and len(folder.encode()) <= 210
        assert folder.strip(". ") == folder


@settings(deadline=None)
@given(st.lists(st.text(max_size=8), max_size=12))
def test_no_two_classes_share_a_folder(names: list[str]) -> None:
    folders = crop_folders(names)
    assert len({folder.casefold() for folder in folders}) == len(names)
    assert all(folder and "/" not in folder and folder not in (".", "..") for folder in folders)


# --- pictures


def test_crops_are_every_pixel_that_the_box_touches(tmp_path: Path) -> None:
    one = picture("a.png")
    rows = [
        (3, 4, 20, 30, 0.9, 0),
        (10.5, 2.25, 59.75, 39, 0.8, 0),
        (0, 0, 60, 40, 0.7, 0),
        (59.9, 39.9, 60, 40, 0.6, 0),
        (5, 5, 5, 5, 0.5, 0),
        (60, 40, 60, 40, 0.4, 0),
        (-9, -9, 99, 99, 0.3, 0),
    ]
    run(tmp_path, [one], rows, crops=True)
    regions = [
        (3, 4, 20, 30),
        (10, 2, 60, 39),
        (0, 0, 60, 40),
        (59, 39, 60, 40),
        (5, 5, 6, 6),
        (59, 39, 60, 40),
        (0, 0, 60, 40),
    ]
    for i, (x1, y1, x2, y2) in enumerate(regions):
        np.testing.assert_array_equal(pixels_of(tmp_path / f"crops/nut/a_{i}.png"), one.pixels[y1:y2, x1:x2])


@pytest.mark.parametrize("name", ["a.jpg", "v.mp4", "picture 0", "a.tif"])
def test_crops_of_others_are_fine_jpeg(tmp_path: Path, name: str) -> None:
    one = picture(name)
    run(tmp_path, [one], [(8, 8, 40, 32, 0.9, 2)], crops=True)
    (written,) = files(tmp_path)
    assert written.startswith("crops/wing nut/") and written.endswith("_0.jpg")
    assert np.abs(pixels_of(tmp_path / written).astype(int) - one.pixels[8:32, 8:40]).max() <= 6


def test_crops_of_classes_with_odd_names_go_to_different_folders(tmp_path: Path) -> None:
    one = picture("a.png")
    every = found(one, [(1, 1, 9, 9, 0.5, i) for i in range(5)], names=("a/b", "a:b", "猫", "..", "A_B"))
    with ResultFolder(tmp_path, pictures=False, crops=True) as results:
        results.add(one, every)
    assert files(tmp_path) == sorted(
        [
            "crops/a_b/a_0.png",
            "crops/a_b 1/a_1.png",
            "crops/猫/a_2.png",
            "crops/class 3/a_3.png",
            "crops/A_B 4/a_4.png",
        ]
    )


@pytest.mark.parametrize(
    ("name", "ending", "kind"),
    [
        *(
            ("a.png", ".png", "PNG"),
            ("a.PNG", ".png", "PNG"),
            ("a.bmp", ".bmp", "BMP"),
            ("a.webp", ".webp", "WEBP"),
        ),
        *(
            ("a.jpeg", ".jpg", "JPEG"),
            ("a.tif", ".jpg", "JPEG"),
            ("picture 0", ".jpg", "JPEG"),
            ("a.gif", ".jpg", "JPEG"),
        ),
    ],
)
def test_annotated_pictures(tmp_path: Path, name: str, ending: str, kind: str) -> None:
    from yolov9kit.draw import draw_detections

    one = picture(name, 200, 100)
    with ResultFolder(tmp_path, line_width=3, labels=False, scores=False) as results:
        results.add(one, found(one))
    (written,) = files(tmp_path)
    image = Image.open(tmp_path / written)
    assert Path(written).suffix == ending and image.format == kind and image.size == (200, 100)
    expected = draw_detections(one.pixels, found(one), line_width=3, labels=False, scores=False)
    if kind in ("PNG", "BMP"):
        np.testing.assert_array_equal(pixels_of(tmp_path / written), expected)
    assert np.abs(pixels_of(tmp_path / written).astype(int) - expected).mean() < 4


@pytest.mark.parametrize(("name", "size"), [("a.jpg", (65_600, 2)), ("a.webp", (2, 16_400))])
def test_a_picture_too_long_for_its_format_becomes_png(
    tmp_path: Path, name: str, size: tuple[int, int]
) -> None:
    run(tmp_path, [picture(name, *size)], rows=(), pictures=True)
    assert files(tmp_path) == ["a.png"] and Image.open(tmp_path / "a.png").size == size


def test_an_interrupted_picture_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, [picture()], pictures=True)
    assert files(tmp_path) == []


# --- videos


def frames_of(path: Path) -> list[np.ndarray]:
    opened = list(open_source(path))
    assert all(isinstance(item, Picture) for item in opened), opened
    return [item.pixels for item in opened if isinstance(item, Picture)]


def clip(
    path: str, frames: int, width: int = 64, height: int = 48, fps: float = 10.0, step: int = 1
) -> list[Picture]:
    return [picture(path, width, height, frame=i * step, video_fps=fps) for i in range(frames)]


@pytest.mark.parametrize("size", [(64, 48), (63, 47), (17, 3), (1, 1), (640, 2)])
def test_an_annotated_video_has_every_frame(tmp_path: Path, size: tuple[int, int]) -> None:
    run(tmp_path, clip("x/film.avi", 12, *size), rows=(), pictures=True)
    assert files(tmp_path) == ["film.mp4"]
    frames = frames_of(tmp_path / "film.mp4")
    assert len(frames) == 12
    height, width = frames[0].shape[:2]
    assert width == size[0] + size[0] % 2 and height == size[1] + size[1] % 2


def test_boxes_are_drawn_in_their_colours_in_a_video(tmp_path: Path) -> None:
    from yolov9kit.draw import class_colour

    with ResultFolder(tmp_path, labels=False, scores=False, line_width=8) as results:
        for one in clip("v.mp4", 3, 160, 120):
            results.add(one, found(one, [(40, 40, 120, 80, 0.9, 0)]))
    for frame in frames_of(tmp_path / "v.mp4"):
        assert np.abs(frame[36, 60:100].mean(axis=0) - class_colour(0)).max() < 30


@pytest.mark.parametrize("fps", [29.97002997, 23.976, 120.12345, 1000 / 3, 0.0025, 1e6, 25.0])
def test_any_frame_rate_can_be_written(tmp_path: Path, fps: float) -> None:
    run(tmp_path, clip("v.mp4", 3, 17, 3, fps=fps), rows=(), pictures=True)
    shown = list(open_source(tmp_path / "v.mp4"))
    assert len(shown) == 3 and isinstance(shown[0], Picture) and shown[0].video_fps is not None
    assert shown[0].video_fps == pytest.approx(min(max(fps, 1), 1000), abs=0.02)


def test_videos_and_pictures_of_one_name_and_a_change_of_size(tmp_path: Path) -> None:
    shown = [
        *(*clip("v.mp4", 3), picture("v.png"), *clip("x/v.avi", 4), picture("v_0.png")),
        *(*clip("s.mp4", 2), *[picture("s.mp4", 32, 32, frame=i, video_fps=10.0) for i in (2, 3, 4)]),
    ]
    run(tmp_path, shown, rows=(), pictures=True, txt=True)
    videos = {name: len(frames_of(tmp_path / name)) for name in files(tmp_path) if name.endswith(".mp4")}
    assert videos == {"v.mp4": 3, "v-3.mp4": 4, "s.mp4": 2, "s-2.mp4": 3}
    assert {"v-2.png", "v_0-2.png"} <= set(files(tmp_path))
    assert len([name for name in files(tmp_path) if name.startswith("labels/")]) == len(shown)


def test_a_video_of_a_run_that_breaks_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run(tmp_path, clip("v.mp4", 5), stop=ZeroDivisionError, pictures=True)
    assert len(frames_of(tmp_path / "v.mp4")) == 5


def test_a_video_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import cv2

    class Writer:
        def __init__(self, *_: object) -> None:
            pass

        def isOpened(self) -> bool:  # noqa: N802
            return self.works

        def write(self, _: object) -> None:
            pass

        def release(self) -> None:
            pass

        works = False

    monkeypatch.setattr(cv2, "VideoWriter", Writer)
    monkeypatch.setattr(Writer, "fourcc", lambda *_: 0, raising=False)
    with pytest.raises(KitError, match=r"v\.mp4: the annotated video cannot be written"):
        run(tmp_path, clip("v.mp4", 1), pictures=True)
    Writer.works = True  # and then the disk is full, of which OpenCV says nothing
    with pytest.raises(KitError, match=r"v\.mp4: the annotated video was not written"):
        run(tmp_path, clip("v.mp4", 1), pictures=True, json_file=tmp_path / "x.json")
    assert files(tmp_path) == ["x.json"]


# --- the folder of a run


def test_an_earlier_run_is_never_written_over(tmp_path: Path) -> None:
    made = []
    for _ in range(3):
        folder = run_folder(tmp_path, "exp")
        folder.mkdir()
        made.append(folder.name)
    assert made == ["exp", "exp2", "exp3"]
    assert run_folder(tmp_path, "exp", exist_ok=True) == tmp_path / "exp"
    (tmp_path / "file").touch()
    assert run_folder(tmp_path, "file") == tmp_path / "file2"


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(detections())
def test_everything_can_be_written_of_any_detections(tmp_path: Path, one: Detections) -> None:
    width, height = one.picture_wh
    if width * height > 500_000:
        width = height = 300
        one = Detections(np.clip(one.boxes, 0, 300), one.scores, one.labels, NAMES, (300, 300), path="a.png")
    shown = Picture(np.zeros((height, width, 3), np.uint8), "a.png")
    with ResultFolder(tmp_path / "run", txt=True, crops=True, json_file=tmp_path / "x.json") as results:
        results.add(shown, one)
    assert len(json.loads((tmp_path / "x.json").read_text())["images"][0]["detections"]) == len(one)
