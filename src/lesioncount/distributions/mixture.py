"""Several opinions of one scan → one distribution: an ensemble, MC-dropout samples, test-time augmentation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution
from lesioncount.errors import DistributionError


@dataclass(frozen=True, init=False, repr=False, eq=False)
class MixtureOfCounts(CountDistribution):
    """One of several distributions is right, and each is equally trusted, or with its weight.

    Parameters
    ----------
    members : sequence of CountDistribution
        The count by each member.
    weights : array_like of float, optional
        How far each is trusted; brought to the sum 1. Default: all alike.

    Notes
    -----
    This is not the count of the mean map: averaging maps first hides that members disagree, and a lesion that one
    member is sure of, and another denies, becomes a lesion that all are half sure of. With weights w_m::

        P(C = c) = Σ_m w_m P_m(C = c)
        Var C    = Σ_m w_m Var_m C  +  Σ_m w_m (E_m C - E C)²
                   within members      between members

    Examples
    --------
    >>> from lesioncount import PoissonBinomial
    >>> count = MixtureOfCounts([PoissonBinomial([1.0, 1.0]), PoissonBinomial([1.0, 0.5])])
    >>> count.pmf(), count.mean()
    (array([0.  , 0.25, 0.75]), 1.75)
    >>> count.within_variance, count.between_variance
    (0.125, 0.0625)
    """

    members: tuple[CountDistribution, ...]
    weights: NDArray[np.float64]

    def __init__(self, members: Sequence[CountDistribution], /, *, weights: ArrayLike | None = None) -> None:
        """Check the members and their weights."""
        object.__setattr__(self, "members", tuple(members))
        object.__setattr__(self, "weights", _checked_weights(weights, len(self.members)))

    def pmf(self, k: ArrayLike | None = None) -> Any:
        """P(C = k); for all counts of the table if none is given."""
        return self._pmf if k is None else self._mean_of([member.pmf(k) for member in self.members])

    def logpmf(self, k: ArrayLike | None = None) -> Any:
        """Logarithm of P(C = k), finite for every possible count however improbable; of the table if none is given."""
        counts = np.arange(self._last + 1) if k is None else k
        with np.errstate(divide="ignore"):
            terms = [np.log(w) + member.logpmf(counts) for w, member in zip(self.weights, self.members, strict=True)]
        logs = np.logaddexp.reduce(terms, axis=0)
        return logs if np.ndim(counts) else float(logs)

    def mean(self) -> float:
        """Expected count: the mean of the members' means."""
        return float(self._mean_of([member.mean() for member in self.members]))

    def var(self) -> float:
        """Variance within members plus variance between them."""
        return self.within_variance + self.between_variance

    @property
    def within_variance(self) -> float:
        """What members themselves are unsure of."""
        return float(self._mean_of([member.var() for member in self.members]))

    @property
    def between_variance(self) -> float:
        """What they disagree about."""
        return float(self._mean_of([(member.mean() - self.mean()) ** 2 for member in self.members]))

    def support(self) -> tuple[int, float]:
        """The smallest and the largest count that any member holds possible."""
        trusted = [member.support() for w, member in zip(self.weights, self.members, strict=True) if w > 0]
        return min(low for low, _ in trusted), max(high for _, high in trusted)

    def __repr__(self) -> str:
        return f"MixtureOfCounts({len(self.members)} members, mean {self.mean():.4g}, sd {self.std():.4g})"

    @cached_property
    def _pmf(self) -> NDArray[np.float64]:
        tables = [member.pmf() for member in self.members]
        longest = max(map(len, tables))
        pmf = np.asarray(self._mean_of([np.pad(table, (0, longest - len(table))) for table in tables]))
        pmf.flags.writeable = False
        return pmf

    def _mean_of(self, values: Sequence[Any]) -> Any:
        return np.tensordot(self.weights, np.asarray(values, dtype=np.float64), axes=1)


def combined(distributions: Sequence[CountDistribution]) -> CountDistribution:
    """The distribution of one map, or the mixture of several members'."""
    return distributions[0] if len(distributions) == 1 else MixtureOfCounts(distributions)


def _checked_weights(weights: ArrayLike | None, n: int) -> NDArray[np.float64]:
    if n == 0:
        raise DistributionError("Expected at least one member.")
    given = np.ones(n) if weights is None else np.array(weights, dtype=np.float64)
    total = math.fsum(given.ravel())
    if given.shape != (n,) or not np.all(given >= 0) or not 0 < total < math.inf:
        raise DistributionError(f"Expected a weight of at least 0 for each of {n} members, but got {weights!r}.")
    given /= total
    given.flags.writeable = False
    return given
