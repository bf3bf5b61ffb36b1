"""A data set to look into: what is wrong with it, its pictures by any filter, what training sees, doubtful labels."""

import shlex
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets as w
import numpy as np

import yolov9kit
from widgets.data_copy import findings_html, static_html
from widgets.data_facets import chips_of, sections_of, toggled
from widgets.data_pictures import DataPictures
from widgets.data_sets import known_data
from widgets.data_views import ErrorsView, TrainingView, aspect_of
from widgets.detect_panel import OTHER, whole_number_of_32
from widgets.facets import Facets
from widgets.form import choice, text
from widgets.grid import PictureGrid
from widgets.parts import STYLE, Choices, CodeView, StaticCopy, Status, answers_at_once
from widgets.task import Progress, Task

DATA, TRAINING, ERRORS = "data", "training", "errors"
VIEWS = (("Pictures and labels", DATA), ("What training sees", TRAINING), ("Label errors", ERRORS))
SORTS = (
    ("by name", "name"),
    ("most boxes first", "boxes"),
    ("most findings first", "findings"),
    ("largest first", "size"),
)

PANEL_STYLE = """<style>
.yk-data-body { display: grid; grid-template-columns: minmax(220px, 270px) minmax(0, 1fr); gap: 6px 18px;
  align-items: start; overflow: visible; }
.yk-data-body.yk-alone { grid-template-columns: minmax(0, 1fr); }
.yk-data-body > * { min-width: 0; margin: 0; }
.yk-data .yk-views { margin: 8px 0 2px; padding-top: 10px; width: 100%;
  border-top: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .3)); }
.yk-data .yk-views .widget-toggle-button { width: auto; padding: 0 14px; }
.yk-tools { display: flex; flex-flow: row wrap; align-items: center; gap: 2px 12px; overflow: visible; }
.yk-tools > .widget-inline-hbox { flex: 1 1 220px; max-width: 400px; }
.yk-tools > button { flex: none; width: auto; }
.yk-data .yk-caption { line-height: 1.45; }
@media (max-width: 760px) { .yk-data-body { grid-template-columns: minmax(0, 1fr); } }
</style>"""


class DatasetPanel(w.VBox):
    """A data set: findings, filters, pictures.

    Args:
        folder: where data sets and weights are looked for, and lists are written.
        state_file: remembers the choices over a kernel restart; None remembers nothing.
        diagnose: what looks for faults, called as ``yolov9kit.diagnose``, which it is where none is given.
        train_settings: gives the settings of a run, as ``TrainPanel.settings`` does; None: there is no such panel.
    """

    def __init__(
        self,
        folder: str | Path = ".",
        state_file: str | Path | None = "data_state.json",
        diagnose: Callable[..., Any] | None = None,
        train_settings: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._diagnose = yolov9kit.diagnose if diagnose is None else diagnose
        self._lock = threading.RLock()  # a job shows what it found while a filter is pressed
        self.diagnosis: Any = None
        self.explorer: Any = None
        self.filter = yolov9kit.ExploreFilter()
        self.copy, self.status, self.code = StaticCopy(), Status(), CodeView()
        self._build_controls(train_settings)
        self.facets, self.grid = Facets(self.pick), PictureGrid(self.clear)
        starts = [self.start, self.training.button, self.errors.button]
        self.task = Task(self.status, starts)
        self.said, self.caption = w.HTML(), w.HTML().add_class("yk-caption")
        self.choices = Choices(None if state_file is None else Path(state_file), self.controls)
        for control in self.controls.values():
            control.observe(lambda _: self._sync(), "value")
        self.view.observe(lambda _: self.refresh(), "value")
        self.find.observe(lambda _: self._narrow(text=self.find.value), "value")
        self.sort.observe(lambda _: self._narrow(sort=self.sort.value), "value")
        super().__init__(self._laid_out())
        self.add_class("yk-panel").add_class("yk-data")
        answers_at_once(
            *self.controls.values(), self.find, self.write, self.code.button, self.facets, self.grid
        )
        self.refresh()
        self.status.say(self.choices.problem or "Choose a data set, then press Open.")

    # ------------------------------------------------------------------------------------ controls

    def _build_controls(self, train_settings: Callable[[], dict[str, Any]] | None) -> None:
        known = known_data(self.folder)
        self.data = choice("Data set", [*known, ("another", OTHER)], value=known[-1][1])  # the sample set
        self.data_path = text("Path", "data.yaml, annotation file or folder")
        self.image_size = whole_number_of_32()
        self.near = w.Checkbox(value=True, description="look for pictures that look alike", indent=False)
        self.view = w.ToggleButtons(options=VIEWS).add_class("yk-views")
        self.find = text("Find", "words of the file name")
        self.sort = choice("Order", SORTS)
        self.list_path = text("List", "new .txt file of the pictures shown")
        self.training = TrainingView(self.data_file, self.image_size, train_settings)
        self.errors = ErrorsView(self.folder, self.data_file, self.image_size, lambda: self.explorer)
        self.controls = {
            "data": self.data,
            "data_path": self.data_path,
            "image_size": self.image_size,
            "near": self.near,
            "view": self.view,
            "sort": self.sort,
            "list_path": self.list_path,
            **self.training.controls,
            **self.errors.controls,
        }
        self.start = _button(
            "Open", self.look, "Look at every picture and every label", button_style="primary"
        )
        self.write = _button(
            "Write list", self.write_list, "Write the paths of the pictures shown to the file"
        )
        self.training.button.on_click(
            lambda _: self._start("Making pictures as training does…", self.training)
        )
        self.errors.button.on_click(lambda _: self._start("Loading the weights…", self.errors))

    def _laid_out(self) -> list[w.Widget]:
        fields = w.Box([self.data, self.data_path, self.image_size, self.near]).add_class("yk-fields")
        actions = w.Box([self.start, self.task]).add_class("yk-row")
        self.task.layout.flex = "1 1 240px"
        tools = {
            DATA: [self.find, self.sort, self.list_path, self.write],
            TRAINING: self.training.tools,
            ERRORS: self.errors.tools,
        }
        self.tools = {name: w.Box(each).add_class("yk-tools") for name, each in tools.items()}
        self.body = w.Box([self.facets, self.grid]).add_class("yk-data-body")
        return [
            w.HTML(STYLE + PANEL_STYLE), fields, actions, self.status, self.said, self.code, self.view,
            *self.tools.values(), self.caption, self.body,
        ]  # fmt: skip

    def _sync(self) -> None:
        """The fields that are needed are there; the code says what they say."""
        self.data_path.layout.display = "" if self.data.value == OTHER else "none"
        other = self.errors.weights.value == OTHER
        self.errors.weights_path.layout.display = "" if other else "none"
        for name, box in self.tools.items():
            box.layout.display = "" if name == self.view.value else "none"
        try:
            self.code.set(*self._code())
        except yolov9kit.KitError as error:
            self.code.set(f"# {error}", f"# {error}")

    def _code(self) -> tuple[str, str]:
        other = self._other_view
        if other is not None:
            return other.code()
        data, settings = self.data_file(), self.doctor_settings()
        return python_code(data, settings, self.filter), command_line(data, settings)

    @property
    def _other_view(self) -> TrainingView | ErrorsView | None:
        """The view that is chosen, where it is not that of the pictures and labels."""
        return {TRAINING: self.training, ERRORS: self.errors}.get(self.view.value)

    # ------------------------------------------------------------------------------------ the data set

    def data_file(self) -> str:
        """The chosen data set. Raises UsageError where none is named."""
        data = self.data_path.value.strip() if self.data.value == OTHER else self.data.value
        if not data:
            raise yolov9kit.UsageError(
                "Name a data.yaml, another annotation file, or the folder that holds it."
            )
        return str(data)

    def doctor_settings(self) -> dict[str, Any]:
        """Those of ``DoctorConfig`` that differ from its defaults."""
        plain = yolov9kit.DoctorConfig()
        config = plain.changed(image_size=self.image_size.value, near_duplicates=self.near.value)
        return {
            name: value for name, value in config.model_dump().items() if value != plain.model_dump()[name]
        }

    def look(self) -> None:
        """Look at the data set beside the kernel; ``task.job.wait()`` waits for the end."""
        self.task.run("Looking at the data set…", self._look, self._show_opened)

    def _look(self, on_progress: Progress) -> tuple[Any, Any]:
        data = self.data_file()
        config = yolov9kit.DoctorConfig(**self.doctor_settings())
        diagnosis = self._diagnose(data, config, on_progress=on_progress)
        try:
            explorer = yolov9kit.Explorer.open(data, diagnosis=diagnosis, on_progress=on_progress)
        except yolov9kit.KitError:
            if diagnosis.ok:
                raise
            explorer = None  # there is no picture to look at, and the diagnosis says why
        return diagnosis, explorer

    def _show_opened(self, found: tuple[Any, Any]) -> str:
        with self._lock:
            self.diagnosis, self.explorer = found
            self.filter = yolov9kit.ExploreFilter(sort=self.sort.value)
            self.find.value = ""
            self.errors.forget()
            of_data = self.diagnosis.findings if self.explorer is None else self.explorer.data_findings
            self.said.value = findings_html(of_data, self._root)
            self.view.value = DATA
            self.refresh()
            words = summary_of(self.diagnosis)
            self.copy.update(self.static_html(words))
            return words

    def static_html(self, words: str) -> str:
        """The data set as HTML without a kernel."""
        pictures = None
        if self.explorer is not None:
            worst_first = self.explorer.select(yolov9kit.ExploreFilter(sort="findings"))
            pictures = DataPictures(self.explorer, worst_first, folder=self._root)
        return static_html(words, self.diagnosis, self.explorer, pictures)

    @property
    def _root(self) -> Path:
        data = Path(self.diagnosis.data)
        return data if data.is_dir() else data.parent

    # ------------------------------------------------------------------------------------ filters

    @property
    def selection(self) -> np.ndarray:
        """Numbers of the pictures that pass the filters."""
        return np.arange(0) if self.explorer is None else self.explorer.select(self.filter)

    def pick(self, section: str, key: str) -> None:
        """A line beside the pictures was pressed."""
        with self._lock:
            if section == "kinds":
                self.errors.pick(key)
            else:
                self.filter = toggled(self.filter, section, key)
            self.refresh()

    def clear(self, chip: str) -> None:
        """A filter is wanted gone; "": all of them."""
        section, _, key = chip.partition("/")
        with self._lock:
            if not section:
                self.errors.pick("")
                self.filter = yolov9kit.ExploreFilter(sort=self.sort.value, text=self.find.value)
            if section in ("", "text"):
                self.find.value = ""
                self.refresh()
            else:
                self.pick(section, key)

    def _narrow(self, **changes: Any) -> None:
        with self._lock:
            self.filter = replace(self.filter, **changes)
            self.refresh()

    def refresh(self) -> None:
        """Show what the view and the filters ask for."""
        with self._lock:
            self._sync()
            other = self._other_view
            sections = self._sections() if other is None else other.facets()
            self.facets.show(sections)
            self.facets.layout.display = "" if sections else "none"
            (self.body.remove_class if sections else self.body.add_class)("yk-alone")
            self.said.layout.display = "none" if other is not None else ""
            self.caption.value = "" if other is None else other.words()
            self.caption.layout.display = "none" if other is None else ""
            (self._show if other is None else other.show)(self.grid)

    def _sections(self) -> list[Any]:
        return [] if self.explorer is None else sections_of(self.explorer, self.filter, self.selection)

    def _show(self, grid: PictureGrid) -> None:
        if self.explorer is None:
            opened = self.diagnosis is not None
            grid.show(
                None, words="No picture could be opened." if opened else "Press Open to see the pictures."
            )
            return
        grid.show(
            DataPictures(self.explorer, self.selection, self.filter.codes, self._root),
            self.explorer.names,
            of=len(self.explorer),
            aspect=aspect_of(self.explorer),
            chips=chips_of(self.filter, self.explorer.names),
            words="No picture passes all filters.",
        )

    def write_list(self) -> None:
        """Write the paths of the pictures that pass the filters to the file that is named."""
        try:
            if self.explorer is None:
                raise yolov9kit.UsageError("Open a data set first.")
            if not self.list_path.value.strip():
                raise yolov9kit.UsageError("Name a new .txt file for the list.")
            selection = self.selection
            file = self.explorer.write_list(selection, self.folder / self.list_path.value.strip())
        except yolov9kit.KitError as error:
            self.status.complain(error)
        else:
            self.status.say(
                f"{len(selection):,} pictures listed in {file}. A data.yaml can name it as a split."
            )

    # ------------------------------------------------------------------------------------ other views

    def _start(self, words: str, view: TrainingView | ErrorsView) -> None:
        """Let a view do its work beside the kernel, and show it."""

        def show(result: Any) -> str:
            with self._lock:
                said = view.keep(result)
                self.refresh()
                return said

        self.task.run(words, view.work, show)

    def _ipython_display_(self) -> None:
        self.copy.show_below(self)

    def close(self) -> None:
        """Stop and give everything back."""
        self.task.stop()
        self.grid.close()
        self.facets.close()
        super().close()


# ---------------------------------------------------------------------------------------- parts without state


def _button(name: str, act: Callable[[], object], tooltip: str, **more: Any) -> w.Button:
    made = w.Button(description=name, tooltip=tooltip, **more)
    made.on_click(lambda _: act())
    return made


def summary_of(diagnosis: Any) -> str:
    """What a data set is, and how it stands."""
    pictures, boxes = sum(s.pictures for s in diagnosis.splits), sum(s.boxes for s in diagnosis.splits)
    splits = ", ".join(f"{s.split} {s.pictures:,}" for s in diagnosis.splits)
    classes = len(diagnosis.names)
    kind = f", {diagnosis.kind}" if diagnosis.kind else ""
    facts = (
        f"{diagnosis.data}{kind}: {pictures:,} pictures ({splits}), {boxes:,} boxes"
        if splits
        else f"{diagnosis.data}{kind}"
    )
    facts += f", {classes} class{'es' * (classes != 1)}" if classes else ""
    return f"{facts}\n{diagnosis.summary()}: {diagnosis.verdict}."


def python_code(data: str, settings: dict[str, Any], chosen: Any) -> str:
    """The Python that finds and selects the same."""
    names = "DoctorConfig, " * bool(settings) + "Explorer, ExploreFilter, diagnose"
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    config = f", DoctorConfig({arguments})" if settings else ""
    return (
        f"from yolov9kit import {names}\n\n"
        f"data = {data!r}\n"
        f"diagnosis = diagnose(data{config})\n"
        "print(diagnosis.summary())\n"
        "explorer = Explorer.open(data, diagnosis=diagnosis)\n"
        f"selection = explorer.select({chosen})\n"
        "for number in selection.tolist():\n"
        "    print(explorer.item(number).path)\n"
    )


def command_line(data: str, settings: dict[str, Any]) -> str:
    """The command that finds the same."""
    words = ["yolov9kit", "doctor", data]
    words += ["--img", str(settings["image_size"])] if "image_size" in settings else []
    words += [] if settings.get("near_duplicates", True) else ["--no-near"]
    return shlex.join(words)
