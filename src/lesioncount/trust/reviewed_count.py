"""A scan of which some candidates were decided by a person → the distribution of its count, and what to ask next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.poisson_binomial import PoissonBinomial
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.distributions.with_extra import CountWithExtra
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import TableLike

# In place of a number of lesions: nobody has decided.
UNDECIDED = -1

# When a count is certain to ±1: three neighbouring counts hold this much, as the intervals of all tables do.
CERTAIN = 0.9

# What a decision that contradicts a certain candidate leaves of the weight of a node: never nothing.
_SMALLEST = 1e-12

# Probabilities of counts that are left out of the ends of a table.
_NEGLIGIBLE = 1e-15


@dataclass(frozen=True, eq=False)
class ReviewedCount:
    """The count of a scan after some decisions about its candidates.

    Parameters
    ----------
    calibration : Calibration
        The identity where there is none.
    candidates : CandidateTable, Candidates, or array_like of float
        Of the scan, K of them, as `Calibration.distribution` takes them.
    decided : array of int, shape (K,)
        How many lesions each candidate was found to be: 0, 1, or more where several have merged; `UNDECIDED`.
    n_added : int, default 0
        Lesions that a person has seen where there is no candidate.
    is_done : bool, default False
        Whether the whole scan was looked at: then no lesion without a candidate is left to be found.

    Notes
    -----
    With the nodes m of the calibration's integral over what a scan shares, weights w_m and existence p_mk::

        w'_m ∝ w_m · Π_k (p_mk if candidate k is a lesion, 1 - p_mk if it is none)          over the decided
        C    = Σ_k decided_k + added + Σ_k Bernoulli(p_mk) + (M - found | M ≥ found)        over the undecided

    M is the calibration's number of lesions without a candidate of their own, of which those added, and all but one
    of several in one candidate, are found already. So decisions count as they are, and where scans differ as a
    whole, they also tell about the candidates that nobody has looked at.

    Examples
    --------
    >>> alike = ReviewedCount(Calibration(), [0.9, 0.5, 0.4], np.array([1, UNDECIDED, 0]))
    >>> alike.distribution.pmf()
    array([0. , 0.5, 0.5])
    """

    calibration: Calibration
    candidates: TableLike
    decided: NDArray[np.int64]
    n_added: int = 0
    is_done: bool = False

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Which candidates nobody has decided."""
        return np.asarray(self.decided == UNDECIDED)

    @property
    def n_known(self) -> int:
        """Lesions that are certain: accepted, several in one, and added."""
        return int(self.decided[~self.is_open].sum()) + self.n_added

    @cached_property
    def existence(self) -> NDArray[np.float64]:
        """Of each candidate, now: 1 or 0 where it was decided, else what decisions about others leave."""
        return np.where(self.is_open, self._weights @ self._by_node, np.minimum(self.decided, 1))

    @cached_property
    def distribution(self) -> CountDistribution:
        """Of the number of lesions."""
        return self._without(np.zeros(len(self.decided), dtype=bool))

    def mean(self) -> float:
        """Expected count: that of the distribution, mostly without working it out."""
        if self._n_extra_found:
            return self.distribution.mean()
        return self.n_known + float(self._weights @ self._expected)

    def var(self) -> float:
        """Variance of the count."""
        if self._n_extra_found:
            return self.distribution.var()
        p = self._by_node[:, self.is_open]
        within = (p * (1 - p)).sum(axis=1) + self._extra + self._extra**2 / self.calibration.extra_shape
        return float(self._weights @ (within + (self._expected - self._weights @ self._expected) ** 2))

    @cached_property
    def loss_of_variance(self) -> NDArray[np.float64]:
        """By how much the variance of the count is expected to fall when a candidate is decided; 0 where it was.

        Notes
        -----
        Of a yes-or-no variable X, Var C - E[Var(C | X)] = Cov(C, X)² / Var X.
        """
        p, w = self._by_node, self._weights
        mean = w @ p
        apart = self._expected - w @ self._expected
        covariance = w @ (p * (1 - p)) + (w * apart) @ (p - mean)
        variance = mean * (1 - mean)
        loss = np.divide(covariance**2, variance, out=np.zeros_like(mean), where=variance > 0)
        return np.where(self.is_open, loss, 0.0)

    def n_until_certain(self, share: float = CERTAIN) -> int | None:
        """How many decisions, the most telling first, leave a count that is certain to ±1; None if all would not do."""
        order = np.argsort(-self.loss_of_variance, kind="stable")[: int(self.is_open.sum())]
        low, high = 0, len(order)
        if not self._is_certain(order, share):
            return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_certain(order[:middle], share) else (middle + 1, high)
        return low

    def _is_certain(self, chosen: NDArray[np.intp], share: float) -> bool:
        """Whether the count is certain to ±1 once these are decided, whatever the answers."""
        left_out = np.zeros(len(self.decided), dtype=bool)
        left_out[chosen] = True
        pmf = self._without(left_out).table
        return bool(np.convolve(pmf, np.ones(3)).max() >= share)

    def _without(self, left_out: NDArray[np.bool_]) -> TabulatedCount:
        """The distribution of what is known and what is open, some candidates left out."""
        counted = self.is_open & ~left_out
        tables = [self._open_table(p[counted], extra) for p, extra in zip(self._by_node, self._extra, strict=True)]
        longest = max(map(len, tables))
        together = self._weights @ np.array([np.pad(table, (0, longest - len(table))) for table in tables])
        matters = np.flatnonzero(together > _NEGLIGIBLE)
        first, end = int(matters[0]), int(matters[-1]) + 1
        kept = together[first:end] / math.fsum(together[first:end])
        return TabulatedCount(kept, self.n_known + first)

    def _open_table(self, p: NDArray[np.float64], extra: float) -> NDArray[np.float64]:
        """Probabilities of the number of lesions that nobody has seen yet, at a node."""
        found = PoissonBinomial(p)
        if extra == 0:
            return np.asarray(found.pmf())
        return np.convolve(found.pmf(), _beyond(extra, self.calibration.extra_shape, self._n_extra_found))

    @cached_property
    def _expected(self) -> NDArray[np.float64]:
        """How many lesions are expected beside those that are known, at each node."""
        return np.asarray(self._by_node[:, self.is_open].sum(axis=1) + self._extra)

    @property
    def _n_extra_found(self) -> int:
        """Lesions without a candidate of their own that were found: added ones, and all but one of several."""
        return self.n_added + int(np.maximum(self.decided - 1, 0).sum())

    @cached_property
    def _at_nodes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.calibration.at_nodes(self.candidates)

    @property
    def _by_node(self) -> NDArray[np.float64]:
        """Existence of each candidate at each node, shape (M, K)."""
        return self._at_nodes[0]

    @cached_property
    def _extra(self) -> NDArray[np.float64]:
        """Expected number of lesions without a candidate of their own, at each node: those that may be left."""
        calibration = self.calibration
        if self.is_done or not calibration.has_extra:
            return np.zeros(len(self._by_node))
        among = np.where(self.is_open, self._by_node, np.minimum(self.decided, 1)).sum(axis=1)
        return calibration.expected_extra(among, len(self.decided))

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """Of the nodes, after what was decided."""
        prior = self._at_nodes[1]
        seen = ~self.is_open
        p = self._by_node[:, seen]
        likely = np.where(self.decided[seen] > 0, p, 1 - p).clip(_SMALLEST, 1)
        logs = np.log(prior) + np.log(likely).sum(axis=1)
        weights = np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())


def _beyond(mean: float, shape: float, n_found: int) -> NDArray[np.float64]:
    """Probabilities of 0, 1, … more lesions without a candidate, given that there are at least those found."""
    pmf = CountWithExtra(PoissonBinomial([]), mean, shape).pmf()
    left = pmf[n_found:]
    total = math.fsum(left)
    return left / total if total > _NEGLIGIBLE else np.ones(1)
