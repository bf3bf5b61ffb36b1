"""A filter says what it asks for, and knows what can be asked."""

import pytest

from yolov9kit import ExploreFilter
from yolov9kit.errors import UsageError


def test_it_reads_as_python_without_what_is_not_asked() -> None:
    assert str(ExploreFilter()) == "ExploreFilter()"
    wanted = ExploreFilter(classes=(1, 2), sizes=("small",), text="a 'b'", empty=False, sort="size")
    assert eval(str(wanted)) == wanted
    assert "splits" not in str(wanted) and "codes" not in str(wanted)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": ("tiny",)}, "size 'tiny': there is small, medium, large"),
        ({"sort": "date"}, "order 'date': there is name, boxes, findings, size"),
    ],
)
def test_what_does_not_exist_is_named(settings: dict, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ExploreFilter(**settings)
