"""The panels as one place."""

from pathlib import Path
from typing import Any

import ipywidgets as w

from widgets.detect_panel import OTHER, DetectPanel
from widgets.runs_panel import RunsPanel
from widgets.train_panel import TrainPanel

DETECT, TRAIN, RUNS = range(3)


class Workbench(w.Tab):
    """All panels as tabs.

    Args:
        folder: where weights, pictures, data and runs are looked for.
        state_file: remembers the choices over a kernel restart, those of training in a file beside it; None remembers
            nothing.
    """

    def __init__(self, folder: str | Path = ".", state_file: str | Path | None = "panel_state.json") -> None:
        train_file = (
            None if state_file is None else Path(state_file).with_name(f"train_{Path(state_file).name}")
        )
        self.detect = DetectPanel(folder, state_file)
        self.train = TrainPanel(folder, train_file)
        self.runs = RunsPanel(folder, self._open_in_detect, self._watch)
        super().__init__([self.detect, self.train, self.runs], titles=["Detect", "Train", "Runs"])
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

    def close(self) -> None:
        for panel in (self.detect, self.train, self.runs):
            panel.close()
        super().close()
