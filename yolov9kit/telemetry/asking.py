"""Questions that may go unanswered."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from yolov9kit.errors import KitError

Answer = TypeVar("Answer")


class Asker:
    """Asks, and where there is no answer keeps the reason under the name of the value until there is one again."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}

    def ask(self, names: str | Iterable[str], question: Callable[[], Answer]) -> Answer | None:
        """The answer, or None and a reason for each of ``names``. Never raises."""
        names = (names,) if isinstance(names, str) else tuple(names)
        try:
            answer = question()
        except Exception as error:  # a driver may raise anything; the other values still count
            self.missing.update(dict.fromkeys(names, in_words(error)))
            return None
        for name in names:
            self.missing.pop(name, None)
        return answer


def in_words(error: Exception) -> str:
    """One line: our own sentences as they are, others with the kind of error in front."""
    text = " ".join(str(error).split())[:200]
    if isinstance(error, KitError):
        return text
    return f"{type(error).__name__}: {text or 'no reason given'}"
