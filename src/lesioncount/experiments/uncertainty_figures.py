"""Entropy and error: accuracy on the most certain and most uncertain scans, and histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lesioncount.experiments.look import COLOURS, SHORT, percent_up, style
from lesioncount.experiments.scored import Counted
from lesioncount.report.drawing import Figure, in_percent, legend, svg
from lesioncount.scores.summary import MAX_COUNT

_BINS = np.linspace(0, 1, 11)


def certainty_figure(methods: dict[str, list[Counted]]) -> Figure:
    """Accuracy on the most certain share of scans, and on the most uncertain one."""

    def draw(figure: Any) -> None:
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, curve in ((left, "certainty"), (right, "uncertainty")):
            for method, seeds in methods.items():
                share, accuracy = _mean(seeds, curve)
                axes.plot(share, accuracy, **style(method))
            in_percent(axes.xaxis)
            axes.set_xlim(0, 1)
        left.set(xlabel="most certain scans", ylabel="count accuracy among them")
        right.set(xlabel="most uncertain scans")
        percent_up(left)
        legend(figure)

    label = "Count accuracy among the most certain (left) and the most uncertain scans (right), mean over seeds."
    return Figure("certainty", label, svg(draw, height_inch=3.6, width_inch=5.4))


def entropy_figure(methods: dict[str, list[Counted]]) -> Figure:
    """Normalised entropy of right and of wrong counts."""

    def draw(figure: Any) -> None:
        grid = figure.subplots(1, len(methods), sharey=True)
        for axes, (method, seeds) in zip(grid, methods.items(), strict=True):
            entropy = np.concatenate([one.predictions.entropy for one in seeds]) / np.log(MAX_COUNT + 1)
            hits = np.concatenate([one.predictions.hits for one in seeds])
            shares = [np.histogram(entropy[chosen], _BINS)[0] / max(chosen.sum(), 1) for chosen in (hits, ~hits)]
            middle, width = (_BINS[1:] + _BINS[:-1]) / 2, 0.04
            axes.bar(middle - width / 2, shares[0], width, color=COLOURS[method], label="right counts")
            axes.bar(
                middle + width / 2, shares[1], width, color="none", edgecolor="#d55e00", hatch="////",
                label="wrong counts",
            )  # fmt: skip
            axes.set_title(f"{SHORT[method]}\n{hits.sum()} right, {(~hits).sum()} wrong", fontsize=9)
            axes.set_xlabel("normalised entropy")
        grid[0].set_ylabel("share of scans")
        in_percent(grid[0].yaxis)
        legend(figure)

    label = "Histograms of the normalised entropy of right and wrong counts, all seeds together."
    return Figure("entropy", label, svg(draw, height_inch=3.3, width_inch=5.4))


def _mean(seeds: Sequence[Counted], curve: str) -> tuple[Any, Any]:
    curves = [getattr(one, curve) for one in seeds]
    return curves[0][0], np.mean([accuracy for _, accuracy in curves], axis=0)
