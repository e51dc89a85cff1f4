"""Refreshes what the tables of docs/reference say of each public name: ``python docs/building/names.py``.

Needs PyTorch, MONAI and torchmetrics: what cannot be imported stays as it is.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
_ROW = re.compile(r"^\| `(lesioncount[\w.]*)` \| (.*) \|$", re.MULTILINE)


def names_on(page: str) -> list[str]:
    """The public names that a page has an entry for."""
    return [name for name, _ in _ROW.findall(page)]


def named(name: str) -> Any:
    """What a dotted name stands for."""
    first, *parts = name.split(".")
    found = import_module(first)
    for part in parts:
        found = getattr(found, part, None) or import_module(f"{found.__name__}.{part}")
    return found


def refreshed(page: str) -> str:
    """The page, with the first line of each docstring beside its name; constants have none, and keep what they have."""
    return _ROW.sub(lambda row: f"| `{row[1]}` | {_summary(row[1]) or row[2]} |", page)


def _summary(name: str) -> str:
    try:
        found = named(name)
    except ImportError:
        return ""
    if not (inspect.isclass(found) or inspect.isroutine(found) or inspect.ismodule(found)):
        return ""
    line = (inspect.getdoc(found) or "").partition("\n")[0]
    return line.replace("``", "`").replace("|", "\\|").replace("*", "\\*")


def main() -> None:
    for path in REFERENCE.glob("*.md"):
        path.write_text(refreshed(path.read_text("utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
