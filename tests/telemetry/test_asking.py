"""No answer is a None with a reason, until there is an answer again."""

import pytest

from yolov9kit.errors import DeviceError
from yolov9kit.telemetry.asking import Asker


def failing(error: Exception) -> float:
    raise error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (DeviceError("a finished sentence"), "a finished sentence"),
        (OSError("two\nlines"), "OSError: two lines"),
        (ZeroDivisionError(), "ZeroDivisionError: no reason given"),
    ],
)
def test_a_failure_is_kept_in_words_and_forgotten_with_the_next_answer(error: Exception, reason: str) -> None:
    asker = Asker()
    assert asker.ask(("a", "b"), lambda: failing(error)) is None
    assert asker.missing == {"a": reason, "b": reason}
    assert asker.ask("a", lambda: 0.0) == 0.0
    assert asker.missing == {"b": reason}
    asker.ask("c", lambda: 1.0)
    assert asker.missing == {"b": reason}
