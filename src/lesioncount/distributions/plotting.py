"""A distribution as bars, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.shown_counts import shown_counts
from lesioncount.optional import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Of bars outside of the interval.
_PALE = 0.35

# Gaps between more bars than this would be stripes.
_MANY_BARS = 60

# Numbers below the axis.
_MOST_LABELS = 7


def plot_counts(distribution: CountDistribution, ax: Axes | None, confidence: float, options: dict[str, Any]) -> Axes:
    """Bars of the counts that matter; those outside of the interval are paler."""
    pyplot = optional("matplotlib.pyplot", "notebook", "plot()")
    ticker = optional("matplotlib.ticker", "notebook", "plot()")
    axes: Axes = pyplot.gca() if ax is None else ax
    first, last = shown_counts(distribution)
    low, high = distribution.interval(confidence)
    counts = np.arange(first, last + 1)
    bars = axes.bar(
        counts, distribution.pmf(counts), **({"width": 0.9 if len(counts) <= _MANY_BARS else 1.0} | options)
    )
    opaque = options.get("alpha") or 1.0
    for count, bar in zip(counts.tolist(), bars, strict=True):
        bar.set_alpha(opaque if low <= count <= high else _PALE * opaque)
    axes.set_xlabel("number of lesions")
    axes.set_ylabel("probability")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(_MOST_LABELS, integer=True))
    return axes
