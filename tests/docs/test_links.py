"""Links between the pages of the repository lead somewhere: to a file that is there, and to a heading that it has."""

import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]


@cache
def tokens_of(path):
    return MarkdownIt("commonmark").enable("table").parse(path.read_text("utf-8"))


@cache
def anchors_of(path):
    """The headings of a page as forges link to them: lower case, words joined by hyphens, repeated ones numbered."""
    anchors = []
    for opening, heading in zip(tokens_of(path), tokens_of(path)[1:], strict=False):
        if opening.type == "heading_open":
            words = "".join(part.content for part in heading.children)
            slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            repeated = sum(anchor == slug or re.fullmatch(rf"{slug}-\d+", anchor) is not None for anchor in anchors)
            anchors.append(f"{slug}-{repeated}" if repeated else slug)
    return anchors


def links_of(path):
    inside = (child for token in tokens_of(path) for child in token.children or ())
    links = [str(part.attrs.get("href") or part.attrs.get("src", "")) for part in inside if part.type != "text"]
    return [link for link in links if link]


def is_dead(link, path):
    target, _, anchor = link.partition("#")
    file = (path.parent / target).resolve() if target else path
    return not file.exists() or bool(anchor and anchor not in anchors_of(file))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_and_their_anchors_lead_somewhere(path):
    relative = [link for link in links_of(path) if not re.match(r"https?:|mailto:", link)]
    assert [link for link in relative if is_dead(link, path)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_can_be_followed_in_a_clone_alone(path):
    text = path.read_text("utf-8")
    assert REPOSITORY not in text
    assert "raw.githubusercontent.com" not in text
    published = re.findall(r".*pip install [^`\n]*lesioncount.*", text)
    assert len(published) == (path == ROOT / "README.md")  # in one place, until it is published
    assert all("Once it is on PyPI: " in line for line in published)


def test_dead_links_are_seen(tmp_path):
    (tmp_path / "page.md").write_text(
        "# A: `b` c\n\n## Twice\n\n## Twice\n\n![x](no.svg) [y](#a-b-c) [z](page.md#twice-1)\n"
    )
    page = tmp_path / "page.md"
    assert anchors_of(page) == ["a-b-c", "twice", "twice-1"]
    assert [link for link in links_of(page) if is_dead(link, page)] == ["no.svg"]
    assert is_dead("page.md#thrice", page)
