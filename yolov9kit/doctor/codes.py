"""Every code that a finding may have: how it is called for people, how bad it is, what to do.

A code that is not here is a fault of ours; a test reads the source and compares.
"""

from dataclasses import dataclass

from yolov9kit.data.findings import Severity


@dataclass(frozen=True)
class Code:
    """``severity``: the usual one. ``to_do``: one sentence."""

    title: str
    severity: Severity
    to_do: str


CODES: dict[str, Code] = {
    # the description
    "description": Code(
        "Description that cannot be used", "error", "Correct the file that is named, then look again."
    ),
    "place": Code("Pictures found at another place", "note", "Write the path as it is, beside the yaml."),
    "cache": Code(
        "Nothing kept for next time", "note", "Give the cache folder room, or live with waiting again."
    ),
    "names_missing": Code(
        "Classes without names", "note", "Give the classes names, or know them by their numbers."
    ),
    "category_ids": Code(
        "Two categories of one name", "warning", "Give them two names if they are two classes."
    ),
    "category_left_out": Code("Category that is no class", "note", "Nothing; it only groups others."),
    "table_columns": Code(
        "How the columns were read", "note", "Read it, and look at a picture with its boxes."
    ),
    # splits
    "split_missing": Code(
        "Split that cannot be opened", "error", "Correct the path in the description, or put the files there."
    ),
    "split_absent": Code("Split that is not named", "warning", "Name pictures for it in the description."),
    "split_same": Code(
        "Validation on the training pictures", "warning", "Name pictures for val that are not trained on."
    ),
    "duplicate_across": Code(
        "Same picture in two splits",
        "warning",
        "Remove it from one of them: scores come out too good otherwise.",
    ),
    "duplicate_inside": Code(
        "Same picture twice in a split", "warning", "Remove one of them: it counts twice."
    ),
    "near_across": Code(
        "Pictures of two splits look alike", "warning", "Look at both; keep views of one scene in one split."
    ),
    "near_inside": Code("Pictures look alike", "note", "Look at both; many views of one scene teach little."),
    # pictures
    "picture_missing": Code(
        "Listed picture that does not exist", "error", "Correct the line of the list, or remove it."
    ),
    "picture_repeated": Code("Picture named twice", "warning", "Name it once; it is counted once."),
    "picture_unnamed": Code(
        "Pictures that nothing names",
        "warning",
        "Name them in the description, or leave them out on purpose; they are not used.",
    ),
    "picture_empty": Code(
        "Picture file without content", "warning", "Copy it again from its origin, or remove it."
    ),
    "picture_truncated": Code(
        "Picture file cut off", "warning", "Copy it again from its origin, or remove it."
    ),
    "picture_not_a_picture": Code(
        "File that is no picture",
        "warning",
        "Replace it by the picture that its name promises, or remove it.",
    ),
    "picture_unreadable": Code(
        "Picture that cannot be read", "warning", "Save it again as PNG or JPEG, or remove it."
    ),
    "picture_end": Code(
        "JPEG without its end", "warning", "Copy it again from its origin: its end is missing."
    ),
    "picture_suffix": Code(
        "Suffix of another format", "warning", "Rename it: other programs trust the suffix."
    ),
    "picture_orientation": Code(
        "Orientation applied",
        "note",
        "Look whether the boxes were drawn on the upright picture, as it is read here.",
    ),
    "picture_mode": Code(
        "Colours converted", "note", "Nothing; detection sees the converted picture as well."
    ),
    "picture_frames": Code(
        "Several frames", "note", "Nothing if the first is meant; else save the others apart."
    ),
    "picture_note": Code("Remark of the decoder", "note", "Read it, and look at the picture."),
    "picture_tiny": Code("Tiny picture", "warning", "Look whether it is a thumbnail that went astray."),
    "picture_huge": Code(
        "Huge picture", "warning", "Cut it into tiles or save it smaller: decoding it slows every epoch."
    ),
    "picture_aspect": Code(
        "Very long picture",
        "warning",
        "Cut it into pieces: scaled as a whole, little is left of its short side.",
    ),
    # rows
    "label_file": Code("Label file that cannot be read", "error", "Save it as UTF-8 text that may be read."),
    "label_columns": Code(
        "Wrong number of columns", "error", "Write class cx cy w h, or class and a polygon."
    ),
    "label_number": Code("Value that is no number", "error", "Write a finite number, or remove the row."),
    "label_class": Code("Class that is no whole number", "error", "Write the number of the class."),
    "label_class_range": Code(
        "Class that does not exist",
        "error",
        "Correct the number, or add the name of the class to the description.",
    ),
    "class_from_one": Code("Class numbers start at 1", "error", "Subtract 1 from every class number."),
    "label_pixels": Code(
        "Coordinates in pixels", "error", "Divide x by the width and y by the height of the picture."
    ),
    "label_outside": Code("Coordinates outside the picture", "error", "Correct the row, or remove it."),
    "label_oriented": Code(
        "Oriented boxes",
        "error",
        "Convert them to upright boxes: yolov9kit data convert DATA OUT --as-boxes.",
    ),
    "label_points": Code(
        "Key points", "error", "Keep the boxes alone: yolov9kit data convert DATA OUT --as-boxes."
    ),
    "label_no_area": Code("Box without area", "warning", "Correct the row, or remove it; it is left out."),
    "label_repeated": Code("Row written twice", "warning", "Remove one of them; it is counted once."),
    "label_near_repeat": Code("Nearly the same box twice", "warning", "Remove one of them: both are learnt."),
    "label_conflict": Code(
        "Two classes for one box", "warning", "Keep the right one: the network learns both."
    ),
    "label_clipped": Code("Box reaches out of the picture", "note", "Nothing; it ends at the edge."),
    "label_polygons": Code("Polygons read as boxes", "note", "Nothing; the box around each is used."),
    "label_mixed": Code("Polygons beside boxes", "note", "Look whether both kinds were meant."),
    "label_difficult": Code("Boxes marked difficult", "note", "Nothing; they are kept like the others."),
    "label_crowd": Code("Boxes around many objects", "note", "Nothing; they are left out."),
    "label_not_a_box": Code(
        "Shapes that are no boxes", "note", "Draw boxes for these objects if they are to be found."
    ),
    "label_deleted": Code("Boxes marked deleted", "note", "Nothing; they are left out."),
    "box_anchor": Code("Unusual origin of boxes", "warning", "Write centres, as the format asks for."),
    "size_differs": Code(
        "Picture of another size than written",
        "warning",
        "Look whether the boxes were drawn on this picture.",
    ),
    # pairs
    "label_shared": Code(
        "Label file of two pictures", "warning", "Rename one of the two pictures and its labels."
    ),
    "label_orphan": Code("Label file without a picture", "warning", "Find its picture, or remove it."),
    "label_beside": Code("Labels beside the pictures", "note", "Nothing; they are found there."),
    "labels_absent": Code(
        "Pictures without any labels", "error", "Label them, or name the folder of their labels."
    ),
    "label_missing": Code(
        "Pictures without label file", "note", "Nothing if they are backgrounds; else label them."
    ),
    "label_empty": Code(
        "Empty label files", "note", "Nothing if nothing is on these pictures; else label them."
    ),
    # boxes
    "box_tiny": Code(
        "Box too small to be learnt", "warning", "Correct or remove the row, or take a larger input or tiles."
    ),
    "box_huge": Code("Box as large as the picture", "note", "Look whether one object is really that large."),
    # classes and sizes
    "class_absent": Code("Class without a training box", "warning", "Add boxes of it, or remove its name."),
    "class_absent_val": Code("Class without a validation box", "warning", "Put pictures of it into val."),
    "class_rare": Code("Class with few training boxes", "note", "Add pictures of it."),
    "class_balance": Code("Classes far out of balance", "note", "Add pictures of the rare one."),
    "objects_small": Code(
        "Most objects are very small", "warning", "Take a larger input, or cut pictures into tiles."
    ),
    # speed
    "loader_slow": Code(
        "Pictures that load slowly", "note", "Save them smaller or as JPEG, or take workers."
    ),
}
