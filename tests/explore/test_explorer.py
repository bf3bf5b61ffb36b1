"""Looking into a data set: what is selected and counted is what counting by hand gives, and nothing is written."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.explore.random_sets import CODES, NAMES, random_split
from yolov9kit import DoctorConfig, ExploreFilter, ExploreItem, Explorer, diagnose
from yolov9kit.data.dataset import Dataset
from yolov9kit.data.findings import Finding
from yolov9kit.doctor.diagnosis import Diagnosis
from yolov9kit.errors import DataError, PictureError, UsageError
from yolov9kit.explore.filter import SIZES, SORTS

EXPLORERS = [
    Explorer([random_split("train", seed), random_split("val", seed + 100, 10)]) for seed in range(4)
]


def subsets(values: tuple) -> st.SearchStrategy:
    return st.lists(st.sampled_from(values), max_size=len(values), unique=True).map(tuple)


FILTERS = st.fixed_dictionaries(
    {
        "splits": subsets(("train", "val")),
        "classes": subsets((0, 1, 2)),
        "sizes": subsets(SIZES),
        "codes": subsets((*CODES, "picture_unreadable")),
        "text": st.sampled_from(["", "night", "NIGHT 0", "1 day", "images/", "val"]),
        "empty": st.sampled_from([None, True, False]),
        "sort": st.sampled_from(SORTS),
    }
)


def items(explorer: Explorer) -> list[ExploreItem]:
    return [explorer.item(i) for i in range(len(explorer))]


def size_of(box: np.ndarray) -> str:
    area = float(box[2] - box[0]) * float(box[3] - box[1])
    return "small" if area < 32**2 else "large" if area > 96**2 else "medium"


def fits(item: ExploreItem, wanted: ExploreFilter) -> bool:
    """The filter in plain words."""
    if wanted.splits and item.split not in wanted.splits:
        return False
    if wanted.classes or wanted.sizes:
        pairs = [(int(label), size_of(box)) for label, box in zip(item.labels, item.boxes, strict=True)]
        if not any(
            (not wanted.classes or label in wanted.classes) and (not wanted.sizes or size in wanted.sizes)
            for label, size in pairs
        ):
            return False
    if wanted.codes and not {finding.code for finding in item.findings} & {*wanted.codes}:
        return False
    below = item.path.relative_to("/set/images").as_posix().lower()
    if not all(word in below for word in wanted.text.lower().split()):
        return False
    if wanted.empty is None:
        return True
    return bool(len(item.labels)) != wanted.empty and (item.size_wh != (0, 0))


def sort_key(item: ExploreItem, sort: str) -> tuple:
    severities = [finding.severity for finding in item.findings]
    first = {
        "name": (),
        "boxes": (-len(item.labels),),
        "findings": tuple(-severities.count(severity) for severity in ("error", "warning", "note")),
        "size": (-item.size_wh[0] * item.size_wh[1],),
    }[sort]
    return (*first, str(item.path))


@given(st.sampled_from(EXPLORERS), FILTERS)
def test_a_selection_is_what_looking_at_each_picture_gives(explorer: Explorer, settings: dict) -> None:
    wanted, every = ExploreFilter(**settings), items(explorer)
    fitting = [i for i, item in enumerate(every) if fits(item, wanted)]
    fitting.sort(key=lambda i: sort_key(every[i], wanted.sort))
    assert explorer.select(wanted).tolist() == fitting


@given(st.sampled_from(EXPLORERS), FILTERS)
def test_numbers_of_a_selection_are_those_of_its_boxes(explorer: Explorer, settings: dict) -> None:
    selection = explorer.select(ExploreFilter(**settings))
    chosen = [explorer.item(int(i)) for i in selection]
    boxes = np.concatenate([np.empty((0, 4), np.float32), *(item.boxes for item in chosen)]).astype(
        np.float64
    )
    labels = [int(label) for item in chosen for label in item.labels]
    assert explorer.class_counts(selection).tolist() == [labels.count(label) for label in range(len(NAMES))]
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    for values, (edges, counts) in (
        (np.sqrt(width * height), explorer.box_sizes(selection)),
        (np.log2(width / height), explorer.aspects(selection)),
    ):
        assert np.array_equal(counts, np.histogram(values, edges)[0]) and counts.sum() == len(labels)
    whs = np.array([item.size_wh for item in chosen for _ in item.labels], float).reshape(-1, 2)
    x, y = ((boxes[:, :2] + boxes[:, 2:]) / 2 / whs).T
    expected = np.histogram2d(y, x, 16, ((0, 1), (0, 1)))[0]
    assert np.array_equal(explorer.positions(selection), expected)


@given(st.sampled_from(EXPLORERS), FILTERS)
def test_findings_of_a_selection_count_pictures(explorer: Explorer, settings: dict) -> None:
    selection = explorer.select(ExploreFilter(**settings))
    found = [{f.code: f.severity for f in explorer.item(int(i)).findings} for i in selection]
    codes = {code for one in found for code in one}
    expected = {
        code: (next(one[code] for one in found if code in one), sum(code in one for one in found))
        for code in codes
    }
    counted = explorer.finding_counts(selection)
    assert counted == expected
    order = [("error", "warning", "note").index(severity) for severity, _ in counted.values()]
    assert order == sorted(order)


def test_bins_do_not_move_with_the_selection() -> None:
    explorer = EXPLORERS[0]
    few = explorer.select(ExploreFilter(sizes=("small",)))[:1]
    for of in (explorer.box_sizes, explorer.aspects):
        assert np.array_equal(of(explorer.select())[0], of(few)[0])


def test_nothing_selected_counts_nothing() -> None:
    nothing = EXPLORERS[0].select(ExploreFilter(text="no such picture"))
    assert len(nothing) == 0 and nothing.dtype == np.int64
    assert not EXPLORERS[0].class_counts(nothing).any() and not EXPLORERS[0].positions(nothing).any()
    assert EXPLORERS[0].finding_counts(nothing) == {} and EXPLORERS[0].thumbnails(nothing) == []


# ---------------------------------------------------------------------------------------------- a set on the disk


def number_of(explorer: Explorer, name: str) -> int:
    return next(i for i in range(len(explorer)) if explorer.item(i).path.name == name)


def test_every_picture_is_an_item(parts: Path) -> None:
    explorer = Explorer.open(parts)
    assert (explorer.names, explorer.splits, len(explorer)) == (("nut", "bolt"), ("train", "val"), 6)
    nut = explorer.item(number_of(explorer, "Night nut.png"))
    assert (nut.split, nut.size_wh, nut.labels.tolist()) == ("train", (200, 100), [0, 1])
    assert nut.boxes.tolist() == [[90, 40, 110, 60], [10, 5, 190, 95]]
    assert nut.label_path == parts.parent / "labels/train/Night nut.txt"
    bare = explorer.item(number_of(explorer, "unlabelled.png"))
    assert (bare.label_path, bare.boxes.shape) == (None, (0, 4))


def test_an_unreadable_picture_is_an_item_that_says_why(parts: Path) -> None:
    explorer = Explorer.open(parts)
    i = number_of(explorer, "cut.png")
    item = explorer.item(i)
    assert (item.size_wh, len(item.boxes), len(item.findings)) == ((0, 0), 0, 1)
    assert i in explorer.select(ExploreFilter(codes=(item.findings[0].code,)))
    assert i not in explorer.select(ExploreFilter(empty=True))
    with pytest.raises(PictureError, match=r"cut\.png: cut-off PNG"):
        explorer.thumbnail(i)


def test_class_and_size_are_asked_of_the_same_box(parts: Path) -> None:
    explorer = Explorer.open(parts)
    small_bolts = explorer.select(ExploreFilter(classes=(1,), sizes=("small",)))
    assert [
        explorer.item(int(i)).path.name for i in small_bolts
    ] == []  # beside a large bolt lies a small nut
    small_nuts = explorer.select(ExploreFilter(classes=(0,), sizes=("small",)))
    assert [explorer.item(int(i)).path.name for i in small_nuts] == ["Night nut.png", "bolt.png"]


def test_text_means_the_path_below_the_data_set(parts: Path) -> None:
    explorer = Explorer.open(parts)

    def found(text: str) -> list[str]:
        return [explorer.item(int(i)).path.name for i in explorer.select(ExploreFilter(text=text))]

    assert found("NIGHT") == ["Night nut.png", "night bolt.png"]
    assert found("night val") == ["night bolt.png"]
    assert found("Parts") == []  # the folder itself


def test_a_line_of_a_label_file_is_the_row_of_a_box(parts: Path) -> None:
    """Line 1 is blank, 2 and 4 are boxes 0 and 1, and 3 has too few columns."""
    explorer = Explorer.open(parts)
    labels = parts.parent / "labels/train/bolt.txt"
    said = tuple(Finding("label_near_repeat", "warning", labels, "said", line) for line in (2, 4))
    explorer = explorer.with_diagnosis(Diagnosis(parts, findings=said))
    item = explorer.item(number_of(explorer, "bolt.png"))
    rows = {finding.line: row for finding, row in zip(item.findings, item.lines, strict=True)}
    assert rows == {2: 0, 4: 1, 3: -1}
    left_out = next(finding for finding in item.findings if finding.line == 3)
    assert (left_out.code, left_out.value) == ("label_columns", "0 0.5 0.5 0.2")


def test_a_diagnosis_of_a_relative_path_finds_the_same_pictures(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(parts.parent)
    said = Finding("box_huge", "note", Path("labels/train/Night nut.txt"), "said", 2)
    explorer = Explorer.open(parts, diagnosis=Diagnosis(Path("data.yaml"), findings=(said,)))
    item = explorer.item(number_of(explorer, "Night nut.png"))
    assert (item.findings, item.lines) == ((said,), (1,))


def test_findings_of_the_data_set_belong_to_no_picture(parts: Path) -> None:
    said = Finding("class_rare", "note", parts, "said")
    explorer = Explorer.open(parts).with_diagnosis(Diagnosis(parts, findings=(said,)))
    assert said in explorer.data_findings
    assert all(said not in item.findings for item in items(explorer))
    assert "class_rare" not in explorer.finding_counts(explorer.select())


def test_a_split_that_cannot_be_opened_is_a_finding(parts: Path) -> None:
    parts.write_text("train: images/train\nval: images/nowhere\nnames: [nut, bolt]\n")
    explorer = Explorer.open(parts)
    assert explorer.splits == ("train",)
    [missing] = [finding for finding in explorer.data_findings if finding.code == "split_missing"]
    assert (missing.path, missing.severity, missing.value) == (parts, "error", "val")
    assert str(missing).count(str(parts)) == 1
    parts.write_text("train: images/nowhere\nnames: [nut, bolt]\n")
    with pytest.raises(DataError, match="nowhere"):
        Explorer.open(parts)


def test_progress_counts_pictures(parts: Path) -> None:
    told: list[tuple[str, int, int]] = []
    Explorer.open(parts, on_progress=lambda *what: told.append(what))
    assert told[-1] == ("checking val pictures", 2, 2)
    assert ("checking train pictures", 4, 4) in told


def test_what_does_not_fit_is_refused_by_name(parts: Path) -> None:
    explorer = Explorer.open(parts)
    with pytest.raises(UsageError, match=r"split 'night': there is train, val"):
        explorer.select(ExploreFilter(splits=("night",)))
    with pytest.raises(UsageError, match=r"class 2: there are 0 to 1"):
        explorer.select(ExploreFilter(classes=(2,)))
    with pytest.raises(UsageError, match="code 'label_clip'"):
        explorer.select(ExploreFilter(codes=("label_clip",)))
    for number in (-1, 6):
        with pytest.raises(UsageError, match=rf"picture {number}: there are 0 to 5"):
            explorer.item(number)
    with pytest.raises(UsageError, match=r"other\.yaml, not about"):
        explorer.with_diagnosis(Diagnosis(Path("other.yaml")))
    with pytest.raises(DataError, match="none was given"):
        Explorer([])
    with pytest.raises(DataError, match=r"b val: its classes differ from those of a train"):
        Explorer([Dataset("a", "train", ("x",), ()), Dataset("b", "val", ("y",), ())])


def test_a_page_comes_in_order_and_names_what_cannot_be_read(parts: Path) -> None:
    explorer = Explorer.open(parts)
    selection = explorer.select(ExploreFilter(sort="boxes"))
    page = explorer.thumbnails(selection, 50)
    for i, one in zip(selection.tolist(), page, strict=True):
        item = explorer.item(i)
        if item.size_wh == (0, 0):
            assert one.path == str(item.path) and "cut-off PNG" in one.error
        else:
            assert one.wh == (50, 25) and one is explorer.thumbnail(i, 50)


def test_code_makes_the_same_selection(parts: Path) -> None:
    explorer = Explorer.open(parts)
    for wanted in (ExploreFilter(), ExploreFilter(classes=(1,), text="it's \"n", empty=False, sort="size")):
        told: dict = {}
        exec(explorer.code(wanted), told)
        assert told["selection"].tolist() == explorer.select(wanted).tolist()


def test_code_makes_the_same_diagnosis(parts: Path) -> None:
    explorer = Explorer.open(parts, diagnosis=diagnose(parts, DoctorConfig(image_size=320)))
    wanted = ExploreFilter(codes=("label_columns", "box_tiny"))
    told: dict = {}
    exec(explorer.code(wanted), told)
    assert told["selection"].tolist() == explorer.select(wanted).tolist() != []
    assert told["explorer"].data_findings == explorer.data_findings != ()


def test_looking_writes_nothing(parts: Path, tmp_path: Path) -> None:
    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in parts.parent.rglob("*") if path.is_file()}

    before = content()
    explorer = Explorer.open(parts)
    explorer.thumbnails(explorer.select())
    explorer.write_list(explorer.select(), tmp_path / "list.txt")
    assert content() == before


def test_a_written_list_selects_the_same_pictures_again(parts: Path, tmp_path: Path) -> None:
    explorer = Explorer.open(parts)
    written = explorer.write_list(explorer.select(ExploreFilter(classes=(1,))), tmp_path / "a b/bolts.txt")
    again = tmp_path / "data.yaml"
    again.write_text(f"train: '{written}'\nnames: [nut, bolt]\n")
    assert [item.path.name for item in items(Explorer.open(again))] == [
        "Night nut.png",
        "bolt.png",
        "night bolt.png",
    ]


def test_nothing_is_written_into_the_data_set(parts: Path, tmp_path: Path) -> None:
    explorer = Explorer.open(parts)
    (tmp_path / "door").symlink_to(parts.parent / "images")
    for place in (parts.parent / "list.txt", parts.parent / "new/list.txt", tmp_path / "door/list.txt"):
        with pytest.raises(DataError, match="data set's folder"):
            explorer.write_list(explorer.select(), place)
        assert not place.exists() and not place.parent.joinpath("new").exists()


@pytest.mark.parametrize("name", ["coco128", "cards"])
def test_real_sets_are_counted_right(shared: Path, name: str) -> None:
    folder = shared / "data" / name
    explorer = Explorer.open(folder / "data.yaml")
    rows = [
        row.split() for file in (folder / "labels").rglob("*.txt") for row in file.read_text().splitlines()
    ]
    classes = np.bincount([int(row[0]) for row in rows if row], minlength=len(explorer.names))
    everything = explorer.select()
    assert explorer.class_counts(everything).tolist() == classes.tolist()
    pictures = [path for path in (folder / "images").rglob("*") if path.is_file()]
    assert len(explorer) == len(pictures)
