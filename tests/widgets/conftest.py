"""ipywidgets swallows what a callback raises and only logs it: here that is a failure."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _callbacks_do_not_fail(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    swallowed = [r for r in caplog.get_records("call") if r.getMessage().startswith("Exception in callback")]
    assert not swallowed, f"a widget callback raised {swallowed[0].exc_info[1]!r}"
