"""Fixtures for tests of the package."""

from importlib.util import find_spec

import chromium
import pytest


@pytest.fixture(scope="module")  # for longer, its event loop would be in the way of tests that have one of their own
def browser():
    """A real chromium, driven by playwright."""
    if find_spec("playwright") is None:
        pytest.skip("needs playwright: pip install playwright")
    path = chromium.find()
    if path is None:
        pytest.skip("needs chromium: `make browser` fetches one where the system has none")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=chromium.FLAGS)
        yield browser
        browser.close()
