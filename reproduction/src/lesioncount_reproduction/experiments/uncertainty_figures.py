"""Entropy and error: accuracy on the most certain and most uncertain scans, and histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from lesioncount.report.charts import draw_certainty
from lesioncount.report.drawing import MARK, Figure, in_percent, legend, svg
from lesioncount.trust.scores.estimate import Estimate
from lesioncount_reproduction.experiments.look import LOOKS, SHORT, percent_up
from lesioncount_reproduction.experiments.scored import SHARES, Counted

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
