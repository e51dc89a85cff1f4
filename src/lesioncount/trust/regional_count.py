"""A calibration and where candidates lie → the distribution of the count in each region."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.distributions.poisson_binomial import PoissonBinomial, binned_rows
from lesioncount.distributions.tabulated import TabulatedCount
from lesioncount.distributions.with_extra import enough_extra, log_pmf_of_extra
from lesioncount.regions import OUTSIDE
from lesioncount.trust.calibration import Calibration
from lesioncount.trust.candidate_table import TableLike


@dataclass(frozen=True, eq=False)
class RegionalCount:
    """The count of a scan, region by region.

    Parameters
    ----------
    calibration : Calibration
        The identity where there is none.
    candidates : CandidateTable, Candidates, or array_like of float
        Of the scan, K of them, as `Calibration.distribution` takes them.
    members : mapping of str to array of bool, shape (K,)
        Which candidates lie in each region.

    Notes
    -----
    With the nodes m of the calibration's integral over what a scan shares, weights w_m, existence p_mk and E_m extra
    lesions expected, the count in a region A is the mixture over nodes, with weights w_m, of::

        Σ_{k in A} Bernoulli(p_mk) + M_A,    M_A negative binomial with mean q_A E_m and the calibration's shape
        q_A = Σ_m w_m Σ_{k in A} p_mk / Σ_m w_m Σ_k p_mk

    A lesion without a candidate lies nowhere in the map. It is taken to be where those are that have one: each of them
    falls into A with probability q_A, which leaves a negative binomial number of the same shape. So regions that share
    no candidate and hold all of them have means that add up to that of the whole count. Where there are no candidates
    at all, the place is unknown, and extra lesions count as outside.

    Examples
    --------
    >>> of_scan = RegionalCount(Calibration(extra_rate=1.0), [0.6, 0.2], {"front": np.array([True, False])})
    >>> round(of_scan["front"].mean(), 3)
    1.35
    """

    calibration: Calibration
    candidates: TableLike
    members: Mapping[str, NDArray[np.bool_]]

    def __getitem__(self, region: str) -> CountDistribution:
        """The number of lesions in a region."""
        member = self.members[region]
        existence, extra = np.compress(member, self.existence, axis=1), self.share_in(region) * self.extra
        if not extra.any() and (len(existence) == 1 or not member.any()):
            return PoissonBinomial(existence[0])
        # All nodes at once: an atlas has a hundred regions, and a distribution for each of forty nodes would be slow.
        tables = binned_rows(existence, existence.shape[1])
        if extra.any():
            last = enough_extra(float(extra.max()), self.calibration.extra_shape)
            tables = _sums(tables, np.exp(log_pmf_of_extra(extra, self.calibration.extra_shape, last)))
        return TabulatedCount(self.weights @ tables)

    def may_hold_lesions(self, region: str) -> bool:
        """Whether a region has candidates, or extra lesions without any."""
        return bool(self.members[region].any()) or (bool(self.extra.any()) and self.share_in(region) > 0)

    def share_in(self, region: str) -> float:
        """The share of extra lesions that lie in a region."""
        if not self.expected.any():
            return float(region == OUTSIDE)
        return float(self.expected[self.members[region]].sum() / self.expected.sum())

    @property
    def existence(self) -> NDArray[np.float64]:
        """Of each candidate at each node, shape (M, K)."""
        return self._at_nodes[0]

    @property
    def weights(self) -> NDArray[np.float64]:
        """Of the nodes."""
        return self._at_nodes[1]

    @cached_property
    def expected(self) -> NDArray[np.float64]:
        """Existence of each candidate on average over nodes, shape (K,)."""
        return np.asarray(self.weights @ self.existence)

    @cached_property
    def extra(self) -> NDArray[np.float64]:
        """Expected number of lesions without a candidate of their own at each node, shape (M,)."""
        return self.calibration.expected_extra(self.existence.sum(axis=1), self.existence.shape[1])

    @cached_property
    def _at_nodes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.calibration.at_nodes(self.candidates)


def _sums(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distribution of the sum of two numbers in each row, from theirs."""
    short, long = (a, b) if a.shape[1] < b.shape[1] else (b, a)
    total = np.zeros((len(a), short.shape[1] + long.shape[1] - 1))
    for k in range(short.shape[1]):
        total[:, k : k + long.shape[1]] += short[:, k, np.newaxis] * long
    return total
