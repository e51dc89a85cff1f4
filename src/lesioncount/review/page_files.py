"""The files of the page, which are built before a wheel is made: a fixed list, and nothing else is ever opened."""

from __future__ import annotations

from pathlib import Path

# Where they are, and what they are. Listed once: no name that a browser sends is ever looked for on the disk.
FOLDER = Path(__file__).parent / "page"
INDEX = "index.html"
VIEWER = "niivue.js"
_KINDS = {".js": "text/javascript", ".css": "text/css"}
TYPES = {path.name: _KINDS[path.suffix] for path in sorted(FOLDER.glob("*")) if path.suffix in _KINDS}

# Where niivue.js is not there, which is built and not in the repository.
NOT_BUILT = (
    "The viewer of the page was not built: niivue.js is missing, so candidates can be decided on, but not seen. "
    "A wheel of lesioncount holds it; in a clone, `make page` builds it."
)


def has_viewer() -> bool:
    """Whether the page can show pictures."""
    return VIEWER in TYPES


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
