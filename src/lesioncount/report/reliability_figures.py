"""Predictions in bins → how often they came true, and how many predictions that stands on."""

from __future__ import annotations

from typing import Any

import numpy as np

from lesioncount.report.drawing import COLOURS, DASHES, MARKERS, USUAL, Figure, in_percent, legend, svg
from lesioncount.report.evaluation_content import Bins, Evaluation

# Fewer scans than this say next to nothing: points that stand on them are hollow, lines pale.
THIN = 10

# Narrower than figures of the report: these have more to read on a phone.
WIDTH_INCH = 4.2

# 95 % of the normal distribution, for the intervals of single bins.
_Z = 1.96

# Digits side by side that fit over the bars; longer numbers are turned.
_DIGITS_IN_LINE = 4


def reliability(evaluation: Evaluation) -> Figure | None:
    """How often the most likely count was right, by the probability it was given."""
    series = {m.key: (m.name, m.reliability) for m in evaluation.methods.values() if m.is_ours and m.reliability}
    if not any(bins and bins.filled for _, bins in series.values()):
        return None
    document = _bins_drawn(
        {key: (name, bins) for key, (name, bins) in series.items() if bins},
        x="probability given to the most likely count", y="share of scans\nwhere it was right", n="scans",
    )  # fmt: skip
    label = (
        "Reliability: how often the most likely count was right, by the probability it was given, and scans per bin."
    )
    return Figure("reliability", label, document)


def existence(evaluation: Evaluation) -> Figure | None:
    """How often a candidate holds a lesion, by its existence probability."""
    bins = evaluation.lesion_bins
    if bins is None or not bins.filled:
        return None
    document = _bins_drawn(
        {"raw": ("candidates", bins)},
        x="existence probability of a candidate", y="share of candidates\nthat hold a lesion", n="candidates",
    )  # fmt: skip
    label = "Reliability of existence probabilities: how often candidates hold a true lesion, and candidates per bin."
    return Figure("existence", label, document)


def _bins_drawn(series: dict[str, tuple[str, Bins]], *, x: str, y: str, n: str) -> str:
    """Hit rates above, with how many predictions they stand on below."""

    def draw(figure: Any) -> None:
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        top.plot([0, 1], [0, 1], color=USUAL, linewidth=1, linestyle=(0, (2, 2)), label="perfect")
        for number, (key, (name, bins)) in enumerate(series.items()):
            _hit_rates(top, key, name, bins, shift=0.012 * (number - (len(series) - 1) / 2))
            _sizes(bottom, key, bins, number, len(series))
        top.set(ylabel=y, xlim=(-0.02, 1.02), ylim=(-0.04, 1.04))
        in_percent(top.yaxis, bottom.xaxis)
        bottom.set(xlabel=x, ylabel=n, xticks=np.linspace(0, 1, 6), yticks=[])
        legend(figure)

    return svg(draw, height_inch=4.6, width_inch=WIDTH_INCH)


def _hit_rates(axes: Any, key: str, name: str, bins: Bins, shift: float) -> None:
    """Points with the interval that the size of their bin allows; hollow where it is thin."""
    colour, marker = COLOURS[key], MARKERS[key]
    n, p, hit = (np.array(column) for column in list(zip(*bins.filled, strict=True))[1:])
    low, high = _wilson(hit, n)
    axes.vlines(p + shift, low, high, color=colour, linewidth=1.2, alpha=0.7)
    axes.plot(p + shift, hit, color=colour, linewidth=1, linestyle=DASHES[key], alpha=0.6)
    for is_thin in (False, True):
        part = (n < THIN) == is_thin
        face = "none" if is_thin else colour
        axes.plot((p + shift)[part], hit[part], marker, color=colour, markersize=6.5, markerfacecolor=face)
    axes.plot([], [], marker, color=colour, linestyle=DASHES[key], markersize=6.5, label=name)


def _sizes(axes: Any, key: str, bins: Bins, number: int, n_series: int) -> None:
    width = 0.9 / len(bins.n) / n_series
    centres = (np.arange(len(bins.n)) + 0.5) / len(bins.n) + width * (number - (n_series - 1) / 2)
    is_turned = n_series * len(str(max(bins.n))) > _DIGITS_IN_LINE
    axes.bar(centres, bins.n, width=0.92 * width, color=COLOURS[key])
    for x, n in zip(centres, bins.n, strict=True):
        if n:
            style = {"ha": "center", "fontsize": 8, "rotation": 90 if is_turned else 0}
            axes.annotate(f"{n}", (x, n), (0, 2), textcoords="offset points", **style)
    axes.set_ylim(0, max(axes.get_ylim()[1], (1.9 if is_turned else 1.35) * max(bins.n)))


def _wilson(share: Any, n: Any) -> tuple[Any, Any]:
    """Wilson's interval of a share of n."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return middle - half, middle + half
