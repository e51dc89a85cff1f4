"""Every way to count on two axes: its score, and its mean error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lesioncount.optional import optional
from lesioncount.report.drawing import MARK, USUAL, Figure, svg
from lesioncount.trust.scores.estimate import Estimate

_AXES = {"rps": "RPS, in lesions  (better ←)", "mae": "mean error, in lesions  (better ←)"}


def ways_figure(ways: Mapping[str, Mapping[str, Estimate]], labels: Mapping[str, str], *, best: str) -> Figure:
    """A panel per score, a line per way to count; the one that others are compared with stands out."""

    def draw(figure: Any) -> None:
        ticker: Any = optional("matplotlib.ticker", "report", "Drawing figures")
        grid = figure.subplots(1, 2, sharey=True)
        for axes, (score, title) in zip(grid, _AXES.items(), strict=True):
            for row, (name, of) in enumerate(ways.items()):
                colour, one = MARK if name == best else USUAL, of[score]
                axes.plot([one.low, one.high], [row, row], color=colour, linewidth=1.8)
                axes.plot(one.value, row, "D" if name == best else "o", color=colour, markersize=6)
            axes.axvline(ways[best][score].value, color=MARK, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter(ticker.NullFormatter())
            axes.set(xlabel=title, ylim=(len(ways) - 0.5, -0.5))
            axes.grid(axis="x", linewidth=0.3, alpha=0.5)
            axes.tick_params(axis="y", length=0)
        grid[0].set_yticks(range(len(ways)), [labels[name] for name in ways])

    label = "Ranked probability score and mean error of every way to count, with 95 % intervals over patients."
    return Figure("ways", label, svg(draw, height_inch=1.2 + 0.26 * len(ways), width_inch=8.0))
