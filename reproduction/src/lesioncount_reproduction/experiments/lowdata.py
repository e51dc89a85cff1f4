"""All methods with a tenth of the training patients (appendix C.4).

The rule of claim 8, fixed before any network was trained by it. The paper says that heads do not learn from so little:
that no head learned is what the claim says, and no reason not to test it.

1. Each head is tried with three learning rates: that of all the data, a third of it, and three times as much. With
   each, it gets as many epochs as with all the data, twice, or four times as many: the first that is enough for its
   score to flatten (`trained`). All of this is decided on validation scans.
2. If a head is trained by the rule with some rate, ours must be more accurate than the best of the trained heads.
3. If none is, and all scores are flat, ours must be more accurate than always the most frequent count of these scans.
4. If none is, and some score is still falling with the most epochs, the claim is not tested.

Ours is, as before, both the network that learned counts and the one that counts post hoc.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lesioncount_reproduction.experiments import published
from lesioncount_reproduction.experiments.arms import HEADS, LOW_DATA, SEGMENTATION
from lesioncount_reproduction.experiments.claims import Evidence
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of
from lesioncount_reproduction.experiments.multitask import (
    best_head,
    compared,
    comparison_figure,
    comparison_table,
    differences_table,
    estimates,
    paper_table,
)
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Result
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.study import EVERY_METHOD, Study
from lesioncount_reproduction.experiments.trained import (
    Learned,
    learned_by,
    learned_table,
    most_frequent,
    untrained_in_words,
)
from lesioncount_reproduction.experiments.ways_to_count import NAMES


def needs(study: Study) -> Iterator[Job]:
    """What must be trained: of heads, what is left to try after the trainings that are done."""
    for method in EVERY_METHOD:
        if method not in HEADS:
            yield from study.trainings(method, share=LOW_DATA)
    for (head, _), attempt in _attempts(study).items():
        yield from attempt.trainings(head, share=LOW_DATA)


def run(study: Study) -> Result:
    """Compare count and map of all methods; each head as it learned best."""
    attempts = _attempts(study)
    tried = {one: learned_by(attempt, one[0], share=LOW_DATA) for one, attempt in attempts.items()}
    best = {head: _best_rate(tried, head) for head in HEADS}
    heads = {head: tried[head, rate] for head, rate in best.items()}
    recipes = tuple((head, dict(attempts[head, rate].recipe.heads)[head]) for head, rate in best.items())
    study = replace(study, recipe=replace(study.recipe, heads=recipes))
    counts, maps, patients = compared(study, share=LOW_DATA)
    title = f"With {LOW_DATA:.0%} of the training patients"
    rates = {one: dict(attempt.recipe.heads)[one[0]].rate for one, attempt in attempts.items()}
    tables = (
        comparison_table(counts, maps, "lowdata", title, f"{_note(study)} {untrained_in_words(heads)}".strip()),
        learned_table({f"{NAMES[one[0]]}, rate {rates[one]:.2g}": of for one, of in tried.items()}),
        differences_table(counts),
        paper_table("The paper's table C.2", published.LOW_DATA),
    )
    figure = comparison_figure(estimates(counts, maps), "lowdata")
    result = study.result("lowdata", patients, tables, (figure,))
    constant = [most_frequent(study, stats) for stats in study.stats(SEGMENTATION, share=LOW_DATA)]
    counts["constant"] = Resampling.of(constant).samples(constant)
    return result.with_claims(result.claim(8, *evidence(counts, heads, tried), remark=_remark(counts, heads, tried)))


def _attempts(study: Study) -> dict[tuple[str, float], Study]:
    """Every head at every rate: the study in which it learns for as long as it takes.

    That is the first budget with which its score is flat, or the last one. As long as trainings with a budget are
    missing, it is that one.
    """
    return {(head, rate): _until_flat(study, head, rate) for head in HEADS for rate in study.recipe.low_data_rates}


def _until_flat(study: Study, head: str, rate: float) -> Study:
    found = study
    for budget in study.recipe.low_data_budgets:
        found = _tried(study, head, rate, budget)
        is_done = all(job.is_done(study.cache) for job in found.trainings(head, share=LOW_DATA))
        if not is_done or learned_by(found, head, share=LOW_DATA).is_flat:
            break
    return found


def _tried(study: Study, head: str, rate: float, budget: int) -> Study:
    """The study in which a head has another rate, and learns for longer."""
    recipes = dict(study.recipe.heads)
    usual = recipes[head]
    recipes[head] = replace(
        usual,
        rate=usual.rate * rate,
        warmup_epochs=usual.warmup_epochs * budget,
        epochs=(usual.epochs or study.recipe.epochs) * budget,
    )
    return replace(study, recipe=replace(study.recipe, heads=tuple(recipes.items())))


def _best_rate(tried: Mapping[tuple[str, float], Learned], head: str) -> float:
    """The rate with which a head is trained by the rule, or else learned most, on validation scans."""
    rates = [rate for name, rate in tried if name == head]
    return max(rates, key=lambda rate: (tried[head, rate].is_trained, tried[head, rate].gain.value))


def evidence(
    counts: Mapping[str, Mapping[str, Samples]], heads: dict[str, Learned], tried: Mapping[Any, Learned]
) -> Iterator[Evidence]:
    """What the claim stands on, by the rule above; nothing where it cannot be tested."""
    best = best_head(counts, heads)
    if best is None and not all(of.is_flat for of in tried.values()):
        return
    against, name = (
        ("constant", "always the most frequent count, as no head learned")
        if best is None
        else (best, f"the best trained head ({NAMES[best]})")
    )
    for ours in ("ours", "ours_post_hoc"):
        difference = estimate_of(counts[ours]["accuracy"] - counts[against]["accuracy"])
        yield Evidence(f"accuracy, {NAMES[ours]} minus {name}", difference, "points", "above")


def _remark(counts: dict[str, dict[str, Samples]], heads: dict[str, Learned], tried: Mapping[Any, Learned]) -> str:
    untrained, best = untrained_in_words(heads), best_head(counts, heads)
    if best is not None:
        return f"{_f1_in_words(counts, best)} {untrained}".strip()
    open_ = sum(not of.is_flat for of in tried.values())
    if open_:
        return f"{untrained} The score of {open_} of {len(tried)} heads and rates was still falling at the end."
    return f"No head learned at any rate, though all scores are flat, which is what the paper claims. {untrained}"


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
