"""Distributions of counts → several complete data sets, and estimates from them → one (Rubin 1987)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lesioncount.errors import ScoreError
from lesioncount.trust.groups.means import ByMember
from lesioncount.trust.groups.student import student_reach, student_tails

N_IMPUTATIONS = 20


def drawn_counts(
    counts: Sequence[ByMember], /, *, n_imputations: int = N_IMPUTATIONS, seed: int = 0
) -> NDArray[np.int64]:
    """Counts that may be the true ones: several complete data sets, shape (n_imputations, scans).

    Parameters
    ----------
    counts : sequence of (sequence of CountDistribution)
        Of each scan, its count by each member of an ensemble; one where there is one map.
    n_imputations : int, default 20
        Two or more: how far they differ is how much doubt there is.
    seed : int, default 0

    Notes
    -----
    Each data set is drawn by itself. In one data set, all counts are by the same member of an ensemble: what members
    disagree about is wrong in all scans at once.

    Examples
    --------
    >>> from lesioncount import PoissonBinomial
    >>> drawn_counts([[PoissonBinomial([1.0, 0.5])], [PoissonBinomial([1.0])]], n_imputations=3)
    array([[2, 1],
           [1, 1],
           [1, 1]])
    """
    if n_imputations < 2:
        raise ScoreError(f"Expected at least 2 imputations, but got {n_imputations}: one does not show any doubt.")
    rng = np.random.default_rng(seed)
    n_members = max((len(by_member) for by_member in counts), default=1)
    member = rng.integers(n_members, size=n_imputations)
    drawn = np.empty((n_imputations, len(counts)), dtype=np.int64)
    for scan, by_member in enumerate(counts):
        every = np.array([one.rvs(n_imputations, random_state=rng) for one in by_member])
        drawn[:, scan] = every[member, np.arange(n_imputations)]
    return drawn


# With fewer degrees of freedom, a 95 % interval is wider than 25 standard errors: it says nothing.
_FEWEST_DF = 1.0


@dataclass(frozen=True)
class Pooled:
    """An estimate that was made on several imputations.

    Attributes
    ----------
    value : float
        The mean of all estimates.
    within_variance : float
        The mean of their variances: what the analysis would leave open if counts were known.
    between_variance : float
        The variance of the estimates: what it leaves open because they are not.
    n_imputations : int
    complete_df : float
        Degrees of freedom that the analysis of complete data has.
    """

    value: float
    within_variance: float
    between_variance: float
    n_imputations: int
    complete_df: float

    @property
    def variance(self) -> float:
        """Of the estimate: W + (1 + 1/m) · B."""
        return self.within_variance + self._doubt

    @property
    def standard_error(self) -> float:
        """Of the estimate."""
        return math.sqrt(self.variance)

    @property
    def doubt_share(self) -> float:
        """How much of the variance is there because counts are in doubt, from 0 to 1; NaN where there is none."""
        return self._doubt / self.variance if self.variance > 0 else math.nan

    @property
    def df(self) -> float:
        """Degrees of freedom, never more than those of complete data (Barnard and Rubin 1999).

        Notes
        -----
        With λ the share of doubt, m imputations, and ν the degrees of freedom of complete data::

            1 / df = λ² / (m - 1)  +  1 / ((ν + 1) / (ν + 3) · ν · (1 - λ))
        """
        share, complete = self.doubt_share, self.complete_df
        observed = (complete + 1) / (complete + 3) * complete * (1 - share)
        return 1 / (share**2 / (self.n_imputations - 1) + 1 / observed) if observed > 0 else 0.0

    @property
    def is_known(self) -> bool:
        """Whether there is an interval that says anything."""
        return self.variance > 0 and self.df >= _FEWEST_DF

    def interval(self, confidence: float, /) -> tuple[float, float]:
        """Both ends of the interval."""
        reach = student_reach(1 - confidence, self.df) * self.standard_error
        return self.value - reach, self.value + reach

    @property
    def p_value(self) -> float:
        """Two-sided, of the hypothesis that it is 0."""
        return student_tails(self.value / self.standard_error, self.df)

    @property
    def _doubt(self) -> float:
        return (1 + 1 / self.n_imputations) * self.between_variance


def pooled(values: Sequence[float], variances: Sequence[float], /, *, complete_df: float) -> Pooled:
    """Pool estimates and their variances, one of each per imputation.

    Examples
    --------
    >>> one = pooled([0.4, 0.5, 0.6], [0.04, 0.04, 0.04], complete_df=30)
    >>> round(one.value, 3), round(one.standard_error, 3), round(one.df, 1)
    (0.5, 0.231, 12.7)
    """
    if len(values) < 2 or len(values) != len(variances):
        raise ScoreError("Expected estimates of at least 2 imputations, each with its variance.")
    between = float(np.var(values, ddof=1))
    return Pooled(float(np.mean(values)), float(np.mean(variances)), between, len(values), complete_df)
