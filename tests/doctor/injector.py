"""For every code that can be planted into a YOLO set, a function that does so at a random place.

Each takes the set and random numbers, plants one fault, notes what a doctor should find, and returns whether there was
room for it. Faults of rows share pictures and label files; those that would hide or change each other do not.
"""

import random

from tests.doctor.drawn_set import DrawnSet, Row, drawn
from tests.doctor.picture_faults import PICTURE_FAULTS
from tests.doctor.planting import Planter, added, fresh_seed, split_without
from tests.doctor.row_faults import ROW_FAULTS, box_somewhere


def _new_class(whole: DrawnSet, train: int, val: int, dice: random.Random) -> bool:
    """A class of its own with so many boxes in each split."""
    label = len(whole.names)
    homes = {
        split: [one for one in whole.pictures if not one.closed and one.split == split]
        for split in ("train", "val")
    }
    if not (homes["train"] and homes["val"]):
        return False
    whole.names.append(f"class {label}")
    for split, count in (("train", train), ("val", val)):
        for _ in range(count):
            one = dice.choice(homes[split])
            assert one.rows is not None
            one.insert(Row(box_somewhere(dice, label)), dice.randint(0, len(one.rows)))
    return True


def _absent(whole: DrawnSet, dice: random.Random) -> bool:
    whole.names.append(f"class {len(whole.names)}")
    whole.expect("class_absent", "data.yaml")
    return True


def _absent_val(whole: DrawnSet, dice: random.Random) -> bool:
    if not _new_class(whole, dice.randint(10, 14), 0, dice):
        return False
    whole.expect("class_absent_val", "data.yaml")
    return True


def _rare(whole: DrawnSet, dice: random.Random) -> bool:
    if not _new_class(whole, dice.randint(4, 9), 1, dice):
        return False
    whole.expect("class_rare", "data.yaml")
    return True


def _grid(label: int, columns: int, rows: int, share: float) -> list[Row]:
    """Boxes side by side, each of that share of its cell's sides."""
    return [
        Row.of(label, (x + 0.5) / columns, (y + 0.5) / rows, share / columns, share / rows)
        for y in range(rows)
        for x in range(columns)
    ]


def _balance(whole: DrawnSet, dice: random.Random) -> bool:
    """One box of a class, and more than a hundred of another in a picture of their own."""
    if ("balance", "") in whole.happened or not _new_class(whole, 1, 1, dice):
        return False
    whole.once("balance", "")
    many = drawn("train", fresh_seed(whole, dice), f"many {dice.randrange(10**6)}", ".png")
    many.rows = _grid(0, 12, 10, 0.8)
    added(whole, dice, many)
    whole.expect("class_rare", "data.yaml")
    whole.expect("class_balance", "data.yaml")
    return True


def _small(whole: DrawnSet, dice: random.Random) -> bool:
    """More boxes of 4 pixels than all others together, in one picture."""
    split = split_without(whole, dice, "small")
    if split == "none":
        return False
    whole.once("small", split)
    crowd = drawn(split, fresh_seed(whole, dice), f"crowd {dice.randrange(10**6)}", ".png")
    crowd.rows = [Row.of(i % 3, *row.box[1:]) for i, row in enumerate(_grid(0, 30, 20, 0.15)) if row.box]
    added(whole, dice, crowd)
    whole.expect("objects_small", "data.yaml")
    return True


def _unnamed(whole: DrawnSet, dice: random.Random) -> bool:
    folder = f"images/extra {dice.randrange(10**6)}"
    whole.files[f"{folder}/forgotten.png"] = b"not looked into"
    whole.expect("picture_unnamed", folder)
    return True


PLANTERS: dict[str, Planter] = {
    **ROW_FAULTS,
    **PICTURE_FAULTS,
    "class_absent": _absent,
    "class_absent_val": _absent_val,
    "class_rare": _rare,
    "class_balance": _balance,
    "objects_small": _small,
    "picture_unnamed": _unnamed,
}
"""Faults that may stand beside each other."""


def _no_yaml(whole: DrawnSet, dice: random.Random) -> bool:
    good = whole.content()["data.yaml"].decode()
    bad = dice.choice(
        [
            ("nc: 7\n" + good, None),
            (good + "names: [a]\n", good.count("\n") + 1),
            ("train: images/train\nval: val.txt\n", None),
            ("train: [\n" + good, 3),  # where the parser notices that the list goes on
        ]
    )
    whole.yaml_text, line = bad
    whole.expected = []
    whole.expect("description", "data.yaml", None if line is None else lambda: line)
    return True


def _no_split(whole: DrawnSet, dice: random.Random) -> bool:
    """The list of val is not there, or names nothing."""
    whole.entries["val"] = "elsewhere.txt"
    if dice.random() < 0.5:
        whole.files["elsewhere.txt"] = b"\n"
    whole.expect("split_missing", "data.yaml")
    return True


def _no_val(whole: DrawnSet, _dice: random.Random) -> bool:
    del whole.entries["val"]
    whole.expect("split_absent", "data.yaml")
    whole.expect("picture_unnamed", "images/val")
    return True


def _val_is_train(whole: DrawnSet, _dice: random.Random) -> bool:
    whole.entries["val"] = whole.entries["train"]
    whole.expect("split_same", "data.yaml")
    whole.expect("picture_unnamed", "images/val")
    return True


def _from_one(whole: DrawnSet, _dice: random.Random) -> bool:
    """Every class number is one too large: class 0 has no box, and the last does not exist."""
    for one in whole.pictures:
        assert one.rows is not None
        for at, row in enumerate(one.rows):
            assert row.box is not None
            label, *box = row.box
            one.rows[at] = Row.of(label + 1, *box)
            if label + 1 == len(whole.names):
                whole.expect_row("label_class_range", one, one.rows[at])
    for code in ("class_from_one", "class_from_one", "class_absent"):  # the first for each split
        whole.expect(code, "data.yaml")
    return True


WHOLE: dict[str, Planter] = {
    "description": _no_yaml,
    "split_missing": _no_split,
    "split_absent": _no_val,
    "split_same": _val_is_train,
    "class_from_one": _from_one,
}
"""Faults of the whole set: they hide others, so that one of them stands alone."""

ELSEWHERE = {
    "cache": "is no fault of the set",
    "loader_slow": "is a matter of measured time",
    "box_anchor": "CreateML",
    "category_ids": "COCO JSON",
    "category_left_out": "COCO JSON",
    "label_crowd": "COCO JSON and tables",
    "label_deleted": "LabelMe",
    "label_difficult": "Pascal VOC",
    "label_not_a_box": "CVAT and LabelMe",
    "labels_absent": "folders of pictures alone",
    "names_missing": "Darknet and YOLO without a yaml",
    "size_differs": "formats that write sizes",
    "table_columns": "tables",
}
"""Codes that are not planted into a YOLO set, and why or where they occur."""
