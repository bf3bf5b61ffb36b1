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
