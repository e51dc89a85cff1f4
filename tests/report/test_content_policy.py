"""What a browser lets our pages do: nothing that they do not need."""

import base64
import hashlib
import re

import numpy as np
import pytest
from html_page import Page

pytest.importorskip("matplotlib", reason="needs the extra [report]")
pytest.importorskip("jinja2", reason="needs the extra [report]")
pytest.importorskip("lesioncount_reproduction", reason="needs the reproduction: pip install ./reproduction")

from lesioncount.assess.beside_truth import TruthOptions
from lesioncount.assess.evaluation import evaluate
from lesioncount.report import write_changes_page, write_report
from lesioncount.report.evaluation import write_evaluation_page
from lesioncount.runs import compare_batch, count_batch
from lesioncount_reproduction.experiments.results_page import write_page


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    (folder / "maps").mkdir()
    rng = np.random.default_rng(0)
    rows = []
    for name in ("a", "b", "<script>alert(1)<"):
        np.save(folder / "maps" / f"{name}.npy", (rng.random((5, 6, 7)) ** 6).astype(np.float32))
        rows.append(f"{name},1\n")
    results = count_batch([folder / "maps"], folder / "out")
    (folder / "truth.csv").write_text("scan,count\n" + "".join(rows))
    evaluate(folder / "out", folder / "evaluated", TruthOptions(table=folder / "truth.csv"), counts_only=True)
    changes = compare_batch([folder / "maps", folder / "maps"], folder / "changed")
    paths = [
        write_changes_page(changes),
        write_report(results),
        write_evaluation_page(folder / "evaluated"),
        write_page(folder, []),
    ]
    return {path.name: path.read_text("utf-8") for path in paths}


NAMES = ["changes.html", "report.html", "evaluation.html", "reproduce.html"]


def policy_of(text):
    (tag,) = Page(text).all("meta", http_equiv="Content-Security-Policy") or [
        attributes for tag, attributes in Page(text).tags if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    return dict(part.strip().split(" ", 1) for part in tag["content"].split(";"))


@pytest.mark.parametrize("name", NAMES)
def test_everything_is_forbidden_but_what_is_in_the_page(pages, name):
    policy = policy_of(pages[name])
    scripts = policy.pop("script-src")
    assert policy == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": "'unsafe-inline'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert "unsafe" not in scripts


@pytest.mark.parametrize("name", NAMES)
def test_only_our_scripts_run(pages, name):
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", pages[name], re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert policy_of(pages[name])["script-src"] == (" ".join(f"'sha256-{one}'" for one in hashes) or "'none'")
    assert len(scripts) == (name in ("changes.html", "report.html"))


@pytest.mark.parametrize("name", NAMES)
def test_the_policy_comes_before_everything_it_is_about(pages, name):
    head = pages[name][: pages[name].index("Content-Security-Policy")]
    assert not re.search(r"<(style|script|link|img|svg)", head)


@pytest.mark.parametrize("name", NAMES)
def test_no_element_has_a_handler_or_loads_something(pages, name):
    for tag, attributes in Page(pages[name]).tags:
        assert tag not in ("link", "iframe", "object", "embed", "form", "base")
        assert not [attribute for attribute in attributes if attribute.startswith("on")]
        assert attributes.get("src", "data:").startswith("data:")
        assert not (attributes.get("href") or "").lower().startswith("javascript:")
