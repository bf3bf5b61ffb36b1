"""Runs found again: a table, curves over each other, two checkpoints on the same pictures, going on."""

import html
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ipywidgets as w

import yolov9kit
from widgets.canvas import DetectionCanvas, Page
from widgets.chart import Chart, Plot
from widgets.form import LABEL
from widgets.job import Job
from widgets.parts import STYLE, StaticCopy, Status, duration

MOST_CURVES = 6
"""Runs whose curves are drawn over each other: more cannot be told apart."""

MOST_PICTURES = 12


class RunsPanel(w.VBox):
    """The runs of a folder.

    Args:
        folder: that of the panels; runs lie in ``runs/train`` below it.
        open_in_detect: called with a weights file that is to be looked at.
        watch: called with a handle of a run that goes on.
    """

    def __init__(
        self,
        folder: str | Path = ".",
        open_in_detect: Callable[[Path], object] | None = None,
        watch: Callable[[Any], object] | None = None,
    ) -> None:
        self.project = Path(folder) / "runs" / "train"
        self.job: Job | None = None
        self._open, self._watch = open_in_detect, watch
        self._found: list[Any] = []
        self.copy, self.status = StaticCopy(), Status()
        self.list = w.SelectMultiple(
            description="Runs", rows=6, style=LABEL, layout=w.Layout(width="auto"),
            tooltip="several with Ctrl or Shift",
        )  # fmt: skip
        self.table = w.HTML().add_class("yk-code")
        self.chart_box = w.VBox()
        self.canvas = DetectionCanvas(min_score=0.25)
        self.canvas.layout.display = "none"  # until two runs are compared
        self.epochs = w.BoundedIntText(value=100, min=1, max=100_000, description="to epochs", style=LABEL)
        self._build_buttons()
        self.list.observe(lambda _: self._show(), "value")
        actions = [self.refresh_button, self.resume, self.extend, self.epochs, self.open_button, self.compare]
        super().__init__(
            [
                w.HTML(STYLE), self.list, w.Box(actions).add_class("yk-row"), self.status, self.table,
                self.chart_box, self.canvas,
            ]
        )  # fmt: skip
        self.add_class("yk-panel").add_class("yk-runs")
        self.refresh()

    def _build_buttons(self) -> None:
        def button(name: str, act: Callable[[], object], tooltip: str) -> w.Button:
            made = w.Button(description=name, tooltip=tooltip)
            made.on_click(lambda _: act())
            return made

        self.refresh_button = button("Refresh", self.refresh, "Read the folder of runs again")
        self.resume = button("Resume", self._resume, "Go on with an interrupted run, exactly")
        self.extend = button("Extend", self._extend, "Train a finished run longer, in a new folder")
        self.open_button = button("Open in Detect", self._open_best, "Look at the best weights on pictures")
        self.compare = button("Compare pictures", self.look, "Two runs' best weights on the same pictures")

    # ------------------------------------------------------------------------------------ the list

    def refresh(self) -> None:
        """Read the folder of runs again; the choice stays."""
        chosen = set(self.list.value)
        self._found = yolov9kit.runs(self.project)
        self.list.options = [(_line(one), str(one.folder)) for one in self._found]
        self.list.value = tuple(str(one.folder) for one in self._found if str(one.folder) in chosen)
        if not self._found:
            self.status.say(f"No runs in {self.project} yet: start one in Train.")
        elif not self.list.value:
            self.status.say("Choose runs: several with Ctrl or Shift.")
        self._show()

    def chosen(self) -> list[Any]:
        """The chosen runs, in the list's order."""
        return [one for one in self._found if str(one.folder) in self.list.value]

    def _show(self) -> None:
        chosen = self.chosen()
        self.resume.disabled = len(chosen) != 1 or chosen[0].state not in ("stopped", "failed", "lost")
        self.extend.disabled = len(chosen) != 1 or chosen[0].state != "finished"
        self.open_button.disabled = len(chosen) != 1 or self._open is None
        self.compare.disabled = len(chosen) != 2
        self.table.value = table_html(chosen or self._found)
        for child in self.chart_box.children:
            child.close()
        self.chart_box.children = [self._overlay(chosen[:MOST_CURVES])] if chosen else []
        svg = "".join(child.static_svg() for child in self.chart_box.children)
        self.copy.update(f"<details><summary>Static copy: runs</summary>{self.table.value}{svg}</details>")

    def _overlay(self, chosen: Sequence[Any]) -> Chart:
        names = [one.folder.name for one in chosen]
        chart = Chart(
            [
                Plot("ap", "AP 50-95 on the validation pictures", series=names, minimum=0, x_name="epoch"),
                Plot("val", "Validation loss a picture", series=names, minimum=0, x_name="epoch"),
                Plot("loss", "Training loss a picture", series=names, minimum=0),
            ]
        )
        for one, name in zip(chosen, names, strict=True):
            curves = yolov9kit.Curves()
            try:
                curves.update(one.folder)
            except yolov9kit.KitError as error:
                self.status.complain(error)
                continue
            for key, line in (("ap", "ap"), ("val", "val_total"), ("loss", "total")):
                series = curves.line(line, 0.9 if key == "loss" else 0.0)
                chart.set(key, name, series.x, series.y, raw=series.raw if key == "loss" else None)
        chart.flush()
        return chart

    # ------------------------------------------------------------------------------------ acting

    def _resume(self) -> None:
        self._go_on(lambda: yolov9kit.launch_resume(self.chosen()[0].folder))

    def _extend(self) -> None:
        self._go_on(lambda: yolov9kit.launch_extend(self.chosen()[0].folder, self.epochs.value))

    def _go_on(self, begin: Callable[[], Any]) -> None:
        try:
            run = begin()
        except yolov9kit.KitError as error:
            self.status.complain(error)
            return
        self.refresh()
        self.status.say(f"Going on in {run.folder}.")
        if self._watch is not None:
            self._watch(run)

    def _open_best(self) -> None:
        weights = best_weights(self.chosen()[0].folder)
        if weights is None:
            self.status.complain(f"{self.chosen()[0].folder}: has no weights yet")
        elif self._open is not None:
            self._open(weights)

    def look(self) -> None:
        """Detect with the best weights of the two chosen runs on the first one's validation pictures."""
        if self.job is not None and self.job.running:
            self.job.stop()
            return
        folders = [one.folder for one in self.chosen()]
        weights = [best_weights(folder) for folder in folders]
        if None in weights:
            self.status.complain(f"{folders[weights.index(None)]}: has no weights yet")
            return
        self.status.say("Loading the weights…")
        self.canvas.show([])
        self.canvas.layout.display = ""
        self.job = Job(self._pages(folders, weights), lambda page: self.canvas.extend([page]), self._looked)

    def _pages(self, folders: Sequence[Path], weights: Sequence[Path | None]) -> Generator[Page, None, None]:
        _, examples = yolov9kit.read_examples(folders[0])
        if not examples:
            raise yolov9kit.UsageError(
                f"{folders[0]}: was not evaluated yet, there are no pictures to compare on"
            )
        detectors = {
            folder.name: yolov9kit.Detector(path) for folder, path in zip(folders, weights, strict=True)
        }
        size = yolov9kit.TrainConfig.model_validate_json(
            (folders[0] / "config.json").read_text("utf-8")
        ).image_size
        for example in examples[:MOST_PICTURES]:
            pixels = yolov9kit.read_image(example.path)
            sides = {
                name: detector.detect(pixels, image_size=size, keep_candidates=True)[0]
                for name, detector in detectors.items()
            }
            self.status.say(f"{example.path.name}…")
            yield Page(example.path.name, partial(yolov9kit.read_image, example.path), sides)

    def _looked(self, error: BaseException | None) -> None:
        if error is None:
            self.status.say(f"{len(self.canvas.pictures)} validation pictures with both weights.")
        else:
            known = isinstance(error, yolov9kit.KitError)
            self.status.complain(error if known else f"{type(error).__name__}: {error}")

    def _ipython_display_(self) -> None:
        self.copy.show_below(self)

    def close(self) -> None:
        """Stop comparing and give everything back."""
        if self.job is not None:
            self.job.stop()
        for child in self.chart_box.children:
            child.close()
        self.canvas.close()
        super().close()


def best_weights(folder: Path) -> Path | None:
    """The best weights of a run, else the last; None where there are none yet."""
    paths = (folder / "weights" / f"{kind}.safetensors" for kind in ("best", "last"))
    return next((path for path in paths if path.is_file()), None)


def table_html(found: Sequence[Any]) -> str:
    """Runs as a table: how they stand, their best, and the settings in which they differ."""
    if not found:
        return ""
    differing = yolov9kit.setting_differences([one.folder for one in found])
    heads = ["run", "state", "best AP 50-95", "epochs", "time", "device", "precision", *differing]
    rows = [
        [
            one.folder.name,
            one.words[:80] if one.state in ("failed", "lost") else one.state,
            "none yet" if one.best_ap is None else f"{one.best_ap:.3f} (epoch {one.best_epoch})",
            f"{one.epochs} of {one.planned_epochs or '?'}",
            duration(one.seconds),
            one.device.split(",")[0],
            one.precision.split(",")[0],
            *(values[i] for values in differing.values()),
        ]
        for i, one in enumerate(found)
    ]
    head = "".join(f'<th scope="col">{html.escape(name.replace("_", " "))}</th>' for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in row) + "</tr>" for row in rows
    )
    return f'<div class="yk-table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _line(one: Any) -> str:
    best = "" if one.best_ap is None else f", best AP {one.best_ap:.3f}"
    return f"{one.folder.name}: {one.state}, {one.epochs} of {one.planned_epochs or '?'} epochs{best}"
