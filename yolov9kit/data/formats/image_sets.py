"""The picture lists of Pascal VOC: ``ImageSets/Main/train.txt`` and its like, a picture's name in each line."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.folder_tree import FolderTree
from yolov9kit.data.formats.layout import split_called
from yolov9kit.data.image import is_image_name
from yolov9kit.data.yaml_file import text_of
from yolov9kit.types import printable

_TOGETHER = ("trainval", "default")  # taken as train where there is neither train nor val
_COLUMN = ("-1", "0", "1")


@dataclass(frozen=True)
class ListedSplit:
    """``pictures``: each once, in the order of the lines. ``lists``: the files. ``findings``: about lines."""

    pictures: tuple[Path, ...]
    lists: tuple[Path, ...]
    findings: tuple[Finding, ...]


def find_image_sets(tree: FolderTree) -> tuple[Mapping[str, ListedSplit], tuple[Finding, ...]]:
    """The splits that lists below a folder tell, none where there are no lists, and what concerns no single one.

    Those of several years stand one after the other.

    Raises:
        DataError: a list is no text in UTF-8.
    """
    lists: dict[str, list[Path]] = defaultdict(list)
    for pattern in ("ImageSets", "*/ImageSets", "*/*/ImageSets"):
        for folder in sorted(tree.root.glob(pattern)):
            for split, file in _lists_of(folder).items():
                lists[split].append(file)
    splits = {split: _read(split, files, tree) for split, files in lists.items()}
    named = {picture for split in splits.values() for picture in split.pictures}
    unnamed = [picture for picture in tree.pictures if picture not in named] if splits else []
    if not unnamed:
        return splits, ()
    stand = "1 picture stands" if len(unnamed) == 1 else f"{len(unnamed)} pictures stand"
    message = f"{stand} in none of the lists in ImageSets, left out: {unnamed[0]}"
    return splits, (
        Finding("picture_unnamed", "warning", tree.root, printable(message), value=str(len(unnamed))),
    )


def _lists_of(folder: Path) -> dict[str, Path]:
    """Lists of one class (``cat_train.txt``) are not among them."""
    inner = folder / "Main"
    files = sorted(path for path in (inner if inner.is_dir() else folder).iterdir() if path.suffix == ".txt")
    lists = {split: file for file in files if (split := split_called(file.stem))}
    if lists.keys() & {"train", "val"}:
        return lists
    together = next((file for name in _TOGETHER for file in files if file.stem.lower() == name), None)
    return lists if together is None else {"train": together, **lists}


def _read(split: str, files: list[Path], tree: FolderTree) -> ListedSplit:
    pictures: dict[Path, None] = {}
    findings = []
    for file in files:
        base = next(folder for folder in file.parents if folder.name == "ImageSets").parent
        for number, line in enumerate(text_of(file).splitlines(), 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            picture = _picture(text, base, tree)
            if picture is None:
                message = f"'{text}' has no picture: correct or remove the line"
                findings.append(
                    Finding("picture_missing", "error", file, printable(message), number, printable(text))
                )
            elif picture in pictures:
                message = f"is named twice by split '{split}', counted once"
                findings.append(Finding("picture_repeated", "warning", picture, message))
            else:
                pictures[picture] = None
    return ListedSplit(tuple(pictures), tuple(files), tuple(findings))


def _picture(text: str, base: Path, tree: FolderTree) -> Path | None:
    """A line is a name, perhaps in quotes, with folders or a suffix, or with a column of numbers behind it."""
    name = text.strip('"').replace("\\", "/").removeprefix("./")
    first, _, rest = name.partition(" ")
    for candidate in (name, first) if rest.strip() in _COLUMN else (name,):
        folder, _, last = candidate.rpartition("/")
        stem = last.rpartition(".")[0] if is_image_name(last) else last
        found = tree.pictures_for(base / folder / "x", stem)
        if found:
            return found[0]
    return None
