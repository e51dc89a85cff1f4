"""How pages of the repository become pages of the site, and how built pages are checked."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def built_by(name):
    spec = importlib.util.spec_from_file_location(f"docs_building_{name}", ROOT / "docs" / "building" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages():
    return built_by("pages")


@pytest.mark.parametrize(
    ("source", "link", "on_the_site"),
    [
        ("docs/guide.md", "theory.md", "theory.md"),
        ("docs/guide.md", "notebooks/first_count.ipynb", "notebooks/first_count.md"),
        ("docs/notebooks/first_count.ipynb", "../trust.md", "../trust.md"),
        ("docs/trust.md", "figures/trust_rps.svg", "figures/trust_rps.svg"),
        ("docs/trust.md", "../CONTRIBUTING.md", "contributing.md"),
        ("CHANGELOG.md", "docs/review.md", "review.md"),
        (
            "docs/trust.md",
            "figures/trust.py",
            "https://github.com/lesioncount/lesioncount/blob/main/docs/figures/trust.py",
        ),
        ("docs/reproduce.md", "reproduce/", "https://github.com/lesioncount/lesioncount/tree/main/docs/reproduce"),
    ],
)
def test_links_lead_to_where_the_site_has_what_they_name(source, link, on_the_site, pages):
    assert pages._page(source, f"[x]({link})") == f"[x]({on_the_site})"
    assert pages._page(source, f"[x]({link}#part)") == f"[x]({on_the_site}#part)"


def test_other_links_stay(pages):
    text = "[a](https://example.org/b.md) [c](#d) [e](mailto:f@example.org)"
    assert pages._page("docs/guide.md", text) == text


def test_commands_without_a_prompt_are_not_taken_for_what_is_printed(pages):
    assert pages._page("docs/guide.md", "```console\na  # b\n\nc $d\n```\n") == "```sh\na  # b\n\nc $d\n```\n"
    prompted = "```console\n$ a\nb\n```\n"
    assert pages._page("docs/guide.md", prompted) == prompted


def test_tables_of_numbers_are_left_out_of_the_search(pages):
    numbers = "| n | RPS | covered |\n|---|---|---|\n| 10 | **0.62** | 93 % |\n| 20 | 1.2 [0.9, 1.5] | – |\n"
    words = "| key | |\n|---|---|\n| `--port 8` | a port |\n| L | lesion |\n"
    page = pages._page("docs/guide.md", f"Before.\n\n{numbers}\n{words}")
    assert f'<div data-search-exclude markdown="1">\n\n{numbers}\n</div>\n' in page
    assert page.endswith(words)


def test_pages_of_the_reference_have_an_entry_for_each_name(pages):
    page = pages.pages()["reference/counting.md"]
    assert "| [`lesioncount.count_lesions`][lesioncount.count_lesions] |" in page
    assert page.count("\n::: lesioncount.count_lesions\n") == 1
    assert "\n::: lesioncount.errors\n    options:\n      members: false\n" in pages.pages()["reference/errors.md"]
    assert "\n:::" not in (ROOT / "docs" / "reference" / "counting.md").read_text("utf-8")


def test_the_copy_holds_every_page_and_picture_and_no_script(pages, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "left.md").touch()
    pages.main(tmp_path / "docs")
    made = {path.relative_to(tmp_path / "docs").as_posix() for path in (tmp_path / "docs").rglob("*") if path.is_file()}
    assert {"index.md", "changelog.md", "notebooks/first_count.md", "figures/idea.svg", "building/site.css"} <= made
    assert "left.md" not in made
    assert not any(name.endswith(".py") for name in made)


def test_notebooks_become_pages_with_their_outputs(tmp_path):
    notebook = {
        "cells": [
            {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "\n", "Text."]},
            {
                "cell_type": "code",
                "metadata": {"alt": 'a "picture"'},
                "source": ["1 < 2"],
                "outputs": [
                    {"output_type": "stream", "text": ["a < b\n"]},
                    {"output_type": "execute_result", "data": {"text/plain": ["True"]}},
                    {"output_type": "execute_result", "data": {"text/plain": ["x"], "text/html": ["<b>x</b>"]}},
                    {"output_type": "display_data", "data": {"image/png": "AAAA\n", "text/plain": ["<Figure>"]}},
                ],
            },
        ]
    }
    path = tmp_path / "some.ipynb"
    path.write_text(json.dumps(notebook))
    page = built_by("notebook_page").page_of(path)
    assert page.startswith('# Title\n\n<p class="notebook"><a href="some.ipynb" download>')
    assert "```python\n1 < 2\n```" in page
    for output in ("<pre>a &lt; b\n</pre>", "<pre>True</pre>", "<b>x</b>"):
        assert f'<div class="output" tabindex="0">\n{output}\n</div>' in page
    assert '<img alt="a &quot;picture&quot;" src="data:image/png;base64,AAAA">' in page


def test_what_is_dead_or_loaded_from_elsewhere_is_found(tmp_path, capsys):
    check = built_by("check")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "index.html").write_text('<h1 id="here">x</h1><a href="../page.html#there">')
    (tmp_path / "page.html").write_text(
        '<link rel="stylesheet" href="https://example.org/a.css"><script src="b.js"></script>'
        '<a href="https://example.org"></a><a href="part/#here"></a><a href="part/#no"></a><a href="#no"></a>'
        '<link rel="canonical" href="https://example.org/page.html">'
        '<a href="https://example.org/forge" data-md-component="source"></a>'
    )
    (tmp_path / "404.html").write_text('<a href="/nothing.html">')
    found = [
        "page.html loads https://example.org/a.css",
        "page.html loads https://example.org/forge",
        "page.html leads to #no",
        "page.html leads to b.js",
        "page.html leads to part/#no",
        "part/index.html leads to ../page.html#there",
    ]
    assert check.problems(tmp_path) == found
    with pytest.raises(SystemExit, match=r"page\.html loads"):
        check.main(str(tmp_path))
    (tmp_path / "page.html").write_text('<h1 id="there">')
    check.main(str(tmp_path))
    assert "no dead link" in capsys.readouterr().out
