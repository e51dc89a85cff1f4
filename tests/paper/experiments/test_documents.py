"""What the documents say of the paper's claims is what the results beside them say."""

from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="needs the extra [report]")

from lesioncount.paper.experiments.claims import STATEMENTS
from lesioncount.paper.experiments.result import EXPERIMENT_NAMES, load_results
from lesioncount.paper.experiments.verdicts import claims_of, claims_table, summary_table

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def results():
    return load_results(DOCS / "reproduce")


def test_every_experiment_and_every_claim_was_looked_at(results):
    assert {one.experiment for one in results if one.data_set == "synthetic"} == set(EXPERIMENT_NAMES)
    assert {one.experiment for one in results if one.data_set == "leaf"} == set(EXPERIMENT_NAMES) - {"lowdata"}
    assert {claim.number for claim in claims_of(results)} == set(STATEMENTS)
    assert all(one.preset == "laptop" for one in results)


def test_documented_verdicts_are_those_of_the_results(results):
    text = (DOCS / "reproduce.md").read_text("utf-8")
    for line in summary_table(results).to_markdown().splitlines()[2:]:
        assert line in text, line
    kept = (DOCS / "reproduce" / "claims.md").read_text("utf-8")
    assert kept == "\n".join(of(results).to_markdown() for of in (summary_table, claims_table))


def test_documented_figures_are_there():
    text = (DOCS / "reproduce.md").read_text("utf-8")
    shown = {line.split("](")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")}
    assert shown
    for path in shown:
        assert (DOCS / path).exists(), path
    assert not list((DOCS / "reproduce" / "figures").glob("leaf-*-examples.svg"))  # photographs are not ours to show
