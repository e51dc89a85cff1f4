"""Lesions among the candidates, and lesions that have none of their own: Poisson-binomial plus negative binomial."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution, is_between
from lesioncount.distributions.poisson_binomial import PoissonBinomial, binned_rows
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.errors import DistributionError

# Up to so many counts the last ones of the table, of 1e-30 and less, are computed to all their digits too.
_EXACT_TO_THE_END = 2000

# The table of extra lesions ends where less than about e^-40 is left: below the last digit of a sum.
_NEGLIGIBLE_LOG = 40.0

# Of one count in a table of many nodes: less is below the last digit of what is more probable.
_NOTHING = 1e-20

# From so many numbers of extra lesions on, each node is convolved by itself: its table matters in a window only.
_MANY_EXTRA = 400

# And here at the latest: a tail that is longer comes from no scan, and would fill the memory.
_LONGEST = 1_000_000


@dataclass(frozen=True, repr=False)
class CountWithExtra(CountDistribution):
    """The number of lesions when some have no candidate of their own: missed, or merged with a neighbour.

    Parameters
    ----------
    found : PoissonBinomial
        The number of lesions among the candidates.
    extra : float
        Expected number of lesions without a candidate of their own, above 0.
    shape : float, default inf
        How alike scans are in it: the variance is extra + extra² / shape. Infinite is a Poisson distribution.

    Notes
    -----
    A map can show no more lesions than it has candidates, and a truth above that would have probability 0. The number
    M of extra lesions is taken as negative binomial with mean m and shape r, independent of the candidates::

        P(M = j) = Γ(j + r) / (j! Γ(r)) · (r / (r + m))^r (m / (r + m))^j
        P(C = c) = Σ_j P(found = c - j) P(M = j)

    It is what a Poisson number becomes when its rate differs from scan to scan, with a gamma distribution of shape r.
    Every count from the number of certain candidates on is possible.

    Examples
    --------
    >>> count = CountWithExtra(PoissonBinomial([0.5]), 0.1)
    >>> count.pmf([0, 1, 2, 3]).round(4)
    array([0.4524, 0.4977, 0.0475, 0.0023])
    >>> CountWithExtra(PoissonBinomial([0.5]), 0.1, 0.5).pmf([0, 1, 2, 3]).round(4)
    array([0.4564, 0.4945, 0.0428, 0.0054])
    """

    found: PoissonBinomial
    extra: float
    shape: float = math.inf

    def __post_init__(self) -> None:
        if not is_between(self.extra, 0, math.inf) or self.extra == 0:
            raise DistributionError(f"Expected a mean number of extra lesions above 0, but got {self.extra!r}.")
        if not self.shape > 0:
            raise DistributionError(f"Expected a shape above 0, but got {self.shape!r}.")

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
        """Expected count, Σ p + m."""
        return self.found.mean() + self.extra

    def var(self) -> float:
        """Variance, Σ p (1 - p) + m + m² / r."""
        return self.found.var() + self.extra + self.extra**2 / self.shape

    def support(self) -> tuple[int, float]:
        """The number of certain candidates, and infinity."""
        return self.found.support()[0], math.inf

    def __repr__(self) -> str:
        shape = "" if math.isinf(self.shape) else f", shape={self.shape:.4g}"
        return f"CountWithExtra({self.found!r}, extra={self.extra:.4g}{shape})"

    @cached_property
    def _pmf(self) -> NDArray[np.float64]:
        enough = enough_extra(self.extra, self.shape)
        last = len(self.found) + enough
        n_extra = last if last < _EXACT_TO_THE_END else enough
        pmf = np.convolve(self.found.pmf(), np.exp(self._log_extra(n_extra)))[: last + 1]
        pmf.flags.writeable = False
        return pmf

    def _log_of(self, count: float) -> float:
        low, high = self.found.support()
        if math.isnan(count):
            raise DistributionError("Expected counts, but got NaN.")
        if math.isinf(count) or count != math.floor(count) or count < low:
            return -math.inf
        found = np.arange(low, min(count, high) + 1)
        terms = self.found.logpmf(found) + self._log_extra(int(count) - low)[(count - found).astype(np.intp)]
        return float(np.logaddexp.reduce(terms))

    def _log_extra(self, last: int) -> NDArray[np.float64]:
        return log_pmf_of_extra(np.array([self.extra]), self.shape, last).ravel()


def log_pmf_of_extra(mean: NDArray[np.float64], shape: float, last: int) -> NDArray[np.float64]:
    """Log P(M = j) for j = 0 … last, each from the one before; a row for each mean, which may be 0."""
    j, m, r = np.arange(float(last)), mean[:, np.newaxis], shape
    with np.errstate(divide="ignore"):
        if math.isinf(r):
            steps, first = np.log(m) - np.log1p(j), -m
        else:
            steps, first = np.log1p((r - 1) / (j + 1)) + np.log(m / (r + m)), -r * np.log1p(m / r)
    return np.asarray(np.cumsum(np.concatenate([first, steps], axis=1), axis=1))


def enough_extra(mean: float, shape: float) -> int:
    """A number of extra lesions beyond which nothing matters, for a mean above 0."""
    near = math.ceil(mean + 12 * math.sqrt(mean) + 20)
    if math.isinf(shape):
        return near
    # Far out, each is less probable than the one before by the factor m / (r + m).
    return min(near + math.ceil(_NEGLIGIBLE_LOG / math.log1p(shape / mean)), max(near, _LONGEST))


def over_nodes(
    existence: NDArray[np.float64], weights: NDArray[np.float64], extra: NDArray[np.float64], shape: float
) -> TabulatedCount:
    """The count where one of several nodes is right: candidates at each, (M, K), weights and extra lesions, (M,).

    All in one table: an atlas has a hundred regions, and a distribution for each of forty nodes would be slow.
    """
    tables = binned_rows(existence, existence.shape[1])
    if not extra.any():
        return TabulatedCount(weights @ tables)
    more = np.exp(log_pmf_of_extra(extra, shape, enough_extra(float(extra.max()), shape)))
    matters = np.flatnonzero((more > _NOTHING).any(axis=0))
    total = np.zeros(tables.shape[1] + matters[-1])
    if len(matters) > _MANY_EXTRA:
        for weight, table, of_extra in zip(weights, tables, more, strict=True):
            (first, found), (n_extra, added) = _that_matters(table), _that_matters(of_extra)
            both = np.convolve(found, weight * added)
            total[first + n_extra : first + n_extra + len(both)] += both
        return TabulatedCount(total)
    for n_extra in range(matters[0], matters[-1] + 1):  # few: all nodes at once is faster than a convolution for each
        total[n_extra : n_extra + tables.shape[1]] += (weights * more[:, n_extra]) @ tables
    return TabulatedCount(total)


def _that_matters(table: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """Where a table begins to matter, and all of it up to where it ends to."""
    places = np.flatnonzero(table > _NOTHING)
    return int(places[0]), table[places[0] : places[-1] + 1]
