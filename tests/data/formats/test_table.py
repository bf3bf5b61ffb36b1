"""Tables of boxes: what columns mean, which rows become boxes, and what is said about the others."""

import csv
import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from yolov9kit.data.dataset import open_dataset
from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.layout import Layout, SplitFiles
from yolov9kit.data.formats.table import open_table
from yolov9kit.data.labels import LabelFile
from yolov9kit.errors import DataError

EXPORTS = Path(__file__).parents[3].parent / "shared/data/raw/formats_datumaro/tests/assets"
exports = pytest.mark.skipif(not EXPORTS.is_dir(), reason="no ../shared/data/raw/formats_datumaro")
WH = (64, 48)
CLEAN = (
    "filename,class,xmin,ymin,xmax,ymax\n"
    "a.png,screw,1,2,31,42\nb.png,board,0.5,0.25,10.5,5.75\na.png,board,0,0,64,48\n"
)


def with_pictures(folder: Path, *names: str) -> Path:
    for name in names or ("a.png", "b.png"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", WH).save(folder / name)
    return folder


def table(folder: Path, text: str, name: str = "boxes.csv") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text.encode())
    return folder / name


def opened(path: Path) -> Layout:
    layout = open_table(path)
    assert layout is not None
    return layout


def read_all(files: SplitFiles, size_wh: tuple[int, int] = WH) -> dict[str, LabelFile]:
    return {path.name: files.read(i, size_wh) for i, path in enumerate(files.pictures)}


def every_finding(layout: Layout, split: str = "train") -> list[Finding]:
    files = layout.open(split)
    return [
        *layout.findings,
        *files.findings,
        *(f for read in read_all(files).values() for f in read.findings),
    ]


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def clean_boxes(layout: Layout) -> None:
    """The boxes of ``CLEAN``, however they were written."""
    assert layout.names == ("board", "screw")
    reads = read_all(layout.open("train"))
    np.testing.assert_allclose(reads["a.png"].boxes, [[1, 2, 31, 42], [0, 0, 64, 48]], rtol=1e-6)
    assert reads["a.png"].labels.tolist() == [1, 0]
    np.testing.assert_allclose(reads["b.png"].boxes, [[0.5, 0.25, 10.5, 5.75]], rtol=1e-6)


# --------------------------------------------------------------------------------------------- what is read


def test_a_clean_table_has_nothing_to_say(tmp_path: Path) -> None:
    layout = opened(table(with_pictures(tmp_path), CLEAN))
    clean_boxes(layout)
    assert layout.splits == ("train",) and every_finding(layout) == []
    lines = read_all(layout.open("train"))["a.png"].lines
    assert lines is not None and lines.tolist() == [2, 4]


def test_open_dataset_reads_it(tmp_path: Path, private_cache: Path) -> None:
    table(with_pictures(tmp_path / "set"), CLEAN)
    dataset = open_dataset(tmp_path / "set")
    assert [len(sample.labels) for sample in dataset.samples] == [2, 1] and dataset.findings == ()


ROWS = [
    ("a.png", "screw", 1, 2, 31, 42),
    ("b.png", "board", 0.5, 0.25, 10.5, 5.75),
    ("a.png", "board", 0, 0, 64, 48),
]


def written(header: str, form: str = "corners", delimiter: str = ",") -> str:
    """``ROWS`` below a header whose words f c 1 2 3 4 stand for the file, the class and the four values."""
    names = {"f": 0, "c": 1, "1": 2, "2": 3, "3": 4, "4": 5}
    words = [word.split("=") for word in header.split()]
    out = io.StringIO()
    rows = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    rows.writerow([name for _, name in words])
    for file, label, left, top, right, bottom in ROWS:
        wide, high = right - left, bottom - top
        values = {
            "corners": (left, top, right, bottom),
            "size": (left, top, wide, high),
            "centre": (left + wide / 2, top + high / 2, wide, high),
            "shares": (left / 64, top / 48, right / 64, bottom / 48),
            "centre shares": ((left + wide / 2) / 64, (top + high / 2) / 48, wide / 64, high / 48),
        }[form]
        row = (file, label, *values)
        rows.writerow([row[names[key]] if key in names else key for key, _ in words])
    return out.getvalue()


@pytest.mark.parametrize(
    ("header", "form", "notes"),
    [
        ("f=filename c=class 1=xmin 2=ymin 3=xmax 4=ymax", "corners", 0),
        ("f=image c=label 1=x1 2=y1 3=x2 4=y2", "corners", 0),
        ("f=image_name c=label_name 1=x1 2=y1 3=x2 4=y2", "corners", 0),
        ("f=image_path c=name 1=x_min 2=y_min 3=x_max 4=y_max", "corners", 0),
        ("c=Class 4=bottom 3=right 2=top 1=left f=File_Name", "corners", 0),
        ("f=path c=category 1=x0 2=y0 3=x1 4=y1", "corners", 0),
        ("f=filename 64=width 48=height c=class 1=xmin 2=ymin 3=xmax 4=ymax", "corners", 0),
        ("f=image_id c=label 1=bbox_xmin 2=bbox_ymin 3=bbox_xmax 4=bbox_ymax", "corners", 0),
        ("f=image_name c=label_name 1=x1 2=y1 3=w 4=h", "size", 0),
        ("f=image c=label 1=xmin 2=ymin 3=width 4=height", "size", 0),
        ("f=image 64=image_width 48=image_height c=label 1=xmin 2=ymin 3=width 4=height", "size", 0),
        ("f=image c=label 1=x 2=y 3=w 4=h", "size", 1),
        ("f=image c=label 1=bbox_x 2=bbox_y 3=bbox_width 4=bbox_height", "size", 1),
        ("f=image c=label 1=x_center 2=y_center 3=width 4=height", "centre", 0),
        ("f=image c=label 1=cx 2=cy 3=w 4=h", "centre", 0),
        ("f=image c=label 1=x_center 2=y_center 3=w 4=h", "centre shares", 1),
        ("f=image c=label 1=xmin 2=ymin 3=xmax 4=ymax", "shares", 1),
        ("f=filename 7=class_id c=class_name 1=xmin 2=ymin 3=xmax 4=ymax", "corners", 1),
        ("f=filename 7=image_id c=class 1=xmin 2=ymin 3=xmax 4=ymax", "corners", 1),
        ("f=ImageID c=LabelName 1=XMin 3=XMax 2=YMin 4=YMax", "shares", 0),
    ],
)
def test_headers_of_many_spellings(tmp_path: Path, header: str, form: str, notes: int) -> None:
    layout = opened(table(with_pictures(tmp_path), written(header, form)))
    clean_boxes(layout)
    assert codes(every_finding(layout)) == ["table_columns"] * notes


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
def test_delimiters_line_ends_and_a_bom(tmp_path: Path, delimiter: str, newline: str, start: str) -> None:
    text = start + written("f=filename c=class 1=xmin 2=ymin 3=xmax 4=ymax", delimiter=delimiter) + "\n\n"
    layout = opened(table(with_pictures(tmp_path), text.replace("\n", newline)))
    clean_boxes(layout)
    lines = read_all(layout.open("train"))["b.png"].lines
    assert every_finding(layout) == [] and lines is not None and lines.tolist() == [3 + start.count("\n")]


@pytest.mark.parametrize(
    "text",
    [
        "a.png,screw,1,2,31,42\nb.png,board,0.5,0.25,10.5,5.75\na.png,board,0,0,64,48\n",
        "a.png,1,2,31,42,screw\nb.png,0.5,0.25,10.5,5.75,board\na.png,0,0,64,48,board\n",
        "a.png,1,2,30,40,screw\nb.png,0.5,0.25,10,5.5,board\na.png,0,0,64,48,board\na.png,40,40,8,8,board",
        "a.png;screw;1;2;31;42\nb.png;board;0.5;0.25;10.5;5.75\na.png;board;0;0;64;48\n",
        'image,label,bbox\na.png,screw,"[1, 2, 31, 42]"\nb.png,board,0.5 0.25 10.5 5.75\na.png,board,"0,0,64,48"\n',
        'image,label,bbox\na.png,screw,"[1, 2, 30, 40]"\nb.png,board,"[10, 9, 4, 5]"\n',
    ],
)
def test_four_values_without_names_are_told_apart_and_the_choice_is_told(tmp_path: Path, text: str) -> None:
    layout = opened(table(with_pictures(tmp_path), text))
    reads = read_all(layout.open("train"))
    np.testing.assert_array_equal(reads["a.png"].boxes[0], [1, 2, 31, 42])
    assert layout.names == ("board", "screw") and reads["a.png"].labels[0] == 1
    [note] = layout.findings
    assert (note.code, note.severity) == (
        "table_columns",
        "note",
    ) and "four values without names" in note.message


def test_without_classes_every_box_is_an_object(tmp_path: Path) -> None:
    layout = opened(
        table(with_pictures(tmp_path), "image,xmin,ymin,xmax,ymax\na.png,1,2,3,4\nb.png,1,2,3,4\n")
    )
    assert layout.names == ("object",) and codes(every_finding(layout)) == ["table_columns"]
    assert read_all(layout.open("train"))["a.png"].labels.tolist() == [0]


def test_classes_that_are_numbers_are_sorted_as_numbers(tmp_path: Path) -> None:
    rows = "".join(f"a.png,{c},{c},1,{c + 5},9\n" for c in (10, 2, 33))
    layout = opened(table(with_pictures(tmp_path, "a.png"), f"image,class,x1,y1,x2,y2\n{rows}"))
    assert layout.names == ("2", "10", "33")
    assert read_all(layout.open("train"))["a.png"].labels.tolist() == [1, 0, 2]


def test_classes_of_all_splits_share_their_numbers(tmp_path: Path) -> None:
    header = "image,class,x1,y1,x2,y2\n"
    table(tmp_path, f"{header}a.png,dog,1,2,3,4\n", "train.csv")
    table(tmp_path, f"{header}b.png,cat,1,2,3,4\n", "val.csv")
    layout = opened(with_pictures(tmp_path))
    assert layout.names == ("cat", "dog")
    assert read_all(layout.open("train"))["a.png"].labels.tolist() == [1]


def test_a_picture_with_an_empty_row_is_a_background(tmp_path: Path, private_cache: Path) -> None:
    table(with_pictures(tmp_path / "set"), "a.png,1,2,31,42,screw\nb.png,,,,,\n")
    dataset = open_dataset(tmp_path / "set")
    assert dataset.empty_labels == 1 and [len(sample.labels) for sample in dataset.samples] == [1, 0]


def test_another_size_than_the_table_says_is_a_warning(tmp_path: Path) -> None:
    text = "filename,width,height,class,xmin,ymin,xmax,ymax\na.png,48,64,x,1,2,3,4\nb.png,64,48,x,1,2,3,4\n"
    [finding] = every_finding(opened(table(with_pictures(tmp_path), text)))
    assert (finding.code, finding.line, finding.value) == ("size_differs", 2, "48 x 64")


# ------------------------------------------------------------------------------------- pictures and splits


@pytest.mark.parametrize(
    ("name", "lies", "file"),
    [
        ("a", "images/a.png", "boxes.csv"),
        ("a.b", "a.b.png", "boxes.csv"),
        ("images/a.png", "images/a.png", "boxes.csv"),
        ("D:\\set\\a.png", "images/a.png", "boxes.csv"),
        ("a.png", "train/a.png", "train.csv"),
        ("a.png", "train/a.png", "train/_annotations.csv"),
        ("a.png", "images/train/a.png", "annotations/train_labels.csv"),
        ("图 片.png", "图 片.png", "boxes.tsv"),
    ],
)
def test_pictures_are_found_where_they_usually_lie(tmp_path: Path, name: str, lies: str, file: str) -> None:
    table(with_pictures(tmp_path, lies), f"image,class,x1,y1,x2,y2\n{name},dog,1,2,3,4\n", file)
    files = opened(tmp_path).open("train")
    assert files.pictures == (tmp_path / lies,) and files.findings == ()
    assert files.label_paths == (tmp_path / file,)


def test_a_column_may_name_the_split(tmp_path: Path) -> None:
    rows = "a.png,dog,1,2,3,4,TRAIN\nb.png,cat,1,2,3,4,validation\nc.png,cat,1,2,3,4,night\n"
    table(with_pictures(tmp_path, "a.png", "b.png", "c.png"), f"image,class,x1,y1,x2,y2,split\n{rows}")
    layout = opened(tmp_path)
    assert layout.splits == ("train", "val", "night")
    assert [layout.open(split).pictures[0].name for split in ("train", "valid", "night")] == [
        "a.png",
        "b.png",
        "c.png",
    ]
    assert layout.open("val").findings == ()


def test_a_missing_picture_is_named_once_with_its_first_line(tmp_path: Path) -> None:
    text = CLEAN + "none.png,screw,1,2,3,4\nnone.png,screw,1,2,3,5\n"
    [finding] = every_finding(opened(table(with_pictures(tmp_path), text)))
    assert (finding.code, finding.severity, finding.line, finding.value) == (
        "picture_missing",
        "error",
        5,
        "none.png",
    )
    assert "(2 rows)" in finding.message


def test_no_picture_at_all_lists_the_places(tmp_path: Path) -> None:
    layout = opened(table(tmp_path, CLEAN))
    with pytest.raises(
        DataError, match=r"none of its 2 pictures was found; 'a\.png' was looked for in .*a\.png"
    ):
        layout.open("train")
    with pytest.raises(DataError, match=r"has no split 'val' \(splits: train\)"):
        layout.open("val")


def test_pictures_that_no_row_names_are_counted(tmp_path: Path) -> None:
    table(with_pictures(tmp_path, "a.png", "b.png", "c.png"), CLEAN)
    [finding] = every_finding(opened(tmp_path))
    assert (finding.code, finding.value) == ("picture_unnamed", "1") and "c.png" in finding.message


def test_two_tables_for_one_split_are_refused(tmp_path: Path) -> None:
    table(tmp_path, CLEAN, "one.csv"), table(tmp_path, CLEAN, "two.csv")
    with pytest.raises(DataError, match=r"two files whose names tell no split: .*one\.csv and .*two\.csv"):
        open_table(tmp_path)


# ---------------------------------------------------------------------------------------------- bad rows


@pytest.mark.parametrize(
    ("row", "code", "severity", "words"),
    [
        ("a.png,screw,1,2,3", "label_columns", "error", "5 columns, the header has 6"),
        ("a.png,screw,1,2,3,4,5", "label_columns", "error", "7 columns, the header has 6"),
        ("a.png,screw,1,2,x,4", "label_number", "error", "'x' is not a finite number"),
        ("a.png,screw,1,2,,4", "label_number", "error", "'' is not a finite number"),
        ('a.png,screw,1,2,"3,5",4', "label_number", "error", "with a decimal point"),
        ("a.png,screw,1,2,nan,4", "label_number", "error", "'nan' is not a finite number"),
        ("a.png,screw,1,2,1e999,4", "label_number", "error", "'inf' is not a finite number"),
        ("a.png,screw,1,2,1_0,4", "label_number", "error", "'1_0'"),
        ("a.png,,1,2,3,4", "label_class", "error", "names no class"),
        (",screw,1,2,3,4", "label_columns", "error", "names no picture"),
        ("a.png,screw,9,2,3,4", "label_no_area", "warning", "a box of -6 x 2 pixels"),
        ("a.png,screw,1,2,1,4", "label_no_area", "warning", "a box of 0 x 2 pixels"),
        ("a.png,screw,100,2,130,4", "label_outside", "error", "outside the picture of 64 x 48 pixels"),
        ("a.png,screw,1,2,31,42", "label_repeated", "warning", "the same row as in line 2"),
        ('a.png,"screw,1,2,3,4', "label_columns", "error", "2 columns, the header has 6"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_by_its_line(
    tmp_path: Path, row: str, code: str, severity: str, words: str
) -> None:
    text = CLEAN + f"\n{row}\nb.png,screw,30,30,40,40\n"
    layout = opened(table(with_pictures(tmp_path), text))
    [finding] = every_finding(layout)
    assert (finding.code, finding.severity, finding.line) == (code, severity, 6)
    assert finding.path == tmp_path / "boxes.csv" and words in finding.message
    reads = read_all(layout.open("train"))
    assert [len(read.boxes) for read in reads.values()] == [2, 2]


def test_a_text_of_several_lines_keeps_the_lines_of_the_rows_behind_it(tmp_path: Path) -> None:
    text = 'image,class,x1,y1,x2,y2,remark\na.png,dog,1,2,3,4,"two\nlines"\nb.png,dog,1,2,3,x,ok\n'
    [finding] = every_finding(opened(table(with_pictures(tmp_path), text)))
    assert (finding.code, finding.line) == ("label_number", 4)


def test_a_row_in_pixels_among_shares_is_named(tmp_path: Path) -> None:
    rows = "".join(f"a.png,dog,0.{i}1,0.2,0.{i}5,0.4\n" for i in range(9)) + "b.png,dog,10,20,30,40\n"
    layout = opened(table(with_pictures(tmp_path), f"image,class,x1,y1,x2,y2\n{rows}"))
    found = {finding.code: finding for finding in every_finding(layout)}
    assert set(found) == {"table_columns", "label_pixels"} and found["label_pixels"].line == 11


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("image,class,x1,y1,x2,y2\na.png,x,0.1,0.1,0.2,0.2\na.png,x,10,10,20,20\n", "mixes shares .*line 2.*line 3"),
        ("image,class,x,y,w,h\na.png,x,0.1,0.1,0.2,0.2\n", "may be the centre or the corner of a box"),
        ("image,class,x1,y1,x2,y2,x3,y3,x4,y4\n", "boxes by more than two corners"),
        ("image,class,xmin,ymin,xmax,ymax,xmax\n", "two columns called 'xmax'"),
        ("a.png,0,1,2,30,40\nb.png,1,1,2,30,40\n", "6 columns without a header"),
        ("a.png,64,48,x,1,2,30,40\n", "8 columns without a header"),
        ("a.png,x,9,9,5,-2\na.png,x,9,9,4,-3\n", "neither two corners .* nor a corner and the size"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        open_table(table(with_pictures(tmp_path), text))
    assert "boxes.csv" in str(caught.value)


# ----------------------------------------------------------------------------------------- not this format


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0 0.5 0.5 0.2 0.1\n", "a.txt"), ("a.png\nb.png\n", "train.txt"), ("cat\ndog\n", "classes.txt"), ("", "a.csv"),
        ("epoch,loss\n1,0.5\n", "results.csv"), ("name,r,g,b\nbackground,0,0,0\n", "labelmap.csv"),
        ("LabelName,DisplayName\n/m/0,cat\n", "class-descriptions.csv"), ("image,mean\na.png,5\n", "means.csv"),
        ("epoch,a,b,c,d,e\n1,2,3,4,5,6\n", "results.csv"), ("x,y,w,h\n1,2,3,4\n", "boxes.csv"),
    ],
)  # fmt: skip
def test_other_text_is_left_to_others(tmp_path: Path, text: str, name: str) -> None:
    file = table(with_pictures(tmp_path), text, name)
    assert open_table(file) is None and open_table(tmp_path) is None


def test_nothing_there(tmp_path: Path) -> None:
    assert open_table(tmp_path) is None and open_table(tmp_path / "none.csv") is None


@pytest.mark.parametrize("text", ["image_name,label_name\na.png,dog\n", "filename, dog, cat\na.png, 1, 0\n"])
def test_classes_of_pictures_are_refused_by_name(tmp_path: Path, text: str) -> None:
    file = table(with_pictures(tmp_path), text)
    for path in (file, tmp_path):
        with pytest.raises(DataError, match=r"boxes\.csv: names classes of whole pictures, no boxes"):
            open_table(path)
    table(tmp_path, "0 0.5 0.5 0.1 0.1\n", "labels/train/a.txt")
    assert open_table(tmp_path) is None  # the boxes stand in label files, the table is something beside


def test_a_folder_with_a_table_for_each_picture_is_left_to_others(tmp_path: Path) -> None:
    for i in range(120):
        table(tmp_path, CLEAN, f"{i}.csv")
    assert open_table(tmp_path) is None


def test_bytes_that_are_no_utf8_are_refused(tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_bytes(CLEAN.replace("screw", "scré").encode("latin-1"))
    with pytest.raises(DataError, match=r"boxes\.csv: byte 44 is no UTF-8 text"):
        open_table(tmp_path)


def test_a_cell_beyond_all_bounds_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"boxes\.csv: not a table: field larger than field limit"):
        open_table(table(tmp_path, CLEAN + '"' + "x" * 200_000))


# --------------------------------------------------------------------------------------------- any content

cells = st.sampled_from(
    ["a.png", "b.png", "none.png", "dog", "cat", "", "1", "2", "9.5", "-3", "70", "0.5", "x", '"', "nan"]
)
lines = st.lists(cells, max_size=7).map(",".join)
good = st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(31, 64), st.integers(31, 48)).map(
    lambda box: f"a.png,dog,{','.join(map(str, box))}"
)
headers = st.sampled_from(
    [
        "filename,class,xmin,ymin,xmax,ymax",
        "image,label,x,y,w,h",
        "image,x1,y1,x2,y2,label",
        "image,label,bbox",
    ]
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(header=headers, rows=st.lists(lines | good, max_size=12))
def test_every_row_becomes_a_box_or_a_finding_with_its_line(
    tmp_path: Path, header: str, rows: list[str]
) -> None:
    with_pictures(tmp_path) if not (tmp_path / "a.png").exists() else None
    file = table(tmp_path, "\n".join([header, *rows]))
    try:
        layout = opened(file)
        files, refused = layout.open("train"), ""
    except DataError as fault:
        refused = str(fault)
    if refused:
        assert str(file) in refused
        return
    accounted: Counter[int] = Counter()
    lost: list[Finding] = []
    for finding in files.findings:
        assert finding.line is not None or finding.code == "picture_unnamed"
        if finding.code == "picture_missing":
            lost.append(finding)
        elif finding.line is not None:
            accounted[finding.line] += 1
    for read in read_all(files).values():
        assert (
            read.lines is not None and (read.boxes >= 0).all() and (read.boxes <= np.array([*WH, *WH])).all()
        )
        accounted.update(read.lines.tolist())
        accounted.update(f.line for f in read.findings if f.severity != "note" and f.line is not None)
    assert set(accounted.values()) <= {1}
    filled = {i for i, row in enumerate(rows, 2) if row.replace(",", "").replace('"', "").strip()}
    names = [row.split(",")[0] for row in rows]
    empty = {
        i for i in filled if not "".join(rows[i - 2].split(",")[1:]) and names[i - 2] in ("a.png", "b.png")
    }
    missing = {i for i in filled if any(finding.value == names[i - 2].strip('"') for finding in lost)}
    assert set(accounted) <= filled
    if not any('"' in row for row in rows):
        assert set(accounted) | empty | missing == filled


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    content=st.binary(max_size=60)
    | st.text(st.sampled_from('ab.png,;\t"\n\r01-é\0[]'), max_size=120).map(str.encode)
    | st.text(st.sampled_from('ab.png,"\n01-'), max_size=80).map(lambda text: CLEAN.encode() + text.encode())
)
def test_arbitrary_bytes_give_nothing_or_a_sentence(tmp_path: Path, content: bytes) -> None:
    with_pictures(tmp_path) if not (tmp_path / "a.png").exists() else None
    (tmp_path / "boxes.csv").write_bytes(content)
    said = ""
    try:
        layout = open_table(tmp_path / "boxes.csv")
        if layout is not None:
            read_all(layout.open("train"))
    except DataError as fault:
        said = str(fault)
    assert "\n" not in said


# ----------------------------------------------------------------------------------------------- exports


@exports
@pytest.mark.parametrize(
    "name",
    ["image_csv_det/ann.csv", "image_csv_det/ann2.csv", "image_csv_det/ann3.csv", "image_txt_det/ann.txt"],
)
def test_real_tables_of_one_data_set_give_the_same_boxes(name: str) -> None:
    folder = EXPORTS / "kaggle_dataset"
    with (folder / "image_csv_det/ann.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    layout = opened(folder / name)
    assert layout.names == ("cat", "dog")
    reads = read_all(layout.open("train"), (10, 10))
    for picture, read in reads.items():
        expected = [row for row in rows if row["image_name"] == picture]
        corners = [[float(row[key]) for key in ("x1", "y1", "x2", "y2")] for row in expected]
        np.testing.assert_array_equal(read.boxes, corners)
        assert [layout.names[label] for label in read.labels] == [row["label_name"] for row in expected]
    assert sum(len(read.boxes) for read in reads.values()) == len(rows) == 6
    assert set(codes(every_finding(layout))) <= {"table_columns"}


@exports
def test_a_real_table_without_classes() -> None:
    layout = opened(EXPORTS / "kaggle_dataset/image_txt_det/ann_single_obj.txt")
    assert layout.names == ("object",) and codes(list(layout.findings)) == ["table_columns", "table_columns"]
    reads = read_all(layout.open("train"), (10, 10))
    np.testing.assert_array_equal(reads["1.jpg"].boxes, [[0, 1, 1, 2], [1, 2, 3, 3]])
    assert sum(len(read.boxes) for read in reads.values()) == 6


@exports
def test_real_open_images() -> None:
    layout = opened(EXPORTS / "open_images_dataset/v6")
    assert layout.splits == ("train", "test") and layout.names == ("Generic label #0",)
    reads = read_all(layout.open("train"), (8, 2))
    np.testing.assert_allclose(reads["b.jpg"].boxes, [[1.6, 0.6, 8, 1]], rtol=1e-6)
    assert codes(list(layout.open("test").findings)) == ["label_crowd"]  # its only box has IsGroupOf 1


@exports
@pytest.mark.parametrize(
    "name",
    ["kaggle_dataset/image_csv", "kaggle_dataset/image_csv_multi_label", "roboflow_dataset/multiclass"],
)
def test_real_tables_of_classes_are_refused_by_name(name: str) -> None:
    with pytest.raises(DataError, match="names classes of whole pictures, no boxes"):
        open_table(EXPORTS / name)
