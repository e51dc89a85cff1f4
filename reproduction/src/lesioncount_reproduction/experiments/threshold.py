"""How much the count depends on the threshold (appendix C.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.report.charts import draw_confusion
from lesioncount.report.drawing import Figure, legend, svg, whole_numbers
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments import published
from lesioncount_reproduction.experiments.arms import SEGMENTATION
from lesioncount_reproduction.experiments.claims import EQUAL, Evidence
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of
from lesioncount_reproduction.experiments.look import LOOKS, SHORT, percent_up, with_band
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Cell, Column, Result, Table
from lesioncount_reproduction.experiments.scheduling import Job
from lesioncount_reproduction.experiments.scored import Counted
from lesioncount_reproduction.experiments.stats import THRESHOLDS, ScanStats
from lesioncount_reproduction.experiments.study import Study
from lesioncount_reproduction.experiments.ways_to_count import (
    NAMES,
    at_thresholds,
    components_at,
    n_unfitted,
    ours_at,
    post_hoc,
    segmented,
)

# Where connected components change, and where both should agree.
_LOW, _HIGH = (0.1, 0.2, 0.3, 0.4, 0.5), (0.6, 0.7, 0.8, 0.9)

# Of the confusion matrices.
_SHOWN = (0.1, 0.5, 0.8)

# Existence probabilities of the two candidates in figure 2 of the paper.
_FIGURE_2 = (0.78, 0.51)

_BY_CONSTRUCTION = (
    "This is almost true by construction: where every candidate has an existence probability of 70 % or more, the most "
    "probable count is nearly always their number."
)


def needs(study: Study) -> Iterator[Job]:
    """What must be trained and predicted."""
    return study.trainings(SEGMENTATION)


def run(study: Study) -> Result:
    """Count at every threshold, with connected components and with ours."""
    found = {"cc": at_thresholds(study, components_at), "ours_post_hoc": at_thresholds(study, ours_at)}
    stats = study.stats(SEGMENTATION)
    resampling = Resampling.of(found["cc"][THRESHOLDS[0]])
    samples = {method: {at: resampling.samples(seeds) for at, seeds in of.items()} for method, of in found.items()}
    tables = (
        _table(samples, ("accuracy", "f1"), "threshold", "Accuracy and class-average F1 by threshold, percent"),
        _table(samples, ("precision", "recall"), "precision-recall", "Precision and recall by threshold, percent"),
        controls_table(study, resampling),
    )
    figures = (
        accuracy_figure({m: [estimate_of(of[at]["accuracy"]) for at in THRESHOLDS] for m, of in samples.items()}),
        confusion_figure(
            {m: [_matrix(of[at]) for at in _SHOWN] for m, of in found.items()}, _SHOWN, study.classes.names
        ),
        *_example(stats),
    )
    result = study.result("threshold", stats[0].patients, tables, figures)
    return result.with_claims(
        result.claim(1, _stable(samples), remark=_ranges_in_words(samples)),
        result.claim(2, _equal(samples), remark=_BY_CONSTRUCTION),
    )


_Samples = dict[str, dict[float, dict[str, Samples]]]
_HEADS = {"accuracy": "accuracy", "f1": "F1", "precision": "precision", "recall": "recall"}


def _table(samples: _Samples, scores: Sequence[str], name: str, title: str) -> Table:
    columns = [Column("τ", "number")]
    for score in scores:
        for head in ("CC", "ours"):
            columns += [Column(f"{_HEADS[score]} {head}", "percent"), Column(f"paper {head}")]
    rows = []
    for i, at in enumerate(THRESHOLDS):
        row: list[Cell] = [at]
        for score in scores:
            for method in ("cc", "ours_post_hoc"):
                row += [estimate_of(samples[method][at][score]), f"{published.THRESHOLD[method][score][i]:.1f}"]
        rows.append(tuple(row))
    return Table(
        name, title, tuple(columns), tuple(rows), "CC: connected components above τ. Ours: candidates above τ."
    )


def _stable(samples: _Samples) -> Evidence:
    """The range of accuracy over low thresholds is smaller than that of connected components."""
    ranges = _ranges(samples)
    difference = estimate_of(ranges["cc"] - ranges["ours_post_hoc"])
    measured = "range of accuracy over τ = 0.1 … 0.5, connected components minus ours"
    return Evidence(measured, difference, "points", "above")


def _ranges(samples: _Samples) -> dict[str, Samples]:
    return {
        method: Samples(np.ptp([samples[method][at]["accuracy"].values for at in _LOW], axis=0), is_biased=True)
        for method in ("cc", "ours_post_hoc")
    }


def _ranges_in_words(samples: _Samples) -> str:
    cc, ours = (written(estimate_of(of), "points", unit=True) for of in _ranges(samples).values())
    return f"The range itself: connected components {cc}, ours {ours}."


def _equal(samples: _Samples) -> Evidence:
    """The mean accuracies over high thresholds differ by less than what is not ranked."""
    ours, theirs = (
        np.mean([samples[method][at]["accuracy"].values for at in _HIGH], axis=0) for method in ("ours_post_hoc", "cc")
    )
    distance = estimate_of(Samples(np.abs(ours - theirs)))
    return Evidence("absolute difference of accuracy over τ = 0.6 … 0.9", distance, "points", "below", EQUAL)


def _matrix(seeds: Sequence[Counted]) -> NDArray[np.float64]:
    """Mean over seeds: a scan counts once."""
    return np.asarray(np.mean([one.predictions.confusion.matrix for one in seeds], axis=0))


def _example(stats: Sequence[ScanStats]) -> Iterator[Figure]:
    """The scan whose two candidates are most like those of figure 2."""
    best: tuple[float, ScanStats, int] | None = None
    for one in stats:
        for row, peaks in enumerate(one.existence(0.1)):
            if len(peaks) == 2:
                distance = float(np.abs(np.sort(peaks)[::-1] - _FIGURE_2).sum())
                if best is None or distance < best[0]:
                    best = (distance, one, row)
    if best is not None:
        _, one, row = best
        counts = [int(one.components(at)[row]) for at in THRESHOLDS]
        yield two_candidates_figure(one.existence(0.1)[row], counts, int(one.counts[row]))


_COLUMNS = {
    "accuracy": Column("accuracy, %", "percent"),
    "f1": Column("F1, %", "percent"),
    "rps": Column("RPS", "score"),
    "nll": Column("NLL", "score"),
    "zero_mass": Column("truth ruled out, %", "percent"),
    "ece": Column("count ECE", "score"),
    "coverage90": Column("in 90 % interval, %", "percent"),
}


def controls_table(study: Study, resampling: Resampling) -> Table:
    """Accuracy, proper scores and calibration of every way to count from maps of segmentation-only networks."""
    rows = {NAMES[name]: resampling.samples(seeds) for name, seeds in post_hoc(study).items()}
    false = resampling.samples(segmented(study, SEGMENTATION))
    mean, above = (estimate_of(false[name]) for name in ("false_positives", "false_positives_above_half"))
    note = (
        "All methods count from the same maps. RPS, the ranked probability score, is the headline: lower is better, "
        "and it is defined even where a method gives the truth a probability of 0. NLL uses probabilities of at least "
        "1e-6. The columns on truths that are ruled out and on intervals refer to exact counts, all others to the "
        f"classes 0, 1, 2, 3, and 4 or more. False positives per scan: {written(mean, 'number')} among all "
        f"candidates, {written(above, 'number')} among those above 0.5."
    )
    if unfitted := n_unfitted(study):
        note += (
            f" For {unfitted} of the networks there were too few validation scans to fit a calibration; none was used."
        )
    return Table.of_scores("controls", "Ways to count from one map", _COLUMNS, rows, note)


def accuracy_figure(curves: dict[str, list[Estimate]]) -> Figure:
    """Accuracy by threshold."""

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for method, estimates in curves.items():
            with_band(axes, THRESHOLDS, estimates, method)
        axes.set(xlabel="threshold τ (probability)", ylabel="count accuracy", xlim=(0.05, 0.95))
        axes.set_xticks(THRESHOLDS)
        percent_up(axes)
        legend(figure)

    label = "Count accuracy by threshold, of connected components and of ours, with 95 % intervals over patients."
    return Figure("accuracy", label, svg(draw, height_inch=3.2, width_inch=4.4))


def confusion_figure(
    matrices: dict[str, list[NDArray[np.float64]]], thresholds: Sequence[float], names: Sequence[str]
) -> Figure:
    """Confusion matrices of classes with these names, a row of them per method."""

    def draw(figure: Any) -> None:
        grid = figure.subplots(len(matrices), len(thresholds), sharex=True, sharey=True)
        for row, (method, of) in enumerate(matrices.items()):
            for column, matrix in enumerate(of):
                axes = grid[row][column]
                draw_confusion(axes, matrix, LOOKS[method].colour, font_size=8, names=names)
                axes.set_title(f"{SHORT[method]}\nτ = {thresholds[column]:g}", fontsize=8.5)
                if column == 0:
                    axes.set_ylabel("true number")
                if row == len(matrices) - 1:
                    axes.set_xlabel("predicted number")

    label = "Confusion matrices at three thresholds: rows are true counts, columns predicted ones, mean over seeds."
    return Figure("confusion", label, svg(draw, height_inch=4.4, width_inch=6.2))


def two_candidates_figure(existence: NDArray[np.float64], components: Sequence[int], truth: int) -> Figure:
    """What both methods say of a scan with two candidates."""
    p = PoissonBinomial(existence).pmf(np.arange(3))

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        left.step(THRESHOLDS, components, where="mid", color=LOOKS["cc"].colour, linewidth=2)
        left.set(xlabel="threshold τ", ylabel="connected components", ylim=(-0.1, max(components) + 0.3))
        whole_numbers(left.xaxis, left.yaxis)
        left.set_xticks(THRESHOLDS[::2])
        right.bar(range(3), p, width=0.6, color=LOOKS["ours"].colour)
        for count, share in enumerate(p):
            right.text(count, share + 0.02, f"{share:.2f}", ha="center", fontsize=9)
        right.set(xlabel="number of lesions", ylabel="probability, ours", ylim=(0, max(p) + 0.15))
        right.set_xticks(range(3))
        strengths = " and ".join(f"{value:.2f}" for value in sorted(existence, reverse=True))
        figure.suptitle(f"Two candidates, {strengths}; truth: {truth}", fontsize=10)

    label = "A scan with two candidates: the count of connected components by threshold, and our distribution."
    return Figure("two-candidates", label, svg(draw, height_inch=2.6, width_inch=5.0))
