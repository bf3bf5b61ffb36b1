"""The panels as one place."""

from pathlib import Path
from typing import Any

import ipywidgets as w

from widgets.dataset_panel import DatasetPanel
from widgets.detect_panel import OTHER, DetectPanel
from widgets.runs_panel import RunsPanel
from widgets.speed_panel import SpeedPanel
from widgets.train_panel import TrainPanel

DETECT, DATA, TRAIN, RUNS, SPEED = range(5)


class Workbench(w.Tab):
    """All panels as tabs.

    Args:
        folder: where weights, pictures, data and runs are looked for.
        state_file: remembers the choices over a kernel restart, those of the other panels in files beside it; None
            remembers nothing.
    """

    def __init__(self, folder: str | Path = ".", state_file: str | Path | None = "panel_state.json") -> None:
        self.detect = DetectPanel(folder, state_file)
        self.train = TrainPanel(folder, _beside(state_file, "train"))
        self.data = DatasetPanel(folder, _beside(state_file, "data"), train_settings=self.train.settings)
        self.runs = RunsPanel(folder, self._open_in_detect, self._watch)
        self.speed = SpeedPanel(folder, _beside(state_file, "speed"))
        self._panels = [self.detect, self.data, self.train, self.runs, self.speed]
        super().__init__(self._panels, titles=["Detect", "Data", "Train", "Runs", "Speed"])
        self.observe(lambda change: change["new"] == RUNS and self.runs.refresh(), "selected_index")

    def _open_in_detect(self, weights: Path) -> None:
        self.detect.weights.value = OTHER
        self.detect.weights_path.value = str(weights)
        self.selected_index = DETECT

    def _watch(self, run: Any) -> None:
        self.train.look_at(run, f"Watching {run.folder}.")
        self.selected_index = TRAIN

    def _ipython_display_(self) -> None:
        self.detect.copy.show_below(self)
        for copy in (self.data.copy, self.speed.copy):
            copy.show_below(w.VBox())  # below nothing more: the tabs stand above all copies

    def close(self) -> None:
        for panel in self._panels:
            panel.close()
        super().close()


def _beside(state_file: str | Path | None, panel: str) -> Path | None:
    return None if state_file is None else Path(state_file).with_name(f"{panel}_{Path(state_file).name}")
