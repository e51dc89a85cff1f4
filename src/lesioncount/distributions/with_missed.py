"""Lesions among the candidates, and lesions that left none: Poisson-binomial plus Poisson."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution, is_between
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.errors import DistributionError

# Up to so many counts the last ones of the table, of 1e-30 and less, are computed to all their digits too.
_EXACT_TO_THE_END = 2000


@dataclass(frozen=True, repr=False)
class CountWithMissed(CountDistribution):
    """The number of lesions when some leave no candidate.

    Parameters
    ----------
    found : PoissonBinomial
        The number of lesions among the candidates.
    missed_rate : float
        Expected number of lesions without a candidate in a scan, above 0.

    Notes
    -----
    A map can show no more lesions than it has candidates, and a truth above that would have probability 0. Missed
    lesions are rare and know nothing of each other, so their number M is taken as Poisson with rate μ, independent of
    the candidates::

        P(C = c) = Σ_j P(found = j) e^{-μ} μ^{c - j} / (c - j)!

    Every count from the number of certain candidates on is possible.

    Examples
    --------
    >>> count = CountWithMissed(PoissonBinomial([0.5]), 0.1)
    >>> count.pmf([0, 1, 2, 3]).round(4)
    array([0.4524, 0.4977, 0.0475, 0.0023])
    """

    found: PoissonBinomial
    missed_rate: float

    def __post_init__(self) -> None:
        if not is_between(self.missed_rate, 0, math.inf) or self.missed_rate == 0:
            raise DistributionError(f"Expected a rate of missed lesions above 0, but got {self.missed_rate!r}.")

    def pmf(self, k: ArrayLike | None = None) -> Any:
        """P(C = k); for all counts up to where the tail ends to matter if none is given."""
        if k is None:
            return self._pmf
        known = super().pmf(k)
        if np.all(np.asarray(k, dtype=np.float64) <= self._last):
            return known
        return np.exp(self.logpmf(k))  # beyond the table

    def logpmf(self, k: ArrayLike | None = None) -> Any:
        """Logarithm of P(C = k), finite for every possible count however improbable; of the table if none is given."""
        counts = np.asarray(np.arange(self._last + 1) if k is None else k, dtype=np.float64)
        logs = np.array([self._log_of(count) for count in counts.ravel()]).reshape(counts.shape)
        return logs if counts.ndim else float(logs)

    def mean(self) -> float:
        """Expected count, Σ p + μ."""
        return self.found.mean() + self.missed_rate

    def var(self) -> float:
        """Variance, Σ p (1 - p) + μ."""
        return self.found.var() + self.missed_rate

    def support(self) -> tuple[int, float]:
        """The number of certain candidates, and infinity."""
        return self.found.support()[0], math.inf

    def __add__(self, other: object) -> CountWithMissed:
        if isinstance(other, PoissonBinomial):
            return CountWithMissed(self.found + other, self.missed_rate)
        if isinstance(other, CountWithMissed):
            return CountWithMissed(self.found + other.found, self.missed_rate + other.missed_rate)
        return NotImplemented

    def __radd__(self, other: object) -> CountWithMissed:
        return self if other == 0 else self.__add__(other)  # sum() starts from 0

    def __repr__(self) -> str:
        return f"CountWithMissed({self.found!r}, missed_rate={self.missed_rate:.4g})"

    @cached_property
    def _pmf(self) -> NDArray[np.float64]:
        # Twelve standard deviations and some: what is beyond is below the last digit of a sum.
        enough = math.ceil(self.missed_rate + 12 * math.sqrt(self.missed_rate) + 20)
        last = len(self.found) + enough
        n_missed = last if last < _EXACT_TO_THE_END else enough
        pmf = np.convolve(self.found.pmf(), np.exp(self._log_missed(np.arange(n_missed + 1.0))))[: last + 1]
        pmf.flags.writeable = False
        return pmf

    def _log_of(self, count: float) -> float:
        low, high = self.found.support()
        if math.isnan(count):
            raise DistributionError("Expected counts, but got NaN.")
        if math.isinf(count) or count != math.floor(count) or count < low:
            return -math.inf
        found = np.arange(low, min(count, high) + 1)
        terms = self.found.logpmf(found) + self._log_missed(count - found)
        return float(np.logaddexp.reduce(terms))

    def _log_missed(self, missed: NDArray[np.float64]) -> NDArray[np.float64]:
        """Logarithm of the Poisson probability of so many missed lesions."""
        factorials = np.array([math.lgamma(m + 1) for m in missed])
        return np.asarray(missed * math.log(self.missed_rate) - self.missed_rate - factorials)
