"""Small data sets of Pascal VOC. Their pictures are empty files, which no layout opens."""

from pathlib import Path

from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.formats.voc import open_voc
from yolov9kit.data.labels import LabelFile


def box(name: str = "cat", corners: str = "1 2 5 6", extra: str = "") -> str:
    left, top, right, bottom = corners.split()
    return (
        f"<object><name>{name}</name>{extra}\n<bndbox><xmin>{left}</xmin><ymin>{top}</ymin>"
        f"<xmax>{right}</xmax><ymax>{bottom}</ymax></bndbox></object>\n"
    )


def xml(*objects: str, filename: str = "", size: str = "") -> str:
    told = f"<filename>{filename}</filename>" if filename else ""
    return f"<annotation>{told}{size}\n{''.join(objects)}</annotation>"


def write(folder: Path, **files: str) -> None:
    """``a__b__c="text"`` writes ``a/b/c.xml``."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def touch(folder: Path, names: str) -> None:
    for name in names.split():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def opened(folder: Path) -> Layout:
    layout = open_voc(folder)
    assert layout is not None
    return layout


def pairs(folder: Path, split: str = "train") -> dict[str, str | None]:
    files = opened(folder).open(split)
    return {
        picture.relative_to(folder).as_posix(): label and label.relative_to(folder).as_posix()
        for picture, label in zip(files.pictures, files.label_paths, strict=True)
    }


def read(folder: Path, *objects: str, size_wh: tuple[int, int] = (100, 80), **of_file: str) -> LabelFile:
    touch(folder, "a.jpg")
    write(folder, a=xml(*objects, **of_file))
    return opened(folder).open("train").read(0, size_wh)
