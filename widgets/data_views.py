"""Two more looks at a data set: the pictures as training sees them, and the labels that a detector contradicts."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as w
import numpy as np

import yolov9kit
from widgets.data_pictures import KINDS, DoubtedPictures, SeenPictures
from widgets.detect_panel import OTHER, SAMPLE, known_weights
from widgets.facets import Row, Rows, Section
from widgets.form import LABEL, choice, text
from widgets.grid import PER_PAGE, PictureGrid
from widgets.task import Progress

SAME = "The first pictures of an epoch, to the last bit as a run with these settings has them: same code, same seed."
OUT_OF_SAMPLE = (
    "Weights that were trained on these very pictures repeat their labels, faults and all: rank a split that they have "
    "not seen. Solid boxes are the labels, the dotted one is what the detector suggests."
)


class TrainingView:
    """What training sees.

    Args:
        data_file: gives the data set.
        image_size: the control of the input size.
        train_settings: gives the settings of a run, as ``TrainPanel.settings``; None: there is no such panel.
    """

    def __init__(
        self,
        data_file: Callable[[], str],
        image_size: w.Widget,
        train_settings: Callable[[], dict[str, Any]] | None,
    ) -> None:
        self._data_file, self._image_size, self._train_settings = data_file, image_size, train_settings
        self.preview: Any = None
        sources = [("the defaults", "defaults")]
        if train_settings is not None:
            sources.insert(0, ("those of the Train tab", "tab"))
        self.source = choice("Settings", sources)
        self.seed = w.IntText(value=0, description="Seed", style=LABEL, layout=w.Layout(width="auto"))
        self.epoch = w.BoundedIntText(
            value=1, min=1, max=100_000, description="Epoch", style=LABEL, layout=w.Layout(width="auto")
        )
        self.button = w.Button(
            description="Show", button_style="primary", tooltip="Make the first pictures of that epoch"
        )
        self.controls = {"source": self.source, "seed": self.seed, "epoch": self.epoch}
        self.tools = [self.source, self.seed, self.epoch, self.button]

    def settings(self) -> dict[str, Any]:
        """Those of the ``TrainConfig`` whose pictures are shown."""
        if self._train_settings is not None and self.source.value == "tab":
            try:
                settings = self._train_settings()
            except yolov9kit.UsageError as error:
                raise yolov9kit.UsageError(f"Train tab: {error}") from error
            settings.pop("project", None)
        else:
            settings = {"image_size": self._image_size.value}
        return settings | {"data": self._data_file(), "seed": self.seed.value}

    def work(self, on_progress: Progress) -> Any:
        """The pictures. Called beside the kernel."""
        config = yolov9kit.TrainConfig(**self.settings())
        epoch = self.epoch.value - 1
        on_progress("making pictures", 0, PER_PAGE)
        return yolov9kit.preview_batches(config, epoch=epoch, count=PER_PAGE, on_progress=on_progress)

    def keep(self, preview: Any) -> str:
        """Show these from now on."""
        self.preview = preview
        return f"{len(preview.pictures)} pictures of epoch {preview.epoch + 1}, as training sees them."

    def words(self) -> str:
        """What stands above the pictures."""
        if self.preview is None:
            return SAME
        made = (
            "each made of four (mosaic)"
            if self.preview.mosaic
            else "each alone, as in all of the last epochs"
        )
        return f"{SAME} Here: epoch {self.preview.epoch + 1}, {made}."

    def facets(self) -> list[Section]:
        """Nothing stands beside these pictures."""
        return []

    def show(self, grid: PictureGrid) -> None:
        if self.preview is None:
            grid.show(None, words="Press Show to make them.")
        else:
            grid.show(SeenPictures(self.preview), self.preview.names)

    def code(self) -> tuple[str, str]:
        """The equal Python; there is no command for it."""
        settings = self.settings()
        arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        python = (
            "from yolov9kit import TrainConfig, preview_batches\n\n"
            f"config = TrainConfig({arguments})\n"
            f"preview = preview_batches(config, epoch={self.epoch.value - 1}, count={PER_PAGE})  # epochs from 0\n"
            "for picture in preview.pictures:\n"
            "    print(picture.sources[0], picture.pixels.shape, picture.boxes, picture.labels)\n"
        )
        return python, "# these pictures exist in Python only"


class ErrorsView:
    """Label errors: what a detector contradicts.

    Args:
        folder: where weights are looked for.
        data_file: gives the data set.
        image_size: the control of the input size.
        explorer: gives the ``Explorer`` of the data set that is open, or None.
    """

    def __init__(
        self,
        folder: Path,
        data_file: Callable[[], str],
        image_size: w.Widget,
        explorer: Callable[[], Any],
    ) -> None:
        self._data_file, self._image_size, self._opened = data_file, image_size, explorer
        self.errors: Any = None
        self.ranked: tuple[Any, ...] = ()
        self.explorer: Any = None
        self.kinds: tuple[str, ...] = ()
        known = known_weights(folder)
        sample = dict(known).get(SAMPLE, OTHER)
        self.weights = choice("Weights", [*known, (OTHER, OTHER)], value=sample)
        self.weights_path = text("File", "path of a .pt or .safetensors file")
        self.split = choice("Split", ["val", "test", "train"])
        devices = [(f"{d.torch_name} ({d.label})", d.torch_name) for d in yolov9kit.available_devices()]
        self.device = choice("Device", [("auto", "auto"), *devices])
        self.button = w.Button(
            description="Rank label errors", button_style="primary", tooltip="Detect on the split and compare"
        )
        self.controls = {
            "weights": self.weights,
            "weights_path": self.weights_path,
            "split": self.split,
            "device": self.device,
        }
        self.tools = [*self.controls.values(), self.button]

    def weights_file(self) -> str:
        """The chosen weights. Raises UsageError where none are named."""
        weights = self.weights_path.value.strip() if self.weights.value == OTHER else self.weights.value
        if not weights:
            raise yolov9kit.UsageError("Name a weights file.")
        return str(weights)

    def settings(self) -> dict[str, Any]:
        """Those of the ``EvalConfig``. Rows that were left out are no reason to refuse here."""
        return {
            "split": self.split.value,
            "image_size": (self._image_size.value,),
            "device": self.device.value,
            "skip_bad_rows": True,
        }

    def work(self, on_progress: Progress) -> tuple[Any, Any]:
        """The label errors, and an explorer of their pictures. Called beside the kernel."""
        data = self._data_file()
        config = yolov9kit.EvalConfig(**self.settings())
        report = yolov9kit.evaluate(self.weights_file(), data, config, on_progress=on_progress)
        explorer = self._opened()
        if explorer is None or explorer.source is None or explorer.source.resolve() != Path(data).resolve():
            explorer = yolov9kit.Explorer.open(data, on_progress=on_progress)
        return yolov9kit.label_errors(report), explorer

    def keep(self, found: tuple[Any, Any]) -> str:
        """Show these from now on."""
        self.errors, self.explorer = found
        self.ranked, self.kinds = self.errors.ranking(), ()
        if not self.ranked:
            return f"The weights contradict no label of {len(self.errors.paths):,} pictures."
        return f"{len(self.ranked):,} labels of {len(self.errors.paths):,} pictures ranked, the most doubtful first."

    def forget(self) -> None:
        """Another data set was opened."""
        self.errors, self.explorer, self.ranked, self.kinds = None, None, (), ()

    def pick(self, kind: str) -> None:
        """A kind was pressed; "": all of them shall be shown."""
        if not kind:
            self.kinds = ()
        else:
            self.kinds = (
                tuple(k for k in self.kinds if k != kind) if kind in self.kinds else (*self.kinds, kind)
            )

    def words(self) -> str:
        """What stands above the pictures."""
        return OUT_OF_SAMPLE

    def facets(self) -> list[Section]:
        """The kinds, to be pressed."""
        if self.errors is None:
            return []
        counts = [sum(one.kind == kind for one in self.ranked) for kind in KINDS]
        most = max(1, *counts)
        rows = [
            Row(kind, f"{kind}: {words}", n, n / most, kind in self.kinds)
            for (kind, words), n in zip(KINDS.items(), counts, strict=True)
        ]
        return [Rows("kinds", "Kinds", rows)]

    def show(self, grid: PictureGrid) -> None:
        if self.errors is None:
            grid.show(None, words="Press Rank label errors to see which labels the weights contradict.")
            return
        shown = [one for one in self.ranked if not self.kinds or one.kind in self.kinds]
        grid.show(
            DoubtedPictures(self.explorer, shown, self.errors.names),
            self.errors.names,
            of=len(self.ranked),
            aspect=aspect_of(self.explorer),
            chips=[(f"kinds/{kind}", kind) for kind in self.kinds],
            noun="ranked labels",
            words="The weights contradict no label.",
        )

    def code(self) -> tuple[str, str]:
        """The equal Python; there is no command for it."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.settings().items())
        python = (
            "from yolov9kit import EvalConfig, evaluate, label_errors\n\n"
            f"config = EvalConfig({arguments})\n"
            f"report = evaluate({self.weights_file()!r}, {self._data_file()!r}, config)\n"
            "for error in label_errors(report).ranking():\n"
            "    print(error)\n"
        )
        return python, "# the ranking exists in Python only"


def aspect_of(explorer: Any, looked_at: int = 64) -> float:
    """Width by height of the usual picture."""
    places: Sequence[int] = np.linspace(0, max(0, len(explorer) - 1), min(looked_at, len(explorer))).astype(
        int
    )
    sizes = [explorer.item(int(i)).size_wh for i in places]
    shapes = [width / height for width, height in sizes if width and height]
    return float(np.median(shapes)) if shapes else 1.0
