"""The panels as one place."""

from pathlib import Path

import ipywidgets as w

from widgets.detect_panel import DetectPanel


class Workbench(w.Tab):
    """All panels as tabs.

    Args:
        folder: where weights, pictures and data are looked for.
        state_file: remembers the choices over a kernel restart; None remembers nothing.
    """

    def __init__(self, folder: str | Path = ".", state_file: str | Path | None = "panel_state.json") -> None:
        self.detect = DetectPanel(folder, state_file)
        super().__init__([self.detect], titles=["Detect"])

    def _ipython_display_(self) -> None:
        self.detect.copy.show_below(self)

    def close(self) -> None:
        self.detect.close()
        super().close()
