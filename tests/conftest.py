"""Fixtures for all tests."""

import os
from importlib.util import find_spec
from pathlib import Path

import chromium
import numpy as np
import pytest
from hypothesis import settings

# Compiled code, a shared machine: the time of one example says nothing. In CI the same examples every time, so that a
# change is judged by what it changed; elsewhere new ones, so that they are found.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture
def rng():
    return np.random.default_rng(20220706)


@pytest.fixture
def shared_data():
    """Real data beside the repository; what needs it is skipped where it is absent."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real data in {folder.parent.name}/{folder.name}, which is not here")
    return folder


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
