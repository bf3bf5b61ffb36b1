"""What a device makes of each precision and mode: offered all the same, with the reason why not."""

from dataclasses import dataclass
from typing import Any

import yolov9kit

PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
MODES = ("eager", "auto", "graph", "compiled", "onnx")


@dataclass(frozen=True)
class Offers:
    """What a device makes of each precision and mode: a label for each name, and the reasons in words."""

    labels: dict[str, str]
    reasons: tuple[str, ...]


def offers_of(device_name: str) -> Offers:
    """Asked of the library, which refuses the same in the same words when it measures."""
    device = yolov9kit.choose_device(device_name)
    labels: dict[str, str] = {}
    reasons: list[str] = []
    precisions = []
    for name in PRECISIONS:
        try:
            precision = yolov9kit.choose_precision(name, device)
        except yolov9kit.KitError as error:
            labels[name] = f"{name} (not here)"
            reasons.append(str(error))
            continue
        precisions.append(precision)
        labels[name] = name if precision.native else f"{name} (emulated)"
        if not precision.native:
            reasons.append(f"precision {precision.label}")
    for name in MODES:
        labels[name], reason = _offer_of_mode(name, device, precisions)
        reasons += [reason] if reason else []
    return Offers(labels, tuple(reasons))


def _offer_of_mode(name: str, device: Any, precisions: list[Any]) -> tuple[str, str]:
    """The label of a mode, and why it is not to be had, in all or some of the precisions."""
    chosen: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    for precision in precisions:
        try:
            mode = yolov9kit.choose_mode(name, device, precision)
        except yolov9kit.KitError as error:
            refused[precision.name] = str(error)
        else:
            chosen.setdefault(mode.name, []).append(precision.name)
    if not chosen:
        return f"{name} (not here)", next(iter(refused.values()))
    if refused:
        return f"{name} ({', '.join(next(iter(chosen.values())))} only)", next(iter(refused.values()))
    if name == "auto":
        takes = "; ".join(f"{mode} in {', '.join(names)}" for mode, names in chosen.items())
        return f"auto ({' or '.join(chosen)})", f"mode auto: takes {takes}"
    return name, ""
