"""The canvas: what the page chooses equals what Python chooses, and the kernel is asked for pages only."""

import base64
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import yolov9kit
from tests.node import in_node
from widgets.canvas import DetectionCanvas, Page
from yolov9kit import Candidates, Detections, Detector, KitError, reselect
from yolov9kit.output import as_record
from yolov9kit.types import Timings

NAMES = ("open", "short", "mousebite", "<b>spur</b>")
WH = (200, 120)
NOTHING = (np.zeros((0, 4)), np.zeros(0), np.zeros(0, np.int64))
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync"
)
SCRIPT = Path(sys.modules[DetectionCanvas.__module__].__file__ or "").with_name("canvas.js")


def found(
    seed: int = 0, n: int = 60, names: tuple[str, ...] = NAMES, wh: tuple[int, int] = WH, floor: float = 0.01
) -> Detections:
    """Candidates in clusters, some of them partly or wholly outside the picture, some with equal scores."""
    rng = np.random.default_rng(seed)
    centre = rng.uniform(-20, np.array(wh) + 20, (max(1, n // 5), 2))[rng.integers(0, max(1, n // 5), n)]
    first = centre + rng.normal(0, 4, (n, 2))
    size = rng.uniform(5, 60, (n, 2))
    scores = np.sort(np.round(rng.uniform(floor + 0.01, 1, n), rng.choice([2, 7])).astype(np.float32))[::-1]
    labels = rng.integers(0, len(names), n)
    candidates = Candidates(np.hstack((first, first + size)), scores, labels, floor)
    timings = Timings(2.125, 1.0, 30.0, 0.5)
    return Detections(
        *NOTHING, names, wh, "boards/a.jpg", timings=timings, notes=("gray",), candidates=candidates
    )


def pixels(wh: tuple[int, int] = WH, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (wh[1], wh[0], 3), dtype=np.uint8)


def page(title: str = "a.jpg", *seeds: int, **how: Any) -> Page:
    return Page(title, pixels(), {f"run {seed}": found(seed, **how) for seed in seeds or (0,)})


def rows_of(canvas: DetectionCanvas, side: int = 0) -> np.ndarray:
    return np.frombuffer(canvas.current["sides"][side]["rows"], "<f4").reshape(-1, 6)


def as_the_page_says(canvas: DetectionCanvas, **state: object) -> None:
    """A message from the browser."""
    canvas.set_state(state)


# ------------------------------------------------------------------------------------------- the same boxes


def flat(canvas: DetectionCanvas) -> list[float]:
    return [float(v) for v in rows_of(canvas).ravel()]


CHOSEN = """data.map(({rows, state}) => {
    const all = Float32Array.from(rows);
    return Array.from(canvas.shownRows(all, canvas.select(all, state), state.width, state.height));
})"""


def case(canvas: DetectionCanvas) -> dict[str, Any]:
    """The input of the page's ``select``."""
    state = {
        "minScore": canvas.min_score,
        "maxIou": canvas.max_iou,
        "hidden": canvas.hidden_classes,
        "agnostic": canvas.agnostic,
        "maxDetections": canvas.max_detections,
        "width": canvas.pictures[canvas.page]["width"],
        "height": canvas.pictures[canvas.page]["height"],
    }
    return {"rows": flat(canvas), "state": state}


def as_rows(detections: Detections) -> list[float]:
    rows = np.column_stack((detections.boxes, detections.scores, detections.labels)).astype(np.float32)
    return [float(v) for v in rows.ravel()]


def random_canvases() -> Iterator[DetectionCanvas]:
    rng = np.random.default_rng(5)
    for seed in range(40):
        canvas = DetectionCanvas([page("p", seed, n=int(rng.integers(0, 150)))])
        canvas.min_score = float(np.round(rng.uniform(0.01, 0.6), 2))
        canvas.max_iou = float(rng.choice([0, 0.3, 0.45, 0.7, 1, rng.uniform()]))
        canvas.agnostic = bool(rng.integers(0, 2))
        canvas.hidden_classes = [int(c) for c in range(4) if rng.uniform() < 0.2]
        canvas.max_detections = int(rng.choice([1, 5, 300]))
        yield canvas


def canvases_at_a_tie() -> Iterator[DetectionCanvas]:
    """Thresholds that are exactly an overlap, or exactly a score, of the candidates, and their neighbours."""
    rows = rows_of(DetectionCanvas([page("p", 3)]))
    first, last = rows[:, :2], rows[:, 2:4]
    both = np.minimum(last[:, None], last[None]) - np.maximum(first[:, None], first[None])
    shared, area = both.clip(0).prod(axis=2), (last - first).prod(axis=1)
    overlaps = np.unique(np.triu(shared / ((area[:, None] + area[None]) - shared), 1))[1:]
    assert len(overlaps) > 100
    for overlap in overlaps[::9]:
        for limit in (overlap, np.nextafter(overlap, np.float32(0)), np.nextafter(overlap, np.float32(1))):
            yield DetectionCanvas([page("p", 3)], max_iou=float(limit), min_score=0.02, agnostic=True)
    for score in rows[::7, 4]:
        yield DetectionCanvas([page("p", 3)], min_score=float(score))
        yield DetectionCanvas([page("p", 3)], min_score=round(float(score), 2))


@pytest.mark.parametrize("canvases", [random_canvases, canvases_at_a_tie], ids=lambda make: make.__name__)
def test_the_page_shows_what_reselect_gives(canvases: Any) -> None:
    all_canvases = list(canvases())
    expected = [as_rows(canvas.selection()) for canvas in all_canvases]
    assert sum(map(len, expected)) > 500
    assert in_node(SCRIPT, CHOSEN, [case(canvas) for canvas in all_canvases]) == expected


def test_the_page_shows_what_the_model_found(shared: Path) -> None:
    weights = shared / "checkpoints" / "official-yolov9-t-deeppcb.pt"
    files = sorted((shared / "checkpoints" / "images").glob("*.jpg"))[:2]
    detections = Detector(weights, device="cpu").detect(files, keep_candidates=True)
    canvas = DetectionCanvas(
        Page(file.name, lambda file=file: yolov9kit.read_image(file), {"fp32": each})  # type: ignore[misc]
        for file, each in zip(files, detections, strict=True)
    )
    cases = []
    for index in range(2):
        as_the_page_says(canvas, page=index)
        cases.append(case(canvas))
        assert canvas.selection().boxes.tolist() == detections[index].boxes.tolist()
    assert in_node(SCRIPT, CHOSEN, cases) == [as_rows(each) for each in detections]


def test_the_pages_json_is_that_of_the_library() -> None:
    canvas = DetectionCanvas([page("p", 1)])
    shown = canvas.selection()
    halves = np.array([[0.03125, 0.09375, 20.03125, 40.21875]], np.float32)  # ties at the fourth decimal
    box = Detections(
        halves,
        np.array([0.5]),
        np.array([1]),
        NAMES,
        WH,
        "boards/a.jpg",
        timings=shown.timings,
        notes=("gray",),
    )
    for each in (shown, box):
        data = {"about": canvas.pictures[0], "names": list(NAMES), "rows": as_rows(each)}
        written = in_node(
            SCRIPT,
            "canvas.record(data.about, data.about.sides[0], Float32Array.from(data.rows), data.names)",
            data,
        )
        assert written.pop("run") == "run 1"
        assert written == as_record(each)


# ------------------------------------------------------------------------------------------- pages


def test_the_browser_gets_the_picture_and_all_candidates_of_the_current_page() -> None:
    canvas = DetectionCanvas([page("a", 0, 1)])
    picture = Image.open(io.BytesIO(canvas.current["picture"]["bytes"]))
    assert (picture.size, canvas.current["picture"]["mime"]) == (WH, "image/png")
    assert np.array_equal(np.asarray(picture), pixels())
    for side, seed in enumerate((0, 1)):
        kept = found(seed).candidates
        assert kept is not None
        rows = rows_of(canvas, side)
        assert np.array_equal(rows[:, :4], kept.boxes) and np.array_equal(rows[:, 4], kept.scores)
        assert np.array_equal(rows[:, 5], kept.labels)
    assert canvas.names == list(NAMES) and canvas.colours[0] == "#e69f00"
    (about,) = canvas.pictures
    assert (about["title"], about["width"], about["height"], about["notes"]) == ("a", *WH, ["gray"])
    assert [side["label"] for side in about["sides"]] == ["run 0", "run 1"]
    assert about["sides"][0]["timings"] == {"decode": 2.125, "preprocess": 1, "network": 30, "nms": 0.5}


def test_candidates_are_sent_by_falling_score() -> None:
    boxes = np.array([[0, 0, 9, 9], [20, 0, 29, 9], [40, 0, 49, 9]])
    unsorted = Candidates(boxes, np.array([0.2, 0.9, 0.9]), np.arange(3), 0.01)
    each = Detections(*NOTHING, NAMES, WH, candidates=unsorted)
    assert rows_of(DetectionCanvas([Page("a", pixels(), {"x": each})]))[:, 5].tolist() == [1, 2, 0]


def test_a_picture_is_read_when_its_page_is_turned_to_and_not_before() -> None:
    read: list[int] = []

    def reader(index: int) -> Any:
        return lambda: read.append(index) or pixels(seed=index)  # type: ignore[func-returns-value]

    canvas = DetectionCanvas(Page(str(i), reader(i), {"x": found(i)}) for i in range(1000))
    assert read == [0]
    as_the_page_says(canvas, page=777)
    assert read == [0, 777] and canvas.current["page"] == 777
    assert rows_of(canvas).shape == (60, 6)
    state = {
        key: value for key, value in canvas.get_state().items() if key not in ("current", "_esm", "_css")
    }
    assert len(json.dumps(state)) < 400 * 1000  # a description of each page, no pixels, no candidates


def test_a_threshold_from_the_page_sends_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    canvas = DetectionCanvas(Page(str(seed), pixels(), {"x": found(seed)}) for seed in (0, 1))
    sent: list[dict[str, Any]] = []
    monkeypatch.setattr(canvas, "_send", lambda message, buffers=None: sent.append(message))
    as_the_page_says(canvas, min_score=0.4, max_iou=0.2, hidden_classes=[1], selected=2, agnostic=True)
    assert sent == []  # an echo could move a slider that has gone on meanwhile
    assert (canvas.min_score, canvas.max_iou, canvas.hidden_classes) == (0.4, 0.2, [1])
    as_the_page_says(canvas, page=1)
    assert [list(message["state"]) for message in sent] == [["current"]]
    expected = reselect(found(1), min_score=0.4, max_iou=0.2, classes=[0, 2, 3], agnostic=True)
    assert as_rows(canvas.selection()) == as_rows(expected)


def test_a_picture_that_cannot_be_read_says_so_and_the_others_still_open() -> None:
    def gone() -> np.ndarray:
        raise yolov9kit.KitError("b.jpg: no such file")

    def broken() -> np.ndarray:
        raise ZeroDivisionError("division by zero")

    small = pixels((10, 10))
    pages = [Page(str(i), each, {"x": found()}) for i, each in enumerate((pixels(), gone, broken, small))]
    canvas = DetectionCanvas(pages)
    errors = []
    for index in (1, 2, 3):
        as_the_page_says(canvas, page=index)
        errors.append(canvas.current["error"])
    assert errors[:2] == ["b.jpg: no such file", "2: ZeroDivisionError: division by zero"]
    assert errors[2].startswith(
        "3: the boxes belong to a picture of 200 x 120 pixels, this array is 10 x 10 x 3"
    )
    as_the_page_says(canvas, page=0)
    assert "error" not in canvas.current


def test_more_pages_leave_the_current_one_alone() -> None:
    canvas = DetectionCanvas()
    assert canvas.pictures == [] and canvas.current["page"] == -1
    canvas.extend([page("a"), page("b", 0)])
    as_the_page_says(canvas, page=1, min_score=0.5)
    before = canvas.current
    canvas.extend([page("c", 0)])
    assert [about["title"] for about in canvas.pictures] == ["a", "b", "c"]
    assert canvas.current is before and (canvas.page, canvas.min_score) == (1, 0.5)


def test_new_pages_start_at_the_first_and_keep_what_was_chosen() -> None:
    canvas = DetectionCanvas([page("a"), page("b")], hidden_classes=[2])
    as_the_page_says(canvas, page=1, min_score=0.5, selected=0)
    revision = canvas.current["revision"]
    canvas.show([page("c", 4)])
    assert (canvas.page, canvas.selected, canvas.min_score, canvas.hidden_classes) == (0, -1, 0.5, [2])
    assert canvas.current["page"] == 0 and canvas.current["revision"] != revision
    canvas.show([Page("d", pixels(), {"x": found(names=("nut", "bolt"))})])
    assert canvas.names == ["nut", "bolt"] and canvas.hidden_classes == []
    canvas.show([])
    assert canvas.pictures == [] and canvas.current["page"] == -1


def test_the_slider_starts_where_the_candidates_start() -> None:
    canvas = DetectionCanvas([page("a", floor=0.3), page("b", floor=0.1)])
    assert (canvas.score_floor, canvas.min_score) == (0.3, 0.3)
    with pytest.raises(KitError, match=r"min_score 0\.2: the candidates were kept above 0\.3"):
        canvas.min_score = 0.2
    assert canvas.min_score == 0.3


WRONG = {
    "three sides": ([page("a.jpg", 0, 1, 2)], r"a\.jpg: 3 sides"),
    "no side": ([Page("a.jpg", pixels(), {})], r"a\.jpg: 0 sides"),
    "other sides": (
        [page("a.jpg", 0), page("b.jpg", 1)],
        r"b\.jpg: its sides are run 1, those of a\.jpg run 0",
    ),
    "other classes": ([page("a.jpg"), page("b.jpg", names=("nut",))], r"b\.jpg, run 0: other classes"),
    "other size": (
        [Page("a.jpg", pixels(), {"x": found(), "y": found(wh=(5, 5))})],
        r"a\.jpg, y: belongs to a picture of another size",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_pages_that_do_not_go_together_are_refused_and_the_old_ones_stay(case: str) -> None:
    pages, complaint = WRONG[case]
    canvas = DetectionCanvas([page("old")])
    with pytest.raises(KitError, match=complaint):
        canvas.show(pages)
    assert [about["title"] for about in canvas.pictures] == ["old"]


def test_detections_without_candidates_are_refused() -> None:
    bare = Detections(*NOTHING, NAMES, WH)
    with pytest.raises(KitError, match=r"a\.jpg, x: no candidates, detect with keep_candidates=True"):
        DetectionCanvas([Page("a.jpg", pixels(), {"x": bare})])


def test_a_page_or_side_that_is_not_there_is_named() -> None:
    canvas = DetectionCanvas([page("a", 0, 1)])
    with pytest.raises(KitError, match="page 1: there are 0 to 0"):
        canvas.selection(1)
    with pytest.raises(KitError, match="page 1: there are 0 to 0"):
        canvas.page = 1
    with pytest.raises(KitError, match="side 'run 7': there are 'run 0', 'run 1'"):
        canvas.selection(side="run 7")
    assert as_rows(canvas.selection(side="run 1")) == as_rows(reselect(found(1)))


# ------------------------------------------------------------------------------------------- static copy


def test_the_static_copy_needs_nothing_else() -> None:
    canvas = DetectionCanvas([page("<i>a</i>.jpg", 0, 1)], min_score=0.6)
    text = canvas.static_html()
    assert not re.search(r"<script|https?:|src=\"(?!data:image/)", text)
    assert "<i>" not in text and "<b>" not in text and "&lt;i&gt;a&lt;/i&gt;.jpg" in text
    images = re.findall(r'src="data:(image/\w+);base64,([^"]+)"', text)
    assert len(images) == 2
    for (_, data), seed in zip(images, (0, 1), strict=True):
        drawn = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))
        shown = reselect(found(seed), min_score=0.6)
        assert np.array_equal(drawn, yolov9kit.draw_detections(pixels(), shown))
        assert f"run {seed}: {len(shown)} boxes" in text
    both = [reselect(found(seed), min_score=0.6).counts().get("short", 0) for seed in (0, 1)]
    row = re.search(r"<tr><th[^>]*>short</th><td[^>]*>(\d+)</td><td[^>]*>(\d+)</td></tr>", text)
    assert row and [int(n) for n in row.groups()] == both
    assert "score above 0.6, NMS IoU 0.7" in text


def test_the_static_copy_of_nothing_is_a_sentence() -> None:
    assert DetectionCanvas().static_html() == "<p>No pictures yet.</p>"


def test_importing_the_canvas_loads_no_torch() -> None:
    code = "import sys, widgets.canvas; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=SCRIPT.parents[1], timeout=60).returncode == 0
