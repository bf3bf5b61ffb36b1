"""``yolov9kit train``, which also takes the command lines of ``train_dual.py``."""

import json
import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from yolov9kit.cli.follow import follow
from yolov9kit.cli.parsing import Given, named_precision
from yolov9kit.cli.train_options import CHANGES_NOTHING, ONLY_VALUE, OPTIONS, REFUSED, parser_of_train
from yolov9kit.errors import TrainingError, UsageError

if TYPE_CHECKING:
    from yolov9kit.training.config import TrainConfig


STATE = "state.safetensors"


def config_from(words: Sequence[str]) -> tuple["TrainConfig", tuple[str, ...]]:
    """The run that a command line means, and notes for the user.

    Raises:
        UsageError: an unknown option, settings that contradict each other, or one that is not offered.
    """
    return _config(_given(words))


def run(words: list[str], script: bool) -> int:
    given = _given(words)
    quiet = "quiet" in given
    if "extend" in given:
        epochs, folder = _extension(given)

        from yolov9kit.training.trainer import extend

        return follow(lambda preparing: extend(folder, epochs, on_progress=preparing), quiet=quiet)
    if "resume" in given:
        folder = _run_to_resume(given)

        from yolov9kit.training.trainer import resume

        begin = partial(resume, folder, device=given.get("device"), workers=given.get("workers"))
        return follow(lambda preparing: begin(on_progress=preparing), quiet=quiet, folder=folder)
    config, notes = _config(given)
    if script and config.optimizer == "auto" and "optimizer" not in given:
        notes += ("optimizer auto: train_dual.py takes SGD; --optimizer SGD asks for it",)
    if not quiet:
        for note in notes:
            print(f"yolov9kit: {note}", file=sys.stderr)

    from yolov9kit.training.trainer import train

    return follow(lambda preparing: train(config, preparing), quiet=quiet)


# ---------------------------------------------------------------------------------------------- a new run


def _given(words: Sequence[str]) -> Given:
    given = vars(parser_of_train().parse_args(list(words)))
    for name, reason in REFUSED.items():
        if f"refused {name}" in given:
            raise UsageError(reason)
    for name, (value, reason) in ONLY_VALUE.items():
        if given.pop(name, value) != value:
            raise UsageError(reason)
    return given


def _config(given: Given) -> tuple["TrainConfig", tuple[str, ...]]:
    from yolov9kit.training.config import TrainConfig

    for name in ("resume", "extend"):
        if name in given:
            raise UsageError(f"--{name}: goes on with a run, which has its settings")
    notes = [note for name, note in CHANGES_NOTHING.items() if name in given]
    settings = _own_options(given, notes)
    for name, value in _set(given).items():
        if name in settings:
            raise UsageError(f"--set {name}={value}: another option says {settings[name]}; name one value")
        settings[name] = value
    settings = _hyp(given, settings, notes) | settings
    config = TrainConfig(**settings)
    folder = config.project / config.name
    if "exist_ok" in given and folder.exists():
        raise UsageError(
            f"--exist-ok: {folder} exists, and a run is never written over: take another --name, or leave "
            "--exist-ok out for a numbered folder"
        )
    return config, tuple(notes)


def _own_options(given: Given, notes: list[str]) -> Given:
    """The settings that options name, each once."""
    settings = {name: value for name, value in given.items() if name in OPTIONS}
    settings |= _precision(given)
    if given.get("cfg"):
        settings["size"] = _size(given, notes)
    if "image_size" in given:
        if len(set(sizes := given["image_size"])) > 1:
            raise UsageError(
                f"--img {' '.join(map(str, sizes))}: training takes squares; one number is expected"
            )
        settings["image_size"] = sizes[0]
    if given.get("batch") == -1:
        raise UsageError("--batch -1: a size is not chosen by guessing; name one, for example --batch 16")
    if given.get("cache") == "disk":
        raise UsageError("--cache disk: is not offered; --cache ram keeps decoded pictures in memory")
    if "freeze" in given:
        settings["freeze"] = tuple(given["freeze"])
    if "cos_lr" in given:
        settings["schedule"] = "cosine"
    if "noval" in given:
        if "evaluate_every" in given:
            raise UsageError("--noval and --evaluate-every: two answers to one question; name one")
        settings["evaluate_every"] = settings.get("epochs", 100_000)
    return settings


def _precision(given: Given) -> Given:
    named = named_precision(given)
    if "amp" in given and given.get("precision") in ("fp32", "tf32"):
        raise UsageError(f"--amp and --precision {given['precision']}: 16 and 32 bit at once; name one")
    return named or ({"precision": "auto"} if "amp" in given else {})


def _size(given: Given, notes: list[str]) -> str:
    """The size that ``--cfg`` names, in agreement with ``--size``."""
    from yolov9kit.model.variants import VARIANTS

    cfg = str(given["cfg"])
    name = cfg.replace("\\", "/").rpartition("/")[2].lower()
    known = re.fullmatch(rf"(?:(yolov9|gelan)-)?({'|'.join(VARIANTS)})(?:\.ya?ml)?", name)
    if known is None:
        raise UsageError(
            f"--cfg {cfg}: names no size. There are {', '.join(VARIANTS)}: write yolov9-s.yaml, gelan-s.yaml or s"
        )
    family, size = known.groups()
    if given.get("size", size) != size:
        raise UsageError(f"--cfg {cfg} and --size {given['size']}: two sizes at once; name one")
    if family == "gelan":
        notes.append(f"--cfg {cfg}: size {size} is trained with its auxiliary branch, as yolov9-{size}")
    elif Path(cfg).is_file():
        notes.append(f"--cfg {cfg}: size {size} is read from the name, the file is not")
    return size


def _set(given: Given) -> Given:
    from yolov9kit.training.config import TrainConfig, nearest

    settings: Given = {}
    for word in given.get("set", ()):
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"--set {word}: KEY=VALUE is expected")
        if name not in TrainConfig.model_fields:
            raise UsageError(f"--set {word}: no such setting.{nearest(name, TrainConfig.model_fields)}")
        if name in settings:
            raise UsageError(f"--set {word}: {name} is set twice; name one value")
        settings[name] = value
        if name == "freeze":
            settings[name] = value.split(",")
        elif value.lower() == "none" and TrainConfig.model_fields[name].default is None:
            settings[name] = None
    return settings


def _hyp(given: Given, chosen: Given, notes: list[str]) -> Given:
    if "hyp" not in given:
        return {}
    from yolov9kit.training.hyp import read_hyp

    found, about = read_hyp(given["hyp"])
    settings: Given = dict(found)
    notes.extend(about)
    optimizer = chosen.get("optimizer")
    if "lr0" in settings and optimizer is None:
        settings["optimizer"] = "sgd"
        notes.append(
            f"optimizer sgd: lr0 {settings['lr0']:g} of {given['hyp']} is meant for it; --optimizer overrules"
        )
    elif "lr0" in settings and "lr0" not in chosen and optimizer != "sgd":
        notes.append(
            f"lr0 {settings['lr0']:g} of {given['hyp']} is meant for SGD and taken for {optimizer} as it is"
        )
    return settings


# ---------------------------------------------------------------------------------------------- an old run


def _option(name: str) -> str:
    return OPTIONS[name][0][0] if name in OPTIONS else f"--{name.replace('_', '-')}"


def _extension(given: Given) -> tuple[int, Path]:
    _refuse_settings(given, {"extend", "resume", "quiet"}, "an extended run keeps its settings")
    epochs, *runs = given["extend"]
    runs += [given["resume"]] if given.get("resume") else []
    if not re.fullmatch("[0-9]+", epochs):
        raise UsageError(f"--extend {epochs}: the number of epochs in all is expected first")
    if len(runs) != 1:
        raise UsageError(
            f"--extend {epochs}: the folder of one run is expected, --extend {epochs} runs/train/exp"
        )
    return int(epochs), folder_of_run(runs[0])


def _run_to_resume(given: Given) -> Path:
    named = given["resume"]
    allowed = {"resume", "device", "workers", "quiet"} | (set() if named else {"project"})
    _refuse_settings(given, allowed, "a resumed run keeps its settings; extend it with --extend")
    return folder_of_run(named) if named else newest_run(Path(given.get("project", "runs/train")))


def _refuse_settings(given: Given, allowed: set[str], why: str) -> None:
    others = [_option(name) for name in given if name not in allowed]
    if others:
        raise UsageError(f"{', '.join(others)}: {why}")


def folder_of_run(named: str) -> Path:
    """``RUN``, ``RUN/weights/last.pt`` and ``RUN/state.safetensors`` all name the folder ``RUN``."""
    path = Path(named)
    if path.is_dir():
        return path.parent if path.name == "weights" and not (path / STATE).exists() else path
    if path.suffix in (".pt", ".safetensors", ".jsonl", ".json"):
        return path.parent.parent if path.parent.name == "weights" else path.parent
    return path


def newest_run(project: Path) -> Path:
    """The run in ``project`` that saved its state last and has not ended.

    Raises:
        UsageError: there is none.
        TrainingError: the state of one cannot be read.
    """
    states = sorted(project.glob(f"*/{STATE}"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for state in states:
        if not _ended(state):
            return state.parent
    if not states:
        raise UsageError(
            f"--resume: no run in {project}; name the folder of one, or that of runs with --project"
        )
    raise UsageError(
        f"--resume: all {len(states)} runs in {project} have ended. To train one longer: --extend N {states[0].parent}"
    )


def _ended(state: Path) -> str:
    """Why the run ended; empty for one that can go on. Reads the head of the file alone, which may be large."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(state, framework="np") as file:
            return str(json.loads(file.metadata()["progress"])["ended"])
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise TrainingError(
            f"{state}: cannot be read as the state of a run ({error}); name another run"
        ) from None
