"""Draws docs/figures/layers.svg from the contract of the import linter: ``python docs/building/layers.py``.

Each layer imports only from the layers below it. What a room holds is the first line of its docstring.
"""

from __future__ import annotations

import ast
import textwrap
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "lesioncount"
PICTURE = ROOT / "docs" / "figures" / "layers.svg"

INK, FAINT, FILL = "#1b2a38", "#5b6b7a", "#eef3f8"
WIDTH, MARGIN, LEFT, GAP = 980, 16, 52, 6
# Text of 12 pixels and its lines; letters are at most so wide on average in the fonts that browsers use.
SIZE, LINE, LETTER = 12, 16, 6.9
PAD, NAME = 9, 118  # inside a box: around its text, and the column of names where a box has a whole layer


def layers() -> list[list[str]]:
    """The rooms of each layer, the top layer first, as the contract lists them."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (contract,) = (one for one in linter["contracts"] if one["type"] == "layers")
    return [[room.strip().removeprefix(f"{PACKAGE}.") for room in layer.split("|")] for layer in contract["layers"]]


def holds(room: str) -> str:
    """What a room or module holds: the first line of its docstring. It is read, not imported."""
    path = ROOT / "src" / PACKAGE / room
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return docstring.partition("\n")[0].rstrip(".").replace("`", "")


def shown_name(room: str) -> str:
    """A folder ends in a slash, a module in .py."""
    return f"{room}/" if (ROOT / "src" / PACKAGE / room).is_dir() else f"{room}.py"


def text(x: float, y: float, words: str, *, colour: str = INK, weight: int = 400) -> str:
    return f'<text x="{x:g}" y="{y:g}" fill="{colour}" font-weight="{weight}">{escape(words, quote=False)}</text>'


def row(rooms: list[str], top: float) -> tuple[list[str], float]:
    """The boxes of a layer, and where the layer ends."""
    width = (WIDTH - MARGIN - LEFT - GAP * (len(rooms) - 1)) / len(rooms)
    indent, above = (NAME, 0) if len(rooms) == 1 else (0, LINE)  # the name is left of what it holds, or above it
    lines = [textwrap.wrap(holds(room), int((width - 2 * PAD - indent) / LETTER)) for room in rooms]
    height = max(map(len, lines)) * LINE + above + 2 * PAD - 4
    drawn = []
    for place, (room, words) in enumerate(zip(rooms, lines, strict=True)):
        x, y = LEFT + place * (width + GAP), top + PAD + SIZE - 2
        box = f'x="{x:g}" y="{top:g}" width="{width:g}" height="{height:g}"'
        drawn.append(f'<rect {box} rx="5" fill="{FILL}" stroke="{FAINT}" stroke-opacity="0.5"/>')
        drawn.append(text(x + PAD, y, shown_name(room), weight=600))
        drawn += [text(x + PAD + indent, y + above + n * LINE, line, colour=FAINT) for n, line in enumerate(words)]
    return drawn, top + height


def drawing() -> str:
    """The picture as SVG, with the lowest layer at the bottom."""
    body, bottom = [], float(MARGIN)
    for rooms in layers():
        boxes, bottom = row(rooms, bottom)
        body += boxes
        bottom += GAP
    middle, end, height = (MARGIN + bottom - GAP) / 2, bottom - GAP, bottom - GAP + MARGIN
    arrow = f"M30 {MARGIN}V{end:g}m-6 -9l6 9l6 -9"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}" '
        f'font-family="system-ui, sans-serif" font-size="{SIZE}" role="img">\n'
        f"<title>The {len(layers())} layers of {PACKAGE}; each imports only from those below it</title>\n"
        f'<rect width="{WIDTH}" height="{height:g}" rx="8" fill="#ffffff"/>\n'
        f'<path d="{arrow}" fill="none" stroke="{FAINT}" stroke-width="1.5"/>\n'
        f'<text x="20" y="{middle:g}" fill="{FAINT}" text-anchor="middle" '
        f'transform="rotate(-90 20 {middle:g})">imports point downwards</text>\n' + "\n".join(body) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
