"""Threshold and count: accuracy, confusion, and one scan with two candidates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.report.charts import draw_confusion
from lesioncount.report.drawing import Figure, legend, svg, whole_numbers
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.look import LOOKS, SHORT, percent_up, with_band
from lesioncount_reproduction.experiments.stats import THRESHOLDS


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
        whole_numbers(left, y=True)
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
