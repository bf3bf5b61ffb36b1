"""A large set, run by hand: ``python -m tests.doctor.large FOLDER [PICTURES]``.

Writes so many small pictures with five boxes each into a new folder, runs the doctor on them in a process of its own,
and prints how long that took and how much memory it had at most.
"""

import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.doctor.drawn_set import DrawnSet, drawn

SIZE_WH = (320, 240)
DOCTOR = """
import sys
from yolov9kit.cli import main
main(sys.argv[1:])
print(*(line for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
"""The doctor, and the most memory that its own process has held: what the system says of a child begins with its
parent's."""
IN_VAL = 10
"""Every so many pictures one is to validate."""


def write_part(folder: Path, first: int, end: int) -> None:
    whole = DrawnSet([])
    for seed in range(first, end):
        split = "val" if seed % IN_VAL == 0 else "train"
        whole.add(drawn(split, seed, f"board {seed:06}", ".jpg", SIZE_WH))
    for path, data in whole.content().items():
        if path not in ("data.yaml", "val.txt"):
            (folder / path).write_bytes(data)


def write_large(folder: Path, pictures: int) -> Path:
    for kind in ("images", "labels"):
        for split in ("train", "val"):
            (folder / kind / split).mkdir(parents=True)
    starts = range(0, pictures, 200)
    with ProcessPoolExecutor() as processes:
        parts = [processes.submit(write_part, folder, at, min(at + 200, pictures)) for at in starts]
        for part in parts:
            part.result()
    yaml = folder / "data.yaml"
    yaml.write_text(
        "train: images/train\nval: images/val\nnames: [rectangle, disc, triangle]\n", encoding="utf-8"
    )
    return yaml


def main(folder: Path, pictures: int) -> None:
    before = time.perf_counter()
    yaml = write_large(folder, pictures)
    print(f"{pictures} pictures written in {time.perf_counter() - before:.0f} s")
    for what in ("first look", "second look, from the cache"):
        before = time.perf_counter()
        call = [sys.executable, "-c", DOCTOR, "doctor", str(yaml), "--quiet"]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
        spent = time.perf_counter() - before
        print(f"{what}: {spent:.1f} s, {pictures / spent:.0f} pictures/s: {done.stdout.strip()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20_000)
