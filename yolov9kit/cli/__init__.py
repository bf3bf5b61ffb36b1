"""The command line: thin, on top of everything. ``--help`` loads no torch.

argparse and not a framework: the command lines that people already have use options with several values
(``--classes 0 2``), abbreviations and old spellings, all of which it knows.
"""

import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from yolov9kit.cli import app, benchmark, data, detect, doctor, lab, tools, train, val
from yolov9kit.errors import KitError, UsageError

SCRIPTS = {
    "benchmark.py": "benchmark",
    "benchmarks.py": "benchmark",
    "detect_dual.py": "detect",
    "detect.py": "detect",
    "train_dual.py": "train",
    "train.py": "train",
    "val_dual.py": "val",
    "val.py": "val",
}
"""Scripts whose command lines people have, and the command that does the same."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0 done, 1 a fault, 2 a wrong command line, 130 stopped by Ctrl-C."""
    words = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):  # names that this locale cannot write are escaped
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return _dispatch(words)
    except UsageError as error:
        return _complain(error, 2)
    except KitError as error:
        return _complain(error, 1)
    except KeyboardInterrupt:
        return _complain("stopped", 130)
    except BrokenPipeError:  # the reader of our output has gone, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("YOLOV9KIT_TRACEBACK"):
            raise
        if type(error).__name__ == "OutOfMemoryError":
            return _complain("the GPU has not enough free memory: take a smaller --batch or --img", 1)
        if isinstance(error, OSError):
            return _complain(f"{error.filename or 'file'}: {error.strerror or error}", 1)
        text = " ".join(f"{type(error).__name__}: {error}".split())
        return _complain(f"internal fault, {text[:300]} (YOLOV9KIT_TRACEBACK=1 shows where)", 1)


def _complain(error: object, code: int) -> int:
    print(f"yolov9kit: {error}", file=sys.stderr)
    return code


def _dispatch(words: list[str]) -> int:
    words, script = _without_script(words)
    commands: dict[str, tuple[str, Callable[[list[str], bool], int]]] = {
        "detect": ("find objects in pictures, videos, cameras", detect.run),
        "train": ("train on pictures with boxes, go on with a run, train one longer", train.run),
        "val": ("score weights on pictures with boxes", val.run),
        "doctor": ("look for what is wrong with a data set, and say where", doctor.run),
        "data": ("write a data set anew: convert, split, merge, subset", data.run),
        "benchmark": ("time weights on this machine, with memory and agreement", benchmark.run),
        "boards": ("draw a data set of circuit boards with defects", tools.boards),
        "convert": ("any YOLOv9 weights file to deployed .safetensors, outputs proved equal", tools.convert),
        "fetch": ("download released weights, on request only", tools.fetch),
        "lab": ("open the workbench in JupyterLab", lab.lab),
        "app": ("open the workbench as a page without code, by Voila", app.app),
        "env": ("what this machine can do, with advice", tools.env),
    }
    if not words or words[0] in ("-h", "--help", "help"):
        print("usage: yolov9kit COMMAND ...\n\ncommands:")
        for name, (what, _) in commands.items():
            print(f"  {name:10s} {what}")
        print(
            "\n`yolov9kit COMMAND --help` lists its options. Exit codes: 0 done, 1 a fault, 2 a wrong command line."
        )
        return 0 if words else 2
    if words[0] == "--version":
        from yolov9kit import __version__

        print(f"yolov9kit {__version__}")
        return 0
    if words[0] not in commands:
        raise UsageError(f"{words[0]!r}: no such command. There are {', '.join(commands)}")
    return commands[words[0]][1](words[1:], script)


def _without_script(words: list[str]) -> tuple[list[str], bool]:
    """``[python] detect_dual.py --source ...``, alone or behind ``detect``, becomes ``detect --source ...``."""
    first = words[:1] if words and words[0] in SCRIPTS.values() else []
    rest = words[len(first) :]
    if rest and Path(rest[0]).name in ("python", "python3"):
        rest = rest[1:]
    if not rest or not rest[0].endswith(".py") or rest[0].startswith("-"):
        return words, False
    script = Path(rest[0]).name
    if script not in SCRIPTS:
        raise UsageError(
            f"{script!r}: not a script whose command line is understood here ({', '.join(SCRIPTS)} are)"
        )
    if first and first[0] != SCRIPTS[script]:
        raise UsageError(
            f"{first[0]} {rest[0]}: that script's command line is one for `yolov9kit {SCRIPTS[script]}`"
        )
    return [SCRIPTS[script], *rest[1:]], True
