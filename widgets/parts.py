"""Small parts of every panel: the status line, the code behind a panel, the choices file, the static copy."""

import html
import json
import os
from pathlib import Path
from typing import Any

import ipywidgets as w
import traitlets
from IPython.display import HTML, DisplayHandle, display

STYLE = """<style>
.yk-panel { gap: 6px; }
.yk-fields { display: grid; grid-template-columns: repeat(auto-fill, minmax(290px, 1fr)); gap: 2px 20px; }
.yk-fields .widget-label { min-width: 92px; }
.yk-row { flex-flow: row wrap; align-items: center; gap: 4px; }
.yk-status { line-height: 1.45; padding: 0; color: var(--jp-ui-font-color1, inherit); }
.yk-status.yk-error { border-left: 3px solid var(--jp-error-color1, #c62828); padding-left: 8px; }
.yk-table { overflow-x: auto; }
.yk-table table { border-collapse: collapse; font-size: 12px; }
.yk-table th, .yk-table td { text-align: left; padding: 3px 14px 3px 0; white-space: nowrap; vertical-align: top;
  border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, .3)); }
.yk-code pre { background: var(--jp-layout-color2, rgba(128, 128, 128, .15)); color: var(--jp-ui-font-color1, inherit);
  padding: 8px 10px; margin: 2px 0 8px; overflow-x: auto; border-radius: 4px;
  font: 12px/1.5 var(--jp-code-font-family, monospace); }
</style>"""


class Status(w.HTML):
    """One line of words, or an error in words. Read aloud by screen readers when it changes."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.is_error = False

    def say(self, text: str) -> None:
        self._show(text, False)

    def complain(self, error: object) -> None:
        self._show(str(error), True)

    def _show(self, text: str, is_error: bool) -> None:
        self.text, self.is_error = text, is_error
        kind = "yk-status yk-error" if is_error else "yk-status"
        lines = html.escape(text).replace("\n", "<br>")
        label = "<strong>Problem:</strong> " if is_error else ""
        self.value = f'<div class="{kind}" role="status" aria-live="polite">{label}{lines}</div>'


class CodeView(w.VBox):
    """The Python and the command line that do what a panel does, behind a button."""

    def __init__(self) -> None:
        self.button = w.ToggleButton(description="Show code", tooltip="The equal Python and command line")
        self.python = self.command = ""
        self._view = w.HTML().add_class("yk-code")
        self._view.layout.display = "none"
        super().__init__([self.button, self._view])
        self.button.observe(self._toggle, "value")

    def set(self, python: str, command: str) -> None:
        self.python, self.command = python, command
        blocks = (("Python", python), ("Command line", command))
        self._view.value = "".join(
            f"<div>{name}</div><pre>{html.escape(code)}</pre>" for name, code in blocks
        )

    def _toggle(self, change: dict[str, Any]) -> None:
        self._view.layout.display = "" if change["new"] else "none"
        self.button.description = "Hide code" if change["new"] else "Show code"


class Choices:
    """Remembers the values of named controls in a file, so that a restarted kernel finds them again.

    A file that cannot be read or written is no reason to refuse the panel: ``problem`` says what happened.
    """

    def __init__(self, path: Path | None, controls: dict[str, w.Widget]) -> None:
        self._path, self._controls = path, controls
        self.problem = ""
        self._restore()
        for control in controls.values():
            control.observe(self._save, "value")

    def _restore(self) -> None:
        if self._path is None or not self._path.exists():
            return
        try:
            saved = json.loads(self._path.read_text(encoding="utf-8"))
            values = {name: saved[name] for name in self._controls if name in saved}
        except (OSError, ValueError, TypeError) as error:
            self.problem = f"{self._path}: earlier choices cannot be read ({error})"
            return
        for name, value in values.items():
            try:
                self._controls[name].value = value
            except traitlets.TraitError:  # a choice of another machine: a device that is not here, say
                self.problem = f"{self._path}: {name} was {value!r}, which is not offered here"

    def _save(self, _change: object) -> None:
        if self._path is None:
            return
        values = {name: control.value for name, control in self._controls.items()}
        beside = self._path.with_name(f".{self._path.name}.{os.getpid()}.part")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(values, indent=1, ensure_ascii=False), encoding="utf-8")
            os.replace(beside, self._path)
        except OSError as error:
            self.problem = f"{self._path}: choices cannot be remembered ({error.strerror})"


class StaticCopy:
    """HTML below a live panel that needs no kernel: it stays in the saved notebook and in every export of it."""

    def __init__(self) -> None:
        self._handle: DisplayHandle | None = None
        self.html = ""

    def show_below(self, live: w.Widget) -> None:
        """Show the live view in the output of the running cell, and make room for the copy below it."""
        display(live._repr_mimebundle_(), raw=True)
        self._handle = display(HTML(self.html), display_id=True)

    def update(self, text: str) -> None:
        self.html = text
        if self._handle is not None:
            self._handle.update(HTML(text))


def answers_at_once(*controls: w.Widget) -> None:
    """Let these controls answer while another cell runs.

    JupyterLab sends a click through a subshell of the kernel, which is free. ipykernel 7.4 answers it in the shell that
    made the widget, which is busy until the cell ends; its rule for that is set aside here, where there is one.
    """
    for control in controls:
        if hasattr(control.comm, "_reply_subshell_for"):
            control.comm._reply_subshell_for = lambda data, default: default


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return (
        f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
    )
