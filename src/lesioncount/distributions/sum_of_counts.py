"""Scans that are counted one by one → their total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution, look_up

# Totals that are less probable are left out: no number is smaller.
_SMALLEST = 1e-300


@dataclass(frozen=True, eq=False, repr=False)
class SumOfCounts(CountDistribution):
    """The total of independent counts, whatever they are made of.

    Parameters
    ----------
    members : sequence of CountDistribution
        One or more.

    Notes
    -----
    The distribution of a sum is the convolution of those of its terms, taken in pairs. Totals with a probability below
    about 1e-300 are given none.

    Examples
    --------
    >>> from lesioncount import PoissonBinomial
    >>> SumOfCounts([PoissonBinomial([0.5]), PoissonBinomial([0.5])]).pmf()
    array([0.25, 0.5 , 0.25])
    """

    members: Sequence[CountDistribution]

    def logpmf(self, k: ArrayLike | None = None) -> Any:
        """Logarithm of P(C = k)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self._pmf)
        return logs if k is None else look_up(logs, k, below=-np.inf, above=-np.inf)

    def mean(self) -> float:
        """Expected count: the sum of those of the members."""
        return float(sum(member.mean() for member in self.members))

    def var(self) -> float:
        """Variance: the sum of those of the members."""
        return float(sum(member.var() for member in self.members))

    def support(self) -> tuple[int, float]:
        """The smallest and the largest possible count."""
        lows, highs = zip(*(member.support() for member in self.members), strict=True)
        return sum(lows), sum(highs)

    def __repr__(self) -> str:
        return f"SumOfCounts({len(self.members)} members, mean {self.mean():.4g}, sd {self.std():.4g})"

    @cached_property
    def _pmf(self) -> NDArray[np.float64]:
        parts = [_trimmed(0, member.pmf()) for member in self.members]
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=False)
            added = [_trimmed(a + b, np.convolve(p, q)) for (a, p), (b, q) in pairs]
            parts = added + (parts[-1:] if len(parts) % 2 else [])
        begin, values = parts[0]
        pmf = np.concatenate([np.zeros(begin), values])
        pmf.flags.writeable = False
        return pmf


def _trimmed(begin: int, values: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """The first count that matters, and the probabilities from there on."""
    matters = np.flatnonzero(values >= _SMALLEST)
    return begin + int(matters[0]), values[matters[0] : matters[-1] + 1]
