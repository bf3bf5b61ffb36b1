"""A run as it goes: curves, strips, what it finds on some pictures, and words. The run knows nothing of it."""

import html
import threading
import time
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as w

import yolov9kit
from widgets.canvas import DetectionCanvas, Page
from widgets.chart import Chart, Plot
from widgets.form import LABEL
from widgets.job import Job
from widgets.parts import StaticCopy, duration

UPDATE_S = 0.25
"""Pause between updates of the page: four a second."""

SMOOTHING = 0.9

CURVES = (
    Plot("loss", "Training loss a picture", series=("total", "box", "cls", "dfl"), minimum=0),
    Plot(
        "scores",
        "AP on the validation pictures",
        series=("AP 50-95", "AP 50"),
        minimum=0,
        maximum=0.1,
        x_name="epoch",
    ),
    Plot(
        "val", "Validation loss a picture", series=("total", "box", "cls", "dfl"), minimum=0, x_name="epoch"
    ),
    Plot("rate", "Learning rate", series=("learning rate",), minimum=0),
    Plot("speed", "Pictures a second", series=("pictures/s",), minimum=0),
    Plot("waiting", "Time spent waiting for pictures", unit="%", series=("waiting",), minimum=0, maximum=100),
)
_STEP_LINES = (
    ("loss", "total", "total", 1.0),
    ("loss", "box", "box", 1.0),
    ("loss", "cls", "cls", 1.0),
    ("loss", "dfl", "dfl", 1.0),
    ("speed", "pictures/s", "pictures_per_s", 1.0),
    ("waiting", "waiting", "waiting", 100.0),
)
_EPOCH_LINES = (
    ("scores", "AP 50-95", "ap"),
    ("scores", "AP 50", "ap50"),
    ("val", "total", "val_total"),
    ("val", "box", "val_box"),
    ("val", "cls", "val_cls"),
    ("val", "dfl", "val_dfl"),
)
STRIPS = (
    Plot("gpu_percent", "GPU busy", "%", minimum=0, maximum=100, kind="strip", height=70),
    Plot("gpu_memory_mib", "GPU memory", "MiB", minimum=0, kind="strip", height=70),
    Plot("power_w", "GPU power", "W", minimum=0, kind="strip", height=70),
    Plot("temperature_c", "GPU temperature", "°C", minimum=0, kind="strip", height=70),
    Plot("cpu_percent", "CPU", "%", minimum=0, maximum=100, kind="strip", height=70),
    Plot("ram_process_mib", "RAM of the run", "MiB", minimum=0, kind="strip", height=70),
)
"""Each is named after the telemetry that it shows."""

ALWAYS = ("cpu_percent", "ram_process_mib")


class RunView(w.VBox):
    """Follows a run from its first report on: a handle is given here or to ``show``, also that of an ended run."""

    def __init__(self, run: Any = None) -> None:
        self.run: Any = None
        self._lock = threading.RLock()  # the smoothing is moved while the thread that follows draws
        self.curves = yolov9kit.Curves()
        self.job: Job | None = None
        self.copy = StaticCopy()
        self.words = w.HTML().add_class("yk-run-words")
        self.progress = w.FloatProgress(min=0, max=1, layout=w.Layout(width="100%", height="14px"))
        self.smoothing = w.FloatSlider(
            value=SMOOTHING, min=0, max=0.99, step=0.01, description="Smoothing", style=LABEL,
            tooltip="weight of what was before; the thin line is what was reported", continuous_update=False,
            layout=w.Layout(width="320px"),
        )  # fmt: skip
        self.smoothing.observe(lambda _: self._draw(everything=True), "value")
        self.chart = Chart(CURVES)
        self.strips: Chart | None = None  # made when it is known what there is to show
        self.strips_box, self.strips_note = w.VBox(), w.HTML()
        self.canvas = DetectionCanvas(min_score=0.25)
        self.canvas.layout.display = "none"  # until there are pictures
        self.canvas_title = w.HTML()
        self._sampler: Any = None
        self._strips: list[Plot] = []
        self._sampled = 0
        self._examples_epoch = 0
        self._drawn: tuple[int, int] = (-1, -1)
        self._marked = 0
        self._copied: Any = None
        self.on_change: Any = None
        super().__init__(
            [
                self.words, self.progress, self.smoothing, self.chart, self.strips_note, self.strips_box,
                self.canvas_title, self.canvas,
            ]
        )  # fmt: skip
        if run is not None:
            self.show(run)

    # ------------------------------------------------------------------------------------ following

    def show(self, run: Any) -> None:
        """Follow this run instead of the one before."""
        self.leave()
        self.run = run
        self.curves = yolov9kit.Curves()
        self._drawn, self._marked, self._examples_epoch, self._copied = (-1, -1), 0, 0, None
        self.chart.clear()
        self.canvas.show([])
        self.canvas.layout.display, self.canvas_title.value = "none", ""
        self.job = Job(self._ticks(run), lambda _: None, self._ended)

    def leave(self) -> None:
        """Stop looking; the run goes on."""
        if self.job is not None:
            self.job.stop()
            self.job.wait(10)
            self.job = None
        if self._sampler is not None:
            self._sampler.stop()
            self._sampler = None
        if self.strips is not None:
            self.strips_box.children, self.strips_note.value = (), ""
            self.strips.close()
            self.strips = None

    def close(self) -> None:
        self.leave()
        self.chart.close()
        self.canvas.close()
        super().close()

    def _ticks(self, run: Any) -> Generator[None, None, None]:
        last = ""
        while True:
            began = time.monotonic()
            state = run.state  # before the reports: an end that is seen has all its reports there
            with self._lock:
                changed = self.curves.update(run.folder)
            if self._sampler is None and state in ("running", "paused") and self.curves.start is not None:
                self._start_sampling(run)
            self._draw()
            self._draw_strips()
            self._draw_examples(run)
            if changed or state != last:
                self._say(run, state)
            if state != last and self.on_change is not None:
                self.on_change(state)
            last = state
            if state in yolov9kit.RUN_ENDED:
                return
            yield
            time.sleep(max(UPDATE_S - (time.monotonic() - began), 0.02))

    def _ended(self, error: BaseException | None) -> None:
        if self._sampler is not None:
            self._sampler.stop()
        if error is not None:
            self.words.value = f"<p><strong>Problem:</strong> {html.escape(str(error))}</p>"
            if self.on_change is not None:
                self.on_change("unknown")

    # ------------------------------------------------------------------------------------ drawing

    def _draw(self, everything: bool = False) -> None:
        with self._lock:
            self._set_lines(everything)
        self.chart.flush()

    def _set_lines(self, everything: bool) -> None:
        curves = self.curves
        step, evaluated = curves.step, curves.evaluated
        if everything or step != self._drawn[0]:
            for key, series, name, factor in _STEP_LINES:
                line = curves.line(name, self.smoothing.value)
                self.chart.set(key, series, line.x, line.y * factor, raw=line.raw * factor)
            for at in curves.resumed[self._marked :]:
                self.chart.mark("loss", at, "resumed")
            self._marked = len(curves.resumed)
            line = curves.line("learning_rate")
            self.chart.set("rate", "learning rate", line.x, line.y)
        if everything or evaluated != self._drawn[1]:
            for key, series, name in _EPOCH_LINES:
                line = curves.line(name)
                self.chart.set(key, series, line.x, line.y)
        self._drawn = step, evaluated

    def _start_sampling(self, run: Any) -> None:
        start = self.curves.start
        assert start is not None
        device = str(start["device"]).split()[0]
        self._sampler = yolov9kit.Sampler(device, run.pid, uuid=start.get("device_uuid")).start()
        self._sampled = 0

    def _draw_strips(self) -> None:
        if self._sampler is None:
            return
        samples, self._sampled = self._sampler.since(self._sampled)
        if not samples:
            return
        if self.strips is None:
            missing = self._sampler.facts.missing
            # what has no value yet, as the processor's load before its second reading, may have one later
            self._strips = [plot for plot in STRIPS if plot.key not in missing or plot.key in ALWAYS]
            self.strips = Chart(self._strips, min_width=200)
            self.strips_box.children = [self.strips]
            self.strips_note.value = f"<small>{html.escape(about_strips(self._sampler.facts))}</small>"
        for plot in self._strips:
            if plot.key not in self._sampler.facts.missing:
                self.strips.append(plot.key, "value", *yolov9kit.telemetry_series(samples, plot.key))
        self.strips.flush()

    def _draw_examples(self, run: Any) -> None:
        if self.curves.evaluated == self._examples_epoch:
            return
        epoch, examples = yolov9kit.read_examples(run.folder)
        if not examples:
            return
        self._examples_epoch = self.curves.evaluated
        page = self.canvas.page
        pages = [
            Page(e.path.name, partial(yolov9kit.read_image, e.path), {"truth": e.truth, "found": e.found})
            for e in examples
        ]
        self.canvas.layout.display = ""
        self.canvas.show(pages)
        self.canvas.page = min(page, len(pages) - 1)
        self.canvas_title.value = (
            f"<b>Validation pictures after epoch {epoch}</b>: truth beside what was found"
        )

    def _say(self, run: Any, state: str) -> None:
        curves, total = self.curves, self.curves.total_steps
        self.progress.value = curves.step / total if total else 0.0
        self.words.value = run_html(run, state, curves)
        worth_keeping = (state in yolov9kit.RUN_ENDED, curves.evaluated)
        if worth_keeping != self._copied:  # at each evaluation and at the end: it is large for a message
            self._copied = worth_keeping
            self.copy.update(self.static_html(run, state))

    def static_html(self, run: Any, state: str) -> str:
        """The run as HTML that needs no kernel: the words and the curves."""
        return (
            f"<details><summary>Static copy: run {html.escape(str(run.folder.name))}</summary>"
            f"{run_html(run, state, self.curves)}{self.chart.static_svg()}</details>"
        )

    def _ipython_display_(self) -> None:
        self.copy.show_below(self)


def about_strips(facts: Any) -> str:
    """What the strips show, and what they cannot show, in words."""
    words = [f"{facts.device}: {facts.name}."] if facts.name else []
    shown = [plot for plot in STRIPS if plot.key not in facts.missing]
    if any(plot.key == "gpu_percent" for plot in shown):
        words.append(f"GPU busy is the {yolov9kit.UTILISATION}.")
    for reason in dict.fromkeys(facts.missing.get(plot.key) for plot in STRIPS if plot.key not in ALWAYS):
        names = [plot.title for plot in STRIPS if reason and facts.missing.get(plot.key) == reason]
        words += [f"{', '.join(names)}: not shown, {reason}."] if names else []
    return " ".join([*words, "CPU is the whole machine's, RAM that of all processes of the run."])


def run_html(run: Any, state: str, curves: Any) -> str:
    """How a run stands, in words."""
    rows = [f"<b>{html.escape(run.folder.name)}</b>: {_state_words(run, state)}"]
    if curves.start is not None:
        start = curves.start
        epochs = start["config"]["epochs"]
        rows.append(
            f"epoch {min(curves.epoch, epochs)} of {epochs}, step {curves.step:,} of {start['total_steps']:,}"
        )
        left = curves.seconds_left()
        if left is not None and state == "running":
            rows.append(f"about {duration(left)} left")
    if curves.ready is not None and state == "running":
        rows.append(f"{curves.ready} batches ready")
    if curves.best is not None:
        ap, epoch = curves.best
        rows.append(f"best AP 50-95 so far {ap:.3f} after epoch {epoch}")
    words = " · ".join(rows)
    for step, problem in curves.problems[-3:]:
        words += f'<div class="yk-status yk-error">step {step} was not applied: {html.escape(problem)}</div>'
    if curves.start is not None:
        start = curves.start
        facts = [
            start["device"],
            start["precision"],
            start["optimizer"],
            f"batch {start['batch']}",
            start["mode"],
        ]
        notes = "".join(f"<div>{html.escape(str(note))}</div>" for note in start["notes"])
        words += f"<div><small>{html.escape('; '.join(map(str, facts)))}</small></div>{notes}"
    return f"<div>{words}</div>"  # not read aloud: it changes four times a second


def _state_words(run: Any, state: str) -> str:
    if state in yolov9kit.RUN_ENDED and run.last_words:
        return html.escape(run.last_words)
    return {"starting": "starting: data is checked, the model is built"}.get(state, state)


def title_of(path: Path) -> str:
    """A path as short as a list can show it."""
    return str(path) if len(str(path)) < 50 else f"…{str(path)[-48:]}"
