"""The panels of the workbench. They show what the library says and decide nothing themselves."""

from widgets.canvas import DetectionCanvas, Page
from widgets.chart import Chart, Plot
from widgets.dataset_panel import DatasetPanel
from widgets.detect_panel import DetectPanel
from widgets.facets import Facets
from widgets.grid import PictureGrid
from widgets.runs_panel import RunsPanel
from widgets.speed_panel import SpeedPanel
from widgets.train_panel import TrainPanel
from widgets.watch import RunView
from widgets.workbench import Workbench

__all__ = [
    "Chart",
    "DatasetPanel",
    "DetectPanel",
    "DetectionCanvas",
    "Facets",
    "Page",
    "PictureGrid",
    "Plot",
    "RunView",
    "RunsPanel",
    "SpeedPanel",
    "TrainPanel",
    "Workbench",
]
