"""Text files that carry a check sum over their name and content: ours, whole and unchanged, or not."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

# The last line but for a closing brace: in JSON a key; in pages, drawings and scripts, which take it too, a comment.
_MARK = re.compile(r'(?:^|\n)(?:"checksum": "|<!-- checksum: )([0-9a-f]{64})(?:"\n\}| -->)\n?\Z')
_LONGEST_MARK = 120


def certified(name: str, text: str) -> str:
    """A text with its check sum: JSON, written with a line per key, or HTML, SVG and scripts."""
    if text.endswith("\n}\n"):
        body = text.removesuffix("\n}\n") + ",\n"
        return f'{body}"checksum": "{_checksum(name, body)}"\n}}\n'
    body = text if text.endswith("\n") else f"{text}\n"
    return f"{body}<!-- checksum: {_checksum(name, body)} -->\n"


def is_certified(path: Path) -> bool:
    """Whether a file is as we wrote it, under this name."""
    try:
        text = path.read_text("utf-8", errors="strict")
    except (OSError, UnicodeDecodeError):
        return False
    return is_certified_text(path.name, text)


def is_certified_text(name: str, text: str) -> bool:
    """The same of the text of a file that was read."""
    mark = _MARK.search(text, max(0, len(text) - _LONGEST_MARK))
    if mark is None:
        return False
    begin = mark.start() + (text[mark.start()] == "\n")
    return _checksum(name, text[:begin]) == mark[1]


def _checksum(name: str, body: str) -> str:
    return hashlib.sha256(f"{name}\n{body}".encode("utf-8", "backslashreplace")).hexdigest()
