"""Pick weights and pictures, press Detect, look: the first panel of the workbench."""

import html
import re
import time
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as w

import yolov9kit
from widgets.canvas import DetectionCanvas, Page
from widgets.form import LABEL, choice, text, whole_number
from widgets.job import Job
from widgets.parts import STYLE, Choices, CodeView, StaticCopy, Status

UNTRAINED = "untrained"
"""The entry of the weights list for a machine without any weights file."""

SAMPLE = "sample weights: circuit boards"
"""What the list says of the sample weights, which it starts with where they are."""

UNTRAINED_SCORE = 0.6
"""Random weights score nearly everything around one half: at the usual threshold a picture is all boxes."""

OTHER = "another file"
MAX_FRAMES = 300
"""Frames of a video or camera that a panel keeps; the command line has no such limit."""

UPDATE_S = 0.25
"""Pause between updates of the page: four a second."""


@dataclass(frozen=True)
class Request:
    """What the controls ask for, as one value."""

    weights: str
    source: str
    precision: str
    compare: str
    device: str
    image_size: int
    batch_size: int

    @property
    def precisions(self) -> tuple[str, ...]:
        return (self.precision,) if self.compare in ("", self.precision) else (self.precision, self.compare)


class DetectPanel(w.VBox):
    """Detections on your pictures.

    Args:
        folder: where weights and pictures are looked for, and uploads are put.
        state_file: remembers the choices over a kernel restart; None remembers nothing.
    """

    def __init__(self, folder: str | Path = ".", state_file: str | Path | None = "panel_state.json") -> None:
        self.folder = Path(folder)
        self.job: Job | None = None
        self._detectors: dict[tuple[str, str, str], Any] = {}
        self.canvas = DetectionCanvas()
        self.copy = StaticCopy()
        self._build_controls()
        self.status, self.code = Status(), CodeView()
        self.progress = w.IntProgress(description="Progress", layout=w.Layout(width="auto", flex="1 1 240px"))
        self.start = w.Button(
            description="Detect", button_style="primary", tooltip="Run the model on the pictures"
        )
        self.stop = w.Button(description="Stop", disabled=True, tooltip="Stop after the current pictures")
        self.start.on_click(lambda _: self.run())
        self.stop.on_click(lambda _: self.job and self.job.stop())
        self.controls = {
            "weights": self.weights,
            "weights_path": self.weights_path,
            "pictures": self.pictures,
            "pictures_path": self.pictures_path,
            "precision": self.precision,
            "compare": self.compare,
            "device": self.device,
            "image_size": self.image_size,
            "batch_size": self.batch_size,
        }
        self.choices = Choices(None if state_file is None else Path(state_file), self.controls)
        self._sync_fields()
        for control in self.controls.values():
            control.observe(lambda _: self._sync_fields(), "value")
        self.canvas.observe(
            lambda _: self._sync_code(), ["min_score", "max_iou", "hidden_classes", "agnostic"]
        )
        self.code.button.observe(lambda _: self.canvas.request_state(), "value")
        fields = w.Box([*self.controls.values(), self.upload]).add_class("yk-fields")
        actions = w.Box([self.start, self.stop, self.progress]).add_class("yk-row")
        super().__init__([w.HTML(STYLE), fields, actions, self.status, self.code, self.canvas])
        self.add_class("yk-panel").add_class("yk-detect")
        self.status.say(self.choices.problem or "Choose weights and pictures, then press Detect.")

    def _build_controls(self) -> None:
        known = known_weights(self.folder)
        entries = [*known, ("random weights", UNTRAINED), (OTHER, OTHER)]
        self.weights = choice("Weights", entries, value=dict(known).get(SAMPLE, entries[0][1]))
        self.weights_path = text("File", "path of a .pt or .safetensors file")
        kinds = ["sample pictures", "folder or file", "upload", *(["camera"] if _has_camera() else [])]
        self.pictures = choice("Pictures", kinds)
        self.pictures_path = text("Path", "picture, folder, video, list or 'glob*'")
        self.upload = w.FileUpload(accept="image/*", multiple=True, description="Upload pictures")
        self.upload.observe(lambda _: self._keep_uploads(), "value")
        self.precision = choice("Precision", ["fp32", "tf32", "fp16", "bf16", "auto"])
        self.compare = choice(
            "Compare with", [("nothing", ""), *((p, p) for p in ("fp32", "tf32", "fp16", "bf16"))]
        )
        devices = yolov9kit.available_devices()
        labels = [(f"{d.torch_name} ({d.label})", d.torch_name) for d in devices]
        self.device = choice("Device", [("auto", "auto"), *labels])
        self.image_size = whole_number_of_32()
        self.batch_size = whole_number("batch_size", "Batch size")

    # ------------------------------------------------------------------------------------ what is asked for

    def request(self) -> Request:
        """The choices, as one value. Raises UsageError where one is missing."""
        weights = self.weights_path.value.strip() if self.weights.value == OTHER else self.weights.value
        if not weights:
            raise yolov9kit.UsageError("Name a weights file.")
        return Request(
            weights=weights,
            source=self._source(),
            precision=self.precision.value,
            compare=self.compare.value,
            device=self.device.value,
            image_size=self.image_size.value,
            batch_size=self.batch_size.value,
        )

    def _source(self) -> str:
        kind = self.pictures.value
        if kind == "sample pictures":
            return str(yolov9kit.sample_pictures())
        if kind == "camera":
            return "0"
        if kind == "upload":
            if not self._uploads.is_dir():
                raise yolov9kit.UsageError("Upload pictures first.")
            return str(self._uploads)
        if not self.pictures_path.value.strip():
            raise yolov9kit.UsageError("Name a picture, a folder or a video.")
        return self.pictures_path.value.strip()

    @property
    def _uploads(self) -> Path:
        return self.folder / "uploads"

    def _keep_uploads(self) -> None:
        """Into files: so that a restarted kernel and the command line find them too."""
        for item in self.upload.value:
            self._uploads.mkdir(parents=True, exist_ok=True)
            name = re.sub(r'[\\/:*?"<>|\x00-\x1f]+', "_", str(item["name"])).lstrip(".") or "picture"
            (self._uploads / name).write_bytes(bytes(item["content"]))
        if self.upload.value:
            self.status.say(f"{len(self.upload.value)} pictures uploaded to {self._uploads}.")

    def _sync_fields(self) -> None:
        self.weights_path.layout.display = "" if self.weights.value == OTHER else "none"
        self.pictures_path.layout.display = "" if self.pictures.value == "folder or file" else "none"
        self.upload.layout.display = "" if self.pictures.value == "upload" else "none"
        self._sync_code()

    def _sync_code(self) -> None:
        try:
            request = self.request()
        except yolov9kit.KitError as error:
            self.code.set(f"# {error}", f"# {error}")
            return
        thresholds = {"min_score": round(self.canvas.min_score, 4), "max_iou": round(self.canvas.max_iou, 4)}
        hidden = set(self.canvas.hidden_classes)
        shown = [i for i in range(len(self.canvas.names)) if i not in hidden] if hidden else None
        self.code.set(
            python_code(request, thresholds, shown, self.canvas.agnostic),
            command_line(request, thresholds, shown, self.canvas.agnostic),
        )

    # ------------------------------------------------------------------------------------ running

    def run(self) -> None:
        """Start detecting beside the kernel; ``job.wait()`` waits for the end."""
        if self.job is not None and self.job.running:
            return
        try:
            request = self.request()
        except yolov9kit.KitError as error:
            self.status.complain(error)
            return
        self.start.disabled, self.stop.disabled = True, False
        self.progress.value, self.progress.bar_style = 0, ""
        self.canvas.show([])
        if request.weights == UNTRAINED and self.canvas.min_score == yolov9kit.DetectConfig().min_score:
            self.canvas.min_score = UNTRAINED_SCORE
        self.status.say("Loading the weights…")
        self._run = _Progress(self)
        self.job = Job(self._pages(request, self._run), self._run.add, self._run.end)

    def _detector(self, weights: str, device: str, precision: str) -> Any:
        """Kept between runs: the same weights are not loaded twice."""
        key = (weights, device, precision)
        if key not in self._detectors:
            while len(self._detectors) >= 4:
                self._detectors.pop(next(iter(self._detectors))).close()
            source = yolov9kit.untrained(yolov9kit.SHAPE_NAMES) if weights == UNTRAINED else weights
            self._detectors[key] = yolov9kit.Detector(source, device, precision)
        return self._detectors[key]

    def _pages(self, request: Request, run: "_Progress") -> Generator[Page, None, None]:
        """Picture by picture: the first precision detects, the second, if any, looks at the same pixels."""
        detectors = [self._detector(request.weights, request.device, p) for p in request.precisions]
        labels = [d.runner.precision.name for d in detectors]
        source = yolov9kit.open_source(request.source)
        run.begin(source.total, detectors)
        settings = {"image_size": request.image_size, "keep_candidates": True}
        stream = detectors[0].stream(source, on_failure=run.failed, batch_size=request.batch_size, **settings)
        for picture, found in stream:
            sides = {labels[0]: found}
            for detector, label in zip(detectors[1:], labels[1:], strict=True):
                other = detector.detect(picture.pixels, **settings)[0]
                sides[label if label != labels[0] else f"{label} again"] = other
            yield Page(_title(found), _pixels(picture), sides)
            if found.frame is not None and run.done >= MAX_FRAMES:
                run.notes.append(f"stopped after {MAX_FRAMES} frames; `yolov9kit detect` does whole videos")
                return

    def static_html(self, summary: str) -> str:
        """The result as HTML without a kernel: what the run said, up to four pictures and the counts."""
        shown = min(len(self.canvas.pictures), 4)
        parts = [self.canvas.static_html(i, limit_px=480, png_bytes=30_000) for i in range(shown)]
        more = len(self.canvas.pictures) - shown
        rest = f"<p>… and {more} more pictures.</p>" if more else ""
        first, *lines = html.escape(summary).split("\n")
        told = "".join(f"<div>{line}</div>" for line in lines)
        return f"<details><summary>Static copy: {first}</summary>{told}{''.join(parts)}{rest}</details>"

    def _ipython_display_(self) -> None:
        self.copy.show_below(self)

    def close(self) -> None:
        """Stop and give everything back."""
        if self.job is not None:
            self.job.stop()
        self._detectors.clear()
        super().close()


class _Progress:
    """What one run has done so far, shown at most four times a second."""

    def __init__(self, panel: DetectPanel) -> None:
        self._panel = panel
        self._waiting: list[Page] = []
        self._start = self._last = time.monotonic()
        self.done = 0
        self.failures: list[str] = []
        self.notes: list[str] = []
        self._detectors: list[Any] = []
        self._network_ms: dict[str, list[float]] = {}

    def begin(self, total: int | None, detectors: list[Any]) -> None:
        self._panel.progress.max = total or 0
        self._detectors = detectors
        self._start = time.monotonic()

    def failed(self, item: Any) -> None:
        self.failures.append(item.error)

    def add(self, page: Page) -> None:
        self._waiting.append(page)
        self.done += 1
        for label, found in page.sides.items():
            self._network_ms.setdefault(label, []).append(found.timings.network_ms)
        if time.monotonic() - self._last >= UPDATE_S:
            self._flush()
            self._panel.status.say(f"{self.done} pictures, {self.done / self._spent:.1f} a second…")

    @property
    def _spent(self) -> float:
        return max(time.monotonic() - self._start, 1e-6)

    def _flush(self) -> None:
        if self._waiting:
            self._panel.canvas.extend(self._waiting)
            self._waiting = []
        self._panel.progress.value = self.done + len(self.failures)
        self._last = time.monotonic()

    def end(self, error: BaseException | None) -> None:
        panel = self._panel
        try:
            self._flush()
        except yolov9kit.KitError as problem:
            error = error or problem
        panel.start.disabled, panel.stop.disabled = False, True
        panel.progress.bar_style = "danger" if error or self.failures else "success"
        if error is not None:
            known = isinstance(error, yolov9kit.KitError)
            panel.status.complain(error if known else f"{type(error).__name__}: {error}")
            return
        if not self.done:
            panel.status.complain("\n".join(self.failures))
            return
        summary = self._summary()
        panel.copy.update(panel.static_html(summary))
        panel.status.say(summary)

    def _summary(self) -> str:
        job = self._panel.job
        verb = "stopped after" if job is not None and job.stopped else "done:"
        lines = [f"{verb} {self.done} pictures in {self._spent:.1f} s"]
        for detector, (label, times) in zip(self._detectors, self._network_ms.items(), strict=False):
            where = detector.runner.device.torch_name
            median = sorted(times)[len(times) // 2]
            lines.append(
                f"{detector.runner.precision.label.replace(detector.runner.precision.name, label, 1)}, "
                f"{detector.runner.mode.name} on {where}: "
                f"network {median:.1f} ms a picture, {detector.memory_mib:,.0f} MiB"
            )
        lines += self.notes
        if self.failures:
            lines.append(f"{len(self.failures)} pictures could not be read:")
            lines += self.failures[:5] + (["…"] if len(self.failures) > 5 else [])
        return "\n".join(lines)


# ---------------------------------------------------------------------------------------- parts without state


def python_code(
    request: Request, thresholds: dict[str, float], classes: list[int] | None, agnostic: bool
) -> str:
    """The Python that gives the same boxes."""
    settings = [f"image_size={request.image_size}", f"batch_size={request.batch_size}"]
    settings += [f"{name}={value}" for name, value in thresholds.items()]
    settings += [f"classes={classes}"] if classes is not None else []
    settings += ["agnostic=True"] if agnostic else []
    if request.weights == UNTRAINED:
        imports, weights = "Detector, untrained", f"untrained({list(yolov9kit.SHAPE_NAMES)})"
    else:
        imports, weights = "Detector", repr(request.weights)
    blocks = [f"from yolov9kit import {imports}\n"]
    for precision in request.precisions:
        blocks.append(
            f"detector = Detector({weights}, device={request.device!r}, precision={precision!r})\n"
            f"found = detector.detect({request.source!r}, {', '.join(settings)})\n"
            "for detections in found:\n    print(detections)\n"
        )
    return "\n".join(blocks)


def command_line(
    request: Request, thresholds: dict[str, float], classes: list[int] | None, agnostic: bool
) -> str:
    """The command that gives the same boxes."""
    if request.weights == UNTRAINED:
        return "# random weights exist in Python only: choose a weights file"
    import shlex

    lines = []
    for precision in request.precisions:
        words = ["yolov9kit", "detect", "--weights", request.weights, "--source", request.source]
        words += ["--img", str(request.image_size), "--batch", str(request.batch_size)]
        words += ["--conf", f"{thresholds['min_score']:g}", "--iou", f"{thresholds['max_iou']:g}"]
        words += ["--classes", *map(str, classes)] if classes is not None else []
        words += ["--agnostic"] if agnostic else []
        words += [
            "--device",
            request.device,
            "--precision",
            precision,
            "--json",
            f"detections-{precision}.json",
        ]
        lines.append(shlex.join(words))
    return "\n".join(lines)


def known_weights(folder: Path) -> list[tuple[str, str]]:
    """Weights files as (what a list says, path): a person's own, then the sample weights."""
    own = {str(path): _short(path, folder) for path in yolov9kit.find_weights(folder)}
    try:
        sample = yolov9kit.sample_weights()
    except yolov9kit.UsageError:  # only the package is installed
        return [(label, path) for path, label in own.items()]
    others = [(label, path) for path, label in own.items() if Path(path).resolve() != sample.resolve()]
    return [*others, (SAMPLE, str(sample))]


def whole_number_of_32() -> w.BoundedIntText:
    """The input size, in steps that the network can take."""
    return w.BoundedIntText(
        value=640, min=32, max=4096, step=32, description="Image size", style=LABEL,
        layout=w.Layout(width="auto"), tooltip="input size in pixels, a multiple of 32",
    )  # fmt: skip


def _title(found: Any) -> str:
    name = Path(found.path).name or found.path
    return name if found.frame is None else f"{name}, frame {found.frame}"


def _pixels(picture: Any) -> Any:
    """A file is read again when its page is turned to; a frame is kept, compressed."""
    if picture.frame is None:
        return partial(yolov9kit.read_image, picture.path)
    data, _, scale = yolov9kit.encode_picture(picture.pixels, 100_000)
    assert scale == 1
    return partial(yolov9kit.read_image, data, name=picture.path)


def _short(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _has_camera() -> bool:
    return any(Path("/dev").glob("video*"))
