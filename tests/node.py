"""Our JavaScript modules under node."""

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest


def in_node(script: Path, code: str, data: object) -> Any:
    """What ``code`` gives: a JavaScript expression of ``data`` and of the module, which has the script's name."""
    node = shutil.which("node")
    if node is None:
        assert "CI" not in os.environ, f"{script.name} is tested under node, which is not here"
        pytest.skip("needs node")
    module = base64.b64encode(script.read_bytes()).decode()
    program = f"""
        let text = ""; for await (const part of process.stdin) text += part;
        const {script.stem} = await import("data:text/javascript;base64,{module}"), data = JSON.parse(text);
        process.stdout.write(JSON.stringify({code}));"""
    command = [node, "--input-type=module", "--eval", program]
    done = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
