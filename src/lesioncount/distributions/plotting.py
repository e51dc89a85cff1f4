"""A distribution as bars, by matplotlib, and which counts a picture shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
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


# Counts beyond are left out on either side: one in a thousand is less than a pixel high.
_TAIL = 1e-3


def shown_counts(distribution: CountDistribution) -> tuple[int, int]:
    """The first and the last count that is shown: all that matter, and from 0 where that is not far."""
    first, last = max(0, int(distribution.ppf(_TAIL))), max(0, int(distribution.isf(_TAIL)))
    return (0 if first <= max(5, last - first) else first), max(last, 1)


def grouped(distribution: CountDistribution, most: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The counts that are shown, in at most so many groups: where these begin and end, and their probabilities."""
    first, last = shown_counts(distribution)
    width = -(-(last + 1 - first) // most)
    edges = np.arange(first, last + width + 1, width)
    return edges, np.asarray(distribution.cdf(edges[1:] - 1)) - np.asarray(distribution.cdf(edges[:-1] - 1))
