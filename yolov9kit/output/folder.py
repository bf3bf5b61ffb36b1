"""The folder of a run, and the files of all its pictures together."""

import csv
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from yolov9kit.draw import draw_detections
from yolov9kit.errors import UsageError
from yolov9kit.output.files import AnnotatedVideo, JsonStream, PartFile, save_picture, write_bytes
from yolov9kit.output.names import FileNames, crop_folders
from yolov9kit.output.records import CSV_COLUMNS, as_record, coco_results, csv_rows, yolo_rows
from yolov9kit.types import Detections, Failed, Picture


class ResultFolder:
    """Writes what was asked for, under names that never collide: ``a.jpg`` and ``a.png`` both keep their label file.

    Args:
        folder: where annotated pictures and videos, ``labels/*.txt`` and ``crops/CLASS/*`` go. It appears with the
            first of them.
        pictures, txt, crops: which of them to write; ``txt_scores`` puts the score behind each row.
        json_file, coco_file, csv_file: files of all pictures together, or None.
        head: what the JSON file says before its ``images``: weights, settings.
        line_width, labels, scores: see ``draw_detections``.

    To be used in ``with``. ``failed`` is the list of pictures that could not be read, for the JSON file.

    Raises:
        UsageError: a target that is a folder, or two targets that are one file.
        KitError: a target that cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        *,
        pictures: bool = True,
        txt: bool = False,
        txt_scores: bool = False,
        crops: bool = False,
        json_file: Path | None = None,
        coco_file: Path | None = None,
        csv_file: Path | None = None,
        head: Mapping[str, Any] | None = None,
        line_width: int | None = None,
        labels: bool = True,
        scores: bool = True,
    ) -> None:
        self.folder = folder
        self.failed: list[Failed] = []
        self._pictures, self._txt, self._txt_scores, self._crops = pictures, txt, txt_scores, crops
        self._line_width, self._labels, self._scores = line_width, labels, scores
        self._names = FileNames()
        self._image_ids: dict[int, str] = {}
        self._video: AnnotatedVideo | None = None
        targets = [file.resolve() for file in (json_file, coco_file, csv_file) if file]
        if len(set(targets)) < len(targets):
            raise UsageError(f"{targets[-1]}: JSON, COCO and CSV need a file each")
        with ExitStack() as opened:  # if one cannot be opened, nothing is left of the others
            self._json = JsonStream(json_file, head or {}, "images") if json_file else None
            if self._json:
                opened.callback(self._json.abandon)
            self._coco = JsonStream(coco_file, None) if coco_file else None
            if self._coco:
                opened.callback(self._coco.abandon)
            self._csv = PartFile(csv_file) if csv_file else None
            if self._csv:
                csv.writer(self._csv.text).writerow(CSV_COLUMNS)
            opened.pop_all()

    def __enter__(self) -> "ResultFolder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        whole = kind is None or issubclass(kind, KeyboardInterrupt | GeneratorExit)  # stopped by hand
        with ExitStack() as each:  # one that cannot be finished keeps none of the others from it
            if self._csv:
                each.callback(self._csv.finish if whole else self._csv.abandon)
            if self._coco:
                each.callback(self._coco.close if whole else self._coco.abandon)
            if self._json and whole:
                each.callback(self._json.close, {"failed": [asdict(item) for item in self.failed]})
            elif self._json:
                each.callback(self._json.abandon)
            each.callback(self._end_video)

    def add(self, picture: Picture, detections: Detections) -> None:
        """Write one picture's results."""
        name = self._names.of(detections)
        if self._json:
            self._json.add(as_record(detections))
        if self._coco:
            for row in coco_results(detections, self._image_id(name, detections)):
                self._coco.add(row)
        if self._csv:
            csv.writer(self._csv.text).writerows(csv_rows(detections))
        if self._txt:
            rows = yolo_rows(detections, self._txt_scores)
            write_bytes(self.folder / "labels" / f"{name}.txt", "".join(row + "\n" for row in rows).encode())
        if self._crops:
            self._save_crops(picture, detections, name)
        if self._pictures:
            drawn = draw_detections(
                picture.pixels,
                detections,
                line_width=self._line_width,
                labels=self._labels,
                scores=self._scores,
            )
            if detections.frame is None:
                save_picture(self.folder / name, drawn, picture.path)
            else:
                self._add_frame(drawn, picture.video_fps or 25.0, self._names.clip)

    def _image_id(self, name: str, detections: Detections) -> int | str:
        """The number that is the file's name, as in COCO; else, or if another picture has it, the unique name."""
        stem = Path(detections.path).stem
        if detections.frame is not None or not re.fullmatch("[0-9]{1,18}", stem):
            return name
        return int(stem) if self._image_ids.setdefault(int(stem), name) == name else name

    def _save_crops(self, picture: Picture, detections: Detections, name: str) -> None:
        height, width = picture.pixels.shape[:2]
        folders = crop_folders(detections.names)
        for i, (box, label) in enumerate(zip(detections.boxes, detections.labels, strict=True)):
            # every pixel that the box touches, and at least one
            left, top = (
                min(max(int(np.floor(v)), 0), n - 1) for v, n in zip(box[:2], (width, height), strict=True)
            )
            right, bottom = max(int(np.ceil(box[2])), left + 1), max(int(np.ceil(box[3])), top + 1)
            crop = picture.pixels[top:bottom, left:right]
            save_picture(self.folder / "crops" / folders[label] / f"{name}_{i}", crop, picture.path)

    def _add_frame(self, drawn: np.ndarray, fps: float, clip: str) -> None:
        height, width = drawn.shape[:2]
        drawn = np.pad(drawn, ((0, height % 2), (0, width % 2), (0, 0)), "edge")  # the codec wants even sides
        if self._video is None or (self._video.clip, self._video.shape) != (clip, drawn.shape):
            resized = self._video is not None and self._video.clip == clip
            self._end_video()
            name = self._names.fresh(clip, clip=True) if resized else clip  # a stream may change its size
            self._video = AnnotatedVideo(self.folder / f"{name}.mp4", clip, drawn.shape, fps)
        self._video.add(drawn)

    def _end_video(self) -> None:
        if self._video is not None:
            video, self._video = self._video, None
            video.close()


def run_folder(project: Path, name: str, exist_ok: bool = False) -> Path:
    """``project/name``, or with a number behind it if that is taken: an earlier run is never written over."""
    folder, n = project / name, 1
    while folder.exists() and not exist_ok:
        n += 1
        folder = project / f"{name}{n}"
    return folder
