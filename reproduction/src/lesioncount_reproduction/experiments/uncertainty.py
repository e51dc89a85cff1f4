"""Whether a method knows which of its counts are wrong (appendix C.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lesioncount.report.charts import draw_certainty
from lesioncount.report.drawing import MARK, Figure, in_percent, legend, svg
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments import published
from lesioncount_reproduction.experiments.arms import SEGMENTATION
from lesioncount_reproduction.experiments.claims import GOOD_AUROC, NEARLY_ALL, Claim, Evidence
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of
from lesioncount_reproduction.experiments.jobs import DropoutCounted
from lesioncount_reproduction.experiments.look import LOOKS, SHORT, percent_up
from lesioncount_reproduction.experiments.result import Column, Result, Table
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.scored import SHARES, Certainty, Counted
from lesioncount_reproduction.experiments.study import Study
from lesioncount_reproduction.experiments.ways_to_count import NAMES, post_hoc, sampled

_COLUMNS = {
    "accuracy": Column("accuracy, %", "percent"),
    "auroc": Column("AUROC(entropy → error)", "score"),
    "certain_accuracy": Column("most certain quarter, % right", "percent"),
    "uncertain_accuracy": Column("most uncertain quarter, % right", "percent"),
    "no_entropy": Column("entropy 0, % of scans", "percent"),
}
_SHOWN = ("ours_post_hoc", "ours_unweighted", "ours_fitted", "cc_dropout")


def needs(study: Study) -> Iterator[Job]:
    """What must be trained and predicted."""
    yield from study.trainings(SEGMENTATION)
    yield from study.dropout()


def run(study: Study) -> Result:
    """Compare the entropy of counts with their errors, beside Monte Carlo dropout."""
    counted = post_hoc(study) | {"cc_dropout": with_dropout(study)}
    resampling = Resampling.of(counted["cc_dropout"])
    samples = {name: resampling.samples(counted[name]) for name in _SHOWN}
    note = (
        f"Monte Carlo dropout: {study.recipe.mc_samples} samples of the map, connected components above 0.5 of each. "
        f"In the paper, all samples gave the same count on about {published.ALWAYS_THE_SAME:.0f} % of scans. Scans "
        "with the same entropy count alike, whatever their order."
    )
    rows = {NAMES[name]: samples[name] for name in _SHOWN}
    table = Table.of_scores("uncertainty", "What entropy is worth", _COLUMNS, rows, note)
    figures = (
        certainty_figure(
            *({name: _curve(counted[name], resampling, most) for name in _SHOWN} for most in (False, True))
        ),
        entropy_figure({name: counted[name] for name in ("ours_post_hoc", "cc_dropout")}),
    )
    result = study.result("uncertainty", counted["cc_dropout"][0].groups, (table,), figures)
    return result.with_claims(*_claims(result, samples["ours_post_hoc"], samples["cc_dropout"]))


def _claims(result: Result, ours: Mapping[str, Samples], theirs: Mapping[str, Samples]) -> Iterator[Claim]:
    ranking, certain = (estimate_of(ours[score]) for score in ("auroc", "certain_accuracy"))
    yield result.claim(
        3,
        Evidence("AUROC(entropy → error) of ours", ranking, "score", "above", GOOD_AUROC),
        Evidence("accuracy on the most certain quarter", certain, "percent", "above", NEARLY_ALL),
    )
    gained = estimate_of(ours["auroc"] - theirs["auroc"])
    yield result.claim(4, Evidence("AUROC(entropy → error), ours minus Monte Carlo dropout", gained, "score", "above"))


def _curve(seeds: Sequence[Counted], resampling: Resampling, most_uncertain: bool) -> list[Estimate]:
    """Accuracy among the most certain, or most uncertain, share by share."""
    samples = resampling.samples([Certainty(one, most_uncertain) for one in seeds])
    return [estimate_of(of) for of in samples.values()]


def with_dropout(study: Study) -> list[Counted]:
    """Connected components with Monte Carlo dropout, for each seed."""
    found = []
    for seed, stats in zip(study.seeds, study.stats(SEGMENTATION), strict=True):
        arms = study.arms_of_seed(SEGMENTATION, seed)
        counts = np.concatenate([DropoutCounted(arm, study.recipe.mc_samples).load(study.cache) for arm in arms])
        found.append(Counted(sampled(counts, stats.counts, study.classes), stats.patients))
    return found


_BINS = np.linspace(0, 1, 11)

# Those that a claim compares; bands of all methods would hide each other.
_WITH_BANDS = ("ours_post_hoc", "cc_dropout")


def certainty_figure(certain: dict[str, list[Estimate]], uncertain: dict[str, list[Estimate]]) -> Figure:
    """Accuracy on the most certain share of scans, and on the most uncertain one."""

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, curves in ((left, certain), (right, uncertain)):
            for method, estimates in curves.items():
                ends = [one.low for one in estimates], [one.high for one in estimates]
                band = ends if method in _WITH_BANDS else None
                draw_certainty(axes, SHARES, [one.value for one in estimates], LOOKS[method], band=band)
            in_percent(axes.xaxis)
            axes.set_xlim(0, 1)
        left.set(xlabel="most certain scans", ylabel="count accuracy among them")
        right.set(xlabel="most uncertain scans")
        percent_up(left)
        legend(figure)

    label = (
        "Count accuracy among the most certain (left) and the most uncertain scans (right), mean over seeds; bands are "
        "95 % intervals over patients."
    )
    return Figure("certainty", label, svg(draw, height_inch=3.6, width_inch=5.4))


def entropy_figure(methods: dict[str, list[Counted]]) -> Figure:
    """Normalised entropy of right and of wrong counts."""

    def draw(figure: Any) -> None:
        grid = figure.subplots(1, len(methods), sharey=True)
        for axes, (method, seeds) in zip(grid, methods.items(), strict=True):
            n_classes = (seeds[0].predictions.max_count or 1) + 1
            entropy = np.concatenate([one.predictions.entropy for one in seeds]) / np.log(n_classes)
            hits = np.concatenate([one.predictions.hits for one in seeds])
            shares = [np.histogram(entropy[chosen], _BINS)[0] / max(chosen.sum(), 1) for chosen in (hits, ~hits)]
            middle, width = (_BINS[1:] + _BINS[:-1]) / 2, 0.04
            axes.bar(middle - width / 2, shares[0], width, color=LOOKS[method].colour, label="right counts")
            axes.bar(
                middle + width / 2, shares[1], width, color="none", edgecolor=MARK, hatch="////",
                label="wrong counts",
            )  # fmt: skip
            axes.set_title(f"{SHORT[method]}\n{hits.sum()} right, {(~hits).sum()} wrong", fontsize=9)
            axes.set_xlabel("normalised entropy")
        grid[0].set_ylabel("share of scans")
        in_percent(grid[0].yaxis)
        legend(figure)

    label = "Histograms of the normalised entropy of right and wrong counts, all seeds together."
    return Figure("entropy", label, svg(draw, height_inch=3.3, width_inch=5.4))
