"""A notebook → a page: its text, its code, and the outputs that are stored in it."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def page_of(notebook: Path) -> str:
    """The notebook as Markdown, with a link to itself beneath its title."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    title, *parts = (part for cell in cells for part in _cell(cell))
    heading, _, text = title.partition("\n")
    download = f'<p class="notebook"><a href="{notebook.name}" download>Download this notebook</a></p>'
    return "\n\n".join([heading, download, text.strip(), *parts]) + "\n"


def _cell(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield f'<div class="output" tabindex="0">\n{_output(output, cell["metadata"].get("alt", ""))}\n</div>'


def _output(output: dict[str, Any], alt: str) -> str:
    """The richest form of an output that a page can show."""
    if output["output_type"] == "stream":
        return _text(output["text"])
    data = output["data"]
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{png}">'
    return "".join(data["text/html"]) if "text/html" in data else _text(data["text/plain"])


def _text(lines: list[str]) -> str:
    return f"<pre>{html.escape(''.join(lines))}</pre>"
