"""The browser that pages are tested in: Debian's chromium, or one that playwright has fetched."""

import os
import shutil
import sys
from pathlib import Path

# WebGL without a graphics card; nothing is asked of the network.
FLAGS = [
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
]
_NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """The path of the browser; None where there is none."""
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    return found or _fetched()


def _fetched():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return str(path) if path.is_file() else None


if __name__ == "__main__":
    sys.exit(0 if find() else "no chromium here")
