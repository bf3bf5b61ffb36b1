"""Which GPU of the driver is torch's ``cuda:N``, told without starting CUDA.

The driver (NVML) counts GPUs by slot and knows nothing of ``CUDA_VISIBLE_DEVICES``; CUDA hides, renumbers and, where
models differ, sorts by speed. Whatever cannot be told for certain is refused in words: a wrong GPU is worse than none.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yolov9kit.errors import DeviceError, UsageError


@dataclass(frozen=True)
class Instance:
    """A part of a GPU (MIG). ``handle`` is the driver's."""

    handle: Any
    uuid: str
    name: str
    gpu_instance: int
    compute_instance: int


@dataclass(frozen=True)
class Card:
    """A GPU, in the driver's order. ``problem`` says why it cannot be asked; ``handle`` is None then."""

    handle: Any
    uuid: str
    name: str
    mig: bool = False
    instances: tuple[Instance, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Match:
    """The GPU, or the part of it, that a torch device is, and by what it was told."""

    card: Card
    instance: Instance | None
    how: str


Part = tuple[Card, Instance | None]


def gpu_number(device: str) -> int | None:
    """N of ``cuda:N``, ``cuda`` or ``N``; None for ``cpu`` and ``mps``.

    Raises:
        UsageError: not the name of one device.
    """
    text = device.strip().lower()
    if text in ("cpu", "mps"):
        return None
    match = re.fullmatch(r"(?:cuda|gpu)|(?:cuda:)?([0-9]{1,4})", text)
    if match is None:
        raise UsageError(f"device {device!r}: name one as torch does: cpu, cuda:0, cuda:1, mps")
    return int(match[1] or 0)


def by_uuid(cards: Sequence[Card], uuid: str) -> Match:
    """The card or instance of that UUID, with or without ``GPU-`` or ``MIG-`` in front, as torch and the driver say it.

    Raises:
        DeviceError: none has it, or several begin so.
    """
    wanted = [uuid] if re.match(r"(GPU|MIG)-", uuid, re.IGNORECASE) else [f"GPU-{uuid}", f"MIG-{uuid}"]
    found = [pair for name in wanted for pair in _named(cards, name)]
    if len(found) != 1:
        known = ", ".join(card.uuid for card in cards if card.uuid) or "none"
        what = "no GPU has it" if not found else "several GPUs begin so"
        raise DeviceError(f"GPU with UUID {uuid!r}: {what}; the driver has {known}")
    card, instance = found[0]
    return Match(card, instance, "UUID")


def by_environment(cards: Sequence[Card], number: int, environment: Mapping[str, str]) -> Match:
    """The GPU that a process with this ``environment`` calls ``cuda:{number}``.

    Raises:
        DeviceError: it is hidden or absent, or CUDA's numbering cannot be told from here.
    """
    text = environment.get("CUDA_VISIBLE_DEVICES")
    how = "the driver's order" if text is None else f"CUDA_VISIBLE_DEVICES={text!r}"
    by_name = text is not None and text.strip().upper().startswith(("GPU-", "MIG-"))
    if not by_name:
        _check_numbers(cards, environment.get("CUDA_DEVICE_ORDER", ""))
    if text is None:
        found = [_whole(card) for card in cards]
    elif by_name:
        found = _shown_by_name(cards, text)
    else:
        found = _shown_by_number(cards, text)
    shown = [part for part in found if part is not None]
    # where CUDA meets a MIG instance, it shows a process this one and nothing else
    shown = [part for part in shown if part[1] is not None][:1] or shown
    if number >= len(shown):
        setting = "" if text is None else f" with CUDA_VISIBLE_DEVICES={text!r}"
        raise DeviceError(
            f"cuda:{number} is not there: of {len(cards)} GPUs torch sees {len(shown)}{setting}"
        )
    card, instance = shown[number]
    return Match(card, instance, how)


def _check_numbers(cards: Sequence[Card], order: str) -> None:
    for number, card in enumerate(cards):
        if card.problem:  # CUDA may leave it out or not
            raise DeviceError(
                f"GPU {number} of the driver does not answer ({card.problem}): numbers tell nothing"
            )
    models = sorted({card.name for card in cards})
    if len(models) > 1 and order != "PCI_BUS_ID":
        raise DeviceError(
            f"GPUs of different models ({', '.join(models)}) are numbered by speed inside CUDA, so the number does "
            "not tell which it is: set CUDA_DEVICE_ORDER=PCI_BUS_ID, or give the GPU's UUID"
        )


def _whole(card: Card) -> Part | None:
    """What CUDA makes of a card: itself, its first instance, or nothing where it is split but has no instance."""
    if not card.mig:
        return card, None
    return (card, card.instances[0]) if card.instances else None


def _shown_by_number(cards: Sequence[Card], text: str) -> list[Part | None]:
    """CUDA reads ``1gpu`` as 1, ends the list at the first entry that it cannot use, and shows none if one repeats."""
    numbers: list[int] = []
    for entry in text.split(","):
        match = re.match(r"\s*\+?([0-9]+)", entry)
        if match is None or int(match[1]) >= len(cards):
            break
        if int(match[1]) in numbers:
            return []
        numbers.append(int(match[1]))
    return [_whole(cards[number]) for number in numbers]


def _shown_by_name(cards: Sequence[Card], text: str) -> list[Part | None]:
    shown: list[Part | None] = []
    kind = text.strip()[:4].upper()
    for entry in map(str.strip, text.split(",")):
        found = _named(cards, entry) if entry.upper().startswith(kind) else []
        if len(found) != 1:
            break
        card, instance = found[0]
        part = (card, instance) if instance is not None else _whole(card)
        if part in shown:
            return []
        shown.append(part)
    return shown


def _named(cards: Sequence[Card], name: str) -> list[Part]:
    """All cards and instances whose UUID begins with ``name``, or that its older form ``MIG-GPU-.../gi/ci`` means."""
    name = name.lower()
    found: list[Part] = [(card, None) for card in cards if card.uuid and card.uuid.lower().startswith(name)]
    old_form = re.fullmatch(r"mig-(gpu-[^/]+)/([0-9]+)/([0-9]+)", name)
    for card in cards:
        for instance in card.instances:
            if old_form is None:
                same = instance.uuid.lower().startswith(name)
            else:
                place = (card.uuid.lower(), str(instance.gpu_instance), str(instance.compute_instance))
                same = place == old_form.groups()
            if same:
                found.append((card, instance))
    return found
