"""Status, code view, remembered choices, static copy."""

import json
from pathlib import Path

import ipywidgets as w

from widgets.parts import Choices, CodeView, StaticCopy, Status


def test_status_escapes_and_marks_errors_in_words() -> None:
    status = Status()
    status.say("a < b\nsecond line")
    assert "a &lt; b<br>second line" in status.value and 'role="status"' in status.value
    status.complain("x.pt: no such file")
    assert status.is_error and "Problem:" in status.value and status.text == "x.pt: no such file"


def test_code_is_shown_on_request() -> None:
    code = CodeView()
    code.set("print('<')", "yolov9kit detect")
    assert code.children[1].layout.display == "none" and "&lt;" in code.children[1].value
    code.button.value = True
    assert code.children[1].layout.display == "" and code.button.description == "Hide code"


def test_choices_come_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "state.json"
    first = {"size": w.IntText(1), "name": w.Text("a"), "kind": w.Dropdown(options=["x", "y"])}
    Choices(path, first)
    first["size"].value, first["name"].value, first["kind"].value = 7, "Schraube 螺", "y"
    again = {"size": w.IntText(1), "name": w.Text("a"), "kind": w.Dropdown(options=["x", "y"])}
    assert Choices(path, again).problem == ""
    assert [c.value for c in again.values()] == [7, "Schraube 螺", "y"]
    assert [p.name for p in path.parent.iterdir()] == ["state.json"]


def test_a_choice_that_is_not_offered_here_is_said(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text(json.dumps({"device": "cuda:7", "size": 3}))
    controls = {"device": w.Dropdown(options=["cpu"]), "size": w.IntText(1)}
    assert "'cuda:7', which is not offered here" in Choices(path, controls).problem
    assert controls["device"].value == "cpu" and controls["size"].value == 3


def test_a_broken_or_unwritable_file_refuses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("{half")
    size = w.IntText(1)
    assert "earlier choices cannot be read" in Choices(path, {"size": size}).problem
    size.value = 2
    assert json.loads(path.read_text()) == {"size": 2}
    blocked = Choices(path / "below a file" / "state.json", {"other": (other := w.IntText(1))})
    other.value = 5
    assert "cannot be remembered" in blocked.problem


def test_static_copy_keeps_its_html_without_a_notebook() -> None:
    copy = StaticCopy()
    copy.update("<b>done</b>")
    assert copy.html == "<b>done</b>"
