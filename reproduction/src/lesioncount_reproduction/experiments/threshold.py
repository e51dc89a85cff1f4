"""How much the count depends on the threshold (appendix C.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lesioncount.report.drawing import Figure
from lesioncount_reproduction.experiments import published
from lesioncount_reproduction.experiments.arms import SEGMENTATION
from lesioncount_reproduction.experiments.claims import EQUAL, Evidence
from lesioncount_reproduction.experiments.controls import controls_table
from lesioncount_reproduction.experiments.estimates import Resampling, Samples, estimate_of
from lesioncount_reproduction.experiments.jobs import Job
from lesioncount_reproduction.experiments.numerals import written
from lesioncount_reproduction.experiments.result import Cell, Column, Result, Table
from lesioncount_reproduction.experiments.scored import Counted
from lesioncount_reproduction.experiments.stats import THRESHOLDS, ScanStats
from lesioncount_reproduction.experiments.study import Study
from lesioncount_reproduction.experiments.threshold_figures import (
    accuracy_figure,
    confusion_figure,
    two_candidates_figure,
)
from lesioncount_reproduction.experiments.ways_to_count import at_thresholds, components_at, ours_at

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
    return study.with_validation(SEGMENTATION)


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
