"""Start a run, watch it, change your mind: the training panel."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ipywidgets as w

import yolov9kit
from widgets.detect_panel import OTHER, known_weights
from widgets.form import LABEL, choice, knobs, settings_of, text, whole_number
from widgets.job import started
from widgets.parts import STYLE, Choices, CodeView, Status, answers_at_once
from widgets.watch import RunView, title_of

SCRATCH = "scratch"
SAMPLE = "sample boards"
MAIN = ("data", "weights", "size", "precision", "device", "batch", "epochs", "image_size", "optimizer")
"""What the panel shows at first; every other setting of a run is under "More settings"."""


class TrainPanel(w.VBox):
    """Training runs that live on in processes of their own: closing the page or the kernel ends none.

    Args:
        folder: where weights are looked for and the folder of runs lies.
        state_file: remembers the choices over a kernel restart; None remembers nothing.
    """

    def __init__(self, folder: str | Path = ".", state_file: str | Path | None = "train_state.json") -> None:
        self.folder = Path(folder)
        self._launching: threading.Thread | None = None
        self._lock = (
            threading.RLock()
        )  # buttons, the launching thread and the view's thread all change the list
        self._build_controls()
        self.status, self.code, self.view = Status(), CodeView(), RunView()
        self.view.on_change = self._sync_buttons
        self._build_buttons()
        remembered = {**self.main, **self.more}
        self.choices = Choices(None if state_file is None else Path(state_file), remembered)
        for control in remembered.values():
            control.observe(lambda _: self._sync(), "value")
        more = w.Accordion([w.Box([*self.more.values()]).add_class("yk-fields")], titles=["More settings"])
        fields = w.Box([*self.main.values()]).add_class("yk-fields")
        actions = w.Box([self.start, self.pause, self.stop, self.checkpoint]).add_class("yk-row")
        earlier = w.Box([self.runs, self.watch]).add_class("yk-row")
        super().__init__([w.HTML(STYLE), fields, more, actions, earlier, self.status, self.code, self.view])
        self.add_class("yk-panel").add_class("yk-train")
        # all of them: a button that answers before the field that was changed before it would start another run
        answers_at_once(
            *remembered.values(), self.start, self.pause, self.stop, self.checkpoint, self.runs, self.watch,
            self.view.smoothing, self.code.button,
        )  # fmt: skip
        self._sync()
        self._sync_buttons("none")
        self.status.say(self.choices.problem or "Choose data, then press Start.")
        self.refresh_runs()
        self._attach_to_what_is_alive()

    # ------------------------------------------------------------------------------------ controls

    def _build_controls(self) -> None:
        model = yolov9kit.TrainConfig
        self.data = choice(
            "Data", [("sample boards: drawn circuit boards", SAMPLE), ("a data set of mine", OTHER)]
        )
        self.data_path = text("data.yaml", "path of a data.yaml, or the folder that holds it")
        weights = [("none: from scratch", SCRATCH), *known_weights(self.folder), ("another file", OTHER)]
        self.weights = choice("Weights", weights)
        self.weights_path = text("File", "path of a .pt or .safetensors file")
        self.size = choice("Size", [("that of the weights, else s", ""), *((s, s) for s in "tsmce")])
        self.precision = choice("Precision", ["auto", "fp32", "tf32", "fp16", "bf16"])
        devices = yolov9kit.available_devices()
        labels = [(f"{d.torch_name} ({d.label})", d.torch_name) for d in devices]
        gpus = [d.torch_name for d in devices if d.kind == "cuda"]
        if len(gpus) > 1:
            labels.append((f"{len(gpus)} GPUs together", ",".join(gpus)))
        self.device = choice("Device", [("auto", "auto"), *labels])
        self.batch = whole_number("batch", "Batch", model)
        self.epochs = whole_number("epochs", "Epochs", model)
        self.image_size = whole_number("image_size", "Image size", model, step=32)
        self.optimizer = choice("Optimizer", ["auto", "sgd", "adamw", "adam"])
        self.main = {
            "data": self.data,
            "data_path": self.data_path,
            "weights": self.weights,
            "weights_path": self.weights_path,
            "size": self.size,
            "precision": self.precision,
            "device": self.device,
            "batch": self.batch,
            "epochs": self.epochs,
            "image_size": self.image_size,
            "optimizer": self.optimizer,
        }
        self.more = knobs(model, [field for field in model.model_fields if field not in MAIN])

    def _build_buttons(self) -> None:
        def button(name: str, act: Any, tooltip: str, **more: Any) -> w.Button:
            made = w.Button(description=name, tooltip=tooltip, **more)
            made.on_click(lambda _: act())
            return made

        self.start = button("Start", self.launch, "Start a run of these settings", button_style="primary")
        self.pause = button("Pause", self.pause_or_resume, "Hold after the current step, or go on")
        self.stop = button("Stop", self.stop_run, "Finish the step, save, end")
        self.checkpoint = button("Checkpoint", self.save_now, "Save now, and go on")
        self.runs = w.Dropdown(
            description="Runs", options=[("none yet", "")], style=LABEL, layout=w.Layout(width="330px")
        )
        self.watch = button("Watch", self.attach, "Show the chosen run from its first step on")

    # ------------------------------------------------------------------------------------ what is asked for

    @property
    def project(self) -> Path:
        """The folder of runs: as asked, below the panel's folder."""
        return (self.folder / self.more["project"].value).resolve()

    def settings(self) -> dict[str, Any]:
        """The settings that differ from the defaults, checked, as ``TrainConfig`` has them.

        Raises:
            UsageError: a choice that is missing, or a value that the config refuses.
        """
        model = yolov9kit.TrainConfig
        data = yolov9kit.sample_data() if self.data.value == SAMPLE else self.data_path.value.strip()
        if not data:
            raise yolov9kit.UsageError("Name the data.yaml of a data set.")
        found: dict[str, Any] = {"data": str(data)}
        weights = self.weights_path.value.strip() if self.weights.value == OTHER else self.weights.value
        if not weights:
            raise yolov9kit.UsageError("Name a weights file.")
        if weights != SCRATCH:
            found["weights"] = str(weights)
        if self.size.value:
            found["size"] = self.size.value
        plain = ("precision", "device", "batch", "epochs", "image_size", "optimizer")
        found |= settings_of(model, {name: self.main[name] for name in plain})
        found |= settings_of(model, self.more)
        found["project"] = str(self.project)
        checked = model(**found).model_dump()
        return {name: str(v) if isinstance(v := checked[name], Path) else v for name in found}

    def _sync(self) -> None:
        self.data_path.layout.display = "" if self.data.value == OTHER else "none"
        self.weights_path.layout.display = "" if self.weights.value == OTHER else "none"
        try:
            settings = self.settings()
        except yolov9kit.KitError as error:
            self.code.set(f"# {error}", f"# {error}")
            return
        self.code.set(python_code(settings), command_line(settings))

    # ------------------------------------------------------------------------------------ acting

    def launch(self) -> None:
        """Start a run beside the kernel and watch it."""
        try:
            config = yolov9kit.TrainConfig(**self.settings())
        except yolov9kit.KitError as error:
            self.status.complain(error)
            return
        if self._launching is not None and self._launching.is_alive():
            return
        self.start.disabled = True
        self.status.say("Starting a process for the run…")

        def work() -> None:  # the data's yaml is looked at first, on a disk that may be slow
            try:
                run = yolov9kit.launch(config)
            except Exception as error:
                known = isinstance(error, yolov9kit.KitError)
                self.status.complain(error if known else f"{type(error).__name__}: {error}")
                self._sync_buttons("none")
                return
            self.look_at(run, f"Started in {run.folder}. It goes on without this page.")

        self._launching = started(work, "yolov9kit launch")

    def attach(self) -> None:
        """Watch the run that is chosen in the list."""
        if not self.runs.value:
            self.refresh_runs()
            return
        try:
            run = yolov9kit.attach(self.runs.value)
        except yolov9kit.KitError as error:
            self.status.complain(error)
            return
        self.look_at(run, f"Watching {run.folder}.")

    def pause_or_resume(self) -> None:
        """Hold the run, or let it go on."""
        if self.pause.description == "Resume":
            self._ask(lambda run: run.resume(), "Going on.")
        else:
            self._ask(lambda run: run.pause(), "Pausing after this step.")

    def stop_run(self) -> None:
        """Let the run finish its step, save and end."""
        self._ask(lambda run: run.stop(timeout=0.0), "Stopping: the step is finished and the state saved.")

    def save_now(self) -> None:
        """Let the run save after this step."""
        self._ask(lambda run: run.checkpoint_now(), "Saving after this step.")

    def _ask(self, request: Callable[[Any], object], words: str) -> None:
        """Ask the watched run for something, and say so."""
        run = self.view.run
        if run is None:
            self.status.say("There is no run to ask.")
            return
        try:
            request(run)
        except yolov9kit.KitError as error:
            self.status.complain(error)
        else:
            self.status.say(words)

    def look_at(self, run: Any, words: str) -> None:
        """Follow a run, given as a handle."""
        self.status.say(words)
        self.view.show(run)
        self.refresh_runs()

    def refresh_runs(self) -> None:
        """Read the folder of runs again."""
        with self._lock:
            found = yolov9kit.runs(self.project)
            chosen = self.view.run.folder if self.view.run is not None else None
            options = [(f"{one.folder.name} ({one.state})", str(one.folder)) for one in found]
            self.runs.options = options or [("none yet", "")]
            if chosen is not None and str(chosen) in [path for _, path in options]:
                self.runs.value = str(chosen)

    def _attach_to_what_is_alive(self) -> None:
        alive = [one for one in yolov9kit.runs(self.project) if one.state not in yolov9kit.RUN_ENDED]
        if alive:
            self.look_at(
                yolov9kit.attach(alive[0].folder), f"{title_of(alive[0].folder)} is going on: watching it."
            )

    def _sync_buttons(self, state: str) -> None:
        alive = state in ("starting", "running", "paused", "stopping")
        self.start.disabled = alive
        self.stop.disabled = self.checkpoint.disabled = state not in ("starting", "running", "paused")
        self.pause.disabled = state not in ("running", "paused")
        self.pause.description = "Resume" if state == "paused" else "Pause"
        if state != "none":
            self.refresh_runs()

    def _ipython_display_(self) -> None:
        self.view.copy.show_below(self)

    def close(self) -> None:
        """Stop looking. The run goes on."""
        self.view.close()
        super().close()


def python_code(settings: dict[str, Any]) -> str:
    """The Python that starts the same run and follows it."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return (
        "from yolov9kit import TrainConfig, launch\n\n"
        f"run = launch(TrainConfig({arguments}))\n"
        "print(run.folder)  # watch it: attach(folder); end it: run.stop()\n"
    )


def command_line(settings: dict[str, Any]) -> str:
    """The command that does the same."""
    import shlex

    words = ["yolov9kit", "train", "--data", settings["data"]]
    words += ["--weights", settings.get("weights", "")]
    for name, flag in (
        ("size", "--cfg"),
        ("epochs", "--epochs"),
        ("batch", "--batch"),
        ("image_size", "--img"),
    ):
        if name in settings:
            words += [flag, str(settings[name])]
    taken = ("data", "weights", "size", "epochs", "batch", "image_size")
    for name, value in settings.items():
        if name not in taken:
            value = ",".join(map(str, value)) if isinstance(value, tuple) else value
            words += ["--set", f"{name}={value}"]
    return shlex.join(words)
