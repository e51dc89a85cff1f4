"""Fixtures for tests of the package."""

from importlib.util import find_spec

import chromium
import pytest
from local_servers import local_bucket, local_server


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


@pytest.fixture
def server(tmp_path):
    """A web server on this machine, with a folder of its own."""
    folder = tmp_path / "served"
    folder.mkdir()
    with local_server(folder) as running:
        yield running


@pytest.fixture
def bucket(monkeypatch):
    """A bucket on this machine."""
    pytest.importorskip("moto", reason="needs moto, a bucket on this machine")
    from lesioncount.files import remote_objects

    remote_objects._bucket.cache_clear()
    with local_bucket(monkeypatch) as running:
        yield running
    remote_objects._bucket.cache_clear()


@pytest.fixture
def impatient(monkeypatch):
    """Retries are over at once."""
    from lesioncount.files import remote_objects

    monkeypatch.setattr(remote_objects, "_RETRIES", {"max_retries": 0})
    remote_objects._server.cache_clear()
    remote_objects._bucket.cache_clear()
