"""Chromium for the tests that look at pages, cut off from what it would ask for by itself."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-sync", "--disable-component-update", "--disable-default-apps", "--disable-extensions"),
    "--disable-dev-shm-usage",
]


@contextmanager
def launched() -> Iterator[Any]:
    """A running Chromium; in CI a machine without it is a failure, elsewhere its tests skip by name.

    No fixture, as its life has to be short where other tests of the process run event loops of their own.
    """
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed: apt-get install chromium")
        pytest.skip("needs Chromium (apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Guarded:
    """A page that goes nowhere but to ``address``, where a test's own document stands, and keeps its errors."""

    def __init__(self, tab: Any, address: str) -> None:
        self.tab, self.address = tab, address
        self.errors: list[str] = []
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        tab.on("request", lambda request: self._check(request.url))

    def _check(self, url: str) -> None:
        if not url.startswith(("data:", "blob:", self.address)):
            self.errors.append(f"asked for {url}")

    def show(self, document: str) -> None:
        """Load a document as that of ``address``."""
        self.tab.unroute_all()
        self.tab.route(self.address, lambda route: route.fulfill(body=document, content_type="text/html"))
        self.tab.goto(self.address)

    def await_drawing(self, selector: str, act: Any) -> None:
        """``act``, and wait until the element has drawn what that changed."""
        before = int(self.tab.get_attribute(selector, "data-rendered"))
        act()
        self.tab.wait_for_function(
            f"Number(document.querySelector('{selector}').dataset.rendered) > {before}", timeout=5000
        )
