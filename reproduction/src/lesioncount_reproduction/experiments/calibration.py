"""Whether a count with a probability of 70 % is right on 70 % of scans (appendix C.2)."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.report.charts import draw_reliability
from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.trust.scores.predictions import Predictions
from lesioncount.trust.scores.reliability import Reliability, reliability
from lesioncount_reproduction.experiments.arms import SEGMENTATION
from lesioncount_reproduction.experiments.claims import CALIBRATED, Claim, Evidence
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of
from lesioncount_reproduction.experiments.look import LOOKS, SHORT
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Column, Result, Table
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.stats import THRESHOLDS, ScanStats
from lesioncount_reproduction.experiments.study import Study
from lesioncount_reproduction.experiments.ways_to_count import (
    NAMES,
    OURS_AT,
    at_thresholds,
    calibrated,
    components_at,
    fold_stats,
    post_hoc,
)

_OURS = ("ours_post_hoc", "ours_unweighted", "ours_fitted")
_COLUMNS = {
    "ece": Column("count ECE", "score"),
    "mce": Column("count MCE", "score"),
    "rps": Column("RPS", "score"),
    "nll": Column("NLL", "score"),
    "zero_mass": Column("truth ruled out, %", "percent"),
    "coverage90": Column("in 90 % interval, %", "percent"),
}


def needs(study: Study) -> Iterator[Job]:
    """What must be trained and predicted."""
    return study.trainings(SEGMENTATION)


def run(study: Study) -> Result:
    """Compare confidences with hits, of counts and of single candidates."""
    counted = post_hoc(study)
    resampling = Resampling.of(counted["cc"])
    samples = {name: resampling.samples(seeds) for name, seeds in counted.items()}
    rows = {NAMES[name]: samples[name] for name in _OURS}
    for at, seeds in at_thresholds(study, components_at).items():
        rows[f"connected components (τ = {at:g})"] = resampling.samples(seeds)
    rows |= {NAMES[name]: samples[name] for name in ("cc_tuned", "all_zero")}
    note = (
        "ECE and MCE of the most probable count, in ten bins; both are biased upwards when there are few scans. A "
        "method that gives a single number has confidence 1, so its ECE is its error rate. Lesions that left no "
        "candidate are outside the model: a true count larger than the number of candidates has probability 0, and is "
        "ruled out. That column and the intervals refer to exact counts, all others to the five classes 0, 1, 2, 3, "
        "and 4 or more."
    )
    tables = (
        Table.of_scores("calibration", "Calibration of the count", _COLUMNS, rows, note),
        _existence_table(study, resampling),
    )
    figures = (
        reliability_figure(
            {name: _pooled(one.predictions for one in counted[name]) for name in _OURS}, _components(study)
        ),
        existence_figure({name: _pooled(of) for name, of in existence_of(study).items()}),
    )
    result = study.result("calibration", counted["cc"][0].groups, tables, figures)
    return result.with_claims(_claim(result, samples))


def _claim(result: Result, samples: Mapping[str, Mapping[str, Samples]]) -> Claim:
    ours, *others = (estimate_of(samples[name]["ece"]) for name in _OURS)
    undone_, fitted_ = (written(one, "score") for one in others)
    return result.claim(
        5,
        Evidence("count ECE of ours at τ = 0.1", ours, "score", "below", CALIBRATED),
        remark=f"With the positive weight of the loss undone: {undone_}; with a calibration fitted on validation: "
        f"{fitted_}.",
    )


@dataclass(frozen=True, eq=False)
class Existing:
    """Existence probabilities of the candidates of each scan, and whether each has a true lesion to itself."""

    probabilities: Sequence[NDArray[np.float64]]
    owns: Sequence[NDArray[np.bool_]]
    groups: Sequence[str]

    @cached_property
    def _parts(self) -> tuple[NDArray[np.float64], ...]:
        scans = [reliability(p, own) for p, own in zip(self.probabilities, self.owns, strict=True)]
        return tuple(np.stack([getattr(one, name) for one in scans]) for name in ("n", "confidence_sum", "hit_sum"))

    @property
    def reliability(self) -> Reliability:
        """Of all candidates."""
        return Reliability(*(part.sum(axis=0) for part in self._parts))

    @property
    def shares(self) -> Mapping[str, float]:
        """None of its scores is a share of scans."""
        return {}

    def scores(self, weights: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """ECE and MCE."""
        of = Reliability(*(weights @ part for part in self._parts))
        return {"ece": np.asarray(of.ece), "mce": np.asarray(of.mce)}


def existence_of(study: Study) -> dict[str, list[Existing]]:
    """Existence probabilities as they are, with the weight undone, and fitted, for each seed."""
    found: dict[str, list[Existing]] = {name: [] for name in _OURS}
    for seed in study.seeds:
        folds = [fold_stats(study, SEGMENTATION, seed, fold) for fold in study.folds]
        tests = ScanStats.joined([test for _, test in folds])
        for name, parts in calibrated(folds).items():
            corrected = [
                calibration.existence(peaks) for test, calibration in parts for peaks in test.existence(OURS_AT)
            ]
            found[name].append(Existing(corrected, tests.owns, tests.patients))
    return found


def _existence_table(study: Study, resampling: Resampling) -> Table:
    rows = {NAMES[name]: resampling.samples(seeds) for name, seeds in existence_of(study).items()}
    columns = {name: Column(f"existence {name.upper()}", "score") for name in ("ece", "mce")}
    note = "A candidate exists if it has a true lesion to itself: each lesion belongs to at most one candidate."
    return Table.of_scores("existence", "Calibration of single candidates (τ = 0.1)", columns, rows, note)


def _components(study: Study) -> dict[float, float]:
    """Accuracy of connected components at each threshold: their one point in the figure."""
    found = at_thresholds(study, components_at)
    return {at: float(np.mean([one.predictions.hits.mean() for one in found[at]])) for at in THRESHOLDS[::2]}


def _pooled(seeds: Iterable[Predictions | Existing]) -> Reliability:
    return reduce(operator.add, (one.reliability for one in seeds))


# What a line of letters takes up, on the axis of shares.
_LABEL_HEIGHT = 0.05


def reliability_figure(curves: dict[str, Reliability], components: dict[float, float]) -> Figure:
    """Of the most probable count; connected components are always sure, and have one point each."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_reliability(axes, [(LOOKS[method], of) for method, of in curves.items()])
        for i, accuracy in enumerate(components.values()):
            look, label = LOOKS["cc"], SHORT["cc"] if i == 0 else None
            axes.plot(1, accuracy, look.marker, color=look.colour, markersize=7, clip_on=False, label=label)
        for accuracy, thresholds in _apart(components).items():
            text = "τ = " + ", ".join(f"{at:g}" for at in thresholds)
            axes.annotate(text, (1, accuracy), (8, -3), textcoords="offset points", fontsize=8, annotation_clip=False)
        _decorate(figure, axes, "probability of the most probable count", "share of scans where it was right")

    label = "How often the most probable count was right, by its probability; the diagonal is perfect calibration."
    return Figure("reliability", label, svg(draw, height_inch=3.9, width_inch=4.4))


def _apart(components: dict[float, float]) -> dict[float, list[float]]:
    """Heights at which there is room for a label, and the thresholds whose points are there."""
    found: dict[float, list[float]] = {}
    for at, accuracy in sorted(components.items(), key=lambda one: one[1]):
        near = next((height for height in found if accuracy - height < _LABEL_HEIGHT), accuracy)
        found.setdefault(near, []).append(at)
    return {height: sorted(thresholds) for height, thresholds in found.items()}


def existence_figure(curves: dict[str, Reliability]) -> Figure:
    """Of single candidates."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_reliability(axes, [(LOOKS[method], of) for method, of in curves.items()])
        _decorate(figure, axes, "existence probability of a candidate", "share that has a true lesion")

    label = "How often a candidate had a true lesion for itself, by its existence probability."
    return Figure("existence", label, svg(draw, height_inch=3.7, width_inch=4.4))


def _decorate(figure: Any, axes: Any, x: str, y: str) -> None:
    axes.set(xlabel=x, ylabel=y, xlim=(0, 1.02), ylim=(0, 1.02))
    in_percent(axes.xaxis, axes.yaxis)
    legend(figure)
