"""What the documents say of the paper's claims is what the results beside them say."""

import runpy
import shutil
from pathlib import Path

import pytest

pytest.importorskip("jinja2", reason="needs the extra [report]")

from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.claims import STATEMENTS
from lesioncount_reproduction.experiments.result import EXPERIMENT_NAMES, load_results
from lesioncount_reproduction.experiments.verdicts import claims_of, claims_table, summary_table

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture(scope="module")
def results():
    return load_results(DOCS / "reproduce")


def test_every_experiment_and_every_claim_was_looked_at(results):
    every = set(EXPERIMENT_NAMES)
    wanted = {"synthetic": every, "leaf": every, "nuclei": every - {"lowdata", "adversarial"}, "lidc": {"which"}}
    for data_set, experiments in wanted.items():
        assert {one.experiment for one in results if one.data_set == data_set} == experiments
    assert all(len(one.seeds) == (0 if one.data_set == "lidc" else 3) for one in results)
    assert {claim.number for claim in claims_of(results)} == set(STATEMENTS)
    large = {(one.data_set, one.experiment) for one in results if one.preset != "laptop"}
    assert large == {("synthetic", name) for name in ("threshold", "calibration", "uncertainty")}  # as the page says
    assert {one.preset for one in results} == {"laptop", "evening"}


def test_documented_verdicts_are_those_of_the_results(results):
    building = runpy.run_path(str(DOCS / "building" / "reproduced.py"))
    for page in building["PAGES"]:
        text = (DOCS / page).read_text("utf-8")
        assert building["filled"](text, results) == text, "python docs/building/reproduced.py brings them up to date"
    text = (DOCS / "reproduce.md").read_text("utf-8")
    for line in summary_table(results).to_markdown().splitlines()[2:]:
        assert line in text, line
    kept = (DOCS / "reproduce" / "claims.md").read_text("utf-8")
    assert kept == "\n".join(of(results).to_markdown() for of in (summary_table, claims_table))


def test_results_of_one_experiment_replace_no_others(tmp_path):
    copy = runpy.run_path(str(DOCS / "building" / "reproduced.py"))["copy"]
    kept = copy.__globals__["KEPT"] = Path(shutil.copytree(DOCS / "reproduce", tmp_path / "kept"))
    before = {path.relative_to(kept) for path in kept.rglob("*")}
    (tmp_path / "new" / "figures").mkdir(parents=True)
    for name in ("lidc-which.json", "lidc-which.md", "figures/lidc-which-ways.svg"):
        shutil.copy(kept / name, tmp_path / "new" / name)
    copy(tmp_path / "new")
    assert {path.relative_to(kept) for path in kept.rglob("*")} == before


def test_shares_on_which_all_patients_agree_have_exact_intervals(results):
    shares = [
        cell
        for result in results
        for table in result.tables
        for row in table.rows
        for column, cell in zip(table.columns, row, strict=True)
        if isinstance(cell, Estimate) and column.kind == "percent" and cell.value in (0, 1)
    ]
    assert len(shares) > 10
    assert all(cell.high - cell.low > 0.005 for cell in shares)


@pytest.mark.parametrize("data_set", ["synthetic", "leaf"])
def test_attacks_have_the_same_numbers_in_both_experiments(results, data_set):
    by_name = {
        (one.experiment, table.name): table for one in results if one.data_set == data_set for table in one.tables
    }
    attacks = {row[1]: row for row in by_name["adversarial", "adversarial"].rows if row[0] == 0.5}
    for method, success_rate, drop, *_ in by_name["multitask", "paper"].rows:
        for ours, theirs in ((success_rate, attacks[method][5]), (drop, attacks[method][4])):
            assert (ours.value, ours.low, ours.high) == pytest.approx((theirs.value, theirs.low, theirs.high))


@pytest.mark.parametrize("page", ["reproduce.md", "which-count.md"])
def test_documented_figures_are_there(page):
    text = (DOCS / page).read_text("utf-8")
    shown = {line.split("](")[1].rstrip(")") for line in text.splitlines() if line.startswith("![")}
    assert shown
    for path in shown:
        assert (DOCS / path).exists(), path
    assert not list((DOCS / "reproduce" / "figures").glob("leaf-*-examples.svg"))  # photographs are not ours to show
