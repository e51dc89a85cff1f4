"""Looks through the built pages: every link leads somewhere, and nothing is loaded from elsewhere.

``python docs/building/check.py site``, after the generator: it checks what readers get, whatever made it.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, by element and attribute.
_LOADED = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("image", "href"), ("use", "href")}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "modulepreload"}


class _Page(HTMLParser):
    """The anchors, links and loaded files of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.loaded |= {value for name, value in given.items() if (tag, name) in _LOADED}
        if tag == "link" and _LOADED_LINKS & set(given.get("rel", "").split()):
            self.loaded.add(given["href"])
        elif tag == "a" and "href" in given:
            # The theme asks the forge for the numbers of a repository that is shown in this way.
            (self.loaded if given.get("data-md-component") == "source" else self.links).add(given["href"])


def problems(site: Path) -> list[str]:
    """What is wrong with the pages of a site, one line each."""
    # The page for what is not found has addresses from the root of the server.
    paths = [path for path in sorted(site.rglob("*.html")) if path.name != "404.html"]
    pages = {path.resolve(): _Page(path) for path in paths}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        found += [f"{where} loads {one}" for one in sorted(page.loaded) if urlsplit(one).netloc]
        found += [f"{where} leads to {one}" for one in sorted(page.links | page.loaded) if _is_dead(one, path, pages)]
    return found


def _is_dead(target: str, path: Path, pages: dict[Path, _Page]) -> bool:
    split = urlsplit(target)
    if split.scheme or split.netloc:
        return False
    file = (path.parent / unquote(split.path)).resolve() if split.path else path
    file = file / "index.html" if file.is_dir() else file
    anchor = unquote(split.fragment)
    return not file.is_file() or bool(anchor and file in pages and anchor not in pages[file].anchors)


def main(site: str) -> None:
    found = problems(Path(site))
    if found:
        sys.exit("\n".join(found))
    print(f"{sum(1 for _ in Path(site).rglob('*.html'))} pages: no dead link, and nothing loaded from elsewhere")


if __name__ == "__main__":
    main(*sys.argv[1:])
