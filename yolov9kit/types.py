"""The values that travel between the rooms. Each is frozen and knows nothing of who made it.

Letters, used in every shape of the library:

    B    pictures of a batch           L    levels of the pyramid (3: strides 8, 16, 32)
    H W  input pixels                  h w  grid cells of one level
    A    anchor points of all levels   C    classes
    N    detections of one picture     R    bins of a side's distribution (16)
    M    target slots of one picture

Boxes are ``xyxy`` float32 in pixels everywhere inside. *Input* pixels are those of the letterboxed tensor,
*picture* pixels those of the original picture. Any other form says so in its name (``cxcywh_norm``).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from torch import Tensor

ProgressCallback = Callable[[str, int, int], None]
"""What is being done, how much of it is done, of how much."""


def counting(on_progress: ProgressCallback | None, what: str) -> Callable[[int, int], None] | None:
    """What counts (done, of how much) of one thing, told as progress of that name; None where nobody listens."""
    return None if on_progress is None else lambda done, total: on_progress(what, done, total)


RawMaps = tuple[Tensor, Tensor, Tensor]


class Outputs(NamedTuple):
    """What the network says, in every mode.

    ``main`` and ``aux`` are three raw maps each, ``B x (64 + C) x h x w`` at strides 8, 16 and 32: four sides
    (left, top, right, bottom) x 16 bins, then the class logits. ``aux`` is None in the deployed form.
    """

    main: RawMaps
    aux: RawMaps | None


class Targets(NamedTuple):
    """What stands on the pictures of a batch, in fixed shapes: empty slots carry the label -1.

    ``boxes`` B x M x 4 float32, xyxy, input pixels. ``labels`` B x M int64, class numbers. Slots of one picture keep
    the order of its label file; how many empty ones follow changes no result.
    """

    boxes: Tensor
    labels: Tensor

    def to(self, device: str, non_blocking: bool = False) -> "Targets":
        return Targets(*(tensor.to(device, non_blocking=non_blocking) for tensor in self))


class Batch(NamedTuple):
    """Pictures and their targets, as a loader gives them.

    ``images`` B x 3 x H x W uint8, RGB. ``indices``: which sample of the data set each picture is (of a mosaic: its
    first), B numbers.
    """

    images: Tensor
    targets: Targets
    indices: tuple[int, ...]


class LossParts(NamedTuple):
    """The loss of a batch, scalars. Gains are in the parts; ``total`` is their sum times the number of pictures."""

    total: Tensor
    box: Tensor
    cls: Tensor
    dfl: Tensor


@dataclass(frozen=True)
class Timings:
    """Milliseconds that one picture took. In a batch, preprocess, network and NMS are its even share.

    Where a GPU does everything in one recording (modes graph and compiled), ``network_ms`` is all of its time, copies,
    letterbox and NMS included, and the two beside it are what the processor still does before and after.
    """

    decode_ms: float = 0.0
    preprocess_ms: float = 0.0
    network_ms: float = 0.0
    nms_ms: float = 0.0

    @property
    def total_ms(self) -> float:
        return self.decode_ms + self.preprocess_ms + self.network_ms + self.nms_ms


def _frozen_array(values: object, dtype: type[np.generic], shape: tuple[int, ...], what: str) -> np.ndarray:
    given = np.asarray(values)
    if given.shape == (0,):  # an empty list has no second dimension
        given = given.reshape((0, *shape[1:]))
    if given.shape != shape:
        expected, got = (" x ".join(map(str, s)) or "one number" for s in (shape, given.shape))
        raise ValueError(f"{what}: expected shape {expected}, got {got}")
    with np.errstate(over="ignore", invalid="ignore"):  # both are found here
        array = given.astype(dtype)  # a copy: nobody else can change it afterwards
    for numbers in (given, array):
        if not np.isfinite(numbers).all():
            raise ValueError(f"{what}: {numbers[~np.isfinite(numbers)][0]} is not a finite number")
    if dtype is np.int64 and (array != given).any():
        raise ValueError(f"{what}: {given[array != given][0]} is not a whole number")
    array.flags.writeable = False
    return array


def _freeze(owner: "Candidates | Detections", what: str) -> None:
    """Boxes, scores and labels as arrays of their own that agree with each other."""
    n = len(owner.scores)
    object.__setattr__(owner, "boxes", _frozen_array(owner.boxes, np.float32, (n, 4), f"{what}.boxes"))
    object.__setattr__(owner, "scores", _frozen_array(owner.scores, np.float32, (n,), f"{what}.scores"))
    object.__setattr__(owner, "labels", _frozen_array(owner.labels, np.int64, (n,), f"{what}.labels"))
    outside = owner.scores[(owner.scores < 0) | (owner.scores > 1)]
    if len(outside):
        raise ValueError(f"{what}.scores: {outside[0]} is not between 0 and 1")


def printable(text: str) -> str:
    """The text with what a terminal or a UTF-8 file cannot hold (control characters, undecodable bytes) escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture: ``pixels`` H x W x 3 uint8 RGB, where it came from, and what it took to decode it.

    ``video_fps`` is given for frames of a video or camera, so that a video can be written again.
    """

    pixels: np.ndarray
    path: str
    frame: int | None = None
    notes: tuple[str, ...] = ()
    decode_ms: float = 0.0
    video_fps: float | None = None

    @property
    def hw(self) -> tuple[int, int]:
        """Height and width in pixels."""
        return self.pixels.shape[0], self.pixels.shape[1]


@dataclass(frozen=True, eq=False)
class Candidates:
    """Boxes from before non-maximum suppression, so that thresholds can move without running the model.

    ``boxes`` N x 4 picture pixels, ``scores`` N, ``labels`` N, by falling score. ``min_score`` is the floor they
    were kept above: a selection cannot go below it. ``cut`` counts candidates above the floor that did not
    fit under the limit.
    """

    boxes: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    min_score: float
    cut: int = 0

    def __post_init__(self) -> None:
        _freeze(self, "Candidates")

    def __len__(self) -> int:
        return len(self.scores)


@dataclass(frozen=True, eq=False)
class Detections:
    """What was found on one picture, by falling score.

    Attributes:
        boxes: N x 4 float32, xyxy, pixels of the original picture, inside the picture.
        scores: N float32, 0..1.
        labels: N int64, index into ``names``.
        names: the name of every class the model knows.
        picture_wh: width and height of the original picture in pixels, upright (after EXIF).
        path: where the picture came from: a file, ``camera 0``, or ``picture 3`` for one given in memory.
        frame: index of the frame in a video or camera stream, else None.
        timings: milliseconds per stage.
        notes: what was converted on the way in ("16-bit gray scaled by 1/257").
        candidates: boxes from before NMS, if they were asked for.

    Raises ValueError for arrays that do not fit together, numbers that are not finite, scores outside 0..1 and
    labels without a name.
    """

    boxes: np.ndarray
    scores: np.ndarray
    labels: np.ndarray
    names: tuple[str, ...]
    picture_wh: tuple[int, int]
    path: str = ""
    frame: int | None = None
    timings: Timings = field(default_factory=Timings)
    notes: tuple[str, ...] = ()
    candidates: Candidates | None = None

    def __post_init__(self) -> None:
        _freeze(self, "Detections")
        nameless = self.labels[(self.labels < 0) | (self.labels >= len(self.names))]
        if len(nameless):
            raise ValueError(f"Detections.labels: {nameless[0]} has no name, there are {len(self.names)}")

    def __len__(self) -> int:
        return len(self.scores)

    def counts(self) -> dict[str, int]:
        """How many of each class were found, most first."""
        found: dict[str, int] = {}
        for label in self.labels:  # two classes may share a name
            found[self.names[label]] = found.get(self.names[label], 0) + 1
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], self.names.index(pair[0]))))

    def only(self, keep: np.ndarray) -> "Detections":
        """The detections where ``keep`` (N bools, or indices) says so, everything else unchanged."""
        if not len(keep):
            keep = np.empty(0, np.int64)
        return replace(self, boxes=self.boxes[keep], scores=self.scores[keep], labels=self.labels[keep])

    def __str__(self) -> str:
        found = ", ".join(f"{count} {name}" for name, count in self.counts().items()) or "nothing found"
        where = self.path if self.frame is None else f"{self.path} frame {self.frame}"
        size = f"{self.picture_wh[0]}x{self.picture_wh[1]}"
        return printable(f"{where} {size}: {found}, {self.timings.total_ms:.1f} ms")


@dataclass(frozen=True)
class Failed:
    """A picture that could not be read, and why."""

    path: str
    error: str
