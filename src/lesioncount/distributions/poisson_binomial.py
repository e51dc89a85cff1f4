"""Step 3: existence probabilities → the distribution of the number of lesions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lesioncount._kernels.recursion import fill_binned, fill_pmf
from lesioncount.distributions.count_distribution import MAX_COUNT, CountDistribution, checked_max_count, look_up
from lesioncount.errors import DistributionError

# The recursion is exact to about 1e-14 above this; below, where it ends in subnormal numbers, `logpmf` tilts instead.
_SMALLEST_EXACT = 1e-290

# From so many candidates on, systematic rounding (of equal probabilities) becomes visible in the thirteenth digit.
_MANY = 1000

# Up to so many bins, the recursion that is cut off there is the faster one.
_FEW_BINS = 128

# So many rows say how those of all are ordered.
_FEW_ROWS = 2

# Probabilities computed in single precision may end this far outside [0, 1] by rounding.
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class PoissonBinomial(CountDistribution):
    """The number of successes in independent trials with probabilities p_1 … p_K: here, of lesions among candidates.

    Methods have the names and meaning they have in ``scipy.stats``. Called without a count, `pmf` and `logpmf` give all
    of them, 0 … K. Two distributions add: ``a + b`` is that of the sum, such as both hemispheres.

    Parameters
    ----------
    probabilities : array_like of float, shape (K,)
        In [0, 1]. K may be 0; 0 and 1 are exact.

    Notes
    -----
    Section 3.1.3 of the paper: C = Σ_k Bernoulli(p_k). With f_k the distribution after k trials::

        f_k(c) = f_{k-1}(c) (1 - p_k) + f_{k-1}(c - 1) p_k

    All terms are positive, so that the tails are as accurate as the middle (relative error about 1e-14; no Fourier
    transform is used, which would lose everything below 1e-16).

    Examples
    --------
    The two candidates of test scan 286 of the paper:

    >>> count = PoissonBinomial([0.5189, 0.7840])
    >>> count.pmf().round(4)
    array([0.1039, 0.4893, 0.4068])
    >>> count.mode(), round(count.mean(), 4), count.interval(0.9)
    (1, 1.3029, (0, 2))
    """

    probabilities: NDArray[np.float64]

    def __init__(self, probabilities: ArrayLike, /) -> None:
        """Check and copy the probabilities."""
        object.__setattr__(self, "probabilities", _checked(probabilities))

    def logpmf(self, k: ArrayLike | None = None) -> Any:
        """Logarithm of P(C = k), finite for every possible count however improbable; of all counts if none is given."""
        if k is None:
            return self._logpmf
        counts = np.atleast_1d(np.asarray(k, dtype=np.float64))
        known = self.pmf(counts)
        with np.errstate(divide="ignore"):
            logs = np.log(known)
        low, high = self.support()
        hidden = (known <= _SMALLEST_EXACT) & (counts >= low) & (counts <= high) & (counts == np.floor(counts))
        if hidden.any():
            wanted, where = np.unique(counts[hidden].astype(np.intp), return_inverse=True)
            logs[hidden] = self._tilted(wanted)[where]
        return logs if np.ndim(k) else float(logs[0])

    def logcdf(self, k: ArrayLike) -> Any:
        """Log P(C ≤ k), finite wherever P is not 0."""
        return look_up(_log_cumulative(self._cdf, lambda: self._logpmf), np.floor(k), below=-np.inf, above=0.0)

    def logsf(self, k: ArrayLike) -> Any:
        """Log P(C > k), finite wherever P is not 0."""
        at_least = np.append(self._sf[::-1], 1.0)  # P(C ≥ K + 1), P(C ≥ K), … P(C ≥ 0)
        logs = _log_cumulative(at_least[1:], lambda: self._logpmf[::-1])[::-1]
        return look_up(np.append(logs[1:], -np.inf), np.floor(k), below=0.0, above=-np.inf)

    def mean(self) -> float:
        """Expected count, Σ p."""
        return math.fsum(self.probabilities)

    def var(self) -> float:
        """Variance, Σ p (1 - p)."""
        return math.fsum(self.probabilities * (1 - self.probabilities))

    def support(self) -> tuple[int, int]:
        """The smallest and the largest possible count."""
        return int(np.count_nonzero(self.probabilities == 1)), int(np.count_nonzero(self.probabilities))

    def binned(self, max_count: int = MAX_COUNT) -> NDArray[np.float64]:
        """P(0), P(1), … P(max_count or more), without computing the rest of the distribution."""
        bins = np.zeros(checked_max_count(max_count) + 1)
        fill_binned(self._sorted, bins)
        return bins

    def __add__(self, other: object) -> PoissonBinomial:
        if not isinstance(other, PoissonBinomial):
            return NotImplemented
        return PoissonBinomial(np.concatenate([self.probabilities, other.probabilities]))

    def __radd__(self, other: object) -> PoissonBinomial:
        return self if other == 0 else NotImplemented  # sum() starts from 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PoissonBinomial):
            return NotImplemented
        return np.array_equal(self._sorted, other._sorted)

    def __hash__(self) -> int:
        return hash(self._sorted.tobytes())

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        return f"PoissonBinomial({len(self)} probabilities, mean {self.mean():.4g}, sd {self.std():.4g})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PoissonBinomial, (self.probabilities,)

    @property
    def _last(self) -> int:
        return len(self.probabilities)

    @cached_property
    def _sorted(self) -> NDArray[np.float64]:
        # Sorted, so that the result does not depend on the order of the candidates in its last digit either.
        return np.sort(self.probabilities)

    @cached_property
    def _pmf(self) -> NDArray[np.float64]:
        low, high = self.support()
        pmf = np.zeros(self._last + 1)
        uncertain = self._sorted[self._last - high : self._last - low]
        fill_pmf(uncertain, pmf[low : high + 1])
        if len(uncertain) > _MANY:
            pmf /= pmf.sum()  # what rounding left of the total is common to all values
        pmf.flags.writeable = False
        return pmf

    @cached_property
    def _logpmf(self) -> NDArray[np.float64]:
        low, high = self.support()
        with np.errstate(divide="ignore"):
            logs = np.log(self._pmf)
        hidden = low + np.flatnonzero(self._pmf[low : high + 1] <= _SMALLEST_EXACT)
        if len(hidden):
            logs[hidden] = self._tilted(hidden)
        logs.flags.writeable = False
        return logs

    def _tilted(self, counts: NDArray[np.intp]) -> NDArray[np.float64]:
        """Logarithm of P of possible counts, which must ascend, however small it is."""
        low, high = self.support()
        return log_pmf_of(self._sorted[self._last - high : self._last - low], counts - low)


def binned_rows(probabilities: NDArray[np.float64], max_count: int) -> NDArray[np.float64]:
    """P(0), P(1), … P(max_count or more) for each row of probabilities: those of one scan at several nodes.

    Examples
    --------
    >>> binned_rows(np.array([[0.5, 0.5], [1.0, 0.5]]), 1)
    array([[0.25, 0.75], [0. , 1. ]])
    """
    # In an order of their own, as above; one for all rows, which sort alike where nodes shift all candidates of a scan.
    ordered = np.take(probabilities, np.lexsort(probabilities[:_FEW_ROWS]), axis=1)
    bins = np.zeros((len(probabilities), max_count + 1))
    for row, out in zip(ordered, bins, strict=True):
        if max_count <= _FEW_BINS:
            fill_binned(row, out)
        else:
            pmf = PoissonBinomial(row).pmf()
            out[: len(pmf)] = pmf[: max_count + 1]
            out[-1] += pmf[max_count + 1 :].sum()
    return bins


def _checked(probabilities: ArrayLike) -> NDArray[np.float64]:
    try:
        p = np.array(probabilities, dtype=np.float64)
    except (TypeError, ValueError):
        raise DistributionError("Expected probabilities to be a sequence of numbers.") from None
    if p.ndim != 1:
        raise DistributionError(f"Expected probabilities in one dimension, but their shape is {p.shape}.")
    if p.size and not (p.min() >= -_ROUNDING and p.max() <= 1 + _ROUNDING):
        raise DistributionError(f"Expected probabilities in [0, 1], but they span [{p.min():.6g}, {p.max():.6g}].")
    np.clip(p, 0.0, 1.0, out=p)
    p += 0.0  # no -0.0: equal distributions have equal hashes
    p.flags.writeable = False
    return p


def _log_cumulative(sums: NDArray[np.float64], logs: Callable[[], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Logarithms of cumulative sums, also where the sums are too small for a number."""
    with np.errstate(divide="ignore"):
        result = np.log(sums)
    hidden = np.flatnonzero(sums <= _SMALLEST_EXACT)
    if len(hidden):
        result[hidden] = np.logaddexp.accumulate(logs()[: hidden[-1] + 1])[hidden]
    return result


# A tilted distribution is trusted down to here: it serves all counts in reach, not only the one it was made for.
_SMALLEST_TRUSTED = 1e-200


def log_pmf_of(p: NDArray[np.float64], counts: NDArray[np.intp]) -> NDArray[np.float64]:
    """Log P(C = k) of a Poisson-binomial, for counts k between 0 and n.

    Parameters
    ----------
    p : ndarray, shape (n,)
        Probabilities strictly between 0 and 1.
    counts : ndarray of int
        Ascending.

    Notes
    -----
    With odds w_i = p_i / (1 - p_i), P(k) = Π (1 - p_i) e_k(w), where e_k, the elementary symmetric polynomial, is of
    degree k: e_k(w) = e^{-θk} e_k(e^θ w). So for any θ, with p_i(θ) the probability of odds e^θ w_i and P_θ their
    Poisson-binomial::

        log P(k) = log P_θ(k) - θ k + Σ log((1 - p_i) + p_i e^θ)

    θ is chosen so that k is the mean of P_θ: there, P_θ(k) is far from underflow.
    """
    log_p, log_q = np.log(p), np.log1p(-p)
    result = np.full(len(counts), -np.inf)
    todo = np.ones(len(counts), dtype=bool)
    for k, exact in ((0, log_q), (len(p), log_p)):  # no finite θ has these as its mean, and they need none
        result[counts == k] = math.fsum(exact)
        todo &= counts != k
    while todo.any():
        first = int(np.flatnonzero(todo)[0])
        theta = _tilt_to_mean(log_p - log_q, float(counts[first]))
        logit = log_p - log_q + theta
        pmf = np.zeros(len(p) + 1)
        fill_pmf(np.sort(1 / (1 + np.exp(-np.clip(logit, -700, 700)))), pmf)
        reached = todo & (pmf[counts] > _SMALLEST_TRUSTED)
        reached[first] = True
        constant = math.fsum(log_q + np.logaddexp(0, logit))
        result[reached] = np.log(pmf[counts[reached]]) - theta * counts[reached] + constant
        todo &= ~reached
    return result


def _tilt_to_mean(logit: NDArray[np.float64], mean: float) -> float:
    """The θ for which Σ sigmoid(logit_i + θ) = mean, by bisection: precise to where it makes no difference."""
    low, high = -float(logit.max()) - 800.0, -float(logit.min()) + 800.0
    for _ in range(80):
        middle = (low + high) / 2
        total = float(np.sum(1 / (1 + np.exp(-np.clip(logit + middle, -700, 700)))))
        low, high = (middle, high) if total < mean else (low, middle)
        if high - low < 1e-6:
            break
    return (low + high) / 2
