"""What a page was made from, as a line of it: a page that shows just what is there is not made again."""

from __future__ import annotations

import hashlib

from lesioncount.folder.output import OutputFolder
from lesioncount.report.templates import looks
from lesioncount.version import __version__


def fingerprint_of(*about: object) -> str:
    """What a page depends on: how we draw, and what it is about."""
    return hashlib.sha256(repr((__version__, looks(), *about)).encode("utf-8", "backslashreplace")).hexdigest()


def is_written(folder: OutputFolder, page: str, fingerprint: str) -> bool:
    """Whether a page is there, ours, and made from just this."""
    try:
        head = (folder.path / page).read_text("utf-8", errors="replace")
    except OSError:
        return False
    return f'<meta name="fingerprint" content="{fingerprint}">' in head and folder.is_ours(page)
