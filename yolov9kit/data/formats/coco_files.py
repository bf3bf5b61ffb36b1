"""Which files of a folder are COCO JSON, and which split each tells of. Looks at names and first bytes."""

import re
from pathlib import Path

from yolov9kit.data.findings import Finding
from yolov9kit.data.formats.json_file import head_of
from yolov9kit.data.formats.split_files import SplitFile, files_at, one_for_each_split, split_file

_KINDS = ("instances", "", "person_keypoints", "labels", "stuff", "panoptic", "captions", "image_info")
"""Of several files of a split the first of these is taken; ``""``: a name that says nothing of what it holds."""

_LIST = re.compile(r'"(images|annotations|categories)"\s*:\s*\[')
_OTHER_FORMAT = re.compile(r'"(shapes|items|_via_img_metadata)"\s*:\s*[\[{]')
_RESULTS = re.compile(r'\s*\[\s*\{[^{}]*"image_id"')


def looks_like_coco(file: Path, *, or_results: bool = False) -> bool:
    """Whether a file seems to be one, its end aside. ``or_results``: or a list of detections in the same terms."""
    head = head_of(file)
    if _RESULTS.match(head):
        return or_results
    return head.lstrip().startswith("{") and bool(_LIST.search(head)) and not _OTHER_FORMAT.search(head)


def find_coco(path: Path) -> tuple[dict[str, SplitFile], list[Finding]]:
    """The file of each split at a path, a file or a folder, and notes about files that were not taken.

    Raises:
        DataError: several files of one kind for the same split.
    """
    alone = not path.is_dir()  # whoever names a file of results is told what it is
    files = [file for file in files_at(path, (".json",)) if looks_like_coco(file, or_results=alone)]
    return one_for_each_split(path, [split_file(path, file, _KINDS) for file in files], _KINDS)
