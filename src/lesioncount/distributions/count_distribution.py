"""What every distribution of a count can say, whatever it is made of."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount.errors import DistributionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The last of the paper's bins, 0, 1, 2, 3, 4 or more: the default wherever counts are put into bins.
MAX_COUNT = 4


class CountDistribution(ABC):
    """The distribution of a number of lesions.

    Methods have the names and meaning they have in ``scipy.stats``. What a kind of distribution must know is its table
    of probabilities, its mean and variance, and its support; where the support has no end, the table goes on until what
    is left is too little to change a sum.
    """

    def pmf(self, k: ArrayLike | None = None) -> Any:
        """P(C = k); for all counts 0, 1, … if none is given."""
        return self._pmf if k is None else look_up(self._pmf, k, below=0.0, above=0.0)

    @abstractmethod
    def logpmf(self, k: ArrayLike | None = None) -> Any:
        """Logarithm of P(C = k), finite for every possible count however improbable; of all counts if none is given."""

    def cdf(self, k: ArrayLike) -> Any:
        """P(C ≤ k)."""
        return look_up(self._cdf, np.floor(k), below=0.0, above=1.0)

    def sf(self, k: ArrayLike) -> Any:
        """P(C > k), not computed as 1 - cdf: small values keep their digits."""
        return look_up(self._sf, np.floor(k), below=1.0, above=0.0)

    def ppf(self, q: ArrayLike) -> Any:
        """The smallest count k with P(C ≤ k) ≥ q; -1 for q = 0, as scipy has it."""
        levels = _levels(q)
        # Above one half it is the other tail that tells levels apart; 1 - q is exact there.
        from_below = np.searchsorted(self._cdf, np.minimum(levels, 0.5))
        count = np.where(levels > 0.5, self._first_with_tail_at_most(1 - levels), from_below)
        count = np.where(levels == 0, -1, count)
        return count if count.ndim else int(count)

    def isf(self, q: ArrayLike) -> Any:
        """The smallest count k with P(C > k) ≤ q; -1 for q = 1, as scipy has it."""
        levels = _levels(q)
        count = np.where(levels == 1, -1, self._first_with_tail_at_most(levels))
        return count if count.ndim else int(count)

    @abstractmethod
    def mean(self) -> float:
        """Expected count."""

    @abstractmethod
    def var(self) -> float:
        """Variance."""

    def std(self) -> float:
        """Standard deviation."""
        return math.sqrt(self.var())

    def median(self) -> int:
        """The smallest count that is exceeded with probability at most one half."""
        return int(self.ppf(0.5))

    def mode(self) -> int:
        """The most probable count, the smallest of them if there are several."""
        return int(np.argmax(self._pmf))

    def entropy(self) -> float:
        """Entropy in nats: 0 when the count is certain."""
        positive = self._pmf[self._pmf > 0]
        return max(0.0, -math.fsum(positive * np.log(positive)))

    def interval(self, confidence: float) -> tuple[int, int]:
        """Lowest and highest count of the equal-tailed interval that holds the count with at least this probability."""
        if not is_between(confidence, 0, 1):
            raise DistributionError(f"Expected a confidence in [0, 1], but got {confidence!r}. For 90 % pass 0.9.")
        return max(self._lowest, self.ppf((1 - confidence) / 2)), min(self._highest, self.ppf((1 + confidence) / 2))

    @abstractmethod
    def support(self) -> tuple[int, float]:
        """The smallest and the largest possible count; the largest may be infinite."""

    def binned(self, max_count: int = MAX_COUNT) -> NDArray[np.float64]:
        """P(0), P(1), … P(max_count or more)."""
        n = checked_max_count(max_count)
        return np.append(self.pmf(np.arange(n)), self.sf(n - 1))

    def to_dict(self) -> dict[str, Any]:
        """As plain values: the numbers that ``counts.tsv`` has, and the table of probabilities."""
        low, high = self.interval(0.9)
        return {
            "count_mode": self.mode(),
            "count_median": self.median(),
            "count_mean": self.mean(),
            "count_sd": self.std(),
            "interval90_low": low,
            "interval90_high": high,
            "entropy": self.entropy(),
            "pmf": self._pmf.tolist(),
        }

    def to_json(self) -> str:
        """The same as JSON."""
        import json  # not at the top: only some write JSON

        return json.dumps(self.to_dict(), allow_nan=False)

    def plot(self, ax: Axes | None = None, *, confidence: float = 0.9, **options: Any) -> Axes:
        """Draw the probability of each count as a bar, with those outside of an interval paler.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw. Default: the current ones.
        confidence : float, default 0.9
            Of the equal-tailed interval whose counts are drawn in full colour.
        **options
            For matplotlib's ``Axes.bar``, such as ``color`` or ``label``.

        Returns
        -------
        matplotlib Axes
        """
        from lesioncount.distributions.plotting import plot_counts  # not at the top: matplotlib takes long to load

        return plot_counts(self, ax, confidence, options)

    def rvs(self, size: int | tuple[int, ...] | None = None, random_state: Any = None) -> Any:
        """Draw counts; ``random_state`` is a seed or a ``numpy.random.Generator``."""
        drawn = np.random.default_rng(random_state).random(size)
        counts = np.minimum(np.searchsorted(self._cdf, drawn, side="right"), self._last)
        return counts if np.ndim(drawn) else int(counts)

    @property
    @abstractmethod
    def _pmf(self) -> NDArray[np.float64]:
        """P(0), P(1), … P(last): the table."""

    @property
    def _last(self) -> int:
        """The last count of the table."""
        return len(self._pmf) - 1

    @property
    def _lowest(self) -> int:
        return self.support()[0]

    @property
    def _highest(self) -> int:
        """The largest possible count, or the last of the table where there is none."""
        return int(min(self.support()[1], self._last))

    @cached_property
    def _cdf(self) -> NDArray[np.float64]:
        cdf = np.minimum(np.cumsum(self._pmf), 1.0)
        cdf[self._highest :] = 1.0
        return cdf

    @cached_property
    def _sf(self) -> NDArray[np.float64]:
        # P(C > k) for all k of the table, summed from the far end.
        sf: NDArray[np.float64] = np.minimum(np.append(np.cumsum(self._pmf[:0:-1])[::-1], 0.0), 1.0)
        sf[: self._lowest] = 1.0
        return sf

    def _first_with_tail_at_most(self, q: NDArray[np.float64]) -> NDArray[np.intp]:
        """The smallest k with P(C > k) ≤ q; for q = 0 the largest possible count, wherever sums have become 0."""
        first = len(self._sf) - np.searchsorted(self._sf[::-1], q, side="right")
        return np.where(q == 0, self._highest, first)


def checked_max_count(max_count: int) -> int:
    """A number of bins that makes sense."""
    if not is_between(max_count, 0, math.inf) or max_count != int(max_count):
        raise DistributionError(f"Expected max_count to be a whole number of at least 0, but got {max_count!r}.")
    return int(max_count)


def is_between(value: object, low: float, high: float) -> bool:
    """Whether a value is a finite number in [low, high]."""
    try:
        return isinstance(value, Real) and low <= float(value) <= high and not math.isinf(value)
    except OverflowError:  # integers of 400 digits
        return False


def look_up(table: NDArray[np.float64], k: ArrayLike, *, below: float, above: float) -> Any:
    """Entries of a table at counts, which may be any numbers: those that are not whole lie beside every entry."""
    counts = np.asarray(k, dtype=np.float64)
    if np.isnan(counts).any():
        raise DistributionError("Expected counts, but got NaN.")
    index = np.clip(counts, 0, len(table) - 1)
    values = np.where(index == np.floor(index), table[index.astype(np.intp)], below)
    values = np.where(counts < 0, below, np.where(counts > len(table) - 1, above, values))
    return values if values.ndim else float(values)


def _levels(q: ArrayLike) -> NDArray[np.float64]:
    levels = np.asarray(q, dtype=np.float64)
    if not np.all((levels >= 0) & (levels <= 1)):
        raise DistributionError(f"Expected probabilities in [0, 1], but got {q!r}.")
    return levels
