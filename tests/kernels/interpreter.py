"""Triton's interpreter, in a process of its own: whether kernels are compiled is settled when they are first made."""

import os
import subprocess
import sys


def checked_in_the_interpreter(module: str) -> int:
    """What ``check("cpu")`` of a test module of this folder returns there."""
    program = f"import sys; sys.path.insert(0, 'tests/kernels'); import {module} as t; print(t.check('cpu'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env=os.environ | {"TRITON_INTERPRET": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return int(done.stdout)
