"""How fast these weights run on this machine, by precision and mode, and what each costs in accuracy."""

import html
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import ipywidgets as w

import yolov9kit
from widgets.detect_panel import OTHER, UNTRAINED, UPDATE_S, known_weights
from widgets.form import LABEL, choice, knobs, settings_of, text
from widgets.job import Job
from widgets.offers import MODES, PRECISIONS, offers_of
from widgets.parts import STYLE, Choices, CodeView, StaticCopy, Status, answers_at_once, duration
from widgets.speed_table import MEASURES, remarks_html, speed_html, times_faster, winners

TICKED = ("fp32", "bf16", "eager", "auto")
"""At first: few rows, and none that takes a minute to make ready."""

QUICK = {"warm_up": 20, "pictures": 8, "timed_pictures": 8, "floor": False}
"""What a look takes at first. The library's own defaults are for numbers to be kept."""

ROW_SECONDS = 2.0
MORE = ("warm_up", "runs", "pictures", "timed_pictures", "source", "data", "split", "floor")
"""Settings that stand under "More settings"."""

TICKS_STYLE = """<style>
.yk-ticks { flex-flow: row nowrap; align-items: baseline; gap: 0 8px; }
.yk-ticks > .widget-label { flex: none; width: 92px; display: flex; justify-content: flex-end; }
.yk-ticks .yk-row { gap: 0 18px; }
.yk-ticks .widget-checkbox { width: auto; }
.yk-reasons { margin-left: 100px; line-height: 1.45; }
.yk-reasons ul { margin: 2px 0 4px; }
</style>"""


class SpeedPanel(w.VBox):
    """A benchmark: choices above, bars that come as the rows are done below.

    Args:
        folder: where weights are looked for.
        state_file: remembers the choices over a kernel restart; None remembers nothing.
        benchmark: what measures, called as ``yolov9kit.run_benchmark``, which it is where none is given.
    """

    def __init__(
        self,
        folder: str | Path = ".",
        state_file: str | Path | None = "speed_state.json",
        benchmark: Callable[..., Generator[Any, None, None]] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.job: Job | None = None
        self._run: _Measuring | None = None
        self._benchmark = yolov9kit.run_benchmark if benchmark is None else benchmark
        self.copy, self.status, self.code = StaticCopy(), Status(), CodeView()
        self._build_controls()
        self.start = w.Button(description="Measure", button_style="primary", tooltip="Time each combination")
        self.stop = w.Button(description="Stop", disabled=True, tooltip="End; rows that are done are kept")
        self.start.on_click(lambda _: self.run())
        self.stop.on_click(lambda _: self.stop_run())
        self.progress = w.IntProgress(description="Rows", layout=w.Layout(width="auto", flex="1 1 240px"))
        self.view = w.HTML()
        self.choices = Choices(None if state_file is None else Path(state_file), self.controls)
        for control in self.controls.values():
            control.observe(lambda _: self._sync(), "value")
        self.device.observe(lambda _: self._offer(), "value")
        self.measure.observe(lambda _: self._draw(), "value")
        super().__init__(self._laid_out())
        self.add_class("yk-panel").add_class("yk-speed-panel")
        answers_at_once(*self.controls.values(), self.start, self.stop, self.code.button)
        self._offer()
        self._sync()
        self.status.say(self.choices.problem or "Choose what to compare, then press Measure.")

    # ------------------------------------------------------------------------------------ controls

    def _build_controls(self) -> None:
        model = yolov9kit.BenchmarkConfig
        known = known_weights(self.folder)
        self.weights = choice("Weights", [*known, ("random weights", UNTRAINED), (OTHER, OTHER)])
        self.weights.value = known[-1][1] if known else UNTRAINED  # the sample weights, where they are
        self.weights_path = text("File", "path of a .pt or .safetensors file")
        devices = yolov9kit.available_devices()
        labels = [(f"{d.torch_name} ({d.label})", d.torch_name) for d in devices]
        self.device = choice("Device", [("auto", "auto"), *labels])
        usual = "640" if len(devices) > 1 else "320"
        self.sizes = text("Image sizes", "pixels, such as 320, 640", value=usual)
        self.batches = text("Batch sizes", "such as 1, 16", value="1")
        self.seconds = w.BoundedFloatText(
            value=ROW_SECONDS, min=0.1, max=3600, step=0.5, description="Row seconds", style=LABEL,
            layout=w.Layout(width="auto"), tooltip=model.model_fields["seconds"].description,
        )  # fmt: skip
        self.precisions = {name: _tick(name) for name in PRECISIONS}
        self.modes = {name: _tick(name) for name in MODES}
        self.more = knobs(model, MORE)
        for name, value in QUICK.items():
            self.more[name].value = value
        self.reasons = w.HTML()
        self.measure = choice("Bars show", [(one.name, key) for key, one in MEASURES.items()])
        self.fields = {
            "weights": self.weights,
            "weights_path": self.weights_path,
            "device": self.device,
            "image_sizes": self.sizes,
            "batch_sizes": self.batches,
            "seconds": self.seconds,
        }
        self.controls = {**self.fields, **self.precisions, **self.modes, **self.more, "measure": self.measure}

    def _laid_out(self) -> list[w.Widget]:
        ticks = [
            w.Box([w.Label(name), w.Box([*boxes.values()]).add_class("yk-row")]).add_class("yk-ticks")
            for name, boxes in (("Precisions", self.precisions), ("Modes", self.modes))
        ]
        more = w.Accordion([w.Box([*self.more.values()]).add_class("yk-fields")], titles=["More settings"])
        actions = w.Box([self.start, self.stop, self.progress]).add_class("yk-row")
        fields = w.Box([*self.fields.values()]).add_class("yk-fields")
        shown = w.Box([self.measure]).add_class("yk-fields")
        return [w.HTML(STYLE + TICKS_STYLE), fields, *ticks, self.reasons, more, actions, self.status, self.code,
                shown, self.view]  # fmt: skip

    def _offer(self) -> None:
        """Say at each precision and mode what the chosen device makes of it."""
        offers = offers_of(self.device.value)
        for name, tick in (self.precisions | self.modes).items():
            tick.description = offers.labels[name]
        items = "".join(f"<li>{html.escape(reason)}</li>" for reason in offers.reasons)
        self.reasons.value = (
            '<details class="yk-reasons"><summary>What this device can and cannot do</summary>'
            f"<ul>{items}</ul></details>"
        )

    # ------------------------------------------------------------------------------------ what is asked for

    def weights_file(self) -> str:
        """The chosen file, or UNTRAINED. Raises UsageError where none is named."""
        weights = self.weights_path.value.strip() if self.weights.value == OTHER else self.weights.value
        if not weights:
            raise yolov9kit.UsageError("Name a weights file.")
        return str(weights)

    def settings(self) -> dict[str, Any]:
        """The settings that differ from the defaults, checked, as ``BenchmarkConfig`` has them.

        Raises:
            UsageError: nothing ticked, no size named, or a value that the config refuses.
        """
        model = yolov9kit.BenchmarkConfig
        found = settings_of(
            model, {name: self.fields[name] for name in ("device", "image_sizes", "batch_sizes")}
        )
        found["seconds"] = self.seconds.value
        found["precisions"] = [name for name, tick in self.precisions.items() if tick.value]
        found["modes"] = [name for name, tick in self.modes.items() if tick.value]
        for name, what in (
            ("precisions", "precision"),
            ("modes", "mode"),
            ("image_sizes", "image size"),
            ("batch_sizes", "batch size"),
        ):
            if not found[name]:
                raise yolov9kit.UsageError(f"Choose at least one {what}.")
        found |= settings_of(model, self.more)
        checked = model(**found).model_dump()
        return {name: checked[name] for name in found if checked[name] != model.model_fields[name].default}

    def _sync(self) -> None:
        self.weights_path.layout.display = "" if self.weights.value == OTHER else "none"
        try:
            weights, settings = self.weights_file(), self.settings()
        except yolov9kit.KitError as error:
            self.code.set(f"# {error}", f"# {error}")
            return
        self.code.set(python_code(weights, settings), command_line(weights, settings))

    # ------------------------------------------------------------------------------------ running

    def run(self) -> None:
        """Start measuring beside the kernel; ``job.wait()`` waits for the end."""
        if self.job is not None and self.job.running:
            return
        try:
            weights, config = self.weights_file(), yolov9kit.BenchmarkConfig(**self.settings())
        except yolov9kit.KitError as error:
            self.status.complain(error)
            return
        self.start.disabled, self.stop.disabled = True, False
        self.progress.value, self.progress.bar_style = 0, ""
        self.view.value = ""
        self.status.say("Loading the weights, and a few runs to tell how long it will take…")
        self._run = _Measuring(self)
        self.job = Job(self._reports(weights, config, self._run), self._run.add, self._run.end)

    def stop_run(self) -> None:
        """End what goes on; the rows that are done stay."""
        if self.job is not None and self.job.running and self._run is not None:
            self._run.stopping = True
            self.job.stop()
            self.status.say("Stopping after what is being done now…")

    def _reports(self, weights: str, config: Any, run: "_Measuring") -> Generator[Any, None, None]:
        source = yolov9kit.untrained(yolov9kit.SHAPE_NAMES) if weights == UNTRAINED else weights
        try:
            yield from self._benchmark(source, config, on_progress=run.stage)
        except _StoppedError:
            return

    @property
    def report(self) -> Any:
        """The rows of the last benchmark, as a ``BenchmarkReport``; None before there is a plan."""
        return None if self._run is None else self._run.report()

    def _draw(self) -> None:
        run = self._run
        if run is not None and run.plan is not None:
            going = None if run.ended else run.now
            self.view.value = speed_html(run.plan, tuple(run.rows), MEASURES[self.measure.value], going)

    def static_html(self, summary: str) -> str:
        """The result as HTML without a kernel: what was done, the bars, what the numbers mean."""
        first, *lines = html.escape(summary).split("\n")
        told = "".join(f"<div>{line}</div>" for line in lines)
        return (
            '<details style="font: 13px/1.45 system-ui, sans-serif">'
            f"<summary>Static copy: {first}</summary>{told}{self.view.value}</details>"
        )

    def _ipython_display_(self) -> None:
        self.copy.show_below(self)

    def close(self) -> None:
        """Stop and give everything back."""
        self.stop_run()
        super().close()


class _StoppedError(Exception):
    """Raised where the benchmark says what it does next: a row that is begun is not waited for."""


class _Measuring:
    """One benchmark as it goes. What it is told comes from the job's thread."""

    def __init__(self, panel: SpeedPanel) -> None:
        self._panel = panel
        self._start = self._last = time.monotonic()
        self.plan: Any = None
        self.rows: list[Any] = []
        self.now = ""
        self.stopping = self.ended = False
        self._seconds = 0.0

    def stage(self, what: str, done: int, total: int) -> None:
        """What is done now: of row ``done + 1`` of ``total``, and before there is a plan of ``total`` pictures."""
        if self.stopping:
            raise _StoppedError
        if self.plan is None:
            if time.monotonic() - self._last >= UPDATE_S:
                self._last = time.monotonic()
                self._panel.status.say(f"{what}: {done} of {total}…")
            return
        run = self.plan.combinations[done]
        self.now = what.removeprefix(f"{run}: ")
        gone = duration(time.monotonic() - self._start)
        planned = duration(self.plan.seconds)
        self._panel.status.say(f"row {done + 1} of {total}, {gone} of about {planned}\n{run}: {self.now}…")
        self._panel._draw()

    def add(self, report: Any) -> None:
        if self.plan is None:
            self.plan, self._start = report, time.monotonic()
            self._panel.progress.max = len(report.combinations)
            self._panel.status.say(f"{self._planned()} {report.model} on {report.device.label}.")
        elif not isinstance(report, yolov9kit.BenchmarkReport):
            self.rows.append(report)
            self._panel.progress.value = len(self.rows)
        self._panel._draw()

    def _planned(self) -> str:
        count = len(self.plan.combinations)
        return f"{_rows(count)}, about {duration(self.plan.seconds)}, were all as slow as fp32 eager."

    def report(self) -> Any:
        if self.plan is None:
            return None
        return yolov9kit.BenchmarkReport(self.plan, tuple(self.rows), self._seconds)

    def end(self, error: BaseException | None) -> None:
        self.ended, self._seconds = True, time.monotonic() - self._start
        panel = self._panel
        panel.start.disabled, panel.stop.disabled = False, True
        partly = self.stopping or any(row.error for row in self.rows)
        panel.progress.bar_style = "danger" if error is not None else "warning" if partly else "success"
        panel._draw()
        if self.plan is not None:
            panel.view.value += remarks_html(self.report())
            panel.copy.update(panel.static_html(self._summary()))
        if error is not None:
            known = isinstance(error, yolov9kit.KitError)
            panel.status.complain(error if known else f"{type(error).__name__}: {error}")
        else:
            panel.status.say(
                self._summary() if self.plan is not None else "Stopped before anything was timed."
            )

    def _summary(self) -> str:
        planned, done = len(self.plan.combinations), len(self.rows)
        whole = f"done: {_rows(done)}" if done == planned else f"stopped after {done} of {_rows(planned)}"
        lines = [f"{whole} in {duration(self._seconds)}; {self.plan.model} on {self.plan.device.label}"]
        measure = MEASURES["network"]
        for number in sorted(winners(self.rows, measure)):
            row = self.rows[number]
            times = times_faster(row, self.rows, measure)
            than = "" if times is None else f", {times:.2f} times fp32 eager"
            lines.append(f"★ {row.combination}: {row.pictures_per_s:,.1f} pictures/s{than}, no box lost")
        failed = sum(bool(row.error) for row in self.rows)
        lines += [f"{_rows(failed)} could not be measured: see below"] if failed else []
        return "\n".join(lines)


# ---------------------------------------------------------------------------------------- parts without state


def _rows(count: int) -> str:
    return f"{count} row{'s' * (count != 1)}"


def _tick(name: str) -> w.Checkbox:
    return w.Checkbox(value=name in TICKED, description=name, indent=False, layout=w.Layout(width="auto"))


def python_code(weights: str, settings: dict[str, Any]) -> str:
    """The Python that measures the same."""
    untrained = weights == UNTRAINED
    source = f"untrained({list(yolov9kit.SHAPE_NAMES)})" if untrained else repr(weights)
    names = "BenchmarkConfig, run_benchmark" + (", untrained" if untrained else "")
    arguments = "".join(f"    {name}={value!r},\n" for name, value in settings.items())
    return (
        f"from yolov9kit import {names}\n\n"
        f"config = BenchmarkConfig(\n{arguments})\n"
        f"*_, report = run_benchmark({source}, config)\n"
        "for row in report.rows:\n"
        "    print(row.combination, row.error or row.pictures_per_s, row.difference)\n"
    )


_FLAGS = {"image_sizes": "--img", "batch_sizes": "--batch", "precisions": "--precision", "modes": "--mode"}


def command_line(weights: str, settings: dict[str, Any]) -> str:
    """The command that measures the same."""
    if weights == UNTRAINED:
        return "# random weights exist in Python only: choose a weights file"
    import shlex

    words = ["yolov9kit", "benchmark", "--weights", weights]
    for name, value in settings.items():
        if name == "floor":
            words.append("--no-floor")
            continue
        values = value if isinstance(value, tuple) else (value,)
        words += [_FLAGS.get(name, f"--{name.replace('_', '-')}"), *(f"{one}" for one in values)]
    return shlex.join(words)
