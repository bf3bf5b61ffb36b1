"""The panels of the workbench. They show what the library says and decide nothing themselves."""

from widgets.canvas import DetectionCanvas, Page
from widgets.chart import Chart, Plot
from widgets.detect_panel import DetectPanel
from widgets.runs_panel import RunsPanel
from widgets.speed_panel import SpeedPanel
from widgets.train_panel import TrainPanel
from widgets.watch import RunView
from widgets.workbench import Workbench

__all__ = [
    "Chart",
    "DetectPanel",
    "DetectionCanvas",
    "Page",
    "Plot",
    "RunView",
    "RunsPanel",
    "SpeedPanel",
    "TrainPanel",
    "Workbench",
]
