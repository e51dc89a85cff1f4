"""The files of the page, which are built before a wheel is made: a fixed list, and nothing else is ever opened."""

from __future__ import annotations

from pathlib import Path

# Where they are, and what they are.
FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
TYPES = {"app.js": "text/javascript", "app.css": "text/css", "niivue.js": "text/javascript"}

# Where niivue.js is not there, which is built and not in the repository.
NOT_BUILT = "The page's viewer was not built: niivue.js is missing. Without it there are no pictures to decide on. "
    "Install a wheel of lesioncount, which holds it, or build it from a checkout with npm: make viewer."


def has_viewer() -> bool:
    """Whether all files of the page are there."""
    return all((FOLDER / name).is_file() for name in (INDEX, *TYPES))


def index() -> str:
    """The page; where it is not there, one that says so."""
    path = FOLDER / INDEX
    if path.is_file():
        return path.read_text("utf-8")
    return f'<!doctype html><meta charset="utf-8"><title>lesioncount review</title><p>{NOT_BUILT}</p>'


def page_file(name: str) -> bytes | None:
    """The content of a file of the page; None if there is none of that name."""
    path = FOLDER / name if name in TYPES else None
    return path.read_bytes() if path is not None and path.is_file() else None
