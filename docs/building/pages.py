"""Copies docs/ to build/docs as the site has it: notebooks as pages, links to where the site has what they name.

``python docs/building/pages.py``, before the generator: nothing here depends on which one that is.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from notebook_page import page_of

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]
# Files beside docs/ that are pages of the site, too.
OF_THE_ROOT = {f"{name}.md": f"{name.lower()}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")}
# What the site serves as it is; other files are shown on the forge.
SERVED = {".svg", ".png", ".json", ".ipynb", ".css", ".js"}
# The start page has room for its picture. Forges show such lines as a table, so they are not in the file.
HEAD = {"index.md": "---\nhide: [navigation, toc]\n---\n\n"}

_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)")
# A table, and a cell that is a number, perhaps with an interval or a unit.
_TABLE = re.compile(r"(?:^\|.*\|[ ]*\n)+", re.MULTILINE)
_NUMBER = re.compile(r"[\s*+−<>≤≥±~–-]*\.?\d[^A-Za-z`]*[a-zµ%×]{0,3}\s*\**\s*$")
_ROW = re.compile(r"^\| `(lesioncount[\w.]*)` \|", re.MULTILINE)


def pages() -> dict[str, str]:
    """The text of every page of the site, by its path there."""
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
    texts |= {name: (ROOT / name).read_text("utf-8") for name in OF_THE_ROOT}
    texts |= {path.relative_to(ROOT).as_posix(): page_of(path) for path in DOCS.rglob("*.ipynb")}
    return {place(source): _page(source, text) for source, text in texts.items()}


def place(source: str) -> str:
    """Where the site has a file of the repository, or nothing if it does not have it."""
    if source in OF_THE_ROOT:
        return OF_THE_ROOT[source]
    path = Path(source)
    if path.suffix not in SERVED | {".md"} or path.parts[0] != "docs":
        return ""
    return path.with_suffix(".md" if path.suffix == ".ipynb" else path.suffix).relative_to("docs").as_posix()


def _page(source: str, text: str) -> str:
    # Without a prompt, a highlighter takes commands for what they print, and makes them grey.
    text = re.sub(r"^```console\n(?=(?:[^$`\n].*\n|\n)*```)", "```sh\n", text, flags=re.MULTILINE)
    text = _TABLE.sub(lambda table: _unsearched(table[0]), text)
    text = HEAD.get(place(source), "") + _LINK.sub(lambda link: _on_the_site(link[1], source), text)
    return _with_entries(text) if source.startswith("docs/reference/") else text


def _unsearched(table: str) -> str:
    """A table; if most of it are numbers, so that the search leaves it out: nobody looks for digits."""
    cells = [cell for row in table.splitlines()[2:] for cell in row.strip().strip("|").split("|")[1:] if cell.strip()]
    if 2 * sum(_NUMBER.match(cell) is not None for cell in cells) <= len(cells):
        return table
    return f'<div data-search-exclude markdown="1">\n\n{table}\n</div>\n'


def _on_the_site(target: str, source: str) -> str:
    """A relative link of the repository, as one of the site: to a page or file that it has, or else to the forge."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    if place(path):
        return posixpath.relpath(place(path), posixpath.dirname(place(source)))
    return f"{REPOSITORY}/{'tree' if (ROOT / path).is_dir() else 'blob'}/main/{path}"


def _with_entries(text: str) -> str:
    """The names in the tables of a page as links, and beneath all else what their docstrings say."""
    names = _ROW.findall(text)
    linked = _ROW.sub(lambda row: f"| [`{row[1]}`][{row[1]}] |", text)
    return "\n\n".join([linked, *(_entry(name, names) for name in names)])


def _entry(name: str, names: list[str]) -> str:
    """What the generator puts the docstring in place of; members that have an entry of their own are not told twice."""
    is_module = any(other.startswith(f"{name}.") for other in names)
    return f"::: {name}" + ("\n    options:\n      members: false" if is_module else "")


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    served = (path for path in DOCS.rglob("*") if path.suffix in SERVED)
    contents = {path.relative_to(DOCS).as_posix(): path.read_bytes() for path in served}
    contents |= {name: text.encode() for name, text in pages().items()}
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main(ROOT / "build" / "docs")
