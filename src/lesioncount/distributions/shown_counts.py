"""Which counts of a distribution a picture shows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution

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
