"""All methods with a tenth of the training patients (appendix C.4)."""

from __future__ import annotations

from collections.abc import Iterator

from lesioncount_reproduction.experiments import published
from lesioncount_reproduction.experiments.arms import LOW_DATA
from lesioncount_reproduction.experiments.claims import Evidence
from lesioncount_reproduction.experiments.estimates import Samples, estimate_of
from lesioncount_reproduction.experiments.multitask import (
    best_head,
    compared,
    comparison_figure,
    comparison_needs,
    comparison_table,
    differences_table,
    estimates,
)
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Column, Result, Table
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.study import Study
from lesioncount_reproduction.experiments.trained import learned_heads, learned_table, untrained_in_words
from lesioncount_reproduction.experiments.ways_to_count import NAMES


def needs(study: Study) -> Iterator[Job]:
    """What must be trained and predicted."""
    return comparison_needs(study, share=LOW_DATA)


def run(study: Study) -> Result:
    """Compare count and map of all methods."""
    counts, maps, patients = compared(study, share=LOW_DATA)
    heads = learned_heads(study, share=LOW_DATA)
    title = f"With {LOW_DATA:.0%} of the training patients"
    tables = (
        comparison_table(counts, maps, "lowdata", title, f"{_note(study)} {untrained_in_words(heads)}".strip()),
        learned_table(study, share=LOW_DATA),
        differences_table(counts),
        _paper_table(),
    )
    figure = comparison_figure(estimates(counts, maps), "lowdata")
    result = study.result("lowdata", patients, tables, (figure,))
    best = best_head(counts, heads)
    untrained = untrained_in_words(heads)
    if best is None:
        return result.with_claims(result.claim(8, remark=untrained))
    evidence = (
        Evidence(
            f"accuracy, {NAMES[ours]} minus the best trained head ({NAMES[best]})",
            estimate_of(counts[ours]["accuracy"] - counts[best]["accuracy"]),
            "points",
            "above",
        )
        for ours in ("ours", "ours_post_hoc")
    )
    remark = f"{_f1_in_words(counts, best)} {untrained}".strip()
    return result.with_claims(result.claim(8, *evidence, remark=remark))


def _f1_in_words(counts: dict[str, dict[str, Samples]], best: str) -> str:
    """What accuracy hides where most scans have no lesion: always saying "no lesion" is mostly right."""
    f1 = {
        ours: written(estimate_of(counts[ours]["f1"] - counts[best]["f1"]), "points", unit=True)
        for ours in ("ours", "ours_post_hoc")
    }
    undone = estimate_of(counts["ours_unweighted"]["accuracy"] - counts[best]["accuracy"])
    return (
        f"The same in F1: {f1['ours']} and {f1['ours_post_hoc']}. Accuracy of ours post hoc with the positive weight "
        f"undone minus the best head: {written(undone, 'points', unit=True)}."
    )


def _note(study: Study) -> str:
    return (
        f"There are {study.recipe.low_data_epochs} times as many epochs, each with a tenth of the steps. The "
        "validation scans, which decide epochs, thresholds and the fitted calibration, are as many as before."
    )


def _paper_table() -> Table:
    heads = ("accuracy, %", "F1, %", "voxel F1, %", "voxel ECE, 1e-5", "voxel MCE")
    rows = tuple((NAMES[method], *(f"{number}" for number in of)) for method, of in published.LOW_DATA.items())
    return Table("paper", "The paper's table C.2", (Column("method"), *(Column(head) for head in heads)), rows)
