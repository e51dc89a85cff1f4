"""A table of probabilities, from some count on → a distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.distributions.count_distribution import CountDistribution, look_up


@dataclass(frozen=True, eq=False, repr=False)
class TabulatedCount(CountDistribution):
    """A count whose probabilities are known one by one, such as what is known already plus what is still uncertain.

    Parameters
    ----------
    table : array of float
        Probabilities of the counts ``first``, ``first + 1``, …, whose sum is 1.
    first : int, default 0

    Examples
    --------
    Three lesions that are certain, and one that may be:

    >>> count = TabulatedCount(np.array([0.5, 0.5]), 3)
    >>> count.mean(), count.support(), count.pmf()
    (3.5, (3, 4), array([0. , 0. , 0. , 0.5, 0.5]))
    """

    table: NDArray[np.float64]
    first: int = 0

    def logpmf(self, k: ArrayLike | None = None) -> Any:
        """Logarithm of P(C = k)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self._pmf)
        return logs if k is None else look_up(logs, k, below=-np.inf, above=-np.inf)

    def mean(self) -> float:
        """Expected count."""
        return self.first + math.fsum(self.table * np.arange(len(self.table)))

    def var(self) -> float:
        """Variance."""
        away = self.first + np.arange(len(self.table)) - self.mean()
        return math.fsum(self.table * away**2)

    def support(self) -> tuple[int, int]:
        """The smallest and the largest count with a probability."""
        possible = np.flatnonzero(self.table)
        return self.first + int(possible[0]), self.first + int(possible[-1])

    def __repr__(self) -> str:
        return f"TabulatedCount({self.first} and more, mean {self.mean():.4g}, sd {self.std():.4g})"

    @cached_property
    def _pmf(self) -> NDArray[np.float64]:
        pmf = np.concatenate([np.zeros(self.first), self.table])
        pmf.flags.writeable = False
        return pmf
