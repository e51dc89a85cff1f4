"""Docstrings are plain text in the manner of numpydoc: make Markdown of what the two write differently."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import griffe

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
_TEXT = "".join(page.read_text("utf-8") for page in sorted(REFERENCE.glob("*.md"), reverse=True))
# How docstrings call a public name: by its last part. That of the core goes before its twin in torch.
_FULL = {name.rpartition(".")[2]: name for name in re.findall(r"^\| `(lesioncount[\w.]*)` \|", _TEXT, re.MULTILINE)}
_CALLED = re.compile(r"(?<!`)`([A-Za-z_]\w*)`(?![`\]])")


class Docstrings(griffe.Extension):
    """Turns the colons before a block into one, and names in backticks into links."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite a docstring before it is parsed."""
        if obj.docstring:
            lines = obj.docstring.value.split("\n")
            obj.docstring.value = "\n".join(line if ">>>" in line else _as_markdown(line) for line in lines)


def _as_markdown(line: str) -> str:
    line = re.sub(r"::$", ":", line)
    return _CALLED.sub(lambda name: f"[`{name[1]}`][{_FULL[name[1]]}]" if name[1] in _FULL else name[0], line)
