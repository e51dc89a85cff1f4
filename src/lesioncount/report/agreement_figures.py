"""Predicted beside true counts: a scatter with intervals, and the differences as Bland and Altman draw them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.assess.evaluation.evaluation import Evaluation
from lesioncount.assess.evaluation.scan_row import ScanRow
from lesioncount.report.charts import Look, draw_differences, draw_scatter
from lesioncount.report.drawing import Figure, svg
from lesioncount.trust.scores.agreement import BlandAltman

# More points than this hide each other, and make the page large.
MOST_POINTS = 600

_SIZE_INCH = 4.2


def scatter(evaluation: Evaluation) -> Figure | None:
    """The median of each scan with its 90 % interval, by the true count."""
    if evaluation.agreement is None or not evaluation.scans:
        return None
    scans, is_log = shown_scans(evaluation), evaluation.agreement.bland_altman.is_log
    look = Look.of(evaluation.ours.key, evaluation.ours.name)
    truth, median, low, high = _columns(scans, "truth", "median", "interval90_low", "interval90_high")

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_scatter(axes, truth, median, (low, high), look, is_log=is_log)
        axes.set(xlabel="true number of lesions", ylabel="predicted number (median)")

    label = "Predicted number of lesions with its 90 % interval by the true number; right counts lie on the diagonal."
    return Figure("agreement", label, svg(draw, height_inch=_SIZE_INCH, width_inch=_SIZE_INCH))


def bland_altman(evaluation: Evaluation) -> Figure | None:
    """Differences between predicted and true counts, by their mean."""
    if evaluation.agreement is None or not evaluation.scans:
        return None
    found, look = evaluation.agreement.bland_altman, Look.of(evaluation.ours.key, evaluation.ours.name)
    truth, median = _columns(shown_scans(evaluation), "truth", "median")
    difference = BlandAltman.differences(median, truth, is_log=found.is_log)
    middle = np.expm1((np.log1p(median) + np.log1p(truth)) / 2) if found.is_log else (median + truth) / 2

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        draw_differences(axes, middle, difference, found, look)
        ratio, plain = "predicted / true (both plus 1)", "predicted minus true number"
        axes.set(xlabel="mean of predicted and true number", ylabel=ratio if found.is_log else plain)

    label = "Bland-Altman plot: how predicted and true numbers differ, by their mean, with limits of agreement."
    return Figure("bland-altman", label, svg(draw, height_inch=_SIZE_INCH, width_inch=_SIZE_INCH))


def shown_scans(evaluation: Evaluation) -> Sequence[ScanRow]:
    """All scans or, of very many, some from all over the list."""
    n = len(evaluation.scans)
    if n <= MOST_POINTS:
        return evaluation.scans
    return [evaluation.scans[i] for i in np.linspace(0, n - 1, MOST_POINTS).astype(int)]


def _columns(scans: Sequence[ScanRow], *names: str) -> list[NDArray[np.float64]]:
    """Counts of all scans; a file may say anything, and no count is below 0."""
    return [np.maximum([getattr(scan, name) for scan in scans], 0).astype(np.float64) for name in names]
