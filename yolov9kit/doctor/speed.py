"""Whether decoding the pictures will hold training up, why, and what helps."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from yolov9kit.data.checked import Checked
from yolov9kit.data.findings import Finding
from yolov9kit.data.image import read_image
from yolov9kit.data.workers import suggest_workers
from yolov9kit.errors import PictureError

SLOW_MS = 30.0
"""A picture. 16 processes then reach half of what a fast GPU takes. Photos of 1920 x 1080 pixels need about 10 ms."""
_EPOCH_MS = 5000.0  # sets that are decoded in less are no reason to wait
_LARGER = 2  # times the input size: beyond it a picture holds much that training never sees
_SAMPLE = 8


def loader_findings(
    checked: Mapping[Path, Checked],
    image_size: int = 640,
    cores: int | None = None,
    device_kind: str = "cuda",
    sample: Sequence[Path] = (),
) -> list[Finding]:
    """``loader_slow`` where the pictures of a split take long to decode, at the folder that they have in common.

    What decoding them took is known from ``checked``, in processor time; only where that is much are some of them
    (``sample``; without it some of the slowest) decoded again, 0.3 s long, to say how many workers would help.

    ``image_size``: side of the training input in pixels. ``cores``: those of this machine. ``device_kind``: of the
    device that trains.
    """
    times = {path: facts.decode_ms for path, facts in checked.items() if not facts.error}
    total = sum(times.values())
    if not times or total / len(times) < SLOW_MS or total < _EPOCH_MS:
        return []
    why, mend = _reason({path: checked[path] for path in times}, total, image_size)
    spread = sorted(times, key=times.__getitem__)[:: max(1, len(times) // _SAMPLE)]
    workers = _workers(sample or spread, cores or os.cpu_count() or 1, device_kind)
    message = (
        f"{total / len(times):.0f} ms a picture to decode, {total / 1000:.0f} s in every epoch: {why}; {mend}"
    )
    folder = Path(os.path.commonpath([path.parent for path in times]))
    return [
        Finding("loader_slow", "note", folder, f"{message}. {workers}", value=f"{total / len(times):.1f} ms")
    ]


def _reason(checked: Mapping[Path, Checked], total_ms: float, image_size: int) -> tuple[str, str]:
    """Why most of the time is spent, and what to do about it."""
    longest = _LARGER * image_size
    large = [facts for facts in checked.values() if max(facts.size_wh) > longest]
    slow_kinds = [facts for facts in checked.values() if facts.kind != "JPEG"]
    if sum(facts.decode_ms for facts in large) > total_ms / 2:
        width, height = max((facts.size_wh for facts in large), key=lambda wh: wh[0] * wh[1])
        why = f"{len(large)} of {len(checked)} are longer than {longest} px, up to {width} x {height}"
        return why, f"save them with {longest} px at most, or cut them into tiles where objects are small"
    if sum(facts.decode_ms for facts in slow_kinds) > total_ms / 2:
        kinds = " and ".join(sorted({facts.kind for facts in slow_kinds}))
        why = f"{len(slow_kinds)} of {len(checked)} are {kinds}, which decodes slower than JPEG"
        return why, "save them as JPEG of quality 95, or keep them in memory (cache ram)"
    return "this processor is slow for them", "keep them in memory (cache ram)"


def _workers(sample: Sequence[Path], cores: int, device_kind: str) -> str:
    def prepare(position: int) -> None:
        try:
            read_image(sample[position % len(sample)])
        except PictureError:  # gone since it was looked at: the next will do
            return

    suggested = suggest_workers(prepare, cores, device_kind)
    return f"Workers suggested: {suggested.workers} ({suggested.reason})"
