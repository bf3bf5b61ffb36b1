"""Which format a data set is written in, found out by looking at names and the first bytes of files."""

import os
from pathlib import Path

from yolov9kit.data.formats.layout import Layout
from yolov9kit.data.formats.yolo import YoloLayout
from yolov9kit.data.yaml_file import read_data_yaml


def open_layout(data: str | os.PathLike[str]) -> Layout:
    """The data set at a path: a data.yaml, another annotation file, or the folder that holds them.

    Raises:
        DataError: nothing there, a format that is not read, or a description that contradicts itself.
    """
    return YoloLayout(read_data_yaml(Path(data)))
