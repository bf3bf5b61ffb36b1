"""A live panel in a real kernel, without a browser: what is sent, and to which cell it belongs."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).parents[2]

PANEL = """
import json, time
from pathlib import Path
from tests.widgets.fake_run import FakeRun, start_line, step_line
from widgets import RunView

journal = Path({folder!r}) / "journal.jsonl"
def write(*records):
    with journal.open("a") as file:
        file.write("".join(json.dumps(record) + chr(10) for record in records))

write(start_line(60))
run = FakeRun(journal.parent)
view = RunView(run)
view
"""
BUSY = """
for step in range(1, 61):
    write(step_line(step))
    print("line", step)
    time.sleep(0.05)
"""
END = """
run.state = "finished"
ended = view.job.wait(30)
print(ended, view.job.error, view.curves.step, view.progress.value)
"""


@pytest.fixture
def kernel() -> Iterator[BlockingKernelClient]:
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]  # perhaps of another ipykernel
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    manager, client = start_new_kernel(kernel_name="python3", cwd=str(ROOT), env=env, startup_timeout=120)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run_cell(client: BlockingKernelClient, code: str) -> tuple[str, list[dict[str, Any]]]:
    """The cell's id, and what was published until it ended."""
    cell = client.execute(code)
    published = []
    until = time.monotonic() + 120
    while time.monotonic() < until:
        message = client.get_iopub_msg(timeout=120)
        published.append(message)
        assert message["msg_type"] != "error", message["content"]["traceback"]
        mine = message["parent_header"].get("msg_id") == cell
        if mine and message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
            return cell, published
    raise AssertionError("the cell did not end")


def text_of(published: list[dict[str, Any]], cell: str) -> str:
    streams = [m for m in published if m["msg_type"] == "stream"]
    assert all(m["parent_header"]["msg_id"] == cell for m in streams)
    return "".join(m["content"]["text"] for m in streams)


def test_u01_u02_a_panel_moves_while_another_cell_prints(
    kernel: BlockingKernelClient, tmp_path: Path
) -> None:
    run_cell(kernel, PANEL.format(folder=str(tmp_path)))
    busy, published = run_cell(kernel, BUSY)
    assert text_of(published, busy).splitlines() == [f"line {step}" for step in range(1, 61)]
    assert sum(m["msg_type"] == "comm_msg" for m in published) >= 5  # the panel moved meanwhile
    end, published = run_cell(kernel, END)
    assert text_of(published, end).strip() == "True None 60 1.0"
