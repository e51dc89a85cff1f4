"""Pages in a real browser."""

import pytest


@pytest.fixture
def open_page(browser):
    """Opens an address; whatever the script of the page or its policy complain of fails the test."""
    complaints, contexts = [], []

    def opened(address, *, wait_for=None, **options):
        contexts.append(browser.new_context(**({"viewport": {"width": 1400, "height": 900}} | options)))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        if wait_for is not None:
            page.wait_for_selector(wait_for)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
